"""Annotated chapter transitions: sheets to fill in, files of annotations, and where runs fail (tables 1 and 5)."""

from __future__ import annotations

import csv
import difflib
import io
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from ensue.errors import EnsueError
from ensue.jsonl import text_lines
from ensue.report.figure import Figure
from ensue.stats.clustered import clustered_interval
from ensue.stats.ranges import SHARE
from ensue.text.io.rows import json_objects

# The aspects by name, each with its categories and what they mean.
ASPECTS: dict[str, dict[str, str]] = {
    "events": {
        "new event": "the old event is over, the chapter opens with a new one",
        "event continues": "the event of the last chapter goes on into the next",
    },
    "actors": {
        "change": "someone else tells the story or stands in its middle",
        "no change": "point of view and main character stay",
    },
    "location": {
        "change": "the chapter is set in another place",
        "no change": "the place stays",
    },
    "continuity": {
        "discontinuous": "time moves on by more than a night",
        "continuous": "at most a night passes",
        "analepsis": "a flashback: something earlier is told",
        "parallel": "time goes back to that of an earlier chapter, mostly to follow others or other events",
    },
}

COLUMNS = ("example", *ASPECTS)
ANNOTATOR = "annotator"


# What was annotated of one example: its category by aspect, None where as many annotators said one as another.
Transition = Mapping[str, str | None]
# The suffix length of the paper; of several in a run, the one that results are reported for.
MAIN_SUFFIX = 128


@dataclass(frozen=True)
class Annotations:
    """The transitions of a file by example, how many votes tied by aspect, and how many rows were not filled in."""

    transitions: dict[str, Transition]
    ties: dict[str, int]
    annotators: int
    empty: int


def read_annotations(path: str | Path) -> Annotations:
    """Read an annotation file, CSV or JSON lines, and settle what several annotators said by most votes.

    Rows whose four aspects are all empty are sheets not filled in: they are counted and left out.
    """
    path = Path(path)
    votes: dict[str, dict[str, dict[str, str]]] = {}
    empty = 0
    for place, row in _rows(path):
        values = {column: _cell(row, column, place) for column in (*COLUMNS, ANNOTATOR)}
        example, annotator = values["example"], values[ANNOTATOR]
        if not example:
            raise EnsueError(f"{place}: the column 'example' is empty.")
        if not any(values[aspect] for aspect in ASPECTS):
            empty += 1
            continue
        given = votes.setdefault(example, {})
        if annotator in given:
            who = f" by annotator {annotator!r}" if annotator else ""
            raise EnsueError(f"{place}: example {example!r} is annotated a second time{who}.")
        given[annotator] = {aspect: _category(aspect, values[aspect], place) for aspect in ASPECTS}
    if not votes:
        raise EnsueError(f"{path} has no annotations{' yet: all its rows are empty' if empty else ''}.")
    ties: Counter[str] = Counter()
    settled = {example: _settle(list(given.values()), ties) for example, given in votes.items()}
    annotators = {name for given in votes.values() for name in given}
    return Annotations(settled, dict(ties), len(annotators), empty)


