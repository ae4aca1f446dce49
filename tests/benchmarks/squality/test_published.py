"""The published figures against what the paper prints elsewhere."""

from __future__ import annotations

import pytest

from ensue.benchmarks.squality.published import (
    METRICS,
    citation,
    crowdsourcing,
    published_correlations,
    published_datasets,
    published_lengths,
    published_mean_and_max,
    published_ratings,
    published_scores,
    published_sharing,
    training_search,
    training_settings,
)


def test_tables_have_all_their_cells() -> None:
    assert [row.examples for row in published_datasets() if row.dataset == "SQuALITY"] == [625]
    assert {len(shares) for shares in published_sharing().values()} == {4}
    assert list(published_scores()) == ["LED", "PEGASUS", "BART", "BART+DPR", "human"]
    assert len(published_ratings()) == 9
    assert len(published_correlations()) == 15
    assert {row.subset for row in published_correlations() if row.significant} == {"all"}
    assert [row.system for row in training_settings()] == ["LED", "BART", "BART+DPR"]
    assert "chapter 5" in citation()


def test_figures_that_are_printed_twice_agree() -> None:
    lengths = published_lengths()
    assert lengths.compression == pytest.approx(1 - lengths.summary_mean / lengths.story_mean, abs=5e-4)
    assert lengths.summary_mean == pytest.approx((lengths.plot_mean + 4 * lengths.other_mean) / 5, abs=0.5)
    best = published_scores()["BART+DPR"]
    assert {row.metric: row.max for row in published_mean_and_max()} == best
    assert tuple(best) == METRICS
    # The one difference that is not that of its columns is ROUGE-2's.
    wrong = [
        row.metric for row in published_mean_and_max() if abs(row.max - row.mean - row.difference) > 1e-9
    ]
    assert wrong == ["rouge2"]


def test_the_best_settings_were_among_those_searched() -> None:
    search = training_search()
    for row in training_settings():
        assert all(value in search[name] for name, value in row._asdict().items() if name != "system")


def test_what_was_paid_makes_the_cost_of_a_summary() -> None:
    paid = crowdsourcing()
    person = paid["writing"] + paid["reviewing"] + paid["mean_writer_bonus"] + paid["mean_reviewer_bonus"]
    assert 4 * person / 20 == pytest.approx(6.564)
