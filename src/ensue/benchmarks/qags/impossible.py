"""Questions put to texts that do not answer them, though they share words: what an answerer learns to refuse by."""

from __future__ import annotations

import math
import random
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

_WORD = re.compile(r"\w+")
# A word that more of the texts have says nothing about which of them is near.
_COMMON = 0.1
_FEW = 2
# So many of the nearest texts are tried.
_TRIED = 10


class _Place(NamedTuple):
    title: str
    paragraph: dict[str, Any]


def add_impossible(data: Sequence[Mapping[str, Any]], share: float, seed: int) -> int:
    """Put this share of all questions also to the nearest text of another article that lacks the answer; how many.

    `data` are articles in SQuAD's format, whose paragraphs get further questions.
    """
    places = [_Place(article["title"], paragraph) for article in data for paragraph in article["paragraphs"]]
    near = _Near([f"{place.title} {place.paragraph['context']}" for place in places])
    draw = random.Random(seed)
    added: dict[int, list[dict[str, Any]]] = defaultdict(list)
    for own, place in enumerate(places):
        for asked in place.paragraph["qas"]:
            if draw.random() > share:
                continue
            answer = asked["answers"][0]["text"].casefold()
            for other in near(asked["question"]):
                title, paragraph = places[other]
                if other != own and title != place.title and answer not in paragraph["context"].casefold():
                    named = {"id": f"{asked['id']}-x", "question": asked["question"]}
                    added[other].append({**named, "answers": [], "is_impossible": True})
                    break
    for other, asked_too in added.items():
        places[other].paragraph["qas"] += asked_too
    return sum(map(len, added.values()))


class _Near:
    """Which texts share the rarest words with a question."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._holders: dict[str, list[int]] = defaultdict(list)
        for place, text in enumerate(texts):
            for word in _words(text):
                self._holders[word].append(place)
        self._texts = len(texts)

    def __call__(self, question: str) -> list[int]:
        weight: dict[int, float] = defaultdict(float)
        for word in _words(question):
            holders = self._holders.get(word, [])
            if 0 < len(holders) <= max(_FEW, self._texts * _COMMON):
                rare = math.log(self._texts / len(holders))
                for place in holders:
                    weight[place] += rare
        # Equal ones in the order of the texts, so that nothing hangs on the order of words.
        return [place for place, _ in sorted(weight.items(), key=lambda one: (-one[1], one[0]))[:_TRIED]]


def _words(text: str) -> set[str]:
    return set(_WORD.findall(text.lower()))
