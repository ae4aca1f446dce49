"""`ensue run qags`: figures against SciPy, items that score again, runs that go on, and faults in one sentence."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

import ensue
from ensue.benchmarks.base import Outcome, RunContext
from ensue.benchmarks.qags.candidates import AnswerCandidate
from ensue.benchmarks.qags.measures import BASELINES
from ensue.benchmarks.qags.task import TASK
from ensue.benchmarks.settings import resolve
from ensue.errors import EnsueError
from ensue.metrics.overlap import rouge_of
from ensue.runs.tables import metrics_tables
from tests.benchmarks.qags.small_sets import TEXTS, Nothing, prepared, write_sets
from tests.benchmarks.qags.toys import FAITHFUL, WRONG, NameAfter, WordsBefore
from tests.support.hops import modules_called
from tests.support.run_context import records_of, run_context


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return write_sets(tmp_path / "data")


def row(outcome: Outcome, task: str, metric: str, **settings: object) -> dict[str, Any]:
    found = [
        one
        for one in outcome.metrics
        if (one["task"], one["metric"], one["settings"]) == (task, metric, settings)
    ]
    assert len(found) == 1, (task, metric, settings)
    return dict(found[0])


@pytest.fixture
def outcome(data: Path) -> Outcome:
    found = prepared(
        data, ablations="questions,similarity,filters", encoder="letters", metrics="qags,overlap,rouge"
    )
    result = found.evaluate(WordsBefore(), RunContext())
    result.items = list(result.items)
    return result


def test_correlations_are_scipys_on_the_values_of_the_items(outcome: Outcome) -> None:
    items = [item for item in outcome.items if item["task"] == "cnndm"]
    assert len(items) == len(TEXTS)
    human = [item["outputs"]["human"]["consistency"] for item in items]
    for measure in ("qags", "overlap-2", "overlap-l"):
        values = [item["scores"][measure] for item in items]
        for kind, scipys in (
            ("pearson", stats.pearsonr),
            ("spearman", stats.spearmanr),
            ("kendall", stats.kendalltau),
        ):
            found = row(outcome, "cnndm", kind, measure=measure)
            assert found["value"] == pytest.approx(scipys(values, human)[0])
            assert found["n"] == len(TEXTS)


def test_values_are_those_of_the_metrics_themselves(outcome: Outcome) -> None:
    items = {item["id"]: item for item in outcome.items}
    for place, (source, summary) in enumerate(TEXTS):
        text = " ".join(summary.split())
        for name, score in BASELINES.items():
            assert items[f"cnndm-{place}"]["scores"][name] == pytest.approx(score(source, text))
    best = max(one.rouge1.f1 for one in rouge_of([WRONG], [["Ruth went to Ellery.", FAITHFUL]])[0])
    assert items["summeval-art0-second"]["scores"]["rouge-1"] == pytest.approx(best)
    assert items["summeval-art0-second"]["outputs"]["system"] == "second"


def test_both_levels_against_scipy(outcome: Outcome) -> None:
    items = [item for item in outcome.items if item["task"] == "realsumm"]
    values = np.array([item["scores"]["overlap-1"] for item in items]).reshape(3, 3)
    human = np.array([item["outputs"]["human"]["litepyramid_recall"] for item in items]).reshape(3, 3)
    at = {"measure": "overlap-1", "human": "litepyramid_recall"}
    systems = stats.pearsonr(values.mean(axis=0), human.mean(axis=0))[0]
    each = [stats.pearsonr(a, b)[0] for a, b in zip(values, human, strict=True)]
    assert row(outcome, "realsumm", "pearson", level="system", **at)["value"] == pytest.approx(systems)
    assert row(outcome, "realsumm", "pearson", level="summary", **at)["value"] == pytest.approx(np.mean(each))


def test_triplets_are_ranked(outcome: Outcome) -> None:
    items = [item["scores"]["qags"] for item in outcome.items if item["task"] == "falke"]
    right = [good > bad for good, bad in zip(items[::2], items[1::2], strict=True)]
    assert row(outcome, "falke", "accuracy", measure="qags")["value"] == np.mean(right)


def test_a_variant_equal_to_the_run_has_its_figures(outcome: Outcome) -> None:
    for task, metric in (("cnndm", "pearson"), ("xsum", "kendall"), ("falke", "accuracy")):
        main = row(outcome, task, metric, measure="qags")["value"]
        for ablation, setting in (("questions", "20 questions"), ("similarity", "f1"), ("filters", "same")):
            same = row(outcome, task, metric, measure="qags", ablation=ablation, setting=setting)
            assert same["value"] == pytest.approx(main)


def test_troubles_are_counted_and_nothing_is_nan(outcome: Outcome) -> None:
    assert outcome.notes["summaries without an answer to ask about, scored 0"] == 2
    assert outcome.skipped == {f"{name} has no references, so no rouge": 1 for name in ("cnndm", "falke")}
    text = json.dumps([outcome.metrics, outcome.items, outcome.extras, outcome.notes], allow_nan=False)
    assert "NaN" not in text
    without = [item for item in outcome.items if "trouble" in item["outputs"]["qags"]]
    assert {item["id"] for item in without} == {"cnndm-4", "falke-3-a3-1-2-inconsistent"}
    assert {item["scores"]["qags"] for item in without} == {0.0}


def test_questions_are_kept_with_both_answers(outcome: Outcome) -> None:
    rows = [one for one in outcome.extras["questions"] if one["id"] == "cnndm-0"]
    value = next(item["scores"]["qags"] for item in outcome.items if item["id"] == "cnndm-0")
    assert np.mean([one["similarity"] for one in rows]) == pytest.approx(value)
    assert all({"question", "by_summary", "by_source"} <= set(one) for one in rows)


def test_metrics_are_compared_in_pairs(outcome: Outcome) -> None:
    pairs = {(one["a"], one["b"]) for one in outcome.extras["comparisons"] if one["set"] == "cnndm"}
    assert ("qags", "overlap-2") in pairs
    assert ("qags", "overlap-1") in pairs
    assert ("overlap-l", "overlap-2") in pairs
    for one in outcome.extras["comparisons"]:
        assert one["p"] is None or one["p"] <= one["holm"] <= 1.0
    found = next(
        one
        for one in outcome.extras["comparisons"]
        if (one["set"], one["a"], one["b"], one["kind"]) == ("cnndm", "qags", "overlap-2", "pearson")
    )
    values = [row(outcome, "cnndm", "pearson", measure=name)["value"] for name in ("qags", "overlap-2")]
    assert found["difference"] == pytest.approx(values[0] - values[1])


def test_without_models_there_is_all_but_qags(data: Path) -> None:
    found = prepared(data, metrics=None).evaluate(Nothing(), RunContext())
    measures = {one["settings"]["measure"] for one in found.metrics if "measure" in one["settings"]}
    assert {"overlap-2", "rouge-1", "bleu-4"} <= measures
    assert "qags" not in measures
    assert set(found.extras) == {"comparisons"}
    with pytest.raises(EnsueError, match="asks no questions"):
        prepared(data, metrics="qags").evaluate(Nothing(), RunContext())


def test_a_stopped_run_goes_on(data: Path, tmp_path: Path) -> None:
    whole = prepared(data).evaluate(WordsBefore(), RunContext())
    stopped = NameAfter()
    stopped.stop_after = 1
    with run_context(tmp_path) as place, pytest.raises(KeyboardInterrupt):
        prepared(data, answers=stopped).evaluate(WordsBefore(), place)
    assert records_of(tmp_path).stat().st_size > 0
    asks = WordsBefore()
    with run_context(tmp_path) as place:
        again = prepared(data).evaluate(asks, place)
    assert asks.asked == []
    assert again.metrics == whole.metrics
    assert list(again.items) == list(whole.items)


def test_a_cache_serves_other_runs(data: Path, tmp_path: Path) -> None:
    cache = tmp_path / "steps.jsonl"
    list(prepared(data, cache=cache, sets="cnndm").evaluate(WordsBefore(), RunContext(folder=tmp_path)).items)
    asks = WordsBefore()
    list(prepared(data, cache=cache, sets="cnndm,falke", agree="answered").evaluate(asks, RunContext()).items)
    assert asks.asked == []
    assert cache.is_file()
    cache.write_bytes(cache.read_bytes().replace(b"e", b"f", 1))
    found = prepared(data, cache=cache, sets="cnndm").evaluate(WordsBefore(), RunContext())
    assert found.notes["damaged records of finished work, dropped and done again"] == 1


def test_candidates_can_be_found_ahead_of_a_run_without_spacy(data: Path, tmp_path: Path) -> None:
    cache = tmp_path / "steps.jsonl"
    prepared(data, cache=cache, sets="cnndm").evaluate(Nothing(), RunContext())

    class NoSpacy:
        identity = "names"

        def candidates(self, texts: Iterable[str]) -> Iterator[list[AnswerCandidate]]:
            raise AssertionError("everything was found before")

    elsewhere = replace(prepared(data, cache=cache, sets="cnndm"), finder=NoSpacy)
    found = elsewhere.evaluate(WordsBefore(), RunContext())
    assert found.metrics == prepared(data, sets="cnndm").evaluate(WordsBefore(), RunContext()).metrics


def test_a_limit_and_a_single_summary(data: Path) -> None:
    found = prepared(data, limit=1, sets="cnndm,summeval", metrics="qags,overlap").evaluate(
        WordsBefore(), RunContext()
    )
    assert len(list(found.items)) == 1 + 3
    assert found.notes["sets of fewer than two summaries, which have no correlation"] == 1
    assert not [one for one in found.metrics if one["task"] == "cnndm" and one["metric"] == "pearson"]


def test_the_same_model_can_ask_and_answer(data: Path) -> None:
    class Both(WordsBefore, NameAfter):
        def __init__(self) -> None:
            NameAfter.__init__(self)
            WordsBefore.__init__(self)

    found = prepared(data, answerer="same", sets="cnndm").evaluate(Both(), RunContext())
    other = prepared(data, sets="cnndm").evaluate(WordsBefore(), RunContext())
    assert found.metrics == other.metrics


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"sets": "newsroom"}, "has no newsroom.json"),
        ({"sets": "gigaword"}, "one of cnndm"),
        ({"similarity": "embedding"}, "encoder=minilm"),
        ({"metrics": "bertscore"}, "encoder=minilm"),
        ({"beams": 3}, "cannot give 10 questions"),
    ],
)
def test_bad_settings_are_one_sentence(data: Path, given: dict[str, object], words: str) -> None:
    with pytest.raises(EnsueError, match=words):
        prepared(data, **given).evaluate(WordsBefore(), RunContext())


def test_bad_data_is_named_by_file_and_line(data: Path, tmp_path: Path) -> None:
    with pytest.raises(EnsueError, match="is not a folder"):
        prepared(data / "nowhere")
    with pytest.raises(EnsueError, match="holds none of cnndm"):
        prepared(tmp_path)
    with pytest.raises(EnsueError, match="needs --data"):
        TASK.prepare("", None, None, 0, resolve("qags", TASK.settings, {}))
    with pytest.raises(EnsueError, match="--set sets=cnndm"):
        TASK.prepare("cnndm", str(data), None, 0, resolve("qags", TASK.settings, {}))
    path = data / "qags" / "mturk_cnndm.jsonl"
    good = path.read_bytes()
    for bad, words in (
        (b'{"article": "A text."}\n', "line 7: there is no 'summary_sentences'"),
        (b'{"article": "\xff"}\n', "line 7"),
    ):
        path.write_bytes(good + bad)
        with pytest.raises(EnsueError, match=words):
            prepared(data)


def test_a_missing_set_is_counted(data: Path) -> None:
    (data / "summeval" / "realsumm.json").unlink()
    found = prepared(data, metrics="overlap").evaluate(Nothing(), RunContext())
    assert found.skipped == {"set realsumm left out, for want of realsumm.json": 1}


def test_a_metric_that_cannot_be_had_is_counted_with_its_reason(data: Path, monkeypatch) -> None:
    def absent(judged: object) -> None:
        raise EnsueError("It needs what is not here: install it.")

    monkeypatch.setattr("ensue.benchmarks.qags.task.REFERENCE_VALUES", {"bleu": absent})
    found = prepared(data).evaluate(Nothing(), RunContext())
    reasons = [reason for reason in found.skipped if reason.startswith("bleu on ")]
    assert reasons
    assert all(reason.endswith(" left out: It needs what is not here: install it") for reason in reasons)


@pytest.mark.slow
def test_a_whole_run_with_the_real_pipeline(data: Path, tmp_path: Path) -> None:
    pytest.importorskip("spacy")

    class Both(WordsBefore, NameAfter):
        def __init__(self) -> None:
            NameAfter.__init__(self)
            WordsBefore.__init__(self)

    with modules_called() as called:
        done = ensue.run(
            "qags",
            model=Both(),
            data=data,
            output=tmp_path / "run",
            answerer="same",
            preset="fast",
            sets="cnndm,falke",
        )
        assert metrics_tables(done.results)
    # `ensue run qags` goes through three files of cli/ and not many more; what all runs share counts, too.
    passed = {name for name in called if name.startswith(("runs/", "benchmarks/"))}
    assert len(passed) + 3 <= 26, sorted(passed)
    assert {item["task"] for item in done.items} == {"cnndm", "falke"}
    assert all(0.0 <= item["scores"]["qags"] <= 1.0 for item in done.items)
    assert sorted(path.name for path in (tmp_path / "run").iterdir()) == [
        ".lock",
        "comparisons.jsonl",
        "items.jsonl",
        "questions.jsonl",
        "results.json",
        "run.json",
    ]


@pytest.mark.data
def test_the_baseline_on_the_real_judgments() -> None:
    folder = os.environ.get("ENSUE_DATA")
    if not folder or not (Path(folder) / "qags").is_dir():
        pytest.skip("set ENSUE_DATA to the folder that holds qags")
    found = prepared(Path(folder), sets="cnndm,xsum,falke").evaluate(Nothing(), RunContext())
    assert round(row(found, "cnndm", "alpha")["value"], 2) == 0.51
    assert round(row(found, "xsum", "alpha")["value"], 2) == 0.34
    assert row(found, "cnndm", "pearson", measure="overlap-2")["value"] > 0.66 > 0.5453
    assert row(found, "falke", "accuracy", measure="overlap-2")["n"] == 373
    assert len(list(found.items)) == 235 + 239 + 2 * 373
