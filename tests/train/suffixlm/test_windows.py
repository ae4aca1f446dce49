"""Windows and batches: every segment in its place, no window across works, the same seed the same batches."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ensue.train.suffixlm.corpus import SegmentCorpus, Span
from ensue.train.suffixlm.objective import cut_windows, epoch_batches, fixed_batches


def corpus(lengths):
    spans, begin = [], 0
    for number, length in enumerate(lengths):
        spans.append(Span(f"w{number}", begin, begin + length, (begin, begin + length // 2)))
        begin += length
    return SegmentCorpus(None, 8, 0, "uint16", tuple(spans), {})


@given(st.integers(2, 60), st.integers(2, 20), st.data())
def test_windows_cover_a_work_but_for_single_segments(length, size, data):
    shift = data.draw(st.integers(0, size - 1))
    windows = cut_windows(Span("w", 100, 100 + length, ()), size, shift)
    covered = [row for w in windows for row in w]
    assert covered == sorted(set(covered))
    assert all(2 <= len(w) <= size for w in windows)
    assert len(covered) >= length - 2
    assert set(covered) <= set(range(100, 100 + length))


@given(
    st.lists(st.integers(2, 50), min_size=1, max_size=8),
    st.integers(2, 12),
    st.integers(1, 6),
    st.integers(1, 3),
)
def test_batches_hold_each_segment_once_and_no_window_crosses_works(lengths, size, batch, in_book):
    held = corpus(lengths)
    owner = np.concatenate([np.full(length, number) for number, length in enumerate(lengths)])
    rows = []
    for found in epoch_batches(held, size, batch, in_book, seed=1, epoch=0):
        assert found.rows.shape[0] == batch
        for window in found.rows.numpy():
            real = window[window >= 0]
            assert len(set(owner[real])) == 1
            assert list(real) == list(range(real[0], real[0] + len(real)))
            rows += list(real)
        openings = {start for span in held.spans for start in span.openings}
        assert {int(r) for r in found.rows[found.openings]} == openings & {
            int(r) for r in found.rows.flatten()
        }
    assert len(rows) == len(set(rows))


def test_epochs_differ_and_repeat_by_seed():
    held = corpus([100, 90])

    def taken(seed, epoch):
        return [batch.rows.tolist() for batch in epoch_batches(held, 10, 2, 2, seed, epoch)]

    assert taken(1, 0) == taken(1, 0)
    assert taken(1, 0) != taken(1, 1)
    assert taken(1, 0) != taken(2, 0)


def test_two_windows_of_a_work_stand_side_by_side():
    held = corpus([200] * 6)
    pairs = [batch.rows[:, 0].numpy() // 200 for batch in epoch_batches(held, 10, 8, 2, 0, 0)]
    together = np.mean([np.mean([(row == work).sum() >= 2 for work in row]) for row in pairs])
    assert together > 0.9


def test_dev_batches_are_all_windows_spread_over_works():
    held = corpus([40, 40, 40])
    batches = list(fixed_batches(held, 10, 4))
    rows = sorted(int(r) for batch in batches for r in batch.rows.flatten() if r >= 0)
    assert rows == list(range(120))
    assert all(len({int(r) // 40 for r in batch.rows[:, 0]}) > 1 for batch in batches)
