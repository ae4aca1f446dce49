"""Ratings: log-likelihoods of texts and the worst of their sentences, held against what people say of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ensue.benchmarks import settings as read
from ensue.benchmarks.base import DataRun, Outcome, Prepared, PreparedTask, RunContext, Setting, content_of
from ensue.benchmarks.coherence.documents import policy_of, portions, within
from ensue.benchmarks.coherence.rating import (
    BY_SETTING,
    rate_texts,
    rater_of,
    rater_signature,
    read_in_part,
    worth_of_each,
)
from ensue.benchmarks.drawn import ROUNDS, Drawn
from ensue.benchmarks.ratings.data import Rated, RatedTexts, read_rated
from ensue.benchmarks.summaries.metaeval import Correlated, over_summaries, summary_level, system_level
from ensue.errors import EnsueError, RunFailed
from ensue.metrics.correlation import Kind
from ensue.models.protocols import Model, Rater, Scorer, portion_of, require
from ensue.report.figure import Figure
from ensue.report.results import Item, MetricRow
from ensue.scoring.engine import choices
from ensue.scoring.following import Measured, Pieces, measure
from ensue.stats.clustered import clustered_interval
from ensue.stats.ranges import SHARE
from ensue.stats.resampling import cluster_codes, draw_counts
from ensue.text.sentences import language_code, split_lines, split_sentences

MEASURES = ("total", "per_token", "worst_sentence", "tokens")
# Of a model that rates texts; `rating` is what people say.
RATERS_MEASURES = ("model_rating", "sentences")
KINDS: tuple[Kind, ...] = ("spearman", "pearson", "kendall")
# Texts are measured together until what stands before their sentences has so many characters, all held at once.
_ON_CPU, _ELSEWHERE = 1_000_000, 40_000_000

SETTINGS = {
    "rating": Setting(
        "coherence", "column, or human score of a collection, that holds the rating", read.text
    ),
    "joiner": Setting(" ", "what stands between sentences", read.text),
    **BY_SETTING,
    **{name: read.POLICY_SETTINGS[name] for name in ("bos", "max_length", "masked")},
    "split": read.DOCUMENT_SETTINGS["split"],
    "language": read.DOCUMENT_SETTINGS["language"],
}


@dataclass(frozen=True)
class RatingsRun(DataRun[RatedTexts]):
    """The test with its rated texts read and its settings fixed."""

    def evaluate(self, model: Model, context: RunContext) -> Outcome:
        """Measure every text and its sentences, or rate it, and correlate that with people's ratings."""
        rater = rater_of(model, self.settings, "The test of ratings")
        notes: Counter[str] = Counter()
        if rater is not None:
            notes += read_in_part(rater, [one.sentences for one in self.data.items])
            items, tokens, signature = self._by_rating(rater, context), 0, rater_signature(rater)
        else:
            scorer = require(model, Scorer, "The test of ratings")
            items, tokens = self._by_likelihood(scorer, context, notes)
            signature = choices(scorer, policy_of(self.settings))
        rows = list(metric_rows(items, notes))
        if not rows and len({one.rating for one in self.data.items}) > 1:
            raise RunFailed(
                f"{model.card.name} says the same of every text of {self.source}: nothing can be correlated."
            )
        if not rows:
            raise _nothing_to_correlate(self.source)
        return Outcome(
            items=items,
            metrics=rows,
            signature=f"{signature} rating:{self.settings['rating']}",
            skipped={},
            tokens=tokens,
            notes=notes,
        )

    def _by_likelihood(
        self, scorer: Scorer, context: RunContext, notes: Counter[str]
    ) -> tuple[list[Item], int]:
        items: list[Item] = []
        tokens = 0
        most = portion_of(scorer, on_cpu=_ON_CPU, elsewhere=_ELSEWHERE)
        every = self.data.items
        for few in portions(every, lambda one: sum(map(len, one.sentences)) * len(one.sentences), most):
            measured, scored = measure(
                scorer,
                [Pieces.joined(one.sentences, self.settings["joiner"]) for one in few],
                policy=policy_of(self.settings),
                journal=context.journal,
                progress=within(context.progress, len(items), len(few), len(every), "texts"),
            )
            items += [_measured_item(one, found) for one, found in zip(few, measured, strict=True)]
            tokens += scored.tokens
            notes.update(scored.notes)
        return items, tokens

    def _by_rating(self, rater: Rater, context: RunContext) -> list[Item]:
        """Rate every text and, where readers marked sentences, the text without each."""
        every = self.data.items
        ratings = rate_texts(rater, [one.sentences for one in every], context)
        marked = [one for one in every if one.marks and len(one.sentences) > 1]
        found = worth_of_each(rater, [one.sentences for one in marked], context) if marked else []
        worth = dict(zip((one.id for one in marked), found, strict=True))
        return [
            _item(one, {"model_rating": value, "sentences": len(one.sentences)}, worth.get(one.id, []))
            for one, value in zip(every, ratings, strict=True)
        ]


