"""From values and judgments to rows, field by field: SciPy's correlations, Holm by hand, rankings, agreement."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given as drawn
from hypothesis import settings as checked
from hypothesis import strategies as st
from scipy import stats

from ensue.benchmarks.qags.data.files import JudgedSentence, JudgedSummary, Triplet, Vote, read_judgments
from ensue.benchmarks.qags.data.sets import JudgedSet
from ensue.benchmarks.qags.judging import (
    TOO_FEW,
    agreement,
    correlation_rows,
    correlations_of,
    judge,
    rank,
    ratings,
)
from ensue.benchmarks.qags.pipeline import Pair
from ensue.benchmarks.summaries.metaeval import CONSTANT
from ensue.errors import EnsueError
from ensue.stats.clustered import clustered_interval
from ensue.stats.paired import paired_test
from tests.benchmarks.qags.invented import judged as judged_line
from tests.benchmarks.qags.invented import write_lines
from tests.support.agreement import krippendorff_alpha

SCIPY = {"pearson": stats.pearsonr, "spearman": stats.spearmanr, "kendall": stats.kendalltau}
KINDS = list(SCIPY)
SUMMARIES = 24
GENERATOR = np.random.default_rng(5)
HUMAN = GENERATOR.integers(0, 5, SUMMARIES) / 4.0
VALUES: dict[str, list[float]] = {
    "qags": (HUMAN + GENERATOR.normal(0, 0.4, SUMMARIES)).tolist(),
    "overlap-2": (HUMAN + GENERATOR.normal(0, 0.9, SUMMARIES)).tolist(),
    "rouge-1": GENERATOR.normal(0, 1.0, SUMMARIES).tolist(),
}


def a_set(human: Mapping[str, Sequence[float]], clusters: Sequence[str], **more: Any) -> JudgedSet:
    count = len(clusters)
    return JudgedSet(
        "made up",
        tuple(f"s{n}" for n in range(count)),
        tuple(clusters),
        (Pair("A source.", "A summary."),) * count,
        ((),) * count,
        {name: tuple(given) for name, given in human.items()},
        **more,
    )


def plain_set(count: int = SUMMARIES, **more: Any) -> JudgedSet:
    return a_set({"consistency": HUMAN[:count]}, [f"a{n // 2}" for n in range(count)], **more)


def williams(r_a: float, r_b: float, between: float, n: int) -> float:
    """The two-sided p-value by the printed formula and SciPy's t."""
    determinant = 1 - r_a**2 - r_b**2 - between**2 + 2 * r_a * r_b * between
    mean = (r_a + r_b) / 2
    below = 2 * determinant * (n - 1) / (n - 3) + mean**2 * (1 - between) ** 3
    t = (r_a - r_b) * np.sqrt((n - 1) * (1 + between) / below)
    return float(2 * stats.t.sf(abs(t), n - 3))


def holm(values: list[float]) -> list[float]:
    order = sorted(range(len(values)), key=lambda place: values[place])
    out, least = [0.0] * len(values), 0.0
    for done, place in enumerate(order):
        least = max(least, min(1.0, (len(values) - done) * values[place]))
        out[place] = least
    return out


