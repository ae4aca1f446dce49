"""Sequences on disk are the lists they stand for."""

from __future__ import annotations

import gc
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ensue.shelf import Joined, Shelf

things = st.lists(st.one_of(st.text(max_size=40), st.dictionaries(st.text(max_size=3), st.integers())))


@given(things, st.integers(1, 60), st.slices(12))
def test_a_shelf_is_the_list_it_was_made_of(some: list[object], held: int, chosen: slice) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ensue.shelf._HELD", held)
        patch.setattr("ensue.shelf._AT_ONCE", 3)
        shelf = Shelf(some[:2])
        for thing in some[2:]:
            shelf.append(thing)
        assert list(shelf) == some == [shelf[place] for place in range(len(some))]
        assert shelf == some
        assert shelf[chosen] == some[chosen]
        assert len(shelf) == len(some)
        assert shelf != [*some, "more"]
        if some:
            assert shelf[-1] == some[-1]
        with pytest.raises(IndexError):
            shelf[len(some)]
        joined = Joined([shelf, ["more"], shelf])
        assert list(joined) == [*some, "more", *some]
        assert len(joined) == 2 * len(some) + 1
        assert "more" in joined


def test_what_is_put_away_is_gone_with_its_shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ensue.shelf._HELD", 10)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))

    def files() -> int:
        """Count the open files of that folder alone; others may be closed meanwhile."""
        links = (Path("/proc/self/fd", one) for one in os.listdir("/proc/self/fd"))
        return sum(os.readlink(one).startswith(f"{tmp_path}/") for one in links if one.is_symlink())

    shelf = Shelf(["a text of some length"] * 3)
    assert files() == 1
    assert not list(tmp_path.iterdir())
    del shelf
    gc.collect()
    assert files() == 0
