"""A whole round of each kind over the API, as several people would do it, read back by the kind's own benchmark.

How simulated people answer is in bench/annotation_rounds.py, which does the same on a listening server.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from sklearn.metrics import matthews_corrcoef
from starlette.testclient import TestClient
from typer.testing import CliRunner

import ensue
from bench.annotation_rounds import CASES, STORY, Worker, run_case, work_off
from ensue.benchmarks.chapterbreak.annotation import ASPECTS, read_annotations
from ensue.benchmarks.people.export import Export
from ensue.benchmarks.people.form import Form
from ensue.benchmarks.people.kind import convert, kind
from ensue.benchmarks.people.numbers import bonuses
from ensue.benchmarks.qags.data.files import read_judgments
from ensue.benchmarks.squality.data import check_references, read_stories
from ensue.benchmarks.squality.human_eval import read_human_eval
from ensue.cli.main import app
from ensue.errors import EnsueError
from ensue.platform.annotation import overview
from ensue.platform.annotation.assigning import WITHDRAWN
from ensue.platform.annotation.building import build
from ensue.platform.annotation.exporting import export_of
from ensue.platform.annotation.people import People
from ensue.platform.annotation.projects import Projects, Wanted
from ensue.platform.clock import SetClock
from ensue.platform.service import Platform
from ensue.platform.web.app import create_app


def round_of(platform: Platform, folder: Path, name: str, **settings: object) -> tuple[Export, str]:
    """Have a project worked off; return what was exported, and the bonuses as CSV."""
    case = CASES[name](folder, None)
    given = {**case.settings, **settings}
    wanted = Wanted("round", case.kind, case.data, given, 1)
    project = Projects(platform).insert(wanted, build(case.kind, case.data, given, 1))
    served = create_app(platform)
    export, told = run_case(
        platform, project, case, lambda: TestClient(served, raise_server_exceptions=False), folder
    )
    return export, told["bonuses"]


class Begun:
    """A project that people enter one after another, over HTTP."""

    def __init__(
        self, platform: Platform, clock: SetClock, folder: Path, name: str = "squality", **given: object
    ) -> None:
        self.platform, self.clock, self.case = platform, clock, CASES[name](folder, None)
        wanted = Wanted("round", self.case.kind, self.case.data, given, 1)
        built = build(self.case.kind, self.case.data, given, 1)
        self.project = Projects(platform).insert(wanted, built)
        Projects(platform).set_state("round", "open")
        self.served = create_app(platform)

    def enter(self, number: int) -> Worker:
        client = TestClient(self.served, raise_server_exceptions=False)
        return Worker(client, self.project, f"round-{number}", self.clock)

    def seen(self) -> tuple[Export, dict[str, Any]]:
        """Return the export, and how far the work of each stage is."""
        with self.platform.database.reading() as connection:
            export = export_of(connection, self.project)
            return export, overview.progress(connection, self.project, self.clock)["work"]["stages"]


@pytest.mark.parametrize("name", ["custom", "insertion", "ordering"])
def test_every_item_is_answered_by_as_many_as_wanted(platform: Platform, tmp_path: Path, name: str) -> None:
    export, _ = round_of(platform, tmp_path, name, **({} if name == "custom" else {"sample": 7}))
    counts = Counter(one.item for one in export.answers())
    assert set(counts.values()) == {3}
    assert len({(one.item, one.annotator) for one in export.records}) == len(export.records)
    assert sum(export.wanted.values()) == sum(counts.values())
    assert all(one.state == "finished" for one in export.people)
    assert all(0 < one.seconds < one.elapsed for one in export.records)
    rows = {row["metric"]: row["value"] for row in kind(name).scores(export)}
    if name == "ordering":
        assert 0.5 < rows["kendall_tau"] < 1
    if name == "insertion":
        assert rows["distance"] == pytest.approx(1 - rows["accuracy"])


def test_consistency(platform: Platform, tmp_path: Path) -> None:
    # At this rate everybody meets one, wherever their controls begin.
    export, paid = round_of(platform, tmp_path, "consistency", control_rate=0.4)
    convert(tmp_path / "round.jsonl", tmp_path / "out")
    judged = read_judgments(tmp_path / "out" / "qags" / "judgments.jsonl", "own")
    assert [len(one.sentences) for one in judged] == [3] * 8
    assert {len(sentence.responses) for one in judged for sentence in one.sentences} == {3}
    assert sum(one.consistency for one in judged) / 8 == pytest.approx(2 / 3, abs=0.1)
    controls = [one for one in export.records if one.control]
    assert controls
    assert all(one.right for one in controls)
    # The other site's ids stand in the bonuses and nowhere else.
    assert "round-0," in paid
    assert "round-0" not in (tmp_path / "round.jsonl").read_text()


def test_r3_of_the_diagnostic_is_averaged_over_annotators(platform: Platform, tmp_path: Path) -> None:
    """Six people over HTTP, `ensue run glue --model human:…`, and scikit-learn's correlation of each alone."""
    export, _ = round_of(platform, tmp_path, "diagnostic")
    run = tmp_path / "run"
    human, data = f"human:{tmp_path / 'round.jsonl'}", str(tmp_path / "glue")
    told = CliRunner().invoke(
        app, ["run", "glue/diagnostic", "--model", human, "--data", data, "--output", str(run)]
    )
    assert told.exit_code == 0, told.output
    rows = {
        row["metric"]: row
        for row in json.loads((run / "results.json").read_text())["metrics"]
        if row["task"] == "diagnostic" and not row["settings"].keys() - {"split", "annotators"}
    }
    lines = (tmp_path / "glue" / "diagnostic" / "diagnostic-full.tsv").read_text().splitlines()[1:]
    gold = {str(place): line.split("\t")[-1] for place, line in enumerate(lines)}
    given: dict[str, dict[str, str]] = {}
    for one in export.answers():
        (example,) = one.key["examples"].values()
        given.setdefault(one.annotator, {})[example] = one.values["label"]
    assert (len(given), {len(said) for said in given.values()}) == (6, {48})
    alone = [matthews_corrcoef([gold[id] for id in said], list(said.values())) for said in given.values()]
    assert rows["r3_each"]["value"] == pytest.approx(sum(alone) / 6)
    assert rows["r3_each"]["settings"]["annotators"] == rows["r3_each"]["n"] == 6
    assert max(alone) - min(alone) > 0.3  # the average is of people who differ
    votes = {id: Counter(said[id] for said in given.values()).most_common() for id in gold}
    clear = {id: most[0][0] for id, most in votes.items() if len(most) == 1 or most[0][1] > most[1][1]}
    answered = {item["id"].rpartition("/")[2]: item for item in _items(run)}
    assert all(answered[id]["outputs"]["predicted"] == label for id, label in clear.items())
    assert rows["r3"]["value"] > rows["r3_each"]["value"]


