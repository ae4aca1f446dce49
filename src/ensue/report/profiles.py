"""Surprisal profiles for a reader: which documents to show, and which of their sentences surprises most."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from ensue.errors import EnsueError

# What a page can hold: a profile of a book would be longer than the rest of the report.
MOST_SENTENCES = 60
MOST_VERSIONS = 4
MOST_CHARACTERS = 600


class ProfiledSentence(NamedTuple):
    """One sentence at its place in a version of a document.

    `home` is its place in the original, counted from 1, and `change` its surprisal here less its surprisal
    there; both are None in the original itself and where there is none. `share` is the length of its bar,
    from 0 to 1; `highest` marks the one that surprises most.
    """

    place: int
    home: int | None
    text: str
    surprisal: float | None
    change: float | None
    share: float
    highest: bool


class ProfileVersion(NamedTuple):
    """One order of a document's sentences; `jump` is how far the marked sentence stands above the mean."""

    name: str
    sentences: list[ProfiledSentence]
    mean: float | None
    jump: float
    left_out: int


class ProfiledDocument(NamedTuple):
    """A document with its versions, the original first; `jump` is the largest of its shuffled versions.

    `accuracy` is the share of its shuffles, by block size, in which the model preferred the original.
    """

    name: str
    domain: str
    versions: list[ProfileVersion]
    jump: float
    accuracy: dict[str, float]


def most_surprising(profiles: Iterable[Mapping[str, Any]], limit: int) -> tuple[list[ProfiledDocument], int]:
    """Return the `limit` documents with the largest jumps, largest first, and how many documents there were."""
    kept: list[tuple[float, int, ProfiledDocument]] = []
    count = 0
    for count, profile in enumerate(profiles, start=1):
        document = shape(profile)
        if not document.versions:
            continue
        # The count breaks ties in favour of the earlier document, and keeps documents from being compared.
        entry = (document.jump, -count, document)
        if len(kept) < limit:
            heapq.heappush(kept, entry)
        else:
            heapq.heappushpop(kept, entry)
    return [document for _, _, document in sorted(kept, reverse=True)], count


def shape(profile: Mapping[str, Any]) -> ProfiledDocument:
    """Make a line of `profiles.jsonl` ready to be shown."""
    name = str(profile.get("document", ""))
    raw = list(profile["versions"])[:MOST_VERSIONS]
    for version in raw:
        lengths = {len(version.get("sentences", ())), len(version.get("surprisal", ()))}
        if len(lengths) != 1:
            raise EnsueError(
                f"The profile of document {name!r} has unequal numbers of sentences and surprisals."
            )
    # The original first, whatever the order of the file: the others are read against it.
    raw.sort(key=lambda version: version.get("name") != "original")
    highest = max(
        (value for version in raw for value in version["surprisal"] if value is not None), default=0.0
    )
    original = raw[0]["surprisal"] if raw and raw[0].get("name") == "original" else []
    versions = [_shape_version(version, original, highest) for version in raw]
    jumps = [version.jump for version in versions if version.name != "original"]
    return ProfiledDocument(
        name=name,
        domain=str(profile.get("domain") or ""),
        versions=versions,
        jump=max(jumps or [version.jump for version in versions] or [0.0]),
        accuracy=dict(profile.get("accuracy") or {}),
    )


def _shape_version(
    version: Mapping[str, Any], original: list[float | None], highest: float
) -> ProfileVersion:
    surprisal: list[float | None] = list(version["surprisal"])
    compared = bool(original) and version.get("name") != "original"
    order: list[int] = list(version.get("order") or ()) if compared else []
    known = [value for value in surprisal if value is not None]
    mean = sum(known) / len(known) if known else None
    highest_place = most_surprising_place(surprisal)
    sentences = []
    for place, (text, value) in enumerate(zip(version["sentences"], surprisal, strict=True)):
        home = order[place] if place < len(order) else None
        at_home = original[home] if home is not None and 0 <= home < len(original) else None
        sentences.append(
            ProfiledSentence(
                place=place + 1,
                home=None if home is None else home + 1,
                text=shortened(str(text)),
                surprisal=value,
                change=None if value is None or at_home is None else value - at_home,
                share=0.0 if value is None or highest <= 0.0 else max(0.0, value / highest),
                highest=place == highest_place,
            )
        )
    jump = 0.0
    if highest_place is not None and mean is not None:
        jump = (surprisal[highest_place] or 0.0) - mean
    left_out = max(0, len(sentences) - MOST_SENTENCES)
    return ProfileVersion(str(version.get("name", "")), sentences[:MOST_SENTENCES], mean, jump, left_out)


def most_surprising_place(surprisal: list[float | None]) -> int | None:
    """Find the sentence whose surprisal stands furthest above the mean of all.

    The first sentence is never it, for nothing comes before it that it could follow. A rare name is surprising
    wherever it stands, so this alone does not say that a text stops following there.

    >>> most_surprising_place([5.0, 2.0, 4.0, 2.0])
    2
    """
    later = [(value, place) for place, value in enumerate(surprisal) if place > 0 and value is not None]
    if not later:
        return None
    value, place = max(later, key=lambda pair: pair[0])
    known = [each for each in surprisal if each is not None]
    return place if value > sum(known) / len(known) else None


def shortened(text: str, most: int = MOST_CHARACTERS) -> str:
    """Cut a text to so many characters, the last an ellipsis."""
    return text if len(text) <= most else text[: most - 1].rstrip() + "…"
