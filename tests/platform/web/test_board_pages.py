"""The pages of boards, as a browser without scripts gets them."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from starlette.testclient import TestClient

from ensue.platform.service import Platform
from tests.platform import filling
from tests.platform.filling import COLUMNS, FIRST
from tests.platform.web.browser import Outline, check_page

VALUES = dict.fromkeys(COLUMNS, 0.75)
PAGE = {"Accept": "text/html"}


def get(client: TestClient, address: str, status: int = 200) -> str:
    answer = client.get(address, headers=PAGE)
    assert answer.status_code == status, answer.text
    check_page(answer.text)
    return answer.text


def systems(page: str) -> list[str]:
    return re.findall(r'class="system".*?<a href="/submissions/[^"]+">([^<]*)</a>', page)


@pytest.fixture
def board(platform: Platform) -> str:
    with platform.database.writing() as connection:
        board = filling.add_board(connection, about="Eight tasks.")
        filling.add_published(connection, board)
        for name, score in (("alpha", 0.7), ("beta", 0.9), ("gamma", None)):
            values = {**VALUES, ("RTE", "accuracy"): {"alpha": 0.99}.get(name, 0.5)}
            filling.add_entry(
                connection, board, name, values, score, team="Uppsala", at=FIRST + timedelta(hours=1)
            )
        return board


def test_a_bare_server_says_how_to_make_a_board(client: TestClient) -> None:
    assert "ensue board create" in get(client, "/")


def test_home_shows_the_best_of_each_board(client: TestClient, board: str) -> None:
    page = get(client, "/")
    assert 'href="/boards/superglue"' in page
    assert "3 submissions, 6 baselines" in page
    assert page.index("beta") < page.index("Human")


def test_a_board_stands_by_score_and_what_has_none_is_last(client: TestClient, board: str) -> None:
    page = get(client, "/boards/superglue")
    assert systems(page) == [
        "beta",
        "Human",
        "BERT++",
        "alpha",
        "BERT",
        "most-frequent",
        "CBoW",
        "Outside Best",
        "gamma",
    ]
    assert 'aria-sort="descending"' in page
    assert page.count("aria-sort=") == 1
    assert "ReCoRD: 500 of 10,000 test examples" in page


@pytest.mark.parametrize(
    ("query", "first", "last"),
    [
        ("sort=-RTE.accuracy", "alpha", "CBoW"),
        ("sort=-WSC.accuracy", "Human", "Outside Best"),
        ("sort=score", "CBoW", "gamma"),
        ("sort=nothing", "beta", "gamma"),
        ("sort=-team", "Human", "gamma"),
        ("sort=team", "beta", "Outside Best"),
        ("q=uppsala", "beta", "gamma"),
        ("q=uppsala&sort=-RTE.accuracy", "alpha", "gamma"),
        ("page=99", "beta", "gamma"),
        ("page=-3", "beta", "gamma"),
    ],
)
def test_a_board_is_sorted_and_searched(
    client: TestClient, board: str, query: str, first: str, last: str
) -> None:
    found = systems(get(client, f"/boards/superglue?{query}"))
    assert (found[0], found[-1]) == (first, last)


def test_a_day_before_everything_is_empty_and_a_day_that_is_none_is_refused(
    client: TestClient, board: str
) -> None:
    assert systems(get(client, "/boards/superglue?date=2025-01-01")) == []
    assert "Nothing is published here" in get(client, "/boards/superglue?date=2025-01-01")
    assert len(systems(get(client, f"/boards/superglue?date={FIRST.date()}"))) == 9
    for wrong in ("yesterday", "2026-02-30", "0001-01-01", "9999-12-31"):
        assert "date" in get(client, f"/boards/superglue?date={wrong}", 422)


def test_many_systems_come_in_pages(client: TestClient, platform: Platform) -> None:
    with platform.database.writing() as connection:
        filling.add_many(connection, filling.add_board(connection), 130)
    first, second = (get(client, f"/boards/superglue?page={number}") for number in (1, 2))
    assert (len(systems(first)), len(systems(second))) == (100, 30)
    assert not set(systems(first)) & set(systems(second))
    assert 'rel="next"' in first
    assert 'rel="next"' not in second


def test_the_chart_is_of_the_score_or_of_a_column_chosen_by_a_link(client: TestClient, board: str) -> None:
    page = get(client, "/boards/superglue?q=uppsala&sort=-RTE.accuracy")
    assert "Best score over time" in page
    link = "?q=uppsala&amp;sort=-RTE.accuracy&amp;chart=RTE.accuracy#over-time"
    assert f'href="{link}"' in page
    chosen = get(client, f"/boards/superglue{link}".replace("&amp;", "&"))
    assert ">Best RTE acc. over time<" in chosen
    assert "0.990 since" not in chosen
    assert "Best RTE acc. over time: 0.990 on 2026-01-05; human 0.936" in chosen
    assert '<input type="hidden" name="chart" value="RTE.accuracy">' in chosen
    assert 'aria-current="page">RTE acc.</a>' in chosen
    assert get(client, "/boards/superglue?chart=nothing").count("Best score over time<") == 1


def test_diagnostics_by_coarse_and_fine_categories(client: TestClient, platform: Platform) -> None:
    with platform.database.writing() as connection:
        filling.add_many(connection, filling.add_board(connection), 3)
    coarse = get(client, "/boards/superglue/diagnostics")
    assert len(systems(coarse)) == 3
    assert ">Logic</span>mcc" in coarse
    assert ">Double Negation</span>" not in coarse
    fine = get(client, "/boards/superglue/diagnostics?part=Logic")
    assert ">Double Negation</span>mcc" in fine
    assert ">Core Arguments</span>" not in fine
    assert get(client, "/boards/superglue/diagnostics?part=Nothing") != fine


def test_a_board_without_diagnostics_says_so(client: TestClient, board: str) -> None:
    assert "Nothing on this board has diagnostics yet" in get(client, "/boards/superglue/diagnostics")


def test_files_of_a_board(client: TestClient, board: str) -> None:
    found = client.get("/boards/superglue.json")
    assert [row["system"] for row in found.json()["rows"]][:2] == ["beta", "Human"]
    assert client.get("/boards/superglue.json?date=2025-01-01").json()["rows"] == []
    text = client.get("/boards/superglue.csv")
    assert text.headers["content-type"] == "text/csv; charset=utf-8"
    assert text.text.startswith("rank,kind,system,team,score")
    feed = client.get("/boards/superglue.atom")
    assert feed.headers["content-type"].startswith("application/atom+xml")
    for ending in ("", ".json", ".csv", ".atom", "/diagnostics"):
        assert client.get(f"/boards/nothing{ending}").status_code == 404


def test_words_of_users_are_never_markup(client: TestClient, platform: Platform) -> None:
    nasty = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>"
    with platform.database.writing() as connection:
        board = filling.add_board(connection, title=nasty, about=nasty)
        texts = ("team", "description", "parameters", "sharing", "data", "code")
        filling.add_entry(
            connection, board, nasty, VALUES, 0.5, link="javascript:alert(3)", **dict.fromkeys(texts, nasty)
        )
    for address in (
        "/",
        "/boards/superglue",
        f"/boards/superglue?q={nasty}&sort={nasty}",
        "/boards/superglue/diagnostics",
    ):
        elements = Outline(get(client, address)).tags
        assert not [tag for tag, _ in elements if tag == "img"]
        for tag, attributes in elements:
            assert not any(name.startswith("on") or name == "style" for name in attributes), (tag, attributes)
            assert not (attributes.get("href") or "").startswith("javascript:")
            if tag == "script":
                assert (attributes["src"] or "").startswith("/static/")
