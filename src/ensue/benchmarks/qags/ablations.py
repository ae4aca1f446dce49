"""What changes when one thing about QAGS does: number of questions, similarity, filters, all from one run.

Table 4.4 varies the number of questions and section 4.5.4 the similarity; both are counted anew from the same
questions and answers. Tables 4.2 and 4.3 vary the models: those are other runs, shown beside this one in its report.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from ensue.benchmarks.qags.choices import AGREE, ORDER, PADDING, Keeping, Preset

ABLATIONS = ("questions", "similarity", "filters")
COUNTS = (5, 10, 20, 50)


class Variant(NamedTuple):
    """One row of an ablation: what is varied, how it is set, by which selection and similarity it is scored."""

    ablation: str
    setting: str
    selection: int
    similarity: str


class Plan(NamedTuple):
    """The selections that are needed, that of the run itself first, and the variants made of them."""

    keepings: tuple[Keeping, ...]
    variants: tuple[Variant, ...]


def plan(preset: Preset, similarity: str, ablations: Sequence[str], *, with_vectors: bool = False) -> Plan:
    """The variants of a run; more questions than can be made are left out."""
    main = preset.keeping
    keepings = [main]
    variants: list[Variant] = []

    def place(keeping: Keeping) -> int:
        if keeping not in keepings:
            keepings.append(keeping)
        return keepings.index(keeping)

    if "questions" in ablations:
        most = preset.asking.answers * preset.asking.count
        for count in sorted({*COUNTS, main.questions}):
            if count <= most or count == main.questions:
                where = place(replace(main, questions=count))
                variants.append(Variant("questions", f"{count} questions", where, similarity))
    if "similarity" in ablations:
        names = ["f1", "exact", *(["embedding"] if with_vectors else [])]
        variants += [Variant("similarity", name, 0, name) for name in names]
    if "filters" in ablations:
        variants += [
            Variant("padding", padding, place(replace(main, padding=padding)), similarity)
            for padding in PADDING
        ]
        variants += [
            Variant("filters", agree, place(replace(main, agree=agree)), similarity) for agree in AGREE
        ]
        variants += [
            Variant("order", order, place(replace(main, order=order)), similarity) for order in ORDER
        ]
    return Plan(tuple(keepings), tuple(variants))
