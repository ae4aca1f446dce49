"""The neural entity grid (after Nguyen and Joty, 2017): convolution over each entity's row, pooled to one rating."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.nn import functional

from ensue.backends.grid.grid import Grid, GridForm
from ensue.backends.grid.model import GridReader, grid_card
from ensue.backends.hf.loading import WEIGHTS, ModelFolder, save_folder, state_of
from ensue.models.card import ModelCard
from ensue.records import file_digest

ARCHITECTURE = "NeuralEntityGrid"

Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class NetworkShape:
    """Sizes: numbers of a cell's vector, filters, and sentences that each filter sees."""

    embedding: int = 50
    filters: int = 100
    window: int = 4
    dropout: float = 0.5


class GridBatch(NamedTuple):
    """Texts as the distinct rows of their grids, and those as the distinct windows that filters see.

    `kinds` are the distinct sets of classes that entities are of. `windows` has the cells of each window: the number
    of its entity's kind times the number of roles, plus its role; beyond a text's end, one past all of these.
    `places` has the windows of each row, one past all of them where a row has no more. `rows` are the rows of the
    texts, one text after another from each of `begins` on.
    """

    kinds: Tensor
    windows: Tensor
    places: Tensor
    rows: Tensor
    begins: Tensor

    def to(self, device: torch.device) -> GridBatch:
        return GridBatch(*(part.to(device, non_blocking=True) for part in self))


def make_batch(grids: Sequence[Grid], signs: int, width: int) -> GridBatch:
    """Put texts together; rows and windows that are alike, as most are of entities mentioned once, come once."""
    counts = [len(grid.entities) for grid in grids]
    kinds, kind = np.unique(np.concatenate([grid.classes for grid in grids]), axis=0, return_inverse=True)
    longest = max(grid.roles.shape[1] for grid in grids)
    beyond = len(kinds) * signs
    cells = np.full((sum(counts), 1 + longest), beyond, dtype=np.int32)
    begins = np.cumsum([0, *counts])
    for begin, end, grid in zip(begins, begins[1:], grids, strict=False):
        length = grid.roles.shape[1]
        cells[begin:end, 0] = length
        cells[begin:end, 1 : 1 + length] = kind.reshape(-1)[begin:end, None] * signs + grid.roles
    distinct, rows = np.unique(cells, axis=0, return_inverse=True)
    windows, places = _windows(distinct[:, 1:].astype(np.int64), distinct[:, 0], beyond, width)
    parts = (windows, places, rows.reshape(-1), begins[:-1])
    return GridBatch(
        torch.from_numpy(kinds.astype(np.float32)),
        *(torch.from_numpy(part.astype(np.int64)) for part in parts),
    )


def _windows(cells: Numbers, lengths: Numbers, beyond: int, width: int) -> tuple[Numbers, Numbers]:
    """Return the distinct windows of rows, and which the rows have; a window reaches over either end of the text, but
    holds a sentence of it."""
    padded = np.pad(cells, ((0, 0), (width - 1, width - 1)), constant_values=beyond)
    views = np.lib.stride_tricks.sliding_window_view(padded, width, axis=1)
    codes: Numbers = np.zeros(padded.shape, dtype=np.int64)[:, width - 1 :]
    for place in range(width):
        # Numbered anew each time, so that codes stay small however wide windows are.
        found, first, inverse = np.unique(
            codes * (beyond + 1) + views[..., place], return_index=True, return_inverse=True
        )
        codes = inverse.reshape(codes.shape)
    inside = np.arange(codes.shape[1]) < (lengths + width - 1)[:, None]
    return views.reshape(-1, width)[first], np.where(inside, codes, len(found))


class GridNetwork(nn.Module):  # type: ignore[misc]
    """Roles and classes as vectors, filters over sentences next to each other, the highest value of each filter in a
    row, the mean over a text's rows, a linear layer."""

    def __init__(self, form: GridForm, shape: NetworkShape) -> None:
        super().__init__()
        self.form, self.shape = form, shape
        self.roles = nn.Embedding(len(form.signs), shape.embedding)
        self.classes = nn.Linear(len(form.classes), shape.embedding, bias=False)
        self.filters = nn.Conv1d(shape.embedding, shape.filters, shape.window)
        self.dropout = nn.Dropout(shape.dropout)
        self.rating = nn.Linear(shape.filters, 1, bias=False)

    def forward(self, batch: GridBatch) -> Tensor:
        """Return the rating of each text, in full precision; one that mentions nothing has 0."""
        if not len(batch.places):
            return self.rating.weight.new_zeros(len(batch.begins))
        with torch.autocast(batch.places.device.type, enabled=False):
            # No value is below that of what lies beyond a row.
            values = functional.pad(self._values(batch), (0, 0, 0, 1))
            rows = functional.embedding_bag(batch.places, values, mode="max")
            texts = functional.embedding_bag(batch.rows, rows, batch.begins, mode="mean")
            rating: Tensor = self.rating(self.dropout(texts)).squeeze(-1)
        return rating

    def _values(self, batch: GridBatch) -> Tensor:
        """Return what each filter makes of each distinct window, in which nothing stands beyond the text."""
        kinds = self.classes(batch.kinds.to(self.roles.weight.dtype))
        vectors = (kinds[:, None] + self.roles.weight).flatten(0, 1)
        cells = functional.pad(vectors, (0, 0, 0, 1))[batch.windows]
        # As the convolution of one window each, which a product of matrices is sooner done with.
        weights = self.filters.weight.transpose(1, 2).flatten(1)
        values: Tensor = functional.relu(functional.linear(cells.flatten(1), weights, self.filters.bias))
        return values


class NeuralGridModel:
    """Rates texts by a network over their entity grids."""

    def __init__(self, network: GridNetwork, card: ModelCard) -> None:
        self.network, self.card = network, card
        self.reader = GridReader(network.form)
        self.device = network.rating.weight.device

    @property
    def device_kind(self) -> str:
        return str(self.device.type)

    def rate(self, texts: Sequence[Sequence[str]]) -> list[float]:
        """Return one number a text, given as its sentences; the higher, the more coherent."""
        found: list[float] = []
        for grids in self.reader.grids(texts):
            found += rate_grids(self.network, grids)
        return found


def rate_grids(network: GridNetwork, grids: Sequence[Grid], size: int = 100) -> list[float]:
    """Return the rating of each grid, those of like length together."""
    found = [0.0] * len(grids)
    order = sorted(range(len(grids)), key=lambda place: grids[place].roles.shape[1])
    for begin in range(0, len(order), size):
        chosen = order[begin : begin + size]
        batch = make_batch([grids[place] for place in chosen], len(network.form.signs), network.shape.window)
        with torch.inference_mode():
            rated = network(batch.to(network.rating.weight.device)).float().cpu().tolist()
        for place, value in zip(chosen, rated, strict=True):
            found[place] = value
    return found


def load_neural_grid(folder: ModelFolder) -> NeuralGridModel:
    """Load the network saved in a folder."""
    with folder.loading("a neural entity grid"):
        network = GridNetwork(GridForm(**folder.config["grid"]), NetworkShape(**folder.config["shape"]))
        network.load_state_dict(load_file(folder.path / WEIGHTS))
    card = grid_card(folder, file_digest(folder.path / WEIGHTS), dtype=folder.options.dtype)
    return NeuralGridModel(folder.placed(network), card)


def save_neural_grid(folder: Path, network: Any) -> None:
    """Save a network as a model folder."""
    config = {
        "architectures": [ARCHITECTURE],
        "grid": asdict(network.form),
        "shape": asdict(network.shape),
    }
    save_folder(folder, config, state_of(network))
