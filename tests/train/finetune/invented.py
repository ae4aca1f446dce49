"""Small invented tasks of every form that can be learnt from a few words, and the tiny model that learns them."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

from ensue.backends.names import load_model
from ensue.benchmarks.nlu.examples import Example, Form, TaskData, TaskSpec, TextSpan
from ensue.train.finetune.recipe import SETTINGS, Recipe
from tests.support import tiny

FILLERS = ("the old letter", "a small boat", "the green door", "my sister", "the whole class", "that morning")
YES_NO = ("no", "yes")
NLI = ("entailment", "neutral", "contradiction")
RTE = ("entailment", "not_entailment")
METRICS = {"score": ("pearson", "spearman"), "answers": ("f1a", "em"), "entity": ("f1", "em")}
# Two-sided, so that a classifier that sees only the pooled text cannot tell which of the two is marked.
_SCENE = "The captain crossed the river and the judge crossed the garden."


def spec(name: str, form: Form, labels: tuple[str, ...] = (), **others: Any) -> TaskSpec:
    if form == "choice":
        labels = ("0", "1")
    elif form not in ("score", "entity"):
        labels = labels or YES_NO
    return TaskSpec(name, "superglue", form, labels, METRICS.get(form, ("accuracy",)), {}, "", **others)


def example(form: Form, number: int, draw: random.Random) -> Example:
    """One example of a form; its gold answer hangs on one word, or on which words are marked."""
    yes = draw.random() < 0.5
    first, second = draw.sample(FILLERS, 2)
    word = "train" if yes else "votes"
    told = f"He saw {first} and the {word}."
    gold = YES_NO[yes]
    if form == "single":
        return Example(str(number), (told,), gold)
    if form == "pair":
        return Example(str(number), (f"Where is {second}?", told), gold)
    if form == "score":
        grade = draw.randrange(3)
        graded = ("votes", "garden", "train")[grade]
        return Example(str(number), (f"Here is {second}.", f"the {graded}, the {graded}"), float(grade))
    if form == "choice":
        right = draw.randrange(2)
        choices = tuple(f"The {'train' if i == right else 'votes'} stopped." for i in (0, 1))
        return Example(str(number), (f"They saw {first}.", "cause"), str(right), choices)
    if form == "answers":
        texts = (f"There was {second}.", "What came early?", f"the {word}")
        return Example(str(number), texts, gold, group=f"q{number // 3}", cluster=f"p{number // 6}")
    if form == "entity":
        # As many entities as it happens to be, so that batches have rows of different counts.
        entities = draw.sample(("judge", "captain", "class", "sister"), draw.randrange(1, 4))
        at = draw.randrange(len(entities) + 1)
        choices = (*entities[:at], "train", *entities[at:])
        return Example(str(number), (f"There was {second}.", "They saw @placeholder."), ("train",), choices)
    if form == "word":
        texts = (_SCENE, f"{first}: {_SCENE}")
        marked = "river" if yes else "garden"
        return Example(str(number), texts, gold, spans=tuple(_span(texts, i, marked) for i in (0, 1)))
    texts = (f"{_SCENE} {first}: he laughed.",)
    who = "captain" if yes else "judge"
    return Example(str(number), texts, gold, spans=(_span(texts, 0, who), _span(texts, 0, "he laughed")))


def _span(texts: tuple[str, ...], text: int, words: str) -> TextSpan:
    start = texts[text].index(words)
    return TextSpan(text, start, start + len(words))


def task(
    form: Form, *, name: str = "", train: int = 96, dev: int = 32, seed: int = 0, test: int = 0
) -> TaskData:
    draw = random.Random(seed)
    splits = {
        split: [example(form, number, draw) for number in range(count)]
        for split, count in (("train", train), ("dev", dev), ("test", test))
        if count
    }
    return TaskData(spec(name or f"invented-{form}", form), splits, f"{form}-{seed}")


def encoder(folder: Path) -> Any:
    """A tiny BERT with dropout, loaded as any model is."""
    return load_model(str(tiny.save_encoder(folder)), device="cpu")


def settings(**given: Any) -> dict[str, Any]:
    """Settings for a tiny model: large steps, few of them."""
    defaults = {key: setting.default for key, setting in SETTINGS.items()}
    quick = {"runs": 1, "epochs": 10, "batch": 16, "learning_rate": 4e-3}
    return {**defaults, **quick, **given}


def recipe(**given: Any) -> Recipe:
    values: dict[str, Any] = {
        "epochs": 10,
        "learning_rate": 4e-3,
        "batch": 16,
        "warmup": 0.1,
        "weight_decay": 0.01,
        "dropout": 0.1,
        "pool": "mean",
        "pairs": "joint",
        "max_length": 64,
        "precision": "auto",
        "patience": None,
        "checks": 1,
    }
    return Recipe(**{**values, **given})
