"""Zero- and few-shot answers by log-likelihood: the label whose words a scorer finds likeliest after the prompt."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
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
from ensue.benchmarks.nlu.prompting.templates import Template
from ensue.benchmarks.nlu.systems import Answered, Settings
from ensue.models.protocols import Model, Scorer, require
from ensue.models.request import Policy, Request, Score
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
            yield from _answered(scorer, asked, policy, context)

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
    found = [Request(option.continuation, one.prompt) for one in sheet.asked for option in one.options]
    if sheet.template.unconditional:
        found += [Request(option.continuation, one.neutral) for one in sheet.asked for option in one.options]
    return found


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


def chosen(one: AskedExample, chances: Sequence[float], *, expected: bool) -> Prediction:
    """Return the likeliest option, the first of equals; or the mean of the options' numbers."""
    if expected:
        return math.fsum(
            chance * float(option.prediction) for chance, option in zip(chances, one.options, strict=True)
        )
    return one.options[max(range(len(chances)), key=chances.__getitem__)].prediction


def _answered(
    scorer: Scorer, asked: Sequence[AskedTask], policy: Policy, context: RunContext
) -> Iterator[Answered]:
    """Score the sheets of a task together, so that what their prompts share is computed once."""
    wanted = [requests_of(sheet) for sheet in asked]
    if not wanted:
        return
    scored = engine.score(
        scorer,
        [request for requests in wanted for request in requests],
        policy=policy,
        journal=context.journal,
        progress=context.progress,
    )
    begin = 0
    for sheet, requests in zip(asked, wanted, strict=True):
        yield _judged(sheet, scored.scores[begin : begin + len(requests)])
        begin += len(requests)


def _judged(sheet: AskedTask, scores: Sequence[Score]) -> Answered:
    """Return a sheet's answers from the scores of its options, in order."""
    options = [option for one in sheet.asked for option in one.options]
    neutral: Sequence[Score | None] = scores[len(options) :] or [None] * len(options)
    values = iter(
        worth(sheet.template, option.continuation, score, base)
        for option, score, base in zip(options, scores, neutral, strict=False)
    )
    predictions: dict[str, dict[str, Prediction]] = defaultdict(dict)
    chances: dict[str, dict[str, list[float]]] = defaultdict(dict)
    notes = Counter(sheet.notes)
    for one in sheet.asked:
        worths = [next(values) for _ in one.options]
        sure = softmax(worths)
        notes["equally good answers"] += worths.count(max(worths)) > 1
        expected = sheet.task.spec.form == "score"
        predictions[one.split][one.id] = chosen(one, sure, expected=expected)
        chances[one.split][one.id] = sure
    return Answered(
        task=sheet.task.spec.name,
        predictions=dict(predictions),
        settings=sheet.settings,
        chances=dict(chances),
        notes=+notes,
    )


def _policy(settings: Mapping[str, Any]) -> Policy:
    # Prompts were made to fit; one that does not is an error, not a matter for windows.
    return Policy(window="refuse", overflow="refuse", bos=settings["bos"])


system = PromptingSystem()
