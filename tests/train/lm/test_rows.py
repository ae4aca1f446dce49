"""Documents become rows: every token once, none lost, long ones divided, rows nearly full."""

from __future__ import annotations

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers import AutoTokenizer

from ensue.train.lm.rows import Frame, Rows, make_pieces, pack
from tests.support import tiny

CPU = torch.device("cpu")


@given(st.lists(st.integers(1, 20), max_size=60), st.integers(20, 40))
def test_every_text_is_packed_once_and_no_row_is_too_full(lengths, width):
    rows = pack(lengths, width)
    assert sorted(piece for row in rows for piece in row) == list(range(len(lengths)))
    assert all(sum(lengths[piece] for piece in row) <= width for row in rows)
    # Best fit: of two rows at most one is half empty.
    assert sum(2 * sum(lengths[piece] for piece in row) <= width for row in rows) <= 1


def test_a_long_text_is_divided_evenly_and_nothing_of_it_is_lost(tmp_path):
    tokenizer = AutoTokenizer.from_pretrained(tiny.save_bert(tmp_path / "bert"))
    text = " ".join(tiny.SENTENCES)
    whole = tokenizer(text, add_special_tokens=False)["input_ids"]
    frame = Frame((2,), (3,))
    pieces = make_pieces(tokenizer, [text, "the sun"], frame, 42)
    assert pieces.divided == 1
    long, short = pieces.ids[:-1], pieces.ids[-1]
    assert [int(i) for piece in long for i in piece[1:-1]] == whole
    assert len(long) == -(-len(whole) // 40)
    assert {len(piece) for piece in long} <= {len(long[0]), len(long[0]) - 1}
    assert all(piece[0] == 2 and piece[-1] == 3 for piece in [*long, short])


def test_a_text_of_one_token_is_left_out_where_nothing_stands_before_it(tmp_path):
    tokenizer = AutoTokenizer.from_pretrained(tiny.save_llama(tmp_path / "llama"))
    assert [len(piece) for piece in make_pieces(tokenizer, ["a", ""], Frame(), 10).ids] == []
    assert [len(piece) for piece in make_pieces(tokenizer, ["a", ""], Frame((0,)), 10).ids] == [2]


def test_batches_hold_each_row_once_and_say_what_is_in_them():
    pieces = [np.arange(n, dtype=np.int32) + 10 for n in (5, 4, 3, 6, 2)]
    rows = Rows(pieces, Frame((1,), (2,)), 8, CPU, packed=True)
    found = list(rows.batches(2, np.random.default_rng(0)))
    assert sum(batch.text_count for batch in found) == 5
    assert sum(batch.token_count for batch in found) == sum(map(len, pieces))
    for batch in found:
        held = batch.texts > 0
        assert int(held.sum()) == batch.token_count
        assert int(batch.own.sum()) == batch.token_count - 2 * batch.text_count
        # Places begin anew with every text.
        begins = held & (batch.places == 0)
        assert int(begins.sum()) == batch.text_count
    again = list(rows.batches(2, np.random.default_rng(0)))
    assert all(torch.equal(a.ids, b.ids) for a, b in zip(found, again, strict=True))
