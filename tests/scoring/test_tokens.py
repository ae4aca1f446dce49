"""BOS, the boundary between context and continuation, truncation and windows: what is scored, exactly."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ensue.backends.names import load_model
from ensue.errors import EnsueError
from ensue.models.request import Mix, Policy, Request, Window
from ensue.scoring.engine import score, signature
from ensue.scoring.tokens import RELEASED_CAUSAL, RELEASED_MASKED, Released, cut_windows
from tests.scoring import naive
from tests.support import tiny

lengths = st.integers(1, 4000)
sizes = st.integers(2, 1500)
policies = st.sampled_from(["average", "strided", "released"])


@given(lengths, sizes, policies)
def test_windows_fit_the_model_and_cover_the_text(length: int, size: int, policy: Window) -> None:
    cuts, _ = cut_windows(length, size, policy, RELEASED_CAUSAL)
    assert all(0 <= c.begin <= c.scored_from < c.end <= length and c.end - c.begin <= size for c in cuts)
    assert {i for c in cuts for i in range(c.scored_from, c.end)} == set(range(length))


@given(lengths, sizes)
def test_strided_scores_every_token_once_with_half_a_window_before_it(length: int, size: int) -> None:
    cuts, mix = cut_windows(length, size, "strided", RELEASED_CAUSAL)
    scored = [i for c in cuts for i in range(c.scored_from, c.end)]
    assert scored == list(range(length))
    assert mix.rule == "sum"
    assert all(c.scored_from - c.begin >= size - max(size // 2, 1) for c in cuts[1:])


@given(lengths, sizes)
def test_average_windows_overlap_by_half(length: int, size: int) -> None:
    cuts, mix = cut_windows(length, size, "average", RELEASED_CAUSAL)
    if length <= size:
        assert len(cuts) == 1
        return
    assert mix.rule == "average"
    assert all(c.end - c.begin == size for c in cuts)
    steps = [b.begin - a.begin for a, b in pairwise(cuts)]
    assert all(step == max(size // 2, 1) for step in steps[:-1])
    assert 0 < steps[-1] <= max(size // 2, 1)


@pytest.mark.parametrize(("released", "stride"), [(RELEASED_CAUSAL, 512), (RELEASED_MASKED, 256)])
@given(length=st.integers(1, 4000), size=st.integers(512, 2048))
def test_released_windows_are_those_of_the_authors_code(
    released: Released, stride: int, length: int, size: int
) -> None:
    cuts, mix = cut_windows(length, size, "released", released)
    # Their loop, written out; the masked script has windows of 512 at most.
    size = size if released is RELEASED_CAUSAL else min(size, 512)
    expected = [(max(i + stride - size, 0), min(i + stride, length)) for i in range(0, length, stride)]
    assert [(c.begin, c.end) for c in cuts] == expected
    assert sum(mix.shares) == pytest.approx(1)
    if released.by_advance:
        advances = [end - i for i, (_, end) in zip(range(0, length, stride), expected, strict=True)]
        assert mix.shares == pytest.approx([a / length for a in advances])


def test_the_two_scripts_weigh_their_windows_by_what_they_are() -> None:
    """The causal one by the tokens each window advances, the masked one all alike."""
    causal, mix = cut_windows(1200, 1024, "released", RELEASED_CAUSAL)
    assert causal == [(0, 512, 0), (0, 1024, 0), (512, 1200, 512)]
    assert mix == Mix("means", (512 / 1200, 512 / 1200, 176 / 1200))
    masked, mix = cut_windows(700, 512, "released", RELEASED_MASKED)
    assert masked == [(0, 256, 0), (0, 512, 0), (256, 700, 256)]
    assert mix == Mix("means", (1 / 3, 1 / 3, 1 / 3))
    assert RELEASED_CAUSAL == (512, True, None)
    assert RELEASED_MASKED == (256, False, 512)


def test_windows_by_value() -> None:
    assert cut_windows(10, 4, "average", RELEASED_CAUSAL) == (
        [(0, 4, 0), (2, 6, 2), (4, 8, 4), (6, 10, 6)],
        Mix("average"),
    )
    assert cut_windows(9, 4, "average", RELEASED_CAUSAL)[0] == [(0, 4, 0), (2, 6, 2), (4, 8, 4), (5, 9, 5)]
    assert cut_windows(9, 4, "strided", RELEASED_CAUSAL) == (
        [(0, 4, 0), (2, 6, 4), (4, 8, 6), (5, 9, 8)],
        Mix("sum"),
    )
    # An odd size strides by the smaller half; one token at a time where there is no half.
    assert cut_windows(7, 5, "strided", RELEASED_CAUSAL)[0] == [(0, 5, 0), (2, 7, 5)]
    assert cut_windows(3, 1, "strided", RELEASED_CAUSAL)[0] == [(0, 1, 0), (1, 2, 1), (2, 3, 2)]
    assert cut_windows(3, 1, "average", RELEASED_CAUSAL)[0] == [(0, 1, 0), (1, 2, 1), (2, 3, 2)]
    for policy in ("average", "strided"):
        assert cut_windows(4, 4, policy, RELEASED_CAUSAL) == ([(0, 4, 0)], Mix("sum"))  # type: ignore[arg-type]
        assert len(cut_windows(5, 4, policy, RELEASED_CAUSAL)[0]) == 2  # type: ignore[arg-type]
    # A text that fits is still weighed as the released code weighs it; a short model strides by its own length.
    assert cut_windows(4, 8, "released", RELEASED_CAUSAL) == ([(0, 4, 0)], Mix("means", (1.0,)))
    assert cut_windows(5, 4, "released", RELEASED_MASKED) == (
        [(0, 4, 0), (4, 5, 4)],
        Mix("means", (0.5, 0.5)),
    )


TEXT = "The old bridge closed on Tuesday, and nobody knew when it would open again."


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory):  # type: ignore[no-untyped-def]
    return load_model(str(_saved(tmp_path_factory.mktemp("plain"), bos=False)))


@pytest.fixture(scope="module")
def with_bos(tmp_path_factory: pytest.TempPathFactory):  # type: ignore[no-untyped-def]
    return load_model(str(_saved(tmp_path_factory.mktemp("bos"), bos=True)))


def _saved(folder: Path, *, bos: bool) -> Path:
    tiny.save_llama(folder, bos=bos, max_length=128)
    return folder


def ids_of(model, text: str) -> list[int]:  # type: ignore[no-untyped-def]
    return list(model.tokenizer(text, add_special_tokens=False)["input_ids"])


def test_without_bos_the_first_token_conditions_and_is_not_scored(plain) -> None:  # type: ignore[no-untyped-def]
    ids = ids_of(plain, TEXT)
    (found,) = score(plain, [Request(TEXT, detail=True)]).scores
    assert found.tokens == len(ids) - 1
    assert found.logprob == pytest.approx(
        sum(naive.token_logprobs(plain.network, ids, 1)), abs=1e-4 * len(ids)
    )
    assert found.token_spans is not None
    assert found.token_spans[0][0] > 0
    assert "bos:none first:conditions" in signature(plain, Policy())


def test_a_tokenizer_that_adds_bos_has_every_token_scored_after_it(with_bos) -> None:  # type: ignore[no-untyped-def]
    ids = ids_of(with_bos, TEXT)
    bos = with_bos.tokenizer.bos_token_id
    (found,) = score(with_bos, [Request(TEXT)]).scores
    assert found.tokens == len(ids)
    expected = naive.token_logprobs(with_bos.network, [bos, *ids], 1)
    assert found.logprob == pytest.approx(sum(expected), abs=1e-4 * len(ids))
    assert f"bos:{bos} first:scored" in signature(with_bos, Policy())


def test_bos_can_be_forced_and_forbidden(plain, with_bos) -> None:  # type: ignore[no-untyped-def]
    forced = score(plain, [Request(TEXT)], policy=Policy(bos="always")).scores[0]
    assert forced.tokens == len(ids_of(plain, TEXT))
    without = score(with_bos, [Request(TEXT)], policy=Policy(bos="never")).scores[0]
    assert without.tokens == len(ids_of(with_bos, TEXT)) - 1


def test_a_model_card_that_needs_bos_gets_it(tmp_path: Path) -> None:
    from ensue.models.card import write_card_facts

    write_card_facts(_saved(tmp_path, bos=False), needs_bos=True)
    model = load_model(str(tmp_path))
    assert score(model, [Request(TEXT)]).scores[0].tokens == len(ids_of(model, TEXT))  # type: ignore[arg-type]


@pytest.mark.parametrize("cut", range(1, len(TEXT)))
def test_context_and_continuation_are_tokenised_jointly(plain, cut: int) -> None:  # type: ignore[no-untyped-def]
    """Wherever the text is cut, the joint tokens are the text's own, and the first to differ begins the score."""
    context, continuation = TEXT[:cut], TEXT[cut:]
    joint, alone = ids_of(plain, TEXT), ids_of(plain, context)
    begin = next((i for i, (a, b) in enumerate(zip(joint, alone, strict=False)) if a != b), len(alone))
    result = score(plain, [Request(continuation, context)])
    start = max(begin, 1)
    assert result.scores[0].tokens == len(joint) - start
    expected = sum(naive.token_logprobs(plain.network, joint, start))
    assert result.scores[0].logprob == pytest.approx(expected, abs=1e-4 * len(joint))
    assert result.notes["boundary token"] == int(begin < len(alone))


