"""What QAGS can be told: how questions are made, which of them are kept, and the presets."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

from ensue.benchmarks import settings as read
from ensue.benchmarks.base import Setting
from ensue.benchmarks.qags.candidates import CHOICES, Choice
from ensue.benchmarks.qags.published import generation_settings
from ensue.errors import EnsueError

Agree = Literal["same", "overlap", "answered", "any"]
Padding = Literal["removed", "kept", "no"]
Order = Literal["likeliest", "spread"]
ORDER: tuple[Order, ...] = ("likeliest", "spread")
AGREE: tuple[Agree, ...] = ("same", "overlap", "answered", "any")
PADDING: tuple[Padding, ...] = ("removed", "kept", "no")


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
        """What a Questioner is told."""
        return {
            "count": self.count,
            "beams": self.beams,
            "min_tokens": self.min_tokens,
            "max_tokens": self.max_tokens,
            "length_penalty": self.length_penalty,
            "block_ngrams": self.block_ngrams,
        }


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
    """Both of them together."""

    asking: Asking
    keeping: Keeping


def _paper() -> Preset:
    printed = generation_settings()
    asking = Asking(
        answers=printed.answers,
        count=printed.beams,
        beams=printed.beams,
        min_tokens=printed.least_tokens,
        max_tokens=printed.most_tokens,
        length_penalty=printed.length_penalty,
        block_ngrams=printed.blocked_ngram,
        candidates="every",
    )
    return Preset(asking, Keeping(printed.questions, printed.shortest_question, agree="answered"))


# Appendix A.3.2 to the letter.
PAPER = _paper()
# No pronouns, and the summary must answer what was asked about, as section 4.4 has it and the appendix has not.
STRICT = Preset(replace(PAPER.asking, candidates="distinct"), replace(PAPER.keeping, agree="same"))
# The same questions, chosen otherwise: the likeliest twenty of a hundred ask much the same two or three things.
DEFAULT = Preset(STRICT.asking, replace(STRICT.keeping, agree="overlap", order="spread"))
# For two cores: one question about each answer, without a search, and half as many kept.
FAST = Preset(
    replace(DEFAULT.asking, count=1, beams=1, max_tokens=32),
    replace(DEFAULT.keeping, questions=10),
)
PRESETS = {"default": DEFAULT, "paper": PAPER, "strict": STRICT, "fast": FAST}

_KEPT = ("questions", "agree", "padding", "order")
_ASKED = ("candidates", "answers", "count", "beams")

PRESET_SETTINGS = {
    "preset": Setting(
        "default",
        "paper (appendix A.3.2: 10 answers, 10 questions each, the 20 likeliest that the summary answers), strict "
        "(no pronouns, and the answer must be the one asked about), default (strict, but 20 spread over the answers "
        "and a weaker filter) or fast (one question each, no beam, 10 kept)",
        read.one_of(*PRESETS),
    ),
    "candidates": Setting(
        None,
        "what answers are chosen from: every name and noun phrase, pronouns too, or distinct ones without pronouns "
        "(none: the preset's)",
        read.optional(read.one_of(*CHOICES)),
    ),
    "answers": Setting(
        None, "answers of a summary that are asked about (none: the preset's)", read.optional(read.whole())
    ),
    "count": Setting(None, "questions about each answer (none: the preset's)", read.optional(read.whole())),
    "beams": Setting(
        None, "width of the search for questions (none: the preset's)", read.optional(read.whole())
    ),
    "questions": Setting(
        None, "questions kept of a summary (none: the preset's)", read.optional(read.whole())
    ),
    "agree": Setting(
        None,
        "the summary must answer as expected: same, overlap (a word in common), answered (anything), any (or not); "
        "none: as the preset has it",
        read.optional(read.one_of(*AGREE)),
    ),
    "padding": Setting(
        None,
        "too few questions are filled up with removed ones, with kept ones again, or not: no (none: the preset's)",
        read.optional(read.one_of(*PADDING)),
    ),
    "order": Setting(
        None,
        "of too many questions keep the likeliest, or those that spread over the answers (none: the preset's)",
        read.optional(read.one_of(*ORDER)),
    ),
}


def preset_of(settings: dict[str, Any], seed: int = 0) -> Preset:
    """The preset with what was set beside it in place."""
    base = PRESETS[settings["preset"]]
    given = {key: settings[key] for key in (*_ASKED, *_KEPT) if settings.get(key) is not None}
    asking = replace(base.asking, **{key: given[key] for key in _ASKED if key in given}, seed=seed)
    if asking.count > asking.beams:
        raise EnsueError(
            f"A search {asking.beams} wide cannot give {asking.count} questions about each answer; "
            f"set beams={asking.count} or count={asking.beams}."
        )
    return Preset(asking, replace(base.keeping, **{key: given[key] for key in _KEPT if key in given}))
