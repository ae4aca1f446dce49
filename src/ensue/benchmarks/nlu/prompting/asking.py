"""Every example of a task as one prompt in a template's words, with its shots, cut to what the model takes."""

from __future__ import annotations

import bisect
import hashlib
import itertools
import logging
import random
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, TypeVar

from ensue.benchmarks import settings as read
from ensue.benchmarks.base import Setting
from ensue.benchmarks.nlu.examples import TRAIN, Example, Prediction, TaskData, TaskSpec
from ensue.benchmarks.nlu.prompting.templates import (
    Filled,
    Option,
    Template,
    built_in,
    choose,
    droppable,
    fill,
    right_option,
)
from ensue.benchmarks.nlu.systems import Answered
from ensue.errors import EnsueError, hint
from ensue.models.protocols import Model, Scorer, Talker, room_of
from ensue.models.request import Policy, Request

log = logging.getLogger(__name__)

Value = TypeVar("Value")

# Tells whether a prompt with any of its continuations fits the model.
Fits = Callable[[str, Sequence[str]], bool]
# A prompt as what a user says in a conversation, up to where the model's reply begins.
Chat = Callable[[str], str]

# The two ways of prompting ask in the same words, so these are the very same settings in both.
SETTINGS = {
    "template": Setting(
        ["all"], "names of templates, `all`, or a file of your own (FILE.toml)", read.many(read.text)
    ),
    "shots": Setting(0, "examples from the training set that each prompt begins with", read.whole(0)),
    "shot_seed": Setting(None, "draws the shots (none: the run's seed)", read.optional(read.whole(0))),
    "chat": Setting("no", "yes: each prompt as a user's turn in the model's chat template", read.yes_or_no),
    "answer_test": Setting(
        "no", "yes: answer splits without labels too, for a submission", read.one_of("no", "yes")
    ),
}
# Tokens are no shorter than bytes but for a space that some tokenizers put first.
_SLACK = 8


class AskedExample(NamedTuple):
    """One example's prompt, ready to be continued."""

    split: str
    id: str
    prompt: str
    options: tuple[Option, ...]
    neutral: str


@dataclass(frozen=True)
class AskedTask:
    """A task in one template's words; `shots` is how many were asked for, `chat` whether in a conversation."""

    task: TaskData
    template: Template
    shots: int
    asked: list[AskedExample]
    notes: Counter[str]
    chat: bool = False

    def answered(
        self,
        predictions: Sequence[Prediction],
        notes: Counter[str],
        *,
        chances: Sequence[Sequence[float]] = (),
        outputs: Sequence[Mapping[str, Any]] = (),
    ) -> Answered:
        """Return what was answered to its examples, given in their order; notes that count nothing are left out."""
        said = {"template": self.template.name, "shots": self.shots}
        return Answered(
            task=self.task.spec.name,
            predictions=self._by_split(predictions),
            settings={**said, "chat": "yes"} if self.chat else said,
            chances=self._by_split(chances),
            outputs=self._by_split(outputs),
            notes=+notes,
        )

    def _by_split(self, values: Sequence[Value]) -> dict[str, dict[str, Value]]:
        found: dict[str, dict[str, Value]] = defaultdict(dict)
        for one, value in zip(self.asked, values, strict=bool(values)):
            found[one.split][one.id] = value
        return dict(found)


def sheets(
    task: TaskData,
    tasks: Sequence[TaskData],
    settings: Mapping[str, Any],
    seed: int,
    fits: Fits | None,
    chat: Chat | None = None,
) -> list[AskedTask]:
    """Return the task in the words of each template asked for; none where it cannot be asked so."""
    if fits is not None and chat is not None:
        fits = _fits_in_chat(fits, chat)
    shots = _shots(task, tasks, settings, seed)
    splits = asked_splits(task, settings)
    if shots is None or not splits:
        return []
    found = []
    for template in choose(task.spec, settings["template"]):
        notes: Counter[str] = Counter()
        shown = [_shown(template, task.spec, example) for example in shots]
        asked = [
            _ask(template, task.spec, split, example, shown, fits, notes)
            for split in splits
            for example in task.splits[split]
        ]
        if chat is not None:
            asked = [_in_chat(one, chat) for one in asked]
        found.append(AskedTask(task, template, settings["shots"], asked, notes, chat is not None))
    return found


