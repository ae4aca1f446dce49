"""Annotation projects of kind `classification`: any task of GLUE and SuperGLUE, answered by people (A.2.3).

Practice, qualification and controls are drawn from the task's training set (a diagnostic's from the task that
answers it), the work from the split that is asked for. MultiRC is asked a question at a time, with all its answers;
CommitmentBank on seven points, which `submissions.people` folds into its labels.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence, Set
from itertools import islice
from pathlib import Path
from typing import Any

from ensue.benchmarks import settings as read
from ensue.benchmarks.base import Setting, content_of
from ensue.benchmarks.nlu.examples import DEV, TEST, TRAIN, Example, TaskData, TaskSpec
from ensue.benchmarks.nlu.submissions.people import SCALE, SCALE_TASK
from ensue.benchmarks.nlu.suites import TITLES, specs_of, suite_of
from ensue.benchmarks.people.aside import Aside, set_aside
from ensue.benchmarks.people.form import Field, Form, Panel, Values, options
from ensue.benchmarks.people.kind import Built, Phase, Plain, Reads, WorkItem
from ensue.errors import EnsueError

FIELD = "label"
# What a score may be off and still be right, for practice and qualification.
_NEAR = 1.0
_INSTRUCTIONS = {"diagnostic": "MNLI", "AX-b": "RTE", "AX-g": "RTE"}
_WORDS: Mapping[str, Mapping[str, str]] = {
    "CoLA": {"0": "unacceptable", "1": "acceptable"},
    "SST-2": {"0": "badly", "1": "well"},
    "MRPC": {"0": "no, something differs", "1": "yes, the same"},
    "QQP": {"0": "no", "1": "yes"},
    "QNLI": {"entailment": "it holds the answer", "not_entailment": "it does not"},
    "WNLI": {"0": "it does not follow", "1": "it follows"},
    "BoolQ": {"false": "no", "true": "yes"},
    "WiC": {"false": "no, another meaning", "true": "yes, the same"},
    "WSC": {"false": "no", "true": "yes"},
    "COPA": {"0": "the first", "1": "the second"},
}
_TITLES: Mapping[str, tuple[str, str]] = {
    "BoolQ": ("Passage", "Question"),
    "QNLI": ("Question", "Sentence"),
    "QQP": ("First question", "Second question"),
    "MRPC": ("First sentence", "Second sentence"),
    "STS-B": ("First sentence", "Second sentence"),
    "WNLI": ("Sentence", "Second sentence"),
    "CB": ("What was said", "Statement"),
}
_ASKED: Mapping[str, str] = {
    "CoLA": "Could a native speaker say this?",
    "SST-2": "How does the writer speak of the film?",
    "MRPC": "Do they report the same?",
    "QQP": "Would one answer satisfy both?",
    "STS-B": "How alike are they in what they say?",
    "QNLI": "Does the sentence hold the answer?",
    "WNLI": "Does the second sentence follow?",
    "BoolQ": "What is the answer?",
    "CB": "How sure is the speaker that the statement is true?",
    "ReCoRD": "Which name fits the gap?",
    "WiC": "Does the marked word mean the same?",
    "WSC": "Does the pronoun mean the marked name or thing?",
}
_POINTS = {"1": "certainly true", "4": "left open", "7": "certainly false"}
_ALIKE = {"0": "nothing in common", "5": "the same"}


def _tasks() -> tuple[str, ...]:
    return tuple(f"{suite}/{spec.name}" for suite in TITLES for spec in specs_of(suite))


class Classification(Plain):
    """The kind `classification`."""

    name = "classification"
    about = "any task of GLUE and SuperGLUE, such as superglue/RTE"
    reads = Reads("The folder of the suite or of the task, with the official files.", folder=True)
    settings: Mapping[str, Setting] = {
        "task": Setting("", "the suite and task, such as superglue/RTE", read.Reader(read.text, _tasks)),
        "split": Setting(DEV, "the split to annotate: dev, test, …", read.text),
        "examples": Setting(
            100, "how many examples, chosen at random (none: all)", read.optional(read.whole())
        ),
        "training": Setting(5, "practice items, the gold answer shown after each", read.whole(0)),
        "qualification": Setting(5, "items that decide who goes on", read.whole(0)),
        "controls": Setting(10, "training examples among the work, as controls", read.whole(0)),
    }
    # Controls are examples like others, which careful people miss now and then.
    defaults: Mapping[str, Any] = {"labels": 5, "bar": "median", "most_missed": 4}

    def build(self, data: str | None, settings: Mapping[str, Any], seed: int) -> Built:
        suite, _, name = str(settings["task"]).partition("/")
        if suite not in TITLES or not name or "," in name:
            raise EnsueError("A classification project needs a task=SUITE/TASK, such as task=superglue/RTE.")
        if data is None or not Path(data).expanduser().is_dir():
            raise EnsueError(f"A project on {suite}/{name} needs --data: the folder of the suite.")
        (spec,) = suite_of(suite).select(name)
        folder, split = Path(data).expanduser(), _split(spec, str(settings["split"]))
        task = _read(suite, folder, spec, {split})
        if split not in task.splits:
            raise EnsueError(f"{folder} has no {split} split of {spec.name}; split=… names another.")
        chance = random.Random(f"{seed}/{suite}/{spec.name}")
        work = _drawn(task.splits[split], settings["examples"], chance)
        asked = {group[0].judged_with for group in work} if split == TRAIN else set()
        taught, notes = self._taught(suite, folder, spec, settings, chance, asked)
        least = float(settings["minimum_seconds"])
        items = [_item(spec, unit, TRAIN, least, phase) for phase, unit in taught.taught()]
        items += [_item(spec, unit, TRAIN, least, control=True) for unit in taught.controls]
        items += [_item(spec, unit, split, least) for group in work for unit in _units(spec, group)]
        file = Path(__file__).parent / "instructions" / f"{_INSTRUCTIONS.get(spec.name, spec.name)}.md"
        title = f"{TITLES[suite]}: {spec.name}"
        return Built(title, file.read_text("utf-8"), items, str(folder), notes)

    def _taught(
        self,
        suite: str,
        folder: Path,
        spec: TaskSpec,
        settings: Mapping[str, Any],
        chance: random.Random,
        asked: Set[str],
    ) -> tuple[Aside[list[Example]], list[str]]:
        """Return practice, qualification and controls of the training set, of what is not asked anyway."""
        wanted = sum(settings[name] for name in ("training", "qualification", "controls"))
        source = spec
        if spec.answered_by:
            (source,) = suite_of(suite).select(spec.answered_by)
        try:
            found = _read(suite, folder, source, {TRAIN})
        except EnsueError:
            found = None
        if found is None or not found.labelled(TRAIN):
            none = "no practice, no qualification and no controls"
            return Aside([], [], [], []), [f"{source.name} has no training set here, so there is {none}"]
        # So many items: a group of examples may be fewer than it has examples.
        groups = _drawn([one for one in found.splits[TRAIN] if one.judged_with not in asked], None, chance)
        units = islice((unit for group in groups for unit in _units(source, group)), wanted)
        return set_aside(list(units), settings), []

    def right(self, gold: Values, values: Values) -> bool:
        """Return whether an answer agrees: within a point for scores, any right name, CB's points folded."""
        if FIELD not in gold:
            return super().right(gold, values)
        expected, given = gold[FIELD], values.get(FIELD)
        if isinstance(expected, list):
            return given in expected
        if isinstance(expected, int | float) and isinstance(given, int | float):
            return abs(expected - given) <= _NEAR
        return bool(expected == (SCALE.get(given) if isinstance(given, int) else given))


