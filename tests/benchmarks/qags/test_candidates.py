"""Answer candidates: distinct, in place, sampled and padded by rule; found by the real pipeline where it is there."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ensue.benchmarks.qags.candidates import (
    ANSWERS,
    CHOICES,
    AnswerCandidate,
    SpacyFinder,
    choose_answers,
    distinct,
    every,
    load_pipeline,
)
from ensue.errors import EnsueError
from ensue.metrics.answers import normalised

TEXT = "Mrs. Anna Field crossed the Thames on 4 May with two brown dogs. She sold them to the Mayor, who thanked her."


def candidate(text: str, start: int, kind: str = "noun phrase") -> AnswerCandidate:
    return AnswerCandidate(text, start, start + len(text), kind)  # type: ignore[arg-type]


def listed(count: int) -> list[AnswerCandidate]:
    return [candidate(f"phrase {number}", 20 * number) for number in range(count)]


def test_one_of_each_is_kept_in_the_order_of_the_text() -> None:
    found = distinct(
        [
            candidate("the river", 30),
            candidate("The River", 4),
            candidate("Anna", 0, "entity"),
            candidate("Anna", 0),
            candidate("river", 90),
            candidate("--", 60),
            candidate("a boat", 50),
        ]
    )
    assert [(one.text, one.kind) for one in found] == [
        ("Anna", "entity"),
        ("The River", "noun phrase"),
        ("a boat", "noun phrase"),
    ]


def test_pronouns_are_answers_by_the_appendix_alone() -> None:
    found = [
        candidate("he", 40, "pronoun"),
        candidate("the mill", 0),
        candidate("mill", 4, "entity"),
        candidate("he", 12, "pronoun"),
        candidate("The mill", 60),
        candidate(" ", 70),
    ]
    assert [(one.text, one.start) for one in every(found)] == [
        ("the mill", 0),
        ("mill", 4),
        ("he", 12),
        ("The mill", 60),
    ]
    assert [one.text for one in distinct(found)] == ["the mill"]
    assert {"every": every, "distinct": distinct} == CHOICES


@given(st.integers(1, 40), st.integers(1, 15), st.integers(0, 3), st.text(max_size=20))
def test_exactly_n_answers_are_chosen(count: int, n: int, seed: int, text: str) -> None:
    candidates = listed(count)
    found = choose_answers(candidates, text, n=n, seed=seed)
    assert len(found) == n
    assert set(found) <= set(candidates)
    if count >= n:
        assert len(set(found)) == n
        assert found == sorted(found, key=lambda one: one.start)
    else:
        assert found[:count] == candidates
    assert choose_answers(candidates, text, n=n, seed=seed) == found


def test_chance_hangs_on_seed_and_text() -> None:
    chosen = {tuple(choose_answers(listed(30), "A text.", seed=seed)) for seed in range(20)}
    assert len(chosen) > 15
    assert len({tuple(choose_answers(listed(30), f"Text {number}.")) for number in range(20)}) > 15


def test_every_candidate_is_as_likely_to_be_chosen() -> None:
    counts = dict.fromkeys(listed(20), 0)
    for number in range(1_000):
        for one in choose_answers(listed(20), f"Text {number}."):
            counts[one] += 1
    # Ten of twenty each time: 500 on average, and four standard deviations of 16 about it.
    assert 436 < min(counts.values()) <= max(counts.values()) < 564


def test_of_none_there_are_none() -> None:
    assert choose_answers([], TEXT) == []
    with pytest.raises(ValueError, match="one at least"):
        choose_answers(listed(3), TEXT, n=0)


def test_without_spacy_one_sentence_says_what_to_install() -> None:
    code = (
        "import sys; sys.modules['spacy'] = None\n"
        "from ensue.benchmarks.qags.candidates import load_pipeline\n"
        "from ensue.errors import EnsueError\n"
        "try:\n    load_pipeline()\nexcept EnsueError as error:\n    print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=os.environ
    )
    assert done.stdout.strip() == (
        "Finding answer candidates needs spaCy, which is not installed; run: pip install 'ensue[qags]'."
    )


@pytest.mark.slow
def test_the_real_pipeline_finds_names_and_phrases_where_they_stand() -> None:
    pytest.importorskip("spacy")
    everything, empty, dots = SpacyFinder().candidates([TEXT, "", " . ! "])
    assert (empty, dots) == ([], [])
    found = distinct(everything)
    assert all(TEXT[one.start : one.end] == one.text for one in found)
    assert len({normalised(one.text) for one in found}) == len(found)
    names = {one.text: (one.kind, one.label) for one in found}
    assert names["Anna Field"] == ("entity", "PERSON")
    assert names["4 May"] == ("entity", "DATE")
    assert names["two brown dogs"] == ("noun phrase", "")
    assert not {"She", "them", "her", "who"} & set(names)
    assert len(choose_answers(found, TEXT)) == ANSWERS


@pytest.mark.slow
def test_pronouns_are_there_when_asked_for_and_a_folder_without_a_pipeline_is_refused(tmp_path: Path) -> None:
    pytest.importorskip("spacy")
    from ensue.fetch.catalog import catalog
    from ensue.fetch.store import pull

    folder = pull(catalog()["en_core_web_sm"])
    assert not list(folder.rglob("*.py"))
    assert json.loads((folder / "ensue-card.json").read_text())["licence"] == "MIT"
    (found,) = SpacyFinder().candidates([TEXT])
    assert {one.text for one in found if one.kind == "pronoun"} == {"She", "them", "who", "her"}
    # A.3.2 names no exception, and two wordings are two answers.
    chosen = {one.text for one in every(found)}
    assert chosen >= {"She", "them", "who", "her", "Anna Field", "two brown dogs"}
    assert chosen == {one.text for one in found}
    with pytest.raises(EnsueError, match="is not a spaCy pipeline that can be loaded"):
        load_pipeline(tmp_path)
