"""Read the WordNet 3.0 database for one thing: which words can mean the same as a given one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from ensue.errors import EnsueError

VARIABLE = "ENSUE_WORDNET"
# Where Debian's wordnet-base and NLTK's downloads put it; looked at in this order.
_PLACES = ("/usr/share/wordnet", "~/nltk_data/corpora/wordnet", "/usr/share/nltk_data/corpora/wordnet")
_PARTS = ("noun", "verb", "adj", "adv")
# How an inflected form may end and what its base ends in, as WordNet's own `morphy` has it.
_ENDINGS = {
    part: [tuple(pair.split(":")) for pair in pairs.split()]
    for part, pairs in {
        "noun": "s: ses:s ves:f xes:x zes:z ches:ch shes:sh men:man ies:y",
        "verb": "s: ies:y es:e es: ed:e ed: ing:e ing:",
        "adj": "er: est: er:e est:e",
        "adv": "",
    }.items()
}


class WordNet:
    """The part of WordNet that METEOR asks: base forms of a word, and the words that share a synset with one."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._index = {part: dict(_read_index(folder / f"index.{part}")) for part in _PARTS}
        self._irregular = {part: _read_exceptions(folder / f"{part}.exc") for part in _PARTS}
        # A synset's offset is its byte position, so the files are kept as bytes.
        self._data = {part: _bytes(folder / f"data.{part}") for part in _PARTS}
        self.synonyms = lru_cache(maxsize=1 << 17)(self._synonyms)

    def base_forms(self, word: str, part: str) -> list[str]:
        """Return the word and what it may be an inflection of, as far as WordNet has them as that part of speech."""
        irregular = self._irregular[part].get(word)
        if irregular is None:
            irregular = [word[: -len(old)] + new for old, new in _ENDINGS[part] if word.endswith(old)]
        index = self._index[part]
        return [form for form in dict.fromkeys([word, *irregular]) if form in index]

    def _synonyms(self, word: str) -> frozenset[str]:
        """Return all single words that share a synset with a base form of the word; names keep their capitals."""
        word = word.lower()
        found: set[str] = set()
        for part in _PARTS:
            for form in self.base_forms(word, part):
                for offset in self._index[part][form]:
                    found.update(name for name in self._words(part, offset) if "_" not in name)
        return frozenset(found)

    def _words(self, part: str, offset: int) -> list[str]:
        """Return the words of the synset at an offset: `offset file type count word id word id …`."""
        data = self._data[part]
        end = data.find(b"|", offset)
        fields = data[offset : end if end >= 0 else None].split(b" ")
        if len(fields) < 6 or not fields[0].isdigit() or int(fields[0]) != offset:
            raise EnsueError(
                f"{self.folder / f'data.{part}'} has no synset at byte {offset}, which index.{part} names: the files "
                f"belong to different versions, so install WordNet 3.0 again."
            )
        count = int(fields[3], 16)
        # Adjectives may carry where they stand, as in `afraid(p)`.
        return [name.decode("ascii").split("(")[0] for name in fields[4 : 4 + 2 * count : 2]]


@lru_cache(maxsize=2)
def load_wordnet(folder: Path) -> WordNet:
    """Read the WordNet of a folder, once."""
    return WordNet(folder)


def find_wordnet() -> Path | None:
    """Find WordNet's database files where ENSUE_WORDNET, NLTK or Debian have them; None where nobody does."""
    named = os.environ.get(VARIABLE)
    nltk = [
        f"{place}/corpora/wordnet" for place in os.environ.get("NLTK_DATA", "").split(os.pathsep) if place
    ]
    for place in [named] if named else [*nltk, *_PLACES]:
        path = Path(place).expanduser()
        for one in (path, path / "dict", path / "wordnet"):
            if (one / "index.noun").is_file():
                return one
    if named:
        raise EnsueError(
            f"{named} holds no WordNet: there is no index.noun in it; name the folder of its database files."
        )
    return None


def _read_index(path: Path) -> Iterator[tuple[str, list[int]]]:
    """Read lemmas and offsets: `lemma pos synsets pointers [pointer …] senses tagged offset …`; skip the licence."""
    for number, line in enumerate(_bytes(path).decode("ascii", "replace").splitlines(), 1):
        if line.startswith(" ") or not line.strip():
            continue
        fields = line.split()
        try:
            count, pointers = int(fields[2]), int(fields[3])
            offsets = [int(field) for field in fields[6 + pointers :]]
        except (IndexError, ValueError):
            raise EnsueError(
                f"{path}, line {number}, is not a line of WordNet's index; install WordNet 3.0 again."
            ) from None
        if len(offsets) != count:
            raise EnsueError(
                f"{path}, line {number}, promises {count} synsets and names {len(offsets)}; install WordNet again."
            )
        yield fields[0], offsets


def _read_exceptions(path: Path) -> dict[str, list[str]]:
    lines = map(str.split, _bytes(path).decode("ascii", "replace").splitlines())
    return {word: forms for word, *forms in filter(None, lines)}


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise EnsueError(
            f"{path} cannot be read ({error.strerror or error}); install all of WordNet 3.0 again."
        ) from None
