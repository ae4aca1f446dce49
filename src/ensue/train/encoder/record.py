"""In words: what an encoder was trained on."""

from __future__ import annotations

import json
from pathlib import Path

from ensue.train.record import RECORD


def corpus_in_words(output: Path) -> str:
    """On what a finished training was done, and what of its sources was left out."""
    corpora = json.loads((output / RECORD).read_text("utf-8"))["corpora"]
    parts = [
        f"{corpora[name]['sentences']:,} sentences of {corpora[name]['documents']:,}"
        for name in ("train", "dev")
    ]
    skipped = ", ".join(f"{reason}: {count:,}" for reason, count in corpora["all"]["skipped"].items())
    return f"trained on {parts[0]} documents, held out {parts[1]}; left out: {skipped or 'nothing'}"
