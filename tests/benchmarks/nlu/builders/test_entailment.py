"""Three classes to two: labels of every spelling, splits that share no premise, and both layouts."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from ensue.benchmarks.nlu.builders.entailment import build_rte
from ensue.errors import EnsueError
from tests.support.command import here, read_lines, refused, write_lines

THREE = ("entailment", "neutral", "contradiction")


def pairs(path: Path, premises: int = 10) -> Path:
    rows = [
        {"premise": f"Boat {n} left the quay.", "hypothesis": f"Boat {n} did {label}.", "label": label}
        for n in range(premises)
        for label in THREE
    ]
    return write_lines(path, rows)


def test_two_classes_in_glues_layout(tmp_path):
    from ensue.benchmarks.glue.data import read_task
    from ensue.benchmarks.glue.task import TASK

    build_rte(str(pairs(tmp_path / "nli.jsonl")), tmp_path / "out")
    data = read_task(tmp_path / "out", TASK.select("RTE")[0])
    assert data is not None
    assert {split: len(found) for split, found in data.splits.items()} == {"train": 24, "dev": 3, "test": 3}
    for found in data.splits.values():
        for example in found:
            right = example.texts[1].endswith("did entailment.")
            assert example.gold == ("entailment" if right else "not_entailment")
    premises = [{example.texts[0] for example in found} for found in data.splits.values()]
    assert not premises[0] & premises[1] | premises[0] & premises[2] | premises[1] & premises[2]


def test_two_classes_in_superglues_layout(tmp_path):
    build_rte(str(pairs(tmp_path / "nli.jsonl")), tmp_path / "out", suite="superglue")
    lines = read_lines(tmp_path / "out" / "RTE" / "val.jsonl")
    assert [list(line) for line in lines] == [["premise", "hypothesis", "label", "idx"]] * 3
    assert Counter(line["label"] for line in lines) == {"entailment": 1, "not_entailment": 2}


def test_a_folder_keeps_its_splits_and_every_spelling_is_known(tmp_path):
    source = tmp_path / "nli"
    source.mkdir()
    spelled = ["YES", "NO", "UNKNOWN", "entailment", "-", "0", "1", "2"]
    lines = ["\t".join(("gold_label", "sentence1", "sentence2"))]
    lines += [f'{label}\tA "gate opened.\tIt opened.' for label in spelled]
    (source / "train.tsv").write_text("\n".join(lines) + "\n", "utf-8")
    write_lines(
        source / "val.jsonl", [{"t": "It rained.", "h": "It was dry.", "entailment": "CONTRADICTION"}]
    )
    done = build_rte(str(source), tmp_path / "out")
    assert done.skipped == {"pairs without a label": 1}
    assert done.statistics["examples"]["train"]["labels"] == {"entailment": 3, "not_entailment": 4}
    assert done.statistics["examples"]["dev"]["labels"] == {"not_entailment": 1}
    assert not (tmp_path / "out" / "RTE" / "test.tsv").exists()


BAD = {
    "an unknown label": ({"label": "perhaps"}, "line 2: the label 'perhaps' is none of entailment, neutral"),
    "true": ({"label": True}, "the label 'True' is none of"),
    "an empty premise": ({"premise": ""}, "'premise' is empty"),
    "no hypothesis": ({"hypothesis": None}, "'hypothesis'"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_rows_are_one_sentence(tmp_path, case):
    changes, words = BAD[case]
    good = {"premise": "Boats left.", "hypothesis": "They left.", "label": "neutral"}
    path = write_lines(tmp_path / "nli.jsonl", [good, {**good, **changes}])
    sentence = refused(here("build", "rte", path, "--output", tmp_path / "out"), "nli.jsonl", words)
    assert sentence.endswith(".")
    assert not (tmp_path / "out").exists()


def test_other_sources_are_refused(tmp_path):
    with pytest.raises(EnsueError, match="There is no file"):
        build_rte(str(tmp_path / "none.tsv"), tmp_path / "out")
    with pytest.raises(EnsueError, match="has no train, dev or test file"):
        build_rte(str(tmp_path), tmp_path / "out")
    with pytest.raises(EnsueError, match=r"not a \.jsonl or \.tsv file"):
        build_rte(str(tmp_path / "nli.xml"), tmp_path / "out")


def test_the_command_tells_what_it_made_and_makes_it_again_only_when_asked(tmp_path):
    source = pairs(tmp_path / "nli.jsonl")
    command = ("build", "rte", source, "--output", tmp_path / "out")
    done = here(*command)
    assert (done.code, done.err) == (0, "")
    assert "entailment: 8, not_entailment: 16" in done.out
    assert done.out.splitlines()[-1] == f"data: {tmp_path / 'out' / 'RTE'}"
    refused(here(*command), "--overwrite")
    said = json.loads(here(*command, "--overwrite", "--json").out)
    assert said.pop("folder") == str(tmp_path / "out" / "RTE")
    assert said == json.loads((tmp_path / "out" / "RTE" / "build.json").read_text("utf-8"))
