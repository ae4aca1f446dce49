"""Summaries from a file are measured as if a model had written them; what is wrong with the file is named."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import ensue
from ensue.errors import EnsueError
from tests.benchmarks.squality.invented import story_row, write_rows


def given(tmp_path: Path, **changed: str | None) -> tuple[Path, Path]:
    """Two stories, and for every question the lead's summary, but for what is changed or taken away (None)."""
    data = write_rows(tmp_path / "test.jsonl", story_row("1"), story_row("2"))
    done = ensue.run("squality", model="lead", data=data, output=tmp_path / "lead", statistics="no")
    texts = {item["id"]: item["outputs"]["summary"] for item in done.items} | changed
    rows = [{"id": name, "summary": text} for name, text in texts.items() if text is not None]
    path = tmp_path / "summaries.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return data, path


def test_they_score_what_the_system_scored(tmp_path) -> None:
    data, path = given(tmp_path)
    options = {"data": data, "statistics": "no", "summaries": str(path)}
    done = ensue.run("squality", model="written", output=tmp_path / "run", **options)
    lead = json.loads((tmp_path / "lead" / "results.json").read_text("utf-8"))
    assert done.results["metrics"] == lead["metrics"]
    few = ensue.run("squality", model="written", output=tmp_path / "few", limit=1, **options)
    assert {item["cluster"] for item in few.items} == {"1"}


def test_bad_files_are_one_sentence(tmp_path) -> None:
    for changed, words in (
        ({"1/1": None}, "no summary for 1 of"),
        ({"9/1": "Who is that?"}, "9/1 is no question"),
    ):
        data, path = given(tmp_path, **changed)
        with pytest.raises(EnsueError, match=words):
            ensue.run(
                "squality",
                model="written",
                data=data,
                summaries=str(path),
                output=tmp_path / "x",
                statistics="no",
            )
        assert not (tmp_path / "x").exists()
        shutil.rmtree(tmp_path / "lead")
    with pytest.raises(EnsueError, match="summaries=FILE"):
        ensue.run("squality", model="written", data=data, output=tmp_path / "y", statistics="no")
    with pytest.raises(EnsueError, match="cannot be read"):
        ensue.run(
            "squality",
            model="written",
            data=data,
            summaries="no.jsonl",
            output=tmp_path / "z",
            statistics="no",
        )
