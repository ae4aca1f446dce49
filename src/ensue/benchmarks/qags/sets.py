"""The sets of human judgments a metric is held against, each as pairs of texts with what people said."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ensue.benchmarks.qags import data, falke, summaries
from ensue.benchmarks.qags.judgments import human_consistency
from ensue.benchmarks.qags.pipeline import Pair
from ensue.benchmarks.qags.ranking import pairs as pairs_of_triplets
from ensue.errors import EnsueError

# The folder each set lies in within the data folder, and its file.
PLACES: Mapping[str, tuple[str, str]] = {
    "cnndm": ("qags", data.FILES["cnndm"]),
    "xsum": ("qags", data.FILES["xsum"]),
    "falke": ("falke2019", falke.PAIRS),
    "summeval": ("summeval", "summeval.json"),
    "realsumm": ("summeval", "realsumm.json"),
    "newsroom": ("summeval", "newsroom.json"),
}
SETS = ("cnndm", "xsum", "falke", "summeval", "realsumm")
# The one human score that stands for a collection; SummEval and Newsroom have others beside it.
MAIN_SCORE: Mapping[str, str] = {
    "summeval": "consistency",
    "realsumm": "litepyramid_recall",
    "newsroom": "relevance",
}
CONSISTENCY = "consistency"


@dataclass(frozen=True)
class JudgedSet:
    """Pairs with their ids, clusters (articles), references and human scores, all in one order.

    `systems` names who wrote an article's summaries, in the order they come, where several did; `judged` and
    `triplets` are there where the set has them.
    """

    name: str
    ids: tuple[str, ...]
    clusters: tuple[str, ...]
    pairs: tuple[Pair, ...]
    references: tuple[tuple[str, ...], ...]
    human: Mapping[str, tuple[float, ...]]
    systems: tuple[str, ...] = ()
    judged: tuple[data.JudgedSummary, ...] = ()
    triplets: tuple[falke.Triplet, ...] = ()
    notes: Mapping[str, int] = field(default_factory=dict)

    def content(self, place: int) -> tuple[object, ...]:
        """What a pair is made of; of the human scores the main one, whichever others were asked for."""
        main = self.human[MAIN_SCORE.get(self.name, CONSISTENCY)]
        return *self.pairs[place], self.references[place], main[place]

    @property
    def has_references(self) -> bool:
        return all(self.references)


@dataclass(frozen=True)
class JudgedSets:
    """The sets that were found, a digest of their files, and those that were not there."""

    sets: tuple[JudgedSet, ...]
    fingerprint: str
    source: str
    missing: tuple[str, ...]


def read_sets(
    folder: str, names: Sequence[str] | None, limit: int | None, *, every_score: bool = False
) -> JudgedSets:
    """The named sets, or all that are there, of each the first `limit` summaries (articles, where several wrote)."""
    root = Path(folder).expanduser()
    if not root.is_dir():
        raise EnsueError(f"{root} is not a folder; name the one that holds qags, falke2019 and summeval.")
    found, missing = [], []
    digest = hashlib.sha256()
    for name in names or SETS:
        path = _file(root, name)
        if path is None:
            missing.append(name)
            continue
        found.append(_READERS[name](path.parent, name, limit, every_score))
        digest.update(f"{name}\n{hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    if names and missing:
        place, file = PLACES[missing[0]]
        raise EnsueError(
            f"{root} has no {file}, also not in {place}; leave {missing[0]} out of sets or put it there."
        )
    if not found:
        raise EnsueError(f"{root} holds none of {', '.join(SETS)}; name another folder with --data.")
    return JudgedSets(tuple(found), digest.hexdigest(), str(root), tuple(missing))


def _file(root: Path, name: str) -> Path | None:
    folder, file = PLACES[name]
    return next((path for path in (root / folder / file, root / file) if path.is_file()), None)


def _judgments(folder: Path, name: str, limit: int | None, every_score: bool) -> JudgedSet:
    judged = tuple(data.read_judgments(folder, name)[:limit])
    first = name in data.REFERENCE_FIRST
    return JudgedSet(
        name,
        tuple(one.id for one in judged),
        tuple(one.id for one in judged),
        tuple(Pair(one.article, one.text) for one in judged),
        tuple((one.first_sentence,) if first else () for one in judged),
        {CONSISTENCY: tuple(human_consistency(judged).tolist())},
        judged=judged,
        notes={f"{name}: references that are the first sentence of the article": len(judged)}
        if first
        else {},
    )


def _triplets(folder: Path, name: str, limit: int | None, every_score: bool) -> JudgedSet:
    triplets = tuple(falke.read_triplets(folder)[:limit])
    pairs = tuple(Pair(*pair) for pair in pairs_of_triplets(triplets))
    # Two entries may be of the same sentences, so the number is what tells them apart.
    ids = [f"falke-{number}-{one.id}" for number, one in enumerate(triplets)]
    return JudgedSet(
        name,
        tuple(f"{id}-{kind}" for id in ids for kind in ("consistent", "inconsistent")),
        tuple(one.cluster for one in triplets for _ in range(2)),
        pairs,
        tuple(() for _ in pairs),
        {CONSISTENCY: tuple(value for _ in triplets for value in (1.0, 0.0))},
        triplets=triplets,
    )


def _collection(folder: Path, name: str, limit: int | None, every_score: bool) -> JudgedSet:
    read = summaries.read_collection(folder, name)
    articles = read.articles[:limit]
    kept = read.scores if every_score else (MAIN_SCORE[name],)
    written = [(article, one) for article in articles for one in article.summaries]
    return JudgedSet(
        name,
        tuple(f"{name}-{article.id}-{one.system}" for article, one in written),
        tuple(article.id for article, _ in written),
        tuple(Pair(article.source, one.text) for article, one in written),
        tuple(article.references for article, _ in written),
        {score: tuple(one.scores[score] for _, one in written) for score in kept},
        systems=read.systems,
        notes=read.notes,
    )


_READERS: Mapping[str, Callable[[Path, str, int | None, bool], JudgedSet]] = {
    "cnndm": _judgments,
    "xsum": _judgments,
    "falke": _triplets,
    "summeval": _collection,
    "realsumm": _collection,
    "newsroom": _collection,
}
