"""The page of a training: the curve, the step that was kept, and one sentence where the log is broken."""

from __future__ import annotations

import json

import pytest

from ensue.errors import EnsueError
from ensue.runs.report import write_report
from ensue.train.report.page import MOST_POINTS, Curve, read_log, smoothed, thinned
from tests.benchmarks.chapterbreak.report.synthetic import write_chapterbreak
from tests.report.synthetic import write_training
from tests.support.pages import EVIL, Page


def test_says_how_the_training_went(tmp_path):
    folder = write_training(tmp_path / "training")
    path = write_report(folder)
    assert path == folder / "report.html"
    page = Page(path.read_text("utf-8"))
    assert (page.faults, page.open) == ([], [])
    assert page.tags.count("svg") == 2
    assert not {"script", "img", "link"} & set(page.tags)
    best = min(
        (row for row in map(json.loads, (folder / "training.jsonl").open()) if "dev_loss" in row),
        key=lambda row: row["dev_loss"],
    )
    for words in [
        "How suffixlm was trained",
        "3 min 20 s",
        "2,000 steps",
        f"{best['dev_loss']:.4f}",
        f"best, step {best['step']:,}",
        "train loss, smoothed",
        "dev accuracy",
        "ensue train suffixlm --data 'my books'",
        "learning_rate",
        "cores",
    ]:
        assert words in page.text, words


def test_names_inside_the_picture_are_unique_and_the_page_is_repeatable(tmp_path):
    folder = write_training(tmp_path / "training")
    first = write_report(folder).read_bytes()
    assert write_report(folder).read_bytes() == first
    page = Page(first.decode())
    names = [value for _, name, value in page.attributes if name == "id"]
    assert len(names) == len(set(names))


def test_the_last_step_marked_best_is_the_best(tmp_path):
    rows = [
        {"step": 10, "dev_loss": 3.0, "best": True},
        {"step": 20, "dev_loss": 2.0, "best": True},
        {"step": 30, "dev_loss": 2.5, "best": False},
    ]
    training = read_log(write_training(tmp_path / "t", lines=rows) / "training.jsonl")
    assert training.best.step == 20
    assert training.dev("loss") == Curve([10, 20, 30], [3.0, 2.0, 2.5])
    assert training.dev("accuracy") == Curve([], [])
    assert training.loss == Curve([], [])
    page = Page(write_report(tmp_path / "t").read_text("utf-8"))
    assert "best so far" in page.text
    assert "train loss" not in page.text


def test_a_step_told_twice_counts_as_told_last(tmp_path):
    rows = [{"step": 2, "loss": 5.0}, {"step": 1, "loss": 4.0}, {"step": 2, "loss": 3.0}]
    training = read_log(write_training(tmp_path / "t", lines=rows) / "training.jsonl")
    assert training.loss == Curve([1.0, 2.0], [4.0, 3.0])


def test_values_that_are_no_numbers_are_counted_and_not_drawn(tmp_path):
    rows = [
        {"step": 1, "loss": 2.0},
        {"step": 2, "loss": float("nan")},
        {"step": 3, "dev_loss": float("inf")},
    ]
    page = Page(write_report(write_training(tmp_path / "t", lines=rows)).read_text("utf-8"))
    assert "2 logged values were infinite or no number" in page.text
    assert "nan" not in page.text.lower()


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([], r"training\.jsonl is empty"),
        ([{"step": 1}], "neither a loss nor an evaluation"),
        ([{"loss": 1.0}], "line 1: a line of the training log needs a whole number called 'step'"),
        ([{"step": True, "loss": 1.0}], "needs a whole number called 'step'"),
        (
            [{"step": 1, "loss": 1.0}, {"step": 2, "loss": "high"}],
            "line 2: 'loss' must be a number, not 'high'",
        ),
    ],
)
def test_a_broken_log_is_one_sentence(tmp_path, lines, message):
    folder = write_training(tmp_path / "t", lines=lines)
    with pytest.raises(EnsueError, match=message):
        write_report(folder)
    assert not (folder / "report.html").exists()


def test_a_torn_or_missing_file_is_one_sentence(tmp_path):
    folder = write_training(tmp_path / "t")
    (folder / "training.jsonl").write_text('{"step": 1, "loss": 1.0}\n{"step": 2, "lo')
    with pytest.raises(EnsueError, match="line 2 is not JSON"):
        write_report(folder)
    (folder / "training.jsonl").unlink()
    with pytest.raises(EnsueError, match=r"has no training\.jsonl"):
        write_report(folder)
    write_training(tmp_path / "t")
    (folder / "training.json").write_text("{")
    with pytest.raises(EnsueError, match=r"training\.json is not JSON"):
        write_report(folder)
    (folder / "training.json").write_text("[]")
    with pytest.raises(EnsueError, match="is not a JSON object"):
        write_report(folder)
    (folder / "training.json").unlink()
    with pytest.raises(EnsueError, match=r"has no training\.json, so"):
        write_report(folder)


def test_a_training_is_reported_alone(tmp_path):
    folder, run = write_training(tmp_path / "t"), write_chapterbreak(tmp_path / "run")
    with pytest.raises(EnsueError, match="holds a training, which is reported alone"):
        write_report(folder, beside=[run])
    with pytest.raises(EnsueError, match="holds a training, not a run of chapterbreak"):
        write_report(run, beside=[folder])


def test_text_from_the_record_is_never_markup(tmp_path):
    record = {"model": EVIL, "command": EVIL, EVIL: {EVIL: [EVIL]}}
    lines = [{"step": 1, "loss": 1.0}, {"step": 1, f"dev_{EVIL}": 0.5, "best": True}]
    text = write_report(write_training(tmp_path / "t", record=record, lines=lines)).read_text("utf-8")
    page = Page(text)
    assert (page.faults, page.open) == ([], [])
    assert not {"script", "img"} & set(page.tags)
    assert "<script" not in text


def test_a_long_training_makes_a_small_page(tmp_path):
    folder = write_training(tmp_path / "t", steps=40_000, every=1, evaluations=400)
    assert write_report(folder).stat().st_size < 300_000
    assert "more evaluations are in training.jsonl" in (folder / "report.html").read_text("utf-8")


def test_smoothing_is_a_running_mean_and_thinning_keeps_the_end():
    curve = Curve([float(step) for step in range(100)], [float(step % 2) for step in range(100)])
    smooth = smoothed(curve)
    assert smooth.steps == curve.steps
    assert smooth.values[50] == pytest.approx(sum(curve.values[48:53]) / 5)
    assert smooth.values[0] == pytest.approx(1 / 3)
    long = Curve([float(step) for step in range(10_000)], [0.0] * 10_000)
    assert thinned(long).steps[-1] == 9999
    assert len(thinned(long).steps) <= MOST_POINTS