def test_spans_lie_in_the_continuation(plain) -> None:  # type: ignore[no-untyped-def]
    context = TEXT[:20]
    (found,) = score(plain, [Request(TEXT[20:], context, detail=True)]).scores
    assert found.token_spans is not None
    assert found.token_logprobs is not None
    assert len(found.token_spans) == len(found.token_logprobs) == found.tokens
    assert found.token_spans[0][0] == 0
    assert found.token_spans[-1][1] == len(TEXT) - 20


def test_a_context_too_long_is_refused_or_truncated_from_the_left_and_counted(plain) -> None:  # type: ignore[no-untyped-def]
    context, continuation = " ".join([TEXT] * 20), " Nobody knew."
    with pytest.raises(EnsueError, match="do not fit the 128 tokens"):
        score(plain, [Request(continuation, context)])
    result = score(plain, [Request(continuation, context)], policy=Policy(overflow="truncate"))
    joint = ids_of(plain, context + continuation)
    count = result.scores[0].tokens
    expected = sum(naive.token_logprobs(plain.network, joint[-128:], 128 - count))
    assert result.scores[0].logprob == pytest.approx(expected, abs=1e-4 * count)
    assert result.notes["context truncated"] == 1
    assert result.notes["context tokens dropped"] == len(joint) - 128


