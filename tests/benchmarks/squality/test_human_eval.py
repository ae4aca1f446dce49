"""Reading the evaluation, its tables, and metrics held against it, by numpy and scipy."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from ensue.backends.names import load_model
from ensue.benchmarks.base import RunContext, content_of
from ensue.benchmarks.drawn import Drawn
from ensue.benchmarks.squality.data import Question, Response, Story, read_stories
from ensue.benchmarks.squality.human_eval import (
    KINDS,
    HumanEvalRun,
    Rated,
    correlation_rows,
    find_human_eval,
    rating_rows,
    read_human_eval,
    references_of,
)
from ensue.benchmarks.squality.systems import named
from ensue.benchmarks.squality.task import TASK
from ensue.errors import EnsueError
from ensue.metrics.overlap import rouge_of
from ensue.stats.clustered import clustered_interval
from ensue.stats.correlation import correlation_draws, kendall_draws
from ensue.stats.ranges import range_of
from tests.benchmarks.squality.invented import ANSWERS, asked, evaluation_row, story_row, write_rows
from tests.support import tiny

SCIPYS = {"pearson": stats.pearsonr, "spearman": stats.spearmanr, "kendall": stats.kendalltau}


@pytest.fixture
def rated(tmp_path: Path) -> list[Rated]:
    rows = [evaluation_row(str(number), shift=float(number)) for number in range(1, 5)]
    write_rows(tmp_path / "human-eval" / "all-responses.jsonl", *rows)
    return read_human_eval(find_human_eval(tmp_path))


def one_rated(story: str, system: str, overall: float, text: str = "A text.", correct: float = 50.0) -> Rated:
    return Rated(story, 1, system, text, ({"overall": overall, "correctness": correct, "coverage": 1.0},))


def test_the_table_is_the_mean_and_deviation_of_mean_ratings(rated: list[Rated]) -> None:
    assert len(rated) == 4 * 2 * 3
    rows = {(row["system"], row["property"]): row for row in rating_rows(rated)}
    means = [np.mean([30 + key, 45, 60]) - shift for shift in range(1, 5) for key in range(2)]
    assert rows["bart-dpr", "coverage"]["mean"] == pytest.approx(np.mean(means))
    assert rows["bart-dpr", "coverage"]["deviation"] == pytest.approx(np.std(means))
    assert rows["human", "overall"]["n"] == 8
    assert (rated[0].question, rated[-1].question) == (1, 2)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda one: one["reviews"].pop(), "there are 2 reviews where at least 3 were expected"),
        (lambda one: one["reviews"][1].update(worker_id="0"), "one reviewer is there twice"),
        (lambda one: one["reviews"][2].pop("selection-rating"), "reviews 3: there is no 'selection-rating'"),
        (lambda one: one["reviews"][2].update({"overall-rating": 101}), "101 is not between 0 and 100"),
        (lambda one: one["reviews"][2].update({"overall-rating": "nan"}), "not between 0 and 100"),
        (lambda one: one.update(response=" "), "'response' is empty"),
        (
            lambda one: one.update(
                overall={"correctness-rating": 40, "selection-rating": 21, "overall-rating": 21}
            ),
            "the mean correctness-rating is 40 where the reviews' is 21",
        ),
    ],
)
def test_faults_name_file_line_and_place(tmp_path: Path, change: Callable[[Any], Any], said: str) -> None:
    row = copy.deepcopy(evaluation_row("2"))
    change(row["questions"]["1"]["bart"])
    path = write_rows(tmp_path / "all-responses.jsonl", evaluation_row("1"), row)
    with pytest.raises(EnsueError, match=said) as caught:
        read_human_eval(path)
    assert f"{path}, line 2, questions, 1, bart" in str(caught.value)


def test_other_faults_of_the_file(tmp_path: Path) -> None:
    path = write_rows(tmp_path / "all-responses.jsonl", evaluation_row("1"), evaluation_row("1"))
    with pytest.raises(EnsueError, match="line 2: story 1 was there before"):
        read_human_eval(path)
    row = evaluation_row("1")
    row["questions"]["first"] = row["questions"]["0"]
    with pytest.raises(EnsueError, match="the question 'first' is not a number"):
        read_human_eval(write_rows(path, row))
    with pytest.raises(EnsueError, match=r"no human-eval/all-responses.jsonl"):
        find_human_eval(tmp_path / "elsewhere")


def test_references_leave_a_persons_own_summary_out(tmp_path: Path, rated: list[Rated]) -> None:
    stories = read_stories(
        write_rows(tmp_path / "test.jsonl", *(story_row(str(number)) for number in range(1, 5)))
    )
    found = references_of(rated, stories)
    assert found[0] == ANSWERS[0]
    assert found[2] == (ANSWERS[0][0], *ANSWERS[0][2:])
    with pytest.raises(EnsueError, match="Question 1 of story 1 was rated but is not among the stories"):
        references_of(rated, stories[1:])
    with pytest.raises(EnsueError, match="is none of its references"):
        references_of([rated[2]._replace(text="Something else.")], stories)


def test_a_persons_own_text_is_left_out_whatever_its_spaces() -> None:
    question = Question(1, "What?", tuple(Response("w", "", text) for text in ("abc", "abd", "xyz")))
    stories = [Story("s1", "", "", "A story.", (question,))]
    (found,) = references_of([one_rated("s1", "human", 9.0, text=" abd\n")], stories)
    assert found == ("abc", "xyz")
    (whole,) = references_of([one_rated("s1", "bart", 9.0, text="abd")], stories)
    assert whole == ("abc", "abd", "xyz")


def test_correlations_are_scipys(rated: list[Rated]) -> None:
    values = np.random.default_rng(4).random(len(rated)).tolist()
    for kind in KINDS:
        rows = list(correlation_rows(rated, {"made-up": values}, kind))
        assert [row["settings"]["summaries"] for row in rows] == ["model", "human", "all"]
        for row in rows:
            subset = row["settings"]["summaries"]
            chosen = [
                (value, one.rating("overall"))
                for value, one in zip(values, rated, strict=True)
                if subset == "all" or (one.system == "human") == (subset == "human")
            ]
            assert row["n"] == len(chosen)
            assert row["value"] == pytest.approx(SCIPYS[kind](*zip(*chosen, strict=True)).statistic)
            low, high = row["ci95"]
            assert low is not None
            assert high is not None
            assert low <= row["value"] <= high


def test_correlations_are_with_the_overall_rating_story_by_story() -> None:
    generator = np.random.default_rng(2)
    held, values = [], []
    for story in range(8):
        for system in ("bart", "bart-dpr", "human"):
            overall, correct = generator.normal(50, 10, 2)
            held.append(one_rated(f"s{story}", system, overall, correct=correct))
            values.append(overall / 10 + generator.normal())

    def rows(rated: list[Rated], seed: int = 1) -> dict[str, Any]:
        found = correlation_rows(rated, {"m": values}, "pearson", seed)
        return {row["settings"]["summaries"]: row for row in found}

    found = rows(held)
    assert list(found) == ["model", "human", "all"]
    assert (found["all"]["settings"]["of"], found["all"]["metric"], found["all"]["n"]) == ("m", "pearson", 24)
    ratings = [one.rating("overall") for one in held]
    assert found["all"]["value"] == pytest.approx(stats.pearsonr(values, ratings)[0])
    places = [n for n, one in enumerate(held) if one.system != "human"]
    assert (found["model"]["n"], found["human"]["n"]) == (16, 8)
    assert found["model"]["value"] == pytest.approx(
        stats.pearsonr([values[n] for n in places], [ratings[n] for n in places])[0]
    )
    assert [row["ci95"] for row in rows(held, 2).values()] != [row["ci95"] for row in found.values()]
    # Two summaries of one story in each round or none: other clusters, another interval.
    other = rows([one._replace(story=f"{one.story}-{one.system}") for one in held])
    assert other["all"]["ci95"] != found["all"]["ci95"]
    assert other["all"]["value"] == found["all"]["value"]


def test_what_cannot_correlate_has_no_row(rated: list[Rated]) -> None:
    for kind in KINDS:
        assert list(correlation_rows(rated, {"constant": [1.0] * len(rated)}, kind)) == []
        assert list(correlation_rows(rated[:1], {"single": [1.0]}, kind)) == []


def test_the_human_evaluation_field_by_field(tmp_path: Path) -> None:
    write_rows(tmp_path / "v1" / "test.jsonl", story_row("1"), story_row("2"), story_row("3"))
    write_rows(
        tmp_path / "human-eval" / "all-responses.jsonl", *(evaluation_row(str(n), 2.0 * n) for n in (1, 2, 3))
    )
    prepared: Any = TASK.prepare("human-eval", str(tmp_path), None, 4, asked(metrics="rouge"))
    outcome = prepared.evaluate(named("human"), RunContext())
    assert outcome.notes["the model human takes no part in human-eval"] == 1
    items = list(outcome.items)
    first = items[0]
    assert (first["id"], first["cluster"], first["task"]) == ("1/1/bart", "1", "human-eval")
    assert first["settings"] == {"system": "bart"}
    # Ratings of 10, 20 and 33, less 2 each.
    assert [first["scores"][name] for name in ("correctness", "coverage", "overall")] == pytest.approx(
        [(63 - 6) / 300] * 3
    )
    assert first["scores"]["rouge1_loo"] < first["scores"]["rouge1"]
    person = next(item for item in items if item["settings"]["system"] == "human")
    assert person["scores"]["rouge1_loo"] == person["scores"]["rouge1"]
    assert len(person["outputs"]["by_reference"]["rouge1"]) == 3
    rows = {(row["metric"], *row["settings"].values()): row for row in outcome.metrics}
    for system in ("bart", "bart-dpr", "human"):
        own = [item for item in items if item["settings"]["system"] == system]
        for name in ("overall", "rouge2", "rougeL_mean"):
            values = [item["scores"][name] for item in own]
            interval = clustered_interval(values, [item["cluster"] for item in own], bounds=range_of(name))
            row = rows[name, system]
            assert row["value"] == pytest.approx(np.mean(values))
            assert (row["ci95"], row["n"], row["clusters"]) == ([interval.low, interval.high], 6, 3)
            assert row["task"] == "human-eval"
    stories = read_stories(tmp_path / "v1" / "test.jsonl")
    assert len(stories) == 3

    for kind, scipy in SCIPYS.items():
        for subset, systems in (("model", ("bart", "bart-dpr")), ("human", ("human",))):
            own = [item for item in items if item["settings"]["system"] in systems]
            row = rows[kind, "rougeL", "overall", subset]
            expected = scipy(
                [item["scores"]["rougeL"] for item in own], [item["scores"]["overall"] for item in own]
            )[0]
            assert row["value"] == pytest.approx(expected)
            assert (row["task"], row["n"], row["clusters"]) == ("human-eval", len(own), 3)
            assert row["settings"] == {"of": "rougeL", "with": "overall", "summaries": subset}


@pytest.mark.parametrize("kind", KINDS)
def test_intervals_of_correlations_are_those_of_draws_of_whole_stories(rated: list[Rated], kind: str) -> None:
    values = np.random.default_rng(5).random(len(rated)).tolist()
    for seed, given in ((0, ()), (3, (3,))):
        rows = correlation_rows(rated, {"made-up": values}, kind, *given)
        for row, subset in zip(rows, ("model", "human", "all"), strict=True):
            places = [
                n
                for n, one in enumerate(rated)
                if subset == "all" or (one.system == "human") == (subset == "human")
            ]
            x, y = [values[n] for n in places], [rated[n].rating("overall") for n in places]
            stories = [rated[n].story for n in places]
            if kind == "kendall":
                draws = kendall_draws(x, y, stories, seed=seed)
            else:
                draws = getattr(correlation_draws(x, y, stories, seed=seed), kind)
            figure = Drawn(row["value"], draws, len(x), 4, (-1.0, 1.0))
            assert row == figure.row(
                "human-eval", kind, {"of": "made-up", "with": "overall", "summaries": subset}
            )


def test_a_metric_that_is_constant_of_some_still_correlates_on_others(rated: list[Rated]) -> None:
    values = [1.0 if one.system != "human" else float(place) for place, one in enumerate(rated)]
    other = [float(place) for place in range(len(rated))]
    rows = list(correlation_rows(rated, {"half": values, "whole": other}, "pearson"))
    assert [(row["settings"]["of"], row["settings"]["summaries"]) for row in rows] == [
        ("half", "human"),
        ("half", "all"),
        *(("whole", subset) for subset in ("model", "human", "all")),
    ]
    # One person's summary is no correlation, and the models' are one all the same.
    few = [one for one in rated if one.system != "human"] + [one for one in rated if one.system == "human"][
        :1
    ]
    rows = list(correlation_rows(few, {"m": other[: len(few)]}, "pearson"))
    assert [row["settings"]["summaries"] for row in rows] == ["model", "all"]


@pytest.mark.parametrize(("stated", "taken"), [(21.0, True), (21.009, True), (21.02, False), (20.5, False)])
def test_a_mean_that_a_file_states_is_that_of_its_ratings(tmp_path: Path, stated: float, taken: bool) -> None:
    row = copy.deepcopy(evaluation_row("2"))
    means = dict.fromkeys(("correctness-rating", "selection-rating", "overall-rating"), 21.0)
    row["questions"]["1"]["bart"]["overall"] = {**means, "selection-rating": stated}
    path = write_rows(tmp_path / "all-responses.jsonl", row)
    if taken:
        assert len(read_human_eval(path)) == 6
        return
    with pytest.raises(EnsueError, match=f"the mean selection-rating is {stated:g} where the reviews' is 21"):
        read_human_eval(path)


def test_every_field_that_is_read(tmp_path: Path) -> None:
    row = copy.deepcopy(evaluation_row("7"))
    row["questions"]["1"]["bart"]["reviews"][1].update(
        {"correctness-rating": 11, "selection-rating": 12, "overall-rating": 13}
    )
    found = read_human_eval(write_rows(tmp_path / "all-responses.jsonl", row))
    assert [(one.story, one.question, one.system) for one in found] == [
        ("7", question, system) for question in (1, 2) for system in ("bart", "bart-dpr", "human")
    ]
    assert found[3] == Rated(
        "7",
        2,
        "bart",
        "Ilse waits.",
        (
            dict.fromkeys(("correctness", "coverage", "overall"), 10.0),
            {"correctness": 11.0, "coverage": 12.0, "overall": 13.0},
            dict.fromkeys(("correctness", "coverage", "overall"), 33.0),
        ),
    )
    assert (found[3].example, found[3].rating("coverage")) == ("7/2", pytest.approx(55 / 3))


def test_the_table_of_ratings_by_value() -> None:
    rated = [
        Rated("s", 1, "b", "", ({"overall": 10.0, "correctness": 1.0, "coverage": 4.0},) * 3),
        Rated("s", 1, "a", "", ({"overall": 30.0, "correctness": 3.0, "coverage": 9.0},)),
        Rated("s", 2, "b", "", ({"overall": 20.0, "correctness": 5.0, "coverage": 4.0},)),
    ]
    assert [tuple(row.values()) for row in rating_rows(rated)] == [
        ("b", "correctness", 3.0, 2.0, 2),
        ("b", "coverage", 4.0, 0.0, 2),
        ("b", "overall", 15.0, 5.0, 2),
        ("a", "correctness", 3.0, 0.0, 1),
        ("a", "coverage", 9.0, 0.0, 1),
        ("a", "overall", 30.0, 0.0, 1),
    ]
    assert list(rating_rows(rated)[0]) == ["system", "property", "mean", "deviation", "n"]


@pytest.mark.parametrize("place", ["", "human-eval", "data/human-eval"])
def test_the_evaluations_file_is_found_where_it_may_lie(tmp_path: Path, place: str) -> None:
    path = write_rows(tmp_path / place / "all-responses.jsonl", evaluation_row("1"))
    assert find_human_eval(tmp_path) == path


def test_all_that_an_evaluation_hands_back(tmp_path: Path) -> None:
    write_rows(tmp_path / "v1" / "test.jsonl", *(story_row(str(n)) for n in (1, 2, 3)))
    file = write_rows(
        tmp_path / "human-eval" / "all-responses.jsonl", *(evaluation_row(str(n), 2.0 * n) for n in (1, 2, 3))
    )
    settings = asked(metrics="rouge")
    whole = HumanEvalRun.read(tmp_path, None, 4, settings)
    assert (whole.source, whole.seed, whole.settings) == (str(tmp_path), 4, settings)
    assert len(whole.rated) == 18
    cut = HumanEvalRun.read(tmp_path, 2, 4, settings)
    assert {one.story for one in cut.rated} == {"1", "2"}
    assert len(cut.stories) == 3
    assert cut.fingerprint != whole.fingerprint
    assert whole.fingerprint == HumanEvalRun.read(tmp_path, None, 0, settings).fingerprint
    with pytest.raises(EnsueError, match="is a file; human-eval needs SQuALITY's folder"):
        HumanEvalRun.read(file, None, 0, settings)
    outcome = whole.evaluate(named("human"), RunContext())
    assert outcome.signature == f"set:{whole.label} metrics:rouge property:overall seed:4"
    assert (outcome.skipped, outcome.tokens) == ({}, 0)
    assert outcome.extras == {"ratings": rating_rows(whole.rated)}
    assert outcome.notes == {"the model human takes no part in human-eval": 1}
    items = list(outcome.items)
    references = references_of(whole.rated, whole.stories)
    for item, one, own in zip(items, whole.rated, references, strict=True):
        ratings = {name: one.rating(name) for name in ("correctness", "coverage", "overall")}
        assert item["content"] == content_of(one.text, own, ratings)
        (scores,) = rouge_of([one.text], [own])
        assert item["outputs"] == {
            "summary": one.text,
            "by_reference": {
                kind: [getattr(score, kind).f1 for score in scores] for kind in ("rouge1", "rouge2", "rougeL")
            },
        }
        assert item["id"] == f"{one.example}/{one.system}"
        assert item["cluster"] == one.story
    best = {
        kind: [max(item["outputs"]["by_reference"][kind]) for item in items]
        for kind in ("rouge1", "rouge2", "rougeL")
    }
    expected = [row for kind in KINDS for row in correlation_rows(whole.rated, best, kind, 4)]
    assert outcome.metrics[-len(expected) :] == expected
    assert [row["settings"]["system"] for row in outcome.metrics[: -len(expected)]] == [
        system for system in ("bart", "bart-dpr", "human") for _ in range(3 + 9)
    ]


def test_a_signature_says_by_what_bertscore_was_measured(tmp_path: Path) -> None:
    write_rows(tmp_path / "v1" / "test.jsonl", story_row("1"))
    write_rows(tmp_path / "human-eval" / "all-responses.jsonl", evaluation_row("1"))
    encoder: Any = load_model(str(tiny.save_encoder(tmp_path / "encoder")))
    settings = asked(metrics="bertscore", bertscore_model="m", bertscore_layer=1)
    run = HumanEvalRun.read(tmp_path, None, 0, settings)
    outcome = run.evaluate(named("human"), RunContext(load=lambda name: encoder))
    said = f"bertscore:{encoder.card.marked_name}/1"
    assert outcome.signature == f"set:{run.label} metrics:bertscore {said} property:overall seed:0"
