"""Predictions of ChapterBreak graded without a model: a score for each suffix of an example, known by its digest."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ensue.benchmarks.chapterbreak.data.examples import Example
from ensue.benchmarks.chapterbreak.task import (
    IN_BOOK,
    TASK,
    ChapterBreakRun,
    asked_of,
    judge,
    metric_rows,
    suffix_digest,
)
from ensue.benchmarks.grading.board import BoardRequest, Column, Graded, in_part, one_name
from ensue.benchmarks.grading.predictions import Answer, PredictionsBoard, PredictionsGrader, Question
from ensue.benchmarks.grading.values import Wrong, number_of, object_of, shown
from ensue.benchmarks.published import facts_of
from ensue.report.results import Item

# How long prefix and suffix were is part of an item's id, and no part of the question.
_LENGTHS = re.compile(r"#[ns]\d+(?=#|$)")
_WAYS = ("prefix_tokens", "suffix_tokens")


class _Choice(NamedTuple):
    """An example with its negatives of one kind."""

    example: Example
    kind: str
    negatives: tuple[str, ...]

    @property
    def id(self) -> str:
        return self.example.id + ("" if self.kind == IN_BOOK else f"#{self.kind}")


class ChapterBreakBoard(PredictionsBoard):
    """The examples of a run with these settings; ranked by the accuracy of the first split and boundary."""

    def __init__(self, run: ChapterBreakRun, partial: bool) -> None:
        self._choices = [
            _Choice(question.example, kind, texts)
            for question in run.questions()[0]
            for kind, texts in question.negatives.items()
        ]
        questions = {
            one.id: Question(one.example.split, asked_of(one.example, one.negatives), _reader(one))
            for one in self._choices
        }
        super().__init__("chapterbreak", "test", questions, partial=partial)

    @property
    def columns(self) -> list[Column]:
        places = dict.fromkeys((one.example.split, one.example.boundary, one.kind) for one in self._choices)
        return [
            Column(split, "accuracy", {"boundary": boundary, "negatives": kind}, main=place == 0)
            for place, (split, boundary, kind) in enumerate(places)
        ]

    def parts(self) -> Mapping[str, str]:
        rows = facts_of("ensue.benchmarks.chapterbreak")["table_4"]["rows"]
        known = {(row["split"], row["boundary"]): row["examples"] for row in rows}
        there = Counter(
            (one.split, one.boundary)
            for one in {one.example.id: one.example for one in self._choices}.values()
        )
        found: dict[str, str] = {}
        for (split, boundary), count in there.items():
            if (split, boundary) in known:
                found = in_part({split: count}, {split: known[split, boundary]}) | found
            else:
                found.setdefault(split, f"{count:,} examples of its organiser's choice")
        return found

    def question_id(self, id: str) -> str:
        return _LENGTHS.sub("", id)

    def judge(self, answers: Mapping[str, Any], not_scored: Mapping[str, str]) -> Graded:
        items = [_item(one, answers[one.id]) for one in self._choices if one.id in answers]
        rows = list(metric_rows(items))
        for row in rows:
            row["settings"] = {key: value for key, value in row["settings"].items() if key not in _WAYS}
        return self.graded(rows, not_scored)


def _item(choice: _Choice, scores: Sequence[float]) -> Item:
    example = choice.example
    return Item(
        id=choice.id,
        cluster=f"{example.split}/{example.work}",
        task=example.split,
        settings={
            "boundary": example.boundary,
            "negatives": choice.kind,
            # Rows are made by length; how much a system read is its own affair.
            **dict.fromkeys(_WAYS, 0),
        },
        scores=judge(scores[0], scores[1:]),
        outputs={},
    )


def _reader(choice: _Choice) -> Callable[[Any], list[float]]:
    """Return what reads the scores of an example's suffixes into the order of the data, the gold one first."""
    names = [suffix_digest(text) for text in (choice.example.gold, *choice.negatives)]

    def read(value: Any) -> list[float]:
        row = object_of(value, "the prediction")
        if unknown := next((key for key in row if key not in names), None):
            raise Wrong(f"{shown(unknown)} is the digest of no suffix of this example")
        if absent := sum(name not in row for name in set(names)):
            raise Wrong(f"{absent} of its {len(set(names))} suffixes have no score")
        return [number_of(row[name], "score") for name in names]

    return read


class ChapterBreakGrader(PredictionsGrader):
    """Opens boards of ChapterBreak, whose settings are those of a run, and writes its predictions."""

    suite = "chapterbreak"

    def open(self, wanted: BoardRequest) -> ChapterBreakBoard:
        found = self.prepare(TASK, wanted, one_name(self.suite, wanted.tasks), "examples")
        assert isinstance(found, ChapterBreakRun)
        return ChapterBreakBoard(found, wanted.partial)

    def answers(self, item: Mapping[str, Any]) -> Iterator[Answer]:
        outputs = item["outputs"]
        way = {key: item["settings"][key] for key in _WAYS}
        prediction = dict(zip(outputs["suffixes"], outputs["scores"], strict=True))
        yield Answer(_LENGTHS.sub("", item["id"]), item["task"], way, prediction)


GRADER = ChapterBreakGrader()
