"""The tables of ChapterBreak runs: figures by setting, beside the paper's models, by kind of transition."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from markupsafe import Markup, escape

from ensue.benchmarks.chapterbreak.annotation import ASPECTS, Breakdown, Transition, shares
from ensue.benchmarks.chapterbreak.report.rows import (
    PACKAGE,
    PUBLISHED_SPLITS,
    HardItem,
    Measured,
    ModelRow,
    RunRows,
    measured,
    measured_model,
    peoples,
    published_models,
    split_words,
    splits,
)
from ensue.benchmarks.marks import marked
from ensue.benchmarks.published import facts_of
from ensue.report.figure import NONE, fraction, signed
from ensue.report.results import Results
from ensue.report.table import Cell, Column, Content, Table, blank_on_page, figure_cell

_SETTINGS = {
    # A split's name may be long; the other words are ours and short.
    "split": Column("split", words=True, fold=True),
    "model": Column("model", words=True),
    "boundary": Column("boundary", words=True),
    "negatives": Column("negatives", words=True),
    "suffix": Column("suffix"),
    "prefix": Column("prefix"),
}


def tables(results: Results, folder: Path | None = None) -> list[Table]:
    """Return the table of a run; settings that never change have no column."""
    rows = [("", row) for row in measured(results)]
    if not rows:
        return [peoples_table(results)] if peoples(results) else []
    chosen = [name for name in ("boundary", "negatives", "prefix", "suffix") if _shown(name, rows)]
    table = _figures_table(rows, ["split", *chosen])
    table.title = f"ChapterBreak · {results.get('model', '')}"
    table.caption = _caption(row.split for _, row in rows)
    return [marked(table, results)]


def peoples_table(results: Results) -> Table:
    """Return what people are worth, a row a split."""
    table = Table(
        [
            Column("split", words=True, fold=True),
            Column("words\nread", wide="words of context read"),
            Column("acc.", wide="accuracy of one person"),
            Column("95 %\ninterval"),
            Column("majority"),
            Column("chance"),
            Column("seconds"),
            Column("κ"),
            Column("n", wide="examples"),
            Column("works"),
        ],
        title=f"ChapterBreak · {results.get('model', '')}",
        caption="Accuracy is that of one person; majority: of their votes, a right one that ties counts as wrong; "
        "seconds: of the median person an example; κ is Fleiss'.",
    )
    for row in peoples(results):
        table.add(
            row.split,
            row.words,
            Cell(row.accuracy.text(), "strong", value=row.accuracy.value),
            row.accuracy.interval(),
            *(
                None if one is None else Cell(one.text(), value=one.value)
                for one in (row.majority, row.chance)
            ),
            None if row.seconds is None else Cell(row.seconds.text(0), value=row.seconds.value),
            None if row.kappa is None else Cell(row.kappa.text(2), value=row.kappa.value),
            row.accuracy.n,
            row.accuracy.clusters,
        )
    return table


def split_table(runs: Sequence[RunRows], split: str, most: int) -> Table:
    """Return the first rows of one split, run after run; a page leaves blank what repeats the row above."""
    rows = [(run.name, row) for run in runs for row in run.of(split)]
    chosen = [name for name in ("negatives", "suffix", "prefix") if _shown(name, rows)]
    several = ["model"] if len(runs) > 1 else []
    return _figures_table(rows[:most], [*several, "boundary", *chosen], grouped=True)


def _shown(setting: str, rows: Sequence[tuple[str, Measured]]) -> bool:
    return setting == "prefix" or len({getattr(row, setting) for _, row in rows}) > 1


def _figures_table(
    rows: Iterable[tuple[str, Measured]], settings: Sequence[str], *, grouped: bool = False
) -> Table:
    """Return a row for each setting of a run; where `grouped`, with a line above those of other boundaries."""
    table = Table(
        [
            *(_SETTINGS[name] for name in settings),
            Column("acc.", wide="accuracy"),
            Column("95 %\ninterval"),
            Column("rank", wide="mean rank"),
            Column("margin"),
            Column("word\nppl", wide="word perplexity"),
            Column("subwords per word", in_terminal=False),
            Column("n", wide="examples"),
            Column("works"),
        ]
    )
    before = None
    for name, row in rows:
        group = (name, row.boundary, row.negatives, row.suffix)
        labels = [name if setting == "model" else getattr(row, setting) for setting in settings]
        if grouped and group == before:
            labels = [*map(blank_on_page, labels[:-1]), labels[-1]]
        table.add(
            *labels,
            Cell(row.accuracy.text(), "strong", value=row.accuracy.value),
            row.accuracy.interval(),
            _number(row.rank, fraction(row.rank, 2)),
            _number(row.margin, signed(row.margin), signed(row.margin, 2)),
            _number(row.perplexity, _short(row.perplexity), fraction(row.perplexity, 1)),
            _number(row.subwords, fraction(row.subwords, 2)),
            row.accuracy.n,
            row.accuracy.clusters,
            section=grouped and before not in (None, group),
        )
        before = group
    return table


def _number(value: float | None, text: str, on_page: str | None = None) -> Cell:
    """Return a number, which may have another number of digits where there is more or less room."""
    return Cell(text, value=value, html=None if on_page is None else escape(on_page))


def _short(perplexity: float | None) -> str:
    if perplexity is None or perplexity < 1000:
        return fraction(perplexity, 1)
    return f"{perplexity:.0f}" if perplexity < 1e6 else f"{perplexity:.0e}"


def _caption(shown: Iterable[str]) -> str:
    """State chance, and the paper's figures for the splits that it has."""
    words = "Chance is 0.167 with five negatives; rank 1 is best."
    for split in dict.fromkeys(shown):
        found = [
            f"{model.name} {value:.2f} ({(model.length or 0) // 1024}K{', a subset' if model.partly else ''})"
            for model in published_models()
            if (value := model.value("accuracy", split)) is not None
        ]
        words += f" Published for {split} by Sun et al. (2022), table 2: {', '.join(found)}." if found else ""
    return words


