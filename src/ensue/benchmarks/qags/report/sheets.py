"""What is said of QAGS runs: every metric against people, set by set, beside what was published."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ensue.benchmarks.qags.baselines import TO_BEAT
from ensue.benchmarks.qags.measures import QAGS
from ensue.benchmarks.qags.published import published_ablation, published_metrics, published_ranking
from ensue.errors import EnsueError

TITLES = {
    "cnndm": "CNN/DM",
    "xsum": "XSum",
    "falke": "Falke’s triplets",
    "summeval": "SummEval",
    "realsumm": "REALSumm",
    "newsroom": "Newsroom",
}
KINDS = ("pearson", "spearman", "kendall")
RANKING_KINDS = ("accuracy", "accuracy_half_ties", "ties")
COMPARISONS_FILE = "comparisons.jsonl"
# Set, level, human score, metric and kind of figure.
_Key = tuple[str, str, str, str, str]


class Cell(NamedTuple):
    """One number with its interval, where it has one."""

    value: float
    low: float | None
    high: float | None
    n: int


class Difference(NamedTuple):
    """A metric's figure less that of the baseline to beat; `p` is corrected for the others (Holm)."""

    value: float
    low: float | None
    high: float | None
    p: float | None


class MeasureRow(NamedTuple):
    """A metric on a set; without `cells` it is only published."""

    measure: str
    cells: dict[str, Cell]
    published: float | None = None
    against: Difference | None = None


class SetSheet(NamedTuple):
    """A set, or one level of a set that several systems wrote summaries for."""

    name: str
    level: str
    human: str
    kinds: tuple[str, ...]
    rows: list[MeasureRow]
    alpha: Cell | None

    @property
    def title(self) -> str:
        words = [TITLES.get(self.name, self.name)]
        if self.level:
            words.append(f"{self.level} level, {self.human.replace('_', ' ')}")
        return ": ".join(words)

    @property
    def main(self) -> str:
        """The kind of figure that stands for the set."""
        return self.kinds[0]

    def cell(self, measure: str) -> Cell | None:
        return next((row.cells.get(self.main) for row in self.rows if row.measure == measure), None)


class AblationRow(NamedTuple):
    """QAGS with one thing changed, by set; `published` has Pearson's correlations."""

    setting: str
    cells: dict[str, Cell]
    published: dict[str, float]


class AblationSheet(NamedTuple):
    """All settings of one thing."""

    name: str
    rows: list[AblationRow]


def set_sheets(results: Mapping[str, Any], comparisons: Iterable[Mapping[str, Any]] = ()) -> list[SetSheet]:
    """The run's figures set by set; none where its rows are not of the known form."""
    rows = [row for row in results["metrics"] if "ablation" not in row["settings"]]
    told = {_key(row): row for row in comparisons if row["b"] == TO_BEAT}
    places = dict.fromkeys(_place(row) for row in rows if "measure" in row["settings"])
    return [_sheet(place, rows, told) for place in places]


def ablation_sheets(results: Mapping[str, Any]) -> list[AblationSheet]:
    """What was varied; of a collection the system level is told."""
    found: dict[str, dict[str, dict[str, Cell]]] = {}
    for row in results["metrics"]:
        settings = row["settings"]
        if "ablation" not in settings or settings.get("level") == "summary":
            continue
        if row["metric"] in ("pearson", "accuracy"):
            name, setting = str(settings["ablation"]), str(settings["setting"])
            found.setdefault(name, {}).setdefault(setting, {})[str(row["task"])] = _cell(row)
    return [
        AblationSheet(
            name, [AblationRow(setting, cells, _published(name, setting)) for setting, cells in rows.items()]
        )
        for name, rows in found.items()
    ]


def read_comparisons(folder: Path) -> list[dict[str, Any]]:
    """The differences between metrics that a run has tested; none where it kept none."""
    path = folder / COMPARISONS_FILE
    if not path.is_file():
        return []
    found = []
    for number, line in enumerate(path.read_bytes().split(b"\n"), start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except ValueError:
            row = None
        if not isinstance(row, dict) or not {"set", "a", "b", "kind", "difference"} <= set(row):
            raise EnsueError(f"{path}, line {number}: this is no comparison of two metrics; run it again.")
        found.append(row)
    return found


def _place(row: Mapping[str, Any]) -> tuple[str, str, str]:
    settings = row["settings"]
    return str(row["task"]), str(settings.get("level", "")), str(settings.get("human", ""))


def _key(row: Mapping[str, Any]) -> _Key:
    return (
        str(row["set"]),
        str(row.get("level", "")),
        str(row.get("human", "")),
        str(row["a"]),
        str(row["kind"]),
    )


def _sheet(
    place: tuple[str, str, str],
    rows: Sequence[Mapping[str, Any]],
    told: Mapping[_Key, Mapping[str, Any]],
) -> SetSheet:
    mine = [row for row in rows if "measure" in row["settings"] and _place(row) == place]
    kinds = RANKING_KINDS if any(row["metric"] == "accuracy" for row in mine) else KINDS
    cells: dict[str, dict[str, Cell]] = {}
    for row in mine:
        cells.setdefault(str(row["settings"]["measure"]), {})[str(row["metric"])] = _cell(row)
    printed = _printed(place[0])
    found = [
        MeasureRow(name, held, printed.pop(name, None), _difference(told.get((*place, name, kinds[0]))))
        for name, held in cells.items()
    ]
    found += [MeasureRow(name, {}, value) for name, value in printed.items()]
    alpha = next((_cell(row) for row in rows if row["task"] == place[0] and row["metric"] == "alpha"), None)
    return SetSheet(*place, kinds, found, alpha)


def _cell(row: Mapping[str, Any]) -> Cell:
    low, high = row["ci95"]
    return Cell(float(row["value"]), low, high, int(row["n"]))


def _difference(row: Mapping[str, Any] | None) -> Difference | None:
    if row is None:
        return None
    low, high = row.get("ci95") or (None, None)
    return Difference(float(row["difference"]), low, high, row.get("holm"))


def _printed(name: str) -> dict[str, float]:
    """What the paper prints for a set, by the names used here."""
    if name in ("cnndm", "xsum"):
        return {row.metric.lower(): float(getattr(row, name)) for row in published_metrics()}
    return {row.system.lower(): row.accuracy for row in published_ranking()} if name == "falke" else {}


def _published(ablation: str, setting: str) -> dict[str, float]:
    names = {"f1": "token F1", "exact": "exact match"}
    if ablation not in ("questions", "similarity"):
        return {}
    for row in published_ablation(ablation):
        if row.setting == names.get(setting, setting):
            return {"cnndm": row.cnndm, "xsum": row.xsum}
    return {}


def beaten_words(sheet: SetSheet) -> str:
    """Whether QAGS beats the baseline, in a few words; nothing where either is not there."""
    ours, baseline = sheet.cell(QAGS), sheet.cell(TO_BEAT)
    if ours is None or baseline is None:
        return ""
    row = next(row for row in sheet.rows if row.measure == QAGS)
    sure = row.against is not None and row.against.p is not None and row.against.p <= 0.05
    side = "above" if ours.value > baseline.value else "below"
    return f"{side} {TO_BEAT}{'' if sure else ', not significantly'}"
