"""ChapterBreak by generation: a model reads the end of a chapter and names the beginning that comes next."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ensue.benchmarks import naming
from ensue.benchmarks.base import RunContext
from ensue.benchmarks.chapterbreak.ranking import SuffixChoice, ladder
from ensue.errors import EnsueError
from ensue.models.protocols import Generator, Model, TextCutter, require

_BEFORE = "The end of a chapter of a book:\n\n{context}\n\nBeginnings of chapters of the same book:"
_QUESTION = "Which text is the beginning of the very next chapter?"
# Tokens that instructions and letters take, at most.
_WORDS = 120


class NamedSuffix(NamedTuple):
    """What was chosen of a question's suffixes of one kind, after a prefix and cut to a suffix length."""

    question: SuffixChoice
    kind: str
    prefix_tokens: int
    suffix_tokens: int
    chosen: naming.Chosen


def name_suffixes(
    model: Model,
    questions: Sequence[SuffixChoice],
    settings: Mapping[str, Any],
    seed: int,
    context: RunContext,
) -> tuple[list[NamedSuffix], Counter[str]]:
    """Ask about every example at every length; context and suffixes are cut in the model's own tokens."""
    generator = require(model, Generator, "Choice by generation")
    cutter = require(model, TextCutter, "ChapterBreak by generation")
    notes: Counter[str] = Counter()
    tokens = settings["answer_tokens"]
    found = []
    for suffix in sorted(settings["suffix_tokens"]):
        most = max(len(texts) + 1 for one in questions for texts in one.negatives.values())
        room = generator.card.max_length
        fit = None if room is None else room - most * suffix - _WORDS - tokens
        if fit is not None and fit < 1:
            raise EnsueError(
                f"{generator.card.name} takes {room} tokens, which leaves no prefix beside {most} suffixes of "
                f"{suffix}; choose shorter ones with --set suffix_tokens=N."
            )
        shown = _cut(cutter, [text for one in questions for text in one.suffixes], suffix)
        for prefix in ladder(settings["prefix_tokens"], fit, notes):
            ends = _cut(cutter, [one.example.context for one in questions], prefix, last=True)
            places = [(one, kind) for one in questions for kind in one.negatives]
            asked = [_choice(one, kind, prefix, ends, shown) for one, kind in places]
            chosen = naming.choose(generator, asked, seed, tokens, context)
            found += [
                NamedSuffix(*place, prefix, suffix, one) for place, one in zip(places, chosen, strict=True)
            ]
    return found, notes + naming.unnamed([one.chosen for one in found])


def _choice(
    question: SuffixChoice, kind: str, prefix: int, ends: Mapping[str, str], shown: Mapping[str, str]
) -> naming.Choice:
    example = question.example
    texts = tuple(shown[text] for text in (example.gold, *question.negatives[kind]))
    before = _BEFORE.format(context=ends[example.context].strip())
    return naming.Choice(f"{example.id}/{kind}/{prefix}", before, texts, _QUESTION)


def _cut(cutter: TextCutter, texts: Sequence[str], tokens: int, *, last: bool = False) -> dict[str, str]:
    """Cut each distinct text once."""
    distinct = list(dict.fromkeys(texts))
    return dict(zip(distinct, cutter.cut_texts(distinct, tokens, last=last), strict=True))
