"""Collections in which several systems summarise the same articles: SummEval, REALSumm, Newsroom and the like."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ensue.benchmarks.nlu.files import Row
from ensue.benchmarks.qags.files import Entry, json_entries, number, texts
from ensue.errors import EnsueError

# The human scores of each collection, and how many articles and systems are published.
SCORES: Mapping[str, tuple[str, ...]] = {
    "summeval": ("coherence", "consistency", "fluency", "relevance"),
    "realsumm": ("litepyramid_recall",),
    "newsroom": ("coherence", "fluency", "informativeness", "relevance"),
    "qags_cnn": ("fact",),
    "qags_xsum": ("fact",),
    "rank19_falke": ("fact",),
}
SIZES: Mapping[str, tuple[int, int]] = {
    "summeval": (100, 16),
    "realsumm": (100, 24),
    "newsroom": (60, 7),
    "qags_cnn": (235, 1),
    "qags_xsum": (239, 1),
    "rank19_falke": (373, 2),
}


class ScoredSummary(NamedTuple):
    """One system's summary of an article, and what people gave it."""

    system: str
    text: str
    scores: Mapping[str, float]


@dataclass(frozen=True)
class Article:
    """A source, its reference summaries, which may be none, and every system's summary of it."""

    id: str
    source: str
    references: tuple[str, ...]
    summaries: tuple[ScoredSummary, ...]
    where: str = ""


@dataclass(frozen=True)
class Collection:
    """Articles that all have summaries of the same systems, in the same order; notes count what is odd in them."""

    name: str
    articles: tuple[Article, ...]
    scores: tuple[str, ...]
    notes: Mapping[str, int]

    @property
    def systems(self) -> tuple[str, ...]:
        """The systems, in the order of every article's summaries."""
        return tuple(summary.system for summary in self.articles[0].summaries)

    def human(self, score: str) -> NDArray[np.float64]:
        """The human scores of one name, an article a row and a system a column."""
        if score not in self.scores:
            raise EnsueError(f"{self.name} has no score {score!r}; it has {', '.join(self.scores)}.")
        return np.array(
            [[summary.scores[score] for summary in article.summaries] for article in self.articles],
            dtype=np.float64,
        )

    def texts(self) -> list[tuple[str, str]]:
        """Each source with each summary of it, in the order of the flattened `human` table."""
        return [(article.source, summary.text) for article in self.articles for summary in article.summaries]


def read_collection(folder: Path, name: str) -> Collection:
    """One collection of the folder of collections, every fault named by file and line."""
    if name not in SCORES:
        raise EnsueError(f"There is no collection {name!r}; there are {', '.join(SCORES)}.")
    path = folder / f"{name}.json"
    if not path.is_file():
        raise EnsueError(f"{folder} has no {path.name}; name the folder of collections with --data.")
    return read_collection_file(path, name, SCORES[name])


def read_collection_file(path: Path, name: str, scores: Sequence[str]) -> Collection:
    """A collection in the common format, whose summaries have these human scores."""
    notes: Counter[str] = Counter()
    articles: list[Article] = []
    for entry in json_entries(path):
        article = _article(entry, scores, notes)
        articles.append(_in_order(article, articles[0]) if articles else article)
    return Collection(name, tuple(articles), tuple(scores), dict(notes))


def _article(entry: Entry, scores: Sequence[str], notes: Counter[str]) -> Article:
    row = entry.row
    source = row.text("src")
    references = texts(row, "ref_summs") if "ref_summs" in row.fields else (row.text("ref_summ"),)
    # A set that was published without references was stored with the source in their place. A source is no
    # reference: what is compared with it is not what a paper means by ROUGE against references.
    if any(reference == source for reference in references):
        notes["articles whose reference is the source itself, left without"] += 1
        references = tuple(reference for reference in references if reference != source)
    systems = row.inner("sys_summs")
    summaries = tuple(_summary(str(system), systems.inner(system), scores) for system in systems.fields)
    if not summaries:
        row.refuse("no system has summarised the article; take the entry away or add a summary")
    return Article(entry.key, source, references, summaries, row.where)


def _summary(system: str, row: Row, scores: Sequence[str]) -> ScoredSummary:
    given = row.inner("scores")
    return ScoredSummary(system, row.text("sys_summ"), {score: number(given, score) for score in scores})


def _in_order(article: Article, first: Article) -> Article:
    """The article with its summaries in the first one's order of systems, of which it must have the same."""
    mine = {summary.system: summary for summary in article.summaries}
    wanted = [summary.system for summary in first.summaries]
    if set(mine) != set(wanted):
        odd = sorted(set(mine) ^ set(wanted))[0]
        there = "has" if odd in mine else "lacks"
        raise EnsueError(
            f"{article.where}: the article {there} a summary by {odd!r}, unlike the first one ({first.where}); "
            "every article needs the same systems."
        )
    return Article(
        article.id, article.source, article.references, tuple(mine[one] for one in wanted), article.where
    )