def write_sheet(examples: Iterable[str], path: str | Path) -> int:
    """Write a CSV sheet to be filled in, a row per example, and say how many rows it has."""
    path = Path(path)
    names = list(dict.fromkeys(examples))
    try:
        # Never over a file that is there: it may be a sheet somebody spent days on.
        with path.open("x", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(COLUMNS)
            writer.writerows([name, *("" for _ in ASPECTS)] for name in names)
    except FileExistsError as error:
        raise EnsueError(f"{path} is there already; name another file for the empty sheet.") from error
    except OSError as error:
        raise EnsueError(f"{path} cannot be written: {error.strerror or error}.") from error
    return len(names)


def run_examples(items: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the chapter-break examples of a run's items, each once, in order, as a sheet wants them."""
    chosen = (item for item in items if item["settings"].get("boundary") == "chapter")
    return list(dict.fromkeys(map(example_of, chosen)))


def example_of(item: Mapping[str, Any]) -> str:
    """Return the example an item is about: an item is an example at one prefix length."""
    outputs = item.get("outputs")
    example = outputs.get("example") if isinstance(outputs, dict) else None
    return str(example or str(item["id"]).rpartition("#")[0] or item["id"])


def _rows(path: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Read the rows of a file with where each stands; a file that opens with a brace is JSON lines."""
    if not path.is_file():
        raise EnsueError(f"{path} is not an annotation file: there is no such file.")
    text = "".join(line for _, line in text_lines(path, newline=""))
    if text.lstrip().startswith("{"):
        for place, row in json_objects(path):
            _check_columns(row, place)
            yield place, row
    else:
        yield from _csv_rows(path, text)


def _csv_rows(path: Path, text: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    reader = csv.DictReader(io.StringIO(text, newline=""), strict=True)
    try:
        _check_columns(reader.fieldnames or (), f"{path}, line 1")
        for row in reader:
            place = f"{path}, line {reader.line_num}"
            if None in row:
                raise EnsueError(f"{place}: there are more cells than columns.")
            yield place, row
    except csv.Error as error:
        raise EnsueError(f"{path}, line {reader.line_num}: not CSV ({error}).") from error


def _check_columns(present: Iterable[str], place: str) -> None:
    names = list(present)
    if missing := next((column for column in COLUMNS if column not in names), None):
        close = _closest(missing, [name for name in names if name not in COLUMNS])
        hint = f" instead of {close!r}" if close else ""
        raise EnsueError(f"{place}: an annotation needs a column {missing!r}{hint}.")


def _cell(row: Mapping[str, Any], column: str, place: str) -> str:
    value = row.get(column)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise EnsueError(f"{place}: {column!r} must be text, not {value!r}.")
    return value.strip()


def _category(aspect: str, value: str, place: str) -> str:
    known = list(ASPECTS[aspect])
    if value in known:
        return value
    if not value:
        raise EnsueError(f"{place}: the column {aspect!r} is empty; write {_or(known)}.")
    close = _closest(value, known)
    hint = f"did you mean {close!r}?" if close else f"it is {_or(known)}."
    raise EnsueError(f"{place}: {value!r} is not a category of {aspect}; {hint}")


def _closest(value: str, known: list[str]) -> str | None:
    by_case = {name.casefold(): name for name in known}
    close = difflib.get_close_matches(value.casefold(), by_case, n=1, cutoff=0.6)
    return by_case[close[0]] if close else None


def _or(names: list[str]) -> str:
    return f"{', '.join(names[:-1])} or {names[-1]}"


def _settle(votes: list[dict[str, str]], ties: Counter[str]) -> Transition:
    """Let most votes win, aspect by aspect: two who disagree about the place may well agree about the time."""
    settled: dict[str, str | None] = {}
    for aspect in ASPECTS:
        ranked = Counter(vote[aspect] for vote in votes).most_common()
        tied = len(ranked) > 1 and ranked[0][1] == ranked[1][1]
        ties[aspect] += tied
        settled[aspect] = None if tied else ranked[0][0]
    return settled


@dataclass(frozen=True, slots=True)
class Share:
    """How many of the examples with an agreed category have this one; `share` is None where there are none."""

    count: int
    total: int

    @property
    def share(self) -> float | None:
        return self.count / self.total if self.total else None


class ExampleResult(NamedTuple):
    """How a run did on one example, and the work the example is from."""

    accuracy: float
    cluster: str


class CategoryRow(NamedTuple):
    """One category: among all examples, among those every run got wrong, and each run's accuracy on it."""

    aspect: str
    category: str
    base: Share
    errors: Share
    accuracy: dict[str, Figure | None]


class Breakdown(NamedTuple):
    """The rows, and of how many annotated examples: those every run has, and those every run got wrong."""

    rows: list[CategoryRow]
    measured: int
    wrong: int


def shares(transitions: Iterable[Transition]) -> dict[tuple[str, str], Share]:
    """Count the share of each category by aspect and category (table 1); tied aspects count for neither side."""
    chosen = list(transitions)
    found = {}
    for aspect, categories in ASPECTS.items():
        given = [each[aspect] for each in chosen if each[aspect] is not None]
        for category in categories:
            found[aspect, category] = Share(given.count(category), len(given))
    return found


def longest_results(items: Iterable[Mapping[str, Any]]) -> dict[str, ExampleResult]:
    """Find how a run did on each chapter break at the split's longest prefix, with in-book negatives."""
    by_length: dict[tuple[str, int], dict[int, dict[str, ExampleResult]]] = {}
    for item in items:
        settings, accuracy = item["settings"], item["scores"].get("accuracy")
        asked = settings.get("boundary"), settings.get("negatives")
        if asked != ("chapter", "in-book") or accuracy is None:
            continue
        suffixes = by_length.setdefault((item["task"], settings["prefix_tokens"]), {})
        results = suffixes.setdefault(settings["suffix_tokens"], {})
        results[example_of(item)] = ExampleResult(float(accuracy), str(item.get("cluster", item["id"])))
    found: dict[str, ExampleResult] = {}
    for split in dict.fromkeys(split for split, _ in by_length):
        suffixes = by_length[split, max(prefix for other, prefix in by_length if other == split)]
        found |= suffixes[main_suffix(suffixes)]
    return found


def main_suffix(lengths: Iterable[int]) -> int:
    """Return of several suffix lengths the paper's, or else the longest."""
    known = set(lengths)
    return MAIN_SUFFIX if MAIN_SUFFIX in known else max(known)


def breakdown(
    transitions: Mapping[str, Transition], runs: Mapping[str, Mapping[str, ExampleResult]]
) -> Breakdown:
    """Count the shares of each category among what every run got wrong (table 5), with base rates and accuracies.

    All figures are of the annotated examples that every run has, so that they can be set side by side. An
    example is wrong where the gold suffix did not win, ties included.
    """
    common = [example for example in transitions if all(example in results for results in runs.values())]
    missed = {e for e in common if runs and all(results[e].accuracy < 1.0 for results in runs.values())}
    base = shares(transitions[example] for example in common)
    errors = shares(transitions[example] for example in common if example in missed)
    rows = []
    for (aspect, category), share in base.items():
        members = [example for example in common if transitions[example][aspect] == category]
        accuracy = {
            name: _figure([results[example] for example in members]) for name, results in runs.items()
        }
        rows.append(CategoryRow(aspect, category, share, errors[aspect, category], accuracy))
    return Breakdown(rows, len(common), len(missed))


def _figure(results: Sequence[ExampleResult]) -> Figure | None:
    if not results:
        return None
    return Figure(
        *clustered_interval([r.accuracy for r in results], [r.cluster for r in results], bounds=SHARE)
    )
