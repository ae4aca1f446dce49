"""Length limits and copying, the longest run against a plain search over all runs."""

from __future__ import annotations

import time
from difflib import SequenceMatcher

import pytest
from hypothesis import given
from hypothesis import strategies as some

from ensue.benchmarks.crowd.writing import (
    LONGEST_COPY,
    MOST_WORDS,
    compared_words,
    copying_fault,
    length_fault,
    longest_shared_run,
    response_faults,
)

WORDS = some.lists(some.sampled_from("abc"), max_size=14)
STORY = (
    "When the lamp went out the keeper did not climb the stairs again, but sat with the dog at the foot of them and "
    "counted the waves until a pale line showed where the sea ended and the morning was about to begin."
)


@given(WORDS, WORDS)
def test_the_longest_run_is_the_longest_there_is(words: list[str], source: list[str]) -> None:
    run = longest_shared_run(words, source)
    wanted = SequenceMatcher(None, words, source, autojunk=False).find_longest_match()
    assert run.words == wanted.size
    if run.words:
        assert run.start == wanted.a
        assert words[run.start :][: run.words] == source[run.source_start :][: run.words]


@given(WORDS, WORDS)
def test_sharing_is_mutual(words: list[str], source: list[str]) -> None:
    assert longest_shared_run(words, source).words == longest_shared_run(source, words).words


@pytest.mark.parametrize(
    ("count", "kind"), [(0, "short"), (74, "short"), (75, None), (500, None), (501, "long")]
)
def test_limits_of_length(count: int, kind: str | None) -> None:
    fault = length_fault("word " * count)
    assert (fault.kind if fault else None) == kind


def test_a_copied_stretch_is_found_whatever_its_dress() -> None:
    stolen = STORY.upper().replace(",", " --").split()
    text = "In this story, " + " ".join(stolen[4:29]) + " and so it ends."
    fault = copying_fault(text, {"the story": STORY})
    assert fault is not None
    assert fault.message.startswith("24 words in a row are those of the story ('out the keeper did not climb")
    assert copying_fault(text, {"the story": STORY}, longest=24) is None
    assert copying_fault("A keeper waits for the morning.", {"the story": STORY}) is None
    assert copying_fault(text, {}) is None


def test_all_faults_of_a_response_are_named() -> None:
    faults = response_faults(STORY, "Another story.", ["Nothing like it.", STORY])
    assert [fault.kind for fault in faults] == ["short", "copied"]
    assert "answer 2" in faults[1].message
    own = " ".join(f"word{number}" for number in range(100))
    assert response_faults(own, STORY, [STORY]) == []


def test_a_long_response_against_a_long_story_takes_a_moment() -> None:
    story = [f"w{number % 997}" for number in range(6_000)]
    response = [f"w{(number * 7) % 991}" for number in range(MOST_WORDS)]
    response[100:140] = story[3_000:3_040]
    begun = time.perf_counter()
    assert longest_shared_run(response, story).words >= 40 > LONGEST_COPY
    assert time.perf_counter() - begun < 2.0


def test_apostrophes_keep_words_together() -> None:
    assert compared_words("The keeper’s dog didn't") == ["the", "keeper's", "dog", "didn't"]