def _items(run: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (run / "items.jsonl").read_text().splitlines()]


def test_transitions(platform: Platform, tmp_path: Path) -> None:
    round_of(platform, tmp_path, "transitions", sample=4)
    told = CliRunner().invoke(
        app,
        ["annotate", "convert", str(tmp_path / "round.jsonl"), "--output", str(tmp_path / "out"), "--json"],
    )
    assert json.loads(told.stdout)["files"] == ["annotations.csv"]
    assert len(read_annotations(tmp_path / "out" / "annotations.csv").transitions) == 4
    with pytest.raises(EnsueError, match="not empty; choose another --output"):
        convert(tmp_path / "round.jsonl", tmp_path / "out")


def test_transitions_by_those_who_qualify(platform: Platform, clock: SetClock, tmp_path: Path) -> None:
    """Known answers teach, qualify and check; whoever cannot tell them does none of the work."""
    known = {aspect: next(iter(said)) for aspect, said in ASPECTS.items()}
    sheet = tmp_path / "known.csv"
    rows = [",".join((f"ao3/book0/{number}", *known.values())) for number in range(5)]
    sheet.write_text("\n".join([",".join(("example", *known)), *rows]))
    given = {"training": str(sheet), "qualification": 2, "controls": 1, "control_rate": 0.5, "bar": 1.0}
    begun = Begun(platform, clock, tmp_path, "transitions", sample=3, **given)
    careful, other = [begun.enter(number) for number in range(3)], begun.enter(3)
    wrong = {aspect: list(said)[-1] for aspect, said in ASPECTS.items()}
    assert [other.work(lambda *_: wrong, 60) for _ in range(4)] == ["done"] * 4
    refused = other.client.post("/api/v1/projects/round/assignments")
    assert (refused.status_code, "qualification" in refused.json()["error"]) == (403, True)
    work_off(careful, lambda *_: known, 60)
    export, _ = begun.seen()
    states = {one.annotator: one.state for one in export.people}
    assert states == {one.pseudonym: "finished" for one in careful} | {other.pseudonym: "stopped"}
    counts = Counter((one.phase, one.control, one.right) for one in export.records)
    assert counts == {
        ("training", False, True): 6,
        ("training", False, False): 2,
        ("qualification", False, True): 6,
        ("qualification", False, False): 2,
        ("work", True, True): 3,
        ("work", False, None): 9,
    }
    (tmp_path / "annotations.csv").write_text(
        kind("transitions").files(export, None).texts["annotations.csv"]
    )
    found = read_annotations(tmp_path / "annotations.csv").transitions
    assert list(found.values()) == [known] * 3
    assert not {id for id in found if id.startswith("ao3/book0/")}


