"""How well people do: an annotation file, several labels an example, becomes one answer by majority vote.

The file has one JSON object a line, `{"id": …, "labels": [five labels]}`, with the ids of the split and labels as the
task spells them (true and false may be JSON's own). It may hold a sample of the split, as the hundred examples a task
in A.2.3 are. CommitmentBank is annotated on the seven points of table A.4 and folded into classes by the ranges in
which de Marneffe et al. (2019) count agreement on their scale from 3 (certainly true) to -3 (certainly false): [1, 3]
is entailment, 0 neutral, [-3, -1] contradiction, which is 1 to 3, 4, and 5 to 7 here.

Five votes on two labels always have a majority. On three they may tie two to two, and A.2.3 says nothing of it: the
tied label that comes first in the task's own list is taken, which needs no look at the gold answer, and how many
were tied is in the answer's settings.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ensue.benchmarks.drawn import Drawn
from ensue.benchmarks.nlu.examples import TaskData, TaskSpec
from ensue.benchmarks.nlu.files import Row
from ensue.benchmarks.nlu.judging import JudgedSplit, judge
from ensue.benchmarks.nlu.scores import SCORE, rows
from ensue.benchmarks.nlu.systems import Answered
from ensue.benchmarks.people.agreement import drawn_fleiss
from ensue.errors import EnsueError
from ensue.jsonl import read_lines
from ensue.report.results import MetricRow

SCALE_TASK = "CB"
# The points of table A.4, from 1 on.
SCALE = dict(enumerate(["entailment"] * 3 + ["neutral"] + ["contradiction"] * 3, 1))


class People(NamedTuple):
    """What people are worth on a split (None without gold labels), and how far they agree among themselves.

    `kappa` is Fleiss' kappa of the annotators; None where all gave one label throughout, since it then has none.
    """

    answered: Answered
    judged: JudgedSplit | None
    kappa: Drawn | None

    def agreement_row(self) -> MetricRow | None:
        """Return the row of kappa; the metrics' rows are made as those of any system."""
        if self.kappa is None:
            return None
        (split,) = self.answered.predictions
        return self.kappa.row(self.answered.task, "kappa", {"split": split, **self.answered.settings})


def judge_people(path: Path, data: TaskData, split: str) -> People:
    """Judge the majority vote of an annotation file on the examples it holds, and the annotators' agreement."""
    labels = read_annotations(path, data, split)
    answered = majority_vote(labels, data.spec, split)
    return People(
        answered, judge(annotated_part(data, answered, split), answered, split), kappa(labels, data)
    )


def people_rows(path: Path, data: TaskData, split: str) -> list[MetricRow]:
    """Return the metrics of people's majority vote and their agreement; nothing where neither can be had."""
    people = judge_people(path, data, split)
    found = [row for row in rows([people.judged]) if row["metric"] != SCORE] if people.judged else []
    agreement = people.agreement_row()
    return found if agreement is None else [*found, agreement]


def annotated_part(data: TaskData, answered: Answered, split: str) -> TaskData:
    """Return the task with that split cut down to the examples that have an answer; a group is annotated whole."""
    given = answered.predictions[split]
    kept = [example for example in data.splits[split] if example.id in given]
    groups = {example.group for example in kept if example.group}
    for example in data.splits[split]:
        if example.group in groups and example.id not in given:
            raise EnsueError(
                f"{data.spec.name}, {split} split: {example.id!r} has no labels, but others of its group "
                f"{example.group!r} have; annotate whole groups, since they are judged together."
            )
    return replace(data, splits={**data.splits, split: kept})


def majority(labels: Sequence[str], order: Sequence[str]) -> tuple[str, bool]:
    """Return the label most annotators gave, the first in `order` of those that tie, and whether there was a tie.

    >>> majority(["b", "a", "c", "b", "a"], ["a", "b", "c"])
    ('a', True)
    """
    counts = [list(labels).count(label) for label in order]
    most = max(counts)
    return order[counts.index(most)], counts.count(most) > 1


def kappa(labels: Mapping[str, Sequence[str]], data: TaskData) -> Drawn | None:
    """Return Fleiss' kappa with its draws, resampling examples."""
    codes = {label: code for code, label in enumerate(data.spec.labels)}
    table = [[codes[label] for label in given] for given in labels.values()]
    return drawn_fleiss(np.array(table, dtype=np.float64), range(len(table)))


def read_annotations(path: Path, data: TaskData, split: str) -> dict[str, tuple[str, ...]]:
    """Return the labels of each annotated example, as the task spells them; equally many a line."""
    if not data.spec.labels:
        raise EnsueError(f"{data.spec.name} has no labels to vote on; annotate a task that has.")
    if split not in data.splits:
        raise EnsueError(f"{data.spec.name} has no {split} split here; give one of {', '.join(data.splits)}.")
    known = {example.id for example in data.splits[split]}
    found: dict[str, tuple[str, ...]] = {}
    for number, fields in read_lines(path):
        row = Row(f"{path}, line {number}", fields)
        name, labels = _parsed(row, data.spec)
        if name not in known:
            row.refuse(f"{name!r} is no example of the {split} split of {data.spec.name}")
        if name in found:
            row.refuse(f"{name!r} has labels in an earlier line already")
        if found and len(labels) != (wanted := len(next(iter(found.values())))):
            row.refuse(f"there are {len(labels)} labels where the first line has {wanted}")
        found[name] = labels
    if not found:
        raise EnsueError(f'{path} holds no annotations; give lines like {{"id": "7", "labels": [...]}}.')
    return found


def _parsed(row: Row, spec: TaskSpec) -> tuple[str, tuple[str, ...]]:
    """Return the example's id and its labels."""
    if not {"id", "labels"} <= row.fields.keys():
        row.refuse('a line is an object with "id" and "labels"')
    name, labels = row.fields["id"], row.fields["labels"]
    if isinstance(name, bool) or not isinstance(name, str | int):
        row.refuse(f"the id {name!r} is neither a string nor a whole number")
    if not isinstance(labels, list) or len(labels) < 2:
        row.refuse('"labels" is a list of at least two labels, one an annotator')
    return str(name), tuple(_label(row, spec, one) for one in labels)


def _label(row: Row, spec: TaskSpec, given: Any) -> str:
    """Return the label meant: as the task spells it, JSON's true, false or number, or a point of CB's scale."""
    spelled = json.dumps(given) if isinstance(given, bool | int) else given
    if isinstance(spelled, str) and spelled in spec.labels:
        return spelled
    scale = spec.name == SCALE_TASK and not isinstance(given, bool)
    if scale and isinstance(given, int) and given in SCALE:
        return SCALE[given]
    also = ", nor a number from 1 to 7" if scale else ""
    row.refuse(f"the label {given!r} is none of {', '.join(spec.labels)}{also}")


def majority_vote(labels: Mapping[str, Sequence[str]], spec: TaskSpec, split: str) -> Answered:
    """Return the answer that most annotators gave to each example."""
    votes_by_id = {name: majority(given, spec.labels) for name, given in labels.items()}
    ties = sum(tied for _, tied in votes_by_id.values())
    settings: dict[str, Any] = {"annotators": len(next(iter(labels.values())))}
    if ties:
        settings["ties"] = ties
    return Answered(spec.name, {split: {name: label for name, (label, _) in votes_by_id.items()}}, settings)
