"""Collections of many systems' summaries: tables in one order of systems, faults with their line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ensue.benchmarks.qags.summaries import read_collection, read_collection_file
from ensue.errors import EnsueError
from tests.benchmarks.qags.invented import ARTICLE, collected, write_json

FIRST = {"gull": {"grace": 1.0, "truth": 0.5}, "tern": {"grace": 2, "truth": 0.25}}
SECOND = {"tern": {"grace": 4.0, "truth": 1.0}, "gull": {"grace": 3.0, "truth": 0.75}}
SCORES = ("grace", "truth")


def test_tables_have_articles_in_rows_and_systems_in_the_first_ones_order(tmp_path: Path) -> None:
    held = {"p": collected(FIRST), "q": collected(SECOND, ref_summs=["One.", "Two."])}
    found = read_collection_file(write_json(tmp_path / "own.json", held), "own", SCORES)
    assert found.systems == ("gull", "tern")
    assert found.human("grace").tolist() == [[1.0, 2.0], [3.0, 4.0]]
    assert found.human("truth").tolist() == [[0.5, 0.25], [0.75, 1.0]]
    assert [summary for _, summary in found.texts()] == [
        f"The ferry stopped, says {s}." for s in ("gull", "tern")
    ] * 2
    assert [article.references for article in found.articles] == [
        ("Fog stopped the ferry.",),
        ("One.", "Two."),
    ]
    assert found.notes == {}
    with pytest.raises(EnsueError, match="own has no score 'wit'; it has grace, truth"):
        found.human("wit")


def test_a_source_in_place_of_its_reference_is_no_reference(tmp_path: Path) -> None:
    held = {"p": collected(FIRST, ref_summ=ARTICLE), "q": collected(SECOND)}
    found = read_collection_file(write_json(tmp_path / "own.json", held), "own", SCORES)
    assert found.notes == {"articles whose reference is the source itself, left without": 1}
    assert [len(article.references) for article in found.articles] == [0, 1]


@pytest.mark.parametrize(
    ("second", "what"),
    [
        (collected({"gull": FIRST["gull"]}), "the article lacks a summary by 'tern'"),
        (collected(FIRST | {"auk": FIRST["gull"]}), "the article has a summary by 'auk'"),
        (collected({}), "no system has summarised the article"),
        (collected(FIRST, src=" "), "'src' is empty"),
        (collected(FIRST, ref_summs=[]) | {"src": None}, "'src' is null"),
        (collected(FIRST, ref_summs="One."), "'ref_summs' is not a list of texts"),
        (collected(FIRST | {"tern": {"grace": 1.0}}), "tern, scores: there is no 'truth'"),
        (collected(FIRST | {"tern": {"grace": "high", "truth": 1.0}}), "tern, scores: 'high' is not a score"),
        (collected(FIRST) | {"sys_summs": []}, "where an object was expected"),
    ],
)
def test_faults_name_the_line(tmp_path: Path, second: dict[str, Any], what: str) -> None:
    path = write_json(tmp_path / "own.json", {"p": collected(FIRST), "q": second})
    line = next(n for n, text in enumerate(path.read_text().split("\n"), 1) if text.startswith(' "q"'))
    with pytest.raises(EnsueError, match=f"line {line}.*{what}") as error:
        read_collection_file(path, "own", SCORES)
    assert str(error.value).startswith(str(path))


def test_a_collection_that_is_none_or_not_there(tmp_path: Path) -> None:
    with pytest.raises(
        EnsueError, match=r"has no summeval\.json; name the folder of collections with --data"
    ):
        read_collection(tmp_path, "summeval")
    with pytest.raises(EnsueError, match="no collection 'duc'; there are summeval, realsumm"):
        read_collection(tmp_path, "duc")