def test_a_squality_story(platform: Platform, tmp_path: Path) -> None:
    """Four writers compose, write, review and rate; bonuses are those of the rankings."""
    export, paid = round_of(platform, tmp_path, "squality", own_questions=4)
    writers = sorted(one.annotator for one in export.people)
    assert Counter(one.stage for one in export.answers()) == {
        "questions": 1,
        "writing": 4,
        "reviewing": 20,
        "feedback": 4,
        "rating": 20,
    }
    for one in export.answers():
        assert one.annotator not in one.key.get("of", {}).values()
    out = tmp_path / "out"
    assert convert(tmp_path / "round.jsonl", out).notes[0] == "1 of 1 stories have all answers, 1 all reviews"
    (story,) = read_stories(out / "test.jsonl")
    check_references([story], out / "test.jsonl")
    assert (story.document, len(story.questions)) == (STORY, 5)
    assert {one.writer for one in story.questions[4].responses} == set(writers)
    # Nobody is measured against their own words: people on what they wrote are people with one reference left out.
    own, left_out = (
        ensue.run("squality", model=model, data=str(out), metrics="rouge", output=tmp_path / model[:6])
        for model in (f"human:{tmp_path / 'round.jsonl'}", "human")
    )
    expected = {row["metric"]: row["value"] for row in left_out.results["metrics"]}
    assert {row["metric"]: row["value"] for row in own.results["metrics"]} == pytest.approx(expected)
    assert expected["rouge1"] < 1
    counted = [
        count for words, count in own.results["notes"].items() if "measured against the others" in words
    ]
    assert counted == [20]
    rated = read_human_eval(out / "human-eval" / "all-responses.jsonl")
    assert len(rated) == 20
    owed = bonuses(export, kind("squality"))
    # Five questions: 5 dollars by rank to share each, and up to 1.50 for a reviewer's three pairs.
    reviewers = sum(owed.values()) - 5 * 500
    assert 0 < reviewers <= 5 * 4 * 150
    lines = paid.splitlines()
    assert lines[0] == "participant_id,amount"
    assert sorted(line.partition(",")[0] for line in lines[1:]) == [f"round-{n}" for n in range(4)]
    assert sum(round(100 * float(line.partition(",")[2])) for line in lines[1:]) == sum(owed.values())


def test_a_writer_who_is_excluded_is_replaced(platform: Platform, clock: SetClock, tmp_path: Path) -> None:
    """The others review the new answers, and nobody waits for who has gone."""
    story = Begun(platform, clock, tmp_path, own_questions=4, stages="questions,writing,reviewing")
    case, enter = story.case, story.enter
    workers = [enter(number) for number in range(4)]
    # One asks, then all write, and one reviews a question.
    told = [one.work(case.answer, 60) for one in (workers[0], *workers, workers[0])]
    assert told == ["done"] * 6
    gone = workers.pop()
    People(platform).exclude("round", gone.pseudonym)
    workers.append(enter(4))
    work_off(workers, case.answer, 60)
    export, _ = story.seen()
    assert {one.state for one in export.people if one.annotator != gone.pseudonym} == {"finished"}
    files = kind("squality").files(export, None)
    assert files.notes[0] == "1 of 1 stories have all answers, 1 all reviews"
    written = json.loads(files.texts["test.jsonl"])
    writers = {one["worker_id"] for one in written["questions"][0]["responses"]}
    assert writers == {one.pseudonym for one in workers}
    assert gone.pseudonym not in bonuses(export, kind("squality"))


