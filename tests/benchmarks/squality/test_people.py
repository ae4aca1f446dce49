"""SQuALITY's rounds by people: the stages of a story, who is given what, and what the benchmark reads back."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ensue.benchmarks.base import RunContext
from ensue.benchmarks.crowd.protocol import PLOT_QUESTION
from ensue.benchmarks.people.checking import check_answer
from ensue.benchmarks.people.export import Export
from ensue.benchmarks.people.human import People
from ensue.benchmarks.people.kind import Done, WorkItem, convert, kind
from ensue.benchmarks.people.numbers import bonuses, overview
from ensue.benchmarks.squality.data import check_references, read_stories
from ensue.benchmarks.squality.human_eval import read_human_eval
from ensue.benchmarks.squality.people import KIND
from ensue.benchmarks.squality.systems import named
from ensue.benchmarks.squality.task import TASK
from ensue.errors import EnsueError
from ensue.models.card import ModelCard
from tests.benchmarks.people.answering import chosen, exported, write_files
from tests.benchmarks.squality.invented import QUICK, asked, story_row, write_rows
from tests.support.agreement import krippendorff_alpha

PEOPLE = ("ada", "ben", "cid", "dot")
STORY = " ".join(
    f"On day {n} Ilse went to the landing with pail {n}, and no ferry came to her." for n in range(40)
)
SHORT = {"least_words": 5, "most_words": 30, "own_questions": 1}


def better(writer: str) -> int:
    """Everybody finds the same writers good: Ada best, then Ben and so on."""
    return PEOPLE.index(writer)


def answer(item: WorkItem, person: str) -> dict[str, Any]:
    """Write, review and rate as one who knows from the text whose it is."""
    form = item.form
    if item.stage == "questions":
        return {"question2": "Where does it all happen?"}
    if item.stage == "writing":
        return {one.id: f"{person} says of {one.id} that she waits for nobody" for one in form.fields}
    if item.stage == "feedback":
        return {"read": "yes"}
    whose = {panel.id: (panel.text or "").split()[0] for panel in form.panels if panel.id != "story"}
    if item.stage == "reviewing":
        ordered = sorted(whose, key=lambda letter: better(whose[letter]))
        values: dict[str, Any] = {"rank": {letter: place for place, letter in enumerate(ordered, 1)}}
        if person == "dot":  # who has a view of her own
            values["rank"] = dict.fromkeys(ordered, 1)
        for letter, name in whose.items():
            values[f"feedback_{letter}"] = f"{person} to {name}"
            values[f"marks_{letter}"] = [{"start": 0, "end": 3, "label": "typo"}] if name == "cid" else []
        return values
    return {
        f"{name}_{letter}": 100 - 20 * better(writer) - place
        for letter, writer in whose.items()
        for place, name in enumerate(("correctness", "coverage", "overall"))
    }


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_rows(
        tmp_path_factory.mktemp("stories") / "test.jsonl", story_row("9001", STORY), story_row("9002", STORY)
    )


@pytest.fixture(scope="module")
def project(data: Path) -> Export:
    settings = chosen(KIND, stages="questions,writing,reviewing,rating", limit=1, **SHORT)
    built = KIND.build(str(data), settings, 0)
    return exported(KIND, built, PEOPLE, answer, settings)


def test_a_story_goes_through_its_stages(project: Export) -> None:
    assert kind("squality") is KIND
    done = list(project.answers())
    assert Counter(one.stage for one in done) == {
        "questions": 1,
        "writing": 4,
        "reviewing": 8,
        "feedback": 4,
        "rating": 8,
    }
    stages = [one.stage for one in done]
    assert stages[0] == "questions"
    # Nobody reviews before all have written, and nobody is told before all have reviewed.
    assert stages.index("reviewing") > max(n for n, stage in enumerate(stages) if stage == "writing")
    assert stages.index("feedback") > max(n for n, stage in enumerate(stages) if stage == "reviewing")
    asked = {tuple(one.key["questions"]) for one in done if one.stage == "writing"}
    assert asked == {(PLOT_QUESTION, "Where does it all happen?")}


def test_nobody_reviews_or_rates_their_own(project: Export) -> None:
    for one in project.answers():
        if one.stage in ("reviewing", "rating"):
            assert sorted([one.annotator, *one.key["of"].values()]) == sorted(PEOPLE)
    letters = Counter(
        tuple(one.key["of"].values()).index("ada")
        for one in project.answers()
        if "ada" in one.key.get("of", {}).values()
    )
    assert len(letters) > 1, "the letters give away whose an answer is"


def test_whoever_asks_is_one_of_the_writers(data: Path) -> None:
    plan = chosen(KIND, limit=1, **SHORT)
    item = KIND.build(str(data), plan, 0).items[0]
    done = Done(item.key, "questions", "dot", {"question2": "Why does she go?"}, 1, 0, item.form, item.secret)
    own, others = KIND.follow("9001", [done])
    assert (own.among, own.authors, own.wanted) == (("dot",), (), 1)
    assert (others.among, others.authors, others.wanted) == ((), ("dot",), 3)
    assert [field.label for field in own.form.fields] == [PLOT_QUESTION, "Why does she go?"]


def test_answers_have_their_length_and_words_of_their_own(data: Path) -> None:
    plan = chosen(KIND, stages="writing", limit=1)
    item = KIND.build(str(data), plan, 0).items[0]
    assert item.wanted == 4
    copied = " ".join(STORY.split()[10:31])
    fine = " ".join(["word"] * 75)
    problems = check_answer(item.form, {"answer1": " ".join(["word"] * 74), "answer2": f"{copied} {fine}"})
    assert "write at least 75 words; there are 74" in problems[0]
    assert "21 words in a row are those of “The story”" in problems[1]
    assert check_answer(item.form, {"answer1": fine, "answer2": " ".join(["word"] * 501)}) == [
        "Where does it happen: write at most 500 words; there are 501."
    ]


def test_writers_are_told_what_the_reviewers_say(data: Path) -> None:
    seen: dict[str, Mapping[str, Any]] = {}

    def watching(item: WorkItem, person: str) -> dict[str, Any]:
        if item.stage == "feedback":
            seen[person] = {panel.id: panel for panel in item.form.panels}
        return answer(item, person)

    settings = chosen(KIND, limit=1, **SHORT)
    exported(KIND, KIND.build(str(data), settings, 0), PEOPLE, watching, settings)
    said = seen["cid"]["said1"].text
    assert sorted(line.partition(" (")[0] for line in said.split("\n\n")) == [
        "ada to cid",
        "ben to cid",
        "dot to cid",
    ]
    assert "ada to cid (place 2 of 3)" in said
    assert seen["cid"]["answer1"].marks == ((0, 3),)
    assert seen["ada"]["answer1"].marks == ()


def test_a_writer_who_is_replaced_is_reviewed_anew(data: Path) -> None:
    settings = chosen(KIND, stages="writing,reviewing", limit=1, **SHORT)
    item = KIND.build(str(data), settings, 0).items[0]

    def done(person: str) -> Done:
        return Done(item.key, "writing", person, answer(item, person), 1, 0, item.form, item.secret)

    assert KIND.follow("9001", [done(person) for person in PEOPLE[:3]]) == []
    before = {one.key["id"] for one in KIND.follow("9001", [done(person) for person in PEOPLE])}
    after = {one.key["id"] for one in KIND.follow("9001", [done(person) for person in (*PEOPLE[:3], "eve")])}
    assert len(before) == len(after) == 8
    assert not before & after


def test_the_benchmark_reads_the_stories_back(project: Export, tmp_path: Path) -> None:
    files = KIND.files(project, None)
    assert files.notes[0] == "1 of 1 stories have all answers, 1 all reviews"
    folder = write_files(files.texts, tmp_path / "out")
    (story,) = read_stories(folder / "test.jsonl")
    check_references([story], folder / "test.jsonl")
    assert (story.id, story.document, story.license) == ("9001", STORY, "written for these tests")
    assert [one.text for one in story.questions] == [PLOT_QUESTION, "Where does it all happen?"]
    assert [one.writer for one in story.questions[0].responses] == list(PEOPLE)
    assert story.questions[1].responses[2].text == "cid says of answer2 that she waits for nobody"
    run = TASK.prepare("", str(folder), None, 0, asked(**QUICK))
    outcome = run.evaluate(named("human"), RunContext())
    assert {row["metric"]: row["n"] for row in outcome.metrics}["rouge1"] == 2
    rated = TASK.prepare("human-eval", str(folder), None, 0, asked(**QUICK)).evaluate(
        named("human"), RunContext()
    )
    means = {
        (row["settings"]["system"], row["metric"]): row["value"]
        for row in rated.metrics
        if row["metric"] in ("correctness", "overall") and "system" in row["settings"]
    }
    assert means["human", "correctness"] == pytest.approx(1.0)
    assert means["human-4", "overall"] == pytest.approx(0.38)
    one = next(
        each
        for each in read_human_eval(folder / "human-eval" / "all-responses.jsonl")
        if each.system == "human-2"
    )
    assert one.text == "ben says of answer1 that she waits for nobody"
    reviews = [json.loads(line) for line in (folder / "reviews.jsonl").read_text().splitlines()]
    first = next(one for one in reviews if (one["reviewer"], one["question"]) == ("ben", 1))
    assert first["places"] == {"ada": 1, "cid": 2, "dot": 3}
    assert first["feedback"]["dot"] == "ben to dot"
    assert first["marks"]["cid"] == [{"start": 0, "end": 3, "label": "typo"}]


def test_bonuses_are_by_rank_and_agreement(project: Export) -> None:
    """Ada is first, Ben second, Cid third, Dot last in both questions; Dot, who ties all, agrees with nobody."""
    owed = KIND.earned(project)
    writing, reviewing, rating = Fraction(13), Fraction(8), Fraction(8)
    places = {"ada": 250, "ben": 125, "cid": 75, "dot": 50}
    agreeing = {"ada": 3, "ben": 3, "cid": 3, "dot": 0}
    for name in PEOPLE:
        assert owed[name].pay == writing + reviewing + rating
        assert owed[name].bonus == 2 * (Fraction(places[name], 100) + agreeing[name] * Fraction(1, 2))
    assert bonuses(project, KIND) == {"ada": 800, "ben": 550, "cid": 450, "dot": 100}
    agreement, *ratings = KIND.scores(project)
    assert (agreement["metric"], agreement["value"], agreement["n"]) == ("agreement", pytest.approx(0.75), 24)
    assert [(row["metric"], row["settings"]) for row in ratings] == [
        (name, {"system": "human"}) for name in ("correctness", "coverage", "overall")
    ]
    rounds = json.loads(KIND.files(project, None).texts["rounds.json"])
    assert rounds[0]["cost"] == pytest.approx(4 * 21 + 2 * 5 + 2 * 4.5)
    assert rounds[0]["cost_per_summary"] == pytest.approx(rounds[0]["cost"] / 8)
    json.dumps(overview(project, KIND).as_dict(), allow_nan=False)


def test_what_is_said_of_a_response_is_compared_whatever_letter_it_had(project: Export) -> None:
    found = {one.field: one for one in overview(project, KIND).agreement}
    for name in ("correctness", "coverage", "overall"):
        table: dict[tuple[str, int, str], dict[str, float]] = {}
        for record in project.answers("rating"):
            for letter, of in record.key["of"].items():
                unit = (record.key["story"], record.key["question"], of)
                table.setdefault(unit, {})[record.annotator] = record.values[f"{name}_{letter}"]
        people = sorted({who for row in table.values() for who in row})
        ratings = [[row.get(who, math.nan) for who in people] for row in table.values()]
        assert {len(row) for row in table.values()} == {3}
        alpha = found[name].agreement.alpha
        assert (found[name].level, found[name].units) == ("interval", len(table))
        assert alpha is not None
        assert alpha.value == pytest.approx(krippendorff_alpha(ratings, "interval"), nan_ok=True)
    assert (
        found["rank"].units == 2 * 6
    )  # pairs of four writers, for two questions, each judged by the two others
    assert found["rank"].agreement.fleiss is not None
    assert {one.field for one in overview(project, KIND).agreement} == {
        "correctness",
        "coverage",
        "overall",
        "rank",
        "marks while reviewing",
    }


def test_systems_are_rated_beside_a_reference(data: Path, tmp_path: Path) -> None:
    lines = [
        {"id": f"9001/{number}", "system": system, "summary": f"{system} on {number}"}
        for number in (1, 2)
        for system in ("lead", "model")
    ]
    systems = write_rows(tmp_path / "systems.jsonl", *lines)
    settings = chosen(KIND, stages="rating", systems=str(systems), limit=1)
    built = KIND.build(str(data), settings, 0)
    assert [sorted(item.key["of"].values()) for item in built.items] == [["human", "lead", "model"]] * 2

    def rate(item: WorkItem, person: str) -> dict[str, Any]:
        whole = {one.id: 50 for one in item.form.fields if one.type == "scale"}
        letter = next(letter for letter, of in item.key["of"].items() if of == "lead")
        return (
            whole
            | {f"overall_{letter}": 10}
            | {f"marks_{letter}": [{"start": 0, "end": 4, "label": "factual error"}]}
        )

    export = exported(KIND, built, PEOPLE[:3], rate, settings)
    folder = write_files(KIND.files(export, None).texts, tmp_path / "out")
    rated = read_human_eval(folder / "human-eval" / "all-responses.jsonl")
    assert {(one.question, one.system) for one in rated} == {
        (number, system) for number in (1, 2) for system in ("human", "lead", "model")
    }
    assert {one.text for one in rated if one.system == "lead"} == {"lead on 1", "lead on 2"}
    assert {one.rating("overall") for one in rated if one.system == "lead"} == {10.0}
    outcome = TASK.prepare("human-eval", str(folder), None, 0, asked(**QUICK)).evaluate(
        named("human"), RunContext()
    )
    means = {row["settings"]["system"]: row["value"] for row in outcome.metrics if row["metric"] == "overall"}
    assert means == {"human": 0.5, "lead": 0.1, "model": 0.5}
    two = exported(KIND, built, PEOPLE[:2], rate, settings)
    with pytest.raises(EnsueError, match="No story has 3 ratings or more"):
        KIND.files(two, None)
    # More raters than the paper had are as good.
    more = {**settings, "labels": 4}
    many = KIND.files(exported(KIND, KIND.build(str(data), more, 0), PEOPLE[:4], rate, more), None)
    again = write_files(many.texts, tmp_path / "four") / "human-eval" / "all-responses.jsonl"
    assert {len(one.reviews) for one in read_human_eval(again)} == {4}
    assert KIND.earned(export)["ada"].pay == 8
    # Whoever rated one of two questions has done half, whether others did more or not.
    half = replace(export, records=tuple(one for one in export.records if one.key["question"] == 1))
    assert KIND.earned(half)["ada"].pay == 4


def test_ratings_are_paid_by_the_share_that_is_done(project: Export) -> None:
    half = replace(
        project,
        records=tuple(one for one in project.records if one.stage != "rating" or one.key["question"] == 2),
    )
    assert {name: one.pay for name, one in KIND.earned(half).items()} == dict.fromkeys(PEOPLE, 13 + 8 + 4)


def test_instructions_are_of_the_stages_and_limits_there_are(data: Path) -> None:
    def page(**settings: Any) -> str:
        return KIND.build(str(data), chosen(KIND, limit=1, **settings), 0).instructions

    usual = page()
    assert [one for one in usual.splitlines() if one.startswith("#")] == [
        "# Answer questions about a story",
        "## Asking (one writer of each story)",
        "## Writing",
        "## Reviewing",
    ]
    assert "75 to 500 words" in usual
    short = page(stages="writing", least_words=10, most_words=20)
    assert "10 to 20 words" in short
    assert "## Reviewing" not in short
    rated = page(stages="rating")
    assert [one for one in rated.splitlines() if one.startswith("#")] == [
        "# Rate answers about a story",
        "## Rating",
    ]
    assert "write about it" not in rated


def test_any_documents_are_stories(tmp_path: Path) -> None:
    (tmp_path / "mill.txt").write_text("The mill stood still. Nobody came.\n\nIn spring it burned.")
    (item,) = KIND.build(str(tmp_path), chosen(KIND), 0).items
    assert (item.stage, item.group, item.wanted) == ("questions", "mill.txt", 1)
    assert "In spring it burned." in (item.form.panel("story").text or "")
    with pytest.raises(EnsueError, match=r"mill.* has no questions in the data"):
        KIND.build(str(tmp_path), chosen(KIND, stages="writing"), 0)


def test_practice_and_qualification_are_pairs_with_a_better_response(data: Path, tmp_path: Path) -> None:
    file = tmp_path / "pairs.jsonl"
    rows = [
        {
            "text": f"Story {n}.",
            "question": f"What {n}?",
            "better": f"good {n}",
            "worse": f"bad {n}",
            "why": "So.",
        }
        for n in range(12)
    ]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    built = KIND.build(str(data), chosen(KIND, **SHORT, practice=str(file), qualification=5), 3)
    taught = [item for item in built.items if item.phase != "work"]
    assert [item.phase for item in taught] == ["training"] * 7 + ["qualification"] * 5
    for n, item in enumerate(taught):
        assert item.gold is not None
        assert item.form.panel(item.gold["better"]).text == f"good {n}"
        assert KIND.right(item.gold, item.gold)
        assert not KIND.right(item.gold, {"better": "a" if item.gold["better"] == "b" else "b"})
        assert check_answer(item.form, item.gold) == []
        assert item.words == "So."
    # The better one is not always on the same side.
    assert {item.gold["better"] for item in taught if item.gold} == {"a", "b"}
    plain = KIND.build(str(data), chosen(KIND, **SHORT), 3)
    assert [item for item in built.items if item.phase == "work"] == list(plain.items)
    with pytest.raises(
        EnsueError, match="qualification=13 wants as many pairs of responses, of which there are 12"
    ):
        KIND.build(str(data), chosen(KIND, practice=str(file), qualification=13), 0)
    file.write_text('{"text": "Story."}\n')
    with pytest.raises(EnsueError, match="line 1 has no text, question, better and worse"):
        KIND.build(str(data), chosen(KIND, practice=str(file)), 0)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"stages": "reviewing,rating"}, "Stages without writing"),
        ({"systems": "x.jsonl"}, "set stages=rating"),
        ({"least_words": 80, "most_words": 70}, "80 words at least and 70 at most"),
        ({"writers": 5}, "bonuses for 4 writers"),
    ],
)
def test_what_cannot_be_is_refused(data: Path, given: dict[str, Any], words: str) -> None:
    with pytest.raises(EnsueError, match=words):
        KIND.build(str(data), chosen(KIND, **given), 0)


def test_unfinished_stories_are_not_exported_and_changed_ones_refused(
    project: Export, tmp_path: Path
) -> None:
    half = Export(
        project.project, project.kind, project.records[:3], settings=project.settings, source=project.source
    )
    with pytest.raises(EnsueError, match="No story has all its answers"):
        KIND.files(half, None)
    other = write_rows(tmp_path / "test.jsonl", story_row("9001", "Another story."))
    with pytest.raises(EnsueError, match="The story 9001 is not as it was read"):
        KIND.files(project, str(other))


@pytest.mark.parametrize(
    "change",
    [{"values": {}}, {"values": {"rank": 3}}, {"key": {"story": "9001", "question": 1, "of": 3}}],
    ids=["values", "rank", "of"],
)
def test_an_export_that_was_edited_is_refused_in_a_sentence(
    project: Export, tmp_path: Path, change: dict[str, Any]
) -> None:
    head = {"ensue": "annotation", "version": 1, "project": "round", "kind": "squality"}
    head |= {"source": project.source, "settings": project.settings}
    lines = [vars(one) | (change if one.stage == "reviewing" else {}) for one in project.records]
    path = write_rows(tmp_path / "round.jsonl", head, *lines)
    with pytest.raises(EnsueError, match=r"round\.jsonl has an answer that no project of its kind exports"):
        convert(path, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_people_who_answer_the_datas_questions_are_a_system(data: Path, tmp_path: Path) -> None:
    """Whoever writes a reference anew is as good as it is; who writes something else is measured by ROUGE."""
    references = [question.references for question in read_stories(data)[0].questions]

    def copying(item: WorkItem, person: str) -> dict[str, Any]:
        place = PEOPLE.index(person)
        return {f"answer{n}": texts[place] for n, texts in enumerate(references, 1)}

    settings = chosen(KIND, stages="writing", limit=1, least_words=1)
    export = exported(KIND, KIND.build(str(data), settings, 0), PEOPLE, copying, settings)
    run = TASK.prepare("", str(data), None, 0, asked(**QUICK))
    people = People(ModelCard("human-test", "human", "export.jsonl"), export)
    outcome = run.evaluate(people, RunContext())
    found = {row["metric"]: (row["value"], row["n"]) for row in outcome.metrics}
    assert found["rouge1"] == (pytest.approx(1.0), 2)
    words = [np.mean([len(text.split()) for text in texts]) for texts in references]
    assert found["words"][0] == pytest.approx(np.mean(words))
    assert outcome.skipped == {"questions that nobody answered": 2}
    others = run.evaluate(named("human"), RunContext())
    assert {row["metric"] for row in others.metrics} == set(found)
    changed = write_rows(tmp_path / "test.jsonl", story_row("9001", "Another story."))
    other = TASK.prepare("", str(changed), None, 0, asked(**QUICK))
    with pytest.raises(EnsueError, match="not the one people read"):
        other.evaluate(people, RunContext())
