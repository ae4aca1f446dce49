"""What the OpenAPI document says of boards and submissions is what is answered."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from ensue.platform.boards.baselines import Baselines
from ensue.platform.boards.board import Boards
from ensue.platform.service import Platform
from tests.platform.boards.handing import FACTS, grade_all, make_board, participant, predictions, submit


def fits(value: Any, schema: dict[str, Any], models: dict[str, Any], where: str = "$") -> None:
    """Fail unless a value is of the form that a schema of FastAPI's says."""
    if "$ref" in schema:
        schema = models[schema["$ref"].rpartition("/")[2]]
    if "anyOf" in schema:
        failures = []
        for one in schema["anyOf"]:
            try:
                fits(value, one, models, where)
                return
            except AssertionError as failure:
                failures.append(str(failure))
        raise AssertionError(f"{where}: {failures}")
    kinds = {"string": str, "integer": int, "number": (int, float), "boolean": bool, "null": type(None)}
    match schema.get("type"):
        case "object":
            assert isinstance(value, dict), where
            known = schema.get("properties")
            assert set(schema.get("required", [])) <= set(value), where
            for key, one in value.items():
                if known is not None:
                    assert key in known, f"{where}.{key} is not in the document"
                    fits(one, known[key], models, f"{where}.{key}")
                elif isinstance(schema.get("additionalProperties"), dict):
                    fits(one, schema["additionalProperties"], models, f"{where}.{key}")
        case "array":
            assert isinstance(value, list), where
            for place, one in enumerate(value):
                fits(one, schema["items"], models, f"{where}[{place}]")
        case None:
            pass
        case kind:
            assert isinstance(value, kinds[kind]), f"{where} is {value!r}, no {kind}"


def test_every_answer_is_of_the_form_the_document_says(
    platform: Platform, client: TestClient, tmp_path: Path
) -> None:
    document = client.get("/api/v1/openapi.json").json()
    models = document["components"]["schemas"]
    make_board(platform, tmp_path / "labels")
    Baselines(Boards(platform)).import_published("small")
    ada, file = participant(platform), predictions(tmp_path / "s.zip")
    asked = set()

    def ask(method: str, path: str, status: int, answer: Any = None, **names: str) -> Any:
        if answer is None:
            where = path.format(board="small", **names)
            answer = client.request(method, f"/api/v1{where}", headers=ada.headers)
        assert answer.status_code == status, answer.text
        said = document["paths"][f"/api/v1{path}"][method.lower()]["responses"]
        assert str(status) in said, f"{method} {path} answers {status}, which the document does not say"
        if answer.headers["content-type"].startswith("application/json"):
            fits(answer.json(), said[str(status)]["content"]["application/json"]["schema"], models)
        asked.add((method.lower(), f"/api/v1{path}"))
        return answer

    made = ask("POST", "/boards/{board}/submissions", 201, submit(client, ada, file))
    id = made.json()["id"]
    ask("POST", "/boards/{board}/submissions", 422, submit(client, ada, b"no zip"))
    ask("POST", "/boards/{board}/submissions", 422, submit(client, ada, file, link="none"))
    other = submit(client, ada, file)
    ask("POST", "/boards/{board}/submissions", 429, submit(client, ada, file))
    ask("POST", "/submissions/{submission}/publish", 409, submission=id)
    ask("POST", "/submissions/{submission}/cancel", 200, submission=other.json()["id"])
    grade_all(platform)
    ask("POST", "/submissions/{submission}/cancel", 409, submission=id)
    ask("POST", "/submissions/{submission}/publish", 200, submission=id)
    ask("GET", "/submissions/{submission}", 200, submission=id)
    ask("GET", "/submissions/{submission}", 200, client.get(f"/api/v1/submissions/{id}"))
    ask("GET", "/submissions/{submission}", 404, submission="none")
    ask("GET", "/submissions", 200)
    ask("GET", "/submissions", 401, client.get("/api/v1/submissions"))
    ask("GET", "/boards", 200)
    ask("GET", "/boards/{board}", 200)
    ask("GET", "/boards/{board}", 422, client.get("/api/v1/boards/small?date=tomorrow"))
    ask("GET", "/boards/{board}.csv", 200)
    ask("GET", "/boards/{board}/quota", 200)
    ask("GET", "/boards/{board}/submissions", 200)
    ask("POST", "/submissions/{submission}/withdraw", 200, submission=id)
    of_boards = {
        (method, path)
        for path, methods in document["paths"].items()
        for method, said in methods.items()
        if "boards" in said.get("tags", [])
    }
    assert asked == of_boards


def test_the_document_names_the_fields_of_an_upload(client: TestClient) -> None:
    document = client.get("/api/v1/openapi.json").json()
    post = document["paths"]["/api/v1/boards/{board}/submissions"]["post"]
    form = post["requestBody"]["content"]["multipart/form-data"]["schema"]
    assert set(form["required"]) == {"file", *FACTS}
    assert "Idempotency-Key" in {one["name"] for one in post["parameters"]}
    for methods in document["paths"].values():
        for said in methods.values():
            for status, answer in said["responses"].items():
                if status >= "400":
                    model = answer["content"]["application/json"]["schema"]["$ref"].rpartition("/")[2]
                    assert "error" in document["components"]["schemas"][model]["required"], model


def test_the_checker_of_this_test_finds_fault() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
    fits({"a": 1}, schema, {})
    for wrong in ({}, {"a": "1"}, {"a": 1, "b": 2}, []):
        with pytest.raises(AssertionError):
            fits(wrong, schema, {})
