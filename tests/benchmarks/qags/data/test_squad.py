"""Questions made up about plain texts: only those that are answered as meant, and some that cannot be answered."""

from __future__ import annotations

import json

import pytest

from ensue.benchmarks.qags.data.squad import (
    Passage,
    add_impossible,
    asking,
    keeping,
    make_questions,
    read_passages,
)
from ensue.benchmarks.qags.pipeline import QagsModels
from ensue.errors import EnsueError
from ensue.text.io.squad import examples_of, read_squad
from tests.benchmarks.qags.toys import FAITHFUL, NAMELESS, SOURCE, WRONG, NameAfter, NameFinder, WordsBefore

PASSAGES = [
    Passage("Ferry", FAITHFUL),
    Passage("Ferry", SOURCE),
    Passage("Hanna", WRONG),
    Passage("None", NAMELESS),
]


def parts() -> QagsModels:
    return QagsModels(NameFinder(), WordsBefore(), NameAfter())


def test_what_is_written_is_squad_and_answers_as_meant(tmp_path) -> None:
    made = make_questions(PASSAGES, parts(), asking(8, 2, 0), keeping(3, "same"))
    (tmp_path / "made.json").write_text(json.dumps(made.document), "utf-8")
    articles = read_squad(tmp_path / "made.json")  # checks that every answer stands where it is said to stand
    assert [article.id for article in articles] == ["Ferry", "Hanna"]
    examples = examples_of(articles)
    assert len(examples) == made.questions
    assert made.impossible == 0
    answerer = NameAfter()
    for one in examples:
        assert answerer.answer([one.question], [one.context])[0].text == one.answers[0].text
    assert all(len(paragraph.questions) <= 3 for article in articles for paragraph in article.paragraphs)
    assert made.left_out["texts without a question"] == 1


def test_impossible_questions_go_to_a_near_text_of_another_article_without_the_answer() -> None:
    carts = [
        Passage(f"Cart {n}", f"cart number {n} went on to Lund{'abcdefghij'[n % 10] * 3}.") for n in range(40)
    ]
    made = make_questions([*PASSAGES, *carts], parts(), asking(8, 2, 0), keeping(9, "same"), impossible=1.0)
    places = [(a["title"], p) for a in made.document["data"] for p in a["paragraphs"]]
    asked = {q["id"]: (title, q) for title, p in places for q in p["qas"] if q["answers"]}
    refused = [(title, p, q) for title, p in places for q in p["qas"] if not q["answers"]]
    assert len(refused) == made.impossible > 0
    for title, paragraph, question in refused:
        own, original = asked[question["id"].removesuffix("-x")]
        assert question["is_impossible"]
        assert question["question"] == original["question"]
        assert title != own
        assert original["answers"][0]["text"].lower() not in paragraph["context"].lower()


def test_the_nearest_text_shares_the_rarest_words() -> None:
    texts = {
        "mill": "The mill by the weir burned down in spring.",
        "weir": "The weir was mended by a mason from Lund.",
        "inn": "The inn at the corner sold bread.",
        **{f"field {n}": f"The field number {n} lay fallow." for n in range(40)},
    }
    asked = {
        "id": "a",
        "question": "Who mended the weir?",
        "answers": [{"text": "a mason", "answer_start": 23}],
    }
    data = [
        {"title": title, "paragraphs": [{"context": text, "qas": [asked] if title == "weir" else []}]}
        for title, text in texts.items()
    ]
    assert add_impossible(data, 1.0, 0) == 1
    assert [q["id"] for q in data[0]["paragraphs"][0]["qas"]] == ["a-x"]
    assert add_impossible(data, 0.0, 0) == 0


def test_passages_of_both_kinds(tmp_path) -> None:
    lines = tmp_path / "texts.jsonl"
    lines.write_text(
        json.dumps({"text": "One.", "title": "A"}) + "\n" + json.dumps({"text": "Two."}) + "\n", "utf-8"
    )
    found = read_passages(lines)
    assert [one.text for one in found] == ["One.", "Two."]
    assert found[0].title == "A"
    plain = tmp_path / "texts.txt"
    plain.write_text("One line\nand another.\n\n\nA second one.\n\nA second one.\n", "utf-8")
    assert [one.text for one in read_passages(plain)] == ["One line and another.", "A second one."]


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [("a.txt", "\n\n", "no text"), ("a.jsonl", '{"passage": "x"}\n', "text"), ("a.jsonl", "{", "not JSON")],
)
def test_bad_passages_are_one_sentence(tmp_path, name, content, words) -> None:
    (tmp_path / name).write_text(content, "utf-8")
    with pytest.raises(EnsueError, match=words):
        read_passages(tmp_path / name)


def test_nothing_answered_is_nothing_written() -> None:
    with pytest.raises(EnsueError, match="nothing was written"):
        make_questions(PASSAGES[-1:], parts(), asking(8, 2, 0), keeping(3, "same"))
    with pytest.raises(EnsueError, match="same or overlap"):
        keeping(3, "any")
