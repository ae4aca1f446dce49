"""What a user may choose about a build, and which task knows which choice."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ensue.benchmarks.discoeval.builders.common import Sizes, Split
from ensue.benchmarks.discoeval.builders.corpus import Reading
from ensue.benchmarks.discoeval.suite import Spec
from ensue.errors import EnsueError

_CHAT: dict[Split, int] = {"train": 5816, "valid": 1834, "test": 2418}
_OTHERS: dict[Split, int] = {"train": 10_000, "valid": 4_000, "test": 4_000}
_FROM_TEXTS = ("SP", "BSO", "DC")
_DRAWN = (*_FROM_TEXTS, "SSP")
# The groups of tasks that know an option; one that is not here all of them know.
_KNOWN_TO = {
    "train": _DRAWN,
    "valid": (*_DRAWN, "RST"),
    "test": _DRAWN,
    "valid_list": ("RST",),
    "others": ("SP",),
    "per_document": ("DC", "SSP"),
    "unpaired": ("DC",),
    "text_column": _FROM_TEXTS,
    "split": _FROM_TEXTS,
    "language": _DRAWN,
    "limit": _DRAWN,
}
_LEAST = {"train": 1, "valid": 1, "test": 1, "per_document": 0, "limit": 1}


@dataclass(frozen=True)
class Options:
    """Choices; None stands for what is usual.

    `train`, `valid` and `test` are numbers of lines (for RST, `valid` is one of documents); what is not given
    is as published, or its share of what a smaller source allows. `per_document` is how many runs (DC) or
    sentences of each kind (SSP) a document gives, 0 for all; chat gives all, the others one. `others` is
    in-order or shuffled (SP), `unpaired` gives each run of DC in one form, `valid_list` names a file of ids.
    """

    seed: int = 0
    train: int | None = None
    valid: int | None = None
    test: int | None = None
    per_document: int | None = None
    others: str | None = None
    unpaired: bool | None = None
    valid_list: Path | None = None
    text_column: str | None = None
    split: str | None = None
    language: str | None = None
    encoding: str = "utf-8"
    limit: int | None = None

    def given(self) -> dict[str, Any]:
        """All that is not left to what is usual, as JSON has it."""
        plain = {name: str(value) if isinstance(value, Path) else value for name, value in vars(self).items()}
        return {name: value for name, value in plain.items() if value is not None}

    def check(self, spec: Spec) -> None:
        """Refuse what the task does not know and numbers that make no sense, before anything is read."""
        for name, value in self.given().items():
            option = f"--{name.replace('_', '-')}"
            groups = _KNOWN_TO.get(name)
            if groups and spec.group not in groups:
                raise EnsueError(
                    f"{option} is for {' and '.join(groups)}, not for {spec.name}; leave it out."
                )
            if name in _LEAST and value < _LEAST[name]:
                raise EnsueError(f"{option} is {value}, but must be at least {_LEAST[name]}.")
        if self.valid is not None and self.valid_list:
            raise EnsueError(
                "--valid and --valid-list both choose documents for validation; give one of them."
            )

    def reading(self, workers: int) -> Reading:
        """How the source is read."""
        return Reading(
            self.text_column,
            self.split or "sentences",
            self.language or "en",
            self.encoding,
            self.limit,
            workers,
        )

    def sizes(self, spec: Spec) -> Sizes:
        """How many lines the splits shall have."""
        published = _CHAT if spec.name == "DC/chat" else _OTHERS
        return Sizes({"train": self.train, "valid": self.valid, "test": self.test}, published)

    def runs(self, spec: Spec) -> int | None:
        """How many runs or sentences a document gives, None for all."""
        if self.per_document is None:
            return None if spec.name == "DC/chat" else 1
        return self.per_document or None
