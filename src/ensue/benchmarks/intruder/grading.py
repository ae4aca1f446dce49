"""Predictions of the intruder graded without a model: how firmly each sentence of a version stands, and which one is
said to stand out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from ensue.benchmarks.grading.board import BoardRequest, Column, Graded
from ensue.benchmarks.grading.predictions import Answer, PredictionsBoard, PredictionsGrader, Question
from ensue.benchmarks.grading.values import Wrong, number_of, object_of, shown
from ensue.benchmarks.intruder.judging import (
    CALIBRATED,
    FALSE_ALARMS,
    UNTOUCHED,
    Version,
    item_with,
    metric_rows,
    scores_of,
)
from ensue.benchmarks.intruder.rules import Values, rank_of, rounded
from ensue.benchmarks.intruder.task import TASK, IntruderRun
from ensue.report.results import Item, MetricRow

_VALUES, _FLAGGED = "values", "flagged"
# Any name: a submission has one rule, and what it is called is its own affair.
_RULE = "submitted"


class _Judged(NamedTuple):
    """How firmly each sentence stands, where that is said, and whether it is said which one stands out."""

    values: Values | None
    points: bool
    place: int | None

    @property
    def gives(self) -> list[str]:
        return [
            name for name, given in ((_VALUES, self.values is not None), (_FLAGGED, self.points)) if given
        ]


class IntruderBoard(PredictionsBoard):
    """The versions that a run with these settings makes of documents; ranked by the hit rate of the first kind."""

    def __init__(self, run: IntruderRun, partial: bool) -> None:
        self._versions: list[Version] = run.versions()[0]
        there = {one.kind for one in self._versions}
        self._kinds = [kind for kind in run.settings["kinds"] if kind in there]
        questions = {
            one.id: Question("intruder", one.asked, _reader(len(one.edited.sentences)))
            for one in self._versions
        }
        super().__init__("intruder", "test", questions, partial=partial)

    @property
    def columns(self) -> list[Column]:
        hits = [
            Column("intruder", metric, {"kind": kind}, main=(kind, metric) == (self._kinds[0], "hit_rate"))
            for kind in self._kinds
            for metric in ("hit_rate", "hit_rate_at")
        ]
        return [*hits, Column("intruder", FALSE_ALARMS, {"kind": UNTOUCHED})]

    def parts(self) -> Mapping[str, str]:
        documents = len({one.document.id for one in self._versions})
        return {"intruder": f"{documents:,} documents of its organiser's choice"}

    def faults(self, answers: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
        given = list(answers.items())
        for id, one in given:
            if one.gives != given[0][1].gives:
                told = [" and ".join(each.gives) for each in (one, given[0][1])]
                yield id, f"it gives {told[0]} where {given[0][0]} gives {told[1]}; give the same for all"

    def judge(self, answers: Mapping[str, Any], not_scored: Mapping[str, str]) -> Graded:
        rows = list(metric_rows([_item(one, answers[one.id]) for one in self._versions]))
        return self.graded([_without_rule(row) for row in rows], not_scored)


def _item(version: Version, judged: _Judged) -> Item:
    """Return the item of a version; one that only points is scored as the rule that does."""
    edited = version.edited
    if judged.values is None:
        scores = scores_of(CALIBRATED, edited, None, judged.place)
        return item_with(version, scores, {"values": {_RULE: [None, *[0.0] * (len(edited.sentences) - 1)]}})
    scores = scores_of(_RULE, edited, rank_of(judged.values, edited.places), judged.place)
    if not judged.points:
        scores = {name: score for name, score in scores.items() if name.endswith(("/hit_rate", "/rank"))}
    return item_with(version, scores, {"values": {_RULE: judged.values}})


def _without_rule(row: MetricRow) -> MetricRow:
    row["settings"] = {key: value for key, value in row["settings"].items() if key != "rule"}
    return row


def _reader(sentences: int) -> Callable[[Any], _Judged]:
    """Return what reads a list of values, one a sentence, or an object with them and with what stands out."""

    def read(value: Any) -> _Judged:
        if isinstance(value, list):
            return _Judged(_values(value, sentences), False, None)
        row = object_of(value, "the prediction")
        if unknown := [key for key in row if key not in (_VALUES, _FLAGGED)]:
            raise Wrong(f"the key {shown(unknown[0])} is none of {_VALUES}, {_FLAGGED}")
        if not row:
            raise Wrong(f"there is neither {_VALUES!r} nor {_FLAGGED!r}")
        values = _values(row[_VALUES], sentences) if _VALUES in row else None
        return _Judged(values, _FLAGGED in row, _place(row.get(_FLAGGED), sentences))

    return read


def _values(given: Any, sentences: int) -> Values:
    if not isinstance(given, list):
        raise Wrong(f"the {_VALUES} {shown(given)} are not a list")
    if len(given) != sentences:
        raise Wrong(f"{len(given):,} values, where the text has {sentences} sentences")
    if given[0] is not None:
        raise Wrong(
            f"the first value is {shown(given[0])}; it is null, since nothing precedes the first sentence"
        )
    return rounded([None, *(number_of(one, "value") for one in given[1:])])


def _place(given: Any, sentences: int) -> int | None:
    if given is None:
        return None
    if isinstance(given, bool) or not isinstance(given, int) or not 1 <= given < sentences:
        raise Wrong(
            f"the sentence {shown(given)} that stands out is none of 1 to {sentences - 1}, counted from 0, or null"
        )
    return given


class IntruderGrader(PredictionsGrader):
    """Opens boards of the intruder, whose settings are those of a run, and writes what one of a run's rules says."""

    suite = "intruder"

    def open(self, wanted: BoardRequest) -> IntruderBoard:
        found = self.prepare(TASK, wanted, ",".join(wanted.tasks), "documents")
        assert isinstance(found, IntruderRun)
        return IntruderBoard(found, wanted.partial)

    def answers(self, item: Mapping[str, Any]) -> Iterator[Answer]:
        outputs = item["outputs"]
        for rule, place in outputs[_FLAGGED].items():
            said = {_VALUES: outputs[_VALUES][rule]} if rule in outputs[_VALUES] else {}
            yield Answer(item["id"], item["task"], {"rule": rule}, {**said, _FLAGGED: place})


GRADER = IntruderGrader()
