"""QAGS itself: answers of summaries, questions about them, what summary and source answer, how far they agree.

Every step is done for all pairs before the next begins, so that models get large batches; equal requests (the same
question of the same text, the same summary of two sources) are done once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from ensue.benchmarks.qags.candidates import Candidate, choose_answers, to_choose_from
from ensue.benchmarks.qags.choices import Asking, Keeping
from ensue.benchmarks.qags.filters import Proposal, Selection, Tidied, select, tidy, verdict
from ensue.benchmarks.qags.finding import Finder, find_candidates, skipping_long
from ensue.benchmarks.qags.steps import Steps, once
from ensue.models.protocols import (
    Answerer,
    AnswerSpan,
    Asked,
    FoundAnswer,
    Model,
    Questioner,
    portion_of,
)
from ensue.progress import Progress
from ensue.version import __version__

# So much is lost at most by a kill: some seconds of a GPU's work, or half a minute of two cores'. Questions are
# counted with all beams of their search, each of which is a row of a batch.
_ASKED_ON_CPU, _ASKED_ELSEWHERE = 40, 3_200
_ANSWERED_ON_CPU, _ANSWERED_ELSEWHERE = 128, 2_048
EMPTY = "summaries without text"
NO_SOURCE = "sources without text"
HALVED = "texts with half a character in them (a lone surrogate)"
TOO_LONG = "summaries too long for what reads or asks"
NO_CANDIDATES = "summaries without an answer to ask about"
NO_QUESTIONS = "summaries about which no usable question was asked"


class Pair(NamedTuple):
    """A source and a summary of it."""

    source: str
    summary: str


class Parts(NamedTuple):
    """The parts that can be replaced; the fourth, the similarity of answers, is chosen when scores are made."""

    finder: Finder
    questioner: Questioner
    answerer: Answerer


@dataclass(frozen=True)
class Examined:
    """A summary's distinct questions, the likeliest first, and both texts' answers to them.

    The source was asked only what a selection needs; elsewhere `on_source` is None. `trouble` says why there are no
    questions, where there are none; `dropped` counts those that were no questions.
    """

    pair: Pair
    proposals: tuple[Proposal, ...] = ()
    on_summary: tuple[FoundAnswer, ...] = ()
    on_source: tuple[FoundAnswer | None, ...] = ()
    selections: tuple[Selection, ...] = ()
    dropped: Mapping[str, int] | None = None
    trouble: str = ""

    def answers(self, places: Iterable[int]) -> list[tuple[str, str]]:
        """What source and summary answer to some of the questions."""
        found = []
        for place in places:
            answer = self.on_source[place]
            if answer is None:
                raise ValueError(f"Question {place} was not put to the source.")
            found.append((answer.text, self.on_summary[place].text))
        return found

    def removed(self, keeping: Keeping) -> Counter[str]:
        """How many questions which filter removed."""
        counts = Counter(self.dropped or {})
        for proposal, found in zip(self.proposals, self.on_summary, strict=True):
            if why := verdict(proposal.expected.text, found, keeping.agree):
                counts[why] += 1
        return counts


def examine(
    pairs: Sequence[Pair],
    parts: Parts,
    asking: Asking,
    keepings: Sequence[Keeping],
    *,
    steps: Steps | None = None,
    progress: Progress | None = None,
) -> list[Examined]:
    """Question every pair; there is a selection for each of `keepings`, all from the same questions.

    What depends on the summary alone is done once for each distinct one.
    """
    if not keepings:
        raise ValueError("Questions are kept by at least one rule.")
    steps = steps if steps is not None else Steps()
    told = _telling(progress)
    summaries = list(dict.fromkeys(pair.summary for pair in pairs if not _fault(pair)))
    chosen = {
        text: choose_answers(
            to_choose_from(found, asking.candidates), text, n=asking.answers, seed=asking.seed
        )
        for text, found in find_candidates(summaries, parts.finder, steps, told("summaries read")).items()
        if found is not None
    }
    # The shortest question is a matter of form, the same for all selections.
    tidied = _tidied(chosen, parts.questioner, asking, keepings[0].shortest, steps, told)
    wanted = [(one.question, text) for text, found in tidied.items() for one in found.proposals]
    known = dict(
        zip(wanted, _answered(wanted, parts.answerer, steps, told, "answers by summaries"), strict=True)
    )
    picked = {
        text: _selections(
            text, found, [known[one.question, text] for one in found.proposals], keepings, asking
        )
        for text, found in tidied.items()
    }
    asked = [
        (tidied[pair.summary].proposals[place].question, pair.source)
        for pair in pairs
        if not _fault(pair) and pair.summary in tidied
        for place in _places(picked[pair.summary])
    ]
    known |= dict(
        zip(asked, _answered(asked, parts.answerer, steps, told, "answers by sources"), strict=True)
    )
    return [_examined(pair, chosen, tidied, picked, known) for pair in pairs]


def _tidied(
    chosen: Mapping[str, Sequence[Candidate]],
    questioner: Questioner,
    asking: Asking,
    shortest: int,
    steps: Steps,
    told: Callable[[str], Any],
) -> dict[str, Tidied]:
    requests = [(text, one.start, one.end) for text, candidates in chosen.items() for one in candidates]

    def ask(part: Sequence[tuple[str, int, int]]) -> list[list[Asked]]:
        contexts = [text for text, _, _ in part]
        return questioner.ask(contexts, [AnswerSpan(start, end) for _, start, end in part], **asking.search())

    question = {"step": "ask", "model": _identity(questioner), **asking.search()}
    rows = portion_of(questioner, on_cpu=_ASKED_ON_CPU, elsewhere=_ASKED_ELSEWHERE)
    chunk = max(rows // asking.beams, 1)
    work = partial(skipping_long, ask)
    outcomes = iter(once(steps, question, requests, work, chunk=chunk, tell=told("answers asked about")))
    tidied = {}
    for text, candidates in chosen.items():
        asked = [(one, next(outcomes)) for one in candidates]
        found = tidy(
            [(one, [Asked(str(q), float(score)) for q, score in many or ()]) for one, many in asked],
            shortest=shortest,
        )
        if found.proposals or all(many is not None for _, many in asked):
            tidied[text] = found
    return tidied


def _answered(
    requests: Sequence[tuple[str, str]],
    answerer: Answerer,
    steps: Steps,
    told: Callable[[str], Any],
    unit: str,
) -> list[FoundAnswer]:
    def answer(part: Sequence[tuple[str, str]]) -> list[FoundAnswer]:
        return answerer.answer([question for question, _ in part], [context for _, context in part])

    question = {"step": "answer", "model": _identity(answerer)}
    chunk = portion_of(answerer, on_cpu=_ANSWERED_ON_CPU, elsewhere=_ANSWERED_ELSEWHERE)
    outcomes = once(steps, question, requests, answer, chunk=chunk, tell=told(unit))
    return [
        FoundAnswer(str(text), int(start), int(end), float(score)) for text, start, end, score in outcomes
    ]


def _selections(
    text: str, found: Tidied, answers: Sequence[FoundAnswer], keepings: Sequence[Keeping], asking: Asking
) -> tuple[Selection, ...]:
    return tuple(
        select(found.proposals, answers, keeping, text=text, seed=asking.seed) for keeping in keepings
    )


def _places(selections: Iterable[Selection]) -> list[int]:
    return sorted({place for selection in selections for place in selection.places})


def _examined(
    pair: Pair,
    chosen: Mapping[str, Sequence[Candidate]],
    tidied: Mapping[str, Tidied],
    picked: Mapping[str, tuple[Selection, ...]],
    known: Mapping[tuple[str, str], FoundAnswer],
) -> Examined:
    text = pair.summary
    if fault := _fault(pair):
        return Examined(pair, trouble=fault)
    if text not in tidied:
        return Examined(pair, trouble=TOO_LONG)
    proposals = tidied[text].proposals
    asked = set(_places(picked[text]))
    return Examined(
        pair,
        proposals,
        tuple(known[one.question, text] for one in proposals),
        tuple(
            known[one.question, pair.source] if place in asked else None
            for place, one in enumerate(proposals)
        ),
        picked[text],
        tidied[text].dropped,
        "" if proposals else NO_QUESTIONS if chosen[text] else NO_CANDIDATES,
    )


def _fault(pair: Pair) -> str:
    """Why nothing can be asked about a pair whatever the models; nothing where something can."""
    if not pair.summary.strip():
        return EMPTY
    if not pair.source.strip():
        return NO_SOURCE
    return HALVED if is_halved(pair.summary) or is_halved(pair.source) else ""


def is_halved(text: str) -> bool:
    """Whether a text holds half a character, which JSON can spell and no model can read."""
    return any("\ud800" <= letter <= "\udfff" for letter in text)


def _identity(model: Model) -> dict[str, str]:
    """What tells a model from others.

    How it is prompted may change with the version, and where its questions end with its folder's words on generation.
    """
    said = {"generation": model.card.generation} if model.card.generation else {}
    return {"version": __version__, **(model.card.identity or {"name": model.card.name}), **said}


def _telling(progress: Progress | None) -> Callable[[str], Callable[[int, int], None] | None]:
    if progress is None:
        return lambda unit: None
    return lambda unit: lambda done, total: progress(done, total, unit)
