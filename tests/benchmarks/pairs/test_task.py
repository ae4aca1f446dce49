"""Pairs: scores against plain torch, what the bundled ones promise, users' files, reports and what is refused."""

from __future__ import annotations

import json
from collections import Counter

import pytest

import ensue
from ensue.benchmarks.pairs.data import read_pairs
from ensue.benchmarks.pairs.task import _item
from ensue.runs.tables import metrics_tables
from tests.support import tiny
from tests.support.command import here, refused, write_lines
from tests.support.naive_texts import NaiveCausal
from tests.support.pages import printed
from tests.support.raters import InversionRater

PHENOMENA = ("connective", "name", "pronoun", "time", "contradiction")
OWN = [
    {
        "context": "The sun rose over the hill.",
        "good": "The birds began to sing.",
        "bad": "The sun was asleep.",
    },
    {"good": "She read it twice.", "bad": "She read the door.", "phenomenon": "odd", "id": "x"},
    {
        "context": "It was closed.",
        "good": "Nobody spoke.",
        "bad": "The result was open.",
        "phenomenon": "odd",
    },
]


def test_the_bundled_pairs_are_balanced_and_none_comes_twice():
    """Each ending is the good one of one pair and the bad one of the other, so that nothing in it gives it away."""
    pairs = read_pairs(None).items
    counts = Counter(pair.phenomenon for pair in pairs)
    assert tuple(counts) == PHENOMENA
    assert all(count >= 60 for count in counts.values())
    groups: dict[str, list] = {}
    for pair in pairs:
        groups.setdefault(pair.group, []).append(pair)
    for one, other in groups.values():
        assert (one.good, one.bad) == (other.bad, other.good)
        assert one.context != other.context
        assert {one.phenomenon} == {other.phenomenon}
    for texts in ([pair.context for pair in pairs], [pair.good for pair in pairs]):
        assert len(set(texts)) == len(pairs)
    assert all(text == text.strip() and text[-1] in ".!?" for pair in pairs for text in pair[3:])


def test_a_model_that_reads_no_context_is_right_half_of_the_time(tmp_path):
    """Whatever it is: of each group it prefers one ending, which is the good one once."""
    folder = tiny.save_llama(tmp_path / "llama", max_length=512)
    run = ensue.run("pairs", model=str(folder), output=tmp_path / "run", limit=120)
    rows = {(row["metric"], row["settings"].get("phenomenon")): row for row in run.results["metrics"]}
    assert {name for _, name in rows} == {None, "connective", "name"}
    for name in (None, "connective", "name"):
        alone = rows["accuracy_alone", name]
        assert (alone["value"], alone["n"], alone["clusters"]) == (0.5, *((60, 30) if name else (120, 60)))


@pytest.mark.parametrize(
    ("logprobs", "accuracy", "gain", "alone", "ties"),
    [
        # Good and bad after the context, then on their own: the bad one is always likelier, and gains less.
        ((-10.0, -8.0, -30.0, -20.0), 0, 1, 0, 0),
        ((-8.0, -10.0, -20.0, -30.0), 1, 0, 1, 0),
        ((-8.0, -8.0, -20.0, -30.0), 0, 0, 1, 1),
        ((-8.0, -9.0, -20.0, -21.0), 1, 0, 1, 0),
    ],
)
def test_what_a_pair_scores_by_hand(logprobs, accuracy, gain, alone, ties):
    item = _item(read_pairs(None).items[0], [{"logprob": one} for one in logprobs], "logprob")
    assert item["scores"] == {
        "accuracy": accuracy,
        "accuracy_gain": gain,
        "accuracy_alone": alone,
        "ties": ties,
    }


