"""Metrics against naive loops, scikit-learn and a bootstrap."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from sklearn.metrics import roc_auc_score

from ensue.benchmarks.intruder.judging import auc, metric_rows, position_of, tradeoff

numbers = st.lists(st.sampled_from([-2.0, -1.0, 0.0, 0.5, 3.0]), min_size=2, max_size=12)


@given(st.data())
def test_auc_is_scikit_learns(data):
    edited = data.draw(numbers)
    count = len(edited)
    untouched = data.draw(st.lists(st.sampled_from([-2.0, 0.0, 0.5, 4.0]), min_size=count, max_size=count))
    labels = [1] * len(edited) + [0] * len(untouched)
    found = auc(edited, untouched)
    assert found.value == pytest.approx(roc_auc_score(labels, [-value for value in edited + untouched]))
    assert 0.0 <= found.low <= found.value <= found.high <= 1.0
    assert (found.n, found.clusters) == (len(edited), len(edited))


def test_the_interval_of_an_auc_is_that_of_a_bootstrap_over_documents():
    generator = np.random.default_rng(0)
    own = generator.normal(size=200)
    edited, untouched = own + generator.normal(size=200) - 0.8, own + generator.normal(size=200)
    found = auc(edited, untouched)
    drawn = []
    for _ in range(1500):
        chosen = generator.integers(0, 200, 200)
        drawn.append(auc(edited[chosen], untouched[chosen]).value)
    assert [found.low, found.high] == pytest.approx(np.quantile(drawn, [0.025, 0.975]), abs=0.012)


def test_the_interval_of_an_auc_by_delongs_formula_and_wilsons():
    generator = np.random.default_rng(1)
    edited, untouched = generator.normal(size=15), generator.normal(0.7, 1.0, size=15)
    found = auc(edited, untouched)
    below = (edited[:, None] < untouched[None, :]).astype(float)
    spread = np.cov(below.mean(axis=1), below.mean(axis=0))
    variance = (spread[0, 0] + spread[1, 1] + 2 * spread[0, 1]) / 15
    share = found.value
    assert share == pytest.approx(below.mean())
    for end in (found.low, found.high):
        # Wilson's ends are those from which the share is as many standard errors of their own off as t allows.
        error = np.sqrt(variance * end * (1 - end) / (share * (1 - share)))
        assert abs(share - end) / error == pytest.approx(stats.t.ppf(0.975, 14))


def test_an_auc_at_the_end_of_its_range_or_of_one_document():
    perfect = auc([1.0] * 10, [2.0] * 10)
    assert (perfect.value, perfect.high) == (1.0, 1.0)
    assert perfect.low == pytest.approx(0.7225, abs=1e-4)  # Wilson, 10 of 10
    assert auc([1.0], [2.0])[:3] == (1.0, None, None)


@given(st.lists(st.tuples(st.integers(0, 5).map(float), st.booleans()), min_size=1, max_size=8), numbers)
def test_the_curve_is_what_counting_at_every_threshold_gives(edited, untouched):
    points = tradeoff(edited, untouched)
    assert points[0] == (0.0, 0.0)
    assert [p[0] for p in points] == sorted(p[0] for p in points)
    assert [p[1] for p in points] == sorted(p[1] for p in points)
    for threshold in {value for value, _ in edited} | set(untouched):
        alarms = sum(value <= threshold for value in untouched) / len(untouched)
        hits = sum(value <= threshold and right for value, right in edited) / len(edited)
        # The curve at this rate of false alarms, or at a lower one, is at least as high.
        assert max(hit for rate, hit in points if rate <= alarms) >= hits
        assert alarms in {rate for rate, _ in points}
    assert points[-1] == (1.0, sum(right for _, right in edited) / len(edited))


def test_thirds_are_of_the_sentences_after_the_first():
    for count in range(6, 30):
        found = [position_of(place, count) for place in range(1, count)]
        assert found == sorted(found, key=["beginning", "middle", "end"].index)
        sizes = [found.count(position) for position in ("beginning", "middle", "end")]
        assert max(sizes) - min(sizes) <= 1
    assert [position_of(place, 12) for place in (4, 5, 8, 9)] == ["beginning", "middle", "middle", "end"]


def item(document, kind, values, places, scores, domain="a", position="middle"):
    outputs = {"domain": domain, "places": places, "position": position, "values": {"gain": values}}
    return {
        "id": f"{document}#{kind}", "cluster": document, "task": "intruder", "settings": {"kind": kind},
        "scores": {f"gain/{name}": value for name, value in scores.items()}, "outputs": outputs,
    }  # fmt: skip


def test_rows_by_hand():
    hit = {"hit_rate": 1.0, "rank": 1.0, "hit_rate_at": 1.0}
    weak = {"hit_rate": 1.0, "rank": 1.0, "hit_rate_at": 0.0}
    miss = {"hit_rate": 0.0, "rank": 3.0, "hit_rate_at": 0.0}
    items = [
        item("x", "untouched", [None, 1, 2, 3, 4], [], {"false_alarms": 0.0}),
        item("x", "random", [None, 0, 2, 3, 4], [1], hit, position="beginning"),
        item("x", "swapped", [None, 0, 2, 3, 4], [1, 4], hit, position="beginning"),
        item("y", "untouched", [None, 1.5, 2], [], {"false_alarms": 1.0}, "b"),
        item("y", "random", [None, 1.25, 2], [1], weak, "b"),
        item("z", "untouched", [None, 5, 7], [], {"false_alarms": 0.0}, "b"),
        item("z", "random", [None, 6, 5.5], [1], miss, "b"),
    ]
    rows = list(metric_rows(items))
    found = {(r["task"], r["metric"], *r["settings"].values()): (r["value"], r["n"]) for r in rows}
    assert len(found) == len(rows)
    assert found["intruder", "chance", "random"] == ((1 / 4 + 1 / 2 + 1 / 2) / 3, 3)
    assert found["intruder", "chance", "swapped"] == (2 / 4, 1)
    assert found["intruder", "hit_rate", "random", "gain"] == (2 / 3, 3)
    assert found["intruder", "hit_rate_at", "random", "gain"] == (1 / 3, 3)
    assert found["intruder", "rank", "random", "gain"] == (5 / 3, 3)
    # 0, 1.25 and 5.5 against 1, 1.5 and 5: 3, 2 and 0 of 9 are below.
    assert found["intruder", "auc", "random", "gain"][0] == pytest.approx(5 / 9)
    assert found["intruder", "false_alarms", "untouched", "gain"] == (1 / 3, 3)
    assert found["intruder", "hit_rate", "random", "gain", "middle"] == (1 / 2, 2)
    assert found["intruder", "hit_rate_at", "random", "gain", "beginning"] == (1.0, 1)
    assert found["intruder/b", "hit_rate", "random", "gain"] == (1 / 2, 2)
    # 1.25 and 5.5 against 1.5 and 5.
    assert found["intruder/b", "auc", "random", "gain"][0] == pytest.approx(2 / 4)
    assert found["intruder/a", "false_alarms", "untouched", "gain"] == (0.0, 1)
    assert not any(task == "intruder/b" and "swapped" in rest for task, *rest in found)


def test_one_domain_has_no_rows_of_its_own():
    items = [
        item(str(n), kind, [None, random.random(), 1.0], [1] * (kind == "random"), scores)
        for n in range(3)
        for kind, scores in (
            ("untouched", {"false_alarms": 0.0}),
            ("random", {"hit_rate": 1.0, "hit_rate_at": 1.0}),
        )
    ]
    assert {row["task"] for row in metric_rows(items)} == {"intruder"}
