"""Predictions of the Shuffle Test graded without a model: for each pair two log-likelihoods, two ratings or a
preference."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any, NamedTuple

from ensue.benchmarks.grading.board import BoardRequest, Column, Graded
from ensue.benchmarks.grading.predictions import Answer, PredictionsBoard, PredictionsGrader, Question
from ensue.benchmarks.grading.values import Wrong, member, number_of, object_of, shown
from ensue.benchmarks.shuffle.judging import metric_rows, scores_of
from ensue.benchmarks.shuffle.task import TASK, ShuffledVersion, ShuffleRun
from ensue.metrics.preference import Verdict, prefer_per_token, prefer_total
from ensue.report.results import Item

_PREFERRED: Mapping[str, Verdict] = {"original": "good", "shuffled": "bad", "same": "same"}
_TOTAL, _MEAN, _RATING = "logprob", "logprob_per_token", "rating"


class _Judged(NamedTuple):
    """Which of two texts is preferred, by the total and, where that was given, per token."""

    total: Verdict
    mean: Verdict | None


class ShuffleBoard(PredictionsBoard):
    """The pairs that a run with these settings makes of the documents; ranked by the smallest blocks."""

    def __init__(self, run: ShuffleRun, partial: bool) -> None:
        self._versions: Collection[ShuffledVersion]
        _, self._versions, used = run.versions()
        self._single = used.single
        questions = {one.id: Question("shuffle", one.asked, _read) for one in self._versions}
        super().__init__("shuffle", "test", questions, partial=partial)

    @property
    def columns(self) -> list[Column]:
        sizes = sorted({one.block_size for one in self._versions})
        return [
            Column("shuffle", "accuracy", {"block_size": size}, main=place == 0)
            for place, size in enumerate(sizes)
        ]

    def parts(self) -> Mapping[str, str]:
        documents = len({one.document.id for one in self._versions})
        return {"shuffle": f"{documents:,} documents of its organiser's choice"}

    def faults(self, answers: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
        given = list(answers.items())
        for id, one in given:
            if (one.mean is None) != (given[0][1].mean is None):
                yield (
                    id,
                    f"only some pairs have {_MEAN}, of this and {given[0][0]} one; give it for all or none",
                )

    def judge(self, answers: Mapping[str, Any], not_scored: Mapping[str, str]) -> Graded:
        items = [_item(one, answers[one.id]) for one in self._versions]
        return self.graded(list(metric_rows(items, self._single)), not_scored)


def _item(version: ShuffledVersion, judged: _Judged) -> Item:
    return Item(
        id=version.id,
        cluster=version.document.id,
        task="shuffle",
        settings={"block_size": version.block_size},
        scores=scores_of(*judged),
        outputs={"domain": version.document.domain},
    )


def _read(value: Any) -> _Judged:
    """Return which text is preferred: named, or the one whose log-likelihood or rating is higher."""
    if isinstance(value, str):
        if value not in _PREFERRED:
            raise Wrong(f"the preference {shown(value)} is none of {', '.join(_PREFERRED)}")
        return _Judged(_PREFERRED[value], None)
    row = object_of(value, "the prediction")
    texts = [object_of(member(row, name), name) for name in ("original", "shuffled")]
    name = _RATING if all(_RATING in one for one in texts) else _TOTAL
    first, second = (number_of(member(one, name), name) for one in texts)
    if name == _RATING:
        return _Judged(prefer_total(first, second), None)
    means = [number_of(one[_MEAN], _MEAN) for one in texts if _MEAN in one]
    if len(means) == 1:
        raise Wrong(f"only one of the two texts has {_MEAN!r}")
    return _Judged(prefer_total(first, second), prefer_per_token(*means) if means else None)


class ShuffleGrader(PredictionsGrader):
    """Opens boards of the Shuffle Test, whose settings are those of a run, and writes its predictions."""

    suite = "shuffle"

    def open(self, wanted: BoardRequest) -> ShuffleBoard:
        found = self.prepare(TASK, wanted, ",".join(wanted.tasks), "documents")
        assert isinstance(found, ShuffleRun)
        return ShuffleBoard(found, wanted.partial)

    def answers(self, item: Mapping[str, Any]) -> Iterator[Answer]:
        outputs = item["outputs"]
        if "preferred" in outputs:  # people name the text
            yield Answer(item["id"], item["task"], {}, outputs["preferred"])
            return
        prediction = {
            name: {key: outputs[name][key] for key in (_TOTAL, _MEAN, _RATING) if key in outputs[name]}
            for name in ("original", "shuffled")
        }
        yield Answer(item["id"], item["task"], {}, prediction)


GRADER = ShuffleGrader()
