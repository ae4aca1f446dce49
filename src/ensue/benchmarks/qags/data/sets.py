"""The sets of human judgments a metric is held against, each as pairs of texts with what people said."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ensue.benchmarks.qags.data.files import (
    JudgedSummary,
    Triplet,
    read_collection,
    read_judgments,
    read_triplets,
)
from ensue.benchmarks.qags.pipeline import Pair
from ensue.errors import EnsueError

# The folder each set lies in within the data folder, and its file.
PLACES: Mapping[str, tuple[str, str]] = {
    "cnndm": ("qags", "mturk_cnndm.jsonl"),
    "xsum": ("qags", "mturk_xsum.jsonl"),
    "falke": ("falke2019", "val_sentence_pairs.json"),
    "summeval": ("summeval", "summeval.json"),
    "realsumm": ("summeval", "realsumm.json"),
    "newsroom": ("summeval", "newsroom.json"),
    # What people said in a project of ours, as QAGS's own files have it.
    "own": ("qags", "judgments.jsonl"),
}
SETS = ("cnndm", "xsum", "falke", "summeval", "realsumm")
# The human scores of each collection.
SCORES: Mapping[str, tuple[str, ...]] = {
    "summeval": ("coherence", "consistency", "fluency", "relevance"),
    "realsumm": ("litepyramid_recall",),
    "newsroom": ("coherence", "fluency", "informativeness", "relevance"),
}
# The one human score that stands for a collection; SummEval and Newsroom have others beside it.
MAIN_SCORE: Mapping[str, str] = {
    "summeval": "consistency",
    "realsumm": "litepyramid_recall",
    "newsroom": "relevance",
}
CONSISTENCY = "consistency"
# The set whose articles begin with their reference: XSum's was the article's head before it was taken away as the
# summary, and was put back for the judgments (§4.5.1). It is one sentence. CNN/DM's references are not in the data.
REFERENCE_FIRST = "xsum"


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
    judged: tuple[JudgedSummary, ...] = ()
    triplets: tuple[Triplet, ...] = ()
    notes: Mapping[str, int] = field(default_factory=dict)

    def content(self, place: int) -> tuple[object, ...]:
        """Return what a pair is made of; of the human scores the main one, whichever others were asked for."""
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
    """Read the named sets, or all that are there, of each the first `limit` summaries (articles, of collections)."""
    root = Path(folder).expanduser()
    if not root.is_dir():
        raise EnsueError(f"{root} is not a folder; name the one that holds qags, falke2019 and summeval.")
    found, missing = [], []
    digest = hashlib.sha256()
    for name in names or SETS:
        path = find_set(root, name)
        if path is None:
            missing.append(name)
            continue
        found.append(_read_set(path, name, limit, every_score))
        digest.update(f"{name}\n{hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    if names and missing:
        place, file = PLACES[missing[0]]
        raise EnsueError(
            f"{root} has no {file}, also not in {place}; leave {missing[0]} out of sets or put it there."
        )
    if not found:
        raise EnsueError(f"{root} holds none of {', '.join(SETS)}; name another folder with --data.")
    return JudgedSets(tuple(found), digest.hexdigest(), str(root), tuple(missing))


def find_set(root: Path, name: str) -> Path | None:
    """Return where a set lies in a folder, if it does."""
    folder, file = PLACES[name]
    return next((path for path in (root / folder / file, root / file) if path.is_file()), None)


def _read_set(path: Path, name: str, limit: int | None, every_score: bool) -> JudgedSet:
    if name in SCORES:
        return _collection(path, name, limit, SCORES[name] if every_score else (MAIN_SCORE[name],))
    return _triplets(path, name, limit) if name == "falke" else _judgments(path, name, limit)


def _judgments(path: Path, name: str, limit: int | None) -> JudgedSet:
    judged = tuple(read_judgments(path, name)[:limit])
    first = name == REFERENCE_FIRST
    return JudgedSet(
        name,
        tuple(one.id for one in judged),
        tuple(one.id for one in judged),
        tuple(Pair(one.article, one.text) for one in judged),
        tuple((one.first_sentence,) if first else () for one in judged),
        {CONSISTENCY: tuple(one.consistency for one in judged)},
        judged=judged,
        notes={f"{name}: references that are the first sentence of the article": len(judged)}
        if first
        else {},
    )


def _triplets(path: Path, name: str, limit: int | None) -> JudgedSet:
    triplets = tuple(read_triplets(path)[:limit])
    # Two entries may be of the same sentences, so the number is what tells them apart.
    ids = [f"falke-{number}-{one.id}" for number, one in enumerate(triplets)]
    return JudgedSet(
        name,
        tuple(f"{id}-{kind}" for id in ids for kind in ("consistent", "inconsistent")),
        tuple(one.cluster for one in triplets for _ in range(2)),
        tuple(Pair(one.source, text) for one in triplets for text in (one.consistent, one.inconsistent)),
        ((),) * (2 * len(triplets)),
        {CONSISTENCY: (1.0, 0.0) * len(triplets)},
        triplets=triplets,
    )


def _collection(path: Path, name: str, limit: int | None, kept: Sequence[str]) -> JudgedSet:
    read = read_collection(path, SCORES[name])
    written = [(article, one) for article in read.articles[:limit] for one in article.summaries]
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
