"""People on GLUE and SuperGLUE: what they are asked, and what their export is worth as a run."""

from __future__ import annotations

import csv
import io
import json
import os
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import ensue
from ensue.benchmarks.grading import open_board
from ensue.benchmarks.nlu.people import FIELD
from ensue.benchmarks.nlu.suites import specs_of
from ensue.benchmarks.people.checking import check_answer
from ensue.benchmarks.people.kind import WorkItem, kind
from ensue.cli.main import app
from ensue.errors import EnsueError
from ensue.runs.report import write_report
from ensue.runs.tables import metrics_tables
from tests.benchmarks.people.answering import chosen, exported

KIND = kind("classification")
NAMES = [f"p{number}" for number in range(5)]


def answer_of(item: WorkItem, value: Any) -> dict[str, Any]:
    """Return the first option for every field, or a value where the item has one field."""
    found = {}
    for field in item.form.fields:
        known = [one["value"] for one in field.more.get("options", ())]
        found[field.id] = value if value in known else known[0] if known else field.more["most"]
    return found


def export_to(path: Path, data: Path, answer: Any, **settings: Any) -> Path:
    given = chosen(KIND, **settings)
    built = KIND.build(str(data), given, 3)
    export = exported(KIND, built, NAMES, answer, given, seconds=9)
    head = {"ensue": "annotation", "version": 1, "project": "rte", "kind": KIND.name, "source": str(data)}
    lines = [vars(one) for one in export.records]
    path.write_text("".join(json.dumps(line) + "\n" for line in [head, *lines]))
    return path


@pytest.fixture
def rte(tmp_path: Path) -> Path:
    """RTE of twelve dev examples, every other one entailment, and a training set."""
    folder = tmp_path / "data" / "RTE"
    folder.mkdir(parents=True)
    for name, count in (("val", 12), ("train", 20)):
        rows = [
            {
                "premise": f"{name} text {number}.",
                "hypothesis": f"Statement {number}.",
                "label": "entailment" if number % 2 else "not_entailment",
                "idx": number,
            }
            for number in range(count)
        ]
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder.parent


def test_practice_and_qualification_come_from_the_training_set(rte: Path) -> None:
    settings = chosen(KIND, task="superglue/RTE", training=3, qualification=6, controls=4)
    built = KIND.build(str(rte), settings, 0)
    phases = [one.phase for one in built.items]
    assert phases == ["training"] * 3 + ["qualification"] * 6 + ["work"] * (4 + 12)
    assert [one.control for one in built.items] == [False] * 9 + [True] * 4 + [False] * 12
    assert all("train text" in str(one.form.panels[0].text) for one in built.items[:13])
    assert len({one.key["id"] for one in built.items}) == 3 + 6 + 4 + 12
    for one in built.items[:13]:
        number = int(str(one.form.panels[0].text).rstrip(".").rpartition(" ")[2])
        assert one.gold == {"label": "entailment" if number % 2 else "not_entailment"}
    first = built.items[0]
    assert first.gold is not None
    assert KIND.right(first.gold, first.gold)
    assert first.words.startswith("Expected: ")
    assert all(one.gold is None for one in built.items[13:])
    assert (settings["labels"], settings["bar"]) == (5, "median")
    # Of a training set that is the work nothing is asked twice.
    within = KIND.build(str(rte), chosen(KIND, task="superglue/RTE", split="train", examples=14), 0)
    assert len({one.key["id"] for one in within.items}) == len(within.items) == 20
    assert [one.phase for one in within.items[:6]] == ["training"] * 5 + ["qualification"]
    with pytest.raises(EnsueError, match="task=SUITE/TASK"):
        KIND.build(str(rte), chosen(KIND), 0)
    with pytest.raises(EnsueError, match="RTE, test split"):
        KIND.build(str(rte), chosen(KIND, task="superglue/RTE", split="test"), 0)


def test_questions_with_several_answers_are_as_many_items_as_wanted(tmp_path: Path) -> None:
    """MultiRC asks for all answers of a question at once: ten items are more than ten of its examples."""
    folder = tmp_path / "data" / "MultiRC"
    folder.mkdir(parents=True)
    for name in ("val", "train"):
        rows = []
        for number in range(8):
            questions = [
                {
                    "question": f"Question {one} of {name} {number}?",
                    "answers": [{"text": f"Answer {n}", "idx": n, "label": n % 2} for n in range(4)],
                    "idx": one,
                }
                for one in range(2)
            ]
            rows.append(
                {"passage": {"text": f"{name} text {number}.", "questions": questions}, "idx": number}
            )
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    built = KIND.build(str(folder.parent), chosen(KIND, task="superglue/MultiRC"), 0)
    phases = [one.phase for one in built.items if one.phase != "work"]
    assert phases == ["training"] * 5 + ["qualification"] * 5


