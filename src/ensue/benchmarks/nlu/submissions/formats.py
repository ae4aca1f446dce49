"""The files of a submission: a task's predictions as the official sites want them, written and read back.

GLUE: TSV with the header `index`, `prediction`; labels as words or class numbers, STS-B a number. SuperGLUE: one JSON
object a line, `{"idx": 0, "label": "true"}`; COPA's and MultiRC's labels are the numbers 0 and 1, MultiRC's nested
below passage and question, ReCoRD's the entity's own words. WSC's labels are written True and False, as the official
toolkit wrote them and the site took them; any spelling of those two words is read.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from ensue.benchmarks.grading.problems import Problems
from ensue.benchmarks.nlu.examples import TEST, Prediction, TaskSpec
from ensue.errors import EnsueError

HEADER = "index\tprediction"
_MISMATCHED = "-mismatched"
_SHOWN = 40


class PredictedRow(NamedTuple):
    """One prediction as a file has it; None where it will not do, and no id where not even that could be read."""

    id: str
    prediction: Prediction | None
    line: int


class _Wrong(ValueError):
    """What is wrong with one row, in words."""


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
    except _Wrong as wrong:
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
            problems.add(file, number, f"the header is {_shown(first)}, not index<TAB>prediction.")
            yield PredictedRow("", None, number)
    for number, line in lines:
        try:
            for id, said in read(spec, line):
                if isinstance(said, _Wrong):
                    problems.add(file, number, f"{said}.")
                yield PredictedRow(id, None if isinstance(said, _Wrong) else said, number)
        except _Wrong as wrong:
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


def _parse_tsv(spec: TaskSpec, line: bytes) -> Iterator[tuple[str, Prediction | _Wrong]]:
    columns = _text(line).split("\t")
    if len(columns) != 2:
        raise _Wrong(f"{len(columns)} columns, where index and prediction were expected")
    id, said = columns[0].strip(), columns[1].strip()
    if not id:
        raise _Wrong("there is no index")
    yield id, _tried(spec, said)


def _parse_object(spec: TaskSpec, line: bytes) -> Iterator[tuple[str, Prediction | _Wrong]]:
    row = _object(_json(line), "the line")
    yield _index(row), _tried(spec, _of(row, "label"))


def _parse_nested(spec: TaskSpec, line: bytes) -> Iterator[tuple[str, Prediction | _Wrong]]:
    row = _object(_json(line), "the line")
    passage = _index(row)
    for question in _list(_object(_of(row, "passage"), "passage"), "questions"):
        about = _index(_object(question, "a question"))
        for answer in _list(question, "answers"):
            id = _index(_object(answer, "an answer"))
            yield f"{passage}-{about}-{id}", _tried(spec, _of(answer, "label"))


def _tried(spec: TaskSpec, given: Any) -> Prediction | _Wrong:
    """Return a prediction, or what is wrong with it: its id has been read and still counts."""
    try:
        return _prediction(spec, given)
    except _Wrong as wrong:
        return wrong


def _text(line: bytes) -> str:
    try:
        return line.decode("utf-8").rstrip("\r\n")
    except UnicodeDecodeError:
        raise _Wrong("not UTF-8 text") from None


def _json(line: bytes) -> Any:
    text = _text(line)
    if not text.strip():
        raise _Wrong("the line is blank")
    try:
        return json.loads(text, parse_constant=_no_constant, object_pairs_hook=_once)
    except json.JSONDecodeError as error:
        raise _Wrong(f"not JSON ({error.msg} at column {error.colno})") from None
    except RecursionError:
        raise _Wrong("not a prediction but JSON nested too deep") from None
    except _Wrong:
        raise
    except ValueError:  # a number of thousands of digits
        raise _Wrong("not JSON (a number is too long)") from None


def _no_constant(name: str) -> None:
    raise _Wrong(f"{name} is not a JSON value")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise _Wrong("an object names the same key twice")
    return found


def _object(value: Any, what: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise _Wrong(f"{what} is not a JSON object")
    return value


def _of(row: dict[str, Any], key: str) -> Any:
    if key not in row:
        raise _Wrong(f"there is no {key!r}")
    return row[key]


def _list(row: dict[str, Any], key: str) -> list[Any]:
    found = _of(row, key)
    if not isinstance(found, list):
        raise _Wrong(f"{key!r} is not a JSON list")
    return found


def _index(row: dict[str, Any]) -> str:
    found = _of(row, "idx")
    if isinstance(found, bool) or not isinstance(found, int | str) or found == "":
        raise _Wrong(f"the idx {_shown(found)} is not a whole number")
    return str(found)


def _prediction(spec: TaskSpec, value: Any) -> Prediction:
    """Return a score, the text of an entity, or a label of the task: JSON's true and 1 are the same as the words."""
    if spec.form == "score":
        return _number(value)
    if not spec.labels:
        if not isinstance(value, str) or not value.strip():
            raise _Wrong(f"the label {_shown(value)} is not the text of an entity")
        return value
    said = str(value).lower() if isinstance(value, bool) else str(value) if isinstance(value, int) else value
    if isinstance(said, str):
        if said in spec.labels:
            return said
        for label in spec.labels:
            if label.lower() == said.lower() in ("true", "false"):
                return label
    raise _Wrong(f"the label {_shown(value)} is none of {', '.join(spec.labels)}")


def _number(value: Any) -> float:
    try:
        found = math.nan if isinstance(value, bool) or "_" in str(value) else float(value)
    except (ValueError, TypeError, OverflowError):
        found = math.nan
    if not math.isfinite(found):
        raise _Wrong(f"the score {_shown(value)} is not a finite number")
    return found


def _json_id(id: str) -> str | int:
    """Return an index as a JSON number; `007` stays text, for it would be read back as 7."""
    return int(id) if id.isascii() and id.isdigit() and len(id) < 19 and str(int(id)) == id else id


def _json_label(spec: TaskSpec, prediction: Prediction) -> Prediction:
    """Return a class number as a JSON number, a word as text; an entity is text even where it is a number."""
    if spec.name == "WSC":
        return str(prediction).capitalize()
    return int(prediction) if all(map(str.isdigit, spec.labels)) and spec.labels else prediction


def _shown(value: Any) -> str:
    if isinstance(value, bytes):
        value = value[: 2 * _SHOWN].decode("utf-8", "replace").rstrip("\r\n")
    text = json.dumps(value) if not isinstance(value, str) else repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
