"""Small invented documents of three kinds, for the encoder's corpus and training."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tests.support.command import write_lines
from tests.support.tiny import SENTENCES
from tests.support.works import work_rows


def write_articles(folder: Path) -> list[Path]:
    """A WikiText file, a folder of Markdown and a file of works."""
    rng = np.random.default_rng(0)
    pages = folder / "pages"
    pages.mkdir(parents=True)
    articles = []
    for number in range(9):
        articles.append(
            f" \n = Place number {number} = \n \n {_text(rng)} \n {_text(rng)} \n \n = = History = = \n \n"
            f" {_text(rng)} \n \n = = = Early years = = = \n \n {_text(rng)} \n \n = = Uses = = \n \n {_text(rng)} \n"
        )
        (pages / f"{number}.md").write_text(
            f"# Page {number}\n\n{_text(rng)}\n\n## Use\n\n{_text(rng)}\n", "utf-8"
        )
    (folder / "wiki.tokens").write_text("".join(articles), "utf-8")
    works = write_lines(folder / "works.jsonl", work_rows(4, chapters=3, seed=3))
    return [folder / "wiki.tokens", pages, works]


def _text(rng: np.random.Generator) -> str:
    """A few sentences of different lengths."""
    chosen = [
        SENTENCES[i].rstrip(".").split() for i in rng.integers(0, len(SENTENCES), int(rng.integers(1, 5)))
    ]
    return " ".join(" ".join(words[: int(rng.integers(2, 14))]).rstrip(",") + "." for words in chosen)
