"""Work done share by share, as on many machines, gives what one process gives, to the last bit."""

from __future__ import annotations

import pickle
from collections.abc import Set
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ensue.errors import RunFailed
from ensue.models.request import MaskedPart, PartScore, TokenPart
from ensue.scoring.causal import CausalExecutor
from ensue.scoring.masked import MaskedExecutor
from ensue.scoring.network import Network
from ensue.scoring.plan import Budget
from ensue.scoring.probe import CausalWay, find_causal_way
from ensue.scoring.rope import LengthRope
from ensue.scoring.shares import Piece, gather
from tests.scoring.networks import VOCABULARY, network
from tests.scoring.test_masked import MASK
from tests.scoring.test_packed import executor as packed
from tests.support.effort import effort

budgets = st.builds(
    Budget,
    batch=st.integers(8, 48),
    full=st.integers(1, 32),
    cache=st.integers(1, 200),
    attended=st.integers(40, 600),
)


@cache
def way(family: str) -> CausalWay:
    return find_causal_way(network(family))


def corpus(seed: int, count: int = 40) -> list[TokenPart]:
    """Texts that go on from beginnings of each other, some from nothing, after one beginning that many have."""
    random = np.random.default_rng(seed)
    opening = random.integers(0, VOCABULARY, random.integers(0, 20))
    texts: list[Any] = [opening]
    for _ in range(count):
        above = texts[random.integers(len(texts))]
        kept = above[: random.integers(0, len(above) + 1)]
        texts.append(np.concatenate([kept, random.integers(0, VOCABULARY, random.integers(2, 25))])[:90])
    texts = [text for text in texts if len(text) > 1]
    return [TokenPart(text.astype(np.int32), int(random.integers(1, len(text)))) for text in texts]


def some(data: st.DataObject, parts: list[Any]) -> Set[int]:
    return data.draw(st.sets(st.integers(0, len(parts) - 1)))


def in_one_process(executor: Any, parts: list[Any], done: Set[int]) -> dict[int, PartScore]:
    return dict(item for batch in executor.run(parts, done) for item in batch)


def share_by_share(executor: Any, parts: list[Any], done: Set[int], seed: int) -> dict[int, PartScore]:
    """Each share goes away and comes back as bytes, in any order."""
    sent = [pickle.dumps(share) for share in executor.divide(parts, done)]
    np.random.default_rng(seed).shuffle(sent)
    batches = [pickle.dumps(batch) for one in sent for batch in executor.work(pickle.loads(one))]
    found = [item for batch in gather(map(pickle.loads, batches)) for item in batch]
    assert len(found) == len(dict(found)), "a part was scored twice"
    return dict(found)


def assert_same_bits(found: dict[int, PartScore], expected: dict[int, PartScore]) -> None:
    assert found.keys() == expected.keys()
    for part, score in found.items():
        assert score.logprobs.tobytes() == expected[part].logprobs.tobytes()


