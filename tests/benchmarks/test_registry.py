"""The registry: every part a benchmark names is there, and a benchmark of another package has all that ours have."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from functools import cache
from pathlib import Path

import pytest

import ensue
from ensue import lazy
from ensue.benchmarks import registry
from ensue.benchmarks.base import Benchmark
from ensue.errors import EnsueError
from tests.support.command import here

SOURCE = Path(ensue.__file__).parent


@cache
def references() -> dict[str, Path]:
    """Every `"ensue.…:object"` in the source, with a file it stands in."""
    return {
        reference: path.relative_to(SOURCE)
        for path in SOURCE.rglob("*.py")
        for reference in re.findall(r'"(ensue(?:\.\w+)+:\w+)"', path.read_text("utf-8"))
    }


@pytest.mark.parametrize("reference", sorted(references()))
def test_what_is_named_is_there(reference: str) -> None:
    assert lazy.load(reference) is not None


# A room may name what is in itself or below it, as it may import it.
CONTRACT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text("utf-8"))["tool"][
    "importlinter"
]
LAYERS = [
    [room.strip().removeprefix("ensue.") for room in layer.split("|")]
    for layer in CONTRACT["contracts"][0]["layers"]
]


@pytest.mark.parametrize(("reference", "path"), sorted(references().items()))
def test_nothing_reaches_upwards_by_name(reference: str, path: Path) -> None:
    rank = {room: place for place, rooms in enumerate(LAYERS) for room in rooms}
    own, other = path.parts[0], reference.split(".")[1].partition(":")[0]
    if own in rank:  # the public names at the top of the package may be anywhere
        assert rank[other] >= rank[own], f"{path} names {reference}"
        if rank[other] == rank[own]:
            assert own == other, f"{path} names {reference}"


def test_names_and_a_wrong_name() -> None:
    ours = {
        "chapterbreak",
        "discoeval",
        "glue",
        "intruder",
        "qags",
        "senteval",
        "shuffle",
        "squality",
        "superglue",
    }
    assert ours <= set(registry.names())
    assert ours <= set(re.findall(r"\w+", here("run", "--help").out))
    assert [one.name for one in registry.every()] == registry.names()
    with pytest.raises(EnsueError, match="There is no benchmark 'shufle'; did you mean shuffle"):
        registry.find("shufle")


def test_the_entries_import_no_part() -> None:
    code = (
        "import sys; from ensue.benchmarks import registry; registry.every();"
        "print(sorted(m for m in sys.modules if m.startswith('ensue.') and m.endswith(('task', 'report', 'page'))))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_tables_of_reports_load_no_benchmark() -> None:
    code = (
        "import importlib, pkgutil, sys, ensue.report as room, ensue.runs.tables\n"
        "for one in pkgutil.walk_packages(room.__path__, 'ensue.report.'): importlib.import_module(one.name)\n"
        "print(*(name.split('.')[2] for name in sys.modules if name.startswith('ensue.benchmarks.')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert "comparing" in loaded
    assert loaded & {*registry.names(), "nlu", "probing", "coherence", "people"} == set()


ENTRY = """
from ensue.benchmarks.base import Baseline, Benchmark, Builder

benchmark = Benchmark(
    name="lengths",
    about="does a model know how long a word is",
    task="lengths.parts:TASK",
    default_model="ruler",
    tables="lengths.parts:tables",
    page="lengths.parts:PAGE",
    systems={"ruler": Baseline("lengths.parts:ruler", "measures")},
    builders={"lengths": Builder("lengths.parts:build_command", "lengths.parts:build")},
    commands={"measure": "lengths.parts:measure"},
)
"""
PARTS = """
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from ensue import console
from ensue.atomic import write_json_lines
from ensue.benchmarks.base import NamedSystem, Outcome, Setting, content_of
from ensue.benchmarks.settings import whole
from ensue.jsonl import read_lines
from ensue.report.page import Page
from ensue.report.results import read_results
from ensue.report.table import Column, Table


@dataclass(frozen=True)
class Run:
    words: list
    source: str
    fingerprint: str
    most: int

    def evaluate(self, model, context):
        items = [
            {
                "id": word, "cluster": word, "task": "lengths", "settings": {}, "outputs": {"length": len(word)},
                "scores": {"accuracy": float(len(word) <= self.most)}, "content": content_of(word),
            }
            for word in self.words
        ]
        value = sum(item["scores"]["accuracy"] for item in items) / len(items)
        row = {
            "task": "lengths", "metric": "accuracy", "value": value, "ci95": [None, None], "n": len(items),
            "clusters": len(items), "settings": {},
        }
        return Outcome(items, [row], f"model:{model.card.name} most:{self.most}", {}, 0)


class Task:
    settings = {"most": Setting(4, "letters of the longest word that counts", whole())}

    def prepare(self, task, data, limit, seed, settings):
        words = [row["word"] for _, row in read_lines(Path(data))][:limit]
        return Run(words, data, content_of(*words) * 4, settings["most"])


TASK = Task()


def ruler(name):
    return NamedSystem.of(name, "ruler", made_of="wood")


