"""How near an order of sentences comes to the one they were written in: the metrics of sentence ordering.

An order lists the sentences' own numbers (0 is the first) in the order they were put in.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict, deque
from collections.abc import Hashable, Sequence


def with_equals_in_order(order: Sequence[int], sentences: Sequence[Hashable]) -> list[int]:
    """Return the order with sentences that read alike numbered as they come: which is which makes no difference.

    >>> with_equals_in_order([2, 1, 0], ["No.", "Yes.", "No."])
    [0, 1, 2]
    """
    numbers: defaultdict[Hashable, deque[int]] = defaultdict(deque)
    for number, sentence in enumerate(sentences):
        numbers[sentence].append(number)
    return [numbers[sentences[number]].popleft() for number in order]


def kendall_tau(order: Sequence[int]) -> float:
    """Return Kendall's tau: 1 for the right order, −1 for the reverse, 0 for one like any other.

    >>> kendall_tau([0, 1, 2, 3]), kendall_tau([3, 2, 1, 0]), round(kendall_tau([1, 0, 2]), 4)
    (1.0, -1.0, 0.3333)
    """
    count = len(order)
    if count < 2:
        return 1.0
    wrong = sum(order[i] > order[j] for i in range(count) for j in range(i + 1, count))
    return 1.0 - 4.0 * wrong / (count * (count - 1))


def perfect_match(order: Sequence[int]) -> float:
    """Return 1 where every sentence is in its place.

    >>> perfect_match([0, 1, 2]), perfect_match([0, 2, 1])
    (1.0, 0.0)
    """
    return float(list(order) == sorted(order))


def positional_accuracy(order: Sequence[int]) -> float:
    """Return the share of sentences that are in their own place.

    >>> positional_accuracy([0, 2, 1, 3])
    0.5
    """
    return sum(number == place for place, number in enumerate(order)) / len(order)


def lcs_share(order: Sequence[int]) -> float:
    """Return the longest common subsequence with the right order as a share of the sentences.

    >>> lcs_share([3, 0, 1, 2])
    0.75
    """
    # Of an order of distinct numbers it is the longest rising run, found by patience sorting.
    tops: list[int] = []
    for number in order:
        place = bisect_left(tops, number)
        tops[place : place + 1] = [number]
    return len(tops) / len(order)


def edit_distance(order: Sequence[int]) -> float:
    """Return how many sentences must be put in, left out or replaced to have the right order, as a share of them.

    >>> edit_distance([1, 2, 0]), edit_distance([0, 1, 2])
    (0.6666666666666666, 0.0)
    """
    count = len(order)
    above = list(range(count + 1))
    for place, number in enumerate(order, start=1):
        row = [place]
        for wanted in range(count):
            replaced = above[wanted] + (number != wanted)
            row.append(min(replaced, above[wanted + 1] + 1, row[wanted] + 1))
        above = row
    return above[count] / count
