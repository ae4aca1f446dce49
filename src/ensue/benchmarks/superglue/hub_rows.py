"""Makes examples of SuperGLUE's rows as the hub has them: flat, with class numbers for labels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from ensue.benchmarks.nlu.examples import Example, TaskSpec
from ensue.benchmarks.nlu.files import Row
from ensue.benchmarks.nlu.hub import named_label
from ensue.benchmarks.superglue.readers import answer_text, entity_example, examples

CONFIGS = {
    "BoolQ": "boolq",
    "CB": "cb",
    "COPA": "copa",
    "MultiRC": "multirc",
    "ReCoRD": "record",
    "RTE": "rte",
    "WiC": "wic",
    "WSC": "wsc",
    "AX-b": "axb",
    "AX-g": "axg",
}
_TARGET = ("span1_text", "span1_index", "span2_text", "span2_index")


def hub_examples(
    spec: TaskSpec, place: str, rows: Iterable[Mapping[str, object]], notes: Counter[str]
) -> Iterator[Example]:
    """The examples of a split's rows."""
    placed = (Row(f"{place}, row {number}", fields) for number, fields in enumerate(rows, 1))
    if spec.name == "ReCoRD":
        return map(_entity, placed)
    named = (named_label(row, spec) for row in placed)
    if spec.name == "MultiRC":
        return (_answer(spec, row, notes) for row in named)
    return examples(spec, map(_with_target, named) if spec.name == "WSC" else named, notes)


def _with_target(row: Row) -> Row:
    """WSC's mentions lie within `target` in the official files."""
    return row._replace(fields={**row.fields, "target": {name: row.value(name) for name in _TARGET}})


def _answer(spec: TaskSpec, row: Row, notes: Counter[str]) -> Example:
    """MultiRC: an answer a row."""
    number = row.inner("idx")
    cluster = str(number.whole("paragraph"))
    group = f"{cluster}-{number.whole('question')}"
    texts = (row.text("paragraph"), row.text("question"), answer_text(row, "answer", notes))
    gold = row.label("label", spec.labels) if "label" in row.fields else None
    name = f"{group}-{number.whole('answer')}"
    return Example(name, texts, gold, group=group, cluster=cluster, where=row.where)


def _entity(row: Row) -> Example:
    """ReCoRD: a query a row, with the names of its entities; a query of the test set has no answers."""
    number = row.inner("idx")
    texts = (row.text("passage"), row.text("query"))
    right = _texts(row, "answers") or None
    choices = tuple(dict.fromkeys(_texts(row, "entities")))
    return entity_example(
        row, str(number.whole("query")), str(number.whole("passage")), texts, choices, right
    )


def _texts(row: Row, name: str) -> list[str]:
    value = row.value(name)
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        row.refuse(f"{name!r} is not a list of texts")
    return value
