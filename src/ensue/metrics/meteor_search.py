"""METEOR's alignment with the fewest chunks, found by following every partial alignment; for short texts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from ensue.metrics.meteor_links import EXACT, STEM, SYNONYM, Links, Pair


class _State(NamedTuple):
    """A partial alignment: reference words used, those used beyond exactly, those as synonyms; the last one used."""

    used: int
    loose: int
    far: int
    last: int


def fewest_chunks(links: Links, limit: int) -> list[Pair] | None:
    """The best alignment by following every partial one over the candidate's words; None where they are too many."""
    words, stems = _masks(links)
    before, before_stem = Counter[str](), Counter[str]()
    layers: list[dict[_State, tuple[int, _State | None]]] = [{_State(0, 0, 0, -2): (0, None)}]
    for i, word in enumerate(links.candidate):
        stem, reached = links.stems[word], dict[_State, tuple[int, _State | None]]()
        for state, (chunks, _) in layers[-1].items():
            exact = (state.used & ~state.loose & words[word]).bit_count()
            kept = (state.used & ~state.far & stems[stem]).bit_count()
            may_leave = before[word] - exact < max(links.surplus[word], 0)
            may_stray = may_leave and before_stem[stem] - kept < max(links.stem_surplus[stem], 0)
            # Skipping a word at the stem stage is bounded by what is left over of its whole stem.
            for j, stage in links.options[i].items():
                bit = 1 << j
                if state.used & bit or not _allowed(
                    links, state, j, stage, may_leave, may_stray, words, stems
                ):
                    continue
                after = _State(
                    state.used | bit,
                    state.loose | bit * (stage != EXACT),
                    state.far | bit * (stage == SYNONYM),
                    j,
                )
                cost = chunks + (j != state.last + 1)
                if after not in reached or cost < reached[after][0]:
                    reached[after] = (cost, state)
            if may_stray:
                after = state._replace(last=-2)
                if after not in reached or chunks < reached[after][0]:
                    reached[after] = (chunks, state)
        if len(reached) > limit:
            return None
        before[word] += 1
        before_stem[stem] += 1
        layers.append(reached)
    last = min(layers[-1], key=lambda state: (-state.used.bit_count(), layers[-1][state][0]))
    return _walked_back(layers, last)


def _allowed(
    links: Links,
    state: _State,
    j: int,
    stage: int,
    may_leave: bool,
    may_stray: bool,
    words: dict[str, int],
    stems: dict[str, int],
) -> bool:
    """Whether a match leaves the stages before it as many as they can have."""
    if stage == EXACT:
        return True
    other = links.reference[j]
    if not may_leave or (state.loose & words[other]).bit_count() >= -links.surplus[other]:
        return False
    if stage == STEM:
        return True
    stem = links.stems[other]
    return may_stray and (state.far & stems[stem]).bit_count() < -links.stem_surplus[stem]


def _masks(links: Links) -> tuple[dict[str, int], dict[str, int]]:
    """Of each word and each stem, the reference's places that have it, as bits."""
    words, stems = dict.fromkeys(links.stems, 0), dict.fromkeys(links.stem_surplus, 0)
    for j, word in enumerate(links.reference):
        words[word] |= 1 << j
        stems[links.stems[word]] |= 1 << j
    return words, stems


def _walked_back(layers: Sequence[dict[_State, tuple[int, _State | None]]], state: _State) -> list[Pair]:
    pairs = []
    for i in range(len(layers) - 1, 0, -1):
        before = layers[i][state][1]
        assert before is not None
        if state.used != before.used:
            pairs.append((i - 1, state.last))
        state = before
    return pairs[::-1]
