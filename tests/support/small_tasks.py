"""Small learnable tasks of every form, and a file with a vector for each of their words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from ensue.benchmarks.nlu.examples import Example, Form, TaskData, TaskSpec, TextSpan

GOOD, BAD = ("splendid", "merry", "bright"), ("dreary", "broken", "sour")
THINGS = ("kettle", "lantern", "bicycle", "harbour", "orchard", "violin")
NAMES = ("Ada", "Bram", "Cleo", "Dirk", "Esme", "Finn")
_FRAME = [
    "the",
    "is",
    "was",
    "and",
    "in",
    "a",
    "it",
    "old",
    "green",
    "elder",
    "baker",
    "says",
    "saw",
    "what",
    "caused",
    "followed",
    "from",
    "this",
    "which",
    "is",
    "here",
    "?",
]
FORMS: tuple[Form, ...] = ("single", "pair", "score", "choice", "answers", "entity", "word", "coreference")
_METRICS: dict[Form, tuple[str, ...]] = {
    "score": ("pearson", "spearman"),
    "entity": ("f1", "em"),
    "answers": ("f1a", "em"),
}
_LABELS: dict[Form, tuple[str, ...]] = {
    "single": ("0", "1"),
    "pair": ("entailment", "not_entailment"),
    "choice": ("0", "1"),
    "answers": ("0", "1"),
    "word": ("true", "false"),
    "coreference": ("true", "false"),
}


def spec(form: Form, name: str = "", **more: Any) -> TaskSpec:
    labels = more.pop("labels", _LABELS.get(form, ()))
    metrics = more.pop("metrics", _METRICS.get(form, ("accuracy",)))
    return TaskSpec(name or form.title(), "superglue", form, labels, metrics, {}, f"{form}.jsonl", **more)


def task(form: Form, train: int = 160, dev: int = 40, seed: int = 0, name: str = "") -> TaskData:
    """A task with training, dev and (unlabelled) test examples drawn alike."""
    rng = np.random.default_rng([seed, FORMS.index(form)])
    made = spec(form, name)
    splits = {
        "train": [example(form, f"t{i}", rng) for i in range(train)],
        "dev": [example(form, f"d{i}", rng) for i in range(dev)],
        "test": [_unlabelled(example(form, f"x{i}", rng)) for i in range(6)],
    }
    return TaskData(made, splits, fingerprint=f"{made.name}-{train}-{dev}-{seed}")


def example(form: Form, id: str, rng: np.random.Generator) -> Example:
    """One example whose answer can be told from its words."""
    yes = bool(rng.integers(2))
    one, two = (str(word) for word in rng.permutation(THINGS)[:2])
    good, bad = str(rng.choice(GOOD)), str(rng.choice(BAD))
    if form == "single":
        return Example(id, (f"The {one} is {good if yes else bad}.",), str(int(yes)))
    if form == "pair":
        gold = "entailment" if yes else "not_entailment"
        return Example(id, (f"The old {one} is {good}.", f"The {one} is {good if yes else bad}."), gold)
    if form == "score":
        shared = int(rng.integers(4))
        words = [str(word) for word in rng.permutation(THINGS)]
        first, second = words[:3], words[:shared] + words[3 : 6 - shared]
        return Example(id, (" ".join(first), " ".join(second)), 5.0 * shared / 3)
    if form == "choice":
        right, wrong = f"It is {good}.", f"It is {bad}."
        choices = (right, wrong) if yes else (wrong, right)
        return Example(id, (f"The {one} is old.", "effect"), str(int(not yes)), choices)
    if form == "answers":
        texts = (f"The {one} is green.", "What is it?", f"the {good if yes else bad} {two}")
        return Example(id, texts, str(int(yes)), group=f"q{id[:-1]}")
    if form == "entity":
        first, second, third = (str(name) for name in rng.permutation(NAMES)[:3])
        passage = f"{first} saw a {one}. {second} saw the elder {third}."
        query = "The elder is @placeholder."
        entities = [first, second, f"elder {third}"]
        return Example(id, (passage, query), (f"elder {third}",), tuple(rng.permutation(entities).tolist()))
    if form == "word":
        texts = (f"It was a {good} {one}.", f"It is the {good if yes else bad} {one} here.")
        spans = tuple(_span(number, text, one) for number, text in enumerate(texts))
        return Example(id, texts, str(yes).lower(), spans=spans)
    noun, other = (GOOD[0], BAD[0]) if yes else (BAD[0], GOOD[0])
    text = f"The {noun} {one} and the {other} {two} saw it."
    return Example(
        id, (text,), str(yes).lower(), spans=(_span(0, text, f"{noun} {one}"), _span(0, text, "it"))
    )


def _span(number: int, text: str, phrase: str) -> TextSpan:
    start = text.index(f" {phrase}") + 1
    return TextSpan(number, start, start + len(phrase))


def _unlabelled(made: Example) -> Example:
    return Example(made.id, made.texts, None, made.choices, made.spans, made.group)


def write_vectors(path: Path, width: int = 24) -> Path:
    """A text file with a random vector for each word of the tasks."""
    rng = np.random.default_rng(7)
    words = sorted({*GOOD, *BAD, *THINGS, *(name.lower() for name in NAMES), *_FRAME, "."})
    lines = [" ".join([word, *(f"{x:.4f}" for x in rng.normal(size=width))]) for word in words]
    path.write_text("\n".join(lines) + "\n", "utf-8")
    return path
