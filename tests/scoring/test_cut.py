"""Requests cut in tokens, against a plain loop: context and continuation tokenised apart, then cut."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ensue.backends.baselines import RandomModel, UnigramModel
from ensue.backends.names import load_model
from ensue.errors import EnsueError
from ensue.models.protocols import room_of
from ensue.models.request import Policy, Request, TokenCut
from ensue.scoring.engine import score
from ensue.scoring.journal import Journal
from tests.scoring import naive
from tests.support import tiny

CONTEXT = " ".join(tiny.SENTENCES[:6])
SUFFIXES = ["\n\n" + " ".join(tiny.SENTENCES[i : i + 3]) for i in (6, 7, 8)]
KINDS = ("llama", "llama-bos", "gpt2")


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("models")
    saved = {
        "llama": tiny.save_llama(folder / "llama", max_length=400),
        "llama-bos": tiny.save_llama(folder / "bos", bos=True, max_length=400),
        "gpt2": tiny.save_gpt2(folder / "gpt2", max_length=400),
        "bert": tiny.save_bert(folder / "bert", max_length=400),
        "roberta": tiny.save_roberta(folder / "roberta", max_length=400),
    }
    return {name: load_model(str(path)) for name, path in saved.items()}


def ids_of(model: Any, text: str) -> list[int]:
    return list(model.tokenizer(text, add_special_tokens=False)["input_ids"])


def expected(model: Any, context: str, suffix: str, n: int, m: int, *, bos: bool) -> list[float]:
    """The last n tokens of the context, the first m of the suffix, one forward pass."""
    before, after = ids_of(model, context), ids_of(model, suffix)[:m]
    before = before[len(before) - min(n, len(before)) :]
    if bos:
        before = [model.tokenizer.bos_token_id, *before]
    return naive.token_logprobs(model.network, before + after, max(len(before), 1))


@pytest.mark.parametrize("name", KINDS)
@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
@given(cuts=st.lists(st.tuples(st.integers(1, 250), st.integers(1, 130)), min_size=1, max_size=4))
def test_cut_scores_are_those_of_a_plain_loop(
    models: dict[str, Any], name: str, cuts: list[tuple[int, int]]
) -> None:
    model = models[name]
    asked = [(suffix, n, m) for n, m in cuts for suffix in SUFFIXES]
    requests = [
        Request(s, CONTEXT, detail=i % 2 == 0, cut=TokenCut(n, m)) for i, (s, n, m) in enumerate(asked)
    ]
    found = score(model, requests)
    have = len(ids_of(model, CONTEXT))
    for (suffix, n, m), one, used in zip(asked, found.scores, found.context_tokens, strict=True):
        reference = expected(model, CONTEXT, suffix, n, m, bos=name == "llama-bos")
        assert one.tokens == len(reference) == min(m, len(ids_of(model, suffix)))
        assert used == min(n, have)
        assert one.logprob_per_token == pytest.approx(np.mean(reference), abs=1e-4)
        assert one.logprob == pytest.approx(sum(reference), abs=1e-4 * len(reference))
        if one.token_logprobs is not None:
            np.testing.assert_allclose(one.token_logprobs, reference, atol=1e-4)


@pytest.mark.parametrize("name", ["bert", "roberta"])
@pytest.mark.parametrize("variant", ["original", "within-word"])
def test_masked_models_see_the_prefix_and_mask_the_suffix(
    models: dict[str, Any], name: str, variant: Any
) -> None:
    model = models[name]
    tokenizer = model.tokenizer
    for n, m in ((5, 7), (40, 12), (1000, 3)):
        request = Request(SUFFIXES[0], CONTEXT, detail=True, cut=TokenCut(min(n, 300), m))
        result = score(model, [request], policy=Policy(masked=variant))
        before = ids_of(model, CONTEXT)[-min(n, 300) :]
        after = ids_of(model, SUFFIXES[0])[:m]
        words = tokenizer(SUFFIXES[0], add_special_tokens=False).word_ids()[:m]
        ids = [tokenizer.cls_token_id, *before, *after, tokenizer.sep_token_id]
        first = 1 + len(before)
        hidden = [
            [first + j for j in range(i, m) if words[j] == words[i]]
            if variant == "within-word"
            else [first + i]
            for i in range(m)
        ]
        reference = naive.masked_logprobs(
            model.network, ids, range(first, first + m), hidden, tokenizer.mask_token_id
        )
        np.testing.assert_allclose(result.scores[0].token_logprobs, reference, atol=1e-4)  # type: ignore[arg-type]
        assert result.context_tokens == [len(before)]


@pytest.mark.parametrize("name", [*KINDS, "bert"])
def test_spans_are_offsets_in_the_continuation(models: dict[str, Any], name: str) -> None:
    (found,) = score(models[name], [Request(SUFFIXES[1], CONTEXT, detail=True, cut=TokenCut(9, 11))]).scores
    encoded = models[name].tokenizer(SUFFIXES[1], add_special_tokens=False, return_offsets_mapping=True)
    assert found.token_spans == tuple(encoded["offset_mapping"][:11])


def test_the_two_sides_are_tokenised_apart(models: dict[str, Any]) -> None:
    """Cut inside a word, the joint tokens differ from the two sides' own."""
    model, text = models["llama"], tiny.SENTENCES[0]
    place = next(
        i for i in range(5, 40) if ids_of(model, text) != ids_of(model, text[:i]) + ids_of(model, text[i:])
    )
    (found,) = score(model, [Request(text[place:], text[:place], cut=TokenCut(100, 100))]).scores
    reference = expected(model, text[:place], text[place:], 100, 100, bos=False)
    assert found.tokens == len(ids_of(model, text[place:]))
    assert found.logprob == pytest.approx(sum(reference), abs=1e-3)


