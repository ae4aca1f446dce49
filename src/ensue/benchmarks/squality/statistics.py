"""How long stories and summaries are and how much wording they share: tables 5.2 and 5.3 from the data.

With `spacy_words` and version 1, ours beside the paper's:

- words a story 5199 (deviation 522, 3473 to 6165): printed 5200 (522, 3473 to 6165);
- words a summary 237 (133), 442 for plots, 186 for others, compression 95.4 %: the same printed;
- table 5.3 within 0.15 for summaries of one story, within 0.35 for others and for stories. It is the share of the
  first summary's distinct n-grams, case kept, that the second has, over all ordered pairs; neither Dice nor Jaccard
  come near. We take all 3,960,000 pairs of different stories, the paper surely a sample;
- examples 500 where table 5.2 prints 625, which is five questions for each of 125 stories: a count of the larger
  collection that became v1.1, not of the 100 stories that the text describes and all other figures are of.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from ensue.benchmarks.squality.data import Story
from ensue.benchmarks.squality.words import Tokenise
from ensue.errors import EnsueError
from ensue.metrics.overlap import Gram, NGrams, Text, Texts, compression

ORDERS = (1, 2, 3, 4)
PAIRS = ("different story", "same story", "same question")
STORY = "story"


class Spread(NamedTuple):
    """Mean, standard deviation (of the population), least and most of some counts."""

    mean: float
    deviation: float
    least: int
    most: int


class Lengths(NamedTuple):
    """How many of everything there are and how many words they have (§5.4 and table 5.2)."""

    stories: int
    examples: int
    summaries: int
    story_words: Spread
    summary_words: Spread
    plot_words: Spread
    other_words: Spread
    compression: float


class Sharing(NamedTuple):
    """One line of table 5.3: the mean share of a summary's n-grams that the other text has, and of how many pairs."""

    text: str
    shares: NGrams
    pairs: int


def lengths(stories: Sequence[Story], tokenise: Tokenise) -> Lengths:
    """Counts and lengths; compression is that of the mean summary against the mean story."""
    _refuse_none(stories)
    story_words = [len(tokenise(story.document)) for story in stories]
    plots: list[int] = []
    others: list[int] = []
    for story in stories:
        for question in story.questions:
            counts = [len(tokenise(text)) for text in question.references]
            (plots if question.asks_for_plot else others).extend(counts)
    if not plots or not others:
        raise EnsueError(
            "Lengths are told apart by kind of question: there must be plots and other questions."
        )
    summary, whole = spread(plots + others), spread(story_words)
    if not whole.mean:
        raise EnsueError("The stories have no words, so there is nothing that summaries could compress.")
    return Lengths(
        stories=len(stories),
        examples=sum(len(story.questions) for story in stories),
        summaries=len(plots) + len(others),
        story_words=whole,
        summary_words=summary,
        plot_words=spread(plots),
        other_words=spread(others),
        compression=1.0 - summary.mean / whole.mean,
    )


def spread(counts: Sequence[int]) -> Spread:
    """
    >>> spread([2, 4])
    Spread(mean=3.0, deviation=1.0, least=2, most=4)
    """
    return Spread(float(np.mean(counts)), float(np.std(counts)), min(counts), max(counts))


def story_compressions(stories: Sequence[Story], tokenise: Tokenise) -> list[float]:
    """By how much each summary is shorter than its own story, in order."""
    found = []
    for story in stories:
        whole = len(tokenise(story.document))
        if not whole:
            raise EnsueError(f"Story {story.id} has no words, so there is nothing a summary could compress.")
        found += [
            compression(len(tokenise(text)), whole)
            for question in story.questions
            for text in question.references
        ]
    return found


def sharing(stories: Sequence[Story], tokenise: Tokenise) -> list[Sharing]:
    """Table 5.3: over all ordered pairs of summaries of three kinds, and of every summary with its story."""
    _refuse_none(stories)
    texts = Texts(tokenise)
    summaries = [
        (story.id, question.number, texts(reference))
        for story in stories
        for question in story.questions
        for reference in question.references
    ]
    by_order = [_pair_shares(summaries, n) for n in ORDERS]
    lines = []
    for name in PAIRS:
        totals, pairs = zip(*(found[name] for found in by_order), strict=True)
        if pairs[0]:
            lines.append(Sharing(name, NGrams(*(total / pairs[0] for total in totals)), int(pairs[0])))
    shares = [
        [_share(texts(reference).unique(n), texts(story.document).unique(n)) for n in ORDERS]
        for story in stories
        for question in story.questions
        for reference in question.references
    ]
    lines.append(Sharing(STORY, NGrams(*np.mean(shares, axis=0).tolist()), len(shares)))
    return lines


def _pair_shares(summaries: Sequence[tuple[str, int, Text]], n: int) -> dict[str, tuple[float, int]]:
    """The summed shares and the number of the ordered pairs of each kind.

    The sum over all others of what they share with one summary is the sum, over its n-grams, of how many others
    have each: all pairs are counted in the time of reading each text once.
    """
    everywhere: Counter[Gram] = Counter()
    in_story: dict[str, Counter[Gram]] = {}
    in_question: dict[tuple[str, int], Counter[Gram]] = {}
    stories: Counter[str] = Counter()
    questions: Counter[tuple[str, int]] = Counter()
    for story, number, text in summaries:
        grams = text.unique(n)
        everywhere.update(grams)
        in_story.setdefault(story, Counter()).update(grams)
        in_question.setdefault((story, number), Counter()).update(grams)
        stories[story] += 1
        questions[story, number] += 1
    totals = dict.fromkeys(PAIRS, 0.0)
    pairs = dict.fromkeys(PAIRS, 0)
    for story, number, text in summaries:
        grams = text.unique(n)
        every = _occurrences(everywhere, grams)
        own_story = _occurrences(in_story[story], grams)
        own_question = _occurrences(in_question[story, number], grams)
        # The summary itself holds each of its n-grams, and is no pair with itself.
        sums = (every - own_story, own_story - own_question, own_question - len(grams))
        counts = (
            len(summaries) - stories[story],
            stories[story] - questions[story, number],
            questions[story, number] - 1,
        )
        for name, total, count in zip(PAIRS, sums, counts, strict=True):
            totals[name] += total / len(grams) if grams else 0.0
            pairs[name] += count
    return {name: (totals[name], pairs[name]) for name in PAIRS}


def _occurrences(counts: Counter[Gram], grams: Iterable[Gram]) -> int:
    return sum(counts[gram] for gram in grams)


def _share(grams: frozenset[Gram], others: frozenset[Gram]) -> float:
    """The share of n-grams that are among others; 0 of none."""
    return len(grams & others) / len(grams) if grams else 0.0


def _refuse_none(stories: Sequence[Story]) -> None:
    if not stories:
        raise EnsueError("There are no stories to count.")
