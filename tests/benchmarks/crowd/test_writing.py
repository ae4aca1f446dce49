"""Copying: the longest run against a plain search over all runs."""

from __future__ import annotations

from difflib import SequenceMatcher

from hypothesis import given
from hypothesis import strategies as some

from ensue.benchmarks.crowd.writing import (
    LONGEST_COPY,
    MOST_WORDS,
    compared_words,
    copying_fault,
    longest_shared_run,
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


def test_a_copied_stretch_is_found_whatever_its_dress() -> None:
    stolen = STORY.upper().replace(",", " --").split()
    text = "In this story, " + " ".join(stolen[4:29]) + " and so it ends."
    fault = copying_fault(text, {"the story": STORY})
    assert fault is not None
    assert fault.startswith("24 words in a row are those of the story ('out the keeper did not climb")
    assert copying_fault(text, {"the story": STORY}, longest=24) is None
    assert copying_fault("A keeper waits for the morning.", {"the story": STORY}) is None
    assert copying_fault(text, {}) is None


def test_the_source_that_was_copied_from_is_named() -> None:
    fault = copying_fault(
        STORY, {"the story": "Another story.", "answer 1": "Nothing like it.", "answer 2": STORY}
    )
    assert fault is not None
    assert "answer 2" in fault
    own = " ".join(f"word{number}" for number in range(100))
    assert copying_fault(own, {"the story": STORY, "answer 1": STORY}) is None


def test_a_long_response_against_a_long_story() -> None:
    story = [f"w{number % 997}" for number in range(6_000)]
    response = [f"w{(number * 7) % 991}" for number in range(MOST_WORDS)]
    response[100:140] = story[3_000:3_040]
    assert longest_shared_run(response, story).words >= 40 > LONGEST_COPY


def test_apostrophes_keep_words_together() -> None:
    assert compared_words("The keeper’s dog didn't") == ["the", "keeper's", "dog", "didn't"]
