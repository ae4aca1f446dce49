"""The engine's numbers against one text at a time, over random prefix trees, budgets and families."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ensue.models.request import TokenPart
from ensue.scoring.causal import CausalExecutor
from ensue.scoring.network import Network
from ensue.scoring.plan import Budget
from ensue.scoring.probe import find_causal_way
from tests.scoring import naive
from tests.scoring.networks import VOCABULARY, network

FAMILIES = ["llama", "gpt2", "gemma3", "gemma2", "bloom", "granite", "opt", "mamba"]
# Nats a token, in float32.
TOLERANCE = 1e-4
ROOMY = Budget(batch=512, full=128, cache=4096, attended=8192)


@st.composite
def trees(draw: st.DrawFn) -> list[TokenPart]:
    """Sequences grown from one another: shared prefixes of all lengths, repeats and prefixes included."""
    token = st.integers(0, VOCABULARY - 1)
    rows: list[list[int]] = [draw(st.lists(token, min_size=2, max_size=40))]
    for _ in range(draw(st.integers(0, 7))):
        base = draw(st.sampled_from(rows))
        keep = draw(st.integers(0, len(base)))
        row = base[:keep] + draw(st.lists(token, max_size=20))
        if 2 <= len(row) <= 100:
            rows.append(row)
    return [TokenPart(np.asarray(row, dtype=np.int32), draw(st.integers(1, len(row) - 1))) for row in rows]


budgets = st.builds(
    Budget,
    batch=st.integers(8, 200),
    full=st.integers(1, 64),
    cache=st.integers(1, 300),
    attended=st.integers(40, 600),
)


@pytest.mark.parametrize("family", FAMILIES)
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(parts=trees(), budget=budgets)
def test_scores_equal_one_text_at_a_time(family: str, parts: list[TokenPart], budget: Budget) -> None:
    model = network(family)
    executor = find_causal_way(model).executor(model, budget)
    found = dict(item for batch in executor.run(parts) for item in batch)
    assert sorted(found) == list(range(len(parts)))
    for index, part in enumerate(parts):
        expected = naive.token_logprobs(model, part.ids.tolist(), part.start)
        np.testing.assert_allclose(found[index].logprobs, expected, atol=TOLERANCE)


@pytest.mark.parametrize("family", FAMILIES)
def test_prefixes_are_shared_wherever_the_cache_allows(family: str) -> None:
    executor = find_causal_way(network(family)).executor(network(family), ROOMY)
    assert executor.share == (family != "mamba")
    # OPT's head reads a decoder inside its trunk; its logits are taken whole instead.
    assert executor.network.split == (family != "opt")


class _Counting(Network):
    """A network that counts the tokens it is given and the rows its head computes."""

    def __init__(self, model: object) -> None:
        super().__init__(model)
        self.tokens = self.rows = 0

    def hidden(self, ids, **more):  # type: ignore[no-untyped-def]
        self.tokens += ids.numel()
        return super().hidden(ids, **more)

    def logits(self, hidden):  # type: ignore[no-untyped-def]
        assert len(hidden) <= self.chunk
        self.rows += len(hidden)
        return super().logits(hidden)


def test_a_shared_context_runs_once_and_the_head_only_where_tokens_are_scored() -> None:
    generator = np.random.default_rng(3)
    context = generator.integers(0, VOCABULARY, 60)
    endings = [generator.integers(0, VOCABULARY, 10) for _ in range(6)]
    parts = [TokenPart(np.concatenate([context, e]).astype(np.int32), 60) for e in endings]
    counting = _Counting(network("llama"))
    counting.chunk = 7
    list(CausalExecutor(counting, ROOMY).run(parts))
    # The last token of each is only asked about, so it is not fed.
    assert counting.tokens == 60 + 6 * 9
    assert counting.rows == 6 * 10


def test_scores_do_not_move_with_the_batch() -> None:
    """The stated tolerance: a millionth of a nat a token between batches of one text and of all."""
    generator = np.random.default_rng(4)
    parts = [TokenPart(generator.integers(0, VOCABULARY, n).astype(np.int32), 1) for n in range(20, 80, 4)]
    model = Network(network("llama"))
    small = Budget(batch=80, full=1, cache=0, attended=100)
    one = dict(item for b in CausalExecutor(model, small, share=False).run(parts) for item in b)
    all_at_once = dict(
        item for b in CausalExecutor(model, Budget(4096, 4096, 4096, 9999)).run(parts) for item in b
    )
    gap = max(np.abs(one[i].logprobs - all_at_once[i].logprobs).max() for i in one)
    assert gap < 2e-5


def test_leaving_out_what_is_known_repeats_the_same_arithmetic() -> None:
    generator = np.random.default_rng(5)
    stem = generator.integers(0, VOCABULARY, 20)
    parts = [
        TokenPart(np.concatenate([stem, generator.integers(0, VOCABULARY, n)]).astype(np.int32), 1)
        for n in range(5, 40)
    ]
    executor = CausalExecutor(Network(network("gpt2")), Budget(100, 50, 60, 400))
    whole = dict(item for batch in executor.run(parts) for item in batch)
    for done in (set(range(0, 35, 2)), set(range(17)), set(range(34))):
        rest = dict(item for batch in executor.run(parts, done) for item in batch)
        assert set(rest) == set(range(35)) - done
        assert all(np.array_equal(rest[i].logprobs, whole[i].logprobs) for i in rest)


_STARVED = """
import resource, sys
import numpy as np, torch
sys.path.insert(0, ".")
from tests.scoring import naive
from tests.scoring.networks import VOCABULARY, network
from ensue.scoring.causal import CausalExecutor
from ensue.scoring.network import Network
from ensue.scoring.plan import Budget
from ensue.models.request import TokenPart
model = network("llama")
generator = np.random.default_rng(0)
parts = [TokenPart(generator.integers(0, VOCABULARY, 120).astype(np.int32), 1) for _ in range(1200)]
executor = CausalExecutor(Network(model), Budget(10**6, 10**6, 10**6, 10**7))
list(executor.run(parts[:2]))
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
hard = resource.getrlimit(resource.RLIMIT_AS)[1]
resource.setrlimit(resource.RLIMIT_AS, (used + 48 * 2**20, hard))
found = dict(item for batch in executor.run(parts) for item in batch)
resource.setrlimit(resource.RLIMIT_AS, (hard, hard))
expected = naive.token_logprobs(model, parts[77].ids.tolist(), 1)
assert np.abs(found[77].logprobs - expected).max() < 1e-4
print(len(found), executor.budget.batch)
"""


@pytest.mark.slow
def test_running_out_of_memory_halves_the_batch_and_goes_on() -> None:
    done = subprocess.run([sys.executable, "-c", _STARVED], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    scored, batch = map(int, done.stdout.split())
    assert scored == 1200
    assert batch < 10**6
