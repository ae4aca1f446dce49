"""The figures of the DiscoEval paper (Chen et al., 2019), to be shown beside measured ones."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple


class PublishedRow(NamedTuple):
    """One accuracy the paper prints, as a fraction.

    `task` is a task, group or "average" as in a run's metric rows; `setting` holds the ablation of tables 4
    and 6; `ours` marks the encoders that the paper trains itself.
    """

    model: str
    task: str
    accuracy: float
    table: int
    human: bool = False
    ours: bool = False
    setting: tuple[tuple[str, str], ...] = ()


class BestLayer(NamedTuple):
    """A line of table 3: the mean number of the best layer over the tasks of a suite."""

    suite: str
    model: str
    layer: float


class SentEvalRow(NamedTuple):
    """The SentEval half of a line of table 2: group means as fractions (USS is a correlation)."""

    model: str
    groups: dict[str, float]
    ours: bool


def published() -> list[PublishedRow]:
    """Every DiscoEval accuracy of tables 2, 4, 5 and 6, human rows included.

    >>> [row.accuracy for row in published() if row.human and row.task == "SP/wiki"]
    [0.84]
    """
    data = _data()
    second = data["table_2"]
    rows = [
        PublishedRow(line["model"], task, accuracy, 2, ours=line.get("ours", False))
        for line in second["rows"]
        for task, accuracy in zip(second["columns"], line["accuracy"], strict=True)
    ]
    rows += [
        PublishedRow(line["model"], task, accuracy, 5, human=line.get("human", False))
        for line in data["table_5"]["rows"]
        for task, accuracy in line["accuracy"].items()
    ]
    rows += [
        PublishedRow(
            line["model"], line["task"], line["accuracy"], table, setting=tuple(line["setting"].items())
        )
        for table in (4, 6)
        for line in data[f"table_{table}"]["rows"]
    ]
    return rows


def human() -> dict[str, float]:
    """The human accuracies by task and group.

    >>> human()["DC/chat"]
    0.74
    """
    return {row.task: row.accuracy for row in published() if row.human}


def published_line(model: str) -> dict[str, float]:
    """A model's line of table 2 by column; empty where the paper has none.

    >>> published_line("BERT-Base")["average"]
    0.574
    """
    return {row.task: row.accuracy for row in published() if (row.model, row.table) == (model, 2)}


def published_senteval() -> list[SentEvalRow]:
    """The SentEval half of table 2."""
    table = _data()["table_2"]
    return [
        SentEvalRow(
            line["model"],
            dict(zip(table["senteval_columns"], line["senteval"], strict=True)),
            line.get("ours", False),
        )
        for line in table["rows"]
    ]


def best_layers() -> list[BestLayer]:
    """Table 3."""
    return [BestLayer(**row) for row in _data()["table_3"]["rows"]]


def citation() -> str:
    """The paper, as one line."""
    return str(_data()["citation"])


@cache
def _data() -> dict[str, Any]:
    text = files("ensue.benchmarks.discoeval").joinpath("published.toml").read_text("utf-8")
    return tomllib.loads(text)
