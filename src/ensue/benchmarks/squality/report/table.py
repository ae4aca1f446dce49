"""SQuALITY runs as tables, for the terminal and for pages: the published figures beside the measured ones."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ensue.benchmarks.published import citation, facts_of, published
from ensue.report.figure import NONE, Figure, fraction
from ensue.report.results import Results, read_beside
from ensue.report.table import Cell, Column, Content, Table, figure_cell

PACKAGE = "ensue.benchmarks.squality"
HUMAN_EVAL = "squality/human-eval"
# Metrics as they are written, in the order of table 5.4.
TITLES = {
    "rouge1": "ROUGE-1",
    "rouge2": "ROUGE-2",
    "rougeL": "ROUGE-L",
    "meteor": "METEOR",
    "bertscore": "BERTScore",
}
CORRELATIONS = {"pearson": "Pearson’s r", "spearman": "Spearman’s ρ", "kendall": "Kendall’s τ"}
WORDS = "words"
_PROPERTIES = ("correctness", "coverage", "overall")
_SUBSETS = {"model": "models'", "human": "people's", "all": "all"}
# The rated system that table 5.7 is of.
_RATED = "bart-dpr"
_INTERVAL = Column("95 %\ninterval")
_PUBLISHED = Column("publ.", wide="published", published=True)


def tables(results: Results, folder: Path | None = None) -> list[Table]:
    """Return the tables of a run: a system's scores, or what people say of summaries and metrics beside it."""
    if results["benchmark"] == HUMAN_EVAL:
        return human_eval_tables(results, folder, ["pearson"])
    return [scores_table([(str(results["model"]), results)])]


def figures_of(results: Results) -> dict[str, Figure]:
    """Return the figures of a run of one system by metric."""
    return {row["metric"]: Figure.of(row) for row in results["metrics"]}


def place_of(results: Results) -> str:
    """Return the version and split that a run is of."""
    settings = results["metrics"][0]["settings"] if results["metrics"] else {}
    return f"{settings.get('version', '')} {settings.get('split', '')}".strip()


def _printed_scores() -> dict[str, dict[str, float]]:
    """Return table 5.4: each system's metrics."""
    found: dict[str, dict[str, float]] = {}
    for one in published(PACKAGE):
        if one.table == "5.4":
            found.setdefault(one.system, {})[one.metric] = one.value
    return found


def _printed(metric: str, settings: Mapping[str, Any]) -> float | None:
    """Return what the paper prints for a row of the human evaluation."""
    found = [one for one in published(PACKAGE) if one.task == "human-eval" and one.metric == metric]
    return next((one.value for one in found if one.settings == settings), None)


def _main(figure: Figure) -> Cell:
    return Cell(figure.text(), "strong", value=figure.value)


def scores_table(systems: Sequence[tuple[str, Results]]) -> Table:
    """Return a line a system and metric: by the best reference, by their mean, and as people are measured."""
    table = Table(
        [
            Column("system", words=True, in_terminal=False),
            Column("metric", words=True),
            Column("best of\nrefs", wide="best of references"),
            _INTERVAL,
            Column("mean of\nrefs", wide="mean of references"),
            Column("all but\none"),
            Column("its 95 % interval", in_terminal=False),
            Column("publ.\nBART", wide="published: BART+DPR", published=True),
            Column("publ.\nhuman", wide="published: human", published=True),
        ],
        title=" · ".join([f"SQuALITY {place_of(systems[0][1])}", *(name for name, _ in systems)]),
    )
    paper = _printed_scores()
    for name, results in systems:
        found = figures_of(results)
        shown = [metric for metric in TITLES if metric in found]
        for metric in shown:
            first = metric == shown[0]
            left_out = found.get(f"{metric}_loo")
            table.add(
                name if first else "",
                TITLES[metric],
                _main(found[metric]),
                found[metric].interval(),
                found.get(f"{metric}_mean"),
                left_out,
                left_out.interval() if left_out else NONE,
                *(paper[system].get(metric, "") for system in ("BART+DPR", "human")),
                section=first,
            )
        if WORDS in found:
            table.add("", "words", _words(found[WORDS]), *[""] * 6)
    found = figures_of(systems[0][1])
    for figure in list(found.values())[:1]:
        stories = "story" if figure.clusters == 1 else "stories"
        table.caption = f"{figure.n:,} questions, {figure.clusters:,} {stories}. "
    table.caption += (
        "publ.: BART+DPR and people, Wang (2022), table 5.4, v1 test. People are measured against all references but "
        "one: compare them with that column."
    )
    if "bertscore" in found:
        table.caption += " Published BERTScores are RoBERTa-large's."
    return table