def asked_words(settings: Mapping[str, Any]) -> str:
    """Return how a task was asked, for a signature."""
    chat = " chat:user-turn" if settings["chat"] == "yes" else ""
    return f"templates:{','.join(settings['template'])} shots:{settings['shots']}{chat}"


def chat_of(model: Model, settings: Mapping[str, Any], policy: Policy) -> Chat | None:
    """Return how prompts are put to a model: None for plain text, else in its chat template."""
    if settings["chat"] == "no":
        return None
    if not isinstance(model, Talker):
        raise EnsueError(
            f"{model.card.name} has no chat template here to put prompts in; leave chat out, or give a local model "
            f"that has one, such as smollm2."
        )
    return partial(model.as_chat, policy=policy)


def _in_chat(one: AskedExample, chat: Chat) -> AskedExample:
    """Return the same question in a conversation: a reply begins with a word, not with the space before it."""
    options = tuple(option._replace(continuation=option.continuation.lstrip()) for option in one.options)
    return one._replace(prompt=chat(one.prompt), options=options, neutral=chat(one.neutral))


def _fits_in_chat(fits: Fits, chat: Chat) -> Fits:
    return lambda prompt, continuations: fits(chat(prompt), [text.lstrip() for text in continuations])


def asked_splits(task: TaskData, settings: Mapping[str, Any]) -> list[str]:
    """Return the splits with labels, and the others when they are asked for: scoring test sets costs hours."""
    everything = settings["answer_test"] == "yes"
    return [
        split for split in task.judged_splits if task.splits[split] and (everything or task.labelled(split))
    ]


def check_templates(tasks: Sequence[TaskData], wanted: Sequence[str]) -> None:
    """Raise where a template asked for is of none of the tasks; name what there is."""
    for piece in wanted:
        if piece == "all" or any(choose(task.spec, [piece]) for task in tasks):
            continue
        asked = ", ".join(task.spec.name for task in tasks)
        if piece.endswith(".toml"):
            raise EnsueError(f"{piece} has no template for {asked}; each template names its task.")
        names = dict.fromkeys(template.name for task in tasks for template in built_in(task.spec))
        words = hint(piece, names, f"there are {', '.join(names)}, or give a FILE.toml.")
        raise EnsueError(f"No template {piece!r} for {asked}; {words}")


def fits_of(model: Model, policy: Policy, reserve: int = 0) -> Fits | None:
    """Return whether prompts fit a model with `reserve` tokens kept free; None for one that has no limit we know."""
    if not isinstance(model, Scorer) or (limit := room_of(model, policy)) is None:
        return None
    # Asked to cut or to slide, a scorer does not refuse but says that it did.
    lenient = Policy(overflow="truncate", bos=policy.bos, max_length=policy.max_length)
    scorer, room = model, limit - reserve

    def fits(prompt: str, continuations: Sequence[str]) -> bool:
        longest = max(len(text.encode("utf-8", "replace")) for text in continuations)
        if len(prompt.encode("utf-8", "replace")) + longest + _SLACK <= room:
            return True
        prepared = scorer.prepare([Request(text, prompt) for text in continuations], lenient)
        if any(one.notes["context truncated"] or one.notes["windowed"] for one in prepared):
            return False
        return not reserve or all(part.size <= room for one in prepared for part in one.parts)

    return fits


def _shots(
    task: TaskData, tasks: Sequence[TaskData], settings: Mapping[str, Any], seed: int
) -> list[Example] | None:
    """Return the task's shots; None where shots are asked for and no training set is here."""
    if not settings["shots"]:
        return []
    if not (train := training_set(task, tasks)):
        log.warning("%s has no training set here to draw shots from, so it is left out", task.spec.name)
        return None
    if settings["shot_seed"] is not None:
        seed = settings["shot_seed"]
    return draw(task.spec, train, settings["shots"], seed)


