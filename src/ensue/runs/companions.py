"""What a profile needs beside the model that scores: an encoder, a reader, and the calibrations they go with."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from ensue.backends.names import load_model
from ensue.errors import EnsueError
from ensue.fetch.following import marks_in
from ensue.models.protocols import Encoder, Model, Reader, require
from ensue.scoring.verdict import RULE, Calibration

# The encoder and the reader a model was calibrated with, if it was; `none` is none.
AUTO, NO_ENCODER = "auto", "none"
DEFAULT_ENCODER = "minilm"
Companion = TypeVar("Companion", bound=Model)
# What was loaded for a model that somebody holds: it is not loaded again for the next text, and goes with the model.
_held: WeakKeyDictionary[Model, dict[tuple[str, str | None], Model]] = WeakKeyDictionary()


def calibrated_with(
    known: Mapping[str, Mapping[str, Any]], place: str, marks: tuple[str | None, str | None]
) -> tuple[str, str]:
    """Return the encoder and the reader of a model's calibrations: a reader rather than none, an encoder rather than
    none, and none of both where nothing is known.

    Only those count that have the encoder and the reader that are asked for, by their marks. Those of another version
    of the rule are refused only where there is no other.
    """
    fits = [
        facts
        for mark, facts in known.items()
        if all(asked in (None, own) for asked, own in zip(marks, marks_in(mark), strict=True))
    ]
    fresh = [facts for facts in fits if facts.get("rule") == RULE]
    made = [Calibration.of(facts, place) for facts in fresh or fits]
    names = sorted(
        ((one.encoder, one.reader) for one in made),
        key=lambda pair: (pair[1] == NO_ENCODER, pair[0] == NO_ENCODER),
    )
    return names[0] if names else (NO_ENCODER, NO_ENCODER)


def calibrating(model: str, encoder: str | Encoder | None, reader: str | Reader | None) -> str:
    """Return the command that would make a calibration of a model, an encoder and a reader."""
    words = ["ensue", "calibrate", model, "--data", "DOCUMENTS"]
    for option, asked in (("--encoder", encoder), ("--reader", reader)):
        if asked != AUTO:
            named = asked if isinstance(asked, str) else NO_ENCODER if asked is None else asked.card.name
            words += [option, named]
    return shlex.join(words)


def load_encoder(
    encoder: str | Encoder | None, options: Mapping[str, Any] | None = None, *, beside: Model
) -> Encoder | None:
    """Load what compares sentences, on the model's device; None where none is wanted. It is held as long as the model
    that it stands beside."""
    return _companion(encoder, Encoder, "encoder", "Comparing sentences", options, beside)


def load_reader(
    reader: str | Reader | None, options: Mapping[str, Any] | None = None, *, beside: Model
) -> Reader | None:
    """Load what says which sentences belong, in the same way."""
    return _companion(
        reader, Reader, "reader", "Reading a text for sentences that do not belong", options, beside
    )


def _companion(
    asked: str | Companion | None,
    capability: type[Companion],
    role: str,
    why: str,
    options: Mapping[str, Any] | None,
    beside: Model,
) -> Companion | None:
    if asked is None or asked == NO_ENCODER:
        return None
    if not isinstance(asked, str):
        return require(asked, capability, why)
    shared = {key: value for key, value in (options or {}).items() if key == "device"}
    held, place = _held.setdefault(beside, {}), (asked, shared.get("device"))
    try:
        if place not in held:
            held[place] = load_model(asked, **shared)
        return require(held[place], capability, why)
    except EnsueError as error:
        raise EnsueError(f"{str(error).rstrip('.')} (for the {role}; `none` does without one).") from error
