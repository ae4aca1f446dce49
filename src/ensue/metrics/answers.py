"""How right answers are that come as text or in groups: SQuAD's exact match and F1, MultiRC's, pairs of answers."""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import TypeVar

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_WITHOUT_PUNCTUATION = str.maketrans("", "", string.punctuation)
_Answer = TypeVar("_Answer", bound=Hashable)


def normalised(text: str) -> str:
    """Normalise an answer as SQuAD does: lower case, no ASCII punctuation, no articles, single spaces.

    >>> normalised("  The Quick-Silver Co., a firm ")
    'quicksilver co firm'
    """
    bare = text.lower().translate(_WITHOUT_PUNCTUATION)
    return " ".join(_ARTICLES.sub(" ", bare).split())


def exact_match(given: str, reference: str) -> float:
    """Return 1 where both are the same once normalised, 0 elsewhere.

    >>> exact_match("the Hague", "Hague")
    1.0
    """
    return float(normalised(given) == normalised(reference))


def token_f1(given: str, reference: str) -> float:
    """Return the harmonic mean of precision and recall of the words both share, counted with repetition.

    Two answers that share no word have 0, also where normalising leaves nothing of either (SQuAD 1.1).

    >>> token_f1("Queen Anne of Britain", "Anne of Denmark")
    0.5714285714285714
    """
    words, wanted = normalised(given).split(), normalised(reference).split()
    shared = (Counter(words) & Counter(wanted)).total()
    return 2.0 * shared / (len(words) + len(wanted)) if shared else 0.0


def best_over(metric: Callable[[str, str], float], given: str, references: Iterable[str]) -> float:
    """Return the largest value of a metric over all references, of which there must be one.

    >>> best_over(exact_match, "NYC", ["New York", "NYC"])
    1.0
    """
    return max(metric(given, reference) for reference in references)


def whole_groups_right(groups: Sequence[Hashable], right: Sequence[bool]) -> dict[Hashable, bool]:
    """Return of each group (MultiRC: a question) whether all of its answers are right, in order of appearance.

    >>> whole_groups_right(["q1", "q1", "q2"], [True, False, True])
    {'q1': False, 'q2': True}
    """
    found: dict[Hashable, bool] = {}
    for group, one in zip(groups, right, strict=True):
        found[group] = found.get(group, True) and bool(one)
    return found


def exact_groups(groups: Sequence[Hashable], right: Sequence[bool]) -> float:
    """Return MultiRC's EM: the share of groups whose answers are all right.

    >>> exact_groups(["q1", "q1", "q2"], [True, False, True])
    0.5
    """
    found = whole_groups_right(groups, right)
    return sum(found.values()) / len(found)


def equal_pairs(pairs: Sequence[Hashable], given: Sequence[_Answer]) -> dict[Hashable, bool]:
    """Return of each pair that has both members whether both were given the same, in order of appearance.

    >>> equal_pairs(["p", "p", "q", "q", "r"], ["yes", "yes", "yes", "no", "no"])
    {'p': True, 'q': False}
    """
    members: dict[Hashable, list[_Answer]] = {}
    for pair, one in zip(pairs, given, strict=True):
        members.setdefault(pair, []).append(one)
    if over := [pair for pair, both in members.items() if len(both) > 2]:
        raise ValueError(f"Pair {over[0]!r} has {len(members[over[0]])} members.")
    return {pair: both[0] == both[1] for pair, both in members.items() if len(both) == 2}
