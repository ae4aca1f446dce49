"""The entity grid of a text (Barzilay and Lapata, 2008): entities × sentences, in each cell a role."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ensue.backends.grid.mentions import (
    ABSENT,
    HEAD,
    MODIFIER,
    OTHER,
    PRONOUN,
    PROPERTIES,
    ROLE_SIGNS,
    Mention,
)
from ensue.errors import EnsueError

# Which mentions are counted: heads of noun phrases, all nouns, personal pronouns by their spelling too.
MENTIONS = {"heads": (HEAD,), "nouns": (HEAD, MODIFIER), "pronouns": (HEAD, MODIFIER, PRONOUN)}
# Entities by how often they are mentioned; the last holds all that are mentioned more often.
_COUNTS = ("once", "twice", "three times", "more often")


@dataclass(frozen=True)
class GridForm:
    """What a grid tells apart.

    Without `roles` a cell says whether an entity is mentioned and no more. Entities with `salience` mentions or more
    are salient and counted apart from the others; at 0 all are counted together. With `properties` they are counted
    again by what they are and how often they are mentioned. `mentions` names what
    is an entity: heads of noun phrases, all nouns, or pronouns as well.
    """

    roles: bool = True
    salience: int = 2
    properties: bool = False
    mentions: str = "nouns"

    def __post_init__(self) -> None:
        if self.salience < 0 or self.mentions not in MENTIONS:
            raise EnsueError(
                f"A grid has a salience of 0 or more and mentions of {', '.join(MENTIONS)}, not {self.salience} and "
                f"{self.mentions}."
            )

    @property
    def signs(self) -> str:
        """What may stand in a cell, in the order of its numbers."""
        return ROLE_SIGNS if self.roles else ROLE_SIGNS[: OTHER + 1]

    @property
    def classes(self) -> tuple[str, ...]:
        """The classes of entities that are counted apart; an entity may be of several."""
        found = ("salient", "others") if self.salience else ("all",)
        return (*found, *PROPERTIES, *_COUNTS) if self.properties else found


class Grid(NamedTuple):
    """A text's grid: entities, roles as entities × sentences, and of which classes each entity is."""

    entities: tuple[str, ...]
    roles: npt.NDArray[np.int8]
    classes: npt.NDArray[np.bool_]

    def reordered(self, order: Sequence[int]) -> Grid:
        """Return the grid of the text with its sentences in another order."""
        return self._replace(roles=self.roles[:, list(order)])

    def drawn(self, form: GridForm) -> str:
        """Return the grid as people write it, a line an entity."""
        return "\n".join(
            f"{entity} {''.join(form.signs[role] for role in row)}"
            for entity, row in zip(self.entities, self.roles, strict=True)
        )


def build_grid(sentences: Sequence[Sequence[Mention]], form: GridForm) -> Grid:
    """Make the grid of a text from what each sentence mentions; words of one spelling are one entity."""
    rows: dict[str, int] = {}
    counts: list[int] = []
    properties: list[int] = []
    cells: dict[tuple[int, int], int] = {}
    kinds = MENTIONS[form.mentions]
    for column, mentions in enumerate(sentences):
        for mention in mentions:
            if mention.kind not in kinds:
                continue
            row = rows.setdefault(mention.head, len(rows))
            if row == len(counts):
                counts.append(0)
                properties.append(0)
            counts[row] += 1
            properties[row] |= mention.properties
            role = mention.role if form.roles else OTHER
            cells[row, column] = max(cells.get((row, column), ABSENT), role)
    roles = np.full((len(rows), len(sentences)), ABSENT, dtype=np.int8)
    if cells:
        places = np.array(list(cells))
        roles[places[:, 0], places[:, 1]] = list(cells.values())
    return Grid(tuple(rows), roles, _classes(np.array(counts, int), np.array(properties, int), form))


def _classes(
    counts: npt.NDArray[np.int_], properties: npt.NDArray[np.int_], form: GridForm
) -> npt.NDArray[np.bool_]:
    columns = [np.ones(len(counts), bool)]
    if form.salience:
        columns = [counts >= form.salience, counts < form.salience]
    if form.properties:
        columns += [(properties >> place & 1).astype(bool) for place in range(len(PROPERTIES))]
        columns += [np.minimum(counts, len(_COUNTS)) == place for place in range(1, len(_COUNTS) + 1)]
    return np.stack(columns, axis=1)


def transition_names(form: GridForm, longest: int) -> list[str]:
    """Return the name of each feature: a class of entities, and the roles of one in sentences next to each other."""
    return [
        f"{name} {''.join(signs)}"
        for length in range(2, longest + 1)
        for name in form.classes
        for signs in product(form.signs, repeat=length)
    ]


def transition_features(grid: Grid, form: GridForm, longest: int) -> npt.NDArray[np.float64]:
    """Return the share of each transition among those of its length and class of entities; 0 where there are none."""
    base, (entities, sentences) = len(form.signs), grid.roles.shape
    found = []
    for length in range(2, longest + 1):
        kinds = base**length
        windows = max(sentences - length + 1, 0)
        codes = np.zeros((entities, windows), dtype=np.int64)
        for place in range(length):
            codes = codes * base + grid.roles[:, place : place + windows]
        own = codes + kinds * np.arange(entities)[:, None]
        by_entity = np.bincount(own.ravel(), minlength=entities * kinds).reshape(entities, kinds)
        by_class = grid.classes.T.astype(np.float64) @ by_entity
        totals = by_class.sum(axis=1, keepdims=True)
        found.append((by_class / np.where(totals, totals, 1)).ravel())
    return np.concatenate(found)