def systems_table(systems: Sequence[tuple[str, Results]], encoders: Iterable[str]) -> Table:
    """Return a line a system, measured and published, by the best of the references; `encoders` are BERTScore's."""
    found = [figures_of(results) for _, results in systems]
    columns = [metric for metric in TITLES if any(metric in one for one in found)]
    table = Table(
        [Column("system", words=True), *(Column(TITLES[metric]) for metric in columns), Column("words")],
        title="Beside the published systems",
    )
    for (name, results), figures in zip(systems, found, strict=True):
        scores = [figure_cell(figures.get(metric), strong=True) for metric in columns]
        table.add(Cell(name, below=place_of(results)), *scores, _words(figures.get(WORDS)))
    for place, (name, values) in enumerate(_printed_scores().items()):
        printed = [values.get(metric) for metric in columns]
        table.add(f"{name}, published", *printed, None, tone="published", section=place == 0)
    words = [
        "By the best of the references, below it the 95 % interval over whole stories. ROUGE is F1 with stems."
    ]
    if "meteor" in columns:
        words.append("METEOR is NLTK’s, as the paper’s must have been: people’s comes out within 0.003.")
    if "bertscore" in columns:
        words.append(
            "BERTScores of different encoders cannot be compared: the published ones are RoBERTa-large’s, those here "
            f"{', '.join(dict.fromkeys(encoders))}’s."
        )
    words.append(f"People have one reference fewer: see below. Published: {citation(PACKAGE)}, table 5.4.")
    table.caption = " ".join(words)
    return table


def _words(figure: Figure | None) -> Cell:
    return Cell(NONE) if figure is None else Cell(figure.text(0), value=figure.value)


def human_eval_tables(results: Results, folder: Path | None, kinds: Iterable[str]) -> list[Table]:
    """Return ratings, metrics' correlations with them, and one reference beside four; none that is empty."""
    systems: dict[str, dict[str, Figure]] = {}
    for row in results["metrics"]:
        if "system" in row["settings"]:
            systems.setdefault(row["settings"]["system"], {})[row["metric"]] = Figure.of(row)
    rated = read_beside(folder, "ratings.jsonl") if folder else ()
    ratings = {(row["system"], row["property"]): row for row in rated}
    found = [
        _ratings_table(systems, ratings),
        *(_correlation_table(results, kind) for kind in kinds),
        _references_table(systems.get(_RATED, {})),
    ]
    return [table for table in found if table.rows]


def _table(
    of: str, what: str, title: str, caption: str, *more: Column, printed: Sequence[Column] = (_PUBLISHED,)
) -> Table:
    """Return an empty table whose rows begin with two words and the cells of a figure."""
    words = [Column(heading, words=True) for heading in (of, what)]
    return Table(
        [*words, Column("value"), _INTERVAL, Column("n"), *printed, *more], title=title, caption=caption
    )


def _figure_cells(figure: Figure) -> list[Content]:
    return [_main(figure), figure.interval(), figure.n]


def _ratings_table(
    systems: Mapping[str, Mapping[str, Figure]], ratings: Mapping[tuple[str, str], Mapping[str, Any]]
) -> Table:
    table = _table(
        "system",
        "property",
        "Ratings of summaries by people, SQuALITY",
        "Mean over questions of the mean of three ratings, and the deviation of those means. publ.: Wang (2022), "
        "tables 5.5 and A.10. BART+DPR’s overall deviation is 16.448 and printed as 16.5.",
        Column("of 100, ± deviation", in_terminal=False),
        Column("published", published=True, in_terminal=False),
    )
    for system, figures in systems.items():
        for name in (name for name in _PROPERTIES if name in figures):
            own = ratings.get((system, name), {})
            mean, deviation = (_printed(key, {"system": system}) for key in (name, f"{name}_deviation"))
            table.add(
                system,
                name,
                *_figure_cells(figures[name]),
                mean,
                _of_100(own.get("mean"), own.get("deviation")),
                NONE if mean is None or deviation is None else _of_100(100 * mean, 100 * deviation),
            )
    return table


