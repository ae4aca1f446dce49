"""Fetch models of the catalogue and convert those that come in another format than they run in."""

from __future__ import annotations

import shutil
from pathlib import Path

from ensue.fetch.catalog import Entry
from ensue.fetch.store import pull


def pull_model(entry: Entry) -> Path:
    """Return the folder of a model, fetched and converted if it is not there yet."""
    return pull(entry, {"gguf": _from_gguf, "word-vectors": _from_word_vectors})


def _from_gguf(pieces: list[Path], work: Path) -> Path:
    from ensue.backends.hf.gguf import convert

    return convert(_join(pieces, work / "model.gguf"), work / "converted")


def _from_word_vectors(pieces: list[Path], work: Path) -> Path:
    from ensue.backends.words.vectors import from_index

    return from_index(work / "data", work / "converted")


def _join(pieces: list[Path], target: Path) -> Path:
    """Put the pieces of a split file together, in order."""
    with target.open("wb") as sink:
        for piece in pieces:
            with piece.open("rb") as source:
                shutil.copyfileobj(source, sink, 1 << 20)
            piece.unlink()
    return target
