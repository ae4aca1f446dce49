"""The real judgments: published sizes and agreement, and what overlap with the source reaches on them."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from ensue.benchmarks.published import published
from ensue.benchmarks.qags.data.files import JudgedSummary, read_collection, read_judgments, read_triplets
from ensue.benchmarks.qags.data.sets import PLACES, SCORES, read_sets
from ensue.benchmarks.qags.judging import agreement, rank
from ensue.benchmarks.qags.measures import BASELINES, rouge_values
from ensue.benchmarks.summaries.metaeval import over_summaries, summary_level, system_level

SIZES = {"cnndm": 235, "xsum": 239}
COLLECTIONS = {
    "summeval": (100, 16),
    "realsumm": (100, 24),
    "newsroom": (60, 7),
    "qags_cnn": (235, 1),
    "qags_xsum": (239, 1),
    "rank19_falke": (373, 2),
}
PRINTED = {
    (one.task, one.metric, one.settings.get("measure")): one.value
    for one in published("ensue.benchmarks.qags")
    if "ablation" not in one.settings
}
pytestmark = pytest.mark.data


@pytest.fixture(scope="module")
def root() -> Path:
    found = os.environ.get("ENSUE_DATA")
    if not found or not (Path(found) / "qags").is_dir():
        pytest.skip("set ENSUE_DATA to the folder that holds qags")
    return Path(found)


def judgments(root: Path, name: str) -> list[JudgedSummary]:
    return read_judgments(root.joinpath(*PLACES[name]), name)


@pytest.mark.parametrize("name", list(SIZES))
def test_agreement_is_the_published_one(root: Path, name: str) -> None:
    judged = judgments(root, name)
    assert len(judged) == SIZES[name]
    assert round(agreement(judged).value, 2) == PRINTED[name, "alpha", None]


@pytest.mark.parametrize(("name", "other"), [("cnndm", "qags_cnn"), ("xsum", "qags_xsum")])
def test_consistency_is_what_others_made_of_the_same_judgments(root: Path, name: str, other: str) -> None:
    human = [one.consistency for one in judgments(root, name)]
    stored = read_collection(root / "summeval" / f"{other}.json", ["fact"])
    given = [article.summaries[0].scores["fact"] for article in stored.articles]
    np.testing.assert_allclose(human, given, atol=1e-9)
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
    judged = judgments(root, name)
    values = [BASELINES[baseline](one.article, one.text) for one in judged]
    human = [one.consistency for one in judged]
    found = over_summaries(values, human, rounds=200).figures["pearson"]
    assert round(found.value, 3) == pearson
    assert found.value == pytest.approx(stats.pearsonr(values, human)[0])
    if baseline != "overlap-1" or name == "xsum":
        assert found.value > PRINTED[name, "pearson", "qags"]


def test_every_collection_has_its_published_size(root: Path) -> None:
    for name, (articles, systems) in COLLECTIONS.items():
        found = read_collection(root / "summeval" / f"{name}.json", SCORES.get(name, ("fact",)))
        assert (len(found.articles), len(found.systems)) == (articles, systems)
        if name == "summeval":
            assert {len(one.references) for one in found.articles} == {11}


def test_both_levels_on_summeval(root: Path) -> None:
    found = read_sets(str(root), ["summeval"], None).sets[0]
    human = np.reshape(found.human["consistency"], (100, 16))
    metric = np.reshape([BASELINES["overlap-2"](*pair) for pair in found.pairs], human.shape)
    inner = summary_level(metric, human, rounds=100)
    each = [stats.kendalltau(a, b)[0] for a, b in zip(metric, human, strict=True) if len(set(b)) > 1]
    assert len(each) == 96
    assert inner.figures["kendall"].value == pytest.approx(np.mean(each))
    assert dict(inner.left_out) == {"articles whose systems all have one value": 4}
    outer = system_level(metric, human, rounds=100)
    assert outer.figures["kendall"].value == pytest.approx(stats.kendalltau(metric.mean(0), human.mean(0))[0])


def test_triplets(root: Path) -> None:
    triplets = read_triplets(root.joinpath(*PLACES["falke"]))
    assert len(triplets) == 373
    # Three pairs are twice the same sentence: no metric can rank them, and 370 of 373 is the most there is.
    assert sum(one.consistent == one.inconsistent for one in triplets) == 3
    score = BASELINES["overlap-3"]
    texts = [(one.source, text) for one in triplets for text in (one.consistent, one.inconsistent)]
    ranked = rank(triplets, [score(source, text) for source, text in texts])
    assert round(ranked.accuracy.value, 3) == 0.657
    assert ranked.verdicts.count("tie") == 42


def test_the_xsum_column_of_table_4_1_by_the_reference_put_first_in_the_article(root: Path) -> None:
    judged = read_sets(str(root), ["xsum"], None).sets[0]
    article = judged.pairs[0].source
    assert judged.references[0] == (article[: article.index("centre.") + len("centre.")],)
    assert judged.has_references
    assert not read_sets(str(root), ["cnndm"], 5).sets[0].has_references
    human = judged.human["consistency"]
    found = {name: stats.pearsonr(values, human)[0] for name, values in rouge_values(judged).items()}
    for name in ("rouge-2", "rouge-l"):
        assert found[name] == pytest.approx(PRINTED["xsum", "pearson", name], abs=0.0003), name
    assert found["rouge-1"] == pytest.approx(PRINTED["xsum", "pearson", "rouge-1"], abs=0.015)
    assert found == pytest.approx({"rouge-1": 0.1427, "rouge-2": 0.0893, "rouge-l": 0.0885}, abs=5e-5)
