"""Words as the discourse encoder reads them: its tokeniser, and a vocabulary limited by frequency."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from ensue.errors import EnsueError

UNKNOWN = "<unk>"
VOCABULARY = "vocab.txt"
_WORD = re.compile(
    r"<unk>"
    r"|n't\b|'(?:s|re|ve|ll|d|m)\b"  # what English writes onto the word before
    r"|(?:[^\W\d_]\.){2,}"  # u.s., e.g.
    r"|\d+(?:[.,]\d+)*"
    r"|[^\W\d_]+?(?=n't\b)|[^\W_]+"
    r"|\.{2,}|-{2,}|[^\w\s]"
)
_STRAIGHT = str.maketrans({"’": "'", "‘": "'", "“": '"', "”": '"', "„": '"', "—": "-", "–": "-", "…": "."})
# Beyond so many different words, those seen least are forgotten while counting: memory stays bounded.
_MOST_COUNTED = 4_000_000


def words_of(text: str) -> list[str]:
    """Return the words and marks of a text in lower case, quotation marks and dashes made plain, hyphens alone.

    Text that was tokenised before (" ," for ",") gives the same words.

    >>> words_of("The U.S. team didn’t win 1,200 well-earned points.")
    ['the', 'u.s.', 'team', 'did', "n't", 'win', '1,200', 'well', '-', 'earned', 'points', '.']
    """
    return _WORD.findall(text.translate(_STRAIGHT).lower())


class Vocabulary:
    """Words and their numbers; 0 is <unk>, which stands for every word that is not in it."""

    def __init__(self, words: Sequence[str]) -> None:
        if not words or words[0] != UNKNOWN:
            raise EnsueError(f"A vocabulary begins with {UNKNOWN}.")
        self.words = tuple(words)
        self._numbers = {word: number for number, word in enumerate(words)}
        if len(self._numbers) != len(words):
            raise EnsueError("A vocabulary holds a word twice.")

    def __len__(self) -> int:
        return len(self.words)

    def number(self, words: Iterable[str]) -> list[int]:
        """Return the numbers of words."""
        find = self._numbers.get
        return [find(word, 0) for word in words]

    def encode(self, text: str) -> list[int]:
        """Return the numbers of a text's words."""
        return self.number(words_of(text))

    def save(self, folder: Path) -> None:
        (folder / VOCABULARY).write_text("".join(f"{word}\n" for word in self.words), "utf-8")


def load_vocabulary(folder: Path) -> Vocabulary:
    """Read the vocabulary of a model folder: one word a line."""
    path = folder / VOCABULARY
    try:
        words = path.read_text("utf-8").split("\n")
    except (OSError, UnicodeError) as error:
        raise EnsueError(f"{path} is not a readable vocabulary: {error}.") from error
    try:
        return Vocabulary(words[:-1] if words[-1] == "" else words)
    except EnsueError as error:
        raise EnsueError(f"{path} is not a vocabulary: {error}") from error


class WordCounter:
    """Counts of words over a stream, exact until there are millions of different ones."""

    def __init__(self, most: int = _MOST_COUNTED) -> None:
        self.counts: Counter[str] = Counter()
        self._most = most
        self._floor = 0

    def add(self, words: Iterable[str]) -> None:
        self.counts.update(words)
        while len(self.counts) > self._most:
            self._floor += 1
            self.counts = Counter({word: n for word, n in self.counts.items() if n > self._floor})

    def vocabulary(self, size: int) -> Vocabulary:
        """Return <unk> and the most frequent words, at most `size` in all; equal ones in alphabetical order."""
        ranked = sorted(((-n, word) for word, n in self.counts.items() if word != UNKNOWN))
        return Vocabulary([UNKNOWN, *(word for _, word in ranked[: size - 1])])
