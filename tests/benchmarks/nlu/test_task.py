"""GLUE and SuperGLUE as a user runs them: rows, items, what is left out, and questions that make no sense."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from sklearn.metrics import matthews_corrcoef

import ensue
from ensue.report.results import read_fits
from tests.benchmarks.nlu import folders
from tests.support import tiny
from tests.support.command import here, refused, write_lines
from tests.support.run_context import records_of


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folders.glue(tmp_path / "glue")
    folders.superglue(tmp_path / "superglue")
    return tmp_path


def lines(path: Path, written: list[dict[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    write_lines(path, written)


def rows(run: ensue.Run, metric: str, **settings: Any) -> dict[str, float]:
    return {
        row["task"]: row["value"]
        for row in run.results["metrics"]
        if row["metric"] == metric and settings.items() <= row["settings"].items()
    }


def test_the_most_frequent_answer_by_hand(data: Path, tmp_path: Path) -> None:
    """In the dev sets there: CoLA has 8 zeros of 12, RTE six of each, STS-B a constant and so no correlation."""
    run = ensue.run("glue", model="most-frequent", data=data / "glue", output=tmp_path / "run")
    assert rows(run, "mcc", split="dev") == {"CoLA": 0.0}
    assert rows(run, "accuracy", split="dev") == {"RTE": 0.5}
    assert rows(run, "pearson", split="dev") == {"STS-B": 0.0}
    assert rows(run, "score") == {
        "CoLA": 0.0,
        "RTE": 0.5,
        "STS-B": 0.0,
        "GLUE": pytest.approx(0.5 / 3),
    }
    (row,) = [row for row in run.results["metrics"] if row["task"] == "GLUE"]
    assert row["settings"]["covers"] == (
        "0 of 9 tasks whole, CoLA in part (12 of 1,043 rows), STS-B in part (12 of 1,500 rows), "
        "RTE in part (12 of 277 rows)"
    )
    skipped = "\n".join(run.results["skipped"])
    for name in ("SST-2", "QQP", "MNLI", "QNLI", "WNLI", "diagnostic"):
        assert f"task {name} left out, for want of files" in skipped
    assert any("counted as 0" in note for note in run.results["notes"])
    assert "mode:majority" in run.results["signature"]


def test_items_are_enough_to_score_again(data: Path, tmp_path: Path) -> None:
    run = ensue.run(
        "superglue", model="random", data=data / "superglue", output=tmp_path / "run", template="all"
    )
    templates = {item["settings"]["template"] for item in run.items if item["task"] == "AX-b"}
    assert len(templates) > 1
    for template in templates:
        pairs = [
            (item["outputs"]["label"], item["outputs"]["predicted"])
            for item in run.items
            if item["task"] == "AX-b" and item["settings"]["template"] == template
        ]
        assert len(pairs) == folders.SIZE
        expected = matthews_corrcoef(*zip(*pairs, strict=True))
        found = [
            row["value"]
            for row in run.results["metrics"]
            if row["task"] == "AX-b"
            and row["metric"] == "mcc"
            and row["settings"].get("template") == template
            and "category" not in row["settings"]
        ]
        assert found == [pytest.approx(expected)]
    assert {row["settings"].get("tag") for row in run.results["metrics"] if row["task"] == "AX-b"} == {
        None,
        "Negation",
    }


def test_several_tasks_at_once_and_one_alone_agree(data: Path, tmp_path: Path) -> None:
    both = ensue.run(
        "superglue/BoolQ,copa", model="random", data=data / "superglue", output=tmp_path / "both"
    )
    alone = ensue.run(
        "superglue/COPA", model="random", data=data / "superglue" / "COPA", output=tmp_path / "alone"
    )
    assert {row["task"] for row in both.results["metrics"]} == {"BoolQ", "COPA", "SuperGLUE"}
    ours = [row for row in both.results["metrics"] if row["task"] == "COPA"]
    assert ours == [row for row in alone.results["metrics"] if row["task"] == "COPA"]


def test_the_second_text_alone_answers_pairs_only(tmp_path: Path) -> None:
    """RTE's labels hang on its second text; a classifier that sees nothing else answers its dev set and AX-b."""
    for split, size in (("train", 60), ("val", 20)):
        lines(
            tmp_path / "data" / "RTE" / f"{split}.jsonl",
            [
                {
                    "premise": f"Boat {n} left.",
                    "hypothesis": "It did not leave." if n % 3 else "It left.",
                    "label": "not_entailment" if n % 3 else "entailment",
                    "idx": n,
                }
                for n in range(size)
            ],
        )
    lines(
        tmp_path / "data" / "AX-b" / "AX-b.jsonl",
        [
            {"sentence1": "It rains.", "sentence2": "It left.", "label": "entailment", "idx": n}
            for n in range(4)
        ]
        + [{"sentence1": "A", "sentence2": "It did not leave.", "label": "not_entailment", "idx": 4}],
    )
    run = ensue.run("superglue", model="hypothesis-only", data=tmp_path / "data", output=tmp_path / "run")
    assert rows(run, "accuracy", split="dev") == {"RTE": 1.0}
    assert rows(run, "mcc", split="test") == {"AX-b": 1.0}
    fits = (run.folder / "fits.jsonl").read_text().splitlines()
    assert len(fits) == 2
    assert all('"learned_from": "RTE train"' in line for line in fits)


