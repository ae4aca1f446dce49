"""Small invented works with chapters, for builders and trainers."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.support.tiny import SENTENCES

_ROMAN = ["I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X", "XI", "XII", "XIII", "XIV", "XV"]


def work_rows(
    count: int, *, chapters: int, seed: int = 0, prefix: str = "work", sentences: int = 12
) -> list[dict[str, Any]]:
    """Works as the JSON reader takes them: id, title, chapters with a heading and paragraphs."""
    rng = np.random.default_rng(seed)
    return [
        {
            "id": f"{prefix}{number}",
            "title": f"The {prefix} number {number}",
            "chapters": [
                {"head": f"CHAPTER {_ROMAN[place]}.", "paragraphs": _paragraphs(rng, sentences)}
                for place in range(chapters)
            ],
        }
        for number in range(count)
    ]


def _paragraphs(rng: np.random.Generator, sentences: int) -> list[str]:
    chosen = [SENTENCES[i] for i in rng.integers(0, len(SENTENCES), sentences)]
    return [" ".join(chosen[i : i + 3]) for i in range(0, sentences, 3)]
