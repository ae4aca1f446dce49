"""Reads `--set key=value` against what a benchmark knows."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from ensue.benchmarks.base import Setting
from ensue.errors import EnsueError, hint
from ensue.text.documents import BUNDLED, Documents, read_documents

T = TypeVar("T")
NONE = "none"  # how nothing is written
_SHOWN = 100  # characters of a value in a message


@dataclass(frozen=True)
class Reader(Generic[T]):
    """Reads a setting, and says what a form asks for it: one of a few words, or a file.

    The words may be a function, where finding them takes an import.
    """

    read: Callable[[str], T]
    choices: tuple[str, ...] | Callable[[], tuple[str, ...]] = ()
    is_file: bool = False

    def __call__(self, text: str) -> T:
        return self.read(text)


def whole(minimum: int = 1, most: int | None = None) -> Callable[[str], int]:
    """Read a whole number not below a minimum, nor above `most`."""
    limits = f"from {minimum}" + (f" to {most:,}" if most is not None else "")

    def read(text: str) -> int:
        if not (text.isascii() and text.isdigit() and len(text) <= 18 and int(text) >= minimum):
            raise ValueError(f"a whole number {limits}")
        if most is not None and int(text) > most:
            raise ValueError(f"a whole number {limits}")
        return int(text)

    return read


def number(text: str) -> float:
    """Any finite number."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise ValueError("a number")
    return value


def optional(read: Callable[[str], T]) -> Reader[T | None]:
    """Read the same, or `none`."""
    choices = (*choices_of(read), NONE) if choices_of(read) else ()
    return Reader(lambda text: None if text.lower() == NONE else read(text), choices, is_file(read))


def many(read: Callable[[str], Any]) -> Callable[[str], list[Any]]:
    """Several, divided by commas, none twice."""

    def read_all(text: str) -> list[Any]:
        return list(dict.fromkeys(read(piece.strip()) for piece in text.split(",") if piece.strip()))

    return read_all


def one_of(*choices: str) -> Reader[str]:
    """Read one of a few words."""

    def read(text: str) -> str:
        if text not in choices:
            raise ValueError(f"one of {', '.join(choices)}")
        return text

    return Reader(read, choices)


def _yes_or_no(text: str) -> str:
    return one_of("yes", "no")({"true": "yes", "false": "no"}.get(text.lower(), text))


# yes or no; from Python, True or False; from TOML and JSON, true or false.
yes_or_no = Reader(_yes_or_no, ("yes", "no"))
# The path of a file besides the data, which a form sends along.
file = Reader(str, is_file=True)


def choices_of(read: Callable[[str], Any]) -> tuple[str, ...]:
    """Return the few words that a setting can be, none where it can be more."""
    if not isinstance(read, Reader):
        return ()
    return read.choices() if callable(read.choices) else read.choices


def is_file(read: Callable[[str], Any]) -> bool:
    """Return whether a setting names a file."""
    return isinstance(read, Reader) and read.is_file


def files_among(known: Mapping[str, Setting]) -> set[str]:
    """Return the settings that name a file."""
    return {key for key, one in known.items() if is_file(one.read)}


def from_here(known: Mapping[str, Setting], given: Mapping[str, str]) -> dict[str, str]:
    """Return given settings with the whole paths of files, for whoever reads them in another folder."""
    files = files_among(known)
    return {
        key: str(Path(value).expanduser().absolute()) if key in files and value.lower() != NONE else value
        for key, value in given.items()
    }


def text(value: str) -> str:
    """Any text; \\n and \\t are understood."""
    return value.replace("\\n", "\n").replace("\\t", "\t")


def resolve(benchmark: str, known: Mapping[str, Setting], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return all settings with the given ones in place; an unknown key or bad value is one sentence."""
    values = {key: setting.default for key, setting in known.items()}
    for key, value in given.items():
        if key not in known:
            words = hint(key, known, f"it has {', '.join(known)}.")
            raise EnsueError(f"{benchmark} has no setting {key!r}; {words}")
        written = ",".join(map(_as_text, value)) if isinstance(value, list | tuple) else _as_text(value)
        try:
            values[key] = known[key].read(written)
        except ValueError as error:
            said = written if len(written) <= _SHOWN else f"{written[: _SHOWN - 1]}…"
            raise EnsueError(f"Invalid {key}={said}: expected {error}.") from None
        if values[key] == []:
            raise EnsueError(f"{key} is empty: name at least one value.")
    return values


def _as_text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def refuse_task(benchmark: str, task: str) -> None:
    """Raise where a task is named of a benchmark that has none."""
    if task:
        raise EnsueError(f"{benchmark} has no tasks, so there is no {benchmark}/{task}.")


# How documents are read, for benchmarks on running text.
DOCUMENT_SETTINGS = {
    "split": Setting("sentences", "sentences (by a splitter) or lines", one_of("sentences", "lines")),
    "language": Setting("en", "language of the sentence splitter", text),
    "encoding": Setting("utf-8", "encoding of files that are not UTF-8", text),
    "text_column": Setting(None, "column that holds the text", optional(text)),
}


def documents_of(
    benchmark: str, task: str, data: str | None, limit: int | None, settings: Mapping[str, Any]
) -> Documents:
    """Read the documents of a benchmark without tasks as its settings say; the bundled ones without data."""
    refuse_task(benchmark, task)
    how = {name: settings[name] for name in DOCUMENT_SETTINGS}
    return read_documents(data or BUNDLED, limit=limit, **how)


# What every benchmark that scores text lets a user choose about scoring.
POLICY_SETTINGS = {
    "window": Setting(
        "average",
        "texts longer than the model: average (the paper), strided, released (the authors' code), refuse",
        one_of("average", "strided", "released", "refuse"),
    ),
    "max_length": Setting(None, "window size in tokens, where the model takes more", optional(whole(2))),
    "bos": Setting(
        "auto", "auto (as tokenizer and model card say), always, never", one_of("auto", "always", "never")
    ),
    "masked": Setting(
        "original",
        "masked models: original, within-word, or released (the authors' code)",
        one_of("original", "within-word", "released"),
    ),
}


def written(value: Any) -> str:
    """Write a default as `--set` takes it.

    >>> written(None), written([1, 2]), written(0.1), written(3.0), written("")
    ('none', '1,2', '0.1', '3', '')
    """
    if value is None:
        return NONE
    if isinstance(value, list | tuple):
        return ",".join(written(one) for one in value)
    shown = f"{value:g}" if isinstance(value, float) else str(value)
    return shown.replace("\n", "\\n").replace("\t", "\\t")
