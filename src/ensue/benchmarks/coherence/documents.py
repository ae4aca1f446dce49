"""Documents as the tasks on the order of their sentences use them: cut, long enough, a few at a time, and seeded."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, TypeVar

from ensue.benchmarks import settings as read
from ensue.benchmarks.base import Prepared, Setting
from ensue.benchmarks.coherence.rating import BY_SETTING, rater_of, rater_signature
from ensue.errors import EnsueError
from ensue.models.protocols import Model, Scorer
from ensue.models.request import Policy
from ensue.progress import Progress
from ensue.scoring.engine import choices
from ensue.shelf import Shelf
from ensue.text.documents import Document, Documents

Given = TypeVar("Given")


@dataclass(frozen=True)
class DocumentsRun:
    """A test with its documents read and its settings fixed; a benchmark adds how a model is evaluated."""

    documents: Documents
    seed: int
    settings: dict[str, Any]

    @property
    def fingerprint(self) -> str:
        return self.documents.fingerprint

    @property
    def source(self) -> str:
        return self.documents.source


@dataclass(frozen=True)
class DocumentsTask:
    """A test on documents that has no tasks of its own: its name, its settings, and what evaluates a model."""

    name: str
    settings: Mapping[str, Setting]
    run: Callable[[Documents, int, dict[str, Any]], Prepared]

    def prepare(
        self, task: str, data: str | None, limit: int | None, seed: int, settings: dict[str, Any]
    ) -> Prepared:
        """Read the documents as the settings say."""
        return self.run(read.documents_of(self.name, task, data, limit, settings), seed, settings)


def sentence_settings(most: int, fewest: int) -> dict[str, Setting]:
    """Return the settings of a task on documents of `fewest` sentences or more, cut after `most` unless told."""
    return {
        "max_sentences": Setting(
            most,
            "keep only the first N sentences of a document (none: all)",
            read.optional(read.whole(fewest)),
        ),
        "joiner": Setting(" ", "what stands between sentences", read.text),
        **BY_SETTING,
        **{name: read.POLICY_SETTINGS[name] for name in ("bos", "max_length", "masked")},
        **read.DOCUMENT_SETTINGS,
    }


def policy_of(settings: Mapping[str, Any]) -> Policy:
    """Return how texts are scored: in windows where they are too long, contexts cut at their beginning."""
    return Policy(
        window="strided",
        overflow="truncate",
        bos=settings["bos"],
        max_length=settings["max_length"],
        masked=settings["masked"],
    )


def model_signature(model: Model, settings: Mapping[str, Any]) -> str:
    """Return what a signature says of a model that scores text, rates it, or only encodes it."""
    rater = rater_of(model, settings, "This")
    if rater is not None:
        return rater_signature(rater)
    if isinstance(model, Scorer):
        return choices(model, policy_of(settings))
    return f"model:{model.card.signed_name} weights:{model.card.identity.get('weights', '-')[:12]}"


def documents_signature(settings: Mapping[str, Any], seed: int) -> str:
    """Return what a signature says of how documents are cut and joined."""
    joiner = settings["joiner"].encode("unicode_escape").decode()
    return f"sentences:{settings['max_sentences']} joiner:'{joiner}' seed:{seed}"


def long_enough(
    documents: Documents, settings: Mapping[str, Any], fewest: int
) -> tuple[Sequence[Document], Counter[str], Counter[str]]:
    """Return documents cut to the limit without those too short, what was left out, and how many were cut."""
    limit = settings["max_sentences"]
    skipped, notes = Counter(documents.skipped), Counter[str]()
    found: Shelf[Document] = Shelf()
    for document in documents.items:
        if len(document.sentences) < fewest:
            skipped[f"documents of fewer than {fewest} sentences"] += 1
            continue
        if limit is not None and len(document.sentences) > limit:
            notes[f"documents cut to {limit} sentences"] += 1
        found.append(Document(document.id, document.sentences[:limit], document.domain))
    return found, skipped, notes


def some_long_enough(
    documents: Documents, settings: Mapping[str, Any], fewest: int
) -> tuple[Sequence[Document], Counter[str], Counter[str]]:
    """Do the same, but refuse documents of which none is long enough."""
    found = long_enough(documents, settings, fewest)
    if not found[0]:
        raise EnsueError(
            f"No document of {documents.source} has {fewest} sentences or more, as this test needs."
        )
    return found


# What chance decides: which sentences are taken out first, and in which order sentences are laid out.
REMOVED, ORDERING = "removed", "ordering"


def generator_of(seed: int, document: Document, *what: str) -> Random:
    """Return random numbers that depend on the run's seed, the document and what they are for alone."""
    words = "\0".join([str(seed), document.id, *what])
    return Random(hashlib.sha256(words.encode("utf-8", "surrogatepass")).digest())


def shuffled_numbers(seed: int, document: Document, what: str) -> list[int]:
    """Return the numbers of a document's sentences in an order of chance, for people the same as for models."""
    numbers = list(range(len(document.sentences)))
    generator_of(seed, document, what).shuffle(numbers)
    return numbers


def portions(things: Iterable[Given], size: Callable[[Given], int], most: int) -> Iterator[list[Given]]:
    """Divide things so that each portion has a size of at most `most`, or is one thing.

    >>> list(portions([3, 3, 9, 1], lambda number: number, 7))
    [[3, 3], [9], [1]]
    """
    few: list[Given] = []
    total = 0
    for thing in things:
        total += size(thing)
        if few and total > most:
            yield few
            few, total = [], size(thing)
        few.append(thing)
    if few:
        yield few


def within(progress: Progress, begin: int, count: int, total: int, unit: str) -> Progress:
    """Report progress in `unit` of which this portion has `count`, out of that of the portion in tokens."""
    return lambda done, of, _: progress(begin + (count * done // of if of else count), total, unit)


def of_steps(progress: Progress, done: int, steps: int) -> Progress:
    """Report the progress of one step out of that of all, `done` of which are behind it."""
    return lambda now, of, unit: progress(done * 100 + (100 * now // of if of else 100), 100 * steps, unit)
