"""QAGS itself: answers of summaries, questions about them, what summary and source answer, how far they agree.

Every step is done for all pairs before the next begins, so that models get large batches; equal requests (the same
question of the same text, the same summary of two sources) are done once, and kept in `ensue.records` as they are
finished, so that a killed run goes on.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import compress
from typing import Any, NamedTuple, TypeVar

from ensue.benchmarks.qags.candidates import CHOICES, AnswerCandidate, Finder, choose_answers
from ensue.benchmarks.qags.questions import (
    Asking,
    Keeping,
    Proposal,
    Selection,
    Tidied,
    select,
    tidy,
    verdict,
)
from ensue.errors import TooLong
from ensue.models.protocols import (
    Answerer,
    AnswerSpan,
    Asked,
    FoundAnswer,
    Model,
    Questioner,
    each_call,
    portion_of,
)
from ensue.progress import Progress, ignore
from ensue.records import Records, plain
from ensue.version import __version__

# The use of the records: candidates, questions and answers, each under a digest of all that changes it (the step,
# the model's identity, its options, the texts).
STEPS = plain("steps")
# So much is lost at most by a kill: some seconds of a GPU's work, or half a minute of two cores'. Questions are
# counted with all beams of their search, each of which is a row of a batch; spaCy reads a summary in about ten
# milliseconds.
_FOUND_AT_ONCE = 512
_ASKED_ON_CPU, _ASKED_ELSEWHERE = 40, 10_240
_ASKED_OF_SERVER = 64
_ANSWERED_ON_CPU, _ANSWERED_ELSEWHERE = 128, 2_048
EMPTY = "summaries without text"
NO_SOURCE = "sources without text"
HALVED = "texts with half a character in them (a lone surrogate)"
TOO_LONG = "summaries too long for what reads or asks"
NO_CANDIDATES = "summaries without an answer to ask about"
NO_QUESTIONS = "summaries about which no usable question was asked"

Request = TypeVar("Request", bound=Sequence[Any])
# A question and the text it is put to.
Put = tuple[str, str]


class Pair(NamedTuple):
    """A source and a summary of it."""

    source: str
    summary: str


class QagsModels(NamedTuple):
    """What finds answers to ask about, what asks and what answers."""

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
        """Return what source and summary answer to some of the questions."""
        found = []
        for place in places:
            answer = self.on_source[place]
            if answer is None:
                raise ValueError(f"Question {place} was not put to the source.")
            found.append((answer.text, self.on_summary[place].text))
        return found

    def removed(self, keeping: Keeping) -> Counter[str]:
        """Count the questions that each filter removed."""
        counts = Counter(self.dropped or {})
        for proposal, found in zip(self.proposals, self.on_summary, strict=True):
            if why := verdict(proposal.expected.text, found, keeping.agree):
                counts[why] += 1
        return counts


def examine(
    pairs: Sequence[Pair],
    models: QagsModels,
    asking: Asking,
    keepings: Sequence[Keeping],
    *,
    records: Records | None = None,
    progress: Progress = ignore,
) -> list[Examined]:
    """Question every pair; there is a selection for each of `keepings`, all from the same questions.

    What depends on the summary alone is done once for each distinct one.
    """
    if not keepings:
        raise ValueError("Questions are kept by at least one rule.")
    records = records if records is not None else Records()
    sound = [pair for pair in pairs if not _fault(pair)]
    summaries = list(dict.fromkeys(pair.summary for pair in sound))
    candidates = find_candidates(summaries, models.finder, records, progress)
    chosen = {
        text: choose_answers(CHOICES[asking.candidates](found), text, n=asking.answers, seed=asking.seed)
        for text, found in candidates.items()
        if found is not None
    }
    # The shortest question is a matter of form, the same for all selections.
    tidied = _ask(chosen, models.questioner, asking, keepings[0].shortest, records, progress)
    wanted = [(one.question, text) for text, found in tidied.items() for one in found.proposals]
    known = _answer(wanted, models.answerer, records, progress, "answers by summaries")
    picked: dict[str, tuple[Selection, ...]] = {}
    for text, found in tidied.items():
        answers = [known[one.question, text] for one in found.proposals]
        picked[text] = tuple(
            select(found.proposals, answers, keeping, text=text, seed=asking.seed) for keeping in keepings
        )
    put = [
        (tidied[pair.summary].proposals[place].question, pair.source)
        for pair in sound
        if pair.summary in tidied
        for place in _places(picked[pair.summary])
    ]
    known |= _answer(put, models.answerer, records, progress, "answers by sources")
    return [_examined(pair, chosen, tidied, picked, known) for pair in pairs]


def find_candidates(
    texts: Sequence[str], finder: Finder, records: Records, progress: Progress = ignore
) -> dict[str, list[AnswerCandidate] | None]:
    """Find all candidates of each text that is not blank, None for one too long to be read.

    Which of them are asked about is chosen later.
    """
    requests = [(text,) for text in texts if text.strip()]

    def find(part: Sequence[tuple[str]]) -> list[list[AnswerCandidate]]:
        return list(finder.candidates([text for (text,) in part]))

    step = {"step": "all candidates", "version": __version__, "finder": finder.identity}
    work = partial(skip_long, find)
    outcomes = once(records, step, requests, work, _FOUND_AT_ONCE, progress, "summaries read")
    return {
        text: None if found is None else [AnswerCandidate(*one) for one in found]
        for (text,), found in zip(requests, outcomes, strict=True)
    }


def _ask(
    chosen: Mapping[str, Sequence[AnswerCandidate]],
    questioner: Questioner,
    asking: Asking,
    shortest: int,
    records: Records,
    progress: Progress,
) -> dict[str, Tidied]:
    """Ask about the chosen answers of each summary; one that is too long to be asked about is left out."""
    requests = [(text, one.start, one.end) for text, candidates in chosen.items() for one in candidates]

    def ask(part: Sequence[tuple[str, int, int]]) -> list[list[Asked]]:
        contexts = [text for text, _, _ in part]
        return questioner.ask(contexts, [AnswerSpan(start, end) for _, start, end in part], **asking.search())

    step = {"step": "ask", "model": _identity(questioner), **asking.search()}
    rows = portion_of(questioner, on_cpu=_ASKED_ON_CPU, elsewhere=_ASKED_ELSEWHERE)
    work, chunk = partial(skip_long, ask), max(rows // asking.beams, 1)
    # A server is asked for one question an answer.
    chunk = _ASKED_OF_SERVER if questioner.card.kind == "endpoint" else chunk
    outcomes = iter(once(records, step, requests, work, chunk, progress, "answers asked about", questioner))
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


def _answer(
    requests: Sequence[Put], answerer: Answerer, records: Records, progress: Progress, unit: str
) -> dict[Put, FoundAnswer]:
    def answer(part: Sequence[Put]) -> list[FoundAnswer]:
        return answerer.answer([question for question, _ in part], [context for _, context in part])

    step = {"step": "answer", "model": _identity(answerer)}
    chunk = portion_of(answerer, on_cpu=_ANSWERED_ON_CPU, elsewhere=_ANSWERED_ELSEWHERE)
    outcomes = once(records, step, requests, answer, chunk, progress, unit, answerer)
    return {
        request: FoundAnswer(str(text), int(start), int(end), float(score))
        for request, (text, start, end, score) in zip(requests, outcomes, strict=True)
    }


def once(
    records: Records,
    step: Mapping[str, Any],
    requests: Sequence[Request],
    work: Callable[[Sequence[Request]], Sequence[Any]],
    chunk: int,
    progress: Progress = ignore,
    unit: str = "requests",
    model: Model | None = None,
) -> list[Any]:
    """Return the outcome of every request, each distinct one done once, `chunk` at a time; chunks are done side by
    side where `model`, which does the work, has many hands.

    Chunks are cut from all distinct requests, whatever is known already, and one of which anything is missing is done
    whole: so a batch holds the same texts in a run that goes on as in one that was never stopped. Outcomes are read
    back as they were written, for the same reason.
    """
    asked = json.dumps(step, sort_keys=True)
    keys = [_digest(asked, request) for request in requests]
    distinct = list(dict(zip(keys, requests, strict=True)).items())
    parts = [distinct[start : start + chunk] for start in range(0, len(distinct), chunk)]
    missing = [not all(records.has(STEPS, key) for key, _ in part) for part in parts]
    outcomes = each_call(model, work, ([request for _, request in part] for part in compress(parts, missing)))
    finished = 0
    for part, wanted in zip(parts, missing, strict=True):
        if wanted:
            done = next(outcomes)
            if len(done) != len(part):
                raise ValueError(f"{len(part)} requests were given back {len(done)} outcomes.")
            records.add(STEPS, [(key, outcome) for (key, _), outcome in zip(part, done, strict=True)])
        finished += len(part)
        progress(finished, len(distinct), unit)
    return [records.get(STEPS, key) for key in keys]


def skip_long(work: Callable[[Sequence[Request]], Sequence[Any]], requests: Sequence[Request]) -> list[Any]:
    """Return the outcome of each request, None for one that is too long: such a one must not end a long run."""
    try:
        return list(work(requests))
    except TooLong as error:
        long = set(error.places)
        others = [one for place, one in enumerate(requests) if place not in long]
        done = iter(work(others) if others else ())
        return [None if place in long else next(done) for place in range(len(requests))]


def _digest(asked: str, request: Sequence[Any]) -> str:
    return hashlib.sha256(f"{asked}\n{json.dumps(list(request))}".encode()).hexdigest()[:32]


def _identity(model: Model) -> dict[str, str]:
    """Return what tells a model from others.

    How it is prompted may change with the version, and where its questions end with its folder's words on generation.
    """
    said = {"generation": model.card.generation} if model.card.generation else {}
    return {"version": __version__, **(model.card.identity or {"name": model.card.name}), **said}


def _places(selections: Iterable[Selection]) -> list[int]:
    return sorted({place for selection in selections for place in selection.places})


def _examined(
    pair: Pair,
    chosen: Mapping[str, Sequence[AnswerCandidate]],
    tidied: Mapping[str, Tidied],
    picked: Mapping[str, tuple[Selection, ...]],
    known: Mapping[Put, FoundAnswer],
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
    """Return why nothing can be asked about a pair whatever the models; nothing where something can."""
    if not pair.summary.strip():
        return EMPTY
    if not pair.source.strip():
        return NO_SOURCE
    return HALVED if is_halved(pair.summary) or is_halved(pair.source) else ""


def is_halved(text: str) -> bool:
    """Return whether a text holds half a character, which JSON can spell and no model can read."""
    return any("\ud800" <= letter <= "\udfff" for letter in text)