def test_what_was_finished_goes_when_the_run_is_written(tmp_path: Path) -> None:
    for split, size in (("train", 24), ("val", 8)):
        lines(
            tmp_path / "data" / "RTE" / f"{split}.jsonl",
            [
                {
                    "premise": f"Boat {n} left.",
                    "hypothesis": "It stayed." if n % 2 else "It went.",
                    "label": "not_entailment" if n % 2 else "entailment",
                    "idx": n,
                }
                for n in range(size)
            ],
        )
    tiny.save_encoder(tmp_path / "model")
    run = ensue.run(
        "superglue/RTE",
        model=str(tmp_path / "model"),
        data=tmp_path / "data",
        output=tmp_path / "run",
        mode="finetune",
        epochs=1,
    )
    assert rows(run, "accuracy", split="dev")["RTE"] >= 0.0
    assert not records_of(run.folder).exists()


def test_bad_questions_are_one_sentence(data: Path, tmp_path: Path) -> None:
    glue = data / "glue"
    refused(here("run", "glue", "--model", "random"), "glue needs --data")
    refused(here("run", "glue", "--model", "random", "--data", data / "none"), "is not a folder")
    refused(here("run", "glue/RTF", "--model", "random", "--data", glue), "did you mean RTE?")
    refused(here("run", "glue/WNLI", "--model", "random", "--data", glue), "has no file of WNLI")
    refused(
        here("run", "glue", "--model", "random", "--data", glue, "--set", "width=9"),
        "width is a setting of mode train, and this is mode prompt",
    )
    refused(
        here("run", "glue/RTE", "--model", "hypothesis-only", "--data", glue, "--output", tmp_path / "x"),
        "answered none of RTE in mode hypothesis-only",
    )
    refused(
        here("run", "glue", "--model", "random", "--data", glue, "--mode", "guess"),
        "Invalid mode=guess: expected",
    )


@pytest.mark.parametrize(
    ("model", "settings"),
    [
        ("most-frequent", {}),
        ("hypothesis-only", {}),
        ("random", {"template": "question"}),
        ("cbow", {"vectors": "learned", "max_steps": 20}),
        ("encoder", {"mode": "frozen"}),
        ("encoder", {"mode": "finetune", "epochs": 1}),
    ],
)
def test_a_task_with_only_a_training_set_is_judged_by_a_held_out_part(
    tmp_path: Path, model: str, settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """In every mode by the same examples, none of them learnt from, and under a split of that name."""
    monkeypatch.setenv("ENSUE_HOME", str(tmp_path / "home"))
    head = "id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate\n"
    asked = [f"{n}\t1\t2\tWhere is boat {n}?\tWho has boat {n}?\t{n % 3 // 2}\n" for n in range(40)]
    path = tmp_path / "glue" / "QQP" / "train.tsv"
    path.parent.mkdir(parents=True)
    path.write_text(head + "".join(asked), "utf-8")
    drawn = list(range(40))
    random.Random("QQP").shuffle(drawn)
    name = str(tiny.save_encoder(tmp_path / "tiny")) if model == "encoder" else model
    run = ensue.run("glue/QQP", model=name, data=tmp_path / "glue", output=tmp_path / "run", **settings)
    own = [row for row in run.results["metrics"] if row["task"] == "QQP"]
    assert {row["metric"] for row in own} == {"accuracy", "f1", "score"}
    assert {(row["settings"]["split"], row["n"]) for row in own} == {("held-out", 4)}
    (total,) = [row for row in run.results["metrics"] if row["task"] == "GLUE"]
    assert total["settings"]["split"] == "held-out"
    assert [item["id"] for item in run.items] == [f"QQP/held-out/{n}" for n in sorted(drawn[:4])]
    assert (
        run.results["notes"][
            "QQP: examples of the training set held out to judge by, for want of dev and test"
        ]
        == 4
    )
    for fit in read_fits(run.folder):
        assert fit.get("train_examples", fit.get("examples", 36)) in (34, 36)
