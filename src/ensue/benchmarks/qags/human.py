"""People as a system of QAGS: an export of kind `consistency` (`--model human:EXPORT`).

Of summaries that others judged, such as QAGS's own, people's value is the share of sentences that most of them found
supported, and is held against the others' majority as any metric is. Where the judgments of the data are people's
own (what `ensue annotate convert` wrote), one annotator of each summary, drawn by the seed, is held out: what they
say is held against the majority of the rest, which says how well one person agrees with others and nothing more.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from ensue.benchmarks.base import content_of
from ensue.benchmarks.people.export import Export
from ensue.benchmarks.qags.data.files import JudgedSummary
from ensue.benchmarks.qags.data.sets import CONSISTENCY, JudgedSet
from ensue.benchmarks.qags.people import FIELD
from ensue.errors import EnsueError

PEOPLE = "people"
HELD_OUT = "summaries of which one annotator, drawn, is held against the majority of the others"
# What one annotator says of each sentence of a summary.
Said = tuple[bool, ...]


class PeoplesSet(NamedTuple):
    """The summaries of a set that people judged, and what people are worth as a metric of each."""

    judged: JudgedSet
    values: list[float]
    held_out: bool


def peoples_sets(
    export: Export, sets: Sequence[JudgedSet], seed: int, skipped: Counter[str]
) -> list[PeoplesSet]:
    """Return the sets cut to what people judged; what cannot be held against anybody is counted."""
    given: dict[str, list[Said]] = {}
    for record in export.answers():
        said = tuple(judgment["value"] == "yes" for judgment in record.values[FIELD])
        given.setdefault(str(record.key["content"]), []).append(said)
    if not given:
        raise EnsueError(f"Nobody has judged a summary in the project {export.project} yet.")
    found = []
    for one in sets:
        if not one.judged:
            skipped[
                f"{one.name} is judged otherwise than sentence by sentence, so people are not held against it"
            ] += 1
            continue
        own = [given.get(_content(summary), []) for summary in one.judged]
        there = [place for place, some in enumerate(own) if some]
        if there:
            found.append(_judged(_cut(one, there), [own[place] for place in there], seed, skipped))
    found = [one for one in found if one.values]
    if not found:
        raise EnsueError(
            f"People judged none of these summaries; run on the project's data ({export.source}), or on what"
            " `ensue annotate convert` makes of the export."
        )
    return found


def _content(summary: JudgedSummary) -> str:
    """Return what a project knows a summary by."""
    return content_of(summary.article, tuple(sentence.text for sentence in summary.sentences))


def _judged(judged: JudgedSet, own: Sequence[list[Said]], seed: int, skipped: Counter[str]) -> PeoplesSet:
    votes = [_votes(summary) for summary in judged.judged]
    if any(sorted(mine) != sorted(theirs) for mine, theirs in zip(own, votes, strict=True)):
        return PeoplesSet(judged, [_consistency(said) for said in own], False)
    several = [place for place, said in enumerate(votes) if len(said) > 1]
    if len(several) < len(votes):
        skipped["summaries that one person alone judged"] += len(votes) - len(several)
    kept = _cut(judged, several)
    values, others = [], []
    for id, said in zip(kept.ids, (votes[place] for place in several), strict=True):
        out = random.Random(f"{seed}/{id}/held out").randrange(len(said))
        values.append(_consistency([said[out]]))
        others.append(_consistency([one for place, one in enumerate(said) if place != out]))
    return PeoplesSet(replace(kept, human={CONSISTENCY: tuple(others)}), values, True)


def _votes(summary: JudgedSummary) -> list[Said]:
    """Return what each worker said of all sentences; workers come in one order in every sentence."""
    count = min(len(sentence.responses) for sentence in summary.sentences)
    return [
        tuple(sentence.responses[worker].consistent for sentence in summary.sentences)
        for worker in range(count)
    ]


def _consistency(said: Sequence[Said]) -> float:
    """Return the share of sentences that more than half found supported, as the data's own figure is made.

    >>> _consistency([(True, True), (True, False), (False, False)]), _consistency([(True,), (False,)])
    (0.5, 0.0)
    """
    sentences = list(zip(*said, strict=True))
    supported: int = sum(2 * sum(votes) > len(votes) for votes in sentences)
    return supported / len(sentences)


def _cut(judged: JudgedSet, places: Sequence[int]) -> JudgedSet:
    human: Mapping[str, tuple[float, ...]] = {
        name: tuple(values[place] for place in places) for name, values in judged.human.items()
    }
    return replace(
        judged,
        ids=tuple(judged.ids[place] for place in places),
        clusters=tuple(judged.clusters[place] for place in places),
        pairs=tuple(judged.pairs[place] for place in places),
        references=tuple(judged.references[place] for place in places),
        human=human,
        judged=tuple(judged.judged[place] for place in places),
    )
