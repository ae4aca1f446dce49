"""Zero- and few-shot answers: the label whose words a scorer finds likeliest after a prompt or a generator writes."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, islice
from typing import Any

from ensue.benchmarks import settings as read
from ensue.benchmarks.base import RunContext, Setting
from ensue.benchmarks.nlu.examples import Prediction, TaskData
from ensue.benchmarks.nlu.prompting.asking import (
    SETTINGS,
    AskedExample,
    AskedTask,
    asked_words,
    chat_of,
    check_templates,
    fits_of,
    sheets,
)
from ensue.benchmarks.nlu.prompting.templates import Option, Template
from ensue.benchmarks.nlu.systems import Answered, Settings
from ensue.benchmarks.writing import write_texts
from ensue.models.protocols import Generator, Model, Scorer, require
from ensue.models.request import Policy, Request, Score
from ensue.records import digest_of, plain
from ensue.scoring import engine

_RULES = ("sum", "per_token", "per_character", "unconditional")


class PromptingSystem:
    """Scores every label's words after every prompt of a task, all templates in one plan."""

    settings: Mapping[str, Setting] = {
        **SETTINGS,
        "normalise": Setting(
            "template", f"template (as each says), or {', '.join(_RULES)}", read.one_of("template", *_RULES)
        ),
        "bos": read.POLICY_SETTINGS["bos"],
    }

    def answer(
        self, model: Model, tasks: Sequence[TaskData], settings: Settings, seed: int, context: RunContext
    ) -> Iterator[Answered]:
        """Return one answer a task and template."""
        scorer = require(model, Scorer, "Answering by log-likelihood")
        check_templates(tasks, settings["template"])
        policy = _policy(settings)
        chat = chat_of(model, settings, policy)
        for task in tasks:
            asked = [
                replace(sheet, template=normalised(sheet.template, settings["normalise"]))
                for sheet in sheets(task, tasks, settings, seed, fits_of(scorer, policy), chat)
            ]
            yield from _scored(scorer, asked, policy, context)

    def signature(self, model: Model, settings: Settings) -> str:
        """Return the scorer's choices and those of the prompts."""
        scorer = require(model, Scorer, "Answering by log-likelihood")
        about = asked_words(settings)
        return f"{scorer.policy_signature(_policy(settings))} {about} normalise:{settings['normalise']}"


def normalised(template: Template, rule: str) -> Template:
    """Return the template with another rule of comparing than its own."""
    if rule == "template":
        return template
    if rule == "unconditional":
        return replace(template, combine="sum", unconditional=True)
    return replace(template, combine=rule, unconditional=False)  # type: ignore[arg-type]


def requests_of(sheet: AskedTask) -> list[Request]:
    """Return what is scored for a task: each option after its prompt, and after the neutral one if that counts."""
    options = [(one, option.continuation) for one in sheet.asked for option in one.options]
    neutral = options if sheet.template.unconditional else []
    return [
        *(Request(text, one.prompt) for one, text in options),
        *(Request(text, one.neutral) for one, text in neutral),
    ]


def worth(template: Template, continuation: str, score: Score, neutral: Score | None = None) -> float:
    """Return what an option is compared by."""
    value = score.logprob - (neutral.logprob if neutral is not None else 0.0)
    if template.combine == "per_token":
        return value / max(score.tokens, 1)
    if template.combine == "per_character":
        return value / max(len(continuation.strip()), 1)
    return value


def softmax(values: Sequence[float]) -> list[float]:
    """Return numbers as chances that add up to one."""
    highest = max(values)
    powers = [math.exp(value - highest) for value in values]
    total = math.fsum(powers)
    return [power / total for power in powers]


def likeliest(one: AskedExample, chances: Sequence[float]) -> Prediction:
    """Return the likeliest option, the first of equals."""
    return one.options[max(range(len(chances)), key=chances.__getitem__)].prediction


def expected(one: AskedExample, chances: Sequence[float]) -> float:
    """Return the mean of the options' numbers."""
    return math.fsum(
        chance * float(option.prediction) for chance, option in zip(chances, one.options, strict=True)
    )


def _scored(
    scorer: Scorer, asked: Sequence[AskedTask], policy: Policy, context: RunContext
) -> Iterator[Answered]:
    """Score the sheets of a task together, so that what their prompts share is computed once."""
    wanted = [requests_of(sheet) for sheet in asked]
    if not wanted:
        return
    scored = engine.score(
        scorer,
        list(chain.from_iterable(wanted)),
        policy=policy,
        journal=context.journal,
        progress=context.progress,
    )
    scores = iter(scored.scores)
    for sheet, requests in zip(asked, wanted, strict=True):
        yield _weighed(sheet, list(islice(scores, len(requests))))


