"""Human performance: votes, ties, CommitmentBank's scale, agreement, samples, and files that do not fit."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, f1_score

from ensue.benchmarks.nlu.examples import Example, TaskData
from ensue.benchmarks.nlu.scores import rows
from ensue.benchmarks.nlu.submissions.people import (
    annotated_part,
    judge_people,
    majority,
    majority_vote,
    read_annotations,
)
from ensue.benchmarks.nlu.systems import Answered
from ensue.errors import EnsueError
from tests.benchmarks.nlu.answered import labelled, spec, task


def _write(folder: Path, lines: list[dict[str, Any]]) -> Path:
    path = folder / "annotations.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path


def _wsc(n: int = 4) -> TaskData:
    gold = ["true", "false"] * n
    return task(spec("WSC", "superglue"), [Example(str(p), ("A.",), gold[p]) for p in range(n)])


@settings(max_examples=100, deadline=None)
@given(st.lists(st.sampled_from("abc"), min_size=1, max_size=7))
def test_the_majority_by_counting(labels: list[str]) -> None:
    counts = Counter(labels)
    tied = sorted(label for label in counts if counts[label] == max(counts.values()))
    assert majority(labels, "abc") == (tied[0], len(tied) > 1)


def test_two_way_votes_are_judged_like_a_system(tmp_path: Path) -> None:
    path = _write(
        tmp_path,
        [
            {"id": 0, "labels": [True, True, "true", False, False]},
            {"id": "1", "labels": [True, True, True, False, False]},
            {"id": "3", "labels": [False] * 5},
        ],
    )
    found = judge_people(path, _wsc(), "dev")
    assert found.answered.predictions == {"dev": {"0": "true", "1": "true", "3": "false"}}
    assert found.answered.settings == {"annotators": 5}
    assert found.judged is not None
    assert found.judged.figures["accuracy"].value == pytest.approx(2 / 3)
    row = rows([found.judged])[0]
    assert (row["task"], row["n"], row["settings"]) == ("WSC", 3, {"split": "dev", "annotators": 5})
    assert None not in row["ci95"]


def test_commitmentbanks_scale_is_folded_before_the_vote(tmp_path: Path) -> None:
    asked = spec("CB", "superglue")
    gold = ["entailment", "neutral", "contradiction", "contradiction"]
    data = task(asked, [Example(str(p), ("A.", "B."), one) for p, one in enumerate(gold)])
    scale = [[1, 2, 3, 7, 7], [4, 4, 4, 1, 7], [5, 6, 7, 4, 4], [1, 1, 4, 4, "contradiction"]]
    path = _write(tmp_path, [{"id": p, "labels": labels} for p, labels in enumerate(scale)])
    found = judge_people(path, data, "dev")
    # The last is a tie of entailment and neutral: whichever the task names first.
    tied = min(("entailment", "neutral"), key=asked.labels.index)
    given_ = ["entailment", "neutral", "contradiction", tied]
    assert list(found.answered.predictions["dev"].values()) == given_
    assert found.answered.settings == {"annotators": 5, "ties": 1}
    assert found.judged is not None
    assert found.judged.figures["accuracy"].value == accuracy_score(gold, given_)
    assert found.judged.figures["f1"].value == pytest.approx(f1_score(gold, given_, average="macro"))


def test_agreement_has_an_interval_unless_all_say_the_same(tmp_path: Path) -> None:
    generator = np.random.default_rng(0)
    data, _, gold, _ = labelled(spec("COPA", "superglue"), 100)
    lines: list[dict[str, Any]] = [
        {"id": p, "labels": [label if generator.random() < 0.9 else "0" for _ in range(5)]}
        for p, label in enumerate(gold)
    ]
    row = judge_people(_write(tmp_path, lines), data, "dev").agreement_row()
    assert row is not None
    low, high = row["ci95"]
    assert low is not None
    assert high is not None
    assert 0.5 < low < row["value"] < high < 1.0
    assert (row["metric"], row["n"], row["settings"]) == ("kappa", 100, {"split": "dev", "annotators": 5})
    same = _write(tmp_path, [{"id": p, "labels": [1, 1, 1, 1, 1]} for p in range(3)])
    assert judge_people(same, data, "dev").agreement_row() is None


def test_without_gold_labels_there_is_agreement_only(tmp_path: Path) -> None:
    data = task(spec("WSC", "superglue"), [Example(str(p), ("A.",)) for p in range(3)], "test")
    path = _write(tmp_path, [{"id": 0, "labels": [True, False]}, {"id": 2, "labels": [True, True]}])
    found = judge_people(path, data, "test")
    assert found.judged is None
    assert found.kappa is not None


def human_answers(path: Path, data: TaskData, split: str) -> Answered:
    return majority_vote(read_annotations(path, data, split), data.spec, split)


def test_groups_are_annotated_whole(tmp_path: Path) -> None:
    examples = [
        Example(f"0-{q}-{a}", ("P.", "Q?", "A."), "1", group=f"0-{q}") for q in (0, 1) for a in (0, 1)
    ]
    data = task(spec("MultiRC", "superglue"), examples)
    whole = human_answers(
        _write(tmp_path, [{"id": f"0-0-{a}", "labels": [1, 1, 0]} for a in (0, 1)]), data, "dev"
    )
    assert [one.id for one in annotated_part(data, whole, "dev").splits["dev"]] == ["0-0-0", "0-0-1"]
    part = human_answers(_write(tmp_path, [{"id": "0-1-0", "labels": [1, 1, 0]}]), data, "dev")
    with pytest.raises(EnsueError, match="'0-1-1' has no labels, but others of its group '0-1'"):
        annotated_part(data, part, "dev")


GOOD = '{"id": "0", "labels": [true, false]}\n'


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("not json\n", "line 1 is not JSON"),
        (GOOD + "[1]\n", "line 2 is not a JSON object but a list"),
        (GOOD + '{"id": 1}\n', 'line 2: a line is an object with "id" and "labels"'),
        (GOOD + '{"id": 1.5, "labels": [true, true]}', "line 2: the id 1.5 is neither"),
        (GOOD + '{"id": 9, "labels": [true, true]}', "line 2: '9' is no example of the dev split of WSC"),
        (GOOD + GOOD, "line 2: '0' has labels in an earlier line"),
        (GOOD + '\n{"id": 1, "labels": [true]}', 'line 3: "labels" is a list of at least two'),
        (
            GOOD + '{"id": 1, "labels": [true, true, true]}',
            "line 2: there are 3 labels where the first line has 2",
        ),
        (GOOD + '{"id": 1, "labels": [true, "maybe"]}', "line 2: the label 'maybe' is none of false, true."),
        (GOOD + '{"id": 1, "labels": [true, 4]}', "line 2: the label 4 is none of"),
        (GOOD + '{"id": 1, "labels": [true, [1]]}', r"line 2: the label \[1\] is none of"),
        ("\n", "holds no annotations"),
    ],
)
def test_lines_that_do_not_fit_are_named(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "votes.jsonl"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(EnsueError, match=words) as raised:
        human_answers(path, _wsc(), "dev")
    assert "votes.jsonl" in str(raised.value)


def test_what_cannot_be_voted_on_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "votes.jsonl"
    with pytest.raises(EnsueError, match=r"votes.jsonl cannot be read"):
        human_answers(path, _wsc(), "dev")
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(EnsueError, match=r"votes.jsonl is UTF-16"):
        human_answers(path, _wsc(), "dev")
    with pytest.raises(EnsueError, match="WSC has no test split here"):
        human_answers(path, _wsc(), "test")
    scores = task(spec("STS-B"), [Example("0", ("A.", "B."), 1.0)])
    with pytest.raises(EnsueError, match="STS-B has no labels to vote on"):
        human_answers(path, scores, "dev")
    cb = task(spec("CB", "superglue"), [Example("0", ("A.", "B."), "neutral")])
    path.write_text('{"id": "0", "labels": [4, 8]}', encoding="utf-8")
    with pytest.raises(
        EnsueError, match=r"line 1: the label 8 is none of [a-z, ]+, nor a number from 1 to 7\."
    ):
        human_answers(path, cb, "dev")
