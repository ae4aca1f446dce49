"""QAGS on whole sets of judged summaries: its values, what changes when one thing about it does, and every question.

Table 4.4 varies the number of questions and section 4.5.4 the similarity; both are counted anew from the same
questions and answers. Tables 4.2 and 4.3 vary the models: those are other runs, shown beside this one in its report.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from ensue.benchmarks.qags.data.sets import JudgedSet
from ensue.benchmarks.qags.pipeline import Examined, QagsModels, examine
from ensue.benchmarks.qags.questions import AGREE, ORDER, PADDING, Keeping, Preset
from ensue.benchmarks.qags.scoring import SummaryScore, question_rows, scored
from ensue.models.protocols import Encoder, Model, require
from ensue.progress import Progress
from ensue.records import Records

ABLATIONS = ("questions", "similarity", "filters")
COUNTS = (5, 10, 20, 50)


class QagsVariant(NamedTuple):
    """One row of an ablation: what is varied, how it is set, by which selection and similarity it is scored."""

    ablation: str
    setting: str
    selection: int
    similarity: str


def plan_variants(
    preset: Preset, similarity: str, ablations: Sequence[str], *, with_vectors: bool = False
) -> tuple[list[Keeping], list[QagsVariant]]:
    """Return the selections that are needed, that of the run itself first, and the variants made of them.

    More questions than can be made are left out.
    """
    main = preset.keeping
    keepings = [main]
    variants: list[QagsVariant] = []

    def place(keeping: Keeping) -> int:
        if keeping not in keepings:
            keepings.append(keeping)
        return keepings.index(keeping)

    if "questions" in ablations:
        most = preset.asking.answers * preset.asking.count
        for count in sorted({*COUNTS, main.questions}):
            if count <= most or count == main.questions:
                where = place(replace(main, questions=count))
                variants.append(QagsVariant("questions", f"{count} questions", where, similarity))
    if "similarity" in ablations:
        names = ["f1", "exact", *(["embedding"] if with_vectors else [])]
        variants += [QagsVariant("similarity", name, 0, name) for name in names]
    if "filters" in ablations:
        rules: list[tuple[str, str, Keeping]] = [
            *(("padding", padding, replace(main, padding=padding)) for padding in PADDING),
            *(("filters", agree, replace(main, agree=agree)) for agree in AGREE),
            *(("order", order, replace(main, order=order)) for order in ORDER),
        ]
        variants += [QagsVariant(name, rule, place(keeping), similarity) for name, rule, keeping in rules]
    return keepings, variants


class Questioned(NamedTuple):
    """By set: the score of every summary, the scores of every variant, and an account of each summary's questions.

    `rows` are the questions that scores are made of, one each.
    """

    values: Mapping[str, list[float]]
    variants: Mapping[str, list[tuple[QagsVariant, list[float]]]]
    accounts: Mapping[str, list[dict[str, Any]]]
    rows: list[dict[str, Any]]
    notes: Counter[str]


def question_all(
    sets: Sequence[JudgedSet],
    models: QagsModels,
    preset: Preset,
    settings: Mapping[str, Any],
    encoder: Model | None,
    records: Records,
    progress: Progress | None,
) -> Questioned:
    """Question all summaries of all sets at once, and score them in every way that was asked for."""
    vectors = None if encoder is None else require(encoder, Encoder, "Comparing answers by their vectors")
    keepings, variants = plan_variants(
        preset, settings["similarity"], settings["ablations"] or (), with_vectors=vectors is not None
    )
    pairs = [pair for one in sets for pair in one.pairs]
    examined = examine(pairs, models, preset.asking, keepings, records=records, progress=progress)
    main = scored(examined, 0, settings["similarity"], vectors)
    varied = [
        (variant, [one.score for one in scored(examined, variant.selection, variant.similarity, vectors)])
        for variant in variants
    ]
    accounts = [_account(*both, preset.keeping) for both in zip(examined, main, strict=True)]
    spans = _spans(sets)
    return Questioned(
        {name: [one.score for one in main[span]] for name, span in spans.items()},
        {name: [(variant, values[span]) for variant, values in varied] for name, span in spans.items()},
        {name: accounts[span] for name, span in spans.items()},
        list(_rows(sets, examined, main)),
        _notes(examined, main),
    )


def _rows(
    sets: Sequence[JudgedSet], examined: Sequence[Examined], main: Sequence[SummaryScore]
) -> Iterator[dict[str, Any]]:
    places = [(judged.name, id) for judged in sets for id in judged.ids]
    for (name, id), one, result in zip(places, examined, main, strict=True):
        if not result.trouble:
            for row in question_rows(one, result):
                yield {"set": name, "id": id, **row._asdict()}


def _spans(sets: Sequence[JudgedSet]) -> dict[str, slice]:
    """Return where each set's summaries stand among those of all."""
    found, start = {}, 0
    for one in sets:
        found[one.name] = slice(start, start + len(one.pairs))
        start += len(one.pairs)
    return found


def _account(examined: Examined, result: SummaryScore, keeping: Keeping) -> dict[str, Any]:
    selection = examined.selections[0] if examined.selections else None
    return {
        "made": len(examined.proposals),
        "used": len(selection.places) if selection else 0,
        "padded": selection.padded if selection else 0,
        "removed": dict(examined.removed(keeping)),
        **({"trouble": result.trouble} if result.trouble else {}),
    }


def _notes(examined: Sequence[Examined], main: Sequence[SummaryScore]) -> Counter[str]:
    notes = Counter(f"{one.trouble}, scored 0" for one in main if one.trouble)
    padded = sum(bool(one.selections and one.selections[0].padded) for one in examined)
    if padded:
        notes["summaries with too few questions that passed, filled up with others"] += padded
    return notes
