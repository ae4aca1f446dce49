"""Examples of SQuAD files, and which tokens of a row are learned."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from transformers import AutoTokenizer

from ensue.backends.qg.questioner import plain_prompt
from ensue.models.protocols import AnswerSpan
from ensue.text.io.squad import read_squad, read_squads
from ensue.train.qg.rows import (
    QuestionExample,
    QuestionRow,
    epoch_batches,
    fixed_batches,
    make_batch,
    make_rows,
    question_examples,
)
from tests.support import tiny
from tests.train.qg import invented

DATA = os.environ.get("ENSUE_DATA")


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
    return AutoTokenizer.from_pretrained(tiny.save_llama(tmp_path_factory.mktemp("model")))


def test_answerable_questions_are_read_with_the_place_of_their_answer(tmp_path):
    path = invented.write(tmp_path / "squad.json")
    examples, skipped = question_examples(read_squads([path, path]))
    assert len(examples) == 6 * 6 * 3
    assert skipped == {"unanswerable": 36}
    first = examples[0]
    assert first.context[first.answer.start : first.answer.end] == "Anna"
    assert first.question == "Who had a boat by the hill?"
    for example in examples:
        assert example.context[slice(*example.answer)] not in example.question


def test_the_answer_most_people_marked_is_taken(tmp_path):
    context = "The old mill burned down."
    answers = [("The old mill", 0), ("mill", 8), ("old mill", 4), ("mill", 8)]
    asked = {
        "id": "1",
        "question": "What  burned\ndown?",
        "answers": [{"text": text, "answer_start": start} for text, start in answers],
    }
    document = {"data": [{"title": "A", "paragraphs": [{"context": context, "qas": [asked]}]}]}
    path = tmp_path / "squad.json"
    path.write_text(json.dumps(document), "utf-8")
    ((example,), _) = question_examples(read_squad(path))
    assert example == QuestionExample("A", context, AnswerSpan(8, 12), "What burned down?")


@pytest.mark.parametrize("bos", [None, 0])
def test_exactly_the_question_and_its_end_are_learned(tokenizer, tmp_path, bos):
    examples, _ = question_examples(read_squad(invented.write(tmp_path / "squad.json")))
    rows, kept = make_rows(tokenizer, bos, examples, 10_000)
    assert kept == examples
    batch = make_batch(rows)
    for place, (row, example) in enumerate(zip(rows, examples, strict=True)):
        mine = batch.rows == place
        columns = batch.columns[mine]
        assert columns.tolist() == list(range(row.start - 1, len(row.ids) - 1))
        # Each target is the token after its place.
        assert batch.targets[mine].tolist() == batch.ids[place][columns + 1].tolist()
        learned = batch.targets[mine].tolist()
        assert learned[-1] == tokenizer.eos_token_id
        assert tokenizer.decode(learned[:-1]) == f" {example.question}"
        read = list(row.ids[: row.start])
        if bos is not None:
            assert read.pop(0) == bos
        prompt = plain_prompt(example.context, example.answer)
        assert tokenizer.decode(read) == prompt.shared + prompt.own


def test_rows_too_long_are_left_out(tokenizer, tmp_path):
    examples, _ = question_examples(read_squad(invented.write(tmp_path / "squad.json")))
    lengths = sorted(len(row.ids) for row in make_rows(tokenizer, None, examples, 10_000)[0])
    limit = lengths[len(lengths) // 2]
    rows, kept = make_rows(tokenizer, None, examples, limit)
    assert len(examples) - len(kept) == sum(length > limit for length in lengths) > 0
    assert sorted(len(row.ids) for row in rows) == [length for length in lengths if length <= limit]
    assert make_rows(tokenizer, None, kept, limit)[0] == rows


rows = st.lists(
    st.integers(2, 40).flatmap(
        lambda n: st.builds(QuestionRow, st.just(tuple(range(1, n + 1))), st.integers(1, n - 1))
    ),
    min_size=1,
    max_size=60,
)


@given(rows=rows, tokens=st.integers(40, 300), seed=st.integers(0, 9))
def test_every_row_comes_once_an_epoch_within_the_budget(rows, tokens, seed):
    for batches in (list(epoch_batches(rows, tokens, seed, 1)), list(fixed_batches(rows, tokens))):
        assert sum(len(batch.ids) for batch in batches) == len(rows)
        assert sum(len(batch.targets) for batch in batches) == sum(len(r.ids) - r.start for r in rows)
        assert all(batch.ids.size <= tokens for batch in batches)
        held = sorted(tuple(int(t) for t in row if t) for batch in batches for row in batch.ids)
        assert held == sorted(row.ids for row in rows)
    again = list(epoch_batches(rows, tokens, seed, 1))
    other = list(epoch_batches(rows, tokens, seed, 1))
    assert all(np.array_equal(a.ids, b.ids) for a, b in zip(again, other, strict=True))


@pytest.mark.data
@pytest.mark.skipif(not DATA, reason="ENSUE_DATA does not name the folder of the real data")
def test_the_real_questions_that_can_be_learned_from_are_counted():
    """Those of 1.1; the answerable ones of 2.0 are among them."""
    folder = Path(DATA or "") / "squad"
    found, skipped = question_examples(read_squads([folder / "dev-v1.1.json", folder / "dev-v2.0.json"]))
    assert skipped == {"unanswerable": 5_945, "asked twice": 29}
    assert len(found) == 10_570 - 29
