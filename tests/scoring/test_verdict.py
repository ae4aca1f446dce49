"""The verdict: what it says of made-up texts whose answer is known, and how often it is wrong on fresh ones."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest

from ensue.errors import EnsueError
from ensue.models.request import Score
from ensue.scoring.following import Following, Measured
from ensue.scoring.verdict import (
    BELONGING,
    LIKENESS,
    RECEIVED,
    RULE,
    SHARE,
    Calibration,
    _cautious,
    calibrate,
    judge,
    share_below,
    shares_below,
    standings,
    threshold,
)
from ensue.stats.clustered import wilson

LEVELS = 18
PLAIN = Calibration(
    rule=RULE,
    model="m",
    encoder="e",
    data="made up",
    documents=100,
    sentences=1000,
    given=5.0,
    quartile=40.0,
    slope=0.0,
    # From 0 to 10 nats, one after the other.
    least=tuple(10.0 * step / (LEVELS - 1) for step in range(LEVELS)),
    percentiles=tuple(float(step) for step in range(101)),
)


def text(*received: float, likeness: float | None = None) -> list[Following]:
    """Sentences that give so much and receive nothing but to be counted; the first is not judged."""
    rest = [following(0.0, one, likeness) for one in received]
    return [following(None, 0.0, likeness), *rest]


def following(received: float | None, given: float | None, likeness: float | None) -> Following:
    return Following(tokens=10, received=received, given=given, likeness=likeness)


def test_standing_is_what_is_received_and_given_and_how_like_it_is_to_the_rest() -> None:
    sentences = [following(None, 1.0, 0.5), following(3.0, 2.0, 0.1), following(6.0, None, None)]
    sentences[1] = sentences[1]._replace(logprob=-9.0)
    second = RECEIVED * 3.0 + SHARE * 0.25 + 2.0 + LIKENESS * 0.1
    assert standings(sentences, given=5.0) == [
        None,
        pytest.approx(second),
        pytest.approx(RECEIVED * 6.0 + 5.0),
    ]
    read = [one._replace(belonging=-1.5) for one in sentences]
    assert standings(read, given=5.0)[1] == pytest.approx(second - 1.5 * BELONGING)


def test_the_rule_has_the_weights_that_were_judged() -> None:
    """Who changes one makes another rule, and its calibrations and figures anew (docs/following.md)."""
    assert (RULE, RECEIVED, SHARE, LIKENESS, BELONGING) == (5, 1 / 3, 50.0, 50.0, 5.0)


@pytest.mark.parametrize("count", [25, 200, 1600])
def test_a_calibration_of_few_texts_keeps_what_it_says_nineteen_times_in_twenty(count: int) -> None:
    """By simulation: how often the share of all texts below the threshold is more than was asked for."""
    generator = np.random.default_rng(7)
    drawn = generator.random((4000, count))
    over = [np.quantile(one, _cautious(0.1, count), method="weibull") > 0.1 for one in drawn]
    assert 0.02 < np.mean(over) < 0.08
    assert wilson(0.1, count, 1.645)[0] == pytest.approx(_cautious(0.1, count))
    assert (_cautious(0.0, count), _cautious(1.0, 10**9)) == pytest.approx((0.0, 1.0), abs=1e-6)


def test_the_least_sentence_stands_out_where_few_untouched_texts_have_one_like_it() -> None:
    found = judge(text(50.0, 1.0, 60.0, 55.0, 52.0), PLAIN, rate=0.1)
    assert (found.stands_out, found.least) == (2, 2)
    # 1 nat lies at 1.7 of 17 steps: between the levels .005 and .01.
    assert found.false_alarm == pytest.approx(0.005 + 0.7 * 0.005)


def test_nothing_stands_out_above_the_rate_but_the_least_is_named() -> None:
    sentences = text(50.0, 9.0, 60.0, 55.0, 52.0)
    found = judge(sentences, PLAIN, rate=0.1)
    assert (found.stands_out, found.least) == (None, 2)
    assert judge(sentences, PLAIN, rate=0.9).stands_out == 2
    # At most the rate, and the rate itself is that.
    assert judge(text(50.0, 80 / 17, 60.0, 55.0, 52.0), PLAIN, rate=0.1).stands_out == 2


def test_a_text_that_is_loose_throughout_is_made_good_for_it() -> None:
    tight, loose = [50.0, -5.0, 60.0, 55.0, 52.0], [30.0, -5.0, 30.0, 30.0, 30.0]
    level = judge(text(*tight), PLAIN).false_alarm
    assert level is not None
    # The loose text's lower quartile is 30, 10 below the untouched ones', which are added.
    raised = judge(text(*loose), PLAIN).false_alarm
    expected = np.interp(-5.0 + 10.0, PLAIN.least, _levels())
    assert 0.0 < expected < 1.0
    assert raised == pytest.approx(expected)
    assert raised > level


def test_long_texts_are_made_good_for_their_length() -> None:
    sloped = replace(PLAIN, slope=2.0)
    short, long = text(*[50.0] * 4, 1.0), text(*[50.0] * 40, 1.0)
    for sentences, count in ((short, 5), (long, 41)):
        expected = np.interp(1.0 + 2.0 * math.log(count), PLAIN.least, _levels())
        assert judge(sentences, sloped).false_alarm == pytest.approx(expected)


def _levels() -> list[float]:
    return [
        0,
        0.005,
        0.01,
        0.02,
        0.03,
        0.04,
        0.05,
        0.075,
        0.1,
        0.125,
        0.15,
        0.2,
        0.25,
        0.3,
        0.4,
        0.5,
        0.75,
        1,
    ]


@pytest.mark.parametrize("count", [0, 1, 2])
def test_short_texts_get_no_verdict(count: int) -> None:
    found = judge(text(*[-100.0] * count), PLAIN)
    assert found.stands_out is None
    assert "too short" in found.why
    assert judge(text(-100.0, -100.0, -100.0), PLAIN).why == ""


def test_no_sentence_at_all_gets_no_verdict() -> None:
    assert judge([], PLAIN).stands_out is None


def test_without_a_calibration_there_is_no_verdict_and_a_word_why() -> None:
    found = judge(text(1.0, 2.0, 3.0, 4.0), None)
    assert found.stands_out is None
    assert "calibration" in found.why


def test_share_of_sentences_that_follow_less() -> None:
    assert [share_below(value, PLAIN) for value in (-5.0, 0.0, 25.0, 100.0, 300.0)] == [0, 0, 0.25, 1, 1]


def untouched(count: int, lengths: list[int], seed: int) -> list[Measured]:
    """Texts whose sentences receive and give at random; some texts are looser than others."""
    generator = np.random.default_rng(seed)
    made = []
    for number in range(count):
        length = lengths[number % len(lengths)]
        level = generator.normal(0, 4)
        received = generator.normal(45 + level, 12, length)
        passed = generator.normal(5, 3, length)
        sentences = [
            Following(
                tokens=20,
                received=None if place == 0 else float(received[place]),
                given=None if place == length - 1 else float(passed[place]),
                likeness=0.3,
            )
            for place in range(length)
        ]
        made.append(Measured(Score(0.0, 0, 0.0), sentences))
    return made


def test_fewer_texts_make_a_lower_threshold() -> None:
    texts = untouched(40, [5, 8, 14, 20], seed=3)
    few, many = (calibrate(texts * times, model="m", encoder="e", data="d") for times in (1, 100))
    assert (few.quartile, few.slope, few.percentiles[50]) == pytest.approx(
        (many.quartile, many.slope, many.percentiles[50]), abs=0.1
    )
    assert threshold(few, 10) < threshold(many, 10) - 1.0


@pytest.mark.parametrize("length", [6, 12, 24, 40])
def test_false_alarms_on_fresh_texts_are_as_many_as_said_at_any_length(length: int) -> None:
    fitted = calibrate(untouched(1500, [5, 8, 14, 20, 30], seed=1), model="m", encoder="e", data="d")
    fresh = untouched(1500, [length], seed=2)
    for rate in (0.05, 0.1, 0.2):
        share = np.mean([judge(one.sentences, fitted, rate).stands_out is not None for one in fresh])
        assert abs(share - rate) < 0.4 * rate + 0.02


def test_calibration_states_what_it_was_made_from() -> None:
    fitted = calibrate(untouched(40, [5, 3], seed=3), model="m", encoder="e", data="d")
    # Texts of three sentences are too short; the first sentence of each is not judged.
    assert (fitted.documents, fitted.sentences) == (20, 80)
    assert fitted.given == pytest.approx(5, abs=1)
    assert list(fitted.least) == sorted(fitted.least)
    assert (len(fitted.least), len(fitted.percentiles)) == (LEVELS, 101)


def test_every_number_of_a_calibration_by_hand() -> None:
    texts = untouched(60, [4, 7, 13, 30, 3], seed=5)
    fitted = calibrate(texts, model="m", encoder="e", data="d")
    kept = [one.sentences for one in texts if len(one.sentences) > 3]
    passed = [one.given for text in kept for one in text[1:] if one.given is not None]
    given = sum(passed) / len(passed)
    firm = [
        [
            one.received / 3
            + 50 * (one.share or 0)
            + (one.given if one.given is not None else given)
            + 50 * 0.3
            for one in text[1:]
        ]
        for text in kept
    ]
    quartile = sum(float(np.quantile(one, 0.25)) for one in firm) / len(firm)
    falls = [
        (min(one[:a]) - min(one[:b])) / math.log(b / a)
        for one in firm
        for a, b in [(3, 6), (6, 12), (12, 24)]
        if b <= len(one)
    ]
    slope = sum(falls) / len(falls)
    least = sorted(
        min(one) + max(0.0, quartile - float(np.quantile(one, 0.25))) + slope * math.log(len(one))
        for one in firm
    )
    assert (fitted.given, fitted.quartile, fitted.slope) == pytest.approx((given, quartile, slope), abs=1e-4)
    every = sorted(value for one in firm for value in one)
    for percent, value in enumerate(fitted.percentiles):
        at = percent / 100 * (len(every) - 1)
        low = every[int(at)]
        assert value == pytest.approx(
            low + (at % 1) * (every[min(int(at) + 1, len(every) - 1)] - low), abs=1e-4
        )
    for level, value in zip(_levels(), fitted.least, strict=True):
        # The k-th of n values for a share of k / (n + 1), between two of them in proportion.
        at = max(1.0, min(len(least), wilson(level, len(least), 1.645)[0] * (len(least) + 1))) - 1
        low = least[int(at)]
        assert value == pytest.approx(
            low + (at % 1) * (least[min(int(at) + 1, len(least) - 1)] - low), abs=1e-3
        )


def test_the_threshold_is_the_standing_from_which_a_sentence_stands_out() -> None:
    sloped = replace(PLAIN, slope=2.0)
    for count in (9, 20):
        border = threshold(sloped, count, 0.1)
        assert border == pytest.approx(80 / 17 - 2.0 * math.log(count - 1))
        for standing, said in ((border - 0.01, 3), (border + 0.01, None)):
            made = text(*[50.0] * 2, standing, *[50.0] * (count - 4))
            assert judge(made, sloped, rate=0.1).stands_out == said


def test_calibration_goes_through_json() -> None:
    assert Calibration.of(json.loads(json.dumps(PLAIN.as_dict()))) == PLAIN


@pytest.mark.parametrize(
    "facts",
    [
        {},
        {"least": [], "percentiles": []},
        {**PLAIN.as_dict(), "least": [1.0]},
        {**PLAIN.as_dict(), "new": 1},
        *(
            {**PLAIN.as_dict(), name: value}
            for name, value in [
                ("least", ["a"] * LEVELS),
                ("least", "a" * LEVELS),
                ("least", [None] * LEVELS),
                ("least", [math.nan] * LEVELS),
                ("least", list(range(LEVELS, 0, -1))),
                ("percentiles", [math.inf] * 101),
                ("slope", "1"),
                ("slope", math.nan),
                ("slope", True),
                ("given", None),
                ("quartile", [1]),
                ("data", None),
                ("encoder", 5),
            ]
        ),
        {**PLAIN.as_dict(), "rule": RULE + 1},
    ],
)
def test_calibration_that_is_none_is_refused_in_a_sentence(facts: dict[str, object]) -> None:
    with pytest.raises(
        EnsueError, match=r"^mine.json is damaged or of another version of Ensue; run `ensue calibrate` again"
    ):
        Calibration.of(facts, "mine.json")


def test_few_texts_make_no_calibration() -> None:
    with pytest.raises(EnsueError, match="at least 20"):
        calibrate(untouched(19, [8], seed=4), model="m", encoder="e", data="d")


def test_shares_of_a_loose_text_are_made_good_as_its_verdict_is():
    percentiles = tuple(float(one) for one in range(101))
    fitted = replace(PLAIN, quartile=40.0, percentiles=percentiles)
    # Lower quartiles of 30.5 and 20 where 40 is usual: what is missing is made good.
    assert shares_below([None, 40.0, 40.0, 50.0, 2.0], fitted)[0] is None
    assert shares_below([40.0, 40.0, 50.0, 2.0], fitted) == pytest.approx([0.495, 0.495, 0.595, 0.115])
    assert shares_below([20.0, 20.0, 20.0, 30.0], fitted) == pytest.approx([0.4, 0.4, 0.4, 0.5])
    assert shares_below([90.0, 50.0], fitted) == pytest.approx([0.9, 0.5])
    assert shares_below([None], fitted) == [None]