def _split(spec: TaskSpec, asked: str) -> str:
    """Return the split that is meant; a diagnostic has one alone."""
    return TEST if spec.answered_by else asked


def _read(suite: str, folder: Path, spec: TaskSpec, splits: set[str]) -> TaskData:
    found = suite_of(suite).read_task(folder, spec, None, splits)
    if found is None:
        raise EnsueError(f"{folder} has no file of {spec.name}, {' or '.join(splits)} split.")
    return found


def _drawn(examples: Sequence[Example], count: int | None, chance: random.Random) -> list[list[Example]]:
    """Return so many examples at least, in whole groups, drawn at random."""
    groups: dict[str, list[Example]] = {}
    for example in examples:
        groups.setdefault(example.judged_with, []).append(example)
    order = list(groups.values())
    chance.shuffle(order)
    found, total = [], 0
    for group in order:
        if count is not None and total >= count:
            break
        found.append(group)
        total += len(group)
    return found


def _units(spec: TaskSpec, group: list[Example]) -> list[list[Example]]:
    """Return what is asked at once: all answers to a question together, anything else alone."""
    return [group] if spec.form == "answers" else [[example] for example in group]


def _item(
    spec: TaskSpec,
    unit: Sequence[Example],
    split: str,
    least: float,
    phase: Phase = "work",
    *,
    control: bool = False,
) -> WorkItem:
    first = unit[0]
    fields = fields_of(spec, unit)
    gold = _gold(spec, unit)
    key: dict[str, Any] = {
        "id": f"{spec.name}/{split}/{first.judged_with if spec.form == 'answers' else first.id}",
        "task": f"{spec.suite}/{spec.name}",
        "split": split,
        "examples": {field.id: example.id for field, example in zip(fields, unit, strict=True)},
        "content": content_of([[one.texts, one.choices, one.spans] for one in unit]),
    }
    form = Form(_panels(spec, first), tuple(fields), minimum_seconds=least)
    # What is expected of the work stays with the benchmark, which judges it.
    if phase == "work" and not control:
        return WorkItem(form, key)
    return WorkItem(form, key, phase, control=control, gold=gold, words=_words(spec, unit))


