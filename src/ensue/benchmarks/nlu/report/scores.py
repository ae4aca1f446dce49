"""What is said of GLUE and SuperGLUE runs: every task on dev or on test, never mixed, diagnostics apart."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any, NamedTuple

from ensue.benchmarks.nlu.diagnostics import TAXONOMY
from ensue.benchmarks.nlu.suites import TITLES

SCORE = "score"
MISMATCHED = "-mismatched"


class Figure(NamedTuple):
    """One number with its interval."""

    value: float
    low: float | None = None
    high: float | None = None
    n: int = 0


class Measure(NamedTuple):
    """A metric of a task, and of which of MNLI's sections it is ("m" or "mm"; empty elsewhere)."""

    metric: str
    section: str = ""


class Answer(NamedTuple):
    """A task answered in one way (with one template, from one layer); `way` is empty where there is only one."""

    way: str
    measures: dict[Measure, Figure]
    score: Figure | None

    @property
    def main(self) -> Figure:
        """What the answer is judged by; diagnostics have no score, their first measure stands for it."""
        return self.score or next(iter(self.measures.values()))


class Spread(NamedTuple):
    """A number over several answers or trainings; `sd` is the sample's."""

    mean: float
    sd: float
    best: float
    best_way: str
    of: int


class Line(NamedTuple):
    """A task, a diagnostic set or a whole benchmark on one split; `covers` is what a benchmark's score is over.

    `part` says of a task that was judged on a part of the published split which part that is.
    """

    name: str
    kind: str
    split: str
    answers: list[Answer]
    covers: str = ""
    tasks: tuple[str, ...] = ()
    part: str = ""

    @property
    def short_covers(self) -> str:
        """What fits a cell; the rest of it names the tasks that count in part."""
        return self.covers.partition(",")[0].replace(" tasks whole", " whole")

    @property
    def measures(self) -> list[Measure]:
        return list(dict.fromkeys(measure for answer in self.answers for measure in answer.measures))

    @property
    def spread(self) -> Spread | None:
        """Over the ways the task was answered in; None where there is one."""
        found = {answer.way: answer.main.value for answer in self.answers}
        return spread_of(list(found.values()), list(found)) if len(self.answers) > 1 else None

    @property
    def value(self) -> float:
        """The score, of several answers their mean."""
        return statistics.fmean(answer.main.value for answer in self.answers)

    @property
    def only(self) -> Figure | None:
        """The one figure there is; None where there are several answers."""
        return self.answers[0].main if len(self.answers) == 1 else None

    def mean(self, measure: Measure) -> float:
        return statistics.fmean(
            answer.measures[measure].value for answer in self.answers if measure in answer.measures
        )


class Block(NamedTuple):
    """All that was judged on one split, the benchmark's score last."""

    split: str
    lines: list[Line]
    total: Line | None


class Phenomenon(NamedTuple):
    """Where a diagnostic's figure stands: over all examples, over a category, over a tag within one."""

    category: str = ""
    tag: str = ""


class Diagnosis(NamedTuple):
    """One answer to a tagged diagnostic set, by phenomenon."""

    task: str
    split: str
    metric: str
    way: str
    figures: dict[Phenomenon, Figure]


class Sheet(NamedTuple):
    """A run as it is told. Tasks without a figure are `missing` (files), `unlearnt` or `unjudged` (no labels)."""

    name: str
    suite: str
    blocks: list[Block]
    diagnostics: list[Line]
    diagnoses: list[Diagnosis]
    missing: list[str]
    unlearnt: list[str]
    unjudged: list[str]
    constant: dict[str, Any]
    varying: list[str]
    limit: int | None

    @property
    def title(self) -> str:
        return TITLES[self.suite]

    def block(self, split: str) -> Block | None:
        return next((block for block in self.blocks if block.split == split), None)


def phenomena() -> list[Phenomenon]:
    """All of table A.1 in its order, each category before its tags, everything together first."""
    found = [Phenomenon()]
    for category, tags in TAXONOMY.items():
        found += [Phenomenon(category), *(Phenomenon(category, tag) for tag in tags)]
    return found


def base_split(split: str) -> str:
    """Dev or test: MNLI's second section belongs to the split of its first.

    >>> base_split("dev-mismatched")
    'dev'
    """
    return split.removesuffix(MISMATCHED)


def spread_of(values: Sequence[float], ways: Sequence[str]) -> Spread:
    """The spread of at least one value; the first of equals is the best.

    >>> spread_of([0.5, 0.7], ["a", "b"])._replace(sd=0)
    Spread(mean=0.6, sd=0, best=0.7, best_way='b', of=2)
    """
    best = max(range(len(values)), key=values.__getitem__)
    sd = statistics.stdev(values) if len(values) > 1 else 0.0
    return Spread(statistics.fmean(values), sd, values[best], ways[best], len(values))