def _window_sums(model, ids: list[int], cuts: list[tuple[int, int, int]]) -> list[list[float]]:  # type: ignore[no-untyped-def]
    return [naive.token_logprobs(model.network, ids[b:e], max(s - b, 1)) for b, e, s in cuts]


def test_long_texts_average_half_overlapping_windows(plain) -> None:  # type: ignore[no-untyped-def]
    text = " ".join([TEXT] * 6)
    ids = ids_of(plain, text)
    starts = [*range(0, len(ids) - 64, 32), len(ids) - 64]
    windows = _window_sums(plain, ids, [(s, s + 64, s) for s in starts])
    (found,) = score(plain, [Request(text)], policy=Policy(window="average", max_length=64)).scores
    assert found.logprob == pytest.approx(np.mean([sum(w) for w in windows]), abs=1e-2)
    assert found.logprob_per_token == pytest.approx(np.mean([np.mean(w) for w in windows]), abs=1e-4)


def test_strided_windows_score_every_token_once(plain) -> None:  # type: ignore[no-untyped-def]
    text = " ".join([TEXT] * 6)
    ids = ids_of(plain, text)
    cuts, reached = [(0, 64, 0)], 64
    while reached < len(ids):
        end = min(reached + 32, len(ids))
        cuts.append((end - 64, end, reached))
        reached = end
    expected = [x for w in _window_sums(plain, ids, cuts) for x in w]
    (found,) = score(
        plain, [Request(text, detail=True)], policy=Policy(window="strided", max_length=64)
    ).scores
    assert found.tokens == len(expected) == len(ids) - 1
    np.testing.assert_allclose(found.token_logprobs, expected, atol=1e-4)  # type: ignore[arg-type]


def test_released_windows_follow_the_authors_arithmetic(plain) -> None:  # type: ignore[no-untyped-def]
    text = " ".join([TEXT] * 6)
    ids = ids_of(plain, text)
    size = stride = 64  # a model shorter than the code's stride advances by its own length
    total = 0.0
    for i in range(0, len(ids), stride):
        begin, end = max(i + stride - size, 0), min(i + stride, len(ids))
        total += np.mean(naive.token_logprobs(plain.network, ids[begin:end], 1)) * (end - i)
    (found,) = score(plain, [Request(text)], policy=Policy(window="released", max_length=64)).scores
    assert found.logprob_per_token == pytest.approx(total / len(ids), abs=1e-4)


