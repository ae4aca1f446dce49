"""The human row: every reference in turn as the candidate, measured against those that are left (§5.5.4).

On the test split of version 1, with stems, the mean over 720 summaries of the best of three references is ROUGE-1
46.6, ROUGE-2 12.5 and ROUGE-L 22.6; table 5.4 prints 46.6, 12.5 and 22.7. Systems are measured against four
references, which gives them a better chance of a good match: `leave_one_out_of` measures them as people are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ensue.benchmarks.squality.data import Example
from ensue.errors import EnsueError
from ensue.metrics.overlap import rouge_of

Numbers = NDArray[np.float64]
# From candidates and each one's references to metrics by name, each with one value a reference. METEOR and BERTScore
# come in as such functions, so that nothing here has to know of WordNet or of models.
Measure = Callable[[Sequence[str], Sequence[Sequence[str]]], Mapping[str, Sequence[Sequence[float]]]]


class HeldOut(NamedTuple):
    """A reference as candidate, and the others of its question."""

    example: str
    story: str
    writer: str
    candidate: str
    references: tuple[str, ...]


class HumanScores(NamedTuple):
    """A metric of every held-out summary [summaries]: the best and the mean over the references left."""

    best: Numbers
    mean: Numbers


def held_out(examples: Sequence[Example]) -> list[HeldOut]:
    """Every reference of every example, with the others; an example with one reference only is refused."""
    found = []
    for example in examples:
        references = example.question.references
        if len(references) < 2:
            raise EnsueError(
                f"Question {example.question.number} of story {example.story.id} has one reference, and none is "
                "left to measure it against; leave the question out of the human row."
            )
        found += [
            HeldOut(
                example=example.id,
                story=example.story.id,
                writer=response.writer,
                candidate=response.text,
                references=references[:place] + references[place + 1 :],
            )
            for place, response in enumerate(example.question.responses)
        ]
    return found


def human_scores(summaries: Sequence[HeldOut], measures: Sequence[Measure]) -> dict[str, HumanScores]:
    """Each metric of each held-out summary; the human row is the mean of `best`."""
    if not summaries:
        raise EnsueError("There are no summaries to hold out; read a split first.")
    candidates = [one.candidate for one in summaries]
    references = [one.references for one in summaries]
    found: dict[str, HumanScores] = {}
    for measure in measures:
        for name, values in measure(candidates, references).items():
            best = np.array([max(row) for row in values], dtype=np.float64)
            mean = np.array([np.mean(row) for row in values], dtype=np.float64)
            found[name] = HumanScores(best, mean)
    return found


def rouge_measure(
    candidates: Sequence[str], references: Sequence[Sequence[str]]
) -> dict[str, list[list[float]]]:
    """ROUGE-1, ROUGE-2 and ROUGE-L with stems, by reference, as F1."""
    rows = rouge_of(candidates, references)
    return {
        "rouge1": [[one.rouge1.f1 for one in row] for row in rows],
        "rouge2": [[one.rouge2.f1 for one in row] for row in rows],
        "rougeL": [[one.rougeL.f1 for one in row] for row in rows],
    }


def leave_one_out_of(values: Sequence[Sequence[float]]) -> list[float]:
    """A system's best over all references but one, meaned over which is left out: comparable with the human row.

    >>> leave_one_out_of([[0.2, 0.4, 0.6]])
    [0.5333333333333333]
    """
    found = []
    for row in values:
        if len(row) < 2:
            raise EnsueError("Leaving a reference out needs at least two of them.")
        first, second = sorted(row, reverse=True)[:2]
        # Only where the best reference itself is left out does the second count.
        found.append((first * (len(row) - 1) + second) / len(row))
    return found
