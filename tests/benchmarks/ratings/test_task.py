"""Ratings: correlations against scipy, AUC against scikit-learn, files of every kind, reports and what is refused."""

from __future__ import annotations

import itertools
import json

import numpy as np
import pytest
from scipy.stats import kendalltau, pearsonr, spearmanr
from sklearn.metrics import roc_auc_score

import ensue
from ensue.benchmarks.ratings.task import auc_of, judged_pairs, pairs_of
from ensue.runs.tables import metrics_tables
from tests.support import tiny
from tests.support.command import here, read_lines, refused, write_lines
from tests.support.corpus import document
from tests.support.naive_texts import NaiveCausal
from tests.support.pages import printed

ROWS = [
    {
        "id": f"g{group}/{system}",
        "group": f"g{group}",
        "system": system,
        "sentences": document(10 * group + place, 3 + place),
        "coherence": float((group * 3 + place * 2) % 5),
    }
    for group in range(4)
    for place, system in enumerate("abc")
]


@pytest.fixture(scope="module")
def llama(tmp_path_factory):
    return tiny.save_llama(tmp_path_factory.mktemp("llama"), max_length=512)


@pytest.fixture(scope="module")
def finished(llama, tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    data = write_lines(folder / "rated.jsonl", ROWS)
    return ensue.run("ratings", model=str(llama), data=data, output=folder / "run")


def value(run, metric, **settings):
    (row,) = [r for r in run.results["metrics"] if (r["metric"], r["settings"]) == (metric, settings)]
    return row["value"]


def test_measures_are_those_of_the_text_and_of_its_worst_sentence(finished, llama):
    naive = NaiveCausal(llama)
    for item, row in list(zip(finished.items, ROWS, strict=True))[:4]:
        outputs, sentences = item["outputs"], row["sentences"]
        total = naive.total(" ".join(sentences))
        assert (outputs["rating"], outputs["total"]) == (row["coherence"], pytest.approx(total, abs=1e-3))
        assert outputs["per_token"] == pytest.approx(total / outputs["tokens"], abs=1e-4)
        gains = []
        for at in range(1, len(sentences)):
            before = " ".join(sentences[:at])
            gain = naive.after(" " + sentences[at], before) - naive.after(sentences[at], "\n\n")
            gains.append(gain / (len(naive.ids(before + " " + sentences[at])) - len(naive.ids(before))))
        assert outputs["gains"][0] is None
        assert outputs["gains"][1:] == pytest.approx(gains, abs=1e-3)
        assert outputs["worst_sentence"] == pytest.approx(min(gains), abs=1e-3)


def test_correlations_are_scipys_over_texts_systems_and_within_groups(finished):
    items = list(finished.items)
    y = np.asarray([item["outputs"]["rating"] for item in items])
    for measure in ("total", "per_token", "worst_sentence", "tokens"):
        x = np.asarray([item["outputs"][measure] for item in items])
        a, b = x.reshape(4, 3), y.reshape(4, 3)
        for kind, reference in (("spearman", spearmanr), ("pearson", pearsonr), ("kendall", kendalltau)):
            found = {
                level: value(finished, kind, measure=measure, level=level)
                for level in ("texts", "systems", "within groups")
            }
            within = [reference(one, other).statistic for one, other in zip(a, b, strict=True)]
            assert found == pytest.approx(
                {
                    "texts": reference(x, y).statistic,
                    "systems": reference(a.mean(0), b.mean(0)).statistic,
                    "within groups": np.nanmean(within),
                }
            )


def test_texts_of_unequal_groups_have_one_level(llama, tmp_path):
    data = write_lines(tmp_path / "rated.jsonl", ROWS[:-1])
    run = ensue.run("ratings", model=str(llama), data=data, output=tmp_path / "run")
    assert {row["settings"]["level"] for row in run.results["metrics"]} == {"texts", "pairs"}


def test_pairs_of_one_group_are_those_of_a_naive_loop(finished):
    for measure in ("total", "per_token", "worst_sentence", "tokens"):
        right = []
        for a, b in itertools.combinations(finished.items, 2):
            x, y = a["outputs"], b["outputs"]
            if a["cluster"] == b["cluster"] and x["rating"] != y["rating"]:
                better = x if x["rating"] > y["rating"] else y
                worse = y if better is x else x
                more = better[measure] - worse[measure]
                right.append(1.0 if more > 0 else 0.5 if more == 0 else 0.0)
        assert len(right) > 6
        assert value(finished, "accuracy", measure=measure, level="pairs") == pytest.approx(np.mean(right))


def test_a_measure_that_says_the_same_of_both_texts_is_half_right():
    def item(group, rating, total):
        return {"cluster": group, "outputs": {"rating": rating, "total": total}}

    items = [
        item("a", 1.0, -5.0),
        item("a", 2.0, -5.0),
        item("a", 2.0, -9.0),
        item("b", 4.0, -1.0),
        item("b", 3.0, -7.0),
    ]
    # Of the two that people rate alike nothing is asked, nor of texts of other groups.
    found = [(pair.group, pair.right) for pair in judged_pairs(items, "total")]
    assert found == [("a", 0.5), ("a", 0.0), ("b", 1.0)]
    assert pairs_of(items, "total").value == pytest.approx(0.5)


def test_marked_sentences_have_the_auc_of_scikit_learn():
    generator = np.random.default_rng(0)
    items = [
        {
            "id": str(number),
            "outputs": {
                "gains": [None, *generator.normal(size=5).round(1)],
                "marks": [True, *(bool(one) for one in generator.random(5) < 0.3)],
            },
        }
        for number in range(12)
    ]
    gains = np.asarray([gain for item in items for gain in item["outputs"]["gains"][1:]])
    marks = np.asarray([mark for item in items for mark in item["outputs"]["marks"][1:]])
    found = auc_of(items)
    assert (found.value, found.n, found.clusters) == (pytest.approx(roc_auc_score(marks, -gains)), 60, 12)
    low, high = found.interval()
    assert low < found.value < high
    assert auc_of([{"id": "x", "outputs": {"gains": [None, 1.0], "marks": [False, False]}}]) is None


def test_marks_become_a_row_and_a_report(llama, tmp_path):
    rows = [{**row, "marks": [place == 1 for place in range(len(row["sentences"]))]} for row in ROWS]
    # Readers who stumbled nowhere say as much of a text's sentences.
    rows[0]["marks"] = [False for _ in rows[0]["sentences"]]
    data = write_lines(tmp_path / "rated.jsonl", rows)
    done = here("run", "ratings", "--model", llama, "--data", data, "--output", tmp_path / "run", "--report")
    assert done.code == 0, done.err
    results = json.loads((tmp_path / "run" / "results.json").read_text())
    (auc,) = [row for row in results["metrics"] if row["metric"] == "auc"]
    assert (auc["settings"], auc["clusters"]) == ({"measure": "gain of a sentence"}, 12)
    outputs = [item["outputs"] for item in read_lines(tmp_path / "run" / "items.jsonl")]
    gains = [gain for one in outputs for gain in one["gains"][1:]]
    stumbled = [mark for one in outputs for mark in one["marks"][1:]]
    assert auc["value"] == pytest.approx(roc_auc_score(stumbled, [-gain for gain in gains]))
    shown = "".join("".join(printed(table.to_rich())) for table in metrics_tables(results))
    assert "…" not in shown
    assert "worst sentence" in shown
    assert "find coherent what people do" in (tmp_path / "run" / "report.html").read_text("utf-8")


def test_a_collection_of_summaries(llama, tmp_path):
    articles = {
        f"a{number}": {
            "src": "A source.",
            "ref_summs": ["A reference."],
            "sys_summs": {
                system: {
                    "sys_summ": " ".join(document(number * 7 + place, 2)),
                    "scores": {"coherence": float(1 + (number + place) % 3)},
                }
                for place, system in enumerate("xy")
            },
        }
        for number in range(3)
    }
    data = tmp_path / "collection.json"
    data.write_text(json.dumps(articles), "utf-8")
    wrong = json.loads(json.dumps(articles))
    wrong["a0"]["sys_summs"]["x"]["scores"]["coherence"] = 10**400
    (tmp_path / "wrong.json").write_text(json.dumps(wrong), "utf-8")
    command = ("run", "ratings", "--model", "random", "--data", tmp_path / "wrong.json")
    refused(here(*command, "--output", tmp_path / "no"), "wrong.json", "is not between -1e+100 and 1e+100")
    run = ensue.run("ratings", model=str(llama), data=data, output=tmp_path / "run", limit=2)
    assert [item["id"] for item in run.items] == ["a0/x", "a0/y", "a1/x", "a1/y"]
    assert {item["cluster"] for item in run.items} == {"a0", "a1"}


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ({"text": "One. Two."}, "line 1 has no 'coherence'; name the column"),
        ({"text": "One. Two.", "rating": None}, "line 1 has null as 'rating', where a number is expected"),
        ({"text": "One. Two.", "rating": float("nan")}, "line 1 has NaN as 'rating', where a finite number"),
        ({"text": "One. Two.", "rating": 10**400}, "as 'rating', where a finite number up to 1e+100"),
        ({"text": "One. Two.", "rating": -1e308}, "-1e+308 as 'rating', where a finite number up to 1e+100"),
        ({"text": "One. Two.", "coherence": "good"}, "a string as 'coherence'"),
        ({"text": " ", "rating": 1}, "has no text"),
        ({"sentences": ["A.", "B."], "rating": 1, "marks": [1]}, "1 marks for 2 sentences"),
        ({"sentences": ["A.", "B."], "rating": 1, "marks": [1, 3]}, "a list of true and false is expected"),
        ({"text": "One.", "rating": 1, "group": 3}, "a number as 'group'"),
    ],
)
def test_rows_that_are_refused(tmp_path, row, words):
    data = write_lines(tmp_path / "rated.jsonl", [row])
    refused(here("run", "ratings", "--model", "random", "--data", data, "--output", tmp_path / "no"), words)
    assert not (tmp_path / "no").exists()


def test_what_is_refused(tmp_path):
    def run(*more):
        return here("run", "ratings", "--model", "random", "--output", tmp_path / "no", *more)

    refused(run(), "ratings needs --data")
    refused(run("--data", tmp_path / "none.jsonl"), "is not there")
    twice = write_lines(tmp_path / "twice.jsonl", [{"id": "x", "text": "A. B.", "rating": 1}] * 2)
    refused(run("--data", twice), "line 2 has the id 'x', which line 1 has already")
    alike = write_lines(tmp_path / "alike.jsonl", [{"text": f"A {n}. B.", "rating": 1} for n in range(3)])
    refused(run("--data", alike), "all have one rating")
    # Before any model is asked for.
    refused(here("run", "ratings", "--model", tmp_path / "none", "--data", alike), "all have one rating")
    refused(run("--data", alike, "--set", "language=german"), "ISO 639 code")
    # The ratings differ, and the model's fault is no fault of the file.
    same = write_lines(tmp_path / "same.jsonl", [{"text": "A. B.", "rating": n} for n in range(3)])
    refused(run("--data", same), "random says the same of every text", "nothing can be correlated", code=1)
    refused(here("run", "ratings/x", "--model", "random"), "ratings has no tasks")