def test_texts_longer_than_the_model_can_be_refused(plain) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(EnsueError, match="longer than the 128"):
        score(plain, [Request(" ".join([TEXT] * 20))], policy=Policy(window="refuse"))


def test_nothing_to_score_is_counted_not_hidden(plain) -> None:  # type: ignore[no-untyped-def]
    result = score(plain, [Request("a")])
    assert result.scores[0] == (0.0, 0, 0.0, None, None)
    assert result.notes["nothing to score"] == 1


@pytest.mark.parametrize("save", [tiny.save_bert, tiny.save_roberta])
@pytest.mark.parametrize("variant", ["original", "within-word"])
def test_masked_models_mask_each_token_once(tmp_path: Path, save, variant: str) -> None:  # type: ignore[no-untyped-def]
    save(tmp_path)
    model = load_model(str(tmp_path))
    encoded = model.tokenizer(TEXT)  # type: ignore[attr-defined]
    ids, words = list(encoded["input_ids"]), encoded.word_ids()
    targets = list(range(1, len(ids) - 1))
    hidden = [
        [j for j in range(t, len(ids) - 1) if words[j] == words[t]] if variant == "within-word" else [t]
        for t in targets
    ]
    mask = model.tokenizer.mask_token_id  # type: ignore[attr-defined]
    expected = naive.masked_logprobs(model.network, ids, targets, hidden, mask)  # type: ignore[attr-defined]
    (found,) = score(model, [Request(TEXT, detail=True)], policy=Policy(masked=variant)).scores  # type: ignore[arg-type]
    assert found.tokens == len(targets)
    np.testing.assert_allclose(found.token_logprobs, expected, atol=1e-4)  # type: ignore[arg-type]
    if variant == "within-word":
        assert any(len(h) > 1 for h in hidden)


@pytest.fixture(scope="module")
def masked(tmp_path_factory: pytest.TempPathFactory):  # type: ignore[no-untyped-def]
    return load_model(str(tiny.save_bert(tmp_path_factory.mktemp("bert"), max_length=24)))


def test_a_masked_model_scores_each_token_after_a_context_once(masked) -> None:  # type: ignore[no-untyped-def]
    """Windows of one text overlap; averaged, their tokens would count twice."""
    request = Request(" ".join([TEXT] * 3), "It was raining. ", detail=True)
    found, strided = (
        score(masked, [request], policy=Policy(window=window, overflow="truncate")).scores[0]
        for window in ("average", "strided")
    )
    assert found == strided
    assert found.token_logprobs is not None
    assert found.tokens == len(found.token_logprobs) > 24
    assert found.logprob == pytest.approx(sum(found.token_logprobs), abs=1e-6)


def test_released_masked_windows_follow_the_authors_arithmetic(masked) -> None:  # type: ignore[no-untyped-def]
    """No special tokens; every window's mean weighs alike, whatever the window adds."""
    ids = masked.tokenizer(" ".join([TEXT] * 3), add_special_tokens=False)["input_ids"]
    size = stride = 24  # a model shorter than the code's stride advances by its own length
    windows = [ids[begin : begin + size] for begin in range(0, len(ids), stride)]
    assert 1 < len(windows[-1]) < size, "the last window is shorter"
    means = [
        np.mean(
            naive.masked_logprobs(
                masked.network,
                window,
                range(len(window)),
                [[place] for place in range(len(window))],
                masked.tokenizer.mask_token_id,
            )
        )
        for window in windows
    ]
    (found,) = score(masked, [Request(" ".join([TEXT] * 3))], policy=Policy(masked="released")).scores
    assert found.logprob_per_token == pytest.approx(np.mean(means), abs=1e-4)


def test_a_masked_model_has_nothing_to_score_in_nothing(masked) -> None:  # type: ignore[no-untyped-def]
    result = score(masked, [Request(" ", "It was raining.")])
    assert (result.scores[0].tokens, result.scores[0].logprob) == (0, 0.0)
    assert result.notes["nothing to score"] == 1
