"""What is handed in: a file, and what is said of the system; read and checked before anything is accepted."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any, BinaryIO, NamedTuple
from urllib.parse import urlsplit

from ensue.platform.home import copy_within
from ensue.platform.refusals import Invalid, Refusal, email_address, line, prose


class Problems(Refusal):
    """A file that will not do; every problem with its file and line."""

    status = 422

    def __init__(self, problems: Sequence[Mapping[str, Any]]) -> None:
        noun, them = ("problem", "it") if len(problems) == 1 else ("problems", "them")
        super().__init__(f"The file has {len(problems):,} {noun}; mend {them} and send it again.")
        self.problems = [dict(one) for one in problems]


class Facts(NamedTuple):
    """What whoever hands something in says of it; the last four may be empty."""

    system: str
    description: str
    parameters: str
    data: str
    link: str
    sharing: str = ""
    team: str = ""
    code: str = ""
    contact: str = ""

    @classmethod
    def read(cls, given: Mapping[str, str]) -> Facts:
        """Check what was given; the e-mail address comes as `email`, the team as `affiliation`."""
        words = {key: value for key, value in given.items() if isinstance(value, str)}
        required = ("system", "description", "parameters", "data", "link")
        if missing := [name for name in required if not words.get(name, "").strip()]:
            raise Invalid(f"Say more of the system: {', '.join(missing)} {_is_are(missing)} missing.")
        return cls(
            line(words["system"], "The system's name", 200),
            prose(words["description"], "The description", 20_000),
            line(words["parameters"], "The number of parameters", 200),
            prose(words["data"], "The training data", 20_000),
            web_address(words["link"], "The link"),
            line(words.get("sharing", ""), "What is shared", 200),
            line(words.get("affiliation", ""), "The affiliation", 200),
            web_address(words["code"], "The link to the code") if words.get("code", "").strip() else "",
            email_address(words["email"]) if words.get("email", "").strip() else "",
        )


class Handed(NamedTuple):
    """A file that was handed in, before it is accepted."""

    path: Path
    name: str
    digest: str


class Kept(NamedTuple):
    """A file among the uploads."""

    name: str
    digest: str
    size: int


def web_address(value: str, name: str) -> str:
    """Return an address of the web that a page may link to."""
    value = line(value, name, 1000, least=1)
    try:
        parts = urlsplit(value)
        fits = parts.scheme.lower() in {"http", "https"} and bool(parts.hostname) and " " not in value
    except ValueError:
        fits = False
    if not fits:
        raise Invalid(f"{name} is no address of the form https://…")
    return value


def receive(file: BinaryIO, folder: Path, name: str, most: int) -> Handed:
    """Copy what was sent into a folder, to be looked at there."""
    path = folder / "file"
    with path.open("wb") as copy:
        digest, size = copy_within(file, copy, most)
    if not size:
        raise Problems([{"file": name, "line": 0, "problem": "the file is empty."}])
    return Handed(path, name, digest)


def file_name(given: str) -> str:
    """Return the last part of a file's name, without what a page should not show.

    >>> file_name("../../etc/passwd"), file_name("C:\\\\runs\\\\a.zip"), file_name("\\x00")
    ('passwd', 'a.zip', 'submission')
    """
    last = PureWindowsPath(PurePosixPath(given).name).name
    shown = "".join(character for character in last if character.isprintable())
    return shown[:255].strip() or "submission"


def body_digest(file: str, facts: Facts) -> str:
    """Return a digest of everything that was handed in."""
    words = json.dumps([file, *facts], ensure_ascii=True)
    return hashlib.sha256(words.encode()).hexdigest()


def idempotency_key(key: str | None) -> str | None:
    """Return an Idempotency-Key that can be kept; an empty one is none."""
    if key is None or not key.strip():
        return None
    key = key.strip()
    if len(key) > 200 or not key.isascii() or not key.isprintable():
        raise Invalid("The Idempotency-Key is not of up to 200 printable ASCII characters.")
    return key


def _is_are(names: Sequence[str]) -> str:
    return "is" if len(names) == 1 else "are"