def fields_of(spec: TaskSpec, unit: Sequence[Example]) -> list[Field]:
    """Return what is asked of a unit: one field an example."""
    if spec.form == "answers":
        yes_no = options(("1", "right"), ("0", "not right"))
        return [Field(f"a{place}", "choice", one.texts[2], yes_no) for place, one in enumerate(unit)]
    asked = _ASKED.get(spec.name, "Does the statement follow from the text?")
    if spec.name == SCALE_TASK:
        return [Field(FIELD, "scale", asked, {"least": 1, "most": 7, "step": 1, "labels": _POINTS})]
    if spec.form == "score":
        return [Field(FIELD, "scale", asked, {"least": 0, "most": 5, "step": 1, "labels": _ALIKE})]
    example = unit[0]
    if spec.form == "entity":
        return [Field(FIELD, "choice", asked, options(*((one, one) for one in example.choices)))]
    if spec.form == "choice":
        asked = f"Which is the more plausible {example.texts[1]}?"
    words = _WORDS.get(spec.name, {})
    named = [(label, words.get(label, label.replace("_", " "))) for label in reversed(spec.labels)]
    if len(spec.labels) > 2 or spec.form == "choice":
        named = named[::-1]
    return [Field(FIELD, "choice", asked, options(*named))]


def _panels(spec: TaskSpec, example: Example) -> tuple[Panel, ...]:
    match spec.form:
        case "single":
            return (Panel("text", "Sentence", text=example.texts[0]),)
        case "choice":
            return (
                Panel("premise", "What happened", text=example.texts[0]),
                *(
                    Panel(f"c{place}", f"Alternative {place}", text=one)
                    for place, one in enumerate(example.choices, 1)
                ),
            )
        case "answers":
            return (
                Panel("passage", "Passage", text=example.texts[0]),
                Panel("question", "Question", text=example.texts[1]),
            )
        case "entity":
            return (
                Panel("passage", "Article", text=example.texts[0]),
                Panel("query", "Sentence with a gap", text=example.texts[1]),
            )
        case _:
            titles = _TITLES.get(spec.name, ("Text", "Statement"))
            if spec.form == "word":
                titles = ("First sentence", "Second sentence")
            return tuple(
                Panel(f"text{place}", title, text=text, marks=_marks(example, place))
                for place, (title, text) in enumerate(zip(titles, example.texts, strict=False))
            )


def _marks(example: Example, text: int) -> tuple[tuple[int, int], ...]:
    return tuple(sorted({(one.start, one.end) for one in example.spans if one.text == text}))


def _gold(spec: TaskSpec, unit: Sequence[Example]) -> Values | None:
    if unit[0].gold is None:
        return None
    if spec.form == "answers":
        return {f"a{place}": one.gold for place, one in enumerate(unit)}
    gold = unit[0].gold
    return {FIELD: list(gold) if isinstance(gold, tuple) else gold}


def _words(spec: TaskSpec, unit: Sequence[Example]) -> str:
    """Return what is said after a practice item."""
    gold = unit[0].gold
    if spec.form == "answers":
        right = [one.texts[2] for one in unit if one.gold == "1"]
        return f"Right: {'; '.join(right)}." if right else "None of the answers is right."
    if spec.name == SCALE_TASK:
        points = [str(point) for point, label in SCALE.items() if label == gold]
        return f"Expected: {gold} ({' to '.join(dict.fromkeys((points[0], points[-1])))})."
    if spec.form == "score":
        return f"Others gave {float(gold):.1f} on average."  # type: ignore[arg-type]  # a score
    if isinstance(gold, tuple):
        return f"Expected: {' or '.join(gold)}."
    return f"Expected: {_WORDS.get(spec.name, {}).get(str(gold), str(gold).replace('_', ' '))}."


KIND = Classification()
