"""The engine's numbers against one text at a time, over random prefix trees, budgets and families."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ensue.models.request import TokenPart
from ensue.scoring.causal import CausalExecutor, out_of_memory
from ensue.scoring.network import Network
from ensue.scoring.plan import Budget
from ensue.scoring.probe import find_causal_way
from tests.scoring import naive
from tests.scoring.networks import VOCABULARY, network
from tests.support.effort import effort

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
@settings(max_examples=effort(15, 200), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(parts=trees(), budget=budgets)
def test_scores_equal_one_text_at_a_time(family: str, parts: list[TokenPart], budget: Budget) -> None:
    model = network(family)
    executor = find_causal_way(model).plain(model, budget)
    found = dict(item for batch in executor.run(parts) for item in batch)
    assert sorted(found) == list(range(len(parts)))
    for index, part in enumerate(parts):
        expected = naive.token_logprobs(model, part.ids.tolist(), part.start)
        np.testing.assert_allclose(found[index].logprobs, expected, atol=TOLERANCE)


@pytest.mark.parametrize("family", FAMILIES)
def test_prefixes_are_shared_wherever_the_cache_allows(family: str) -> None:
    executor = find_causal_way(network(family)).plain(network(family), ROOMY)
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

    def _head(self, hidden):  # type: ignore[no-untyped-def]
        assert len(hidden) <= self.chunk
        self.rows += len(hidden)
        return super()._head(hidden)


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
from ensue.scoring.causal import CausalExecutor, out_of_memory
from ensue.scoring.network import Network
from ensue.scoring.plan import Budget
from ensue.models.request import TokenPart
model = network("llama")
generator = np.random.default_rng(0)
parts = [TokenPart(generator.integers(0, VOCABULARY, 120).astype(np.int32), 1) for _ in range(500)]
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
    assert scored == 500
    assert batch < 10**6


@pytest.mark.parametrize(
    ("error", "says_so"),
    [
        (torch.OutOfMemoryError("no room"), True),
        (MemoryError(), True),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried"), True),
        (RuntimeError("not enough memory: you tried to allocate"), True),
        (RuntimeError("CUDA error: out of memory"), True),
        (RuntimeError("mat1 and mat2 shapes cannot be multiplied"), False),
        (ValueError("enough memory"), False),
    ],
)
def test_what_says_that_memory_ran_out(error: Exception, says_so: bool) -> None:
    assert out_of_memory(error) == says_so


class _Starved(Network):
    """A network with room for so many tokens at once, which remembers what it was asked to run."""

    def __init__(self, room: int, error: Exception) -> None:
        super().__init__(network("llama"))
        self.room, self.error, self.ran = room, error, []  # type: ignore[var-annotated]

    def hidden(self, ids, **more):  # type: ignore[no-untyped-def]
        if ids.numel() > self.room:
            raise self.error
        self.ran.append(tuple(ids.shape))
        return super().hidden(ids, **more)


def test_batches_are_halved_until_they_fit_and_nothing_finished_is_run_again() -> None:
    generator = np.random.default_rng(6)
    lengths = [30] * 4 + [125] + [30] * 5
    parts = [TokenPart(generator.integers(0, VOCABULARY, n).astype(np.int32), 1) for n in lengths]
    starved = _Starved(130, torch.OutOfMemoryError("no room"))
    executor = CausalExecutor(starved, Budget(240, 240, 100, 999), share=False)
    found = [item for batch in executor.run(parts, {0}) for item in batch]
    assert executor.budget == Budget(120, 120, 50, 499)
    assert found[0][0] == 4
    assert sorted(index for index, _ in found) == list(range(1, 10))
    for index, one in found:
        expected = naive.token_logprobs(starved.model, parts[index].ids.tolist(), 1)
        np.testing.assert_allclose(one.logprobs, expected, atol=TOLERANCE)
    # The long one fits; eight short ones do not, and four do.
    assert starved.ran == [(1, 125), (4, 30), (4, 30)]


def test_an_error_that_is_not_of_memory_ends_the_run() -> None:
    part = TokenPart(np.arange(40, dtype=np.int32), 1)
    starved = _Starved(10, RuntimeError("something else"))
    with pytest.raises(RuntimeError, match="something else"):
        list(CausalExecutor(starved, ROOMY).run([part]))
    assert starved.ran == []


def test_a_part_without_numbers_is_scored_again_alone() -> None:
    """What is none spreads over a row in which several lie side by side; alone, only the faulty one has none."""

    class Faulty(Network):
        def hidden(self, ids, **more):  # type: ignore[no-untyped-def]
            found = super().hidden(ids, **more).clone()
            found[(ids == 60).any(1)] = torch.nan
            return found

    generator = np.random.default_rng(7)
    stem = generator.integers(0, 50, 6)
    rows = [np.concatenate([stem, generator.integers(0, 50, 3), [last, 7]]) for last in (8, 60, 9)]
    parts = [TokenPart(row.astype(np.int32), 6) for row in rows]
    executor = CausalExecutor(Faulty(network("llama")), ROOMY, pack=True)
    found = dict(item for batch in executor.run(parts) for item in batch)
    assert np.isnan(found[1].logprobs).any()
    for index in (0, 2):
        expected = naive.token_logprobs(network("llama"), parts[index].ids.tolist(), 6)
        np.testing.assert_allclose(found[index].logprobs, expected, atol=TOLERANCE)


@pytest.mark.parametrize("family", ["llama", "gpt2"])
@pytest.mark.parametrize("share", [True, False])
def test_every_way_of_running_gives_the_models_numbers(family: str, share: bool) -> None:
    generator = np.random.default_rng(8)
    stem = generator.integers(0, VOCABULARY, 30)
    tails = [generator.integers(0, VOCABULARY, n) for n in (1, 1, 2, 3, 9, 15, 40)]
    rows = [np.concatenate([stem, tail]) for tail in tails]
    rows += [np.concatenate([stem[:9], tail]) for tail in tails] + [stem, stem, stem[:10], stem[:2]]
    starts = generator.integers(1, [len(row) for row in rows])
    parts = [TokenPart(row.astype(np.int32), int(start)) for row, start in zip(rows, starts, strict=True)]
    for split in (True, False):
        for pack in (True, False):
            for budget in (
                ROOMY,
                Budget(40, 20, 30, 200),
                Budget(40, 20, 30, 200, run=80),
                Budget(8, 1, 1, 99),
            ):
                executor = CausalExecutor(
                    Network(network(family), split=split), budget, share=share, pack=pack
                )
                found = dict(item for batch in executor.run(parts) for item in batch)
                for index, part in enumerate(parts):
                    expected = naive.token_logprobs(network(family), part.ids.tolist(), part.start)
                    np.testing.assert_allclose(found[index].logprobs, expected, atol=TOLERANCE)


def test_nothing_to_score_runs_nothing() -> None:
    assert list(CausalExecutor(_Starved(0, RuntimeError()), ROOMY).run([])) == []
    parts = [TokenPart(np.arange(5, dtype=np.int32), 1)]
    assert list(CausalExecutor(_Starved(0, RuntimeError()), ROOMY).run(parts, {0})) == []
