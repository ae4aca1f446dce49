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
@given(parts=masked_parts(), batch=st.integers(8, 300), data=st.data())
def test_scores_equal_one_mask_at_a_time(
    family: str, parts: list[MaskedPart], batch: int, data: st.DataObject
) -> None:
    model = network(family)
    executor = MaskedExecutor(Network(model), Budget(batch, batch, 0, batch), MASK)
    done = data.draw(st.sets(st.integers(0, len(parts) - 1)))
    found = dict(item for finished in executor.run(parts, done) for item in finished)
    assert set(found) == set(range(len(parts))) - done
    for index in found:
        part = parts[index]
        expected = naive.masked_logprobs(model, part.ids.tolist(), part.targets, part.hidden, MASK)
        np.testing.assert_allclose(found[index].logprobs, expected, atol=1e-4)


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
