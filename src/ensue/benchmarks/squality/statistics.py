"""How long stories and summaries are and how much wording they share: tables 5.2 and 5.3 from the data.

With `spacy_words` and version 1, ours beside the paper's:

- words a story 5199 (deviation 522, 3473 to 6165): printed 5200 (522, 3473 to 6165);
- words a summary 237 (133), 442 for plots, 186 for others, compression 95.4 %: the same printed;
- table 5.3 within 0.15 for summaries of one story, within 0.35 for others and for stories. It is the share of the
  first summary's distinct n-grams, case kept, that the second has, over all ordered pairs; neither Dice nor Jaccard
  come near. We take all 3,960,000 pairs of different stories, the paper surely a sample;
- examples 500 where table 5.2 prints 625, which is five questions for each of 125 stories: a count of the larger
  collection that became v1.1, not of the 100 stories that the text describes and all other figures are of.

The paper counts words "without punctuation, by the tokenizer of en_core_web_sm". Of all ways to leave punctuation
out, only one found gives the least and the largest story and all mean lengths that it prints: full stops, commas,
exclamation and question marks, straight quotation marks, "..." and single line ends are left out, while dashes,
hyphens, semicolons, brackets and curly quotation marks count, and so does white space of any other kind.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from ensue.benchmarks.squality.data import Story
from ensue.errors import EnsueError
from ensue.lazy import from_extra
from ensue.metrics.overlap import Gram, Text, Texts

Tokenise = Callable[[str], list[str]]

ORDERS = (1, 2, 3, 4)
PAIRS = ("different story", "same story", "same question")
STORY = "story"
NOT_COUNTED = frozenset({".", ",", "!", "?", '"', "...", "\n"})

# Words, with English contractions parted as spaCy parts them, and every other visible character by itself.
_TOKEN = re.compile(r"\w+(?=n['’]t\b)|n['’]t\b|['’](?:s|re|ve|ll|d|m)\b|\.\.+|\w+|[^\w\s]", re.IGNORECASE)


class CountSpread(NamedTuple):
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
    story_words: CountSpread
    summary_words: CountSpread
    plot_words: CountSpread
    other_words: CountSpread
    compression: float


class Sharing(NamedTuple):
    """One line of table 5.3: the mean share of a summary's n-grams that the other text has, and of how many pairs."""

    text: str
    shares: list[float]
    pairs: int


def statistics_row(stories: Sequence[Story], notes: Counter[str]) -> dict[str, Any] | None:
    """Return tables 5.2 and 5.3 of stories as one row; where there can be none, `notes` says why."""
    words, name = spacy_words, "spacy"
    try:
        words("A word.")
    except EnsueError:
        words, name = plain_words, "plain"
        notes["statistics counted without spaCy: stories come out 0.7 % longer"] = 1
    try:
        found = lengths(stories, words)
    except EnsueError as error:
        notes[f"no statistics: {error}"] = 1
        return None
    spreads = {key: value._asdict() for key, value in found._asdict().items() if hasattr(value, "_asdict")}
    lines = [one._asdict() for one in sharing(stories, words)]
    return {"words": name, "lengths": found._asdict() | spreads, "sharing": lines}


def lengths(stories: Sequence[Story], tokenise: Tokenise) -> Lengths:
    """Count stories, questions and summaries and their words; compression is that of the means."""
    if not stories:
        raise EnsueError("There are no stories to count.")
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


def spread(counts: Sequence[int]) -> CountSpread:
    """
    >>> spread([2, 4])
    CountSpread(mean=3.0, deviation=1.0, least=2, most=4)
    """
    return CountSpread(float(np.mean(counts)), float(np.std(counts)), min(counts), max(counts))


def sharing(stories: Sequence[Story], tokenise: Tokenise) -> list[Sharing]:
    """Return table 5.3: over all ordered pairs of summaries of three kinds, and of every summary with its story."""
    texts = Texts(tokenise)
    summaries = [
        (story, question.number, texts(reference))
        for story in stories
        for question in story.questions
        for reference in question.references
    ]
    by_order = [_pair_shares(summaries, n) for n in ORDERS]
    lines = []
    for name in PAIRS:
        totals, pairs = zip(*(found[name] for found in by_order), strict=True)
        if pairs[0]:
            lines.append(Sharing(name, [total / pairs[0] for total in totals], int(pairs[0])))
    shares = [
        [_share(text.unique(n), texts(story.document).unique(n)) for n in ORDERS]
        for story, _, text in summaries
    ]
    lines.append(Sharing(STORY, np.mean(shares, axis=0).tolist(), len(shares)))
    return lines


def _pair_shares(summaries: Sequence[tuple[Story, int, Text]], n: int) -> dict[str, tuple[float, int]]:
    """Return the summed shares and the number of the ordered pairs of each kind.

    The sum over all others of what they share with one summary is the sum, over its n-grams, of how many others
    have each: all pairs are counted in the time of reading each text once.
    """
    holders: defaultdict[tuple[str | int, ...], Counter[Gram]] = defaultdict(Counter)
    sizes: Counter[tuple[str | int, ...]] = Counter()
    for story, number, text in summaries:
        for group in _groups(story, number):
            holders[group].update(text.unique(n))
            sizes[group] += 1
    totals = dict.fromkeys(PAIRS, 0.0)
    pairs = dict.fromkeys(PAIRS, 0)
    for story, number, text in summaries:
        grams, groups = text.unique(n), _groups(story, number)
        # The summary itself holds each of its n-grams, and is no pair with itself.
        held = [*(sum(holders[group][gram] for gram in grams) for group in groups), len(grams)]
        counts = [*(sizes[group] for group in groups), 1]
        for place, name in enumerate(PAIRS):
            totals[name] += (held[place] - held[place + 1]) / len(grams) if grams else 0.0
            pairs[name] += counts[place] - counts[place + 1]
    return {name: (totals[name], pairs[name]) for name in PAIRS}


def _groups(story: Story, number: int) -> tuple[tuple[str | int, ...], ...]:
    """Name what a summary is of, the widest first: everything, its story, its question."""
    return (), (story.id,), (story.id, number)


def _share(grams: frozenset[Gram], others: frozenset[Gram]) -> float:
    """Return the share of n-grams that are among others; 0 of none."""
    return len(grams & others) / len(grams) if grams else 0.0


def spacy_words(text: str) -> list[str]:
    """Return a text's words as the paper counts them; needs spaCy, but none of its models.

    The tokenizer of the small English pipeline is that of spaCy's English itself.
    """
    return [token.text for token in _spacy_english()(text) if token.text not in NOT_COUNTED]


def plain_words(text: str) -> list[str]:
    """Return nearly the same words without spaCy: stories have 0.7 % more than the paper's, summaries 0.1 % fewer.

    >>> plain_words("He didn't stay: the mill's wheel had stopped.")
    ['He', 'did', "n't", 'stay', ':', 'the', 'mill', "'s", 'wheel', 'had', 'stopped']
    """
    return [token for token in _TOKEN.findall(text) if token not in NOT_COUNTED]


@cache
def _spacy_english() -> Any:
    # Only the tokenizer: `make_doc` has no limit on the length of a text.
    return from_extra("spacy", "Counting words as the paper does", "spaCy", "qags").blank("en").make_doc
