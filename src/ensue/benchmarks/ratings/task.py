"""Ratings: log-likelihoods of texts and the worst of their sentences, held against what people say of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from ensue.benchmarks import settings as read
from ensue.benchmarks.base import Outcome, Prepared, RunContext, Setting, content_of
from ensue.benchmarks.coherence.documents import policy_of, portions, within
from ensue.benchmarks.drawn import ROUNDS, Drawn
from ensue.benchmarks.qags.metaeval import Correlated, over_summaries, summary_level, system_level
from ensue.benchmarks.ratings.data import Rated, RatedTexts, read_rated
from ensue.errors import EnsueError
from ensue.metrics.correlation import Kind
from ensue.models.protocols import Model, Scorer, portion_of, require
from ensue.report.results import Item, MetricRow
from ensue.scoring.engine import choices
from ensue.scoring.following import Measured, Pieces, measure
from ensue.stats.ranges import SHARE
from ensue.stats.resampling import cluster_codes, draw_counts
from ensue.text.sentences import split_lines, split_sentences

MEASURES = ("total", "per_token", "worst_sentence", "tokens")
KINDS: tuple[Kind, ...] = ("spearman", "pearson", "kendall")
# Texts are measured together until what stands before their sentences has so many characters, all held at once.
_ON_CPU, _ELSEWHERE = 1_000_000, 40_000_000

SETTINGS = {
    "rating": Setting(
        "coherence", "column, or human score of a collection, that holds the rating", read.text
    ),
    "joiner": Setting(" ", "what stands between sentences", read.text),
    **{name: read.POLICY_SETTINGS[name] for name in ("bos", "max_length", "masked")},
    "split": read.DOCUMENT_SETTINGS["split"],
    "language": read.DOCUMENT_SETTINGS["language"],
}


@dataclass(frozen=True)
class RatingsRun:
    """The test with its rated texts read and its settings fixed."""

    texts: RatedTexts
    settings: dict[str, Any]

    @property
    def fingerprint(self) -> str:
        return self.texts.fingerprint

    @property
    def source(self) -> str:
        return self.texts.source

    def evaluate(self, model: Model, context: RunContext) -> Outcome:
        """Measure every text and its sentences, and correlate that with the ratings."""
        scorer = require(model, Scorer, "The test of ratings")
        items: list[Item] = []
        notes: Counter[str] = Counter()
        tokens = 0
        most = portion_of(scorer, on_cpu=_ON_CPU, elsewhere=_ELSEWHERE)
        every = self.texts.items
        for few in portions(every, lambda one: sum(map(len, one.sentences)) * len(one.sentences), most):
            measured, scored = measure(
                scorer,
                [Pieces.joined(one.sentences, self.settings["joiner"]) for one in few],
                policy=policy_of(self.settings),
                journal=context.journal,
                progress=within(context.progress, len(items), len(few), len(every), "texts"),
            )
            items += [_item(one, found) for one, found in zip(few, measured, strict=True)]
            tokens += scored.tokens
            notes.update(scored.notes)
        rows = list(metric_rows(items, notes))
        if not rows:
            raise EnsueError(
                f"{self.source} has too few texts, or all have one rating: nothing can be correlated."
            )
        return Outcome(
            items=items,
            metrics=rows,
            signature=f"{choices(scorer, policy_of(self.settings))} rating:{self.settings['rating']}",
            skipped={},
            tokens=tokens,
            notes=notes,
        )


def _item(rated: Rated, measured: Measured) -> Item:
    gains = [one.gain for one in measured.sentences]
    known = [gain for gain in gains if gain is not None]
    return Item(
        id=rated.id,
        cluster=rated.group,
        task="ratings",
        settings={},
        scores={},
        outputs={
            "rating": rated.rating,
            "system": rated.system,
            "total": measured.whole.logprob,
            "per_token": measured.whole.logprob_per_token,
            "tokens": measured.whole.tokens,
            # A text of one sentence has none that could fail to follow.
            "worst_sentence": min(known, default=None),
            "gains": gains,
            "marks": list(rated.marks),
        },
        content=content_of(rated.sentences, rated.rating),
    )


def metric_rows(items: Sequence[Item], notes: Counter[str]) -> Iterator[MetricRow]:
    """Yield the correlations of each measure over all texts and, where all were written by the same systems, over
    systems and within groups; and where sentences are marked, how well the profile finds them."""
    for name in MEASURES:
        chosen = [item for item in items if item["outputs"][name] is not None]
        if len(chosen) < len(items):
            notes["texts of one sentence, left out of worst_sentence"] = len(items) - len(chosen)
        for level, found in _levels(chosen, name):
            for kind in KINDS:
                if kind in found.figures:
                    settings = {"measure": name, "level": level}
                    yield found.figures[kind].row("ratings", kind, settings)
    marked = [item for item in items if any(item["outputs"]["marks"])]
    drawn = auc_of(marked)
    if drawn is not None:
        yield drawn.row("ratings", "auc", {"measure": "gain of a sentence"})


def _levels(items: Sequence[Item], name: str) -> Iterator[tuple[str, Correlated]]:
    if len(items) < 2:
        return
    x = [item["outputs"][name] for item in items]
    y = [item["outputs"]["rating"] for item in items]
    yield "texts", over_summaries(x, y, [item["cluster"] for item in items])
    table = _table(items)
    if table is not None:
        values, ratings = (
            np.asarray([[row["outputs"][key] for row in rows] for rows in table]) for key in (name, "rating")
        )
        yield "systems", system_level(values, ratings)
        yield "within groups", summary_level(values, ratings)


def _table(items: Sequence[Item]) -> list[list[Item]] | None:
    """Return the items as groups × systems; None where groups do not all have a text of each of several systems."""
    groups: dict[str, dict[str, Item]] = {}
    for item in items:
        groups.setdefault(item["cluster"], {})[item["outputs"]["system"]] = item
    systems = sorted({item["outputs"]["system"] for item in items})
    whole = all(sorted(group) == systems for group in groups.values())
    if not whole or len(systems) < 2 or len(groups) < 2 or len(groups) * len(systems) != len(items):
        return None
    return [[group[system] for system in systems] for group in groups.values()]


def auc_of(items: Sequence[Mapping[str, Any]]) -> Drawn | None:
    """Return how often a marked sentence gains less from the text before it than another one, ties half.

    Texts are resampled whole. None where no sentence that has a gain is marked, or all are.
    """
    values, marks, clusters = [], [], []
    for item in items:
        for gain, mark in zip(item["outputs"]["gains"], item["outputs"]["marks"], strict=True):
            if gain is not None:
                values.append(gain)
                marks.append(mark)
                clusters.append(item["id"])
    marked = np.asarray(marks, dtype=bool)
    if not marked.any() or marked.all():
        return None
    gains, codes = np.asarray(values), cluster_codes(clusters, len(values))
    low, high = gains[marked], gains[~marked]
    below = (low[:, None] < high[None]) + 0.5 * (low[:, None] == high[None])
    units = int(codes.max()) + 1
    counts = draw_counts(units, ROUNDS, np.random.default_rng(0))[:, codes]
    a, b = counts[:, marked], counts[:, ~marked]
    draws = _shares(a, b, below)
    return Drawn(float(below.mean()), draws, len(values), units, SHARE)


def _shares(
    a: npt.NDArray[np.float64], b: npt.NDArray[np.float64], below: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    """Return the share of pairs below in each round, nan where a round drew none of one side."""
    weight = a.sum(axis=1) * b.sum(axis=1)
    return np.asarray(np.einsum("ij,ij->i", a @ below, b) / np.where(weight, weight, np.nan))


class RatingsTask:
    """Make and judge the items of the benchmark."""

    settings = SETTINGS

    def prepare(
        self, task: str, data: str | None, limit: int | None, seed: int, settings: dict[str, Any]
    ) -> Prepared:
        if task:
            raise EnsueError(f"ratings has no tasks, so there is no ratings/{task}.")
        lines = settings["split"] == "lines"
        split = split_lines if lines else partial(split_sentences, language=settings["language"])
        return RatingsRun(read_rated(data, settings["rating"], split, limit), settings)


TASK = RatingsTask()
