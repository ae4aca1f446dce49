"""The public names: what `ensue` shows, how each is called, and the page that lists them."""

from __future__ import annotations

import inspect
import json
import runpy
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import ensue

TOP = Path(__file__).resolve().parent.parent


def test_the_public_names_are_those_a_notebook_completes() -> None:
    expected = {
        "Run",
        "EnsueError",
        "run",
        "score",
        "compare",
        "report",
        "build",
        "grade",
        "train",
        "load_model",
        "benchmarks",
    }
    assert expected <= set(dir(ensue)) == set(ensue.__all__)


@pytest.mark.parametrize("name", sorted(set(ensue.__all__) - {"__version__"}))
def test_each_is_there_and_says_what_it_does(name: str) -> None:
    found = getattr(ensue, name)
    assert callable(found)
    assert inspect.getdoc(inspect.unwrap(found))


def test_a_name_that_is_a_package_too_is_both_in_either_order() -> None:
    for first in ("import ensue.report.table", "ensue.report"):
        code = (
            f"import ensue\n{first}\nimport ensue.benchmarks.registry\n"
            "print(callable(ensue.report), callable(ensue.benchmarks), len(ensue.benchmarks()) >= 8)\n"
            "from ensue.report.table import Table; print(Table.__name__)"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert done.stdout.split() == ["True", "True", "True", "Table"]


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'reprot'"):
        _ = ensue.reprot  # type: ignore[attr-defined]


def test_a_run_and_its_report_from_python(tmp_path: Path) -> None:
    run = ensue.run(
        "shuffle", model="unigram", limit=2, output=tmp_path / "run", block_size=[1, 2], shuffles=2
    )
    assert run.results is run.results
    assert {row["settings"]["block_size"] for row in run.results["metrics"]} == {1, 2}
    assert ensue.report(run).read_text("utf-8").startswith("<!doctype html>")
    assert ensue.report(tmp_path / "run", tmp_path / "page.html") == tmp_path / "page.html"
    same = ensue.compare(run, tmp_path / "run")
    assert all(row.test.difference == 0 for row in same.rows)


def test_a_run_is_read_by_the_name_of_its_folder(tmp_path: Path) -> None:
    made = ensue.run("shuffle", model="random", limit=1, shuffles=1, block_size=1, output=tmp_path / "run")
    assert ensue.Run(str(tmp_path / "run")).results == made.results  # type: ignore[arg-type]
    assert ensue.Run(tmp_path / "run") == made


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: ensue.score("One text.", model="random"), "The texts are one text: put it in a list"),
        (lambda: ensue.score(["A text.", 3], model="random"), "Text 1 is neither a string nor a pair"),
        (lambda: ensue.score([("a", "b", "c")], model="random"), "Text 0 is neither a string nor a pair"),
        (lambda: ensue.run("shuffle", model="random", limit="3"), "limit is a whole number, not '3'"),
        (lambda: ensue.run("shuffle", model="random", seed=1.5), "seed is a whole number, not 1.5"),
        (lambda: ensue.grade("none.zip", "labels", "glue"), "labels is not a folder"),
    ],
)
def test_a_wrong_argument_is_one_sentence(call: Callable[[], Any], words: str) -> None:
    with pytest.raises(ensue.EnsueError, match=words):
        call()


def test_building_from_python(tmp_path: Path) -> None:
    with pytest.raises(
        ensue.EnsueError, match="There is no builder 'chapterbrake'; did you mean chapterbreak"
    ):
        ensue.build("chapterbrake", "works", tmp_path / "out")
    chapters = "".join(f"\n\nCHAPTER {n}\n\n" + f"Word {n} went on. " * 400 for n in range(1, 9))
    (tmp_path / "work.txt").write_text(chapters)
    built = ensue.build("chapterbreak", str(tmp_path / "work.txt"), str(tmp_path / "out"), workers=1)
    assert built.folder == tmp_path / "out"
    assert built.statistics["works"] == 1
    with pytest.raises(ensue.EnsueError, match=r"chapterbreak cannot be called so: .*'output'"):
        ensue.build("chapterbreak", "works")
    schema = {"pronoun": "it", "candidates": ["The kettle", "The lamp"], "answer": "The lamp"}
    texts = [f"The kettle {verb} near the lamp, because it smoked." for verb in ("stood", "lay", "fell")]
    (tmp_path / "schemas.jsonl").write_text("\n".join(json.dumps({**schema, "text": text}) for text in texts))
    for name in ("wnli", "wsc"):
        built = ensue.build(name, str(tmp_path / "schemas.jsonl"), str(tmp_path / name))
        assert built.folder == tmp_path / name / name.upper()


def test_the_page_of_the_names_is_what_their_docstrings_say() -> None:
    page = runpy.run_path(str(TOP / "docs" / "make_api.py"))["page"]()
    assert (TOP / "docs" / "api.md").read_text("utf-8") == page, "run python docs/make_api.py"
