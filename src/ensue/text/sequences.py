"""Which of a text's possible headings make a sequence: the chain of numbers that increase, with few exceptions."""

from __future__ import annotations

from collections.abc import Sequence

from ensue.text.layout import Candidate

_FARTHEST_JUMP = 5


def best_chain(candidates: Sequence[Candidate], parents: Sequence[int]) -> tuple[list[Candidate], float]:
    """The members of the most plausible sequence, and its score: one for each member, less what is irregular.

    The next number is best. A number left out or repeated costs something, as misprints make them; beginning again
    at one costs nothing if a heading of `parents` (their blocks) stands between, and else more than one heading is
    worth, so that a lone "I" in the text is no chapter.
    """
    scores: list[float] = []
    values: list[int] = []
    links: list[int | None] = []
    for place, candidate in enumerate(candidates):
        number = candidate.mark.number
        score, value, link = (1.0 if number == 1 else -0.5), number or 1, None
        for earlier in range(place):
            between = any(candidates[earlier].block < parent < candidate.block for parent in parents)
            step, reached = _step(candidate, values[earlier], between)
            if step is not None and scores[earlier] + step > score:
                score, value, link = scores[earlier] + step, reached, earlier
        scores.append(score)
        values.append(value)
        links.append(link)
    if not scores:
        return [], 0.0
    last: int | None = max(range(len(scores)), key=scores.__getitem__)
    best = scores[last or 0]
    chain: list[Candidate] = []
    while last is not None:
        chain.append(candidates[last])
        last = links[last]
    return chain[::-1], best


def _step(candidate: Candidate, before: int, parent_between: bool) -> tuple[float | None, int]:
    """What a candidate adds after the number `before`, None for nothing, and the number it then has."""
    number = candidate.mark.number
    if number is None:
        return 0.9, before + 1
    if number == before + 1:
        return 1.0, number
    if number == 1:
        return (1.0 if parent_between else -0.2), 1
    if before < number <= before + _FARTHEST_JUMP:
        return 1 - 0.4 * (number - before - 1), number
    if candidate.mark.label == "chapter":
        # A misprint rather than no chapter at all: the count goes on as if it were right.
        return 0.0, before + 1
    return None, before
