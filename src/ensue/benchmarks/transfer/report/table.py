"""The tables of transfer runs: a row a test, a column a model, those trained on shuffled text first."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from textwrap import wrap
from typing import Any, NamedTuple

from ensue.benchmarks.published import published
from ensue.benchmarks.transfer.asked import ACCURACY, HIT_RATE
from ensue.benchmarks.transfer.judging import AHEAD
from ensue.report.figure import Figure, fraction, signed
from ensue.report.results import Results
from ensue.report.table import Cell, Column, Content, Table

PACKAGE = "ensue.benchmarks.transfer"
# What 80 columns have room for; pages and files have all models.
_MOST, _HEADING = 5, 9
_CAPTION = (
    "Accuracy over pairs of texts, chance 0.5. shuffled: the document rather than its blocks of k sentences in "
    "another order; intruder: rather than the one with a sentence of another; ratings: the better rated of two texts "
    "of one group; found: documents in which the intruder is the sentence that follows least. * trained on shuffled "
    "text."
)
_SHUFFLE, _RATINGS = "transfer/shuffle", "transfer/ratings"
_TASKS = {_SHUFFLE: "shuffled", "transfer/intruder": "intruder", _RATINGS: "ratings"}


class TransferTest(NamedTuple):
    """A test as rows of results have it: its task and what is asked, without the model."""

    task: str
    asked: str

    @property
    def question(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.asked)
        return found

    @property
    def set(self) -> str:
        return str(self.question["set"])

    @property
    def detail(self) -> str:
        """Return what tells it from others of its task and set: a block size, or a kind of intruder."""
        question = self.question
        return f"k = {question['block_size']}" if "block_size" in question else str(question.get("kind", ""))

    @property
    def label(self) -> str:
        """Return what a row is called."""
        name = _TASKS[self.task]
        return " · ".join(word for word in (name, self.set if name != "ratings" else "", self.detail) if word)


class Transferred:
    """The figures of a run by test and model."""

    def __init__(self, results: Mapping[str, Any]) -> None:
        self.tests: list[TransferTest] = []
        self.trained: dict[str, bool] = {}
        self._found: dict[tuple[TransferTest, str, str, str], Figure] = {}
        for row in results["metrics"]:
            if row["task"] not in _TASKS:
                continue
            question = dict(row["settings"])
            model, against = str(question.pop("model")), str(question.pop("against", ""))
            if row["metric"] != AHEAD:
                self.trained[model] = bool(question.pop("trained"))
            test = TransferTest(row["task"], json.dumps(question))
            if test not in self.tests:
                self.tests.append(test)
            self._found[test, row["metric"], model, against] = Figure.of(row)

    @property
    def models(self) -> list[str]:
        """The models, those trained on shuffled text first."""
        return sorted(self.trained, key=lambda name: not self.trained[name])

    @property
    def rivals(self) -> list[tuple[str, str]]:
        """Every model trained on shuffled text with every other."""
        return [(a, b) for a in self.models if self.trained[a] for b in self.models if not self.trained[b]]

    def get(self, test: TransferTest, model: str, metric: str = ACCURACY) -> Figure | None:
        return self._found.get((test, metric, model, ""))

    def ahead(self, test: TransferTest, model: str, against: str) -> Figure | None:
        return self._found.get((test, AHEAD, model, against))

    @property
    def home(self) -> TransferTest | None:
        """The test nearest to what such models are trained for: the first set, its smallest blocks."""
        shuffled = [test for test in self.tests if test.task == _SHUFFLE]
        first = [test for test in shuffled if test.set == shuffled[0].set]
        return min(first, key=lambda test: int(test.question["block_size"]), default=None)


def anchors(run: Transferred, test: TransferTest) -> list[float]:
    """Return what is published of supervised models on such a test, from least to most; none of other domains."""
    if run.home is not None and test.set != run.home.set and test.task != _RATINGS:
        return []
    question = test.question
    found = [
        one.value
        for one in published(PACKAGE)
        if one.task == test.task and all(question.get(key) == value for key, value in one.settings.items())
    ]
    return sorted(found)


def tables(results: Results, folder: Path | None = None) -> list[Table]:
    """Return the table of a run, and how far trained models are ahead; none where nothing was tested."""
    run = Transferred(results)
    if not run.tests:
        return []
    return [accuracy_table(run), *([ahead_table(run)] if run.rivals else [])]


def accuracy_table(run: Transferred) -> Table:
    """Return a row a test and a column a model, what is published of supervised models last."""
    columns = [Column("test", words=True)]
    for place, model in enumerate(run.models):
        star = "*" if run.trained[model] else ""
        columns += [
            Column(_narrow(model + star), wide=model + star, in_terminal=place < _MOST),
            Column("95 % interval", in_terminal=False),
        ]
    columns += [
        Column("pairs", in_terminal=False),
        Column("documents", in_terminal=False),
        Column("publ.\nsuperv.", wide="published: supervised", published=True),
    ]
    table = Table(columns, title="Does it transfer?", caption=_CAPTION)
    last = None
    for test in run.tests:
        figures = [run.get(test, model) for model in run.models]
        some = next((one for one in figures if one is not None), None)
        table.add(
            test.label,
            *(cell for one in figures for cell in _cells(one)),
            None if some is None else some.n,
            None if some is None else some.clusters,
            "–".join(fraction(value) for value in anchors(run, test)) or None,
            section=last is not None and (test.task, test.set) != last,
        )
        last = (test.task, test.set)
    _add_found(table, run)
    return table


def _add_found(table: Table, run: Transferred) -> None:
    """Add how often the intruder itself is found, where chance is one in so many sentences."""
    first = True
    for test in run.tests:
        figures = [run.get(test, model, HIT_RATE) for model in run.models]
        if any(figures):
            cells = [cell for one in figures for cell in _cells(one)]
            label = test.label.replace("intruder", "found", 1)
            table.add(label, *cells, None, None, None, tone="quiet", section=first)
            first = False


def _cells(figure: Figure | None) -> list[Content]:
    if figure is None:
        return [None, None]
    return [Cell(figure.text(), value=figure.value), figure.interval()]


def ahead_table(run: Transferred) -> Table:
    """Return by how much each trained model is ahead of each other one, on the same pairs of texts."""
    columns = [Column("test", words=True)]
    for place, (model, against) in enumerate(run.rivals):
        columns += [
            Column(_narrow(f"{model} − {against}"), wide=f"{model} − {against}", in_terminal=place < _MOST),
            Column("95 % interval", in_terminal=False),
        ]
    table = Table(
        columns,
        title="Ahead by training on shuffled text",
        caption="Differences in accuracy on the same pairs; bold where the 95 % interval leaves out zero.",
    )
    for test in run.tests:
        cells: list[Content] = []
        for model, against in run.rivals:
            figure = run.ahead(test, model, against)
            if figure is None:
                cells += [None, None]
                continue
            sure = verdict(figure) != 0
            cells += [
                Cell(signed(figure.value), "strong" if sure else "", value=figure.value),
                figure.interval(),
            ]
        table.add(test.label, *cells)
    return table


def verdict(figure: Figure) -> int:
    """Return 1 where a difference is surely above zero, -1 where surely below, 0 where its interval holds zero.

    >>> verdict(Figure(0.1, 0.05, 0.2)), verdict(Figure(0.1, -0.05, 0.2)), verdict(Figure(-0.1, -0.2, -0.05))
    (1, 0, -1)
    """
    if figure.low is None or figure.high is None:
        return 0
    return 1 if figure.low > 0 else -1 if figure.high < 0 else 0


def _narrow(name: str) -> str:
    return "\n".join(wrap(name, _HEADING, break_on_hyphens=True))


def in_words(run: Transferred) -> list[str]:
    """Say of every trained model and its rival whether what it is ahead by at home lasts."""
    said = []
    for model, against in run.rivals:
        here = None if run.home is None else run.ahead(run.home, model, against)
        away = [run.ahead(test, model, against) for test in run.tests if test != run.home]
        signs = [verdict(one) for one in away if one is not None]
        if here is None or run.home is None:
            continue
        said.append(
            f"{model} against {against}: {signed(here.value)} [{here.interval()}] on {run.home.label}, which is "
            f"nearest to its training; elsewhere surely ahead on {signs.count(1)} of {len(signs)} tests, surely "
            f"behind on {signs.count(-1)}."
        )
    return said


def rows_by_group(run: Transferred) -> list[tuple[str, Sequence[TransferTest]]]:
    """Return tests that belong side by side, under what they have in common."""
    groups: dict[str, list[TransferTest]] = {}
    for test in run.tests:
        name = _TASKS[test.task]
        groups.setdefault(name if name == "ratings" else f"{name}\n{test.set}", []).append(test)
    return list(groups.items())
