"""The real judgments: published sizes and agreement, and what overlap with the source reaches on them."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from ensue.benchmarks.qags import data, falke, frank, summaries
from ensue.benchmarks.qags.baselines import BASELINES
from ensue.benchmarks.qags.judgments import agreement, human_consistency
from ensue.benchmarks.qags.measures import rouge_values
from ensue.benchmarks.qags.metaeval import over_summaries, summary_level, system_level
from ensue.benchmarks.qags.published import published_agreement, published_metrics
from ensue.benchmarks.qags.ranking import choose, rank_with
from ensue.benchmarks.qags.sets import read_sets

pytestmark = pytest.mark.data


@pytest.fixture(scope="module")
def root() -> Path:
    found = os.environ.get("ENSUE_DATA")
    if not found or not (Path(found) / "qags").is_dir():
        pytest.skip("set ENSUE_DATA to the folder that holds qags")
    return Path(found)


@pytest.mark.parametrize("name", list(data.FILES))
def test_agreement_is_the_published_one(root: Path, name: str) -> None:
    judged = data.read_judgments(root / "qags", name)
    assert len(judged) == data.SIZES[name]
    assert round(agreement(judged).value, 2) == published_agreement()[name]


@pytest.mark.parametrize(("name", "other"), [("cnndm", "qags_cnn"), ("xsum", "qags_xsum")])
def test_consistency_is_what_others_made_of_the_same_judgments(root: Path, name: str, other: str) -> None:
    human = human_consistency(data.read_judgments(root / "qags", name))
    stored = summaries.read_collection(root / "summeval", other)
    np.testing.assert_allclose(human, stored.human("fact")[:, 0], atol=1e-9)
    assert stored.notes == {"articles whose reference is the source itself, left without": len(human)}


@pytest.mark.parametrize(
    ("name", "baseline", "pearson"),
    [
        ("cnndm", "overlap-1", 0.447),
        ("cnndm", "overlap-2", 0.668),
        ("cnndm", "overlap-3", 0.696),
        ("cnndm", "content-overlap-2", 0.678),
        ("xsum", "overlap-1", 0.306),
        ("xsum", "overlap-2", 0.224),
    ],
)
def test_overlap_with_the_source_beats_the_published_qags(
    root: Path, name: str, baseline: str, pearson: float
) -> None:
    judged = data.read_judgments(root / "qags", name)
    values, human = [BASELINES[baseline](one.article, one.text) for one in judged], human_consistency(judged)
    found = over_summaries(values, human, rounds=200).figures["pearson"]
    assert round(found.value, 3) == pearson
    assert found.value == pytest.approx(stats.pearsonr(values, human)[0])
    qags = published_metrics()[-1]
    if baseline != "overlap-1" or name == "xsum":
        assert found.value > getattr(qags, name)


def test_every_collection_has_its_published_size(root: Path) -> None:
    for name, (articles, systems) in summaries.SIZES.items():
        found = summaries.read_collection(root / "summeval", name)
        assert (len(found.articles), len(found.systems)) == (articles, systems)
    assert {
        len(one.references) for one in summaries.read_collection(root / "summeval", "summeval").articles
    } == {11}


def test_both_levels_on_summeval(root: Path) -> None:
    found = summaries.read_collection(root / "summeval", "summeval")
    human = found.human("consistency")
    metric = np.reshape([BASELINES["overlap-2"](*pair) for pair in found.texts()], human.shape)
    inner = summary_level(metric, human, rounds=100)
    each = [stats.kendalltau(a, b)[0] for a, b in zip(metric, human, strict=True) if len(set(b)) > 1]
    assert len(each) == 96
    assert inner.figures["kendall"].value == pytest.approx(np.mean(each))
    assert dict(inner.left_out) == {"articles whose systems all have one value": 4}
    outer = system_level(metric, human, rounds=100)
    assert outer.figures["kendall"].value == pytest.approx(stats.kendalltau(metric.mean(0), human.mean(0))[0])


def test_triplets_and_choices(root: Path) -> None:
    triplets = falke.read_triplets(root / "falke2019")
    assert len(triplets) == falke.TRIPLETS
    # Three pairs are twice the same sentence: no metric can rank them, and 370 of 373 is the most there is.
    assert sum(one.consistent == one.inconsistent for one in triplets) == 3
    ranked = rank_with(triplets, BASELINES["overlap-3"])
    assert round(ranked.accuracy.value, 3) == 0.657
    assert ranked.ties == 42
    articles = falke.read_choices(root / "falke2019")
    assert len(articles) == falke.ARTICLES
    alike = choose(articles, [[0.0] * len(one.summaries) for one in articles])
    assert alike.inconsistent.value == pytest.approx(alike.by_chance)


def test_frank_has_labels_and_metrics_of_every_summary(root: Path) -> None:
    found = frank.read_frank(root / "frank")
    assert len(found.summaries) == frank.SIZE
    assert (len(found.of("cnndm")), len(found.of("xsum"))) == (1_250, 996)
    assert found.notes == {"summaries without Dep Entail": 83, "summaries without FEQA": 4}


def test_the_xsum_column_of_table_4_1_by_the_reference_put_first_in_the_article(root: Path) -> None:
    judged = read_sets(str(root), ["xsum"], None).sets[0]
    article = judged.pairs[0].source
    assert judged.references[0] == (article[: article.index("centre.") + len("centre.")],)
    assert judged.has_references
    assert not read_sets(str(root), ["cnndm"], 5).sets[0].has_references
    human = judged.human["consistency"]
    printed = {row.metric.lower(): row.xsum for row in published_metrics()}
    found = {name: stats.pearsonr(values, human)[0] for name, values in rouge_values(judged).items()}
    for name in ("rouge-2", "rouge-l"):
        assert found[name] == pytest.approx(printed[name], abs=0.0003), name
    assert found["rouge-1"] == pytest.approx(printed["rouge-1"], abs=0.015)
    assert found == pytest.approx({"rouge-1": 0.1427, "rouge-2": 0.0893, "rouge-l": 0.0885}, abs=5e-5)
