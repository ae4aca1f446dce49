"""Files of judgments are read as they stand, and every fault is named with its line."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ensue.benchmarks.nlu.files import Row
from ensue.benchmarks.qags.data.files import (
    Vote,
    finite_number,
    json_entries,
    read_collection,
    read_judgments,
    read_triplets,
    text_list,
)
from ensue.errors import EnsueError
from tests.benchmarks.qags.invented import ARTICLE, collected, judged, pair, write_json, write_lines

values = st.dictionaries(
    st.text(max_size=5), st.one_of(st.integers(), st.text(), st.lists(st.text())), max_size=3
)


@given(
    st.one_of(st.lists(values, min_size=1), st.dictionaries(st.text(), values, min_size=1)),
    st.sampled_from([None, 0, 2]),
    st.booleans(),
)
def test_entries_are_what_json_has_on_the_line_where_they_begin(
    tmp_path_factory: pytest.TempPathFactory, held: object, indent: int | None, ascii_only: bool
) -> None:
    path = tmp_path_factory.mktemp("entries") / "held.json"
    text = json.dumps(held, indent=indent, ensure_ascii=ascii_only)
    path.write_bytes(text.encode("utf-8"))
    found = json_entries(path)
    keyed = held.items() if isinstance(held, dict) else ((str(n), one) for n, one in enumerate(held))
    assert [(key, dict(row.fields)) for key, row in found.items()] == list(keyed)
    lines = [int(row.where.rpartition(" ")[2]) for row in found.values()]
    assert lines == sorted(lines)
    for line in lines:
        assert "{" in text.split("\n")[line - 1]


def test_the_line_is_that_of_the_entry(tmp_path: Path) -> None:
    path = tmp_path / "two.json"
    path.write_text('\ufeff{\n "p": {"x": 1},\n\n "q":\n  {"x": 2}\n}\n', "utf-8")
    assert [row.where for row in json_entries(path).values()] == [f"{path}, line 2", f"{path}, line 5"]


@pytest.mark.parametrize(
    ("text", "line", "what"),
    [
        ('{\n "p": {"x": }\n}', 2, "not JSON"),
        ('[\n {"x": 1}\n {"x": 2}\n]', 3, "Expecting ',' delimiter"),
        ('[\n {"x": 1},\n 7\n]', 3, "'1' is not a JSON object"),
        ('{"p": {},\n "p": {}}', 2, "'p' is there twice"),
        ('{"p" {}}', 1, "Expecting ':' delimiter"),
        ("{1: {}}", 1, "Expecting property name"),
        ('[{"x": 1}]\n\n[]', 3, "Extra data"),
        ('"words"', 1, "neither a JSON object nor a JSON list"),
        ('[{"x": 1},\n', 2, "not JSON"),
        ("", 1, "not JSON"),
        ("[" + '{"x":' * 100_000, 1, "nested too deeply"),
    ],
)
def test_faults_name_file_and_line(tmp_path: Path, text: str, line: int, what: str) -> None:
    path = tmp_path / "wrong.json"
    path.write_text(text, "utf-8")
    with pytest.raises(EnsueError, match=f"line {line}: .*{what}") as error:
        json_entries(path)
    assert str(error.value).startswith(str(path))


def test_bytes_that_are_no_text_and_files_that_are_not_there(tmp_path: Path) -> None:
    path = tmp_path / "latin.json"
    path.write_bytes(b'[\n {"x": "caf\xe9"}]')
    with pytest.raises(EnsueError, match=r"is not UTF-8 \(line 2, byte 13\): convert"):
        json_entries(path)
    with pytest.raises(EnsueError, match="cannot be read"):
        json_entries(tmp_path / "nowhere.json")
    path.write_text("[]")
    with pytest.raises(EnsueError, match="has no entries; download it again"):
        json_entries(path)


def test_numbers_and_lists_of_texts_are_checked() -> None:
    row = Row("here", {"a": 1, "b": float("nan"), "c": ["one", " "], "d": ["one", 2], "e": "x"})
    assert finite_number(row, "a") == 1.0
    assert text_list(Row("here", {"c": ["one", "two"]}), "c") == ("one", "two")
    for check, name in (
        (finite_number, "b"),
        (finite_number, "e"),
        (text_list, "c"),
        (text_list, "d"),
        (text_list, "e"),
    ):
        with pytest.raises(EnsueError, match=r"^here: "):
            check(row, name)


def test_summaries_keep_their_sentences_and_judgments(tmp_path: Path) -> None:
    write_lines(tmp_path / "mturk_xsum.jsonl", [judged(("yes", "no", "yes")), judged(("no",), ("yes",))])
    first, second = read_judgments(tmp_path / "mturk_xsum.jsonl", "xsum")
    assert (first.id, first.article) == ("xsum-0", ARTICLE)
    assert first.sentences[0].responses == (Vote("0", True), Vote("1", False), Vote("2", True))
    assert second.text == "Sentence 0 of the summary. Sentence 1 of the summary."
    assert second.where.endswith("mturk_xsum.jsonl, line 2")


def spoiled(change: str) -> Any:
    row = copy.deepcopy(judged(("yes", "no", "yes"), ("no", "no", "yes")))
    sentence = row["summary_sentences"][1]
    match change:
        case "no article":
            del row["article"]
        case "empty article":
            row["article"] = "  "
        case "no sentences":
            row["summary_sentences"] = []
        case "empty sentence":
            sentence["sentence"] = ""
        case "sentences as text":
            row["summary_sentences"] = "One. Two."
        case "no responses":
            sentence["responses"] = []
        case "unknown word":
            sentence["responses"][2]["response"] = "maybe"
        case "twice":
            sentence["responses"][2]["worker_id"] = 0
        case "no worker":
            del sentence["responses"][0]["worker_id"]
    return row


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ("no article", "there is no 'article'"),
        ("empty article", "'article' is empty"),
        ("no sentences", "has no sentences"),
        ("empty sentence", "summary_sentences 2: 'sentence' is empty"),
        ("sentences as text", "a list of objects was expected"),
        ("no responses", "summary_sentences 2: no worker has judged"),
        ("unknown word", "the label 'maybe' is none of yes, no"),
        ("twice", "worker 0 has judged the sentence twice"),
        ("no worker", "there is no 'worker_id'"),
    ],
)
def test_faults_name_the_line(tmp_path: Path, change: str, what: str) -> None:
    path = write_lines(tmp_path / "judgments.jsonl", [judged(("yes",)), spoiled(change)])
    with pytest.raises(EnsueError, match=f"line 2.*{what}") as error:
        read_judgments(path, "own")
    assert str(error.value).startswith(str(path))


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    path = tmp_path / "judgments.jsonl"
    path.write_bytes(b'{"article": "caf\xe9"}\n')
    with pytest.raises(EnsueError, match=r"is not UTF-8 \(line 1, byte 16\)"):
        read_judgments(path, "own")


def test_triplets_are_clustered_by_article(tmp_path: Path) -> None:
    path = write_json(
        tmp_path / "val_sentence_pairs.json", [pair("a1"), pair("a1", correct_sent_id="3-0"), pair("a2")]
    )
    found = read_triplets(path)
    assert [triplet.cluster for triplet in found] == ["a1", "a1", "a2"]
    assert [triplet.id for triplet in found] == ["a1-1-0-2-0", "a1-3-0-2-0", "a2-1-0-2-0"]
    assert found[0].consistent == "The captain blamed the fog."
    assert found[0].inconsistent == "The fog blamed the captain."


def test_faults_of_pairs_name_the_line(tmp_path: Path) -> None:
    path = write_json(tmp_path / "val_sentence_pairs.json", [pair(), pair(correct_sent=" ")])
    with pytest.raises(EnsueError, match=rf"{path.name}, line 10: 'correct_sent' is empty"):
        read_triplets(path)


FIRST = {"gull": {"grace": 1.0, "truth": 0.5}, "tern": {"grace": 2, "truth": 0.25}}
SECOND = {"tern": {"grace": 4.0, "truth": 1.0}, "gull": {"grace": 3.0, "truth": 0.75}}
SCORES = ("grace", "truth")


def test_tables_have_articles_in_rows_and_systems_in_the_first_ones_order(tmp_path: Path) -> None:
    held = {"p": collected(FIRST), "q": collected(SECOND, ref_summs=["One.", "Two."])}
    found = read_collection(write_json(tmp_path / "own.json", held), SCORES)
    assert found.systems == ("gull", "tern")
    written = [[summary.scores for summary in article.summaries] for article in found.articles]
    assert [[one["grace"] for one in row] for row in written] == [[1.0, 2.0], [3.0, 4.0]]
    assert [[one["truth"] for one in row] for row in written] == [[0.5, 0.25], [0.75, 1.0]]
    assert [summary.text for article in found.articles for summary in article.summaries] == [
        f"The ferry stopped, says {s}." for s in ("gull", "tern")
    ] * 2
    assert [article.references for article in found.articles] == [
        ("Fog stopped the ferry.",),
        ("One.", "Two."),
    ]
    assert found.notes == {}


def test_a_source_in_place_of_its_reference_is_no_reference(tmp_path: Path) -> None:
    held = {"p": collected(FIRST, ref_summ=ARTICLE), "q": collected(SECOND)}
    found = read_collection(write_json(tmp_path / "own.json", held), SCORES)
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
def test_faults_of_collections_name_the_line(tmp_path: Path, second: dict[str, Any], what: str) -> None:
    path = write_json(tmp_path / "own.json", {"p": collected(FIRST), "q": second})
    line = next(n for n, text in enumerate(path.read_text().split("\n"), 1) if text.startswith(' "q"'))
    with pytest.raises(EnsueError, match=f"line {line}.*{what}") as error:
        read_collection(path, SCORES)
    assert str(error.value).startswith(str(path))
