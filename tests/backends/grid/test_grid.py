"""Grids and transition shares against examples counted by hand and a naive count."""

from __future__ import annotations

from itertools import product
from random import Random

import numpy as np
import pytest

from ensue.backends.grid.grid import (
    Grid,
    GridForm,
    build_grid,
    transition_features,
    transition_names,
)
from ensue.backends.grid.mentions import (
    HEAD,
    KINDS,
    MODIFIER,
    OBJECT,
    OTHER,
    PRONOUN,
    PROPERTIES,
    SUBJECT,
    Mention,
)
from ensue.errors import EnsueError


def mention(head: str, role: int, *properties: str, kind: int = HEAD) -> Mention:
    return Mention(head, role, kind, sum(1 << PROPERTIES.index(name) for name in properties))


# The boat carried the mail. A storm hit the boat, and the boat's mast fell. The mail was lost at storm sea with it.
TEXT = [
    [mention("boat", SUBJECT), mention("mail", OBJECT)],
    [
        mention("storm", SUBJECT),
        mention("boat", OTHER),
        mention("boat", OBJECT),
        mention("mast", SUBJECT, "modified"),
    ],
    [
        mention("mail", OBJECT),
        mention("sea", OTHER),
        mention("storm", OTHER, kind=MODIFIER),
        mention("it", OBJECT, "pronoun", kind=PRONOUN),
    ],
]


def shares(form: GridForm, longest: int = 2, text: list[list[Mention]] = TEXT) -> dict[str, float]:
    found = transition_features(build_grid(text, form), form, longest)
    return dict(zip(transition_names(form, longest), found.tolist(), strict=True))


@pytest.mark.parametrize(
    "roles", [(OTHER, SUBJECT, OBJECT), (SUBJECT, OTHER, OBJECT), (OBJECT, OTHER, SUBJECT)]
)
def test_the_highest_role_stands_in_the_grid_whichever_comes_first(roles: tuple[int, ...]) -> None:
    grid = build_grid([[mention("boat", role) for role in roles]], GridForm())
    assert grid.roles.tolist() == [[SUBJECT]]


def test_the_highest_role_of_a_sentence_stands_in_the_grid() -> None:
    form = GridForm(mentions="heads")
    assert build_grid(TEXT, form).drawn(form) == "boat SO-\nmail O-O\nstorm -S-\nmast -S-\nsea --X"
    plain = GridForm(roles=False, mentions="heads")
    assert build_grid(TEXT, plain).drawn(plain) == "boat XX-\nmail X-X\nstorm -X-\nmast -X-\nsea --X"
    assert build_grid(TEXT, GridForm()).drawn(form) == "boat SO-\nmail O-O\nstorm -SX\nmast -S-\nsea --X"
    pronouns = build_grid(TEXT, GridForm(mentions="pronouns")).drawn(form)
    assert pronouns == "boat SO-\nmail O-O\nstorm -SX\nmast -S-\nsea --X\nit --O"


def test_transition_shares_are_those_counted_by_hand() -> None:
    # Salient (two mentions or more): boat SO-, mail O-O: SO O- O- -O. Others: storm -S-, mast -S-, sea --X.
    found = shares(GridForm(mentions="heads"))
    salient = {"SO": 1 / 4, "O-": 2 / 4, "-O": 1 / 4}
    others = {"-S": 2 / 6, "S-": 2 / 6, "--": 1 / 6, "-X": 1 / 6}
    expected = {f"salient {name}": share for name, share in salient.items()} | {
        f"others {name}": share for name, share in others.items()
    }
    assert {name: share for name, share in found.items() if share} == pytest.approx(expected)
    assert len(found) == 2 * 16


def test_without_salience_and_roles_entities_and_mentions_are_not_told_apart() -> None:
    found = shares(GridForm(roles=False, salience=0, mentions="heads"))
    assert found == pytest.approx({"all --": 1 / 10, "all -X": 4 / 10, "all X-": 4 / 10, "all XX": 1 / 10})
    # Boat has three mentions; at four nobody is salient, and shares of nothing are 0.
    assert shares(GridForm(salience=3, mentions="heads"))["salient SO"] == pytest.approx(1 / 2)
    assert not any(
        share for name, share in shares(GridForm(salience=4)).items() if name.startswith("salient")
    )


def test_entities_are_counted_by_what_they_are_where_asked() -> None:
    found = shares(GridForm(roles=False, properties=True, mentions="heads"))
    assert (found["modified -X"], found["modified X-"], found["modified --"]) == (0.5, 0.5, 0)
    assert found["three times XX"] == 0.5  # boat alone
    assert found["twice X-"] == 0.5  # mail alone
    assert found["once -X"] == pytest.approx(3 / 6)
    assert found["more often --"] == 0
    assert not any(share for name, share in found.items() if name.startswith(("proper", "person", "plural")))


def naive(grid: Grid, form: GridForm, longest: int) -> list[float]:
    """Count every transition of every class one at a time."""
    found = []
    for length in range(2, longest + 1):
        for number, _ in enumerate(form.classes):
            windows = [
                tuple(row[begin : begin + length])
                for row, classes in zip(grid.roles.tolist(), grid.classes, strict=True)
                if classes[number]
                for begin in range(len(row) - length + 1)
            ]
            kinds = product(range(len(form.signs)), repeat=length)
            found += [windows.count(kind) / len(windows) if windows else 0.0 for kind in kinds]
    return found


@pytest.mark.parametrize("form", [GridForm(), GridForm(roles=False, salience=0), GridForm(properties=True)])
@pytest.mark.parametrize("sentences", [0, 1, 2, 3, 9])
def test_shares_are_those_of_a_naive_count(form: GridForm, sentences: int) -> None:
    draw = Random(sentences)
    text = [
        [
            Mention(
                draw.choice("abcdefgh"),
                draw.randint(1, 3),
                draw.choice(KINDS),
                draw.randrange(1 << len(PROPERTIES)),
            )
            for _ in range(draw.randint(0, 5))
        ]
        for _ in range(sentences)
    ]
    grid = build_grid(text, form)
    found = transition_features(grid, form, 3)
    assert found.tolist() == pytest.approx(naive(grid, form, 3))
    assert len(found) == len(transition_names(form, 3))


def test_another_order_is_the_grid_of_the_reordered_text() -> None:
    form, order = GridForm(properties=True), [2, 0, 1]
    grid, again = build_grid(TEXT, form), build_grid([TEXT[place] for place in order], form)
    reordered = grid.reordered(order)
    rows = {
        name: (reordered.roles[at].tolist(), reordered.classes[at].tolist())
        for at, name in enumerate(grid.entities)
    }
    assert rows == {
        name: (again.roles[at].tolist(), again.classes[at].tolist()) for at, name in enumerate(again.entities)
    }
    assert np.array_equal(transition_features(reordered, form, 3), transition_features(again, form, 3))


def test_a_form_that_is_none_is_refused() -> None:
    with pytest.raises(EnsueError, match="mentions of heads, nouns, pronouns, not 2 and verbs"):
        GridForm(mentions="verbs")
    with pytest.raises(EnsueError, match="salience of 0 or more"):
        GridForm(salience=-1)
