"""Finds out how a model may be run, by comparing each fast path with the model's own plain forward pass."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from itertools import product
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt
import torch

from ensue.errors import EnsueError
from ensue.models.request import MaskedPart, TokenPart
from ensue.scoring.causal import CausalExecutor, Executor, Finished, out_of_memory
from ensue.scoring.finite import not_finite
from ensue.scoring.masked import MaskedExecutor
from ensue.scoring.network import Network
from ensue.scoring.packed import PackedExecutor
from ensue.scoring.plan import Budget
from ensue.scoring.rope import length_rope, states_length_rope
from ensue.scoring.rows import make_rows
from ensue.scoring.runners import TreeRunner
from ensue.scoring.texts import end_to_end
from ensue.scoring.tree import build_tree

log = logging.getLogger(__name__)

Array = npt.NDArray[np.float64]
Way = TypeVar("Way")

# Nats a token. Wrong masks or positions show as whole nats, rounding as far less.
_TOLERANCE = {torch.float32: 2e-3, torch.float64: 2e-3}
_LOW_PRECISION_TOLERANCE = 0.25
# Small batches that force branching, padding on both sides and a chain of runs.
_TINY = Budget(batch=24, full=12, cache=40, attended=200)
# One batch of all masked copies, most of them padded.
_TOGETHER = Budget(batch=128, full=128, cache=0, attended=128)
# One row at a time.
_ALONE = Budget(batch=1, full=1, cache=0, attended=1)
# What a path that a model cannot go raises.
_FAILURES = (RuntimeError, TypeError, ValueError, AttributeError, LookupError)


class CausalWay(NamedTuple):
    """How a left-to-right model is run: its head apart from its trunk, prefixes branched from, short continuations
    side by side, whole trees in one row (on a GPU); `alone` is one text at a time, where positions depend on the
    length in a way that cannot be held."""

    split: bool
    share: bool
    pack: bool
    alone: bool = False
    trees: bool = False

    def executor(self, model: Any, budget: Budget, compile: str = "auto") -> Executor:
        network = Network(model, split=self.split)
        if self.alone:
            network.rope = None
            return CausalExecutor(network, _ALONE, share=False)
        plain = CausalExecutor(network, budget, share=self.share, pack=self.pack)
        return PackedExecutor(network, budget, plain, compile=compile) if self.trees else plain


class MaskedWay(NamedTuple):
    """How a masked model is run: its head apart from its trunk, texts of different lengths in one batch."""

    split: bool
    pad: bool

    def executor(self, model: Any, budget: Budget, mask: int) -> MaskedExecutor:
        way = end_to_end(model) if self.split else None
        return MaskedExecutor(Network(model, split=self.split), budget, mask, pad=self.pad, way=way)


_CAUSAL_WAYS = [
    CausalWay(split, share, pack)
    for split in (True, False)
    for share, pack in ((True, True), (True, False), (False, False))
]
_MASKED_WAYS = [MaskedWay(split, pad) for split, pad in product((True, False), repeat=2)]


def find_causal_way(model: Any) -> CausalWay:
    """Find how to run a causal model: shared prefixes and a divided head where they give its own numbers."""
    parts = _causal_parts(_vocabulary(model))
    rope = length_rope(model)
    ways = _CAUSAL_WAYS
    if states_length_rope(model.config) if rope is None else not rope.holds():
        ways = [CausalWay(split, share=False, pack=False, alone=True) for split in (True, False)]

    def attempt(way: CausalWay) -> list[Finished]:
        executor = way.executor(model, _TINY)
        if way.share and not executor.network.takes_cache:
            raise NotImplementedError("it takes no cache")
        return list(executor.run(parts))

    reference = [_plain(model, part) for part in parts]
    _check_finite(model, reference)
    _check_looks_back(model, parts[0], reference[0])
    way = _first_right(model, ways, attempt, reference)
    return way._replace(trees=_runs_trees(model, way, parts, reference))


def _runs_trees(model: Any, way: CausalWay, parts: Sequence[TokenPart], reference: Sequence[Array]) -> bool:
    """Whether a model on a GPU gives its own numbers for whole trees in a row."""
    network = Network(model, split=way.split)
    if network.device.type != "cuda" or not (way.split and way.pack and network.sees_by_mask):
        return False
    try:
        gap = tree_gap(network, parts, reference)
    except _FAILURES as error:
        if out_of_memory(error):
            raise
        log.debug("rows of trees failed: %s", error)
        return False
    log.debug("rows of trees: scores moved by %.3g nats", gap)
    return gap <= _tolerance(model)


def tree_gap(network: Network, parts: Sequence[TokenPart], reference: Sequence[Array]) -> float:
    """Return how far the scores of rows of trees, uncompiled, are from others at most, in nats."""
    nodes = build_tree(parts, min_run=1, min_saved=1)
    runner = TreeRunner(network, 64, compiled=False)
    rows = make_rows(nodes, [part.start for part in parts], 64)
    found = dict(one for row in rows for one in runner.launch(row, None).scores())
    return max(_gap(found[i].logprobs, expected) for i, expected in enumerate(reference))


def find_masked_way(model: Any, mask: int) -> MaskedWay:
    """Find how to run a masked model: padded batches and a divided head where they give its own numbers."""
    parts = _masked_parts(_vocabulary(model))
    reference = [_plain_masked(model, part, mask) for part in parts]
    _check_finite(model, reference)
    return _first_right(
        model, _MASKED_WAYS, lambda way: list(way.executor(model, _TOGETHER, mask).run(parts)), reference
    )


def _first_right(
    model: Any, ways: Sequence[Way], attempt: Callable[[Way], list[Finished]], reference: Sequence[Array]
) -> Way:
    """Find the first of several ways whose scores are those of the reference."""
    tolerance = _tolerance(model)
    worst = "no path was tried"
    for way in ways:
        try:
            found = dict(item for batch in attempt(way) for item in batch)
        except _FAILURES as error:
            if out_of_memory(error):
                raise
            worst = f"{type(error).__name__}: {str(error)[:120]}"
            log.debug("%s failed: %s", way, worst)
            continue
        gap = max(_gap(found[i].logprobs, expected) for i, expected in enumerate(reference))
        if gap <= tolerance:
            return way
        worst = f"scores moved by {gap:.3g} nats"
        log.debug("%s: %s", way, worst)
    raise EnsueError(
        f"{type(model).__name__} cannot be scored: no way of running it gives its own numbers ({worst})."
    )


def _tolerance(model: Any) -> float:
    return _TOLERANCE.get(model.dtype, _LOW_PRECISION_TOLERANCE)


def _vocabulary(model: Any) -> int:
    return int(model.get_output_embeddings().weight.shape[0])


def _gap(found: Array, expected: Array) -> float:
    """Return the largest difference; none where both say that a token is impossible."""
    with np.errstate(invalid="ignore"):
        gaps = np.where(found == expected, 0.0, np.abs(found - expected))
    return float("inf") if np.isnan(gaps).any() else float(gaps.max())


def _check_finite(model: Any, reference: Sequence[Array]) -> None:
    """Refuse a model that gives no number for a few short sequences: it gives none for a text."""
    if np.isnan(np.concatenate(reference)).any():
        dtype = str(model.dtype).removeprefix("torch.")
        raise not_finite(float("nan"), model=type(model).__name__, dtype=dtype, what="a short probe")


def _check_looks_back(model: Any, part: TokenPart, expected: Array) -> None:
    """Refuse a model whose earlier predictions move with a later token: it is no left-to-right model."""
    ids = part.ids.copy()
    ids[-1] = (ids[-1] + 1) % _vocabulary(model)
    found = _plain(model, TokenPart(ids, part.start))
    if _gap(found[:-1], expected[:-1]) > _tolerance(model):
        raise EnsueError(
            f"{type(model).__name__} predicts a token from what comes after it too, so it gives no left-to-right "
            f"log-likelihood; score with a causal model, or with one that has a masked-language-model head."
        )


def _causal_parts(vocabulary: int) -> list[TokenPart]:
    """Return a few short sequences that share prefixes of different lengths."""
    generator = np.random.default_rng(0)
    draw = generator.integers(0, vocabulary, size=(7, 16), dtype=np.int32)
    trunk, other = draw[0], draw[4]
    rows = [
        trunk,
        np.concatenate([trunk[:12], draw[1][:9]]),
        np.concatenate([trunk[:12], draw[2][:14]]),
        np.concatenate([trunk[:12], draw[2][:9], draw[3][:5]]),
        draw[3][:11],
        # A second, longer prefix: rows that branch from both need padding on the left.
        *(np.concatenate([other, draw[i][:7]]) for i in (1, 2, 3)),
    ]
    return [TokenPart(ids, 1) for ids in rows]


def _masked_parts(vocabulary: int) -> list[MaskedPart]:
    """Return three short sequences of different lengths, in which a few tokens are masked, one or two at a time."""
    generator = np.random.default_rng(0)
    # Special tokens come first in most vocabularies.
    low = vocabulary // 2
    return [
        MaskedPart(
            generator.integers(low, vocabulary, size=length, dtype=np.int32),
            (1, length - 3),
            ((1,), (length - 3, length - 2)),
        )
        for length in (14, 9, 5)
    ]


def _plain(model: Any, part: TokenPart) -> Array:
    """Score one sequence in one call, the whole vocabulary at every position."""
    ids = torch.from_numpy(part.ids.astype(np.int64)).to(model.device)[None]
    with torch.inference_mode():
        table = torch.log_softmax(model(input_ids=ids).logits[0].float()[:-1], -1)
        chosen = table.gather(1, ids[0, 1:, None])[:, 0]
    rope = length_rope(model)
    if rope is not None:
        rope.forget()
    return chosen[part.start - 1 :].double().cpu().numpy()  # type: ignore[no-any-return]


def _plain_masked(model: Any, part: MaskedPart, mask: int) -> Array:
    """Score one masked copy at a time."""
    out = []
    for target, hidden in zip(part.targets, part.hidden, strict=True):
        ids = part.ids.astype(np.int64)
        ids[list(hidden)] = mask
        with torch.inference_mode():
            logits = model(input_ids=torch.from_numpy(ids).to(model.device)[None]).logits[0, target].float()
        out.append(float(torch.log_softmax(logits, -1)[int(part.ids[target])]))
    return np.asarray(out)
