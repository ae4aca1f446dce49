"""What is built is what the benchmark reads, and the command says so."""

from __future__ import annotations

import json

import pytest

from ensue.benchmarks.discoeval.builders.build import build
from ensue.benchmarks.discoeval.builders.common import BuildOptions
from ensue.benchmarks.discoeval.data import SPECS, missing_files, read_task, select
from ensue.errors import EnsueError
from tests.benchmarks.discoeval.builders import test_pdtb, test_rst, test_sections
from tests.benchmarks.discoeval.builders.inputs import documents, write_lines
from tests.support.command import here


@pytest.fixture(scope="module")
def suite(tmp_path_factory):
    """All twelve tasks, built into one folder."""
    folder = tmp_path_factory.mktemp("suite")
    texts = write_lines(folder / "texts.jsonl", documents(60, (5, 5, 9)))
    papers = write_lines(folder / "papers.jsonl", [test_sections.paper(n) for n in range(20)])
    sources = {
        "SSP": papers,
        "PDTB/explicit": test_pdtb.treebank(folder / "explicit"),
        "PDTB/implicit": test_pdtb.treebank(folder / "implicit", "Implicit"),
        "RST": test_rst.treebank(folder / "rst"),
    }
    for spec in SPECS:
        build(spec.name, sources.get(spec.name) or sources.get(spec.group) or texts, folder / "out")
    return folder / "out"


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.name)
def test_every_task_is_read_back_whole(suite, spec):
    assert missing_files(suite, spec) == []
    task = read_task(suite, spec)
    said = json.loads((suite / spec.folder / "build.json").read_text("utf-8"))["statistics"]
    both = 2 if spec.group == "BSO" else 1
    lines = {name: both * row["lines"] for name, row in said["examples"].items()}
    read = {split: len(examples) for split, examples in task.splits.items()}
    assert (read["train"], read["dev"], read["test"]) == (lines["train"], lines["valid"], lines["test"])
    assert task.notes.total() == 0
    if spec.group == "PDTB":
        assert list(task.labels) == said["labels"]


def test_the_command_prints_a_table_or_json(tmp_path):
    source = write_lines(tmp_path / "wiki.jsonl", documents(40, (5, 4)))
    done = here("build", "discoeval", "SP/wiki", source, "--output", tmp_path / "out", "--workers", 1)
    assert (done.code, done.err) == (0, "")
    assert "documents of fewer than five sentences: 20" in done.out
    assert done.out.splitlines()[-1] == f"data: {tmp_path / 'out' / 'SP' / 'wiki'}"
    more = ("--output", tmp_path / "b", "--workers", 1, "--seed", 3, "--test", 2, "--json")
    said = json.loads(here("build", "discoeval", "BSO/wiki", source, *more).out)
    assert said.pop("folder") == str(tmp_path / "b" / "BSO" / "wiki")
    assert said == json.loads((tmp_path / "b" / "BSO" / "wiki" / "build.json").read_text("utf-8"))
    assert said["statistics"]["examples"]["test"]["lines"] == 2


@pytest.mark.parametrize(
    ("task", "options", "words"),
    [
        ("SP", BuildOptions(), "One task is built at a time: SP/wiki, SP/arxiv, SP/rocstory"),
        ("", BuildOptions(), "Name the task to build"),
        ("SP/wikl", BuildOptions(), "did you mean SP/wiki"),
        ("SP/wiki", BuildOptions(per_document=2), "--per-document is for DC and SSP, not for SP/wiki"),
        ("BSO/wiki", BuildOptions(others="shuffled"), "--others is for SP, not"),
        ("SP/wiki", BuildOptions(train=0), "--train is 0, but must be at least 1"),
        ("SP/wiki", BuildOptions(train=500), "gives 40 examples, but at least 502 are needed"),
        ("SP/wiki", BuildOptions(split="words"), "not into 'words'"),
    ],
)
def test_senseless_wishes_are_refused_and_leave_nothing(tmp_path, task, options, words):
    source = write_lines(tmp_path / "wiki.jsonl", documents(40))
    with pytest.raises(EnsueError, match=words):
        build(task, source, tmp_path / "out", options)
    assert not (tmp_path / "out").exists()


def test_an_earlier_build_is_replaced_only_when_asked(tmp_path):
    source = write_lines(tmp_path / "wiki.jsonl", documents(40))
    first = build("SP/wiki", source, tmp_path / "out").fingerprint
    with pytest.raises(EnsueError, match="holds a build already"):
        build("SP/wiki", source, tmp_path / "out", BuildOptions(seed=1))
    second = build("SP/wiki", source, tmp_path / "out", BuildOptions(seed=1), overwrite=True).fingerprint
    assert first != second
    assert read_task(tmp_path / "out", select("SP/wiki")[0]).splits["train"]
    (tmp_path / "out" / "BSO" / "wiki").mkdir(parents=True)
    (tmp_path / "out" / "BSO" / "wiki" / "train.txt").write_text("mine")
    with pytest.raises(EnsueError, match="is not empty and holds no build"):
        build("BSO/wiki", source, tmp_path / "out", overwrite=True)