def test_what_was_said_beside_an_excluded_writer_is_paid_and_counts_no_more(
    platform: Platform, clock: SetClock, tmp_path: Path
) -> None:
    """One of four goes when all is done, and a fifth takes their place: the story is as if they had not been."""
    stages = "questions,writing,reviewing,rating"
    story = Begun(platform, clock, tmp_path, own_questions=1, stages=stages)

    def answer(form: Form, *more: Any) -> dict[str, Any]:
        asked = {field.id for field in form.fields}
        return {id: said for id, said in story.case.answer(form, *more).items() if id in asked}

    workers = [story.enter(number) for number in range(4)]
    work_off(workers, answer, 60)
    gone = workers.pop()
    People(platform).exclude("round", gone.pseudonym)
    workers.append(story.enter(4))
    work_off(workers, answer, 60)
    export, far = story.seen()
    squality, writers = kind("squality"), {one.pseudonym for one in workers}
    wanted = {"questions": 1, "writing": 4, "reviewing": 8, "feedback": 4, "rating": 8}
    assert {name: (one["answered"], one["wanted"]) for name, one in far.items()} == {
        name: (count, count) for name, count in wanted.items()
    }
    assert Counter(one.stage for one in export.answers()) == wanted
    rows = squality.scores(export)
    assert {row["settings"].get("system", "human") for row in rows} == {"human"}
    assert [row["n"] for row in rows] == [24] * 4  # three pairs a review, three responses a rating
    rated = {one.part for record in export.answers("rating") for one in squality.judged(record)}
    assert rated == writers
    texts = squality.files(export, None).texts
    reviews = [json.loads(line) for line in texts["reviews.jsonl"].splitlines()]
    assert len(reviews) == 8
    assert {name for one in reviews for name in (one["reviewer"], *one["places"])} == writers
    assert "human-eval/all-responses.jsonl" in texts
    # Nobody works for nothing because of another: who reviewed and rated twice is paid for it twice.
    owed = {name: one.pay for name, one in squality.earned(export).items()}
    assert owed == dict.fromkeys(writers, 13 + 2 * (8 + 8)) | {workers[-1].pseudonym: 13 + 8 + 8}


def test_whoever_asked_is_excluded_and_nobody_answers_their_questions_any_more(
    platform: Platform, clock: SetClock, tmp_path: Path
) -> None:
    story = Begun(platform, clock, tmp_path, own_questions=4, stages="questions,writing,reviewing")
    case, enter = story.case, story.enter

    def others(form: Form, stage: str, who: str, chance: random.Random) -> dict[str, Any]:
        said = case.answer(form, stage, who, chance)
        return {id: f"Pray, {text}" for id, text in said.items()} if stage == "questions" else said

    asks, writes, holds = (enter(number) for number in range(3))
    assert [one.work(case.answer, 60) for one in (asks, asks, writes)] == ["done"] * 3
    begun = holds.client.post("/api/v1/projects/round/assignments").json()
    assert begun["item"]["stage"] == "writing"
    People(platform).exclude("round", asks.pseudonym)
    draft = {"values": {"answer1": "It"}, "final": False, "seq": 1}
    late = holds.client.put(
        f"/api/v1/assignments/{begun['id']}/answer", json=draft, headers={"Idempotency-Key": "late"}
    )
    assert (late.status_code, late.json()["error"]) == (409, WITHDRAWN)
    workers = [writes, holds, enter(3), enter(4)]
    work_off(workers, others, 60)
    export, stages = story.seen()
    assert (stages["writing"]["wanted"], stages["writing"]["answered"]) == (4, 4)
    assert {one.state for one in export.people if one.annotator != asks.pseudonym} == {"finished"}
    files = kind("squality").files(export, None)
    assert files.notes[0] == "1 of 1 stories have all answers, 1 all reviews"
    written = json.loads(files.texts["test.jsonl"])
    assert all(one["question_text"].startswith("Pray, ") for one in written["questions"][1:])
    writers = {one["worker_id"] for one in written["questions"][0]["responses"]}
    assert writers == {one.pseudonym for one in workers}
