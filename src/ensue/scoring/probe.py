"""Finds out how a model may be run, by comparing each fast path with the model's own plain forward pass."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from itertools import product
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt
import torch

from ensue.errors import EnsueError
from ensue.models.request import MaskedPart, TokenPart
from ensue.scoring.attention import takes_varlen
from ensue.scoring.causal import NO_SHARING, CausalExecutor, Executor, Finished, out_of_memory
from ensue.scoring.finite import not_finite
from ensue.scoring.forest import grow_forest
from ensue.scoring.kernels import without_cudnn
from ensue.scoring.masked import MaskedExecutor
from ensue.scoring.network import Network
from ensue.scoring.packed import PackedExecutor
from ensue.scoring.plan import Budget
from ensue.scoring.rope import length_rope, states_length_rope
from ensue.scoring.rows import Row, make_rows
from ensue.scoring.runners import Runner, TextRunner, TreeRunner
from ensue.scoring.texts import end_to_end

log = logging.getLogger(__name__)

Array = npt.NDArray[np.float64]
Way = TypeVar("Way")

# Nats a token. Wrong masks or positions show as whole nats, rounding as far less.
_TOLERANCE = {torch.float32: 2e-3, torch.float64: 2e-3}
# In bfloat16 it is the mean that counts, and a quarter of the largest: a token that no text would have there moves by
# half a nat with any other order of sums (`smollm2` and `gemma3-270m`: means up to 0.18, single ones up to 0.63; with
# masks wrong by one place 0.26 to 2.7, and 2.1 to 27). In float16 it moves by a twentieth (`smollm2`).
_LOW_PRECISION_TOLERANCE = 0.25
# Small batches that force branching, padding on both sides and a chain of runs.
_TINY = Budget(batch=24, full=12, cache=40, attended=200)
# One batch of all masked copies, most of them padded.
_TOGETHER = Budget(batch=128, full=128, cache=0, attended=128)
# One row at a time.
_ALONE = Budget(batch=1, full=1, cache=0, attended=1)
# Windows of more tokens than these are not crossed by the probe: it would take longer than the work.
_LONGEST_WINDOW = 8192
# What a path that a model cannot go raises.
_FAILURES = (RuntimeError, TypeError, ValueError, AttributeError, LookupError)


class CausalWay(NamedTuple):
    """How a left-to-right model is run: its head apart from its trunk, prefixes branched from, short continuations
    side by side, texts end to end (on a GPU); `alone` is one text at a time, where positions depend on the length in
    a way that cannot be held."""

    split: bool
    share: bool
    pack: bool
    alone: bool = False
    texts: bool = False

    def plain(self, model: Any, budget: Budget) -> CausalExecutor:
        """Return what runs a model so, on any device."""
        network = Network(model, split=self.split)
        if self.alone:
            network.rope = None
            return CausalExecutor(network, _ALONE, share=False)
        return CausalExecutor(network, budget, share=self.share, pack=self.pack)

    def executor(
        self, model: Any, budget: Budget, compile: str, runs_trees: Callable[[Network], bool]
    ) -> Executor:
        """Return what runs a model best: on a GPU in packed rows, of whole trees where `runs_trees` says so."""
        plain = self.plain(model, budget)
        network = plain.network
        on_gpu = network.device.type == "cuda"
        if not (on_gpu and self.in_rows(network)):
            if compile == "always":
                why = "its texts cannot lie in one row" if on_gpu else "only on a GPU is any model"
                log.warning("%s is not compiled: %s", type(model).__name__, why)
            return plain
        return PackedExecutor(
            network, budget, plain, texts=self.texts, runs_trees=runs_trees, compile=compile
        )

    def in_rows(self, network: Network) -> bool:
        """Return whether it may be tried to lay texts or trees into one row."""
        return self.split and self.pack and network.windows is not None


class TreeWay(NamedTuple):
    """Whether a model may have whole trees in a row."""

    trees: bool


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
        executor = way.plain(model, _TINY)
        if way.share and not executor.network.takes_cache:
            raise NotImplementedError("it takes no cache")
        return list(executor.run(parts))

    later = _with_another_end(parts[0], _vocabulary(model))
    *reference, ahead = _plain(model, [*parts, later])
    _check_finite(model, reference)
    _check_looks_back(model, ahead, reference[0])
    way = _first_right(model, ways, attempt, reference)
    return way._replace(texts=_runs_texts(model, way, parts, reference))


def _runs_texts(model: Any, way: CausalWay, parts: Sequence[TokenPart], reference: Sequence[Array]) -> bool:
    """Find out whether texts end to end have a model's own numbers, where its device runs them so."""
    network = Network(model, split=way.split)
    if not way.in_rows(network) or not takes_varlen(network):
        return False
    long = _long_parts(network)
    every = [*parts, *long]
    rows = make_rows(grow_forest(every, min_run=NO_SHARING), _TOGETHER.batch)
    return _gives(model, TextRunner(network), rows, [*reference, *_plain(model, long)])


