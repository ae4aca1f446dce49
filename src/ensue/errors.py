"""The errors a user may see: one sentence that names the thing and the next step."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path


class EnsueError(Exception):
    """Bad input or usage: printed as one sentence, exit code 2."""


class TooLong(EnsueError):
    """Some of the texts given are longer than a model takes; `places` says which, so that the others can be done."""

    def __init__(self, words: str, places: Sequence[int]) -> None:
        super().__init__(words)
        self.places = tuple(places)

    def __reduce__(self) -> tuple[type[TooLong], tuple[str, tuple[int, ...]]]:
        """Come whole out of another process."""
        return TooLong, (str(self), self.places)


class RunFailed(EnsueError):
    """The work began and could not be finished: printed as one sentence, exit code 1."""


@contextmanager
def os_errors(path: Path, done: str = "read") -> Iterator[None]:
    """Say in a sentence that a file cannot be read, or whatever is `done` with it, where the system refuses that."""
    try:
        yield
    except OSError as error:
        raise EnsueError(f"{path} cannot be {done}: {error.strerror or error}.") from error


def hint(name: str, known: Iterable[str], otherwise: str = "") -> str:
    """Return which of the known names may have been meant, whatever its capitals, or else what there is.

    >>> hint("shufle", ["qags", "shuffle"]), hint("a", ["qags", "shuffle"])
    ('did you mean shuffle?', 'there are qags, shuffle.')
    """
    import difflib  # where a name is wrong, and not before

    names = {one.casefold(): one for one in known}
    close = difflib.get_close_matches(name.casefold(), names, n=1)
    if close:
        return f"did you mean {names[close[0]]}?"
    return otherwise or f"there {'is' if len(names) == 1 else 'are'} {', '.join(names.values())}."
