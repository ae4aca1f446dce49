"""Pseudo-log-likelihood against one forward pass per masked token."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ensue.errors import RunFailed
from ensue.models.request import MaskedPart
from ensue.scoring.masked import MaskedExecutor
from ensue.scoring.network import Network
from ensue.scoring.plan import Budget
from ensue.scoring.rope import LengthRope
from ensue.scoring.texts import probed
from tests.scoring import naive
from tests.scoring.networks import VOCABULARY, network

MASK = 4


@st.composite
def masked_parts(draw: st.DrawFn) -> list[MaskedPart]:
    parts = []
    for _ in range(draw(st.integers(1, 5))):
        ids = draw(st.lists(st.integers(5, VOCABULARY - 1), min_size=3, max_size=30))
        targets = sorted(draw(st.sets(st.integers(1, len(ids) - 2), min_size=1, max_size=6)))
        hidden = tuple(tuple(range(t, min(t + draw(st.integers(1, 3)), len(ids)))) for t in targets)
        parts.append(MaskedPart(np.asarray(ids, dtype=np.int32), tuple(targets), hidden))
    return parts


@pytest.mark.parametrize("family", ["bert", "roberta"])
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(parts=masked_parts(), batch=st.integers(8, 300), apart=st.booleans(), data=st.data())
def test_scores_equal_one_mask_at_a_time(
    family: str, parts: list[MaskedPart], batch: int, apart: bool, data: st.DataObject
) -> None:
    model = network(family)
    way = probed(model) if apart else None
    assert apart == (way is not None)
    executor = MaskedExecutor(Network(model), Budget(batch, batch, 0, batch), MASK, way=way)
    done = data.draw(st.sets(st.integers(0, len(parts) - 1)))
    found = dict(item for finished in executor.run(parts, done) for item in finished)
    assert set(found) == set(range(len(parts))) - done
    for index in found:
        part = parts[index]
        expected = naive.masked_logprobs(model, part.ids.tolist(), part.targets, part.hidden, MASK)
        np.testing.assert_allclose(found[index].logprobs, expected, atol=1e-4)


class Watched(Network):
    """A network that remembers the shape of what it runs, and how many tokens of it are no padding."""

    def __init__(self, model: Any) -> None:
        super().__init__(model)
        self.ran: list[tuple[int, int, int | None]] = []

    def hidden(self, ids: torch.Tensor, **named: Any) -> torch.Tensor:
        mask = named["attention_mask"]
        assert named["length"] == ids.shape[1]
        self.ran.append((*ids.shape, None if mask is None else int(mask.sum())))
        return super().hidden(ids, **named)


def some_parts() -> list[MaskedPart]:
    """Lengths 6, 10 and 8 with two, three and two targets."""
    generator = np.random.default_rng(1)
    return [
        MaskedPart(
            generator.integers(5, VOCABULARY, length).astype(np.int32), targets, tuple((t,) for t in targets)
        )
        for length, targets in ((6, (1, 2)), (10, (1, 3, 5)), (8, (2, 6)))
    ]


@pytest.mark.parametrize(
    ("batch", "done", "ran"),
    [
        # All seven rows at once, padded to ten; then four at a time, as many as a row of ten leaves room for.
        (70, set(), [(7, 10, 58)]),
        (49, set(), [(4, 10, 38), (3, 8, 20)]),
        (40, set(), [(4, 10, 38), (3, 8, 20)]),
        (30, set(), [(3, 10, None), (3, 8, 22), (1, 6, None)]),
        (1, set(), [(1, 10, None)] * 3 + [(1, 8, None)] * 2 + [(1, 6, None)] * 2),
        # A batch that nobody waits for is left out; the others are run as they would be.
        (30, {1}, [(3, 8, 22), (1, 6, None)]),
        (30, {0}, [(3, 10, None), (3, 8, 22)]),
        (30, {0, 1, 2}, []),
    ],
)
def test_rows_of_like_length_are_run_together(
    batch: int, done: set[int], ran: list[tuple[int, int, int | None]]
) -> None:
    watched, parts = Watched(network("bert")), some_parts()
    found = [
        item
        for finished in MaskedExecutor(watched, Budget(batch, 1, 0, 1), MASK).run(parts, done)
        for item in finished
    ]
    assert watched.ran == ran
    # The longest is finished first.
    assert [index for index, _ in found] == [index for index in (1, 2, 0) if index not in done]
    for index, one in found:
        part = parts[index]
        expected = naive.masked_logprobs(network("bert"), part.ids.tolist(), part.targets, part.hidden, MASK)
        np.testing.assert_allclose(one.logprobs, expected, atol=1e-4)


@pytest.mark.parametrize(
    ("budget", "ran"), [(70, [58]), (40, [38, 20]), (30, [30, 28]), (1, [10] * 3 + [8] * 2 + [6] * 2)]
)
def test_copies_end_to_end_fill_a_row_without_padding(
    budget: int, ran: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    way = probed(network("bert"))
    assert way is not None
    tokens: list[int] = []
    original = way.run

    def watched(row: Any) -> Any:
        tokens.append(len(row.ids))
        return original(row)

    monkeypatch.setattr(way, "run", watched)
    executor = MaskedExecutor(Network(network("bert")), Budget(budget, 1, 0, 1), MASK, way=way)
    found = [item for finished in executor.run(some_parts()) for item in finished]
    assert tokens == ran
    assert [index for index, _ in found] == [1, 2, 0]


def test_without_padding_and_where_positions_follow_the_length_only_equal_lengths_run_together() -> None:
    watched = Watched(network("bert"))
    list(MaskedExecutor(watched, Budget(70, 1, 0, 1), MASK, pad=False).run(some_parts()))
    assert watched.ran == [(3, 10, None), (2, 8, None), (2, 6, None)]
    assert MaskedExecutor(watched, Budget(70, 1, 0, 1), MASK).pad
    watched.rope = LengthRope([], 5, each=False)
    assert not MaskedExecutor(watched, Budget(70, 1, 0, 1), MASK).pad


def test_an_error_that_is_not_of_memory_ends_the_run() -> None:
    class Broken(Network):
        def hidden(self, *args: Any, **named: Any) -> torch.Tensor:
            raise RuntimeError("something else")

    with pytest.raises(RuntimeError, match="something else"):
        list(MaskedExecutor(Broken(network("bert")), Budget(400, 400, 0, 400), MASK).run(some_parts()))


class Starved(Network):
    """A network on a machine that has room for so many tokens at once."""

    room = 60

    def hidden(self, ids: torch.Tensor, *more: Any, **named: Any) -> torch.Tensor:
        if ids.numel() > self.room:
            raise torch.OutOfMemoryError("no room")
        return super().hidden(ids, *more, **named)


def test_running_out_of_memory_halves_the_batch_and_goes_on() -> None:
    model = network("bert")
    ids = np.arange(5, 25, dtype=np.int32) % VOCABULARY
    part = MaskedPart(ids, tuple(range(1, 19)), tuple((t,) for t in range(1, 19)))
    executor = MaskedExecutor(Starved(model), Budget(400, 400, 0, 400), MASK)
    ((_, found),) = [item for finished in executor.run([part]) for item in finished]
    assert executor.budget.batch == 50
    expected = naive.masked_logprobs(model, ids.tolist(), part.targets, part.hidden, MASK)
    np.testing.assert_allclose(found.logprobs, expected, atol=1e-4)


def test_memory_that_is_too_small_for_one_row_ends_the_run() -> None:
    part = MaskedPart(np.full(70, 5, dtype=np.int32), (3,), ((3,),))
    executor = MaskedExecutor(Starved(network("bert")), Budget(400, 400, 0, 400), MASK)
    with pytest.raises(RunFailed, match="Memory ran out with the smallest batch"):
        list(executor.run([part]))
