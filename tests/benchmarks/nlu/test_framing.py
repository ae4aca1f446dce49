"""Every form becomes rows with the right targets, and outputs become the answers they stand for."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ensue.benchmarks.nlu.examples import Example, TaskData, TextSpan
from ensue.benchmarks.nlu.framing import (
    PredictedAnswers,
    TextRow,
    answered_as,
    answers,
    ask,
    frame,
    outputs_of,
    parts_of,
    rows_of,
    spread,
    with_held_out,
)
from ensue.errors import EnsueError
from tests.support.small_tasks import FORMS, spec, task


def test_rows_hold_what_each_form_asks() -> None:
    copa = Example("1", ("The cup fell.", "effect"), "1", ("It broke.", "It sang."))
    assert [row.texts for row in rows_of("choice", copa)] == [
        ("The cup fell. What followed from this?", "It broke."),
        ("The cup fell. What followed from this?", "It sang."),
    ]
    multirc = Example("1", ("A long passage.", "Who came?", "Nobody"), "0")
    assert rows_of("answers", multirc) == [TextRow(("Who came? A long passage.", "Nobody"))]
    record = Example("1", ("Ada met Bram.", "@placeholder left."), ("Ada",), ("Ada", "Bram"))
    assert [row.texts[1] for row in rows_of("entity", record)] == ["Ada left.", "Bram left."]
    spans = (TextSpan(0, 0, 3), TextSpan(0, 8, 12))
    assert rows_of("coreference", Example("1", ("Ada met Bram.",), "true", spans=spans))[0].marks == spans


def test_targets_are_classes_scores_or_right_choices() -> None:
    pair = frame(
        spec("pair"), [Example("1", ("a", "b"), "not_entailment"), Example("2", ("a", "b"), "entailment")]
    )
    assert pair.targets is not None
    assert pair.targets.tolist() == [1.0, 0.0]
    choice = frame(spec("choice"), [Example("1", ("a", "cause"), "1", ("x", "y"))])
    assert choice.targets is not None
    assert choice.targets.tolist() == [0.0, 1.0]
    entity = frame(spec("entity"), [Example("1", ("p", "q"), ("B", "C"), ("A", "B", "C"))])
    assert entity.targets is not None
    assert entity.targets.tolist() == [0.0, 1.0, 1.0]
    assert entity.owners.tolist() == [0, 0, 0]


def test_an_unknown_label_and_no_choices_are_named() -> None:
    with pytest.raises(EnsueError, match=r"dev\.tsv, line 3 has the label 'maybe'"):
        frame(spec("pair"), [Example("1", ("a", "b"), "maybe", where="dev.tsv, line 3")])
    with pytest.raises(EnsueError, match="line 9 has no choices"):
        ask("entity", [Example("1", ("a", "b"), None, where="val.jsonl, line 9")])


@pytest.mark.parametrize("form", FORMS)
def test_outputs_equal_to_the_targets_give_the_gold_answers(form: str) -> None:
    data = task(form)  # type: ignore[arg-type]
    framed = frame(data.spec, data.splits["dev"])
    assert framed.targets is not None
    outputs = framed.targets[:, None]
    if outputs_of(data.spec) > 1:
        outputs = np.eye(len(data.spec.labels))[framed.targets.astype(int)]
    found = answers(data.spec, framed, outputs)
    for example in data.splits["dev"]:
        gold = example.gold
        assert found.predictions[example.id] == (gold[0] if isinstance(gold, tuple) else gold)


@given(st.lists(st.integers(1, 5), min_size=1, max_size=6), st.integers(0, 2**16))
def test_the_best_entity_is_taken_among_its_examples_own(sizes: list[int], seed: int) -> None:
    examples = [
        Example(str(i), ("p", "@placeholder"), None, tuple(f"e{k}" for k in range(n)))
        for i, n in enumerate(sizes)
    ]
    outputs = np.random.default_rng(seed).normal(size=(sum(sizes), 1))
    found = answers(spec("entity"), ask("entity", examples), outputs)
    row = 0
    for example, size in zip(examples, sizes, strict=True):
        values = outputs[row : row + size, 0]
        row += size
        assert found.predictions[example.id] == f"e{int(np.argmax(values))}"
        np.testing.assert_allclose(found.chances[example.id], 1 / (1 + np.exp(-values)))


def test_three_classes_collapse_to_two_with_their_chances() -> None:
    three = spec("pair", labels=("entailment", "neutral", "contradiction"))
    told = answered_as(
        PredictedAnswers({"1": "neutral", "2": "entailment"}, {"1": [0.2, 0.5, 0.3]}), three, spec("pair")
    )
    assert told.predictions == {"1": "not_entailment", "2": "entailment"}
    assert told.chances["1"] == pytest.approx([0.2, 0.8])
    with pytest.raises(EnsueError, match="cannot answer"):
        answered_as(PredictedAnswers({}, {}), spec("pair"), three)


def test_a_twentieth_is_held_out_where_dev_has_no_labels() -> None:
    data = task("single")
    whole = parts_of(data, 0)
    assert whole is not None
    assert whole.chosen_on == data.splits["dev"]
    cut = parts_of(TaskData(data.spec, {"train": data.splits["train"]}, ""), 3)
    assert cut is not None
    assert cut.held_out
    assert len(cut.chosen_on) == 8
    assert {e.id for e in cut.train} | {e.id for e in cut.chosen_on} == {e.id for e in data.splits["train"]}
    assert not {e.id for e in cut.train} & {e.id for e in cut.chosen_on}
    assert parts_of(TaskData(data.spec, {"dev": data.splits["dev"]}, ""), 0) is None


def test_spread_is_that_of_a_sample() -> None:
    assert spread([0.5]) == {"runs": 1, "dev_mean": 0.5, "dev_sd": 0.0}
    assert spread([1.0, 2.0, 3.0])["dev_sd"] == pytest.approx(1.0)


def test_a_task_with_a_training_set_only_is_judged_by_a_tenth_of_it() -> None:
    data = task("pair", train=200)
    alone = TaskData(data.spec, {"train": data.splits["train"]}, "alone")
    found = with_held_out(alone)
    train, held = found.splits["train"], found.splits["held-out"]
    assert (len(train), len(held), found.judged_splits) == (180, 20, ["held-out"])
    assert {one.id for one in train} | {one.id for one in held} == {one.id for one in data.splits["train"]}
    assert with_held_out(alone) == found
    assert found.fingerprint != alone.fingerprint
    assert list(found.notes.values()) == [20]
    # The same part whatever the seed of a run; what is chosen on is another.
    parts = parts_of(found, 3)
    assert parts is not None
    assert parts.held_out
    assert len(parts.chosen_on) == 9
    assert not {one.id for one in parts.chosen_on} & {one.id for one in held}


def test_groups_are_held_out_whole_and_two_thousand_examples_suffice() -> None:
    data = task("pair", train=30_000, dev=1)
    many = with_held_out(TaskData(data.spec, {"train": data.splits["train"]}, "many"))
    assert len(many.splits["held-out"]) == 2_000
    clustered = [replace(one, cluster=str(place // 7)) for place, one in enumerate(data.splits["train"][:70])]
    found = with_held_out(TaskData(data.spec, {"train": clustered}, "few"))
    assert len(found.splits["held-out"]) == 7
    assert len({one.cluster for one in found.splits["held-out"]}) == 1
    assert (
        found.splits["held-out"]
        != with_held_out(TaskData(replace(data.spec, name="Other"), {"train": clustered}, "few")).splits[
            "held-out"
        ]
    )


def test_nothing_is_held_out_where_something_else_is_answered_or_there_is_too_little() -> None:
    data = task("pair")
    for splits in (
        data.splits,
        {"train": data.splits["train"], "test": data.splits["test"]},
        {"dev": data.splits["dev"]},
        {"train": data.splits["train"][:1]},
        {"train": [replace(one, cluster="one") for one in data.splits["train"]]},
    ):
        given = TaskData(data.spec, splits, "given")
        assert with_held_out(given) is given
