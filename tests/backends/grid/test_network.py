"""The network over grids: against loops over rows, alone and in batches."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
import torch

from ensue.backends.grid.grid import Grid, GridForm, build_grid
from ensue.backends.grid.mentions import HEAD, Mention
from ensue.backends.grid.network import GridNetwork, NetworkShape, make_batch, rate_grids

FORM = GridForm()


def drawn(seed: int, sentences: int) -> Grid:
    draw = Random(seed)
    return build_grid(
        [
            [Mention(draw.choice("abcdefg"), draw.randint(1, 3), HEAD, 0) for _ in range(draw.randint(1, 4))]
            for _ in range(sentences)
        ],
        FORM,
    )


@pytest.fixture
def network() -> GridNetwork:
    torch.manual_seed(3)
    return GridNetwork(FORM, NetworkShape(embedding=5, filters=7, window=3, dropout=0.5)).eval()


def by_hand(network: GridNetwork, grid: Grid) -> float:
    """The rating with one loop over entities and one over windows, by numpy."""
    weights = {name: value.detach().numpy().astype(float) for name, value in network.state_dict().items()}
    width = network.shape.window
    rows = []
    for roles, classes in zip(grid.roles, grid.classes, strict=True):
        cells = [weights["roles.weight"][role] + weights["classes.weight"] @ classes for role in roles]
        nothing = [np.zeros(network.shape.embedding)] * (width - 1)
        padded = [*nothing, *cells, *nothing]
        values = [
            np.einsum("fej,je->f", weights["filters.weight"], np.stack(padded[at : at + width]))
            + weights["filters.bias"]
            for at in range(len(cells) + width - 1)
        ]
        rows.append(np.maximum(np.max(values, axis=0), 0))
    return float(weights["rating.weight"][0] @ np.mean(rows, axis=0))


def test_ratings_are_those_of_loops_whatever_else_is_in_the_batch(network: GridNetwork) -> None:
    grids = [drawn(seed, sentences) for seed, sentences in enumerate([1, 2, 9, 4, 4, 12, 3])]
    expected = [by_hand(network, grid) for grid in grids]
    assert rate_grids(network, grids) == pytest.approx(expected, abs=1e-5)
    assert rate_grids(network, grids, size=2) == pytest.approx(expected, abs=1e-5)
    assert [rate_grids(network, [grid])[0] for grid in grids] == pytest.approx(expected, abs=1e-5)
    assert len({round(value, 4) for value in expected}) > 4


def test_half_precision_rates_nearly_the_same(network: GridNetwork) -> None:
    grids = [drawn(seed, 6) for seed in range(5)]
    expected = rate_grids(network, grids)
    assert rate_grids(network.to(torch.bfloat16), grids) == pytest.approx(expected, abs=0.02)


def test_rows_that_are_alike_come_once() -> None:
    grid = drawn(1, 6)
    once, twice = (make_batch(some, len(FORM.signs), 3) for some in ([grid], [grid, grid]))
    assert torch.equal(once.places, twice.places)
    assert len(twice.rows) == 2 * len(grid.entities)
    assert twice.begins.tolist() == [0, len(grid.entities)]


def test_a_text_that_mentions_nothing_is_rated_too(network: GridNetwork) -> None:
    empty = build_grid([[], []], FORM)
    assert rate_grids(network, [empty]) == [0.0]
    assert rate_grids(network, [empty, drawn(2, 3)])[0] == 0.0
