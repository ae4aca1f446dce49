"""Models that rate a text's coherence by its entity grid: the linear one, and what all of them share."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ensue.atomic import write_atomic
from ensue.backends.grid.grid import Grid, GridForm, build_grid, transition_features, transition_names
from ensue.backends.grid.mentions import PARSER
from ensue.backends.hf.loading import ModelFolder, write_config
from ensue.errors import EnsueError
from ensue.fetch.pipeline import pipeline_identity
from ensue.jsonl import read_object
from ensue.models.card import ModelCard
from ensue.records import file_digest

ARCHITECTURE = "EntityGrid"
RANKER = "ranker.json"
# Texts that are parsed and rated at a time.
_PORTION = 500


class GridReader:
    """Makes grids of texts; each distinct sentence is parsed once."""

    def __init__(self, form: GridForm) -> None:
        self.form = form

    def grids(self, texts: Sequence[Sequence[str]]) -> Iterator[list[Grid]]:
        """Yield the grids of the texts, a portion at a time."""
        for begin in range(0, len(texts), _PORTION):
            portion = texts[begin : begin + _PORTION]
            parsed = PARSER.parse(sentence for text in portion for sentence in text)
            yield [build_grid([parsed[sentence] for sentence in text], self.form) for text in portion]


class Ranker(NamedTuple):
    """A weight for each transition up to a length; the rating is their sum over a text's transition probabilities."""

    form: GridForm
    longest: int
    weights: npt.NDArray[np.float64]

    def features(self, grids: Sequence[Grid]) -> npt.NDArray[np.float64]:
        """Return grids × features."""
        rows = [transition_features(grid, self.form, self.longest) for grid in grids]
        return np.stack(rows) if rows else np.zeros((0, len(self.weights)))


class EntityGridModel:
    """Rates texts by the transitions in their entity grids."""

    def __init__(self, ranker: Ranker, card: ModelCard) -> None:
        self.ranker, self.card = ranker, card
        self.reader = GridReader(ranker.form)

    def rate(self, texts: Sequence[Sequence[str]]) -> list[float]:
        """Return one number a text, given as its sentences; the higher, the more coherent."""
        found: list[float] = []
        for grids in self.reader.grids(texts):
            # Not a product of matrices, whose last digits may hang on how many texts there are.
            found += [float(math.fsum(row * self.ranker.weights)) for row in self.ranker.features(grids)]
        return found


def save_ranker(folder: Path, ranker: Ranker) -> None:
    """Save a linear model as a folder: its configuration, and its weights by name."""
    names = transition_names(ranker.form, ranker.longest)
    weights = {name: float(weight) for name, weight in zip(names, ranker.weights, strict=True)}
    folder.mkdir(parents=True, exist_ok=True)
    write_atomic(folder / RANKER, [json.dumps(weights, indent=1) + "\n"])
    form = {**asdict(ranker.form), "longest": ranker.longest}
    write_config(folder, {"architectures": [ARCHITECTURE], "grid": form})


def load_entity_grid(folder: ModelFolder) -> EntityGridModel:
    """Load the linear model saved in a folder."""
    with folder.loading("an entity grid"):
        shape = dict(folder.config["grid"])
        longest = int(shape.pop("longest"))
        form = GridForm(**shape)
        stated = read_object(folder.path / RANKER)
        names = transition_names(form, longest)
        if list(stated) != names:
            raise EnsueError(f"{folder.path / RANKER} has no weight for each transition of its config.json.")
        weights = np.array([float(stated[name]) for name in names])
        if not np.isfinite(weights).all():
            raise EnsueError(f"{folder.path / RANKER} has a weight that is not a number.")
    return EntityGridModel(
        Ranker(form, longest, weights), grid_card(folder, file_digest(folder.path / RANKER))
    )


def grid_card(folder: ModelFolder, weights: str, **more: Any) -> ModelCard:
    """Make the card of a grid model; how sentences are parsed is part of what decides a rating."""
    digest = hashlib.sha256(f"{file_digest(folder.path / 'config.json')} {weights}".encode()).hexdigest()
    identity = {"weights": digest, "parser": pipeline_identity(), **more}
    # Its training shuffled texts, whatever a card leaves out.
    return replace(folder.card("entity-grid", identity), trained_on_shuffled_text=True)
