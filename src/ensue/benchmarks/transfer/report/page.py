"""The page of transfer runs: one picture, one table, and by how much trained models are ahead."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ensue.benchmarks.coherence.report import Findings, Section, page_of
from ensue.benchmarks.published import citation
from ensue.benchmarks.transfer.report.table import PACKAGE, Transferred, accuracy_table, ahead_table, in_words
from ensue.report.results import Results
from ensue.report.svg import Picture, drawn_twice


def findings(folders: Sequence[Path], results: Results) -> Findings | None:
    """Return what the page says of a run."""
    run = Transferred(results)
    if not run.tests:
        return None
    published = f"Published figures of supervised models, on other texts: {citation(PACKAGE)}."
    sections = [Section("Accuracy by test", published, _picture(run), accuracy_table(run))]
    if run.rivals:
        sections.append(
            Section(
                "What training on shuffled text is worth", " ".join(in_words(run)), None, ahead_table(run)
            )
        )
    return Findings(
        "Does what is learnt from shuffled text transfer?",
        "Models that were trained to tell texts from shuffled ones, and models that were not, say which of two texts "
        "is the better one: of a text and its shuffled version in blocks of k sentences, of a text and one with an "
        "intruder, in several domains, and of two texts that people rated.",
        sections,
    )


def _picture(run: Transferred) -> Picture:
    # Drawing needs matplotlib, which takes half a second to import.
    from ensue.benchmarks.transfer.report.plots import transfer_plot

    return drawn_twice(lambda width: transfer_plot(run, width=width))


PAGE = page_of(findings)
