"""SQuALITY runs as tables for the terminal, the published figures beside the measured ones."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ensue.benchmarks.squality.published import published_ratings, published_scores
from ensue.benchmarks.squality.report.page import (
    HUMAN_EVAL,
    PROPERTIES,
    WORDS,
    Figure,
    agreements,
    figure_of,
    mean_and_max,
    rated_systems,
    scores_of,
)
from ensue.report.table import Cell, Column, Table

# Short: the whole must fit a terminal of 80 columns.
_SHORT = {
    "rouge1": "ROUGE-1",
    "rouge2": "ROUGE-2",
    "rougeL": "ROUGE-L",
    "meteor": "METEOR",
    "bertscore": "BERTScore",
}
_SUBSETS = {"model": "models'", "human": "people's", "all": "all"}


def tables(results: Mapping[str, Any], folder: Path | None = None) -> list[Table]:
    """Return the table of a run: a system's scores, or metrics beside people's ratings."""
    human_eval = results.get("benchmark") == HUMAN_EVAL
    return [_human_eval_table(results) if human_eval else _system_table(results)]


def _system_table(results: Mapping[str, Any]) -> Table:
    """A line a metric."""
    found, paper = scores_of(results), published_scores()
    settings = results["metrics"][0]["settings"] if results["metrics"] else {}
    where = f"{settings.get('version', '')} {settings.get('split', '')}".strip()
    headings = ["best of\nrefs", "95 %\ninterval", "mean of\nrefs", "all but\none"]
    table = Table(
        [
            Column("metric", words=True),
            *map(Column, headings),
            *(Column(f"publ.\n{name}", published=True) for name in ("BART", "human")),
        ],
        title=f"SQuALITY {where} · {results.get('model', '')}",
    )
    for name, score in found.items():
        table.add(
            _SHORT.get(name, name),
            Cell(f"{score.best.value:.3f}", "strong", value=score.best.value),
            _interval(score.best),
            _number(score.mean),
            _number(score.left_out),
            *(paper[system].get(name, "") for system in ("BART+DPR", "human")),
        )
    rows = [figure_of(row) for row in results["metrics"] if row["metric"] == WORDS]
    if rows:
        table.add("words", Cell(f"{rows[0].value:.0f}", value=rows[0].value), *[""] * 5)
    items = next(iter(found.values())).best if found else None
    words = ["publ.: BART+DPR and people, Wang (2022), table 5.4, v1 test."]
    words.append("People are measured against all references but one: compare them with that column.")
    if items is not None:
        words.insert(
            0, f"{items.n:,} questions, {items.clusters:,} {'story' if items.clusters == 1 else 'stories'}."
        )
    if "bertscore" in found:
        words.append("Published BERTScores are RoBERTa-large's.")
    table.caption = " ".join(words)
    return table


def _human_eval_table(results: Mapping[str, Any]) -> Table:
    """Ratings, correlations with them, and mean and maximum over references, one block each."""
    table = Table(
        [
            *(Column(heading, words=True) for heading in ("of", "what")),
            *map(Column, ("value", "95 %\ninterval", "n")),
            Column("publ.", published=True),
        ],
        title="SQuALITY: what people say of summaries, and metrics beside it",
        caption="publ.: Wang (2022), tables 5.5, 5.6 and 5.7 (the last of all 180 test questions, here of the 100 "
        "rated). r: Pearson's with the overall rating.",
    )
    printed = {(one.system, one.property): one.mean / 100 for one in published_ratings()}
    for system, figures in rated_systems(results).items():
        for name in PROPERTIES:
            if name in figures:
                _add(table, system, name, figures[name], printed.get((system, name)))
    for place, one in enumerate(agreements(results)):
        words = f"r, {_SUBSETS.get(one.subset, one.subset)}"
        name = _SHORT.get(one.metric, one.metric)
        _add(table, name, words, one.figure, one.published, section=place == 0)
    own = rated_systems(results).get("bart-dpr", {})
    for place, (mean, best) in enumerate(mean_and_max(results)):
        name = _SHORT.get(mean.name, mean.name)
        _add(table, name, "mean, bart-dpr", own[f"{mean.name}_mean"], mean.published, section=place == 0)
        _add(table, name, "max, bart-dpr", own[best.name], best.published)
    return table


def _add(
    table: Table, of: str, what: str, figure: Figure, published: float | None, *, section: bool = False
) -> None:
    value = Cell(f"{figure.value:.3f}", "strong", value=figure.value)
    table.add(of, what, value, _interval(figure), figure.n, published, section=section)


def _number(figure: Figure | None) -> str:
    return "–" if figure is None else f"{figure.value:.3f}"


def _interval(figure: Figure) -> str:
    if figure.low is None or figure.high is None:
        return "–"
    # "to" where a dash would look like another minus.
    between = " to " if figure.low < 0 else "–"
    return f"{figure.low:.3f}{between}{figure.high:.3f}"