def _shown(template: Template, spec: TaskSpec, example: Example) -> str:
    """Return a shot: the example with its right continuation."""
    filled = fill(template, spec, example)
    right = right_option(filled, spec, example)
    if right is None:
        raise EnsueError(
            f"{example.where or example.id}: the answer {example.gold!r} is none of {spec.name}'s, so the example "
            f"cannot be shown."
        )
    return filled.prompt + right.continuation


def _ask(
    template: Template,
    spec: TaskSpec,
    split: str,
    example: Example,
    shown: Sequence[str],
    fits: Fits | None,
    notes: Counter[str],
) -> AskedExample:
    """Return the prompt of an example. Where it is too long, shots go first, then the passage from its left."""
    filled = fill(template, spec, example)
    if not filled.options:
        raise EnsueError(f"{example.where or example.id}: an example without choices cannot be asked.")
    kept = list(shown)
    prompt = template.joiner.join([*kept, filled.prompt])
    continuations = [option.continuation for option in filled.options]
    if fits is not None and not (fitting := fits(prompt, continuations)):
        while kept and not fitting:
            kept.pop(0)
            prompt = template.joiner.join([*kept, filled.prompt])
            fitting = fits(prompt, continuations)
        notes["shots dropped from long prompts"] += len(shown) - len(kept)
        if not fitting:
            filled = _cut(template, spec, example, fits)
            notes["passages cut from the left"] += 1
            prompt = filled.prompt
    return AskedExample(split, example.id, prompt, filled.options, filled.neutral)


def _cut(template: Template, spec: TaskSpec, example: Example, fits: Fits) -> Filled:
    """Return the example with the fewest words left out on the left of its long text that let it fit."""
    text = droppable(template, spec, example)
    ends = [match.end() for match in re.finditer(r"\s+", text)] + [len(text)]

    def fits_without(dropped: int) -> bool:
        filled = fill(template, spec, example, dropped)
        return fits(filled.prompt, [option.continuation for option in filled.options])

    place = bisect.bisect_left(ends, True, key=fits_without)
    if place == len(ends):
        raise EnsueError(
            f"{example.where or example.id}: even without its {template.cut} this example is too long for the model "
            f"in template {template.name!r}; leave it out or use a model that takes more."
        )
    return fill(template, spec, example, ends[place])


def training_set(task: TaskData, tasks: Sequence[TaskData]) -> list[Example]:
    """Return the task's training examples, or those of the task whose classifier answers it; none without."""
    sources = [task, *(other for other in tasks if other.spec.name == task.spec.answered_by)]
    return next((list(source.splits[TRAIN]) for source in sources if source.labelled(TRAIN)), [])


def draw(spec: TaskSpec, train: Sequence[Example], count: int, seed: int) -> list[Example]:
    """Return training examples in mixed order, each answer as often as the others where there are enough."""
    digest = hashlib.sha256(f"{seed} {spec.name}".encode()).digest()
    generator = random.Random(int.from_bytes(digest[:8], "little"))
    groups: dict[str, list[Example]] = defaultdict(list)
    for example in train:
        if (answer := _answer(spec, example)) is not None:
            groups[answer].append(example)
    there = sum(map(len, groups.values()))
    if there < count:
        raise EnsueError(
            f"{spec.name} has {there} training examples that could be shown, fewer than shots={count}; ask for fewer."
        )
    mixed = [groups[answer] for answer in sorted(groups)]
    for members in mixed:
        generator.shuffle(members)
    # Which answer is shown once more than the others, when they do not come out even, is drawn too.
    generator.shuffle(mixed)
    in_turn = (example for row in itertools.zip_longest(*mixed) for example in row if example is not None)
    chosen = list(itertools.islice(in_turn, count))
    generator.shuffle(chosen)
    return chosen


def _answer(spec: TaskSpec, example: Example) -> str | None:
    """Return what the examples are balanced over; None for one that cannot be shown."""
    gold = example.gold
    if gold is None:
        return None
    if spec.form == "entity":
        right = gold if isinstance(gold, tuple) else (gold,)
        return "" if any(choice in right for choice in example.choices) else None
    return str(round(float(str(gold)))) if spec.form == "score" else str(gold)