def has_other_data(runs: Sequence[RunRows]) -> bool:
    """Say whether no run is of the paper's data."""
    return not set(splits(runs)) & set(PUBLISHED_SPLITS)


def models_table(runs: Sequence[RunRows]) -> Table:
    """Return the paper's table 2 with the runs in it, at their longest prefixes."""
    rows = [*published_models(), *map(measured_model, runs)]
    figures = [
        (metric, split)
        for split in dict.fromkeys([*PUBLISHED_SPLITS, *splits(runs)])
        for metric in ("word_perplexity", "accuracy")
        if any((metric, split) in row.figures for row in rows)
    ]
    table = Table(
        [
            Column("model", words=True),
            Column("figures", words=True),
            Column("parameters"),
            Column("length, tokens"),
            *(Column(f"{metric.replace('_', ' ')}, {split_words(split)}") for metric, split in figures),
        ]
    )
    origin = "published, other data" if has_other_data(runs) else "published"
    for row in rows:
        table.add(
            row.name,
            origin if row.published else "measured",
            NONE if row.parameters is None else _parameters(row.parameters),
            row.length,
            *(_model_cell(row, metric, split) for metric, split in figures),
            tone="published" if row.published else "",
        )
    return table


def _parameters(number: int) -> str:
    return f"{number / 1e9:g}B" if number >= 1e9 else f"{number / 1e6:g}M"


def _model_cell(row: ModelRow, metric: str, split: str) -> Content:
    found = row.figures.get((metric, split))
    if found is None or metric == "word_perplexity":
        return None if found is None else Cell(found.text(1), value=found.value)
    if row.published:
        return Cell(f"{found.text(2)}{'*' if row.partly else ''}", value=found.value)
    return figure_cell(found, strong=True)


def transitions_table(transitions: Iterable[Transition]) -> Table:
    """Return how common each category of transition is, beside the paper's table 1."""
    table = Table(
        [
            Column("aspect", words=True),
            Column("category", words=True),
            Column("annotated"),
            Column("share"),
            Column("published, table 1", published=True),
        ]
    )
    of_all, printed = shares(transitions), _published_shares()
    for (aspect, category), share in of_all.items():
        meaning = ASPECTS[aspect][category]
        table.add(
            _aspect(table, aspect),
            Cell(
                f"{category} ({meaning})",
                html=Markup('{} <span class="soft">{}</span>').format(category, meaning),
            ),
            share.count,
            Cell(fraction(share.share, 2), "strong", value=share.share),
            _number(printed[aspect, category][0], fraction(printed[aspect, category][0], 2)),
            section=category == next(iter(ASPECTS[aspect])),
        )
    return table


def failures_table(found: Breakdown, runs: Sequence[RunRows]) -> Table:
    """Return how common each category is among what every run got wrong, beside the paper's table 5."""
    table = Table(
        [
            Column("aspect", words=True),
            Column("category", words=True),
            Column("share of all"),
            Column("share of failures"),
            Column("difference"),
            *(Column(f"accuracy, {run.name}" if len(runs) > 1 else "accuracy") for run in runs),
            Column("published: share of failures, table 5 (difference)", published=True),
        ]
    )
    printed = _published_shares()
    for row in found.rows:
        base, errors = row.base.share, row.errors.share
        of_all, missed = printed[row.aspect, row.category]
        table.add(
            _aspect(table, row.aspect),
            row.category,
            _number(base, fraction(base, 2)),
            Cell(fraction(errors, 2), "strong", value=errors),
            signed(None if errors is None or base is None else errors - base, 2),
            *(figure_cell(row.accuracy[run.name], digits=2) for run in runs),
            f"{missed:.2f} ({signed(missed - of_all, 2)})",
            section=row.category == next(iter(ASPECTS[row.aspect])),
        )
    return table


def _published_shares() -> Mapping[tuple[str, str], tuple[float, float]]:
    """Return the paper's share of each category among all transitions and among those that all models missed."""
    rows = facts_of(PACKAGE)["transitions"]["rows"]
    return {(row["aspect"], row["category"]): (row["all"], row["missed"]) for row in rows}


def _aspect(table: Table, aspect: str) -> Content:
    """Name an aspect; a page names it once."""
    seen = [row.cells[0] for row in table.rows]
    return blank_on_page(aspect) if aspect in seen else aspect


def hardest_table(items: Iterable[HardItem]) -> Table:
    """Return the examples a model got wrong by far."""
    table = Table(
        [
            Column("example", words=True),
            Column("prefix"),
            Column("rank of the true suffix"),
            Column("margin"),
        ]
    )
    for item in items:
        table.add(
            item.example,
            item.prefix,
            _number(item.rank, fraction(item.rank, 0)),
            _number(item.margin, signed(item.margin, 2)),
        )
    return table