@pytest.mark.parametrize("family", ["llama", "gpt2", "gemma3", "mamba"])
@settings(max_examples=effort(5, 100), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(seed=st.integers(0, 10**6), budget=budgets, data=st.data())
def test_a_causal_model_scores_the_same_bits(
    family: str, seed: int, budget: Budget, data: st.DataObject
) -> None:
    model, parts = network(family), corpus(seed)
    executor = way(family).plain(model, budget)
    done = some(data, parts)
    expected = in_one_process(executor, parts, done)
    assert expected.keys() == set(range(len(parts))) - done
    assert_same_bits(share_by_share(executor, parts, done, seed), expected)


@settings(max_examples=effort(5, 100), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(seed=st.integers(0, 10**6), batch=st.integers(8, 200), data=st.data())
def test_a_masked_model_scores_the_same_bits(seed: int, batch: int, data: st.DataObject) -> None:
    random = np.random.default_rng(seed)
    parts = []
    for length in random.integers(3, 30, 12):
        targets = tuple(range(1, int(length) - 1))
        ids = random.integers(5, VOCABULARY, length).astype(np.int32)
        parts.append(MaskedPart(ids, targets, tuple((target,) for target in targets)))
    executor = MaskedExecutor(Network(network("bert")), Budget(batch, batch, 0, batch), MASK)
    done = some(data, parts)
    assert_same_bits(share_by_share(executor, parts, done, seed), in_one_process(executor, parts, done))


def test_rows_of_a_gpu_are_laid_again_as_they_were() -> None:
    executor, parts = packed(network("llama"), 64), corpus(3, 20)
    expected = in_one_process(executor, parts, {2, 5})
    found = share_by_share(executor, parts, {2, 5}, 0)
    assert len(list(executor.divide(parts))) > 3
    assert found.keys() == expected.keys()
    for part, score in found.items():
        np.testing.assert_allclose(score.logprobs, expected[part].logprobs, atol=1e-5)


def test_parts_that_may_not_be_run_together_keep_their_places() -> None:
    model, parts = network("llama"), corpus(5, 20)
    executor = CausalExecutor(Network(model), Budget(24, 12, 60, 300), pack=True)

    class Halves(LengthRope):
        def __init__(self) -> None: ...

        def length_for(self, length: int) -> int:
            return 20 if length <= 20 else 100

    executor.network.lengths = lambda lengths: [Halves().length_for(one) for one in lengths]  # type: ignore[method-assign]
    expected = in_one_process(executor, parts, {1})
    assert_same_bits(share_by_share(executor, parts, {1}, 0), expected)


def test_shares_are_many_where_all_texts_begin_alike_and_repeat_little() -> None:
    """What all begin with is run again in each share; of all tokens that is little."""
    random = np.random.default_rng(0)
    opening = random.integers(0, VOCABULARY, 20)
    rows = [
        np.concatenate([opening, random.integers(0, VOCABULARY, 30)]).astype(np.int32) for _ in range(200)
    ]
    # One is the beginning itself, and ends in what is run again.
    parts = [*(TokenPart(row, 20) for row in rows), TokenPart(opening.astype(np.int32), 1)]
    executor = CausalExecutor(Network(network("llama")), Budget(64, 32, 40, 2000), pack=True)
    shares = list(executor.divide(parts))
    assert len(shares) > 8
    fed = sum(share.nodes[node].length for share in shares for step in share.steps for node in step.nodes)
    assert fed < 1.1 * (20 + 200 * 30)
    assert sorted(part for share in shares for part in share.parts) == list(range(201))


def test_a_share_for_which_memory_runs_out_is_done_with_half_the_budget() -> None:
    parts = corpus(9, 30)
    executor = CausalExecutor(Network(network("llama")), Budget(64, 32, 200, 2000), pack=True)
    expected = in_one_process(executor, parts, frozenset())
    shares = list(executor.divide(parts))
    whole = executor.network.hidden

    def small(ids: torch.Tensor, **more: Any) -> torch.Tensor:
        if ids.numel() > 40:
            raise torch.OutOfMemoryError("out of memory")
        return whole(ids, **more)

    executor.network.hidden = small  # type: ignore[method-assign]
    found = dict(item for batch in gather(p for s in shares for p in executor.work(s)) for item in batch)
    assert executor.budget.batch == 64
    assert found.keys() == expected.keys()
    for part, score in found.items():
        np.testing.assert_allclose(score.logprobs, expected[part].logprobs, atol=1e-4)

    def none(ids: torch.Tensor, **more: Any) -> torch.Tensor:
        raise torch.OutOfMemoryError("out of memory")

    executor.network.hidden = none  # type: ignore[method-assign]
    with pytest.raises(RunFailed, match="smallest batch"):
        list(executor.work(shares[0]))


def test_pieces_become_parts_in_the_order_of_their_tokens() -> None:
    def piece(part: int, values: list[float], begin: int) -> Piece:
        return Piece(part, PartScore(np.asarray(values)), begin, 3)

    coming = [[piece(0, [3.0], 2), piece(1, [1.0], 0)], [piece(0, [1.0, 2.0], 0)], [piece(1, [2.0, 3.0], 1)]]
    found = [[(part, score.logprobs.tolist()) for part, score in batch] for batch in gather(iter(coming))]
    assert found == [[(0, [1.0, 2.0, 3.0])], [(1, [1.0, 2.0, 3.0])]]
