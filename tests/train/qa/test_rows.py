"""Training rows: targets against the characters they stand for, batches that take each row once, and the loss."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from ensue.backends.qa.answerer import PairForm, Reading
from ensue.text.io.squad import Answer, Example
from ensue.train.qa.rows import SpanRow, Target, epoch_batches, occurrences, rows_of, span_loss
from tests.support import tiny

TEXT = " ".join(tiny.SENTENCES)


@pytest.fixture(scope="module")
def form(tmp_path_factory):
    import transformers

    folder = tiny.save_encoder(tmp_path_factory.mktemp("models") / "encoder")
    return PairForm(transformers.AutoTokenizer.from_pretrained(folder))


def test_targets_are_the_words_of_the_answers_in_every_window_that_holds_them(form):
    answers = [
        Answer(words, TEXT.index(words)) for words in ("old letter", "old letter", "letter", "the green door")
    ]
    example = Example("q", "a", TEXT, "Which?", tuple(answers))
    rows = rows_of([example], form, Reading(max_length=60, stride=20))
    assert len(rows) > 3
    seen = 0
    for row in rows:
        assert math.isclose(sum(target.share for target in row.targets), 1)
        for target in row.targets:
            ((start, end),) = target.places
            if (start, end) == (form.null, form.null):
                assert len(row.targets) == 1
                continue
            words = form.tokenizer.decode(row.ids[start : end + 1])
            assert words in ("old letter", "letter", "the green door")
            assert row.first <= start <= end <= row.last
            if len(row.targets) == 2:
                assert target.share == pytest.approx({"old letter": 2 / 3, "letter": 1 / 3}[words])
            seen += 1
    assert seen >= 3
    none = rows_of([example._replace(answers=())], form, Reading(max_length=60, stride=20))
    assert {row.targets for row in none} == {(Target(((0, 0),), 1.0),)}


def test_any_place_finds_every_whole_word_and_falls_back_to_the_marked_place(form):
    assert occurrences("the, then The the", Answer("the", 5)) == [0, 14]
    assert occurrences("theatre", Answer("the", 0)) == [0]
    assert occurrences("$5 or $5.", Answer("$5", 0)) == [0, 6]
    example = Example("q", "a", "A dog, a cat, a dog.", "Who?", (Answer("dog", 2),))
    ((target,),) = [row.targets for row in rows_of([example], form, Reading(), any_place=True)]
    assert len(target.places) == 2
    ((target,),) = [row.targets for row in rows_of([example], form, Reading())]
    assert len(target.places) == 1


@given(
    lengths=st.lists(st.integers(1, 40), min_size=1, max_size=300),
    size=st.integers(1, 9),
    seed=st.integers(0, 3),
    epoch=st.integers(0, 3),
)
@settings(max_examples=40, deadline=None)
def test_an_epoch_takes_every_row_once_in_an_order_of_its_own(lengths, size, seed, epoch):
    rows = [SpanRow([number] * length, [], 0, 0, ()) for number, length in enumerate(lengths)]
    batches = list(epoch_batches(rows, size, seed, epoch))
    assert len(batches) <= math.ceil(len(rows) / size)
    assert sorted(row.ids[0] for batch in batches for row in batch) == list(range(len(rows)))
    assert batches == list(epoch_batches(rows, size, seed, epoch))


def test_the_loss_is_that_of_a_plain_loop():
    torch.manual_seed(0)
    scores = torch.randn(3, 12, 2)
    rows = [
        SpanRow([], [], 3, 9, (Target(((3, 4), (7, 9)), 0.75), Target(((5, 5),), 0.25))),
        SpanRow([], [], 2, 5, (Target(((0, 0),), 1.0),)),
        SpanRow([], [], 4, 11, (Target(((11, 11),), 1.0),)),
    ]
    losses = []
    for row, table in zip(rows, scores.double().numpy(), strict=True):
        possible = [0, *range(row.first, row.last + 1)]
        totals = [np.log(sum(np.exp(table[place, side]) for place in possible)) for side in (0, 1)]
        losses.append(
            -sum(
                target.share
                * np.log(
                    sum(
                        np.exp(table[a, 0] - totals[0]) * np.exp(table[b, 1] - totals[1])
                        for a, b in target.places
                    )
                )
                for target in row.targets
            )
            / 2
        )
    assert float(span_loss(scores, rows, 0)) == pytest.approx(np.mean(losses), rel=1e-5)
