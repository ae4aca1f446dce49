"""Boards with entries on them, made straight in the tables: what pages and measurements are tried on."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import Connection, insert

from ensue.benchmarks.nlu.diagnostics import TAXONOMY
from ensue.benchmarks.published import published
from ensue.platform.database.schema import board_tasks, boards, gradings, new_id, submissions
from ensue.version import __version__

COLUMNS = (
    ("BoolQ", "accuracy"),
    ("CB", "accuracy"),
    ("CB", "f1"),
    ("COPA", "accuracy"),
    ("MultiRC", "f1a"),
    ("MultiRC", "em"),
    ("ReCoRD", "f1"),
    ("ReCoRD", "em"),
    ("RTE", "accuracy"),
    ("WiC", "accuracy"),
    ("WSC", "accuracy"),
    ("AX-b", "mcc"),
    ("AX-g", "gender_parity"),
    ("AX-g", "accuracy"),
)
FIRST = datetime(2026, 1, 5, 9, tzinfo=UTC)


def add_board(connection: Connection, name: str = "superglue", **facts: Any) -> str:
    """Add a board with SuperGLUE's columns, and return its id."""
    id = new_id()
    row = {
        "id": id,
        "name": name,
        "title": "SuperGLUE",
        "suite": "superglue",
        "definition": {},
        "split": "test",
        "labels_version": 1,
    }
    connection.execute(insert(boards).values(**{**row, "created_at": FIRST, **facts}))
    main = {"board_id": id, "place": 0, "task": "SuperGLUE", "metric": "score", "is_main": True}
    connection.execute(insert(board_tasks).values(**main))
    covers = {"ReCoRD": "500 of 10,000 test examples", "WSC": "surrogate labels, see docs"}
    connection.execute(
        insert(board_tasks),
        [
            {
                "board_id": id,
                "place": place,
                "task": task,
                "metric": metric,
                "title": "",
                "covers": covers.get(task, ""),
            }
            for place, (task, metric) in enumerate(COLUMNS, 1)
        ],
    )
    return id


def add_entry(
    connection: Connection,
    board_id: str,
    system: str,
    values: dict[tuple[str, str], float],
    score: float | None,
    *,
    at: datetime = FIRST,
    diagnostics: list[Any] | None = None,
    **facts: Any,
) -> str:
    """Add something published and graded, and return its id."""
    id = new_id()
    row = {
        "id": id,
        "board_id": board_id,
        "system": system,
        "state": "graded",
        "created_at": at,
        "published_at": at,
    }
    connection.execute(insert(submissions).values(**{**row, **facts}))
    metrics = [metric_row(task, metric, value) for (task, metric), value in values.items()]
    if score is not None:
        metrics.insert(0, metric_row("SuperGLUE", "score", score, settings={"split": "test"}))
    add_grading(connection, id, score, metrics, diagnostics or [], at)
    return id


def add_grading(
    connection: Connection,
    id: str,
    score: float | None,
    metrics: list[Any],
    diagnostics: list[Any],
    at: datetime,
) -> None:
    """Add a grading, which stands from then on."""
    row = {"submission_id": id, "labels_version": 1, "score": score, "metrics": metrics, "notes": []}
    row |= {"covers": "8 tasks", "diagnostics": diagnostics, "version": __version__, "graded_at": at}
    connection.execute(insert(gradings).values(**row))


def metric_row(
    task: str, metric: str, value: float, n: int = 400, settings: dict[str, Any] | None = None
) -> dict[str, Any]:
    """Return a row as in results.json."""
    near = [max(-1.0, value - 0.02), min(1.0, value + 0.02)]
    return {
        "task": task,
        "metric": metric,
        "value": value,
        "ci95": near,
        "n": n,
        "clusters": n,
        "settings": settings or {},
    }


def diagnostic_rows(draw: random.Random) -> list[Any]:
    """Return figures of AX-b by category and tag."""
    found = [metric_row("AX-b", "accuracy", draw.uniform(0.3, 0.8), 1104)]
    for category, tags in TAXONOMY.items():
        for tag in ("", *tags):
            settings = {"category": category, **({"tag": tag} if tag else {})}
            number = 400 if not tag else draw.randint(4, 90)
            found.append(metric_row("AX-b", "mcc", draw.uniform(-0.1, 0.7), number, settings))
    return found


def add_published(connection: Connection, board_id: str) -> None:
    """Add the figures of the SuperGLUE chapter as baselines."""
    rows: dict[tuple[str, str], dict[tuple[str, str], float]] = {}
    for one in published("ensue.benchmarks.superglue"):
        if one.table == "3.3":
            rows.setdefault((one.system, one.group), {})[one.task, one.metric] = one.value
    for (system, group), values in rows.items():
        score = values.pop(("SuperGLUE", "score"), None)
        kind = "human" if group == "human" else "published"
        add_entry(connection, board_id, system, values, score, kind=kind, team="Wang et al. 2019")


def add_many(connection: Connection, board_id: str, count: int, seed: int = 1) -> None:
    """Add so many submissions of one year, getting better with time, with ties and partial ones among them."""
    draw = random.Random(seed)
    for facts in _systems(draw, count):
        add_entry(connection, board_id, **facts)


def _systems(draw: random.Random, count: int) -> Iterator[dict[str, Any]]:
    families = ("Coherent", "Longreader", "EntailNet", "MultiHop", "Discourse-T5", "NarraLM")
    teams = ("Uppsala NLP", "Delft Reading Group", "Kyoto Text Lab", "Example Institute", "")
    for number in range(count):
        at = FIRST + timedelta(days=300 * number / count, hours=draw.uniform(0, 20))
        level = 0.62 + 0.25 * (number / count) ** 0.7 + draw.gauss(0, 0.04)
        values = {
            place: min(1.0, max(0.0, draw.gauss(level, 0.06)))
            for place in COLUMNS
            if place[0] not in {"AX-b"}
        }
        values["AX-b", "mcc"] = draw.uniform(0.1, 0.5)
        partial = draw.random() < 0.06
        if partial:
            del values["WSC", "accuracy"]
        score = None if partial else sum(values.values()) / len(values)
        yield {
            "system": f"{draw.choice(families)}-{draw.choice(['base', 'large', '7B', 'xl'])} {number}",
            "team": draw.choice(teams),
            "values": values,
            "score": score,
            "at": at,
            "description": "Fine-tuned on each task for three epochs; the best of four learning rates on dev.",
            "parameters": f"{draw.choice([110, 340, 1300, 7000])} M",
            "sharing": "encoder shared by all tasks",
            "data": "The tasks' own training sets, and MultiNLI first for CB and RTE.",
            "link": "https://example.org/paper",
            "is_anonymous": draw.random() < 0.05,
            "diagnostics": diagnostic_rows(draw),
        }
