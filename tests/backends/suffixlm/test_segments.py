"""Packing sentences into segments: nothing lost, nothing too long, borders at sentences."""

from hypothesis import given
from hypothesis import strategies as st

from ensue.backends.suffixlm.segments import pack, pack_to_end

sentences = st.lists(st.lists(st.integers(0, 99), min_size=1, max_size=12), max_size=15)


def flat(rows):
    return [token for row in rows for token in row]


def borders(rows):
    """Positions at which a row of a sequence begins."""
    found, place = set(), 0
    for row in rows:
        found.add(place)
        place += len(row)
    return found


@given(sentences, st.integers(1, 8))
def test_packing_keeps_every_token_in_order_and_no_segment_is_too_long(given_sentences, size):
    packed = pack(given_sentences, size)
    assert flat(packed) == flat(given_sentences)
    assert all(0 < len(segment) <= size for segment in packed)


@given(sentences, st.integers(1, 8))
def test_a_segment_starts_with_a_sentence_unless_a_long_one_flows_over(given_sentences, size):
    starts = borders(given_sentences)
    overflow = set()
    for begin, sentence in zip(sorted(starts), given_sentences, strict=True):
        overflow |= set(range(begin, begin + len(sentence), size))
    assert borders(pack(given_sentences, size)) <= starts | overflow
    if all(len(sentence) <= size for sentence in given_sentences):
        assert borders(pack(given_sentences, size)) <= starts


@given(st.lists(st.integers(1, 8), max_size=15))
def test_packing_is_greedy(lengths):
    """A sentence starts a new segment only where it does not fit whole into the one before."""
    size, number = 8, iter(range(1000))
    packed = pack([[next(number) for _ in range(length)] for length in lengths], size)
    expected: list[int] = []
    for length in lengths:
        if expected and expected[-1] + length <= size:
            expected[-1] += length
        else:
            expected.append(length)
    assert [len(segment) for segment in packed] == expected


@given(sentences, st.integers(1, 8), st.integers(1, 30))
def test_packing_to_the_end_gives_the_tail_of_the_text(given_sentences, size, most):
    packed = pack_to_end(given_sentences, size, most)
    tokens = flat(given_sentences)
    kept = flat(packed)
    assert len(packed) <= most
    assert kept == tokens[len(tokens) - len(kept) :]
    assert all(0 < len(segment) <= size for segment in packed)


@given(sentences, st.integers(1, 8), st.integers(1, 10), st.integers(1, 10))
def test_a_longer_prefix_only_adds_segments_in_front(given_sentences, size, fewer, more):
    fewer, more = sorted((fewer, more))
    short, long = pack_to_end(given_sentences, size, fewer), pack_to_end(given_sentences, size, more)
    assert long[len(long) - len(short) :] == short
