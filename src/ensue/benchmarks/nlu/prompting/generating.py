"""Zero- and few-shot answers by generation: the label whose words a generator writes after the prompt."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ensue.benchmarks import settings as read
from ensue.benchmarks.base import RunContext, Setting
from ensue.benchmarks.nlu.examples import Prediction, TaskData
from ensue.benchmarks.nlu.prompting.asking import (
    SETTINGS,
    AskedTask,
    asked_words,
    chat_of,
    check_templates,
    fits_of,
    sheets,
)
from ensue.benchmarks.nlu.prompting.templates import Option
from ensue.benchmarks.nlu.systems import Answered, Settings
from ensue.models.protocols import Generator, Model, require
from ensue.models.request import Policy
from ensue.records import digest_of, plain

# So many prompts are given to the generator at once; what is finished is kept and told after each.
_PORTION = 256
_TEXTS = plain("portions")


class GeneratingSystem:
    """Lets a model write its answer and looks for a label's words in it."""

    settings: Mapping[str, Setting] = {
        **SETTINGS,
        "answer_tokens": Setting(16, "how many tokens an answer may have", read.whole()),
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
                yield _judged(sheet, _written(generator, sheet, count, context))

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
    card, records, stop = generator.card, context.records, [sheet.template.joiner]
    texts: list[str] = []
    for begin in range(0, len(prompts), _PORTION):
        portion = prompts[begin : begin + _PORTION]
        key = digest_of(card.identity, card.generation, card.kind, card.max_length, count, stop, portion)
        found = records.get(_TEXTS, key)
        if found is None:
            found = generator.generate(portion, max_tokens=count, stop=stop)
            records.add(_TEXTS, [(key, found)])
        texts += found
        if context.progress is not None:
            context.progress(len(texts), len(prompts), "prompts")
    return texts


def _judged(sheet: AskedTask, texts: Sequence[str]) -> Answered:
    """Return a sheet's answers; a text that names no label is answered with the first one, and marked and counted."""
    predictions: dict[str, dict[str, Prediction]] = defaultdict(dict)
    outputs: dict[str, dict[str, dict[str, Any]]] = defaultdict(dict)
    notes = Counter(sheet.notes)
    for one, text in zip(sheet.asked, texts, strict=True):
        option = heard(text, one.options)
        notes["texts that name no label, answered with the first"] += option is None
        predictions[one.split][one.id] = (option or one.options[0]).prediction
        outputs[one.split][one.id] = {"text": text, "matched": option is not None}
    return Answered(
        task=sheet.task.spec.name,
        predictions=dict(predictions),
        settings=sheet.settings,
        outputs=dict(outputs),
        notes=+notes,
    )


system = GeneratingSystem()
