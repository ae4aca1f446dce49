"""Word vectors in the text format of GloVe and fastText, read line by line for the words of a vocabulary."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ensue.backends.discourse.words import Vocabulary
from ensue.errors import EnsueError


def read_vectors(path: Path, vocabulary: Vocabulary, width: int) -> tuple[Any, npt.NDArray[np.float32]]:
    """The places of the words that are found and their vectors; a first line that only counts is passed over."""
    numbers = {word: place for place, word in enumerate(vocabulary.words)}
    places: list[int] = []
    found: list[npt.NDArray[np.float32]] = []
    try:
        with path.open("rb") as file:
            for line_number, line in enumerate(file, 1):
                pieces = line.rstrip().split(b" ")
                if line_number == 1 and len(pieces) == 2:
                    continue
                if len(pieces) != width + 1:
                    # A few lines of GloVe's largest file hold a space within the word.
                    if len(pieces) > width + 1 and line_number > 1:
                        continue
                    raise EnsueError(
                        f"{path}, line {line_number} has {len(pieces) - 1} numbers where --embedding is {width}."
                    )
                place = numbers.pop(pieces[0].decode("utf-8", "replace"), None)
                if place is not None:
                    places.append(place)
                    found.append(_numbers(pieces[1:], f"{path}, line {line_number}"))
    except OSError as error:
        raise EnsueError(f"{path} could not be read: {error.strerror or error}.") from error
    if not found:
        raise EnsueError(f"{path} has a vector of no word of the vocabulary.")
    return np.asarray(places, dtype=np.int64), np.stack(found)


def _numbers(pieces: list[bytes], place: str) -> npt.NDArray[np.float32]:
    try:
        values = np.asarray([float(piece) for piece in pieces], dtype=np.float32)
    except ValueError:
        raise EnsueError(f"{place} holds something that is no number.") from None
    if not np.isfinite(values).all():
        raise EnsueError(f"{place} holds a number that is not finite.")
    return values
