"""Baselines: rows of a board that nobody handed in, of kind published, measured or human.

Their figures come from a benchmark's `published.toml`, from `bundled.toml` (what this project measured, and the
boards that a server opens on) or from an organiser's file of the same form. A system of several tables is one row;
where two tables disagree, the first is believed.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from importlib.resources import files
from typing import Any

from sqlalchemy import Connection, insert, select

from ensue.benchmarks.published import PublishedFigure, citation, figures_in, published
from ensue.platform.boards.board import Board, Boards, fits
from ensue.platform.database.schema import boards, new_id, submissions
from ensue.platform.refusals import Invalid, NotFound

PUBLISHED, MEASURED, HUMAN = "published", "measured", "human"
_KEPT_FACTS = ("parameters", "sharing", "data", "code")
_FOUND_IN = "Printed in"


@dataclass
class Baseline:
    """A system with its figures, as a board shows it."""

    system: str
    kind: str
    description: str
    link: str
    at: datetime
    rows: list[dict[str, Any]] = field(default_factory=list)
    diagnostics: list[dict[str, Any]] = field(default_factory=list)
    facts: dict[str, str] = field(default_factory=dict)

    def score(self, main: Mapping[str, Any]) -> float | None:
        """Return the figure in the column that systems are ordered by."""
        return next((row["value"] for row in self.rows if fits(row, main)), None)


def read_bundled() -> list[dict[str, Any]]:
    """Return what bundled.toml says of each board."""
    words = files("ensue.platform.boards").joinpath("bundled.toml").read_text("utf-8")
    return list(tomllib.loads(words)["boards"])


def baselines_of(said: Mapping[str, Any]) -> list[Baseline]:
    """Return the published and measured systems of a bundled board."""
    package = f"ensue.benchmarks.{said['suite']}"
    order = {table: place for place, table in enumerate(said.get("tables", []))}
    found: list[Baseline] = []
    if order:
        printed = sorted(
            (one for one in published(package) if one.table in order), key=lambda one: order[one.table]
        )
        source = f"{_FOUND_IN} {citation(package)}"
        found = gather(printed, said, PUBLISHED, source, said["dated"], said["link"])
    for table in said.get("measured", []):
        about = {key: value for key, value in table.items() if key not in ("source", "dated")}
        words = f"{table['source'][0].upper()}{table['source'][1:]}"
        found += gather(figures_in([about]), said, MEASURED, words, table["dated"], "")
    return found


def gather(
    figures: Iterable[PublishedFigure],
    said: Mapping[str, Any],
    kind: str,
    source: str,
    dated: date,
    link: str,
) -> list[Baseline]:
    """Return figures by system; one name in several groups is told apart by its group."""
    figures = [one for one in figures if one.metric not in said.get("leave_out", ())]
    names: dict[str, dict[str, None]] = {}
    for one in figures:
        names.setdefault(one.system, {})[one.group] = None
    found: dict[str, Baseline] = {}
    for one in figures:
        groups = [group for group in names[one.system] if group]
        name = f"{one.system} ({one.group})" if len(groups) > 1 and one.group else one.system
        if name not in found:
            human = one.group == HUMAN or one.system.lower() == HUMAN or bool(one.facts.get(HUMAN))
            at = datetime(dated.year, dated.month, dated.day, tzinfo=UTC)
            place = one.table if one.table.startswith("section") else f"table {one.table}"
            words = f"{source}, {place}." if kind == PUBLISHED else f"{source} ({one.table})."
            found[name] = Baseline(name, HUMAN if human else kind, words, link, at)
        baseline = found[name]
        baseline.facts |= {key: str(one.facts[key]) for key in _KEPT_FACTS if key in one.facts}
        row = {"task": one.task, "metric": one.metric, "value": one.value, "ci95": [None, None]}
        row |= {"n": 0, "clusters": 0, "settings": {"split": said["split"], **one.settings}}
        same = [row["task"], row["metric"], row["settings"]]
        diagnostic = one.task == said.get("diagnostic")
        if diagnostic:
            baseline.diagnostics.append(row)
        of_a_part = diagnostic and bool({"category", "tag"} & set(one.settings))
        known = ([two["task"], two["metric"], two["settings"]] for two in baseline.rows)
        if not of_a_part and same not in known:
            baseline.rows.append(row)
    return list(found.values())


def columns_of(said: Mapping[str, Any], found: Sequence[Baseline]) -> list[dict[str, Any]]:
    """Return the columns in which a board without labels shows its baselines: the main one first."""
    main: dict[str, Any] = {"settings": {}, **said["main"], "main": True}
    told = {"split", *main["settings"]}
    columns = [main]
    for row in (row for baseline in found for row in baseline.rows):
        settings = {key: value for key, value in row["settings"].items() if key in told}
        column = {"task": row["task"], "metric": row["metric"], "settings": settings}
        if not fits(row, main) and column not in columns:
            columns.append(column)
    parts = said.get("covers", {})
    return [{**column, "covers": parts.get(column["task"], "")} for column in columns]


class Baselines:
    """The baselines of a platform's boards."""

    def __init__(self, all_boards: Boards) -> None:
        self.boards, self.platform = all_boards, all_boards.platform

    def make_bundled(self) -> int:
        """Add the bundled boards that are not there; return how many."""
        with self.platform.database.reading() as connection:
            known = set(connection.execute(select(boards.c.name)).scalars())
        missing = [said for said in read_bundled() if said["name"] not in known]
        if not missing:
            return 0
        with self.platform.database.writing() as connection:
            for said in missing:
                try:
                    self.boards.find(connection, said["name"])
                except NotFound:
                    self._make(connection, said)
        return len(missing)

    def _make(self, connection: Connection, said: Mapping[str, Any]) -> None:
        found = baselines_of(said)
        told = {key: said[key] for key in ("name", "title", "about", "suite", "split")}
        board_id = self.boards.insert_bundled(connection, {**told, "definition": {}}, columns_of(said, found))
        self.add(connection, board_id, found)

    def add(self, connection: Connection, board_id: str, found: Iterable[Baseline]) -> int:
        """Put baselines on a board; one that is there already is given these figures. Return how many."""
        main, count = self.boards.main_column(connection, board_id), 0
        here = (submissions.c.board_id == board_id, submissions.c.kind != "submission")
        query = select(submissions.c.id, submissions.c.kind, submissions.c.system).where(*here)
        known = {(row.kind, row.system): row.id for row in connection.execute(query)}
        for one in found:
            submission_id = known.get((one.kind, one.system))
            if submission_id is None:
                submission_id = new_id()
                row = {
                    "id": submission_id,
                    "board_id": board_id,
                    "kind": one.kind,
                    "system": one.system[:200],
                }
                row |= {"description": one.description, "link": one.link, "state": "graded", **one.facts}
                connection.execute(
                    insert(submissions).values(
                        **row, created_at=self.platform.clock.now(), published_at=one.at
                    )
                )
            figures = {"metrics": one.rows, "diagnostics": one.diagnostics, "score": one.score(main)}
            self.boards.grade_baseline(connection, submission_id, figures, one.at)
            count += 1
        return count

    def import_published(self, name: str) -> dict[str, Any]:
        """Put on a board what its suite's papers print, and what was measured here, of its split."""
        with self.platform.database.writing() as connection:
            board = self.boards.find(connection, name, locked=True)
            said = [
                one for one in read_bundled() if (one["suite"], one["split"]) == (board.suite, board.split)
            ]
            if not said:
                raise NotFound(f"There are no published figures for {board.suite or name} on {board.split}.")
            count = sum(self.add(connection, board.id, baselines_of(one)) for one in said)
            self._record(connection, board, count)
        return {"board": name, "baselines": count}

    def import_file(self, name: str, words: str) -> dict[str, Any]:
        """Put on a board what a file of the form of published.toml says."""
        try:
            said = tomllib.loads(words)
            figures = figures_in(said["tables"])
            source, dated = str(said["citation"]), said.get("dated", self.platform.clock.now().date())
            if not isinstance(dated, date):
                raise TypeError
        except (tomllib.TOMLDecodeError, KeyError, TypeError, ValueError, AttributeError):
            raise Invalid(
                "The file of baselines is not like a published.toml: a citation, and tables of columns and rows."
            ) from None
        with self.platform.database.writing() as connection:
            board = self.boards.find(connection, name, locked=True)
            source = f"{_FOUND_IN} {source}"
            found = gather(
                figures, {"split": board.split}, PUBLISHED, source, dated, str(said.get("url", ""))
            )
            count = self.add(connection, board.id, found)
            self._record(connection, board, count)
        return {"board": name, "baselines": count}

    def _record(self, connection: Connection, board: Board, count: int) -> None:
        self.platform.accounts.record(connection, "baselines imported", subject=board.id, count=count)
