"""The published figures against what the paper prints elsewhere."""

from __future__ import annotations

from collections import Counter

import pytest

from ensue.benchmarks.published import citation, facts_of, published
from ensue.benchmarks.squality.report.table import PACKAGE, TITLES


def test_tables_have_all_their_cells() -> None:
    figures = published(PACKAGE)
    assert Counter(one.table for one in figures) == {"5.4": 25, "A.10": 18, "5.6": 15, "5.7": 10}
    systems = dict.fromkeys(one.system for one in figures if one.table == "5.4")
    assert list(systems) == ["LED", "PEGASUS", "BART", "BART+DPR", "human"]
    assert {len(shares) for shares in facts_of(PACKAGE)["sharing"].values()} == {4}
    assert "chapter 5" in citation(PACKAGE)
    # A figure of the human evaluation is known by its task, metric and settings, as a row is.
    keys = [(one.metric, *sorted(one.settings.items())) for one in figures if one.task == "human-eval"]
    assert len(set(keys)) == len(keys)


def test_figures_that_are_printed_twice_agree() -> None:
    lengths = facts_of(PACKAGE)["lengths"]
    story, summary = lengths["story_words"]["mean"], lengths["summary_words"]["mean"]
    plot, other = lengths["plot_words"]["mean"], lengths["other_words"]["mean"]
    assert lengths["compression"] == pytest.approx(1 - summary / story, abs=5e-4)
    assert summary == pytest.approx((plot + 4 * other) / 5, abs=0.5)
    best = {one.metric: one.value for one in published(PACKAGE) if one.system == "BART+DPR"}
    rated = {one.metric: one.value for one in published(PACKAGE) if one.table == "5.7"}
    assert {metric: rated[metric] for metric in TITLES} == best


def test_the_settings_that_training_starts_from_are_among_those_searched() -> None:
    search = facts_of(PACKAGE)["training_search"]
    best = {"learning_rate": 5e-5, "warmup_ratio": 0.1, "weight_decay": 0.01, "label_smoothing": 0.1}
    assert all(value in search[name] for name, value in best.items())
