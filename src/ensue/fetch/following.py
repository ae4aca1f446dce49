"""Where calibrations are kept: what texts that follow look like to a model and an encoder (`ensue calibrate`).

One form everywhere, in the file of the package, in that of ENSUE_HOME, in a file of one's own and in a model folder's
card: calibrations by the model's fingerprint, then by the encoder's and the reader's. A model of the same name with
other weights so finds none.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from importlib import resources
from pathlib import Path
from typing import Any

from ensue.atomic import lock, write_json
from ensue.errors import EnsueError, os_errors
from ensue.fetch.store import home
from ensue.jsonl import parse_line, read_object
from ensue.models.card import CARD_FILE, ModelCard, write_card_facts

# The fingerprint of no encoder, and the name of no encoder and no reader.
NO_ENCODER = "none"
_WITH = "+"
_FILE = "following.json"
# The reader that comes with the package, by the encoder it stands on.
_READERS = {"minilm": "smollm2-reader"}


def encoder_mark(encoder: ModelCard | None, reader: ModelCard | None = None) -> str:
    """Return what calibrations with an encoder and a reader go under."""
    mark = NO_ENCODER if encoder is None else encoder.fingerprint[:16]
    return mark if reader is None else f"{mark}{_WITH}{reader.fingerprint[:16]}"


def marks_in(mark: str) -> tuple[str, str]:
    """Return what an encoder and a reader alone would go under, the latter empty where there was none.

    >>> marks_in("0123456789abcdef+fedcba9876543210"), marks_in("none")
    (('0123456789abcdef', 'fedcba9876543210'), ('none', ''))
    """
    encoder, _, reader = mark.partition(_WITH)
    return encoder, reader


def reader_beside(encoder: str | None) -> str | None:
    """Return the reader that goes with an encoder where none is named."""
    return _READERS.get(encoder or "")


def home_file() -> Path:
    """Return the file of those calibrations that have no model folder to lie in."""
    return home() / _FILE


def known_calibrations(card: ModelCard, rule: int) -> dict[str, dict[str, Any]]:
    """Return what is known of a model, by encoder and reader: what ENSUE_HOME has before its card and the package.

    One that was fitted by another version of the rule gives way to any other.
    """
    shipped = resources.files("ensue.fetch").joinpath(_FILE).read_bytes()
    places = [
        _of_model(parse_line(shipped, _FILE), card, _FILE),
        _of_model(card.following, card, f"The card of {card.name}"),
    ]
    if home_file().is_file():
        places.append(_of_model(read_object(home_file()), card, str(home_file())))
    found: dict[str, dict[str, Any]] = {}
    for place in places:
        found |= {
            mark: facts for mark, facts in place.items() if mark not in found or facts.get("rule") == rule
        }
    return found


def read_calibrations(path: Path, card: ModelCard) -> dict[str, dict[str, Any]]:
    """Read a file of calibrations; refuse one that has none of this model."""
    found = _of_model(read_object(path), card, str(path))
    if not found:
        raise EnsueError(
            f"{path} has no calibration of {card.name}: make one with `ensue calibrate {card.name} --data DOCUMENTS "
            f"--output {path}`."
        )
    return found


def _of_model(known: Mapping[str, Any], card: ModelCard, place: str) -> dict[str, dict[str, Any]]:
    found = known.get(card.fingerprint, {})
    if not isinstance(found, dict) or not all(isinstance(one, dict) for one in found.values()):
        raise EnsueError(f"{place} has calibrations that cannot be read; run `ensue calibrate` again.")
    return found


def check_calibrations(path: Path | None) -> None:
    """Refuse a file to add a calibration to that holds something else, before time is spent on one."""
    held = read_object(path) if path is not None and path.exists() else {}
    if not all(isinstance(one, dict) and "model" in one for of in held.values() for one in _listed(of)):
        raise EnsueError(f"{path} holds something other than calibrations; name another file.")


def _listed(of_model: Any) -> list[Any]:
    return list(of_model.values()) if isinstance(of_model, dict) else [None]


def keep_in_file(path: Path, card: ModelCard, mark: str, facts: Mapping[str, Any]) -> Path:
    """Add a calibration to a file of them, made where it is not there, in place of an older one."""
    with os_errors(path, "written"):
        path.parent.mkdir(parents=True, exist_ok=True)
        # Several processes may have the same home; a file of one's own is nobody else's.
        with lock(path.with_suffix(".lock")) if path == home_file() else nullcontext():
            known = read_object(path) if path.is_file() else {}
            return write_json(path, _added(known, card, mark, facts))


def keep_in_card(folder: Path, card: ModelCard, mark: str, facts: Mapping[str, Any]) -> Path:
    """Add a calibration to the card of a model folder, in place of an older one."""
    write_card_facts(folder, following=_added(card.following, card, mark, facts))
    return folder / CARD_FILE


def _added(known: Mapping[str, Any], card: ModelCard, mark: str, facts: Mapping[str, Any]) -> dict[str, Any]:
    of_model = dict(known.get(card.fingerprint) or {})
    return {**known, card.fingerprint: {**of_model, mark: dict(facts)}}
