"""Which questions are made and kept: presets, rules against a naive loop, and padding."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ensue.benchmarks import settings as read
from ensue.benchmarks.published import facts_of, published
from ensue.benchmarks.qags.candidates import AnswerCandidate, chance
from ensue.benchmarks.qags.questions import (
    AGREE,
    DEFAULT,
    FAST,
    PADDING,
    PAPER,
    PRESET_SETTINGS,
    STRICT,
    Asking,
    Keeping,
    Preset,
    Proposal,
    _own,
    _paper,
    cut,
    preset_of,
    select,
    tidy,
    verdict,
)
from ensue.benchmarks.qags.scoring import plan_variants
from ensue.benchmarks.settings import resolve
from ensue.errors import EnsueError
from ensue.metrics.answers import normalised
from ensue.models.protocols import Asked, FoundAnswer


def resolved(**given: object) -> dict[str, object]:
    return resolve("qags", PRESET_SETTINGS, given)


def test_the_paper_preset_is_appendix_a_3_2() -> None:
    printed = facts_of("ensue.benchmarks.qags")["generation"]
    assert PAPER.asking.search() == {
        "count": 10,
        "beams": printed["beams"],
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
    keepings, variants = plan_variants(PAPER, "f1", ["questions", "similarity", "filters"], with_vectors=True)
    assert keepings[0] == PAPER.keeping
    assert len(set(keepings)) == len(keepings)
    numbers = [one for one in variants if one.ablation == "questions"]
    assert [one.setting for one in numbers] == [
        one.settings["setting"]
        for one in published("ensue.benchmarks.qags")
        if (one.table, one.task) == ("4.4", "cnndm")
    ]
    assert [keepings[one.selection].questions for one in numbers] == [5, 10, 20, 50]
    assert [one.setting for one in variants if one.ablation == "similarity"] == [
        "f1",
        "exact",
        "embedding",
    ]
    assert {keepings[one.selection].agree for one in variants if one.ablation == "filters"} == {
        "same",
        "overlap",
        "answered",
        "any",
    }
    # Eighteen questions are made at most, so that twenty cannot be kept.
    assert [one.setting for one in plan_variants(FAST, "f1", ["questions"])[1]] == [
        "5 questions",
        "10 questions",
    ]
    assert plan_variants(PAPER, "f1", [])[1] == []


MILL = AnswerCandidate("the mill", 3, 11, "noun phrase")
words = st.lists(st.sampled_from(["who", "left", "the", "mill", "?", "why", "Ruth"]), max_size=6).map(
    " ".join
)
scores = st.one_of(st.floats(-9, 0), st.just(float("nan")), st.just(float("-inf")))
asked_of = st.lists(st.tuples(words, scores).map(lambda pair: Asked(*pair)), max_size=12)


def found(text: str) -> FoundAnswer:
    return FoundAnswer(text, 0, len(text), 0.0)


def test_cut() -> None:
    assert cut("Who left? Who came?") == "Who left?"
    assert cut("Nobody asks.") is None
    assert cut("?") == "?"


@given(st.lists(asked_of, max_size=4), st.integers(1, 4))
def test_tidied_questions_are_those_of_a_naive_loop(made: list[list[Asked]], shortest: int) -> None:
    result = tidy([(MILL, many) for many in made], shortest=shortest)
    flat = [one for many in made for one in many]
    kept: dict[str, float] = {}
    for one in sorted((one for one in flat if math.isfinite(one.score)), key=lambda one: -one.score):
        head = one.question.split("?")[0].strip() + "?"
        if "?" in one.question and len(head.split()) >= shortest and head not in kept:
            kept[head] = one.score
    assert [(one.question, one.score) for one in result.proposals] == list(kept.items())
    assert sum(result.dropped.values()) + len(kept) == len(flat)


def test_verdicts() -> None:
    for agree in AGREE:
        assert verdict("the mill", found("Mill"), agree) == ""
        assert bool(verdict("the mill", found(""), agree)) == (agree != "any")
    assert [bool(verdict("old mill", found("the mill"), agree)) for agree in AGREE] == [
        True,
        False,
        False,
        False,
    ]
    assert [bool(verdict("old mill", found("Ruth"), agree)) for agree in AGREE] == [True, True, False, False]


@given(
    st.lists(st.sampled_from(["the mill", "mill", "old mill", "Ruth", ""]), max_size=12),
    st.integers(1, 8),
    st.sampled_from(AGREE),
    st.sampled_from(PADDING),
    st.integers(0, 3),
    st.text(max_size=8),
)
def test_selections(
    answers: list[str], questions: int, agree: str, padding: str, seed: int, text: str
) -> None:
    keeping = Keeping(questions, agree=agree, padding=padding)  # type: ignore[arg-type]
    proposals = [Proposal(f"Who is number {place}?", -float(place), MILL) for place in range(len(answers))]
    given_back = select(proposals, [found(one) for one in answers], keeping, text=text, seed=seed)
    good = [
        place
        for place, one in enumerate(answers)
        if agree == "any"
        or (one and agree == "answered")
        or (one and agree == "overlap" and "mill" in one)
        or (agree == "same" and normalised(one) == "mill")
    ]
    places = list(given_back.places)
    kept = good[:questions]
    assert places[: len(kept)] == kept
    added = places[len(kept) :]
    if padding == "no":
        assert added == []
    elif padding == "kept" and kept:
        assert (len(places), given_back.padded) == (questions, 0)
        assert set(added) <= set(kept)
    else:
        assert not set(added) & set(kept)
        assert len(set(added)) == len(added) == given_back.padded
        assert len(places) == min(questions, len(answers))
    assert given_back == select(proposals, [found(one) for one in answers], keeping, text=text, seed=seed)


@given(st.lists(st.integers(0, 3), max_size=20), st.integers(1, 12))
def test_spread_questions_take_turns(about: list[int], wanted: int) -> None:
    answers = [AnswerCandidate(f"answer {n}", n, n + 5, "entity", "") for n in range(4)]
    proposals = [Proposal(f"Question {n}?", -float(n), answers[one]) for n, one in enumerate(about)]
    given = [found(one.expected.text) for one in proposals]
    keeping = Keeping(wanted, order="spread", padding="no")
    kept = select(proposals, given, keeping, text="").places
    assert len(kept) == min(wanted, len(about))
    rounds = [sum(about[earlier] == about[place] for earlier in range(place)) for place in kept]
    # No answer's second question before every answer's first; within a round the likeliest first.
    assert [(turn, place) for turn, place in zip(rounds, kept, strict=True)] == sorted(
        zip(rounds, kept, strict=True)
    )
    left_out = [place for place in range(len(about)) if place not in kept]
    turns = [sum(about[earlier] == about[place] for earlier in range(place)) for place in left_out]
    assert not kept or not turns or min(turns) >= max(rounds)


def test_chance_hangs_on_seed_text_and_number() -> None:
    proposals = [Proposal(f"Who is number {place}?", -float(place), MILL) for place in range(60)]
    nobody = [found("")] * 60

    def chosen(text: str, seed: int, questions: int = 8) -> tuple[int, ...]:
        return select(proposals, nobody, Keeping(questions), text=text, seed=seed).places

    assert len({chosen("A text.", seed) for seed in range(20)}) > 15
    assert len({chosen(f"Text {number}.", 0) for number in range(20)}) > 15
    assert chosen("A text.", 0, 8) != chosen("A text.", 0, 9)[:8]
    assert list(chosen("A text.", 0)) == sorted(chosen("A text.", 0))
    # Half a character is no reason to fail.
    assert len(chosen("\ud83d", 0)) == 8


def test_why_questions_were_dropped_is_counted_by_name() -> None:
    asked = [
        Asked("Who left the mill?", -1.0),
        Asked("Who left the mill? And why?", -2.0),
        Asked("Nobody asks", -0.5),
        Asked("Who left?", -0.6),
        Asked("Who is it then?", float("nan")),
        Asked("Who is it now?", float("inf")),
    ]
    result = tidy([(MILL, asked)], shortest=3)
    assert [(one.question, one.score, one.expected) for one in result.proposals] == [
        ("Who left the mill?", -1.0, MILL)
    ]
    assert result.dropped == {
        "questions without a question mark": 1,
        "questions of fewer than 3 tokens": 1,
        "questions asked before": 1,
        "questions without a probability": 2,
    }
    assert verdict("the mill", found(""), "same") == "the summary does not answer"
    assert verdict("the mill", found("Ruth"), "same") == "the summary answers differently"


def test_the_paper_preset_by_value() -> None:
    """Read anew: the presets of a program that runs are those it began with."""
    asking = Asking(
        answers=10,
        count=10,
        beams=10,
        min_tokens=8,
        max_tokens=60,
        length_penalty=1.0,
        block_ngrams=3,
        candidates="every",
        seed=0,
    )
    keeping = Keeping(20, 3, "answered", "removed", "likeliest")
    assert _paper() == PAPER == Preset(asking, keeping)
    assert Keeping(5) == Keeping(5, 3, "same", "removed", "likeliest")
    assert replace(asking, candidates="distinct", seed=4) == Asking(10, 10, 10, 8, 60, 1.0, 3, seed=4)


def test_a_setting_of_its_own_stands_beside_the_preset() -> None:
    found = _own("how many", read.whole())
    assert (found.default, found.about) == (None, "how many (none: the preset's)")
    assert (found.read("7"), found.read("none")) == (7, None)


def test_settings_of_every_name_take_the_place_of_the_preset() -> None:
    found = preset_of(
        resolved(
            preset="paper",
            candidates="distinct",
            answers=4,
            count=2,
            beams=3,
            questions=6,
            agree="any",
            padding="no",
            order="spread",
        ),
        seed=9,
    )
    assert found == Preset(
        replace(PAPER.asking, candidates="distinct", answers=4, count=2, beams=3, seed=9),
        Keeping(6, 3, "any", "no", "spread"),
    )
    assert preset_of({"preset": "fast"}) == FAST
    assert preset_of(resolved(count=10, beams=10)).asking.count == 10


def test_fill_by_value() -> None:
    """Chance is Python's own generator, seeded by the seed, the number of questions and the text."""
    proposals = [Proposal(f"Who is number {place}?", -float(place), MILL) for place in range(9)]
    answers = [found("the mill") if place in (1, 4) else found("") for place in range(9)]
    for padding in ("removed", "kept"):
        keeping = Keeping(6, padding=padding)
        generator = chance("questions\n3\n6\n", "A text.")
        if padding == "kept":
            expected = ((1, 4, *generator.choices([1, 4], k=4)), 0)
        else:
            others = [place for place in range(9) if place not in (1, 4)]
            expected = ((1, 4, *sorted(generator.sample(others, 4))), 4)
        assert select(proposals, answers, keeping, text="A text.", seed=3) == expected
    assert select(proposals, answers, Keeping(2), text="", seed=0) == ((1, 4), 0)
    assert select(proposals, answers, Keeping(1), text="", seed=0) == ((1,), 0)
    assert select(proposals, answers, Keeping(6), text="x") == select(
        proposals, answers, Keeping(6), text="x", seed=0
    )
    with pytest.raises(ValueError, match="zip"):
        select(proposals, answers[1:], Keeping(6), text="x")


def test_equal_questions_keep_the_likeliest_and_its_answer() -> None:
    ruth = AnswerCandidate("Ruth", 0, 4, "entity")
    result = tidy(
        [
            (MILL, [Asked("Who left it?", -2.0)]),
            (ruth, [Asked("Who left it?", -1.0), Asked("Who is it?", -2.0)]),
        ],
        shortest=3,
    )
    assert result.proposals == (Proposal("Who left it?", -1.0, ruth), Proposal("Who is it?", -2.0, ruth))
    assert result.dropped == {"questions asked before": 1}
    assert tidy([], shortest=3) == ((), {})
