"""SQuALITY runs as tables for the terminal, the published figures beside the measured ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

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

if TYPE_CHECKING:
    from rich.table import Table

# Short: the whole must fit a terminal of 80 columns.
_SHORT = {
    "rouge1": "ROUGE-1",
    "rouge2": "ROUGE-2",
    "rougeL": "ROUGE-L",
    "meteor": "METEOR",
    "bertscore": "BERTScore",
}
_SUBSETS = {"model": "models'", "human": "people's", "all": "all"}


def fill_squality(table: Table, results: Mapping[str, Any]) -> None:
    """Fill an empty table."""
    if results.get("benchmark") == HUMAN_EVAL:
        _fill_human_eval(table, results)
    else:
        _fill_system(table, results)


def _fill_system(table: Table, results: Mapping[str, Any]) -> None:
    """A line a metric."""
    from rich.markup import escape

    found, paper = scores_of(results), published_scores()
    settings = results["metrics"][0]["settings"] if results["metrics"] else {}
    where = f"{settings.get('version', '')} {settings.get('split', '')}".strip()
    table.title = f"SQuALITY {escape(where)} · {escape(str(results.get('model', '')))}"
    table.add_column("metric", no_wrap=True)
    headings = [
        "best of\nrefs",
        "95 %\ninterval",
        "mean of\nrefs",
        "all but\none",
        "publ.\nBART",
        "publ.\nhuman",
    ]
    for heading in headings:
        table.add_column(heading, justify="right", no_wrap=True)
    for name, score in found.items():
        table.add_row(
            _SHORT.get(name, name),
            f"[bold]{score.best.value:.3f}[/bold]",
            _interval(score.best),
            _number(score.mean),
            _number(score.left_out),
            *(
                f"{paper[system][name]:.3f}" if name in paper[system] else ""
                for system in ("BART+DPR", "human")
            ),
        )
    rows = [figure_of(row) for row in results["metrics"] if row["metric"] == WORDS]
    if rows:
        table.add_row("words", f"{rows[0].value:.0f}", *[""] * (len(headings) - 1))
    items = next(iter(found.values())).best if found else None
    words = ["publ.: BART+DPR and people, Wang (2022), table 5.4, v1 test."]
    words.append("People are measured against all references but one: compare them with that column.")
    if items is not None:
        words.insert(
            0, f"{items.n:,} questions, {items.clusters:,} {'story' if items.clusters == 1 else 'stories'}."
        )
    if "bertscore" in found:
        words.append("Published BERTScores are RoBERTa-large's.")
    table.caption = escape(" ".join(words))


def _fill_human_eval(table: Table, results: Mapping[str, Any]) -> None:
    """Ratings, correlations with them, and mean and maximum over references, one block each."""
    table.title = "SQuALITY: what people say of summaries, and metrics beside it"
    for heading in ("of", "what"):
        table.add_column(heading, no_wrap=True)
    for heading in ("value", "95 %\ninterval", "n", "publ."):
        table.add_column(heading, justify="right", no_wrap=True)
    printed = {(one.system, one.property): one.mean / 100 for one in published_ratings()}
    for system, figures in rated_systems(results).items():
        for name in PROPERTIES:
            if name in figures:
                _add(table, system, name, figures[name], printed.get((system, name)))
    table.add_section()
    for one in agreements(results):
        words = f"r, {_SUBSETS.get(one.subset, one.subset)}"
        _add(table, _SHORT.get(one.metric, one.metric), words, one.figure, one.published)
    table.add_section()
    own = rated_systems(results).get("bart-dpr", {})
    for mean, best in mean_and_max(results):
        name = _SHORT.get(mean.name, mean.name)
        _add(table, name, "mean, bart-dpr", own[f"{mean.name}_mean"], mean.published)
        _add(table, name, "max, bart-dpr", own[best.name], best.published)
    table.caption = (
        "publ.: Wang (2022), tables 5.5, 5.6 and 5.7 (the last of all 180 test questions, here of the 100 rated). "
        "r: Pearson's with the overall rating."
    )


def _add(table: Table, of: str, what: str, figure: Figure, published: float | None) -> None:
    from rich.markup import escape

    table.add_row(
        escape(of),
        escape(what),
        f"[bold]{figure.value:.3f}[/bold]",
        _interval(figure),
        f"{figure.n:,}",
        "–" if published is None else f"{published:.3f}",
    )


def _number(figure: Figure | None) -> str:
    return "–" if figure is None else f"{figure.value:.3f}"


def _interval(figure: Figure) -> str:
    if figure.low is None or figure.high is None:
        return "–"
    # "to" where a dash would look like another minus.
    between = " to " if figure.low < 0 else "–"
    return f"{figure.low:.3f}{between}{figure.high:.3f}"