def test_endings_are_scored_after_their_context_and_alone(tmp_path):
    folder = tiny.save_llama(tmp_path / "llama", max_length=512)
    naive = NaiveCausal(folder)
    data = write_lines(tmp_path / "own.jsonl", OWN)
    run = ensue.run("pairs", model=str(folder), data=data, output=tmp_path / "run")
    items = list(run.items)
    assert [item["id"] for item in items] == ["1", "x", "3"]
    assert [item["settings"]["phenomenon"] for item in items] == ["all", "odd", "odd"]
    for item, row in zip(items, OWN, strict=True):
        found, gains = {}, {}
        for name in ("good", "bad"):
            context = row.get("context")
            found[name] = naive.after(" " + row[name], context) if context else naive.total(row[name])
            assert item["outputs"][name]["logprob"] == pytest.approx(found[name], abs=1e-3)
            alone = item["outputs"][f"{name}_alone"]["logprob"]
            assert alone == pytest.approx(naive.after(row[name], "\n\n"), abs=1e-3)
            gains[name] = found[name] - alone
        assert item["scores"]["accuracy"] == float(found["good"] > found["bad"])
        assert item["scores"]["accuracy_gain"] == float(gains["good"] > gains["bad"])
    (row,) = [r for r in run.results["metrics"] if r["metric"] == "accuracy" and not r["settings"]]
    assert row["value"] == pytest.approx(sum(item["scores"]["accuracy"] for item in items) / 3)


def test_models_that_rate_texts_are_asked_about_whole_texts(tmp_path):
    """The rating is minus the inversions of the sentences' numbers; a context of two sentences is two."""
    rows = [
        {"context": "One is 1. Two is 2.", "good": "Then 3.", "bad": "Then 0."},
        {"context": "Two is 2. One is 1.", "good": "Then 1.", "bad": "Then 2."},
        {"context": "Two is 2.", "good": "Then 5.", "bad": "Then 6."},
    ]
    data = write_lines(tmp_path / "own.jsonl", rows)
    run = ensue.run("pairs", model=InversionRater(), data=data, output=tmp_path / "run")
    found = [
        (
            [item["outputs"][name]["rating"] for name in ("good", "bad", "good_alone", "bad_alone")],
            item["scores"],
        )
        for item in run.items
    ]
    assert [ratings for ratings, _ in found] == [[0, -2, 0, 0], [-2, -1, 0, 0], [0, 0, 0, 0]]
    assert [scores["accuracy"] for _, scores in found] == [1, 0, 0]
    assert [scores["ties"] for _, scores in found] == [0, 0, 1]
    assert "by:rating" in run.results["signature"]


def test_a_report(tmp_path):
    done = here("run", "pairs", "--model", "random", "--output", tmp_path / "run", "--report")
    assert done.code == 0, done.err
    (table,) = metrics_tables(json.loads((tmp_path / "run" / "results.json").read_text()))
    shown = "".join(printed(table.to_rich()))
    assert "…" not in shown
    assert all(name in shown for name in ("all", *PHENOMENA))
    assert "know which ending follows" in (tmp_path / "run" / "report.html").read_text("utf-8")


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ({"good": "A."}, "line 1 has no 'bad', only 'good'"),
        ({"good": "A.", "bad": None}, "line 1 has null as 'bad', where a text is expected"),
        ({"good": "A.", "bad": "A."}, "the same text as `good` and as `bad`"),
        ({"good": "A.", "bad": ["B."]}, "a list as 'bad'"),
        ({"good": "A.", "bad": "B.", "context": 3}, "a number as 'context'"),
        ({"good": "A.", "bad": "  "}, "as 'bad'"),
    ],
)
def test_rows_that_are_no_pairs(tmp_path, row, words):
    data = write_lines(tmp_path / "own.jsonl", [row])
    refused(here("run", "pairs", "--model", "random", "--data", data, "--output", tmp_path / "no"), words)
    assert not (tmp_path / "no").exists()


def test_what_is_refused(tmp_path):
    def run(data):
        return here("run", "pairs", "--model", "random", "--data", data, "--output", tmp_path / "no")

    twice = write_lines(tmp_path / "twice.jsonl", [{"id": "x", "good": "A.", "bad": "B."}] * 2)
    refused(run(twice), "line 2 has the id 'x', which line 1 has already")
    refused(run(tmp_path / "none.jsonl"), "is not there")
    refused(run(tmp_path), "is no file of JSON lines")
    refused(run(write_lines(tmp_path / "empty.jsonl", [])), "has no pair")
    refused(here("run", "pairs/x", "--model", "random"), "pairs has no tasks")
    encoder = tiny.save_encoder(tmp_path / "encoder")
    refused(
        here("run", "pairs", "--model", encoder, "--output", tmp_path / "no"), "needs a model that can score"
    )
