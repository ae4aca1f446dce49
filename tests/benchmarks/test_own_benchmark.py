"""The benchmark that docs/own-benchmark.md writes out: it does what the page says."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "own-benchmark.md"


def written_out(site: Path) -> None:
    """Write the files of the page as pip would lay them out."""
    blocks = re.findall(r"^`([\w/.]+)` .*?\n```\w+\n(.*?)^```$", PAGE.read_text("utf-8"), re.S | re.M)
    files = dict(blocks)
    assert len(files) == len(blocks) == 7
    about = tomllib.loads(files.pop("pyproject.toml"))["project"]
    for name, words in files.items():
        path = site / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(words)
    info = site / f"{about['name']}-{about['version']}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {about['name']}\nVersion: {about['version']}\n"
    )
    lines = [
        f"[{group}]\n{name} = {value}"
        for group, points in about["entry-points"].items()
        for name, value in points.items()
    ]
    (info / "entry_points.txt").write_text("\n".join(lines) + "\n")


def test_the_page_s_benchmark_builds_runs_reports_and_refuses(tmp_path: Path) -> None:
    site, here = tmp_path / "site", tmp_path / "here"
    written_out(site)
    (here / "stories").mkdir(parents=True)

    def ensue(*words: str) -> subprocess.CompletedProcess[str]:
        code = f"import sys; sys.path.insert(0, {str(site)!r}); from ensue.cli.main import main; main()"
        return subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, cwd=here)

    for name, last in (("a", "the the the"), ("b", "zygote quixotic")):
        (here / "stories" / f"{name}.txt").write_text(f"One came. Two went. It rained here. It was {last}.")
    (here / "stories" / "short.txt").write_text("Too short.")
    built = ensue("build", "endings", "stories", "--output", "stories.jsonl")
    assert (built.returncode, built.stdout.strip()) == (0, "stories.jsonl"), built.stderr
    shown = ensue("ending", "stories.jsonl", "--json")
    assert json.loads(shown.stdout) == {
        "a": "It was the the the.",
        "b": "It was zygote quixotic.",
        "short": "Too short.",
    }
    asked = ("run", "endings", "--model", "unigram", "--data", "stories.jsonl")
    ran = ensue(*asked, "--output", "run", "--report", "--format", "csv")
    assert ran.returncode == 0, ran.stderr
    # Frequent words are likelier whatever stands before them: right of the one text, wrong of the other.
    assert ran.stdout.splitlines()[:2] == ["model,accuracy,texts,readers", "unigram,0.5,2,0.98"]
    assert "too short: 1" in ran.stderr
    page = (here / "run" / "report.html").read_text("utf-8")
    assert "Which ending is likelier?" in page
    assert "chance is 0.5; readers: Nobody (2026)" in page
    assert "read, not run again" in ensue(*asked, "--output", "run").stdout
    assert "Invalid before=0: expected a whole number from 1." in ensue(*asked, "--set", "before=0").stderr
    assert "there is no endings/x" in ensue("run", "endings/x", "--model", "unigram").stderr
    assert "fewer than two texts of 6 sentences" in ensue(*asked, "--set", "before=5").stderr
