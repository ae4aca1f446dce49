"""Consistency judged by people: what they are given, how controls are made, and that `ensue run qags` reads it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ensue.benchmarks.base import RunContext
from ensue.benchmarks.people.export import Export
from ensue.benchmarks.people.kind import WorkItem, kind, kinds
from ensue.benchmarks.people.numbers import overview
from ensue.benchmarks.qags.data.files import read_judgments
from ensue.benchmarks.qags.people import KIND, read_summaries
from ensue.benchmarks.qags.task import TASK
from ensue.benchmarks.settings import resolve
from ensue.errors import EnsueError
from tests.benchmarks.people.answering import chosen, exported, write_files
from tests.benchmarks.qags.small_sets import Nothing

PLACES = ("Lund", "Bremen", "Ystad", "Ghent", "Cork", "Brest")
ROWS: list[dict[str, Any]] = [
    {
        "article": f"The ferry to {place} left at six in the morning. Ruth steered it through thick fog all day.",
        "summary": f"The ferry went to {place}. It was steered by Ruth. She sang.",
    }
    for place in PLACES
]
PEOPLE = ("ada", "ben", "cid", "dot")


def written(folder: Path, rows: list[dict[str, Any]] = ROWS) -> str:
    (folder / "summaries.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(folder / "summaries.jsonl")


def answer(item: WorkItem, person: str) -> dict[str, Any]:
    """All know their way; Dot finds every third sentence supported."""
    article, sentences = item.form.panel("article").text or "", item.form.panel("summary").sentences or ()
    said = []
    for place, sentence in enumerate(sentences):
        sung = sentence == "She sang."
        own = sentence in article or (
            not sung and sentence.split()[-1].rstrip(".") in article and not item.control
        )
        value = (place % 3 == 2) if person == "dot" and not item.control else own
        said.append({"value": "yes" if value else "no", "reason": f"says {person}"})
    return {"judgments": said}


def project(folder: Path) -> Export:
    settings = chosen(KIND)
    built = KIND.build(written(folder), settings, 1)
    return exported(KIND, built, PEOPLE, answer, settings)


def test_the_kind_is_known_by_its_name() -> None:
    assert kinds()["consistency"] == "ensue.benchmarks.qags.people:KIND"
    assert kind("consistency") is KIND


def test_articles_make_controls_and_training_with_a_copied_and_a_strange_sentence(tmp_path: Path) -> None:
    built = KIND.build(written(tmp_path), chosen(KIND, training=2, controls=3), 1)
    training, controls, work = built.items[:2], built.items[2:5], built.items[5:]
    assert [item.phase for item in training] == ["training"] * 2
    assert all(item.control and item.phase == "work" for item in controls)
    assert len(work) == len(ROWS)
    assert not any(item.control or item.gold for item in work)
    places = set()
    for item in (*training, *controls):
        article, sentences = item.form.panel("article").text or "", item.form.panel("summary").sentences or ()
        assert item.gold is not None
        for sentence, said in zip(sentences, item.gold["judgments"], strict=True):
            assert (sentence in article) == (said["value"] == "yes")
        places.add(next(n for n, sentence in enumerate(sentences, 1) if sentence in article))
        assert f"Sentence {next(n for n, s in enumerate(sentences, 1) if s in article)} stands" in item.words
    assert places == {1, 2}
    assert [item.form.minimum_seconds for item in (training[0], controls[0], work[0])] == [0.0, 30.0, 30.0]
    again = KIND.build(str(tmp_path / "summaries.jsonl"), chosen(KIND, training=2, controls=3), 1)
    assert [item.form for item in again.items] == [item.form for item in built.items]


def test_articles_make_a_qualification_where_one_is_wanted(tmp_path: Path) -> None:
    built = KIND.build(written(tmp_path), chosen(KIND, training=1, qualification=2, controls=1), 1)
    made = built.items[: -len(ROWS)]
    assert [(item.phase, item.control) for item in made] == [
        ("training", False),
        ("qualification", False),
        ("qualification", False),
        ("work", True),
    ]
    assert len({item.key["id"] for item in built.items}) == len(built.items)
    assert all(
        sorted(one["value"] for one in (item.gold or {})["judgments"]) == ["no", "yes"] for item in made
    )


def test_an_answer_is_right_by_its_values_whatever_the_reasons() -> None:
    gold = {"judgments": [{"value": "yes"}, {"value": "no"}]}
    assert KIND.right(gold, {"judgments": [{"value": "yes", "reason": "a"}, {"value": "no", "reason": "b"}]})
    assert not KIND.right(gold, {"judgments": [{"value": "yes"}, {"value": "yes"}]})
    assert not KIND.right(gold, {"judgments": [{"value": "yes"}]})
    assert not KIND.right(gold, {})


def test_what_people_said_is_read_back_by_the_benchmark(tmp_path: Path) -> None:
    export = project(tmp_path)
    files = KIND.files(export, None)
    assert list(files.notes) == ["6 of 6 summaries are judged"]
    folder = write_files(files.texts, tmp_path / "out")
    judged = read_judgments(folder / "qags" / "judgments.jsonl", "own")
    assert [one.article for one in judged] == [row["article"] for row in ROWS]
    given = {(one.item, one.annotator): one.values["judgments"] for one in export.answers()}
    workers = {str(number): name for number, name in enumerate(PEOPLE, 1)}
    for number, summary in enumerate(judged):
        assert summary.text == ROWS[number]["summary"]
        for place, sentence in enumerate(summary.sentences):
            assert len(sentence.responses) == 3
            for worker, consistent in sentence.responses:
                said = given[str(number), workers[worker]][place]["value"]
                assert consistent == (said == "yes")
    settings = resolve("qags", TASK.settings, {"sets": "own"})
    outcome = TASK.prepare("", str(folder), None, 0, settings).evaluate(Nothing(), RunContext())
    (alpha,) = (row for row in outcome.metrics if row["metric"] == "alpha")
    (shown,) = overview(export, KIND).agreement
    assert shown.agreement.alpha is not None
    assert alpha["value"] == pytest.approx(shown.agreement.alpha.value)
    assert 0 < alpha["value"] < 1
    assert alpha["n"] == 18


def test_data_that_changed_since_is_refused(tmp_path: Path) -> None:
    export = project(tmp_path)
    written(tmp_path, [{**ROWS[0], "article": "Another one."}, *ROWS[1:]])
    with pytest.raises(EnsueError, match="The summary 0 is not as it was judged"):
        KIND.files(export, None)


def test_every_form_of_summary_is_read(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [
        {"id": "a", "article": "A b.", "sentences": ["One.", "Two."]},
        {"article": "A b.", "reference": "First.", "summary": "One. Two."},
        {"article": "A b.", "summary_sentences": [{"sentence": "One.", "responses": []}]},
    ]
    found = read_summaries(written(tmp_path, rows), "own")
    assert [one.id for one in found] == ["a", "1", "2"]
    assert [one.sentences for one in found] == [("One.", "Two."), ("One.", "Two."), ("One.",)]
    assert found[1].article == "First. A b."
    with pytest.raises(EnsueError, match="line 1: the summary has no sentences"):
        read_summaries(written(tmp_path, [{"article": "A.", "sentences": []}]), "own")
    with pytest.raises(EnsueError, match="needs --data"):
        read_summaries(None, "own")
    with pytest.raises(EnsueError, match=r"has no mturk_xsum\.jsonl"):
        read_summaries(str(tmp_path), "xsum")