def test_a_context_shorter_than_two_lengths_is_computed_once(models: dict[str, Any]) -> None:
    requests = [Request(s, "A short one.", cut=TokenCut(n, 20)) for n in (50, 100, 200) for s in SUFFIXES]
    found = score(models["llama"], requests)
    assert (found.distinct, found.computed) == (3, 3)
    assert found.scores[:3] == found.scores[3:6] == found.scores[6:]


@pytest.mark.parametrize("detailed", [0, 1])
def test_requests_that_come_to_the_same_tokens_share_the_detail_one_asks_for(
    models: dict[str, Any], detailed: int
) -> None:
    """Two contexts with the same end, two suffixes with the same beginning."""
    model = models["llama"]
    pairs = [("One. " + CONTEXT, SUFFIXES[0]), ("Two. " + CONTEXT, SUFFIXES[0] + " More.")]
    requests = [
        Request(suffix, context, detail=i == detailed, cut=TokenCut(12, 9))
        for i, (context, suffix) in enumerate(pairs)
    ]
    found = score(model, requests)
    assert found.computed == 1
    spans = found.scores[detailed].token_spans
    assert spans is not None
    assert len(spans) == 9


def test_every_text_is_tokenised_once(models: dict[str, Any]) -> None:
    """However many lengths and suffixes use it; the model's own tokenizer counts its calls."""
    model = models["llama"]
    seen: list[str] = []

    class Counting:
        def __init__(self, own: Any) -> None:
            self.own = own

        def __getattr__(self, name: str) -> Any:
            return getattr(self.own, name)

        def __call__(self, texts: Any, **options: Any) -> Any:
            seen.extend([texts] if isinstance(texts, str) else texts)
            return self.own(texts, **options)

    from ensue.scoring.tokens import prepare_causal

    requests = [
        Request(s, CONTEXT, detail=i == 0, cut=TokenCut(n, m))
        for i, s in enumerate(SUFFIXES)
        for n in (10, 20, 40)
        for m in (5, 10)
    ]
    prepare_causal(
        requests, Policy(), tokenizer=Counting(model.tokenizer), bos=None, max_length=400, model="m"
    )
    assert sorted(seen) == sorted([CONTEXT, *SUFFIXES])