def _measured_item(rated: Rated, measured: Measured) -> Item:
    gains = [one.gain for one in measured.sentences]
    known = [gain for gain in gains if gain is not None]
    measures = {
        "total": measured.whole.logprob,
        "per_token": measured.whole.logprob_per_token,
        "tokens": measured.whole.tokens,
        # A text of one sentence has none that could fail to follow.
        "worst_sentence": min(known, default=None),
    }
    return _item(rated, measures, gains)


def _item(rated: Rated, measures: Mapping[str, float | None], gains: Sequence[float | None]) -> Item:
    return Item(
        id=rated.id,
        cluster=rated.group,
        task="ratings",
        settings={},
        scores={},
        outputs={
            "rating": rated.rating,
            "system": rated.system,
            **measures,
            "gains": list(gains),
            "marks": list(rated.marks) if gains else [],
        },
        content=content_of(rated.sentences, rated.rating),
    )


def metric_rows(items: Sequence[Item], notes: Counter[str]) -> Iterator[MetricRow]:
    """Yield the correlations of each measure over all texts and, where all were written by the same systems, over
    systems and within groups; how often it agrees which of two texts of a group is better; and where sentences are
    marked, how well the profile finds them."""
    measures = [name for name in (*MEASURES, *RATERS_MEASURES) if name in items[0]["outputs"]]
    for name in measures:
        chosen = [item for item in items if item["outputs"][name] is not None]
        if len(chosen) < len(items):
            notes["texts of one sentence, left out of worst_sentence"] = len(items) - len(chosen)
        for level, found in _levels(chosen, name):
            for kind in KINDS:
                if kind in found.figures:
                    settings = {"measure": name, "level": level}
                    yield found.figures[kind].row("ratings", kind, settings)
        pairs = pairs_of(chosen, name)
        if pairs is not None:
            yield pairs.row("ratings", "accuracy", {"measure": name, "level": "pairs"})
    marked = [item for item in items if item["outputs"]["marks"]]
    drawn = auc_of(marked)
    if drawn is not None:
        yield drawn.row("ratings", "auc", {"measure": "gain of a sentence"})


class JudgedPair(NamedTuple):
    """Two texts of a group that people rate differently, and how right a measure is about which is better."""

    group: str
    items: tuple[Item, Item]
    right: float


def judged_pairs(items: Sequence[Item], name: str) -> Iterator[JudgedPair]:
    """Yield every such pair; where the measure says the same of both texts, it is half right."""
    groups: dict[str, list[Item]] = {}
    for item in items:
        groups.setdefault(item["cluster"], []).append(item)
    for group, own in groups.items():
        for first, second in combinations(own, 2):
            people = first["outputs"]["rating"] - second["outputs"]["rating"]
            model = first["outputs"][name] - second["outputs"][name]
            if people:
                right = 0.5 if model == 0 else float((model > 0) == (people > 0))
                yield JudgedPair(group, (first, second), right)


def pairs_of(items: Sequence[Item], name: str) -> Figure | None:
    """Return of how many pairs the measure agrees with people, over groups; None where there is no pair."""
    pairs = list(judged_pairs(items, name))
    if not pairs:
        return None
    values, groups = [pair.right for pair in pairs], [pair.group for pair in pairs]
    return Figure(*clustered_interval(values, groups, bounds=SHARE))


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


def _prepare(task: str, data: str | None, limit: int | None, seed: int, settings: dict[str, Any]) -> Prepared:
    read.refuse_task("ratings", task)
    lines = settings["split"] == "lines"
    split = split_lines if lines else partial(split_sentences, language=language_code(settings["language"]))
    rated = read_rated(data, settings["rating"], split, limit)
    # Before a model reads anything.
    if len({one.rating for one in rated.items}) < 2 and not any(any(one.marks) for one in rated.items):
        raise _nothing_to_correlate(rated.source)
    return RatingsRun(rated, settings)


def _nothing_to_correlate(source: str) -> EnsueError:
    return EnsueError(f"{source} has too few texts, or all have one rating: nothing can be correlated.")


TASK = PreparedTask(SETTINGS, _prepare)
