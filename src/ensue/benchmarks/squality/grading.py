"""Summaries of SQuALITY graded without a model: a text for each question, measured against people's."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ensue.benchmarks.grading.board import BoardRequest, Column, Graded, in_part
from ensue.benchmarks.grading.predictions import Answer, PredictionsBoard, PredictionsGrader, Question
from ensue.benchmarks.grading.values import Wrong, text_of
from ensue.benchmarks.published import facts_of
from ensue.benchmarks.settings import resolve
from ensue.benchmarks.squality.data import SPLITS, StoryQuestion, examples
from ensue.benchmarks.squality.evaluation import TASK as NAME
from ensue.benchmarks.squality.evaluation import asked_of, judged_items, rows_of
from ensue.benchmarks.squality.systems import Summary
from ensue.benchmarks.squality.task import TASK, SqualityRun
from ensue.benchmarks.summaries.scoring import Measure, meteor_measure, rouge_measure
from ensue.errors import EnsueError
from ensue.text.wordnet import VARIABLE, find_wordnet, load_wordnet

# People write 237 words on average; aligning far longer texts takes hours.
LONGEST = 20_000
# The settings of a run that change what is asked or measured.
_WITHOUT_METEOR = (
    "METEOR needs WordNet 3.0, which is not on this machine: install Debian's wordnet-base or set " + VARIABLE
)
_SETTINGS = ("version", "metrics", "references")


class SqualityBoard(PredictionsBoard):
    """The questions of a split; ranked by ROUGE-1, the first column of the paper's table."""

    def __init__(
        self, asked: Sequence[StoryQuestion], version: str, split: str, metrics: Sequence[str], partial: bool
    ) -> None:
        self._asked, self._about = asked, {"version": version, "split": split}
        self._lacks_meteor = "meteor" in metrics and find_wordnet() is None
        self.metrics = [name for name in metrics if name != "meteor" or not self._lacks_meteor]
        questions = {one.id: Question(NAME, asked_of(one), _read) for one in asked}
        super().__init__("squality", split, questions, partial=partial)

    @property
    def columns(self) -> list[Column]:
        names = ["rouge1", "rouge2", "rougeL"] if "rouge" in self.metrics else []
        names += ["meteor"] if "meteor" in self.metrics else []
        return [Column(NAME, name, self._about, main=place == 0) for place, name in enumerate(names)]

    def parts(self) -> Mapping[str, str]:
        known = facts_of("ensue.benchmarks.squality")["items"].get(self._about["version"], {})
        return in_part(self.counts(), {NAME: known[self.split]} if self.split in known else {})

    def judge(self, answers: Mapping[str, Any], not_scored: Mapping[str, str]) -> Graded:
        summaries = [Summary(answers[one.id], {}) for one in self._asked]
        rows = rows_of(judged_items(self._asked, summaries, self._measures(), self._about))
        empty = sum(not one.text.strip() for one in summaries)
        notes = [f"summaries that are empty, which score 0: {empty:,}"] if empty else []
        notes += [f"{_WITHOUT_METEOR}."] if self._lacks_meteor else []
        return self.graded(rows, not_scored, notes)

    def _measures(self) -> list[Measure]:
        found: list[Measure] = [rouge_measure] if "rouge" in self.metrics else []
        folder = find_wordnet() if "meteor" in self.metrics else None
        return found if folder is None else [*found, meteor_measure(load_wordnet(folder))]


def _read(value: Any) -> str:
    text = text_of(value, "summary")
    if len(text) > LONGEST:
        raise Wrong(f"the summary has {len(text):,} characters, more than {LONGEST:,}")
    return text


class SqualityGrader(PredictionsGrader):
    """Opens boards of SQuALITY and writes a run's summaries."""

    suite = "squality"
    splits = SPLITS[::-1]

    def open(self, wanted: BoardRequest) -> SqualityBoard:
        given: dict[str, str] = dict(wanted.settings or {})
        if other := [key for key in given if key not in _SETTINGS]:
            raise EnsueError(f"squality is graded with {', '.join(_SETTINGS)} only; leave {other[0]} out.")
        values = resolve(self.suite, TASK.settings, {**given, "split": wanted.split, "statistics": "no"})
        metrics = values["metrics"]
        if "bertscore" in metrics:
            raise EnsueError("BERTScore needs a model, and grading has none; leave bertscore out of metrics.")
        if "meteor" in metrics and "metrics" in given and find_wordnet() is None:
            raise EnsueError(f"{_WITHOUT_METEOR}, or leave meteor out of metrics.")
        found = TASK.prepare(",".join(wanted.tasks), str(wanted.labels), None, 0, values)
        if not isinstance(found, SqualityRun):
            raise EnsueError(
                "squality is graded on its questions, not on people's ratings; leave --tasks out."
            )
        stories = list(examples(found.stories))
        return SqualityBoard(stories, found.label, wanted.split, metrics, wanted.partial)

    def answers(self, item: Mapping[str, Any]) -> Iterator[Answer]:
        yield Answer(item["id"], item["task"], {}, item["outputs"]["summary"])


GRADER = SqualityGrader()
