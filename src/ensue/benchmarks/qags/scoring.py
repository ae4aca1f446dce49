"""From answers to scores: of a summary, by how alike both texts' answers are, and of whole sets of judged ones.

Two answers are alike by shared words (F1), by exact match, or by the cosine of their vectors. As in SQuAD 2.0 and in
the authors' code, "no answer" is an answer like another: two of them agree, and one of them agrees with nothing else.

Table 4.4 varies the number of questions and section 4.5.4 the similarity; both are counted anew from the same
questions and answers. Tables 4.2 and 4.3 vary the models: those are other runs, shown beside this one in its report.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from ensue.benchmarks.qags.data.sets import JudgedSet
from ensue.benchmarks.qags.pipeline import Examined, QagsModels, examine
from ensue.benchmarks.qags.questions import AGREE, ORDER, PADDING, Keeping, Preset
from ensue.metrics.answers import exact_match, normalised, token_f1
from ensue.models.protocols import Encoder, Model, require
from ensue.progress import Progress
from ensue.records import Records

SIMILARITIES = ("f1", "exact", "embedding")
ABLATIONS = ("questions", "similarity", "filters")
COUNTS = (5, 10, 20, 50)
NOTHING_KEPT = "summaries none of whose questions passed the filters"


def f1(given: str, other: str) -> float:
    """Return token F1; where normalising leaves nothing of one, 1 if it leaves nothing of the other either.

    >>> f1("the old mill", "mill"), f1("", ""), f1("", "mill")
    (0.6666666666666666, 1.0, 0.0)
    """
    if not normalised(given) or not normalised(other):
        return exact_match(given, other)
    return token_f1(given, other)


def by_vectors(encoder: Encoder, pairs: Sequence[tuple[str, str]]) -> list[float]:
    """Return the cosine of both answers' vectors, those below zero counted as 0; each answer is encoded once.

    No answer has no vector; equal answers are 1 whatever the encoder.
    """
    texts = list(dict.fromkeys(text for pair in pairs if all(pair) for text in pair))
    known: Mapping[str, np.ndarray] = {}
    if texts:
        vectors = np.asarray(encoder.encode(texts), dtype=np.float64)
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        known = dict(zip(texts, vectors / np.where(lengths > 0.0, lengths, 1.0), strict=True))
    return [_cosine(known, given, other) for given, other in pairs]


def similarities(name: str, pairs: Sequence[tuple[str, str]], encoder: Encoder | None = None) -> list[float]:
    """Return the similarity of each pair by name; `embedding` needs an encoder."""
    if name == "embedding":
        if encoder is None:
            raise ValueError("Embedding similarity needs an encoder.")
        return by_vectors(encoder, pairs)
    measure: Callable[[str, str], float] = {"f1": f1, "exact": exact_match}[name]
    return [measure(given, other) for given, other in pairs]


def _cosine(known: Mapping[str, np.ndarray], given: str, other: str) -> float:
    if normalised(given) == normalised(other):
        return 1.0
    if not given or not other:
        return 0.0
    return float(np.clip(known[given] @ known[other], 0.0, 1.0))


class SummaryScore(NamedTuple):
    """A summary's score and the similarity of each question it is the mean of; 0 where `trouble` says why."""

    score: float
    similarities: tuple[float, ...]
    trouble: str = ""


class QuestionRow(NamedTuple):
    """One question: what was asked about, what both texts answer, how alike that is.

    `padded` says that the question did not pass the filters and only fills up their number.
    """

    question: str
    expected: str
    by_summary: str
    by_source: str
    similarity: float
    log_probability: float
    start: int
    end: int
    padded: bool


def scored(
    examined: Sequence[Examined], which: int = 0, similarity: str = "f1", encoder: Encoder | None = None
) -> list[SummaryScore]:
    """Score every summary by one of its selections.

    A summary without a question has nothing to be checked by. It scores 0, the least there is, and says so: left out,
    it would make a metric look better on exactly the summaries it cannot read.
    """
    answers = [one.answers(one.selections[which].places) if one.selections else [] for one in examined]
    flat = iter(similarities(similarity, [pair for each in answers for pair in each], encoder))
    found = []
    for one, pairs in zip(examined, answers, strict=True):
        values = tuple(next(flat) for _ in pairs)
        if values:
            found.append(SummaryScore(sum(values) / len(values), values))
        else:
            found.append(SummaryScore(0.0, (), one.trouble or NOTHING_KEPT))
    return found


def question_rows(found: Examined, result: SummaryScore) -> tuple[QuestionRow, ...]:
    """Return each question of the first selection once, those that fill up last."""
    selection = found.selections[0]
    padded = set(selection.places[len(selection.places) - selection.padded :])
    alike = dict(zip(selection.places, result.similarities, strict=True))
    rows = []
    for place, similarity in alike.items():
        proposal, on_summary, on_source = (
            found.proposals[place],
            found.on_summary[place],
            found.on_source[place],
        )
        # What the summary answers is what is in doubt; where it has no answer, what was asked about.
        span = on_summary if on_summary.text else proposal.expected
        rows.append(
            QuestionRow(
                proposal.question,
                proposal.expected.text,
                on_summary.text,
                "" if on_source is None else on_source.text,
                similarity,
                proposal.score,
                span.start,
                span.end,
                place in padded,
            )
        )
    return tuple(rows)


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
    progress: Progress,
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
