"""METEOR's alignment by taking the longest chunk that is left, again and again; for texts too long to search."""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heapify, heappop, heappush

from ensue.metrics.meteor_links import EXACT, STEM, SYNONYM, Links, Pair

# Minus the length, so that a heap gives the longest first; where it begins in candidate and reference.
Tile = tuple[int, int, int]


def tiled(links: Links) -> list[Pair]:
    """As many matches of each stage as there can be, in few chunks, if not always the fewest."""
    board = _Board(links)
    heap = list(_diagonals(links))
    heapify(heap)
    while heap:
        length, i, j = heappop(heap)
        runs = list(board.runs(i, j, -length))
        if runs == [(length, i, j)]:
            board.take(i, j, -length)
        else:
            for run in runs:
                heappush(heap, run)
    board.complete_stems()
    board.complete_synonyms()
    return sorted(board.matched.items())


def _diagonals(links: Links) -> Iterator[Tile]:
    """The longest runs of words that may be matched one after the other."""
    for i, options in enumerate(links.options):
        above = links.options[i - 1] if i else {}
        for j in options:
            if j - 1 in above:
                continue
            length = 1
            while i + length < len(links.options) and j + length in links.options[i + length]:
                length += 1
            yield -length, i, j


class _Board:
    """What is matched so far, and how much each word and stem may still leave to a later stage."""

    def __init__(self, links: Links) -> None:
        self._links = links
        self.matched: dict[int, int] = {}
        self._used: set[int] = set()
        self._words = dict(links.surplus)
        self._stems = dict(links.stem_surplus)

    def runs(self, i: int, j: int, length: int) -> Iterator[Tile]:
        """What of a diagonal can still be matched, in runs."""
        start, words, stems = 0, dict[str, int](), dict[str, int]()
        for step in range(length + 1):
            if step < length and self._possible(i + step, j + step, words, stems):
                continue
            if step > start:
                yield start - step, i + start, j + start
            start, words, stems = step + 1, {}, {}

    def _possible(self, i: int, j: int, words: dict[str, int], stems: dict[str, int]) -> bool:
        """Whether a match can be made; `words` and `stems` count what its run has already taken of later stages."""
        if i in self.matched or j in self._used:
            return False
        stage = self._links.options[i][j]
        if stage == EXACT:
            return True
        given, wanted = self._links.candidate[i], self._links.reference[j]
        if self._words[given] - words.get(given, 0) <= 0 or self._words[wanted] + words.get(wanted, 0) >= 0:
            return False
        if stage == SYNONYM:
            one, other = self._links.stems[given], self._links.stems[wanted]
            if self._stems[one] - stems.get(one, 0) <= 0 or self._stems[other] + stems.get(other, 0) >= 0:
                return False
            for stem in (one, other):
                stems[stem] = stems.get(stem, 0) + 1
        for word in (given, wanted):
            words[word] = words.get(word, 0) + 1
        return True

    def take(self, i: int, j: int, length: int) -> None:
        """Match a whole run."""
        for step in range(length):
            self.matched[i + step] = j + step
            self._used.add(j + step)
            stage = self._links.options[i + step][j + step]
            if stage >= STEM:
                given, wanted = self._links.candidate[i + step], self._links.reference[j + step]
                self._words[given] -= 1
                self._words[wanted] += 1
                if stage == SYNONYM:
                    self._stems[self._links.stems[given]] -= 1
                    self._stems[self._links.stems[wanted]] += 1

    def complete_stems(self) -> None:
        """Match what was set aside with a run that could not be taken whole; all exact matches are made by now."""
        for i, options in enumerate(self._links.options):
            for j, stage in options.items():
                if stage == STEM and i not in self.matched and j not in self._used:
                    self.matched[i] = j
                    self._used.add(j)

    def complete_synonyms(self) -> None:
        """Add synonyms until there can be no more, giving earlier ones another partner where that makes room."""
        options = [[j for j, stage in one.items() if stage == SYNONYM] for one in self._links.options]
        owners = {j: i for i, j in self.matched.items() if self._links.options[i][j] == SYNONYM}

        def find(i: int, seen: set[int]) -> bool:
            for j in options[i]:
                if j in seen or (j in self._used and j not in owners):
                    continue
                seen.add(j)
                if j not in owners or find(owners[j], seen):
                    self.matched[i], owners[j] = j, i
                    self._used.add(j)
                    return True
            return False

        for i in range(len(options)):
            if i not in self.matched:
                find(i, set())