def _weighed(asked: AskedTask, scores: Sequence[Score]) -> Answered:
    """Return a task's answers from the scores of its options, in order."""
    options = [option for one in asked.asked for option in one.options]
    neutral: Sequence[Score | None] = scores[len(options) :] or [None] * len(options)
    values = iter(
        worth(asked.template, option.continuation, score, base)
        for option, score, base in zip(options, scores, neutral, strict=False)
    )
    notes, chances = Counter(asked.notes), []
    for one in asked.asked:
        worths = [next(values) for _ in one.options]
        notes["equally good answers"] += worths.count(max(worths)) > 1
        chances.append(softmax(worths))
    choose = expected if asked.task.spec.form == "score" else likeliest
    predictions = [choose(one, sure) for one, sure in zip(asked.asked, chances, strict=True)]
    return asked.answered(predictions, notes, chances=chances)


def _policy(settings: Mapping[str, Any]) -> Policy:
    # Prompts were made to fit; one that does not is an error, not a matter for windows.
    return Policy(window="refuse", overflow="refuse", bos=settings["bos"])


prompt = PromptingSystem()


# So many prompts are given to the generator at once; what is finished is kept and reported after each.
_PORTION = 256
_TEXTS = plain("answers-written")


class GeneratingSystem:
    """Lets a model write its answer and looks for a label's words in it."""

    settings: Mapping[str, Setting] = {
        **SETTINGS,
        "answer_tokens": Setting(16, "maximum number of tokens of an answer", read.whole()),
    }

    def answer(
        self, model: Model, tasks: Sequence[TaskData], settings: Settings, seed: int, context: RunContext
    ) -> Iterator[Answered]:
        """Return one answer a task and template."""
        generator = require(model, Generator, "Answering by generation")
        check_templates(tasks, settings["template"])
        count = settings["answer_tokens"]
        fits = fits_of(generator, Policy(), reserve=count)
        chat = chat_of(model, settings, Policy())
        for task in tasks:
            for sheet in sheets(task, tasks, settings, seed, fits, chat):
                yield _read_answers(sheet, _written(generator, sheet, count, context))

    def signature(self, model: Model, settings: Settings) -> str:
        """Return how the model was asked."""
        return f"greedy tokens:{settings['answer_tokens']} {asked_words(settings)}"


def heard(text: str, options: Sequence[Option]) -> Option | None:
    """Return the option whose words a text begins with, else whose words come first in it; None where none do.

    Letters' case does not count, words count only whole, and of several at one place the longest is meant.
    """
    said = " ".join(text.split()).casefold()
    found: list[tuple[int, int, int]] = []
    for number, option in enumerate(options):
        words = " ".join(option.spoken.split()).casefold().rstrip(".")
        place = re.search(rf"(?<!\w){re.escape(words)}(?!\w)", said)
        if words and place:
            found.append((place.start(), -len(words), number))
    return options[min(found)[2]] if found else None


def _written(generator: Generator, sheet: AskedTask, count: int, context: RunContext) -> list[str]:
    """Return what the generator writes after each prompt; where the next shot would begin, an answer ends."""
    prompts = [one.prompt for one in sheet.asked]
    card, stop = generator.card, [sheet.template.joiner]
    who = digest_of(card.identity, card.generation, card.kind, card.max_length, count, stop)
    return write_texts(
        generator,
        prompts,
        [digest_of(who, prompt) for prompt in prompts],
        context.records,
        _TEXTS,
        portion=_PORTION,
        progress=context.progress,
        unit="prompts",
        max_tokens=count,
        stop=stop,
    )


def _read_answers(asked: AskedTask, texts: Sequence[str]) -> Answered:
    """Return a task's answers; a text that names no label is answered with the first one, and marked and counted."""
    found = [heard(text, one.options) for one, text in zip(asked.asked, texts, strict=True)]
    notes = Counter(asked.notes)
    notes["texts that name no label, answered with the first"] += found.count(None)
    answers = [(option or one.options[0]).prediction for one, option in zip(asked.asked, found, strict=True)]
    outputs = [{"text": text, "matched": bool(option)} for text, option in zip(texts, found, strict=True)]
    return asked.answered(answers, notes, outputs=outputs)


generate = GeneratingSystem()
