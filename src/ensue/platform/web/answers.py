"""What `/api/v1` answers about boards and submissions, as the OpenAPI says it, and the form it takes."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, Field

from ensue.platform.web.account_api import Problem


class FileProblem(BaseModel):
    """What is wrong with a file, and where; `line` is 0 for a whole file."""

    file: str
    line: int
    problem: str


class Problematic(BaseModel):
    """Why a submission was not accepted; without `problems` where the file itself was not looked at."""

    error: str
    problems: list[FileProblem] | None = None


class Spent(BaseModel):
    """A quota or a rate that is spent, and until when."""

    error: str
    retry_at: str


class Accepted(BaseModel):
    """A submission that was accepted; `position` is its place in the queue, 0 while it is graded."""

    id: str
    state: str
    position: int | None


class BoardFacts(BaseModel):
    """A board without what is on it. Days and months of the quota are those of UTC."""

    name: str
    title: str
    about: str
    suite: str | None
    split: str
    takes: str
    rounding: int
    quota_day: int
    quota_month: int
    is_open: bool
    labels_version: int
    labels_at: str | None


class Cell(BaseModel):
    """A figure of a board, rounded as it says; `n` is 0 where a baseline's source does not say."""

    value: float
    ci95: list[float | None]
    n: int


class ShownColumn(BaseModel):
    """A column; rows have their figures under its key."""

    key: str
    task: str
    metric: str
    settings: dict[str, Any]


class ShownRow(BaseModel):
    """A submission or a baseline (kind published, measured or human), which has no rank."""

    rank: int | None
    tied: bool
    id: str
    kind: str
    system: str
    team: str
    score: Cell | None
    metrics: dict[str, Cell | None]
    description: str
    parameters: str
    sharing: str
    data: str
    link: str
    code: str
    covers: str
    published_at: str
    labels_version: int
    is_stale: bool


class Regraded(BaseModel):
    """The last time that everything on a board was graded again: how many published systems are, are yet to be, or
    cannot be and stand no more. `labels_version` is that of the labels from then on.
    """

    at: str
    labels_version: int
    has_new_labels: bool
    graded_again: int
    under_way: int
    failed: int


class ShownBoard(BaseModel):
    """A board with everything published on it; `withdrawn` counts what stood there on its date and does no more.

    A row that `is_stale` has figures of older labels and is yet to be graded again.
    """

    board: str
    title: str
    suite: str | None
    split: str
    rounding: int
    date: str | None
    labels_version: int
    regraded: Regraded | None
    withdrawn: int
    covers: dict[str, str]
    columns: list[ShownColumn]
    rows: list[ShownRow]


class QuotaUsed(BaseModel):
    """What the caller has used of a board's quota."""

    day: int
    month: int
    quota_day: int
    quota_month: int
    retry_at: str | None


class Figure(BaseModel):
    """A metric row; values are fractions, rounded as the board says."""

    task: str
    metric: str
    value: float | None
    ci95: list[float | None]
    n: int
    clusters: int
    settings: dict[str, Any]


class Scores(BaseModel):
    """What a submission is worth; `score` is null where a task that counts is missing."""

    score: float | None
    metrics: list[Figure]
    diagnostics: list[Figure]
    not_scored: dict[str, str]
    notes: list[str]
    covers: str
    labels_version: int
    graded_at: str
    version: str


class PastScores(BaseModel):
    """One grading of a submission's history."""

    graded_at: str
    labels_version: int
    score: float | None
    metrics: list[Figure]


class Submission(BaseModel):
    """A submission with its gradings, the last of which stands. What follows them is told to its owner alone."""

    id: str
    board: str
    kind: str
    state: str
    reason: str | None
    position: int | None
    system: str
    team: str
    description: str
    parameters: str
    sharing: str
    data: str
    link: str
    code: str
    is_anonymous: bool
    published_at: str | None
    scores: Scores | None
    is_regrading: bool
    history: list[PastScores]
    email: str | None = None
    file: str | None = None
    created_at: str | None = None


class Publication(BaseModel):
    """How to publish: `anonymous` leaves out team and links."""

    anonymous: bool = Field(False)


MISSING: dict[int | str, dict[str, Any]] = {404: {"model": Problem}, 422: {"model": Problem}}
UPLOAD: dict[str, Any] = {
    "type": "object",
    "required": ["file", "system", "description", "parameters", "data", "link"],
    "properties": {
        "file": {
            "type": "string",
            "format": "binary",
            "description": "what the board takes: its predictions",
        },
        "system": {"type": "string", "maxLength": 200},
        "description": {"type": "string", "maxLength": 20000},
        "parameters": {"type": "string", "maxLength": 200, "description": "how many"},
        "sharing": {"type": "string", "maxLength": 200, "description": "which of them tasks share"},
        "data": {"type": "string", "maxLength": 20000, "description": "what it was trained on"},
        "link": {"type": "string", "format": "uri", "maxLength": 1000},
        "affiliation": {"type": "string", "maxLength": 200},
        "code": {"type": "string", "format": "uri", "maxLength": 1000},
        "email": {"type": "string", "format": "email", "maxLength": 254},
    },
}
