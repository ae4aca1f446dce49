"""What a grid model learns from: documents and their shuffled versions, divided by document."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from ensue.backends.grid.grid import Grid, GridForm, build_grid
from ensue.backends.grid.mentions import PARSER
from ensue.errors import EnsueError
from ensue.progress import Progress, ignore
from ensue.text.documents import Document, read_documents
from ensue.train.documents import ChosenIds
from ensue.train.shuffling import Shuffling, drawn_orders

ALL = ChosenIds(None, None)


class GridOrders(NamedTuple):
    """A document's grid, and the orders of its sentences that are to be rated lower."""

    id: str
    grid: Grid
    orders: tuple[tuple[int, ...], ...]

    def versions(self) -> Iterator[Grid]:
        """Yield the grid of each shuffled version."""
        return (self.grid.reordered(order) for order in self.orders)


class Examples(NamedTuple):
    """Examples to train on and others to try the model on; counts of what was left out, and a digest of all."""

    train: list[GridOrders]
    dev: list[GridOrders]
    skipped: dict[str, int]
    digest: str


def read_examples(
    sources: Sequence[str],
    form: GridForm,
    shuffling: Shuffling,
    *,
    dev_share: float,
    chosen: ChosenIds = ALL,
    progress: Progress = ignore,
    **reading: Any,
) -> Examples:
    """Read documents, hold some out, and make the grids of all; every version of a document is on its side.

    `reading` is handed to `read_documents`. A document whose sentences another one has is left out, or it might be on
    both sides.
    """
    skipped: Counter[str] = Counter()
    kept: dict[tuple[str, ...], Document] = {}
    seen: set[str] = set()
    for source in sources:
        documents = read_documents(source, **reading)
        skipped.update(documents.skipped)
        for document in documents:
            sentences = document.sentences[: shuffling.max_sentences]
            seen.add(document.id)
            if not chosen.wants(document.id):
                skipped["documents not asked for"] += 1
            elif len(sentences) < 2:
                skipped["documents of one sentence"] += 1
            elif sentences in kept:
                skipped["documents that are there twice"] += 1
            else:
                kept[sentences] = document
    chosen.check(seen)
    orders = {sentences: drawn_orders(sentences, each.id, shuffling) for sentences, each in kept.items()}
    usable = [sentences for sentences, found in orders.items() if found]
    if alike := len(orders) - len(usable):
        skipped["documents with no other order"] += alike
    if len(usable) < 2:
        raise EnsueError(
            f"Training a grid needs two documents or more that can be shuffled, one of them to hold out; "
            f"{' and '.join(sources)} has {len(usable)}."
        )
    held = _held_out(usable, dev_share, shuffling.seed)
    parsed = PARSER.parse((sentence for text in usable for sentence in text), progress)
    made = {
        text: GridOrders(kept[text].id, build_grid([parsed[each] for each in text], form), orders[text])
        for text in usable
    }
    return Examples(
        [made[text] for text in usable if text not in held],
        [made[text] for text in usable if text in held],
        dict(skipped),
        _digest(repr([usable, list(orders.values())])),
    )


def _held_out(texts: Sequence[tuple[str, ...]], share: float, seed: int) -> set[tuple[str, ...]]:
    """Choose so many texts, one at least and not all, by digests that hang on the seed and the text alone."""
    count = min(max(round(share * len(texts)), 1), len(texts) - 1)
    return set(sorted(texts, key=lambda text: _digest(f"{seed}\0" + "\0".join(text)))[:count])


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def document_accuracy(margins: Iterable[Sequence[float]]) -> float:
    """Return how often a document is rated above its versions, the mean over documents; a tie counts half."""
    shares = []
    for each in margins:
        values = np.asarray(each)
        shares.append(float(np.mean((values > 0) + 0.5 * (values == 0))))
    return float(np.mean(shares))


def counts_of(examples: Examples) -> dict[str, object]:
    """Return how many documents and pairs there are on either side, and what was left out."""
    sides = {"train": examples.train, "dev": examples.dev}
    return {
        **{
            name: {"documents": len(side), "pairs": sum(len(each.orders) for each in side)}
            for name, side in sides.items()
        },
        "skipped": examples.skipped,
    }
