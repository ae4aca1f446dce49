"""Small files in the formats of the human judgments, all of their prose invented."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

ARTICLE = "The ferry to Port Ellery stopped at noon. Its captain, Ruth Olsen, blamed the fog."


def judged(*votes: tuple[str, ...], article: str = ARTICLE) -> dict[str, Any]:
    """A judged summary with one sentence for each tuple of votes."""
    return {
        "article": article,
        "summary_sentences": [
            {
                "sentence": f"Sentence {place} of the summary.",
                "responses": [{"worker_id": worker, "response": vote} for worker, vote in enumerate(said)],
            }
            for place, said in enumerate(votes)
        ],
    }


def write_lines(path: Path, rows: list[Any]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return path


def write_json(path: Path, value: Any) -> Path:
    path.write_text(json.dumps(value, indent=1), "utf-8")
    return path


def collected(scores: dict[str, dict[str, float]], **more: Any) -> dict[str, Any]:
    """An article of a collection: the scores of each system's summary."""
    return {
        "src": ARTICLE,
        "ref_summ": "Fog stopped the ferry.",
        "sys_summs": {
            system: {"sys_summ": f"The ferry stopped, says {system}.", "scores": given}
            for system, given in scores.items()
        },
        **more,
    }


def pair(article: str = "a1", **more: str) -> dict[str, str]:
    """One of Falke's sentence pairs."""
    return {
        "article_id": article,
        "article_sent": "Ruth Olsen, the captain, blamed the fog for the delay.",
        "correct_sent": "The captain blamed the fog.",
        "correct_sent_id": "1-0",
        "incorrect_sent": "The fog blamed the captain.",
        "incorrect_sent_id": "2-0",
        **more,
    }
