"""What QAGS can be told: how questions are made, which of them are kept, and the two presets."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

from ensue.benchmarks import settings as read
from ensue.benchmarks.base import Setting
from ensue.benchmarks.qags.published import generation_settings
from ensue.errors import EnsueError

Agree = Literal["same", "overlap", "answered", "any"]
Padding = Literal["removed", "kept", "none"]
Order = Literal["likeliest", "spread"]
ORDER: tuple[Order, ...] = ("likeliest", "spread")
AGREE: tuple[Agree, ...] = ("same", "overlap", "answered", "any")
PADDING: tuple[Padding, ...] = ("removed", "kept", "none")


@dataclass(frozen=True)
class Asking:
    """How many answers of a summary are asked about, how many questions each gets, and how they are searched for."""

    answers: int
    count: int
    beams: int
    min_tokens: int
    max_tokens: int
    length_penalty: float
    block_ngrams: int
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
    authors' code takes them from all that were made; from those `kept`, some then counting twice; or `none`. `order`
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
    )
    return Preset(asking, Keeping(printed.questions, printed.shortest_question))


PAPER = _paper()
# For two cores: half the answers, a beam of four, of which three are read, and half the questions.
FAST = Preset(
    replace(PAPER.asking, answers=6, count=3, beams=4, max_tokens=32), replace(PAPER.keeping, questions=10)
)
PRESETS = {"paper": PAPER, "fast": FAST}

PRESET_SETTINGS = {
    "preset": Setting(
        "paper",
        "paper (10 answers, 10 questions each, 20 kept) or fast (6, 3 and 10, a narrower beam)",
        read.one_of(*PRESETS),
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
        "same",
        "the summary must answer as expected: same, overlap (a word in common), answered (anything), any (or not)",
        read.one_of(*AGREE),
    ),
    "padding": Setting(
        "removed",
        "too few questions are filled up with removed ones, with kept ones again, or none",
        read.one_of(*PADDING),
    ),
    "order": Setting(
        "likeliest",
        "of too many questions keep the likeliest, or those that spread over the answers",
        read.one_of(*ORDER),
    ),
}


def preset_of(settings: dict[str, Any], seed: int = 0) -> Preset:
    """The preset with what was set beside it in place."""
    base = PRESETS[settings["preset"]]
    given = {key: settings[key] for key in ("answers", "count", "beams") if settings.get(key) is not None}
    asking = replace(base.asking, **given, seed=seed)
    if asking.count > asking.beams:
        raise EnsueError(
            f"A search {asking.beams} wide cannot give {asking.count} questions about each answer; "
            f"set beams={asking.count} or count={asking.beams}."
        )
    keeping = replace(
        base.keeping, agree=settings["agree"], padding=settings["padding"], order=settings["order"]
    )
    if settings.get("questions") is not None:
        keeping = replace(keeping, questions=settings["questions"])
    return Preset(asking, keeping)
