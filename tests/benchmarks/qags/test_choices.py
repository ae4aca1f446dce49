"""The presets are the paper's and a smaller one; what is set beside them takes their place; variants of a run."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ensue.benchmarks.qags.ablations import plan
from ensue.benchmarks.qags.choices import DEFAULT, FAST, PAPER, PRESET_SETTINGS, STRICT, preset_of
from ensue.benchmarks.qags.published import generation_settings, published_ablation
from ensue.benchmarks.settings import resolve
from ensue.errors import EnsueError


def resolved(**given: object) -> dict[str, object]:
    return resolve("qags", PRESET_SETTINGS, given)


def test_the_paper_preset_is_appendix_a_3_2() -> None:
    printed = generation_settings()
    assert PAPER.asking.search() == {
        "count": 10,
        "beams": printed.beams,
        "min_tokens": 8,
        "max_tokens": 60,
        "length_penalty": 1.0,
        "block_ngrams": 3,
    }
    assert (PAPER.asking.answers, PAPER.keeping.questions, PAPER.keeping.shortest) == (10, 20, 3)
    # "Named entities and noun phrases", "we remove questions … unanswerable", "the top 20 most probable".
    assert (PAPER.asking.candidates, PAPER.keeping.agree, PAPER.keeping.order) == (
        "every",
        "answered",
        "likeliest",
    )


def test_the_strict_preset_is_what_the_published_figures_call_the_papers_rules() -> None:
    """Figures under `strict` in bench/results/qags.md were made when these rules were called `paper`."""
    assert STRICT.asking == replace(PAPER.asking, candidates="distinct")
    assert (STRICT.keeping.questions, STRICT.keeping.shortest, STRICT.keeping.agree) == (20, 3, "same")
    assert (STRICT.keeping.order, STRICT.keeping.padding) == ("likeliest", "removed")
    assert (DEFAULT.asking, FAST.asking.candidates) == (STRICT.asking, "distinct")
    assert (DEFAULT.keeping.agree, DEFAULT.keeping.order, DEFAULT.keeping.questions) == (
        "overlap",
        "spread",
        20,
    )


def test_the_fast_preset_asks_less() -> None:
    assert FAST.asking.answers * FAST.asking.beams < PAPER.asking.answers * PAPER.asking.beams
    assert FAST.keeping.questions == 10


def test_settings_take_the_place_of_the_preset() -> None:
    found = preset_of(
        resolved(preset="fast", beams=5, count=5, questions=7, agree="answered", padding="kept"), seed=3
    )
    assert (found.asking.beams, found.asking.count, found.asking.seed) == (5, 5, 3)
    assert found.asking.answers == FAST.asking.answers
    assert (found.keeping.questions, found.keeping.agree, found.keeping.padding) == (7, "answered", "kept")
    assert preset_of(resolved()) == DEFAULT
    assert preset_of(resolved(preset="paper")) == PAPER
    assert preset_of(resolved(preset="strict")) == STRICT
    assert preset_of(resolved(preset="fast", candidates="every")).asking.candidates == "every"


def test_a_search_cannot_give_more_than_its_width() -> None:
    with pytest.raises(EnsueError, match="set beams=10 or count=4"):
        preset_of(resolved(beams=4))


def test_variants() -> None:
    found = plan(PAPER, "f1", ["questions", "similarity", "filters"], with_vectors=True)
    assert found.keepings[0] == PAPER.keeping
    assert len(set(found.keepings)) == len(found.keepings)
    numbers = [one for one in found.variants if one.ablation == "questions"]
    assert [one.setting for one in numbers] == [row.setting for row in published_ablation("questions")]
    assert [found.keepings[one.selection].questions for one in numbers] == [5, 10, 20, 50]
    assert [one.setting for one in found.variants if one.ablation == "similarity"] == [
        "f1",
        "exact",
        "embedding",
    ]
    assert {found.keepings[one.selection].agree for one in found.variants if one.ablation == "filters"} == {
        "same",
        "overlap",
        "answered",
        "any",
    }
    # Eighteen questions are made at most, so that twenty cannot be kept.
    assert [one.setting for one in plan(FAST, "f1", ["questions"]).variants] == [
        "5 questions",
        "10 questions",
    ]
    assert plan(PAPER, "f1", []).variants == ()
