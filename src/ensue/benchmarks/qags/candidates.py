"""Answer candidates of a summary: its named entities and noun phrases, as a spaCy pipeline finds them."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol

from ensue.errors import TooLong
from ensue.fetch.pipeline import load_spacy, pipeline_identity
from ensue.metrics.answers import normalised

# How many answers QAGS asks about in each summary.
ANSWERS = 10
Kind = Literal["entity", "noun phrase", "pronoun"]
Choice = Literal["distinct", "every"]


class AnswerCandidate(NamedTuple):
    """A span of a text, `text[start:end]`, that may be the answer to a question; `label` is an entity's type."""

    text: str
    start: int
    end: int
    kind: Kind
    label: str = ""


class Finder(Protocol):
    """Finds all that can be asked about, pronouns too, and says what it is: two of one identity find the same."""

    @property
    def identity(self) -> str: ...

    def candidates(self, texts: Iterable[str]) -> Iterator[list[AnswerCandidate]]: ...


class SpacyFinder:
    """Finds names and noun phrases by spaCy's small English pipeline, fetched on first use.

    spaCy is loaded when a text is to be read: a machine without it can go on from what another one found.
    """

    @property
    def identity(self) -> str:
        return pipeline_identity()

    def candidates(self, texts: Iterable[str]) -> Iterator[list[AnswerCandidate]]:
        """Yield all candidates of each text, in the order in which they stand in it; a text may have none."""
        given = list(texts)
        pipeline = load_pipeline()
        limit = pipeline.max_length
        if long := [place for place, text in enumerate(given) if len(text) > limit]:
            raise TooLong(
                f"A text of {max(map(len, given)):,} characters is more than the {limit:,} that spaCy reads; "
                f"shorten it.",
                long,
            )
        for document in pipeline.pipe(given, batch_size=64):
            yield sorted(_spans(document), key=_place)


def distinct(candidates: Iterable[AnswerCandidate]) -> list[AnswerCandidate]:
    """Return the candidates by their place, one of each that differ only in case, articles and punctuation.

    The first that stands in the text is kept, and of an entity and a noun phrase at one place the entity. What
    is left of nothing but articles and punctuation is no answer.

    A pronoun is a noun phrase to spaCy, but "he" is an answer that says nothing about the facts.

    >>> found = [AnswerCandidate("the Ark", 0, 7, "noun phrase"), AnswerCandidate("Ark", 4, 7, "entity", "PRODUCT")]
    >>> [one.text for one in distinct(found)]
    ['the Ark']
    """
    return _first_of_each(candidates, lambda one: "" if one.kind == "pronoun" else normalised(one.text))


def every(candidates: Iterable[AnswerCandidate]) -> list[AnswerCandidate]:
    """Return the candidates by their place, pronouns too, the first of each wording: all that A.3.2 chooses from.

    >>> found = [AnswerCandidate("the Ark", 0, 7, "noun phrase"), AnswerCandidate("Ark", 4, 7, "entity", "PRODUCT")]
    >>> found += [AnswerCandidate("it", 9, 11, "pronoun"), AnswerCandidate("it", 20, 22, "pronoun")]
    >>> [one.text for one in every(found)]
    ['the Ark', 'Ark', 'it']
    """
    return _first_of_each(candidates, lambda one: one.text if one.text.strip() else "")


def _first_of_each(
    candidates: Iterable[AnswerCandidate], name: Callable[[AnswerCandidate], str]
) -> list[AnswerCandidate]:
    """Return the first candidate of each name, by its place; what has none is left out."""
    found: dict[str, AnswerCandidate] = {}
    for candidate in sorted(candidates, key=_place):
        if key := name(candidate):
            found.setdefault(key, candidate)
    return list(found.values())


# Which of a text's candidates may be asked about.
CHOICES: Mapping[Choice, Callable[[Iterable[AnswerCandidate]], list[AnswerCandidate]]] = {
    "distinct": distinct,
    "every": every,
}


def choose_answers(
    candidates: Sequence[AnswerCandidate], text: str, *, n: int = ANSWERS, seed: int = 0
) -> list[AnswerCandidate]:
    """Choose exactly n: a random sample where there are more, some at random repeated where there are fewer (A.3.2).

    They come in the order of the text, repeated ones last. Chance hangs on the seed and on the text alone, so
    that a summary has the same answers whatever stands beside it. Of no candidates none can be made.
    """
    if n < 1:
        raise ValueError(f"Answers are chosen one at least, not {n}.")
    if not candidates:
        return []
    generator = chance(f"{seed}\n{n}\n", text)
    if len(candidates) >= n:
        places = sorted(generator.sample(range(len(candidates)), n))
        return [candidates[place] for place in places]
    return [*candidates, *generator.choices(candidates, k=n - len(candidates))]


def chance(words: str, text: str) -> random.Random:
    """Return a generator that hangs on these words and a text alone."""
    digest = hashlib.sha256(words.encode() + text.encode("utf-8", "surrogatepass")).digest()
    return random.Random(int.from_bytes(digest[:8], "big"))


def _place(candidate: AnswerCandidate) -> tuple[int, bool, int]:
    """Return where a candidate comes in the order of a text; of two that begin together the entity is first."""
    return candidate.start, candidate.kind != "entity", candidate.end


def _spans(document: Any) -> Iterator[AnswerCandidate]:
    for entity in document.ents:
        yield AnswerCandidate(entity.text, entity.start_char, entity.end_char, "entity", entity.label_)
    for phrase in document.noun_chunks:
        kind: Kind = "pronoun" if all(token.pos_ == "PRON" for token in phrase) else "noun phrase"
        yield AnswerCandidate(phrase.text, phrase.start_char, phrase.end_char, kind)


def load_pipeline(folder: Path | None = None) -> Any:
    """Load the spaCy pipeline of a folder, by default the small English one."""
    return load_spacy("Finding answer candidates", "qags", folder)
