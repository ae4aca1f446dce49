"""What every task of GLUE and SuperGLUE is made of: its description, its examples, its splits."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

# single      one sentence                        texts: (sentence,)
# pair        two texts                           texts: (first, second); BoolQ: (passage, question)
# score       two texts and a number              texts: (first, second)
# choice      which of the choices follows        texts: (premise, "cause" or "effect"), choices: the alternatives
# answers     is this a right answer?             texts: (passage, question, answer), group: the question
# entity      which entity fills the gap          texts: (passage, query with "@placeholder"), choices: the entities
# word        one word in two sentences           texts: (first, second), spans: the word in each
# coreference do two mentions corefer?            texts: (text,), spans: the noun phrase, then the pronoun
Form = Literal["single", "pair", "score", "choice", "answers", "entity", "word", "coreference"]

TRAIN, DEV, TEST = "train", "dev", "test"
# MNLI has two more; a split that is not called train is for judging.
DEV_MISMATCHED, TEST_MISMATCHED = "dev-mismatched", "test-mismatched"
# A part of the training set, to judge a task by that has nothing else.
HELD_OUT = "held-out"

# The coarse categories of the diagnostic sets; each has fine tags.
COARSE = ("Lexical Semantics", "Predicate-Argument Structure", "Logic", "Knowledge")

# A label of the task, a score (STS-B), or an entity's surface form (ReCoRD).
Prediction = str | float


class TextSpan(NamedTuple):
    """Characters `start` to `end` of the example's text number `text`."""

    text: int
    start: int
    end: int


@dataclass(frozen=True)
class Example:
    """One question to a system.

    `id` is unique within a split and is what a submission names the example by (MultiRC: passage-question-answer;
    elsewhere the official index). `gold` is a label, a score, all right surface forms (ReCoRD), or None where the
    split has no labels. Examples of one `group` are judged together (MultiRC's question, AX-g's pair). `cluster` is
    what intervals resample (MultiRC: the passage). `tags` are the diagnostic's fine tags by coarse category.
    `where` names file and line for error messages.
    """

    id: str
    texts: tuple[str, ...]
    gold: str | float | tuple[str, ...] | None = None
    choices: tuple[str, ...] = ()
    spans: tuple[TextSpan, ...] = ()
    group: str = ""
    cluster: str = ""
    tags: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    where: str = ""

    @property
    def judged_with(self) -> str:
        return self.group or self.id

    @property
    def resampled_with(self) -> str:
        return self.cluster or self.judged_with


def split_tags(text: str) -> tuple[str, ...]:
    """Divide the fine tags of a category, several of which are joined by semicolons."""
    return tuple(tag.strip() for tag in text.split(";") if tag.strip())


def either_way(texts: tuple[str, ...]) -> str:
    """Return a cluster for a pair and its reverse, which a diagnostic set holds both of."""
    return "pair-" + hashlib.sha256("\n".join(sorted(texts)).encode()).hexdigest()[:16]


@dataclass(frozen=True)
class TaskSpec:
    """A task as the paper describes it; names are those of the data folders.

    `labels` are spelled as submissions spell them, in the order of class numbers; empty for scores, choices of
    entities. `metrics` are the names of design.md. `sizes` are the published numbers of examples by split.
    `submission` is its file in the official zip (MNLI: of the matched section). A task with `answered_by` has no
    training set of its own: the classifier of that task answers it. Only a task `in_score` counts in the
    benchmark's score.
    """

    name: str
    suite: Literal["glue", "superglue"]
    form: Form
    labels: tuple[str, ...]
    metrics: tuple[str, ...]
    sizes: Mapping[str, int]
    submission: str
    about: str = ""
    answered_by: str = ""
    in_score: bool = True


def make_spec(
    suite: Literal["glue", "superglue"],
    name: str,
    form: Form,
    labels: tuple[str, ...],
    metrics: tuple[str, ...],
    sizes: tuple[int, int, int],
    about: str,
) -> TaskSpec:
    """Return a task with so many examples in train, dev and test, whose submission is named after it."""
    by_split = dict(zip((TRAIN, DEV, TEST), sizes, strict=True))
    ending = "tsv" if suite == "glue" else "jsonl"
    return TaskSpec(name, suite, form, labels, metrics, by_split, f"{name}.{ending}", about)


@dataclass(frozen=True)
class TaskData:
    """A task with the splits that were found; `notes` counts what differs from the published files.

    `instead` says, of a split whose rows are none of the published one's, what they are.
    """

    spec: TaskSpec
    splits: Mapping[str, list[Example]]
    fingerprint: str
    notes: Counter[str] = field(default_factory=Counter)
    instead: Mapping[str, str] = field(default_factory=dict)

    def labelled(self, split: str) -> bool:
        """Return whether the split is there and has gold answers."""
        found = self.splits.get(split, [])
        return len(found) > 0 and found[0].gold is not None

    @property
    def judged_splits(self) -> list[str]:
        """The splits that are answered: all but the training set."""
        return [split for split in self.splits if split != TRAIN]
