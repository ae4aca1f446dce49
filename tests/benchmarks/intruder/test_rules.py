"""Rules against their formulas, ranks by hand, thresholds against what they promise."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ensue.benchmarks.intruder.rules import (
    RULES,
    Sentences,
    crossfit,
    fit,
    flagged,
    least_of,
    rank_of,
    values_of,
)
from ensue.scoring.following import Following
from ensue.scoring.verdict import standings

# tokens, received, given, likeness, log-likelihood in context
TEXT = [
    Following(0, None, 3.0, 0.5, None),
    Following(4, 2.0, -1.0, 0.25, -8.0),
    Following(10, -5.0, None, 0.75, -25.0),
]


def test_every_rule_by_hand():
    found = {rule: values_of(Sentences(TEXT), rule, 7.0) for rule in RULES}
    assert found["received"] == [None, 2.0, -5.0]
    assert found["gain"] == [None, 0.5, -0.5]
    # Alone 10 and 20 nats: in context 2 fewer, and 5 more.
    assert found["ratio"] == [None, 0.2, -0.25]
    assert found["given"] == [None, -1.0, 7.0]
    assert found["likeness"] == [None, 0.25, 0.75]
    assert found["surprisal"] == [None, -2.0, -2.5]
    assert found["following"] == pytest.approx([None, *standings(TEXT, 7.0)[1:]])


def test_a_sentence_that_is_certain_alone_has_no_ratio_to_speak_of():
    assert values_of(Sentences([TEXT[0], Following(1, 0.0, None, None, 0.0)]), "ratio", 0.0) == [None, 0.0]


levels = st.lists(st.sampled_from([-1.0, 0.0, 0.5, 2.0]), min_size=2, max_size=8)


@given(levels, st.data())
def test_ranks_are_those_of_a_naive_loop(values, data):
    places = data.draw(st.sets(st.integers(1, len(values)), min_size=1, max_size=2).map(sorted))
    found = rank_of([None, *values], places)
    rank, best = 1, min(values[place - 1] for place in places)
    for place, value in enumerate(values, start=1):
        if place not in places and value <= best:
            rank += 1
    assert found == rank


@given(levels, st.sampled_from([-2.0, -1.0, 0.0, 0.2, 5.0]))
def test_only_what_is_below_the_threshold_is_flagged(values, threshold):
    found = flagged([None, *values], threshold)
    assert found == (1 + values.index(min(values)) if min(values) < threshold else None)
    assert least_of([None, *values])[0] == min(values)


def text(generator: random.Random, count: int = 8) -> Sentences:
    return Sentences(
        [
            Following(5, None if place == 0 else generator.gauss(0, 1), generator.gauss(0, 1), None, -9.0)
            for place in range(count)
        ]
    )


def test_a_threshold_keeps_its_promise_to_a_new_document():
    """Of n exchangeable documents a new one is below the k-th least with a chance of k / (n + 1), whatever n is."""
    generator = random.Random(0)
    for others in (9, 14, 40):
        alarms = 0
        for _ in range(1500):
            fitted = fit([text(generator) for _ in range(others)], ["received"], 0.1)
            new = values_of(text(generator), "received", fitted.given)
            alarms += flagged(new, fitted.thresholds["received"]) is not None
        assert alarms / 1500 == pytest.approx(0.1, abs=4 * math.sqrt(0.09 / 1500))


def test_what_is_judged_has_no_part_in_its_threshold():
    generator = random.Random(1)
    controls = {f"d{n}": text(generator) for n in range(23)}
    before = crossfit(controls, ["received", "given"], 0.1, seed=5)
    assert before.keys() == controls.keys()
    for name in ("d0", "d7", "d22"):
        changed = {
            **controls,
            name: Sentences([one._replace(received=-1e3, given=-1e3) for one in controls[name].following]),
        }
        after = crossfit(changed, ["received", "given"], 0.1, seed=5)
        assert after[name] == before[name]
        assert sum(after[other] != before[other] for other in controls) >= 20
    # Folds of 2 or 3 of 23.
    assert sorted({fitted.documents for fitted in before.values()}) == [20, 21]
    assert crossfit(controls, ["received"], 0.1, seed=6) != crossfit(controls, ["received"], 0.1, seed=5)


def test_the_fit_is_what_numpy_makes_of_the_others():
    generator = random.Random(2)
    controls = [text(generator) for _ in range(12)]
    fitted = fit(controls, ["received", "given"], 0.25)
    given = [one.given for sentences in controls for one in sentences.following[1:]]
    assert fitted.given == pytest.approx(np.mean(given))
    least = sorted(min(one.received for one in sentences.following[1:]) for sentences in controls)
    # The place of rank 0.25 * 13 = 3.25: a quarter of the way from the third to the fourth.
    assert fitted.thresholds["received"] == pytest.approx(least[2] + 0.25 * (least[3] - least[2]), abs=1e-5)


def test_few_documents_are_too_few_for_a_low_rate():
    generator = random.Random(3)
    assert fit([text(generator) for _ in range(9)], ["received"], 0.1).enough(0.1)
    assert not fit([text(generator) for _ in range(8)], ["received"], 0.1).enough(0.1)
