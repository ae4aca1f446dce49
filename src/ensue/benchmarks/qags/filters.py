"""Which of the questions that were made up are kept: tidied, answerable by the summary, the likeliest first."""

from __future__ import annotations

import hashlib
import math
import random
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from ensue.benchmarks.qags.candidates import Candidate
from ensue.benchmarks.qags.choices import Agree, Keeping
from ensue.metrics.answers import exact_match, token_f1
from ensue.models.protocols import Asked, FoundAnswer

NO_MARK = "questions without a question mark"
SHORT = "questions of fewer than {} tokens"
DUPLICATE = "questions asked before"
NO_CHANCE = "questions without a probability"
UNANSWERED = "the summary does not answer"
DIFFERENT = "the summary answers differently"


class Proposal(NamedTuple):
    """A question, its log-probability, and the part of the summary it was asked about."""

    question: str
    score: float
    expected: Candidate


class Tidied(NamedTuple):
    """Distinct questions, the likeliest first, and how many were dropped for which reason."""

    proposals: tuple[Proposal, ...]
    dropped: Mapping[str, int]


class Selection(NamedTuple):
    """Places of the questions a score is made of, in order; `padded` of them, the last, did not pass the filters."""

    places: tuple[int, ...]
    padded: int


def cut(question: str) -> str | None:
    """A question up to its first question mark; None where it has none.

    >>> cut(" Who left? Who came? ")
    'Who left?'
    """
    asked, mark, _ = question.partition("?")
    return f"{asked.strip()}?" if mark else None


def tidy(asked: Iterable[tuple[Candidate, Sequence[Asked]]], *, shortest: int) -> Tidied:
    """The rules that need no model (A.3.2): cut after the first mark, no duplicates, none shorter than three tokens.

    Of equal questions the likeliest stays. Tokens are divided by spaces, as in the authors' code.
    """
    dropped: Counter[str] = Counter()
    found: dict[str, Proposal] = {}
    flat = [(candidate, one) for candidate, many in asked for one in many]
    usable = [pair for pair in flat if math.isfinite(pair[1].score)]
    if len(usable) < len(flat):
        dropped[NO_CHANCE] = len(flat) - len(usable)
    # Sorting keeps the order of equals, so that nothing hangs on how questions are stored.
    for candidate, (written, score) in sorted(usable, key=lambda pair: -pair[1].score):
        question = cut(written)
        if question is None:
            dropped[NO_MARK] += 1
        elif len(question.split()) < shortest:
            dropped[SHORT.format(shortest)] += 1
        elif question in found:
            dropped[DUPLICATE] += 1
        else:
            found[question] = Proposal(question, score, candidate)
    return Tidied(tuple(found.values()), dict(dropped))


_FITTING: dict[Agree, Callable[[str, str], bool]] = {
    "same": lambda given, expected: exact_match(given, expected) > 0.0,
    "overlap": lambda given, expected: token_f1(given, expected) > 0.0,
    "answered": lambda given, expected: True,
}


def verdict(expected: str, found: FoundAnswer, agree: Agree) -> str:
    """Why a question is removed, by what the summary answers to it; nothing where it is kept."""
    if agree == "any":
        return ""
    if not found.text:
        return UNANSWERED
    return "" if _FITTING[agree](found.text, expected) else DIFFERENT


def select(
    proposals: Sequence[Proposal],
    answers: Sequence[FoundAnswer],
    keeping: Keeping,
    *,
    text: str,
    seed: int = 0,
) -> Selection:
    """The questions of a summary's score: the likeliest that pass, filled up at random where there are too few.

    Chance hangs on the seed and on the summary's text alone. Fewer come back where there are not enough to fill up.
    """
    pairs = list(zip(proposals, answers, strict=True))
    passed = [
        place
        for place, (proposal, found) in enumerate(pairs)
        if not verdict(proposal.expected.text, found, keeping.agree)
    ]
    if keeping.order == "spread":
        passed = _spread(passed, proposals)
    kept = passed[: keeping.questions]
    missing = keeping.questions - len(kept)
    if missing == 0 or keeping.padding == "no":
        return Selection(tuple(kept), 0)
    generator = _chance(text, seed, keeping.questions)
    if keeping.padding == "kept" and kept:
        return Selection((*kept, *generator.choices(kept, k=missing)), 0)
    # With nothing kept there is nothing to repeat, so that removed ones are all there is.
    others = [place for place in range(len(pairs)) if place not in set(kept)]
    added = sorted(generator.sample(others, min(missing, len(others))))
    return Selection((*kept, *added), len(added))


def _spread(places: Sequence[int], proposals: Sequence[Proposal]) -> list[int]:
    """The first question about every answer, then the second about every one, each round the likeliest first."""
    asked: Counter[Candidate] = Counter()
    rounds = []
    for place in places:
        about = proposals[place].expected
        rounds.append((asked[about], place))
        asked[about] += 1
    return [place for _, place in sorted(rounds)]


def _chance(text: str, seed: int, n: int) -> random.Random:
    digest = hashlib.sha256(
        f"questions\n{seed}\n{n}\n".encode() + text.encode("utf-8", "surrogatepass")
    ).digest()
    return random.Random(int.from_bytes(digest[:8], "big"))
