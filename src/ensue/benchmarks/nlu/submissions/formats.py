"""The files of a submission: a task's predictions as the official sites want them, written and read back.

GLUE: TSV with the header `index`, `prediction`; labels as words or class numbers, STS-B a number. SuperGLUE: one JSON
object a line, `{"idx": 0, "label": "true"}`; COPA's and MultiRC's labels are the numbers 0 and 1, MultiRC's nested
below passage and question, ReCoRD's the entity's own words. WSC's labels are written True and False, as the official
toolkit wrote them and the site took them; any spelling of those two words is read.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from ensue.benchmarks.grading.problems import Problems
from ensue.benchmarks.grading.values import Wrong, decode, member, number_of, object_of, parse_json, shown
from ensue.benchmarks.nlu.examples import TEST, Prediction, TaskSpec
from ensue.errors import EnsueError

HEADER = "index\tprediction"
_MISMATCHED = "-mismatched"


class PredictedRow(NamedTuple):
    """One prediction as a file has it; None where it will not do, and no id where not even that could be read."""

    id: str
    prediction: Prediction | None
    line: int


def files_of(spec: TaskSpec, split: str) -> dict[str, str]:
    """Return the split that each file of a task answers: one, and for MNLI another for the mismatched section.

    A diagnostic set has one split only, which is its file's whatever split the other files are of.
    """
    if spec.answered_by:
        return {spec.submission: TEST}
    found = {spec.submission: split}
    if any(name.endswith(_MISMATCHED) for name in spec.sizes):
        found[spec.submission.replace("-m.", "-mm.")] = f"{split}{_MISMATCHED}"
    return found


def check_prediction(spec: TaskSpec, prediction: Any) -> Prediction:
    """Return a prediction that the task allows, as written; otherwise an error that says what is allowed."""
    try:
        return _prediction(spec, prediction)
    except Wrong as wrong:
        raise EnsueError(f"{spec.name}: {wrong}.") from None


def render(spec: TaskSpec, predictions: Mapping[str, Prediction]) -> Iterator[str]:
    """Return the lines of a task's file, in the order of the predictions."""
    checked = {id: check_prediction(spec, prediction) for id, prediction in predictions.items()}
    if spec.form == "answers":
        yield from _render_nested(spec, checked)
    elif spec.suite == "glue":
        yield f"{HEADER}\n"
        for id, prediction in checked.items():
            yield f"{id}\t{prediction!r}\n" if isinstance(prediction, float) else f"{id}\t{prediction}\n"
    else:
        for id, prediction in checked.items():
            yield json.dumps({"idx": _json_id(id), "label": _json_label(spec, prediction)}) + "\n"


def parse(
    spec: TaskSpec, file: str, lines: Iterable[tuple[int, bytes]], problems: Problems
) -> Iterator[PredictedRow]:
    """Return the rows of a file; what is wrong with one is noted, and the next one is read."""
    read = _parse_nested if spec.form == "answers" else _parse_tsv if spec.suite == "glue" else _parse_object
    lines = iter(lines)
    if spec.suite == "glue":
        number, first = next(lines, (1, b""))
        if first.rstrip(b"\r\n") != HEADER.encode():
            problems.add(file, number, f"the header is {shown(first)}, not index<TAB>prediction.")
            yield PredictedRow("", None, number)
    for number, line in lines:
        try:
            for id, said in read(spec, line):
                if isinstance(said, Wrong):
                    problems.add(file, number, f"{said}.")
                yield PredictedRow(id, None if isinstance(said, Wrong) else said, number)
        except Wrong as wrong:
            problems.add(file, number, f"{wrong}.")
            yield PredictedRow("", None, number)


def _render_nested(spec: TaskSpec, predictions: Mapping[str, Prediction]) -> Iterator[str]:
    """Write MultiRC: passages, their questions, and the answers of each."""
    passages: dict[str, dict[str, list[dict[str, Any]]]] = {}
    for id, prediction in predictions.items():
        if len(parts := id.split("-")) != 3:
            raise EnsueError(f"The id {id!r} is not of the form passage-question-answer.")
        passage, question, answer = parts
        answers = passages.setdefault(passage, {}).setdefault(question, [])
        answers.append({"idx": _json_id(answer), "label": _json_label(spec, prediction)})
    for passage, questions in passages.items():
        listed = [{"idx": _json_id(question), "answers": answers} for question, answers in questions.items()]
        yield json.dumps({"idx": _json_id(passage), "passage": {"questions": listed}}) + "\n"


def _parse_tsv(spec: TaskSpec, line: bytes) -> Iterator[tuple[str, Prediction | Wrong]]:
    columns = decode(line).split("\t")
    if len(columns) != 2:
        raise Wrong(f"{len(columns)} columns, where index and prediction were expected")
    id, said = columns[0].strip(), columns[1].strip()
    if not id:
        raise Wrong("there is no index")
    yield id, _tried(spec, said)


def _parse_object(spec: TaskSpec, line: bytes) -> Iterator[tuple[str, Prediction | Wrong]]:
    row = object_of(parse_json(line), "the line")
    yield _index(row), _tried(spec, member(row, "label"))


def _parse_nested(spec: TaskSpec, line: bytes) -> Iterator[tuple[str, Prediction | Wrong]]:
    row = object_of(parse_json(line), "the line")
    passage = _index(row)
    for question in _list(object_of(member(row, "passage"), "passage"), "questions"):
        about = _index(object_of(question, "a question"))
        for answer in _list(question, "answers"):
            id = _index(object_of(answer, "an answer"))
            yield f"{passage}-{about}-{id}", _tried(spec, member(answer, "label"))


def _tried(spec: TaskSpec, given: Any) -> Prediction | Wrong:
    """Return a prediction, or what is wrong with it: its id has been read and still counts."""
    try:
        return _prediction(spec, given)
    except Wrong as wrong:
        return wrong


def _list(row: dict[str, Any], key: str) -> list[Any]:
    found = member(row, key)
    if not isinstance(found, list):
        raise Wrong(f"{key!r} is not a JSON list")
    return found


def _index(row: dict[str, Any]) -> str:
    found = member(row, "idx")
    if isinstance(found, bool) or not isinstance(found, int | str) or found == "":
        raise Wrong(f"the idx {shown(found)} is not a whole number")
    return str(found)


def _prediction(spec: TaskSpec, value: Any) -> Prediction:
    """Return a score, the text of an entity, or a label of the task: JSON's true and 1 are the same as the words."""
    if spec.form == "score":
        return number_of(value, "score")
    if not spec.labels:
        if not isinstance(value, str) or not value.strip():
            raise Wrong(f"the label {shown(value)} is not the text of an entity")
        return value
    said = str(value).lower() if isinstance(value, bool) else str(value) if isinstance(value, int) else value
    if isinstance(said, str):
        if said in spec.labels:
            return said
        for label in spec.labels:
            if label.lower() == said.lower() in ("true", "false"):
                return label
    raise Wrong(f"the label {shown(value)} is none of {', '.join(spec.labels)}")


def _json_id(id: str) -> str | int:
    """Return an index as a JSON number; `007` stays text, for it would be read back as 7."""
    return int(id) if id.isascii() and id.isdigit() and len(id) < 19 and str(int(id)) == id else id


def _json_label(spec: TaskSpec, prediction: Prediction) -> Prediction:
    """Return a class number as a JSON number, a word as text; an entity is text even where it is a number."""
    if spec.name == "WSC":
        return str(prediction).capitalize()
    return int(prediction) if all(map(str.isdigit, spec.labels)) and spec.labels else prediction