def test_every_field_of_a_correlation_row() -> None:
    found = judge(plain_set(notes={"odd rows": 3}), VALUES)
    assert found.notes == {"odd rows": 3}
    assert [(row["settings"]["measure"], row["metric"]) for row in found.rows] == [
        (name, kind) for name in VALUES for kind in KINDS
    ]
    for row in found.rows:
        name = row["settings"]["measure"]
        assert row["settings"] == {"measure": name}
        assert (row["task"], row["n"], row["clusters"]) == ("made up", SUMMARIES, SUMMARIES // 2)
        assert row["value"] == pytest.approx(SCIPY[row["metric"]](VALUES[name], HUMAN)[0])
        low, high = row["ci95"]
        assert low < row["value"] < high


def test_metrics_are_compared_with_the_one_to_beat_and_with_qags() -> None:
    rows = judge(plain_set(), VALUES).comparisons
    pairs = [("qags", "overlap-2"), ("rouge-1", "overlap-2"), ("qags", "rouge-1")]
    assert [(row["a"], row["b"], row["kind"]) for row in rows] == [
        (*pair, kind) for pair in pairs for kind in KINDS
    ]
    for row in rows:
        a, b = VALUES[row["a"]], VALUES[row["b"]]
        r_a, r_b = (SCIPY[row["kind"]](one, HUMAN)[0] for one in (a, b))
        assert row["set"] == "made up"
        assert row["difference"] == pytest.approx(r_a - r_b)
        assert row["ci95"][0] < row["difference"] < row["ci95"][1]
        if row["kind"] == "pearson":
            between = stats.pearsonr(a, b)[0]
            assert row["williams_p"] == pytest.approx(williams(r_a, r_b, between, SUMMARIES), rel=1e-6)
        else:
            assert row["williams_p"] is None
    for kind in KINDS:
        family = [row for row in rows if row["kind"] == kind]
        assert [row["holm"] for row in family] == pytest.approx(holm([row["p"] for row in family]))
        assert any(row["holm"] > row["p"] for row in family)


def test_only_metrics_that_are_there_are_compared() -> None:
    assert judge(plain_set(), {"rouge-1": VALUES["rouge-1"]}).comparisons == []
    alone = {name: VALUES[name] for name in ("rouge-1", "qags")}
    assert {(row["a"], row["b"]) for row in judge(plain_set(), alone).comparisons} == {("qags", "rouge-1")}


@pytest.mark.parametrize(("count", "tested"), [(3, False), (4, True)])
def test_williams_test_needs_four_summaries(count: int, tested: bool) -> None:
    human = {"consistency": [0.0, 1.0, 0.25, 0.75][:count]}
    values = {"qags": [0.1, 0.8, 0.5, 0.4][:count], "overlap-2": [0.9, 0.2, 0.7, 0.6][:count]}
    rows = judge(a_set(human, ["a", "b", "c", "d"][:count]), values).comparisons
    first = next(row for row in rows if row["kind"] == "pearson")
    assert (first["williams_p"] is not None) == tested


def test_what_has_no_correlation_is_noted() -> None:
    found = judge(plain_set(), {"qags": [0.5] * SUMMARIES, "overlap-2": VALUES["overlap-2"]})
    assert found.notes == {f"made up, qags: {CONSTANT}": SUMMARIES}
    assert {row["settings"]["measure"] for row in found.rows} == {"overlap-2"}
    assert found.comparisons == []
    few = judge(plain_set(1), {"qags": [0.5], "overlap-2": [0.1]})
    assert (few.rows, few.comparisons, few.notes) == ([], [], {TOO_FEW: 1})
    assert judge(plain_set(), {}).notes == {TOO_FEW: 1}
    two = a_set({"consistency": [0.0, 1.0]}, ["a", "b"])
    assert [row["value"] for row in judge(two, {"qags": [0.1, 0.2]}).rows] == pytest.approx([1.0] * 3)


def judged(id: str, *sentences: Sequence[bool]) -> JudgedSummary:
    return JudgedSummary(
        id,
        id,
        tuple(
            JudgedSentence("One.", tuple(Vote(f"w{n}", said) for n, said in enumerate(one)))
            for one in sentences
        ),
    )


def test_agreement_has_a_row_where_several_judged() -> None:
    held = (judged("s0", (True, True, True)), judged("s1", (True, False, False)))
    rows = judge(plain_set(2, judged=held), {"qags": [0.1, 0.9]}).rows
    (row,) = [one for one in rows if one["metric"] == "alpha"]
    # Four of each kind of six judgments: alpha is 1 less the observed disagreement over the expected.
    observed, expected = (2 * 1 * 2 / 2) / 6, 2 * 4 * 2 / (6 * 5)
    assert row["value"] == pytest.approx(1 - observed / expected)
    assert (row["task"], row["settings"], row["n"]) == ("made up", {}, 2)
    once = (judged("s0", (True,)), judged("s1", (False,)))
    assert all(row["metric"] != "alpha" for row in judge(plain_set(2, judged=once), {"qags": [0, 1]}).rows)
    alike = (judged("s0", (True, True)), judged("s1", (True, True), (True, True)))
    found = judge(plain_set(2, judged=alike), {"qags": [0.1, 0.9]})
    assert all(row["metric"] != "alpha" for row in found.rows)
    assert found.notes["made up: workers who all said the same, so that there is no alpha"] == 3


ARTICLES, SYSTEMS = 6, ("one", "two", "three", "four")
TABLE = GENERATOR.normal(size=(ARTICLES, len(SYSTEMS)))
PEOPLE = TABLE + GENERATOR.normal(size=TABLE.shape)
MORE = GENERATOR.normal(size=TABLE.shape)


def many_systems(people: np.ndarray = PEOPLE) -> JudgedSet:
    clusters = [f"a{n // len(SYSTEMS)}" for n in range(people.size)]
    return a_set({"relevance": people.ravel(), "fluency": MORE.ravel()}, clusters, systems=SYSTEMS)


def test_systems_are_held_against_people_at_two_levels() -> None:
    found = correlations_of(many_systems(), TABLE.ravel().tolist())
    assert [settings for settings, _ in found] == [
        {"level": level, "human": score}
        for score in ("relevance", "fluency")
        for level in ("system", "summary")
    ]
    for settings, at in found:
        people = PEOPLE if settings["human"] == "relevance" else MORE
        for kind, figure in at.figures.items():
            if settings["level"] == "system":
                expected = SCIPY[kind](TABLE.mean(axis=0), people.mean(axis=0))[0]
            else:
                expected = np.mean([SCIPY[kind](a, b)[0] for a, b in zip(TABLE, people, strict=True)])
            assert figure.value == pytest.approx(expected)
    rows = judge(many_systems(), {"qags": TABLE.ravel().tolist(), "overlap-2": MORE.ravel().tolist()})
    assert rows.rows[0]["settings"] == {"measure": "qags", "level": "system", "human": "relevance"}
    assert {(one["level"], one["human"]) for one in rows.comparisons} == {
        (level, score) for level in ("system", "summary") for score in ("relevance", "fluency")
    }
    assert all(one["williams_p"] is None for one in rows.comparisons)


def test_one_system_has_no_correlation_over_systems() -> None:
    alone = a_set({"relevance": [0.1, 0.9, 0.3]}, ["a", "b", "c"], systems=("one",))
    assert correlations_of(alone, [1.0, 2.0, 3.0]) == []
    assert judge(alone, {"qags": [1.0, 2.0, 3.0]}).notes == {TOO_FEW: 1}


def test_articles_without_a_correlation_are_counted_at_most() -> None:
    flat = TABLE.copy()
    flat[:2] = 0.5
    notes: Counter[str] = Counter()
    for values in (flat, TABLE, np.where(np.arange(ARTICLES)[:, None] < 1, 0.5, TABLE)):
        levels = correlations_of(many_systems(), values.ravel().tolist())
        rows = correlation_rows(many_systems(), levels, {"measure": "m"}, notes)
        assert len(rows) == 2 * 2 * 3
    said = "articles whose systems all have one value by some metric, at most"
    assert notes == {f"made up, summary, {score}: {said}": 2 for score in ("relevance", "fluency")}


def test_every_field_of_a_ranking() -> None:
    triplets = tuple(Triplet(f"t{n}", f"a{n // 3}", "Fog lay there.", "Fog.", "Sun.") for n in range(12))
    generator = np.random.default_rng(1)
    values = {name: generator.integers(0, 4, 24).astype(float).tolist() for name in ("qags", "overlap-2")}
    people, articles = {"consistency": [1.0, 0.0] * 12}, [f"a{n // 6}" for n in range(24)]
    found = judge(a_set(people, articles, triplets=triplets, notes={"odd rows": 2}), values)
    assert found.notes == {"odd rows": 2}
    clusters = [one.cluster for one in triplets]
    right: dict[str, list[float]] = {}
    assert len(found.rows) == 6
    for place, (name, given) in enumerate(values.items()):
        accuracy, half, ties = found.rows[3 * place : 3 * place + 3]
        right[name] = [float(a > b) for a, b in zip(given[::2], given[1::2], strict=True)]
        tied = [float(a == b) for a, b in zip(given[::2], given[1::2], strict=True)]
        assert [one["metric"] for one in (accuracy, half, ties)] == ["accuracy", "accuracy_half_ties", "ties"]
        assert accuracy["value"] == pytest.approx(np.mean(right[name]))
        assert half["value"] == pytest.approx(np.mean(np.add(right[name], np.multiply(tied, 0.5))))
        assert ties["value"] == pytest.approx(np.mean(tied))
        assert sum(tied) > 0
        interval = clustered_interval(right[name], clusters, bounds=(0, 1))
        assert accuracy["ci95"] == [interval.low, interval.high]
        assert ties["ci95"] == [None, None]
        for one in (accuracy, half, ties):
            assert (one["task"], one["n"], one["clusters"]) == ("made up", 12, 4)
            assert one["settings"] == {"measure": name}
    (row,) = found.comparisons
    test = paired_test(right["qags"], right["overlap-2"], clusters, bounds=(0, 1))
    assert row == {
        "holm": test.p_value,
        "set": "made up",
        "a": "qags",
        "b": "overlap-2",
        "kind": "accuracy",
        "difference": pytest.approx(np.mean(right["qags"]) - np.mean(right["overlap-2"])),
        "ci95": [test.low, test.high],
        "p": test.p_value,
        "williams_p": None,
    }


def sentence(votes: list[bool]) -> JudgedSentence:
    return JudgedSentence("A sentence.", tuple(Vote(str(n), vote) for n, vote in enumerate(votes)))


@pytest.fixture
def summaries(tmp_path: Path) -> list[JudgedSummary]:
    rows = [
        judged_line(("yes", "yes", "no"), ("no", "no", "yes"), ("yes", "yes", "yes")),
        judged_line(("no", "no", "no")),
        judged_line(("yes", "no", "yes"), ("yes", "yes", "yes")),
    ]
    return read_judgments(write_lines(tmp_path / "own.jsonl", rows), "own")


def test_consistency_is_the_share_of_sentences_with_a_majority(summaries: list[JudgedSummary]) -> None:
    assert [one.consistency for one in summaries] == [2 / 3, 0.0, 1.0]


@drawn(st.lists(st.booleans(), min_size=1, max_size=7))
def test_a_majority_is_more_than_half(votes: list[bool]) -> None:
    assert sentence(votes).consistent == (sorted(votes)[(len(votes) - 1) // 2])


def test_agreement_is_alpha_of_all_sentences(summaries: list[JudgedSummary]) -> None:
    table = [[1, 1, 0], [0, 0, 1], [1, 1, 1], [0, 0, 0], [1, 0, 1], [1, 1, 1]]
    found = agreement(summaries, rounds=50)
    assert found.value == pytest.approx(krippendorff_alpha(table), abs=1e-12)
    assert (found.n, found.units) == (6, 3)
    assert found.draws is not None
    assert len(found.draws) == 50
    # Summaries are weighed whole, and one judged at random is made up: agreement is less than perfect in a round
    # in which only what agrees has weight, and never below what the worst summary gives.
    assert found.draws.max() < 1.0
    assert found.draws.std() > 0.1
    low, high = found.interval()
    assert low is not None
    assert high is not None
    assert low < found.value < high


def test_workers_who_all_agree_are_not_certain_to() -> None:
    def judged(number: int) -> JudgedSummary:
        responses = tuple(Vote(str(worker), number % 2 == 0) for worker in range(3))
        return JudgedSummary(f"own-{number}", "An article.", (JudgedSentence("One.", responses),))

    found = agreement([judged(number) for number in range(40)])
    low, high = found.interval()
    assert (found.value, high) == (1.0, 1.0)
    # One of 40 judged at random would take away about 1 / 41 at the median, and 3.7 times that at the end.
    assert low == pytest.approx(1.0 - 3.7 / 41, abs=0.025)


def test_ratings_have_a_column_a_worker(summaries: list[JudgedSummary]) -> None:
    other = JudgedSummary("own-9", "An article.", (JudgedSentence("One.", (Vote("77", True),)),))
    table, clusters = ratings([*summaries[1:2], other])
    np.testing.assert_array_equal(table, [[0, 0, 0, np.nan], [np.nan, np.nan, np.nan, 1]])
    assert clusters == ["own-1", "own-9"]


def triplet(number: int) -> Triplet:
    return Triplet(
        f"t{number}", f"a{number // 2}", f"Source {number}.", "The fog lifted.", "The fog sank the boat."
    )


def test_a_tie_is_wrong_and_counted() -> None:
    found = rank([triplet(n) for n in range(4)], [0.9, 0.1, 0.3, 0.3, 0.2, 0.7, 0.5, 0.5 - 1e-12])
    assert found.verdicts == ("right", "tie", "wrong", "tie")
    assert (found.accuracy.value, found.half.value, found.verdicts.count("tie")) == (0.25, 0.5, 2)
    assert (found.accuracy.n, found.accuracy.clusters) == (4, 2)


@checked(deadline=None)
@drawn(st.lists(st.integers(-2, 2), min_size=1, max_size=12))
def test_accuracy_is_counted(gaps: list[int]) -> None:
    scores = [(0.25 * place + gap, 0.25 * place) for place, gap in enumerate(gaps)]
    found = rank([triplet(n) for n in range(len(scores))], [one for pair in scores for one in pair])
    right, tied = sum(a > b for a, b in scores), sum(a == b for a, b in scores)
    assert found.accuracy.value == pytest.approx(right / len(scores))
    assert found.half.value == pytest.approx((right + tied / 2) / len(scores))
    assert found.verdicts.count("tie") == tied


def test_scores_are_checked() -> None:
    with pytest.raises(EnsueError, match="2 triplets need 4 scores, not 3"):
        rank([triplet(0), triplet(1)], [0.1, 0.2, 0.3])
    with pytest.raises(EnsueError, match="triplet t0 is not a finite number"):
        rank([triplet(0)], [0.1, math.nan])
