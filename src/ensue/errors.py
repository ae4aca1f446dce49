"""The errors a user may see: one sentence that names the thing and the next step."""

from __future__ import annotations

from collections.abc import Sequence


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
