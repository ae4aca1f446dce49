"""How a task is trained when nothing is said: a small table by the size of the training set and the encoder."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ensue.benchmarks.base import Setting
from ensue.benchmarks.nlu.examples import TaskSpec
from ensue.benchmarks.settings import many, one_of, optional, text, whole

PAIRS = ("joint", "apart", "both")
POOLS = ("cls", "mean", "last")
PRECISIONS = ("auto", "float32", "bf16")
# The longest sequence unless a longer one is asked for; attention to more costs more than it gives here.
LONGEST = 512

# Up to so many training examples: epochs, batch, and how often dev is looked at within an epoch.
_BY_SIZE = (
    (1_000, 20, 16, 1),
    (15_000, 5, 32, 1),
    (10**12, 3, 32, 4),
)
# Up to so wide an encoder: its learning rate. The paper's 1e-5 is for BERT-large; smaller ones need larger steps.
_BY_WIDTH = ((512, 1e-4), (768, 3e-5), (10**12, 1e-5))
# How alike two texts are is judged best from each alone as well, as sentence encoders were trained to.
_PAIRS_OF_FORM = {"score": "both"}
# One example of these is a sequence for every entity.
_FEWER_OF_FORM = {"entity": 4}


@dataclass(frozen=True)
class Recipe:
    """Everything about the training of one task that changes its outcome."""

    epochs: int
    learning_rate: float
    batch: int
    warmup: float
    weight_decay: float
    dropout: float
    pool: str
    pairs: str
    max_length: int
    precision: str
    patience: int | None
    checks: int

    @property
    def joint(self) -> bool:
        return self.pairs != "apart"

    @property
    def apart(self) -> bool:
        return self.pairs != "joint"


def number(low: float, high: float) -> Callable[[str], float]:
    """Return a reader of a number within bounds, both included."""

    def read(written: str) -> float:
        try:
            value = float(written)
        except ValueError:
            value = float("nan")
        if not low <= value <= high:
            raise ValueError(f"a number from {low:g} to {high:g}")
        return value

    return read


SETTINGS: Mapping[str, Setting] = {
    "epochs": Setting(None, "passes over the training set; by its size when none", optional(whole())),
    "learning_rate": Setting(
        None, "highest learning rate; by the encoder's width when none", optional(number(1e-8, 1.0))
    ),
    "batch": Setting(None, "examples a step; by the training set's size when none", optional(whole())),
    "max_length": Setting(
        None, f"most tokens of a sequence; at most {LONGEST} when none", optional(whole(8))
    ),
    "warmup": Setting(0.1, "share of the steps over which the learning rate warms up", number(0.0, 1.0)),
    "weight_decay": Setting(0.01, "AdamW's, not on biases and norms", number(0.0, 10.0)),
    "dropout": Setting(0.1, "before the classifier", number(0.0, 0.9)),
    "pool": Setting(
        "auto", "a sequence's vector: auto (the model's own), cls, mean, last", one_of("auto", *POOLS)
    ),
    "pairs": Setting(
        "auto", "two texts are read: joint, apart, both, or auto (both for scores)", one_of("auto", *PAIRS)
    ),
    "precision": Setting("auto", "auto (bf16 on a GPU), float32, bf16", one_of(*PRECISIONS)),
    "patience": Setting(None, "early stopping: evaluations on dev without a better score", optional(whole())),
    "intermediate": Setting(
        "none", "train on this first: none, mnli, swag, or a file of NLI pairs or multiple choices", text
    ),
    "intermediate_data": Setting(
        None, "the file of mnli or swag, where the run's own data has no training set of it", optional(text)
    ),
    "intermediate_for": Setting(
        ["paper"],
        "tasks that start from it: paper (its choice of tasks; all for a file), all, or names",
        many(text),
    ),
    "save": Setting("no", "yes keeps the fine-tuned weights under the run", one_of("no", "yes")),
}


def rate_for(width: int) -> float:
    """Return the learning rate of a whole encoder by its width."""
    return next(rate for widest, rate in _BY_WIDTH if width <= widest)


def recipe_for(
    spec: TaskSpec, examples: int, settings: Mapping[str, Any], *, width: int, limit: int, pool: str
) -> Recipe:
    """Return the recipe of a task with so many examples, for an encoder `width` wide that takes `limit` tokens."""
    epochs, batch, checks = next(row[1:] for row in _BY_SIZE if examples <= row[0])
    rate = rate_for(width)
    pairs = settings["pairs"] if settings["pairs"] != "auto" else _PAIRS_OF_FORM.get(spec.form, "joint")
    return Recipe(
        epochs=settings["epochs"] or epochs,
        learning_rate=settings["learning_rate"] or rate,
        batch=settings["batch"] or _FEWER_OF_FORM.get(spec.form, batch),
        warmup=settings["warmup"],
        weight_decay=settings["weight_decay"],
        dropout=settings["dropout"],
        pool=pool if settings["pool"] == "auto" else settings["pool"],
        pairs=pairs if spec.form in ("pair", "score") else "joint",
        max_length=min(settings["max_length"] or LONGEST, limit),
        precision=settings["precision"],
        patience=settings["patience"],
        checks=checks,
    )
