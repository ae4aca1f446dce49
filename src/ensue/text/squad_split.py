"""Splits articles of questions into training, dev and test: whole articles, and the same ones whoever asks."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import NamedTuple

from ensue.errors import EnsueError
from ensue.text.squad import Article


class Split(NamedTuple):
    """Articles to learn from, to choose by, and to be measured on."""

    train: list[Article]
    dev: list[Article]
    test: list[Article]


def split_articles(
    articles: Sequence[Article], *, dev_share: float = 0.1, test_share: float = 0.1, seed: int = 0
) -> Split:
    """Whole articles by share of their number, at least one in each part that is asked for.

    Who goes where is decided by a hash of the seed and the article's id, so two trainings on files of the same
    articles (question answering, question generation) hold out the same ones. A share of 0 leaves its part empty.
    """
    if not (dev_share > 0 and test_share >= 0 and dev_share + test_share < 1):
        raise EnsueError(
            f"Shares of {dev_share:g} for dev and {test_share:g} for test will not do: dev needs more than 0, and "
            f"both together less than 1."
        )
    order = sorted(articles, key=lambda article: hashlib.sha256(f"{seed}:{article.id}".encode()).digest())
    dev = max(round(len(order) * dev_share), 1)
    test = max(round(len(order) * test_share), 1) if test_share else 0
    if dev + test >= len(order):
        raise EnsueError(
            f"There are only {len(order)} articles, too few to hold out {dev + test} of them; name more --data."
        )
    chosen = {article.id: place for place, article in enumerate(order)}
    parts = Split([], [], [])
    for article in articles:
        place = chosen[article.id]
        (parts.test if place < test else parts.dev if place < test + dev else parts.train).append(article)
    return parts
