"""What the platform answers when it does not do as asked: one sentence and the HTTP status that fits it."""

from __future__ import annotations

import re
import unicodedata
from datetime import datetime

from ensue.errors import EnsueError


class Refusal(EnsueError):
    """Something asked for is not done; the sentence is for whoever asked."""

    status = 400


class Unauthenticated(Refusal):
    """Nobody is signed in, or a token is not valid."""

    status = 401


class Forbidden(Refusal):
    """The caller may not do this."""

    status = 403


class NotFound(Refusal):
    """There is no such thing, or it is another user's."""

    status = 404


class TooSlow(Refusal):
    """The body did not come in time."""

    status = 408


class Conflict(Refusal):
    """What is there already does not allow it."""

    status = 409


class TooLarge(Refusal):
    """The body is larger than is taken here."""

    status = 413


class Invalid(Refusal):
    """A value is not of the form asked for."""

    status = 422


class TooMany(Refusal):
    """Asked too often; `retry_at` says from when on it is worth trying again."""

    status = 429

    def __init__(self, words: str, retry_at: datetime) -> None:
        super().__init__(words)
        self.retry_at = retry_at


class Busy(Refusal):
    """More is asked at once than there is room for."""

    status = 503


_EMAIL = re.compile(r"[^@\s]+@[^@\s]+")


def line(value: str, name: str, most: int, *, least: int = 0) -> str:
    """Return a text of one line, without blanks around it; refuse what no database or page should be given.

    >>> line("  BERT, large ", "The system's name", 200)
    'BERT, large'
    """
    value = prose(value, name, most, least=least)
    if "\n" in value:
        raise Invalid(f"{name} has more than one line; give one.")
    return value


def prose(value: str, name: str, most: int, *, least: int = 0) -> str:
    """Return a text of any number of lines, without blanks around it."""
    value = unicodedata.normalize("NFC", value).replace("\r\n", "\n").strip()
    # Control characters, unpaired surrogates, and marks that turn the reading direction of what follows them.
    if any(_unwanted(character) for character in value):
        raise Invalid(f"{name} has a control character in it; leave it out.")
    if len(value) < least:
        raise Invalid(f"{name} is missing." if not value else f"{name} needs at least {least} characters.")
    if len(value) > most:
        raise Invalid(f"{name} has {len(value):,} characters; at most {most:,} are taken.")
    return value


def email_address(value: str) -> str:
    """Return an e-mail address in lower case."""
    value = line(value, "The e-mail address", 254, least=1).lower()
    if not _EMAIL.fullmatch(value):
        raise Invalid("The e-mail address is not of the form name@host.")
    return value


def _unwanted(character: str) -> bool:
    if character in "\n\t":
        return False
    return unicodedata.category(character) in {"Cc", "Cs"} or "\u202a" <= character <= "\u202e"
