"""Schemathesis walks over everything that the OpenAPI document says: no 5xx, and every answer is as documented.

What it makes up is the same in every run. Each request is sent by a visitor, a participant and an admin; where the
address names something, also with things that there are.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from ensue.platform.boards.baselines import Baselines
from ensue.platform.boards.board import Boards
from ensue.platform.service import Settings, opened
from ensue.platform.web.app import create_app
from tests.platform import filling
from tests.platform.annotation import working
from tests.platform.boards.handing import participant

CHECKS = [
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]


class Walk:
    """A served application, who asks it, and what there is to ask for."""

    def __init__(self, app: Any, callers: list[dict[str, str]], there: dict[str, str]) -> None:
        self.app, self.callers, self.there = app, callers, there
        self.statuses: set[int] = set()

    def send(self, case: schemathesis.Case) -> None:
        named = {name: self.there[name] for name in case.path_parameters or {} if name in self.there}
        for places in ({}, named) if named else ({},):
            case.path_parameters = {**(case.path_parameters or {}), **places}
            for headers in self.callers:
                answer = case.call(headers={**headers, "Accept": "application/json"})
                # That there is no room or no worker now is no failure, where the document says so.
                assert answer.status_code < 500 or answer.status_code == 503, answer.text
                case.validate_response(answer, checks=CHECKS)
                self.statuses.add(answer.status_code)


@pytest.fixture(scope="module")
def walk(module_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Walk]:
    with opened(Settings(home=tmp_path_factory.mktemp("walk") / "home", database=module_url)) as platform:
        ada, root = participant(platform), participant(platform, "root@example.org", "admin")
        with platform.database.writing() as connection:
            board = filling.add_board(connection, "full")
            filling.add_published(connection, board)
            filling.add_many(connection, board, 4)
            mine = filling.add_entry(connection, board, "mine", {}, None, user_id=ada.user.id)
        Baselines(Boards(platform)).make_bundled()
        working.make(platform, [working.item(f"item-{number}") for number in range(3)])
        app = create_app(platform)
        there = {"board": "full", "submission": mine, "name": "rain"}
        yield Walk(app, [{}, ada.headers, root.headers], there)


@settings(
    max_examples=5,
    derandomize=True,
    deadline=None,
    database=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
@given(st.data())
def send_some(walk: Walk, operation: schemathesis.APIOperation, data: st.DataObject) -> None:
    walk.send(data.draw(operation.as_strategy()))


def test_every_answer_is_documented(walk: Walk, subtests: pytest.Subtests) -> None:
    document = schemathesis.openapi.from_asgi("/api/v1/openapi.json", walk.app)
    count = 0
    for found in document.get_all_operations():
        operation = found.ok()
        with subtests.test(operation.label):
            send_some(walk, operation)
        count += 1
    assert count == document.statistic.operations.total > 20
    assert {200, 201, 401, 403, 404, 409, 422} <= walk.statuses