def tables(results, folder):
    table = Table([Column("what", words=True), Column("short words")], title="Lengths")
    for row in results["metrics"]:
        table.add(results["model"], row["value"])
    return [table]


def facts(folders, annotations):
    return {"results_table": tables(read_results(folders[0]), folders[0])[0]}


PAGE = Page("lengths", "lengths.html.j2", facts)


def build(source, output):
    return write_json_lines(Path(output), [{"word": word} for word in Path(source).read_text().split()])


def build_command(source: str, output: Annotated[Path, typer.Option()]) -> None:
    \"\"\"Build words.\"\"\"
    print(build(source, output))


def measure(word: str, json: console.Json = False) -> None:
    \"\"\"Measure a word.\"\"\"
    console.print_json({"length": len(word)})
"""
PAGE = """{% extends "report.html.j2" %}
{% block findings %}<h2>How long words are</h2>{{ results_table.to_html() }}{% endblock %}
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory) -> Path:
    """A package of its own, as pip would lay it out: modules, a template, and an entry point."""
    site = tmp_path_factory.mktemp("site")
    (site / "lengths" / "templates").mkdir(parents=True)
    (site / "lengths" / "__init__.py").write_text(ENTRY)
    (site / "lengths" / "parts.py").write_text(PARTS.replace('\\"', '"'))
    (site / "lengths" / "templates" / "lengths.html.j2").write_text(PAGE)
    info = site / "lengths-0.1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: lengths\nVersion: 0.1\n")
    (info / "entry_points.txt").write_text("[ensue.benchmarks]\nlengths = lengths:benchmark\n")
    return site


def test_a_benchmark_of_another_package_has_its_table_page_builder_system_and_command(
    installed: Path, tmp_path: Path
) -> None:
    def command(*words: str) -> subprocess.CompletedProcess[str]:
        code = f"import sys; sys.path.insert(0, {str(installed)!r}); from ensue.cli.main import main; main()"
        return subprocess.run(
            [sys.executable, "-c", code, *words], capture_output=True, text=True, cwd=tmp_path
        )

    (tmp_path / "words.txt").write_text("a bee chased butterflies over hills")
    built = command("build", "lengths", "words.txt", "--output", "words.jsonl")
    assert (built.returncode, built.stdout.strip()) == (0, "words.jsonl"), built.stderr
    ran = command("run", "lengths", "--data", "words.jsonl", "--output", "run", "--report")
    assert ran.returncode == 0, ran.stderr
    # Of six words a, bee, over and no other have four letters or fewer.
    assert "Lengths" in ran.stdout
    assert "ruler" in ran.stdout
    assert "0.500" in ran.stdout
    page = (tmp_path / "run" / "report.html").read_text("utf-8")
    assert "How long words are" in page
    assert "0.500" in page
    asked = command("run", "lengths", "--data", "words.jsonl", "--set", "most=1", "--format", "csv")
    assert asked.stdout.splitlines()[:2] == ["what,short words", f"ruler,{1 / 6}"]
    assert "lengths: measures" in command("models", "list").stdout
    assert command("measure", "hill").stdout.strip() == '{"length": 4}'
    for words, name in [((), "measure"), (("build",), "lengths"), (("run",), "lengths")]:
        assert name in command(*words, "--help").stdout


@pytest.mark.parametrize(
    ("module", "words"),
    [
        (
            "benchmark = 3",
            "The benchmark odd of odd:benchmark is int, where an ensue.benchmarks.base.Benchmark",
        ),
        ("import nothing_there", "odd:benchmark cannot be imported (ModuleNotFoundError: No module named"),
        ("def benchmark(:", "odd:benchmark cannot be imported (SyntaxError:"),
    ],
)
def test_a_package_whose_benchmark_is_unsound_stops_no_other(tmp_path: Path, module: str, words: str) -> None:
    (tmp_path / "odd.py").write_text(module)
    info = tmp_path / "odd-0.1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: odd\nVersion: 0.1\n")
    (info / "entry_points.txt").write_text("[ensue.benchmarks]\nodd = odd:benchmark\n")

    def command(*said: str) -> subprocess.CompletedProcess[str]:
        code = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); from ensue.cli.main import main; main()"
        return subprocess.run(
            [sys.executable, "-c", code, *said], capture_output=True, text=True, cwd=tmp_path
        )

    listed = command("models", "list")
    assert (listed.returncode, listed.stderr.count("It is left out.")) == (0, 1)
    assert words in listed.stderr
    assert "Traceback" not in listed.stderr
    assert "unigram" in listed.stdout
    asked = command("run", "odd")
    assert asked.returncode == 2
    assert words in asked.stderr.splitlines()[-1]


def test_a_package_takes_no_command_of_the_house(monkeypatch: pytest.MonkeyPatch) -> None:
    from ensue.cli.main import HOUSE, _House

    rival = Benchmark(
        "rival", "takes what is not its own", "a:b", commands={"run": "rival:run", "go": "rival:go"}
    )
    monkeypatch.setattr(registry, "every", lambda: [rival])
    found = _House().references()
    assert (found["run"], found["go"]) == (HOUSE["run"][0], "rival:go")
