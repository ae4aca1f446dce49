"""The texts a model has written so far in a run, so that a killed run goes on where it was."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ensue.records import Records, digest_of, plain

_TEXTS = plain("texts")


class WrittenTexts:
    """Texts by id among the records of a run, each good only for this question."""

    def __init__(self, records: Records, question: dict[str, Any]) -> None:
        self._records, self._question = records, question

    def get(self, name: str) -> str | None:
        found: str | None = self._records.get(_TEXTS, self._key(name))
        return found

    def add(self, texts: Iterable[tuple[str, str]]) -> None:
        """Keep some more."""
        self._records.add(_TEXTS, ((self._key(name), text) for name, text in texts))

    def _key(self, name: str) -> str:
        return digest_of(self._question, name)