def test_people_are_a_run_and_a_submission(rte: Path, tmp_path: Path) -> None:
    def answer(item: WorkItem, person: str) -> dict[str, Any]:
        # p0 and p1 always say entailment; the others know, but for example 1, where all but p4 are wrong.
        number = int(item.key["examples"][FIELD])
        right = "entailment" if number % 2 else "not_entailment"
        if number == 1 and person != "p4":
            return {FIELD: "not_entailment"}
        return {FIELD: "entailment" if person in {"p0", "p1"} else right}

    path = export_to(tmp_path / "rte.jsonl", rte, answer, task="superglue/RTE")
    run = ensue.run("superglue/RTE", model=f"human:{path}", data=rte, output=tmp_path / "people")
    rows = {row["metric"]: row for row in run.results["metrics"] if row["task"] == "RTE"}
    assert rows["accuracy"]["value"] == pytest.approx(11 / 12)
    each = (2 * (5 / 12) + 2 * (11 / 12) + 1) / 5
    assert rows["accuracy_each"]["value"] == pytest.approx(each)
    assert rows["accuracy_each"]["settings"]["annotators"] == 5
    tasks, one_by_one = metrics_tables(run.results, None)
    assert [row[:3] for row in csv.reader(io.StringIO(tasks.to_csv()))][1] == ["RTE *", "dev", "acc."]
    shown = {row["measure"]: row for row in csv.DictReader(io.StringIO(one_by_one.to_csv()))}
    assert set(shown) == {"accuracy of one", "Fleiss’ κ"}
    assert float(shown["accuracy of one"]["value"]) == pytest.approx(each)
    assert shown["accuracy of one"]["of"] == "5 people"
    page = ensue.report(run).read_text("utf-8")
    assert "accuracy of one" in page
    assert f"--model human:{path}" in page
    assert -0.5 < rows["kappa"]["value"] < 1
    model = ensue.run("superglue/RTE", model="most-frequent", data=rte, output=tmp_path / "model")
    (row,) = [one for one in ensue.compare(run, model).rows if one.metric == "accuracy"]
    assert row.test.difference == pytest.approx(11 / 12 - 1 / 2)
    # People are a point where a model's answers by several templates lie apart.
    prompted = ensue.run("superglue/RTE", model="random", data=rte, output=tmp_path / "prompted")
    beside = write_report(prompted.folder, beside=[run.folder]).read_text("utf-8")
    assert "Scores of several answers by task." in beside
    assert "human-rte: RTE 0.917" in beside
    done = CliRunner().invoke(
        app, ["submit", "superglue", str(run.folder), "--split", "dev", "--output", str(tmp_path / "rte.zip")]
    )
    assert done.exit_code == 0, done.output
    board = open_board("superglue", rte, "dev", tasks=["RTE"])
    assert board.grade(tmp_path / "rte.zip").metrics[0]["value"] == pytest.approx(11 / 12)


def test_examples_nobody_labelled_are_counted(rte: Path, tmp_path: Path) -> None:
    path = export_to(
        tmp_path / "rte.jsonl",
        rte,
        lambda item, _: answer_of(item, "entailment"),
        task="superglue/RTE",
        examples=4,
    )
    run = ensue.run("superglue/RTE", model=f"human:{path}", data=rte, output=tmp_path / "people")
    assert run.results["notes"]["RTE: dev: examples nobody labelled"] == 8
    assert len(run.items) == 4
    (rte / "RTE" / "val.jsonl").write_text(
        (rte / "RTE" / "val.jsonl").read_text().replace("val text", "text")
    )
    with pytest.raises(EnsueError, match="not what people read"):
        ensue.run("superglue/RTE", model=f"human:{path}", data=rte, output=tmp_path / "other")


def test_people_of_another_task_are_refused_by_its_name(rte: Path, tmp_path: Path) -> None:
    path = export_to(
        tmp_path / "rte.jsonl", rte, lambda item, _: answer_of(item, "entailment"), task="superglue/RTE"
    )
    row = {
        "premise": "It rained.",
        "choice1": "Wet.",
        "choice2": "Dry.",
        "question": "effect",
        "idx": 0,
        "label": 0,
    }
    (rte / "COPA").mkdir()
    (rte / "COPA" / "val.jsonl").write_text(json.dumps(row) + "\n")
    with pytest.raises(
        EnsueError, match="is of superglue/RTE, not of superglue/COPA; run ensue run superglue/RTE"
    ):
        ensue.run("superglue/COPA", model=f"human:{path}", data=rte, output=tmp_path / "other")


def test_points_scores_names_and_several_answers_are_judged_as_their_tasks_say() -> None:
    assert KIND.right({FIELD: "entailment"}, {FIELD: 3})
    assert not KIND.right({FIELD: "entailment"}, {FIELD: 4})
    assert KIND.right({FIELD: 2.4}, {FIELD: 3})
    assert not KIND.right({FIELD: 2.4}, {FIELD: 1})
    assert KIND.right({FIELD: ["US", "America"]}, {FIELD: "America"})
    assert not KIND.right({"a0": "1", "a1": "0"}, {"a0": "1", "a1": "1"})


@pytest.mark.data
@pytest.mark.parametrize("suite", ["glue", "superglue"])
def test_every_task_can_be_asked_and_read_back(suite: str, tmp_path: Path) -> None:
    root = os.environ.get("ENSUE_DATA")
    if not root:
        pytest.skip("set ENSUE_DATA to the folder of the real data")
    data = Path(root) / suite
    for spec in specs_of(suite):
        given = chosen(KIND, task=f"{suite}/{spec.name}", examples=6, training=2, qualification=2)
        if spec.name == "QQP":
            continue  # of which the data here have no dev split
        built = KIND.build(str(data), given, 0)
        for item in built.items:
            assert check_answer(item.form, answer_of(item, None)) == []
        path = tmp_path / f"{spec.name}.jsonl"
        answer = lambda item, _: answer_of(item, None)  # noqa: E731
        export_to(path, data, answer, task=f"{suite}/{spec.name}", examples=6, training=0, qualification=0)
        run = ensue.run(
            f"{suite}/{spec.name}", model=f"human:{path}", data=data, output=tmp_path / spec.name, limit=None
        )
        assert any(row["task"] == spec.name for row in run.results["metrics"]), spec.name
