"""QAGS on whole sets of judged summaries: its values, those of its variants, and every question as a row."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ensue.benchmarks.qags.ablations import Variant, plan
from ensue.benchmarks.qags.choices import Keeping, Preset
from ensue.benchmarks.qags.inspect import lines_of
from ensue.benchmarks.qags.pipeline import Examined, Parts, examine
from ensue.benchmarks.qags.scores import Scored, scored
from ensue.benchmarks.qags.sets import JudgedSet
from ensue.benchmarks.qags.steps import Steps
from ensue.models.protocols import Encoder, Model, require
from ensue.progress import Progress
from ensue.records import DAMAGED


class Questioned(NamedTuple):
    """By set: the score of every summary, the scores of every variant, and an account of each summary's questions."""

    values: Mapping[str, list[float]]
    variants: Mapping[str, list[tuple[Variant, list[float]]]]
    accounts: Mapping[str, list[dict[str, Any]]]
    examined: Mapping[str, list[Examined]]
    scores: Mapping[str, list[Scored]]
    notes: Counter[str]


def question_all(
    sets: Sequence[JudgedSet],
    parts: Parts,
    preset: Preset,
    settings: Mapping[str, Any],
    encoder: Model | None,
    known: Steps,
    progress: Progress | None,
) -> Questioned:
    """Question all summaries of all sets at once, and score them in every way that was asked for."""
    vectors = None if encoder is None else require(encoder, Encoder, "Comparing answers by their vectors")
    planned = plan(
        preset, settings["similarity"], settings["ablations"] or (), with_vectors=vectors is not None
    )
    pairs = [pair for one in sets for pair in one.pairs]
    with known as steps:
        examined = examine(pairs, parts, preset.asking, planned.keepings, steps=steps, progress=progress)
    main = scored(examined, 0, settings["similarity"], vectors)
    varied = [
        (variant, [one.score for one in scored(examined, variant.selection, variant.similarity, vectors)])
        for variant in planned.variants
    ]
    accounts = [_account(*both, preset.keeping) for both in zip(examined, main, strict=True)]
    spans = _spans(sets)
    return Questioned(
        {name: [one.score for one in main[span]] for name, span in spans.items()},
        {name: [(variant, values[span]) for variant, values in varied] for name, span in spans.items()},
        {name: accounts[span] for name, span in spans.items()},
        {name: examined[span] for name, span in spans.items()},
        {name: main[span] for name, span in spans.items()},
        _notes(examined, main) + Counter({DAMAGED: known.damaged}),
    )


def question_rows(sets: Sequence[JudgedSet], found: Questioned) -> Iterator[dict[str, Any]]:
    """Every question a score is made of, one a line."""
    for judged in sets:
        each = zip(judged.ids, found.examined[judged.name], found.scores[judged.name], strict=True)
        for id, examined, result in each:
            if not result.trouble:
                for line in lines_of(examined, result):
                    yield {"set": judged.name, "id": id, **line._asdict()}


def _spans(sets: Sequence[JudgedSet]) -> dict[str, slice]:
    """Where each set's summaries stand among those of all."""
    found, start = {}, 0
    for one in sets:
        found[one.name] = slice(start, start + len(one.pairs))
        start += len(one.pairs)
    return found


def _account(examined: Examined, result: Scored, keeping: Keeping) -> dict[str, Any]:
    selection = examined.selections[0] if examined.selections else None
    return {
        "made": len(examined.proposals),
        "used": len(selection.places) if selection else 0,
        "padded": selection.padded if selection else 0,
        "removed": dict(examined.removed(keeping)),
        **({"trouble": result.trouble} if result.trouble else {}),
    }


def _notes(examined: Sequence[Examined], main: Sequence[Scored]) -> Counter[str]:
    notes = Counter(f"{one.trouble}, scored 0" for one in main if one.trouble)
    padded = sum(bool(one.selections and one.selections[0].padded) for one in examined)
    if padded:
        notes["summaries with too few questions that passed, filled up with others"] += padded
    return notes
