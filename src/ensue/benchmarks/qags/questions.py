"""Which questions are made about a summary and which of them are kept: the rules, the presets, and the filters."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

from ensue.benchmarks import settings as read
from ensue.benchmarks.base import Setting
from ensue.benchmarks.published import facts_of
from ensue.benchmarks.qags.candidates import CHOICES, AnswerCandidate, Choice, chance
from ensue.errors import EnsueError
from ensue.metrics.answers import exact_match, token_f1
from ensue.models.protocols import Asked, FoundAnswer

Agree = Literal["same", "overlap", "answered", "any"]
Padding = Literal["removed", "kept", "no"]
Order = Literal["likeliest", "spread"]
ORDER: tuple[Order, ...] = ("likeliest", "spread")
AGREE: tuple[Agree, ...] = ("same", "overlap", "answered", "any")
PADDING: tuple[Padding, ...] = ("removed", "kept", "no")
NO_MARK = "questions without a question mark"
SHORT = "questions of fewer than {} tokens"
DUPLICATE = "questions asked before"
NO_CHANCE = "questions without a probability"
UNANSWERED = "the summary does not answer"
DIFFERENT = "the summary answers differently"


# What a Questioner is given of an `Asking`.
_SEARCH = ("count", "beams", "min_tokens", "max_tokens", "length_penalty", "block_ngrams")


@dataclass(frozen=True)
class Asking:
    """How many answers of a summary are asked about, how many questions each gets, and how they are searched for.

    `candidates` is what the answers are chosen from: `every` name and noun phrase, pronouns too, as appendix A.3.2
    has it, or `distinct` ones, no pronouns and none that differ only in case, articles and punctuation.
    """

    answers: int
    count: int
    beams: int
    min_tokens: int
    max_tokens: int
    length_penalty: float
    block_ngrams: int
    candidates: Choice = "distinct"
    seed: int = 0

    def search(self) -> dict[str, Any]:
        """Return the options of `Questioner.ask`."""
        return {name: getattr(self, name) for name in _SEARCH}


@dataclass(frozen=True)
class Keeping:
    """Which questions are kept.

    `agree` is what the answer that the summary gives must have to do with the one that was asked for: `same` (equal
    once normalised, section 4.4), `overlap` (a word in common), `answered` (appendix A.3.2: any answer) or `any`
    (there need be none). `padding` is where questions come from when too few are kept: from those `removed`, as the
    authors' code takes them from all that were made; from those `kept`, some then counting twice; or `no`. `order`
    is which of too many are kept: the `likeliest` (section 4.4), or `spread` over the answers, the likeliest about
    each first, so that no answer is asked about twice before every other was once.
    """

    questions: int
    shortest: int = 3
    agree: Agree = "same"
    padding: Padding = "removed"
    order: Order = "likeliest"


@dataclass(frozen=True)
class Preset:
    """How questions are made, and which are kept."""

    asking: Asking
    keeping: Keeping


def _paper() -> Preset:
    printed = facts_of("ensue.benchmarks.qags")["generation"]
    asking = Asking(
        answers=printed["answers"],
        count=printed["beams"],
        beams=printed["beams"],
        min_tokens=printed["least_tokens"],
        max_tokens=printed["most_tokens"],
        length_penalty=printed["length_penalty"],
        block_ngrams=printed["blocked_ngram"],
        candidates="every",
    )
    return Preset(asking, Keeping(printed["questions"], printed["shortest_question"], agree="answered"))


# Appendix A.3.2 to the letter.
PAPER = _paper()
# No pronouns, and the summary must answer what was asked about, as section 4.4 has it and the appendix has not.
STRICT = Preset(replace(PAPER.asking, candidates="distinct"), replace(PAPER.keeping, agree="same"))
# The same questions, chosen otherwise: the likeliest twenty of a hundred ask much the same two or three things.
DEFAULT = Preset(STRICT.asking, replace(STRICT.keeping, agree="overlap", order="spread"))
# For two cores: one question about each answer, without a search, and half as many kept.
FAST = Preset(
    replace(DEFAULT.asking, count=1, beams=1, max_tokens=32), replace(DEFAULT.keeping, questions=10)
)
PRESETS = {"default": DEFAULT, "paper": PAPER, "strict": STRICT, "fast": FAST}

_KEPT = ("questions", "agree", "padding", "order")
_ASKED = ("candidates", "answers", "count", "beams")


def _own(about: str, reader: Callable[[str], Any]) -> Setting:
    """Return a setting that takes the place of what the preset says."""
    return Setting(None, f"{about} (none: the preset's)", read.optional(reader))


PRESET_SETTINGS = {
    "preset": Setting(
        "default",
        "paper (appendix A.3.2: 10 answers, 10 questions each, the 20 likeliest that the summary answers), strict "
        "(no pronouns, and the answer must be the one asked about), default (strict, but 20 spread over the answers "
        "and a weaker filter) or fast (one question each, no beam, 10 kept)",
        read.one_of(*PRESETS),
    ),
    "candidates": _own(
        "what answers are chosen from: every name and noun phrase, pronouns too, or distinct ones without pronouns",
        read.one_of(*CHOICES),
    ),
    "answers": _own("answers of a summary that are asked about", read.whole()),
    "count": _own("questions about each answer", read.whole()),
    "beams": _own("width of the search for questions", read.whole()),
    "questions": _own("questions kept of a summary", read.whole()),
    "agree": _own(
        "the summary must answer as expected: same, overlap (a word in common), answered (anything), any (or not)",
        read.one_of(*AGREE),
    ),
    "padding": _own(
        "too few questions are filled up with removed ones, with kept ones again, or not: no",
        read.one_of(*PADDING),
    ),
    "order": _own(
        "of too many questions keep the likeliest, or those that spread over the answers", read.one_of(*ORDER)
    ),
}


def preset_of(settings: dict[str, Any], seed: int = 0) -> Preset:
    """Return the preset with what was set beside it in place."""
    base = PRESETS[settings["preset"]]
    given = {key: settings[key] for key in (*_ASKED, *_KEPT) if settings.get(key) is not None}
    asking = replace(base.asking, **{key: given[key] for key in _ASKED if key in given}, seed=seed)
    if asking.count > asking.beams:
        raise EnsueError(
            f"A search {asking.beams} wide cannot give {asking.count} questions about each answer; "
            f"set beams={asking.count} or count={asking.beams}."
        )
    return Preset(asking, replace(base.keeping, **{key: given[key] for key in _KEPT if key in given}))


class Proposal(NamedTuple):
    """A question, its log-probability, and the part of the summary it was asked about."""

    question: str
    score: float
    expected: AnswerCandidate


class Tidied(NamedTuple):
    """Distinct questions, the likeliest first, and how many were dropped for which reason."""

    proposals: tuple[Proposal, ...]
    dropped: Mapping[str, int]


class Selection(NamedTuple):
    """Places of the questions a score is made of, in order; `padded` of them, the last, did not pass the filters."""

    places: tuple[int, ...]
    padded: int


def cut(question: str) -> str | None:
    """Return a question up to its first question mark; None where it has none.

    >>> cut(" Who left? Who came? ")
    'Who left?'
    """
    asked, mark, _ = question.partition("?")
    return f"{asked.strip()}?" if mark else None


def tidy(asked: Iterable[tuple[AnswerCandidate, Sequence[Asked]]], *, shortest: int) -> Tidied:
    """Apply the rules that need no model (A.3.2): cut after the first mark, no duplicates, none below three tokens.

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
    """Return why a question is removed, by what the summary answers to it; nothing where it is kept."""
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
    """Select the questions of a summary's score: the likeliest that pass, filled up at random where too few do.

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
    generator = chance(f"questions\n{seed}\n{keeping.questions}\n", text)
    if keeping.padding == "kept" and kept:
        return Selection((*kept, *generator.choices(kept, k=missing)), 0)
    # With nothing kept there is nothing to repeat, so that removed ones are all there is.
    others = [place for place in range(len(pairs)) if place not in set(kept)]
    added = sorted(generator.sample(others, min(missing, len(others))))
    return Selection((*kept, *added), len(added))


def _spread(places: Sequence[int], proposals: Sequence[Proposal]) -> list[int]:
    """Put the first question about every answer first, then the second about every one, and so on."""
    asked: Counter[AnswerCandidate] = Counter()
    rounds = []
    for place in places:
        about = proposals[place].expected
        rounds.append((asked[about], place))
        asked[about] += 1
    return [place for _, place in sorted(rounds)]