def _of_100(mean: float | None, deviation: float | None) -> str:
    return NONE if mean is None else f"{fraction(mean, 1)} ± {fraction(deviation, 1)}"


def _correlation_table(results: Results, kind: str) -> Table:
    caption = "Intervals from resampling whole stories."
    printed = kind == "pearson"
    if printed:
        caption += (
            " publ.: Wang (2022), table 5.6. Its correlations on models’ summaries are near zero; from the published "
            "texts and ratings they are above it, whichever references, stems, property or correlation is taken."
        )
    title = f"Metrics against the overall rating: {CORRELATIONS[kind]}"
    table = _table("metric", "summaries", title, caption, printed=[_PUBLISHED] if printed else [])
    for row in results["metrics"]:
        settings = row["settings"]
        if row["metric"] == kind and "of" in settings:
            table.add(
                TITLES.get(settings["of"], settings["of"]),
                _SUBSETS.get(settings["summaries"], settings["summaries"]),
                *_figure_cells(Figure.of(row)),
                *([_printed(kind, settings)] if printed else []),
            )
    return table


def _references_table(figures: Mapping[str, Figure]) -> Table:
    table = _table(
        "metric",
        "references",
        "One reference or four: BART+DPR",
        "Of 100 questions whose summaries are published. publ.: Wang (2022), table 5.7, of all 180 test questions.",
        Column("difference", in_terminal=False),
    )
    for metric, title in TITLES.items():
        if metric in figures and f"{metric}_mean" in figures:
            difference = figures[metric].value - figures[f"{metric}_mean"].value
            for words, key, last in (("mean", f"{metric}_mean", ""), ("max", metric, fraction(difference))):
                printed = _printed(key, {"system": _RATED})
                table.add(title, words, *_figure_cells(figures[key]), printed, last)
    return table


def statistics_tables(row: Mapping[str, Any]) -> list[Table]:
    """Return tables 5.2 and 5.3 as a run counted them."""
    found, facts = row["lengths"], facts_of(PACKAGE)
    lengths = Table(
        [Column("of all splits here", words=True), Column("counted"), Column("published", published=True)]
    )
    for words, *keys in (
        ("stories", "stories"),
        ("questions", "examples"),
        ("summaries", "summaries"),
        ("words a story", "story_words", "mean"),
        ("their deviation", "story_words", "deviation"),
        ("the shortest story", "story_words", "least"),
        ("the longest story", "story_words", "most"),
        ("words a summary", "summary_words", "mean"),
        ("their deviation", "summary_words", "deviation"),
        ("words of a plot", "plot_words", "mean"),
        ("words of other answers", "other_words", "mean"),
        ("compression, %", "compression"),
    ):
        counted, printed = _within(found, keys), _within(facts["lengths"], keys)
        scale = 100 if keys == ["compression"] else 1
        shown = fraction(scale * counted, 1 if isinstance(counted, float) else 0)
        lengths.add(
            words,
            Cell(shown, "strong", value=scale * counted),
            NONE if printed is None else Cell(f"{scale * printed:g}", value=scale * printed),
        )
    grams = [(Column(f"{n}-grams"), Column("published", published=True)) for n in range(1, 5)]
    sharing = Table(
        [Column("summary and", words=True), *(column for pair in grams for column in pair)],
        title="Shared wording, in %",
        caption=(
            "Words counted by spaCy’s tokenizer, as the paper counts them."
            if row.get("words") == "spacy"
            else "Words counted without spaCy, so stories come out 0.7 % longer than in the paper."
        )
        + f" Published: {citation(PACKAGE)}, tables 5.2 and 5.3 and section 5.4, of version 1’s 100 stories (table "
        "5.2 says 625 examples, which is another collection’s count).",
    )
    for line in row["sharing"]:
        printed = facts["sharing"].get(line["text"], [None] * len(line["shares"]))
        pairs = zip(line["shares"], printed, strict=True)
        sharing.add(line["text"], *(_percent(share) for pair in pairs for share in pair))
    return [lengths, sharing]


def _percent(share: float | None) -> Cell:
    return Cell(NONE) if share is None else Cell(fraction(100 * share, 1), value=100 * share)


def _within(found: Any, keys: Sequence[str]) -> Any:
    for key in keys:
        found = found.get(key) if isinstance(found, Mapping) else None
    return found
