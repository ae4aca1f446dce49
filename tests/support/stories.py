"""Small documents whose sentences have an order, as JSON lines."""

from __future__ import annotations

import json
import random
from pathlib import Path

_OPENINGS = ("In the morning", "At noon", "In the evening", "When the rain stopped", "In the end")
_PEOPLE = ("the captain", "my sister", "the judge", "she", "he")
_DEEDS = ("opened the letter", "counted the votes", "ran into the garden", "wrote the answer", "read the map")


def stories(count: int, *, seed: int = 0) -> list[dict]:
    """Each begins with the morning and goes on to the end."""
    draw = random.Random(seed)
    found = []
    for number in range(count):
        sentences = [f"{when} {draw.choice(_PEOPLE)} {draw.choice(_DEEDS)}." for when in _OPENINGS]
        found.append({"id": f"story-{number}", "sentences": sentences[: draw.randrange(3, 6)]})
    return found


def write(path: Path, count: int = 40, *, seed: int = 0) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in stories(count, seed=seed)), "utf-8")
    return path