def test_cut_and_whole_requests_may_be_mixed(models: dict[str, Any]) -> None:
    model = models["gpt2"]
    requests = [
        Request(SUFFIXES[0], CONTEXT),
        Request(SUFFIXES[0], CONTEXT, cut=TokenCut(8, 4)),
        Request(CONTEXT),
    ]
    found = score(model, requests)
    alone = [score(model, [request]) for request in requests]
    for one, other in zip(found.scores, alone, strict=True):
        assert one.logprob == pytest.approx(other.scores[0].logprob, abs=1e-4 * one.tokens)
    assert found.context_tokens == [None, 8, None]
    assert len({s.tokens for s in found.scores}) == 3


@pytest.mark.parametrize("name", [*KINDS, "bert", "roberta"])
def test_the_room_is_all_that_fits_and_no_more(models: dict[str, Any], name: str) -> None:
    model = models[name]
    room = room_of(model, Policy(max_length=60))
    assert room == {"llama": 60, "llama-bos": 59, "gpt2": 60, "bert": 58, "roberta": 58}[name]
    fits = Request(SUFFIXES[0], CONTEXT, cut=TokenCut(room - 20, 20))
    assert score(model, [fits], policy=Policy(max_length=60)).scores[0].tokens == 20
    more = Request(SUFFIXES[0], CONTEXT, cut=TokenCut(room - 19, 20))
    with pytest.raises(EnsueError, match=f"{room - 19} tokens of context and 20 of continuation"):
        score(model, [more], policy=Policy(max_length=60))


def test_without_context_and_bos_the_first_token_conditions(models: dict[str, Any]) -> None:
    (found,) = score(models["llama"], [Request(SUFFIXES[0], cut=TokenCut(5, 9))]).scores
    assert found.tokens == 8
    (found,) = score(models["llama-bos"], [Request(SUFFIXES[0], cut=TokenCut(5, 9))]).scores
    assert found.tokens == 9


def test_words_are_the_tokens_of_the_baselines() -> None:
    model = UnigramModel([CONTEXT], "test")
    request = Request(" so-called dogs ran off", "one two three", detail=True, cut=TokenCut(2, 4))
    result = score(model, [request])
    whole = score(model, [Request(" so-called dogs", detail=True)]).scores[0]
    assert result.scores[0] == whole
    assert result.scores[0].tokens == 4
    assert result.context_tokens == [2]
    # A word across the join is two words, and its first half is not scored.
    (joined,) = score(model, [Request("dogs ran", "hot", cut=TokenCut(9, 9))]).scores
    assert joined == score(model, [Request("dogs ran")]).scores[0]


def test_random_scores_depend_on_the_prefix_that_is_left() -> None:
    asked = [Request(SUFFIXES[0], CONTEXT, cut=TokenCut(n, 30)) for n in (4, 8, 800, 900)]
    found = [s.logprob for s in score(RandomModel(), asked).scores]
    assert len(set(found)) == 3
    assert found[2] == found[3]


def test_a_stopped_run_finds_its_cut_scores_again(models: dict[str, Any], tmp_path: Path) -> None:
    requests = [Request(s, CONTEXT, cut=TokenCut(n, 20)) for n in (10, 500 - 380) for s in SUFFIXES]
    with Journal(tmp_path / "j") as journal:
        first = score(models["llama"], requests, journal=journal)
    with Journal(tmp_path / "j") as journal:
        again = score(models["llama"], requests, journal=journal)
    assert again.computed == 0
    assert again.scores == first.scores
    assert again.context_tokens == first.context_tokens == [10] * 3 + [120] * 3
