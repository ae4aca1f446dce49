"""What a SuffixLM learns from: windows of consecutive segments in batches, and the contrastive loss on them."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from ensue.atomic import replacing
from ensue.backends.suffixlm.model import SuffixLM
from ensue.train.corpora import held
from ensue.train.suffixlm.corpus import SegmentCorpus, Span
from ensue.train.suffixlm.options import SuffixOptions

ENCODED_AT_ONCE = 1024


class WindowBatch(NamedTuple):
    """Windows as tables, windows × segments: corpus rows (−1 where a window is shorter), their works, openings."""

    rows: Tensor
    works: Tensor
    openings: Tensor


def cut_windows(span: Span, size: int, shift: int) -> list[range]:
    """Return a work cut into windows of `size` segments, the first of them `shift` long; none of a single segment."""
    edges = [span.begin, *range(span.begin + shift, span.end, size), span.end]
    return [range(begin, end) for begin, end in itertools.pairwise(edges) if end - begin >= 2]


def epoch_batches(
    corpus: SegmentCorpus, size: int, batch: int, in_book: int, seed: int, epoch: int
) -> Iterator[WindowBatch]:
    """Yield all windows of an epoch, cut anew each time, in random order, up to `in_book` of a work side by side."""
    rng = np.random.default_rng([seed, epoch])
    groups: list[list[range]] = []
    for span in corpus.spans:
        windows = cut_windows(span, size, int(rng.integers(0, size)))
        order = rng.permutation(len(windows))
        chosen = [windows[i] for i in order]
        groups += [chosen[i : i + in_book] for i in range(0, len(chosen), in_book)]
    ready: list[range] = []
    for place in rng.permutation(len(groups)):
        ready += groups[place]
        while len(ready) >= batch:
            yield make_batch(corpus, ready[:batch])
            ready = ready[batch:]


def fixed_batches(corpus: SegmentCorpus, size: int, batch: int) -> Iterator[WindowBatch]:
    """Yield all windows in order, always the same: what a dev loss is measured on."""
    windows = [window for span in corpus.spans for window in cut_windows(span, size, 0)]
    # Spread out, so that a batch holds windows of several works, as in training.
    step = max(len(windows) // batch, 1)
    spread = [windows[i] for first in range(step) for i in range(first, len(windows), step)]
    for begin in range(0, len(spread), batch):
        yield make_batch(corpus, spread[begin : begin + batch])


def make_batch(corpus: SegmentCorpus, windows: Sequence[range]) -> WindowBatch:
    """Return the tables of some windows, each the rows of one work."""
    rows = np.full((len(windows), max(map(len, windows))), -1, dtype=np.int64)
    for place, window in enumerate(windows):
        rows[place, : len(window)] = window
    ends = np.asarray([span.end for span in corpus.spans])
    works = np.where(rows < 0, -1, np.searchsorted(ends, rows, side="right"))
    return WindowBatch(*map(torch.from_numpy, (rows, works, np.isin(rows, corpus.openings))))


class Negatives(NamedTuple):
    """What a prediction is held against.

    `others`: segments of other works. `earlier`: segments of its own work before the true one. `spare`: how many
    segments right after the next one do not count, for they would follow nearly as well.
    """

    others: bool = True
    earlier: bool = True
    spare: int = 0


def contrastive_loss(
    predicted: Tensor,
    vectors: Tensor,
    places: WindowBatch,
    negatives: Negatives = Negatives(),
    *,
    ahead: Tensor | None = None,
    break_weight: float = 1.0,
) -> Tensor:
    """Mean cross-entropy of picking the true segment among itself and its negatives in the batch.

    `predicted` and `vectors` are windows × segments × width. The true segment is the next one, or the one
    so many segments `ahead` (windows × segments; cut to the window's end).
    """
    windows, length, width = vectors.shape
    rows, works = places.rows.reshape(-1), places.works.reshape(-1)
    after = (places.rows >= 0).sum(1, keepdim=True) - 1 - torch.arange(length, device=rows.device)[None]
    ahead = after.clamp(max=1) if ahead is None else torch.minimum(ahead, after)
    wanted = (ahead >= 1).reshape(-1)
    targets = (torch.arange(windows * length, device=rows.device).view(windows, length) + ahead).reshape(-1)[
        wanted
    ]
    following, owners = rows[wanted, None] + 1, works[wanted, None]
    own = works == owners
    out = (rows < 0) | (own & (rows > following) & (rows <= following + negatives.spare))
    if not negatives.earlier:
        out = out | (own & (rows < following))
    if not negatives.others:
        out = out | ~own
    # A true segment further ahead may lie among those spared; the next one is a negative of none but itself.
    out = out | (own & (rows == following) & (negatives.spare > 0))
    out = out.scatter(1, targets[:, None], False)
    scores = predicted.reshape(-1, width)[wanted].float() @ vectors.reshape(-1, width).float().T
    losses = nn.functional.cross_entropy(scores.masked_fill(out, float("-inf")), targets, reduction="none")
    weights = torch.where(places.openings.reshape(-1)[targets], break_weight, 1.0)
    return (losses * weights).sum() / weights.sum()


class SuffixObjective(nn.Module):  # type: ignore[misc]
    """The loss of a batch of windows, from tokens where the encoder learns, from stored vectors where not."""

    def __init__(
        self,
        network: SuffixLM,
        corpora: dict[str, SegmentCorpus],
        encoded: dict[str, np.memmap[Any, Any]] | None,
        options: SuffixOptions,
    ) -> None:
        super().__init__()
        self.network, self.options = network, options
        self.negatives = Negatives(options.others, options.earlier, options.spare)
        self._corpora, self._encoded = corpora, encoded

    def forward(self, named: tuple[str, WindowBatch]) -> Tensor:
        corpus, batch = named
        device = self.network.positions.weight.device
        found = self.segment_vectors(corpus, batch.rows[batch.rows >= 0].numpy())
        places = WindowBatch(*(table.to(device) for table in batch))
        shape = batch.rows.shape
        vectors = found.new_zeros((*shape, found.shape[-1]))
        vectors[places.rows >= 0] = found
        if not self.training:
            return contrastive_loss(self.network(vectors), vectors, places, self.negatives)
        hidden = self.options.hidden_segments
        seen = torch.rand(shape, device=device) >= hidden if hidden else None
        ahead = torch.randint(1, self.options.horizon + 1, shape, device=device)
        predicted, weight = self.network(vectors, seen), self.options.break_weight
        return contrastive_loss(predicted, vectors, places, self.negatives, ahead=ahead, break_weight=weight)

    def segment_vectors(self, corpus: str, rows: np.ndarray[Any, Any]) -> Tensor:
        """Return the vectors of some rows of a corpus."""
        device = self.network.positions.weight.device
        if self._encoded is not None:
            stored = torch.from_numpy(np.asarray(self._encoded[corpus][rows])).to(device)
            return self.network.vectors(stored)
        ids, mask = tokens_of(self._corpora[corpus], rows, device)
        if self.training and self.options.token_dropout:
            kept = torch.rand(mask.shape, device=device) >= self.options.token_dropout
            kept[:, 0] = True
            mask = mask * kept
        return self.network.vectors(self.network.encode(ids, mask))


def tokens_of(
    corpus: SegmentCorpus, rows: np.ndarray[Any, Any], device: torch.device
) -> tuple[Tensor, Tensor]:
    """Ids and mask of some rows."""
    ids = torch.from_numpy(np.asarray(corpus.rows[rows], dtype=np.int64))
    ids = ids.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else ids
    return ids, (ids != corpus.pad).long()


def encoded_segments(network: SuffixLM, corpus: SegmentCorpus, folder: Path, name: str) -> Any:
    """Return what a frozen encoder makes of each row of a corpus, computed once and mapped into memory.

    The file is named by what it was made from. Vectors of another encoder
    or other rows go; a training that has them mapped keeps them.
    """
    path = folder / f"{name}-vectors-{_vectors_key(network, corpus)}.npy"
    with held(folder):
        if not path.exists():
            with replacing(path) as part:
                _write_vectors(network, corpus, part)
        found = np.load(path, mmap_mode="r")
        for other in folder.glob(f"{name}-vectors*.npy"):
            if other != path:
                other.unlink()
    return found


def _vectors_key(network: SuffixLM, corpus: SegmentCorpus) -> str:
    device = network.positions.weight.device.type
    found = hashlib.sha256(f"{corpus.digest} {network.shape.pooling} {device}".encode())
    for name, value in network.encoder.state_dict().items():
        found.update(name.encode())
        found.update(value.detach().cpu().contiguous().view(torch.uint8).numpy().data)
    return found.hexdigest()[:16]


def _write_vectors(network: SuffixLM, corpus: SegmentCorpus, path: Path) -> None:
    width = int(network.encoder.config.hidden_size)
    table = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=(len(corpus), width))
    device = network.positions.weight.device
    with torch.inference_mode():
        for begin in range(0, len(corpus), ENCODED_AT_ONCE):
            rows = np.arange(begin, min(begin + ENCODED_AT_ONCE, len(corpus)))
            table[rows] = network.encode(*tokens_of(corpus, rows, device)).float().cpu().numpy()
    table.flush()