def find_tree_way(network: Network) -> TreeWay:
    """Find out whether a model gives its own numbers for whole trees in a row.

    Apart from the rest, and only where such rows are to be compiled: FlexAttention alone takes seconds to begin.
    """
    parts = [*_causal_parts(network.vocabulary), *_long_parts(network)]
    rows = make_rows(grow_forest(parts, min_run=1, min_saved=1), 64)
    runner = TreeRunner(network, 64, compiled=False)
    return TreeWay(_gives(network.model, runner, rows, _plain(network.model, parts)))


def _gives(model: Any, runner: Runner, rows: Iterable[Row], reference: Sequence[Array]) -> bool:
    """Return whether rows, run so, give the scores of a reference."""
    name = type(runner).__name__
    try:
        found = dict(one for row in rows for one in runner.launch(row, None).scores())
        gap = max(_gap(model, found[i].logprobs, expected) for i, expected in enumerate(reference))
    except _FAILURES as error:
        if out_of_memory(error):
            raise
        log.debug("%s failed: %s", name, error)
        return False
    log.debug("%s: scores moved by %.3g nats", name, gap)
    return gap <= _tolerance(model)


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
        gap = max(_gap(model, found[i].logprobs, expected) for i, expected in enumerate(reference))
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


def _gap(model: Any, found: Array, expected: Array) -> float:
    """Return by how much scores of a sequence moved."""
    gaps = _gaps(found, expected)
    largest = float(gaps.max())
    return max(float(gaps.mean()), largest / 4) if model.dtype == torch.bfloat16 else largest


def _gaps(found: Array, expected: Array) -> Array:
    """Return by how much each score moved; not at all where both say that a token is impossible."""
    with np.errstate(invalid="ignore"):
        gaps = np.where(found == expected, 0.0, np.abs(found - expected))
    return np.where(np.isnan(gaps), np.inf, gaps)


def _check_finite(model: Any, reference: Sequence[Array]) -> None:
    """Refuse a model that gives no number for a few short sequences: it gives none for a text."""
    if np.isnan(np.concatenate(reference)).any():
        dtype = str(model.dtype).removeprefix("torch.")
        raise not_finite(float("nan"), model=type(model).__name__, dtype=dtype, what="a short probe")


def _with_another_end(part: TokenPart, vocabulary: int) -> TokenPart:
    ids = part.ids.copy()
    ids[-1] = (ids[-1] + 1) % vocabulary
    return TokenPart(ids, part.start)


def _check_looks_back(model: Any, found: Array, expected: Array) -> None:
    """Refuse a model whose earlier predictions move with the last token: it is no left-to-right model."""
    # Both are rows of one pass, alike up to the last token, so that nothing is rounded differently.
    if _gaps(found[:-1], expected[:-1]).max() > _tolerance(model):
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


def _long_parts(network: Network) -> list[TokenPart]:
    """Return sequences that share a prefix longer than any layer of a network looks back, where some see not all."""
    windows = [window for window in (network.windows or {}).values() if window is not None]
    longest = min(max(windows, default=0), _LONGEST_WINDOW)
    if longest == 0:
        return []
    generator = np.random.default_rng(1)
    prefix, *tails = (
        generator.integers(0, network.vocabulary, size, dtype=np.int32) for size in (longest + 3, 9, 5)
    )
    return [TokenPart(np.concatenate([prefix, tail]), len(prefix) - 3) for tail in tails]


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


def _plain(model: Any, parts: Sequence[TokenPart]) -> list[Array]:
    """Score sequences by the model itself, the whole vocabulary at every position; equally long ones in one call."""
    found: dict[int, Array] = {}
    of_length: dict[int, list[int]] = {}
    for place, part in enumerate(parts):
        of_length.setdefault(len(part.ids), []).append(place)
    rope = length_rope(model)
    for places in of_length.values():
        given = np.stack([parts[place].ids for place in places]).astype(np.int64)
        ids = torch.from_numpy(given).to(model.device)
        with torch.inference_mode(), without_cudnn(ids.device):
            table = torch.log_softmax(model(input_ids=ids).logits[:, :-1].float(), -1)
            chosen = table.gather(2, ids[:, 1:, None])[:, :, 0].double().cpu().numpy()
        if rope is not None:
            rope.forget()
        found |= {place: row[parts[place].start - 1 :] for place, row in zip(places, chosen, strict=True)}
    return [found[place] for place in range(len(parts))]


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
