"""Results, comparisons and surprisal profiles as tables for the terminal."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ensue.benchmarks.chapterbreak.published import published_models
from ensue.benchmarks.nlu.report.fits import dev_spreads, trainings
from ensue.benchmarks.nlu.report.sheets import sheet_of
from ensue.benchmarks.nlu.report.table import fill_nlu, fill_phenomena
from ensue.benchmarks.probing.report.sheets import sheets
from ensue.benchmarks.probing.report.table import fill_probing
from ensue.benchmarks.qags.report.table import fill_qags
from ensue.benchmarks.shuffle.report.rows import block_rows, settings_label
from ensue.benchmarks.squality.report.page import is_squality
from ensue.benchmarks.squality.report.table import fill_squality
from ensue.report.profiles import Sentence, Version, shape
from ensue.report.reading import read_fits

if TYPE_CHECKING:
    from rich.table import Table

    from ensue.runs.compare import ComparedRow, Comparison

_BAR_WIDTH = 16


def metrics_table(results: Mapping[str, Any], folder: Path | None = None) -> Table:
    """One row per block size for the Shuffle Test, one per split and lengths for ChapterBreak, one per task for
    DiscoEval, SentEval, GLUE and SuperGLUE, one per metric for everything else.

    Where the run's `folder` is given, what it says of several trainings is told too.
    """
    if str(results.get("benchmark")).partition("/")[0] == "chapterbreak":
        return _chapterbreak_table(results)
    if results.get("benchmark") == "shuffle" and block_rows(results):
        return _shuffle_table(results)
    if found := sheets(results):
        table = _new_table("")
        fill_probing(table, found)
        return table
    if str(results.get("benchmark")) == "qags":
        table = _new_table("")
        fill_qags(table, results)
        return table
    if is_squality(results):
        table = _new_table("")
        fill_squality(table, results)
        return table
    if sheet := sheet_of(results):
        table = _new_table("")
        fill_nlu(table, sheet, dev_spreads(trainings(read_fits(folder))) if folder else None)
        return table
    return _plain_table(results)


def phenomena_tables(results: Mapping[str, Any]) -> list[Table]:
    """A table for each tagged diagnostic set of a GLUE or SuperGLUE run, a line a category and a tag."""
    found = []
    for diagnosis in sheet.diagnoses if (sheet := sheet_of(results)) else []:
        found.append(_new_table(""))
        fill_phenomena(found[-1], diagnosis)
    return found


def comparison_table(comparison: Comparison) -> Table:
    """One row per metric and setting: both values, the difference a − b, its interval, p-values, and of how many.

    Rows in which no answer differs are left out and named, unless there are no others.
    """
    from rich.markup import escape

    table = _new_table(f"a: {_run_words(comparison.model_a, comparison.path_a)}")
    table.title = f"{table.title}\nb: {escape(_run_words(comparison.model_b, comparison.path_b))}"
    shown = [row for row in comparison.rows if not row.alike] or list(comparison.rows)
    only_sizes = all(list(row.settings) == ["block_size"] for row in shown)
    several_tasks = len({row.task for row in shown}) > 1
    same = {} if only_sizes else _settings_of_all([row.settings for row in shown])
    places = [_place_words(row, only_sizes, several_tasks, same) for row in shown]
    sizes = [_size_words(row) for row in shown]
    one_size = len(set(sizes)) == 1
    common = [
        # Rows in which no answer differs may be of other tasks.
        *([shown[0].task] if len({row.task for row in comparison.rows}) > 1 and not several_tasks else []),
        *([_settings_words(same)] if same else []),
        *([sizes[0]] if one_size else []),
    ]
    table.caption = (
        f"{comparison.shared:,} shared items. p: paired test over whole clusters; Holm: p corrected for the rows of "
        f"the same metric; n: items (or groups, where a metric counts those)/clusters."
        + (f" All rows: {escape(', '.join(common))}." if common else "")
        + _alike_words(comparison)
    )
    if any(places):
        heading = "block\nsize" if only_sizes else "task" if several_tasks else "settings"
        longest = max(len(word) for place in places for word in place.split())
        table.add_column(heading, min_width=min(longest, 12), overflow="fold")
    table.add_column(
        "metric",
        min_width=max(len(word) for word in (*sizes, *(row.metric.partition("_")[0] for row in shown))),
    )
    for heading in ("a", "b", "a − b", "95 % interval", "p", "Holm"):
        table.add_column(heading, justify="right", no_wrap=True)
    for row, place, size in zip(shown, places, sizes, strict=True):
        colour = "default" if row.adjusted_p > 0.05 else "green" if row.test.difference > 0 else "red"
        table.add_row(
            *([escape(place)] if any(places) else []),
            # Beneath, since a column of its own would not fit a terminal of 80 columns.
            escape(row.metric.replace("_", " ")) + ("" if one_size else f"\n[dim]{size}[/dim]"),
            _fraction(row.value_a),
            _fraction(row.value_b),
            f"[{colour}]{row.test.difference:+.3f}[/{colour}]",
            _signed_interval(row.test.low, row.test.high),
            _p_value(row.test.p_value),
            _p_value(row.adjusted_p),
        )
    return table


def _place_words(row: ComparedRow, only_sizes: bool, several_tasks: bool, same: Mapping[str, Any]) -> str:
    """What tells a row from others of its metric."""
    own = {key: value for key, value in row.settings.items() if key not in same}
    # A name says what it is by itself (dev, rouge-1), a number does not.
    words = [
        str(value) if only_sizes or isinstance(value, str) else _settings_words({key: value})
        for key, value in own.items()
    ]
    return " ".join([*([row.task] if several_tasks else []), *words])


def _size_words(row: ComparedRow) -> str:
    clusters = "" if row.test.clusters == row.test.n else f"/{row.test.clusters:,}"
    return f"n {row.test.n:,}{clusters}"


def untested_words(comparison: Comparison) -> list[str]:
    """A line for every reason, with what could not be tested for it."""
    places: dict[str, list[str]] = {}
    for one in comparison.untested:
        words = _settings_words(one.settings)
        places.setdefault(one.reason, []).append(f"{one.task} ({words})" if words else one.task)
    return [f"Not tested: {', '.join(names)}: {reason}." for reason, names in places.items()]


def _settings_of_all(settings: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """What all rows have in common."""
    first, *others = settings
    return {
        key: value for key, value in first.items() if all(key in one and one[key] == value for one in others)
    }


def _alike_words(comparison: Comparison) -> str:
    """Which rows have the same answers in both runs, such as ties where nothing tied; none if all of them have."""
    alike = [row for row in comparison.rows if row.alike]
    if len(alike) == len(comparison.rows) or not alike:
        return ""
    differing = {row.metric for row in comparison.rows if not row.alike}
    names = list(dict.fromkeys(row.metric for row in alike if row.metric not in differing))
    rest = sum(row.metric in differing for row in alike)
    if rest:
        names.append(f"{rest:,} more row{'s' if rest > 1 else ''}")
    return f" Equal everywhere and not shown: {', '.join(names)}."


def profile_table(profile: Mapping[str, Any]) -> Table:
    """A line of `profiles.jsonl` as sentences with bars, the versions one after the other."""
    from rich.markup import escape

    document = shape(profile)
    table = _new_table(document.name)
    table.caption = (
        "nats per token; marked is the sentence that stands furthest above the mean, the first aside, since nothing "
        "precedes it"
    )
    table.add_column("#", justify="right")
    table.add_column("sentence")
    table.add_column("surprisal", justify="right", no_wrap=True)
    table.add_column("", min_width=_BAR_WIDTH, no_wrap=True)
    for version in document.versions:
        if len(document.versions) > 1:
            table.add_row("", f"[bold]{escape(version.name)}[/bold]", "", "")
        for sentence in version.sentences:
            table.add_row(
                str(sentence.place),
                escape(sentence.text),
                "–" if sentence.surprisal is None else f"{sentence.surprisal:.2f}",
                _bar(sentence, version),
                style="bold yellow" if sentence.stops else None,
            )
    return table


def _bar(sentence: Sentence, version: Version) -> str:
    bar = "█" * round(sentence.share * _BAR_WIDTH)
    return f"{bar} {version.jump:+.2f}" if sentence.stops else bar


def _run_words(model: str, path: str) -> str:
    return f"{model} ({path})" if model else path


def _shuffle_table(results: Mapping[str, Any]) -> Table:
    table = _new_table(f"Shuffle Test · {results.get('model', '')}")
    table.caption = (
        "publ.: published by Laban et al. (2021), table 2, on other documents; "
        "human on WSJ, GPT2-medium averaged over three domains. Chance is 0.5."
    )
    # Short words on two lines: the whole must fit a terminal of 80 columns.
    headings = ["block\nsize", "accuracy", "95 %\ninterval", "per\ntoken", "ties", "pairs", "docs"]
    for heading in [*headings, "publ.\nhuman", "publ.\nGPT2-med"]:
        table.add_column(heading, justify="right", no_wrap=True)
    for row in block_rows(results):
        table.add_row(
            row.label,
            f"[bold]{_fraction(row.accuracy)}[/bold]",
            _interval(row.low, row.high),
            _fraction(row.per_token),
            "–" if row.ties is None else f"{round(row.ties * row.n):,}",
            f"{row.n:,}",
            "–" if row.documents is None else f"{row.documents:,}",
            _fraction(row.human),
            _fraction(row.gpt2),
        )
    return table


_CHAPTERBREAK_SETTINGS = {
    "boundary": "boundary",
    "negatives": "negatives",
    "prefix_tokens": "prefix",
    "suffix_tokens": "suffix",
}


def _chapterbreak_table(results: Mapping[str, Any]) -> Table:
    """One row per split, boundary, kind of negatives and lengths; settings that never change have no column."""
    from rich.markup import escape

    rows: dict[tuple[Any, ...], dict[str, Mapping[str, Any]]] = {}
    for row in results["metrics"]:
        place = (row["task"], *(row["settings"].get(key) for key in _CHAPTERBREAK_SETTINGS))
        rows.setdefault(place, {})[row["metric"]] = row
    names = dict(zip(("task", *_CHAPTERBREAK_SETTINGS), range(1 + len(_CHAPTERBREAK_SETTINGS)), strict=True))
    shown = ["task", *(k for k in names if k != "task" and (k == "prefix_tokens" or _differ(rows, names[k])))]
    table = _new_table(f"ChapterBreak · {results.get('model', '')}")
    table.caption = _chapterbreak_caption([str(place[0]) for place in rows])
    for key in shown:
        number = key in ("prefix_tokens", "suffix_tokens")
        name = _CHAPTERBREAK_SETTINGS.get(key, "split")
        # A split's name may be long; the other words are ours and short.
        table.add_column(name, justify="right" if number else "left", overflow="fold", no_wrap=key != "task")
    for heading in ("acc.", "95 %\ninterval", "rank", "margin", "word\nppl", "n", "works"):
        table.add_column(heading, justify="right", no_wrap=True)
    for place, found in rows.items():
        accuracy, perplexity = found["accuracy"], found.get("word_perplexity")
        table.add_row(
            *(escape(_count(place[names[key]])) for key in shown),
            f"[bold]{_fraction(accuracy['value'])}[/bold]",
            _interval(*accuracy["ci95"]),
            f"{found['rank']['value']:.2f}",
            f"{found['margin']['value']:+.3f}",
            "–" if perplexity is None else _perplexity(perplexity["value"]),
            f"{accuracy['n']:,}",
            f"{accuracy['clusters']:,}",
        )
    return table


def _differ(places: Iterable[tuple[Any, ...]], index: int) -> bool:
    return len({place[index] for place in places}) > 1


def _perplexity(value: float) -> str:
    return f"{value:.1f}" if value < 1000 else f"{value:.0f}" if value < 1e6 else f"{value:.0e}"


def _chapterbreak_caption(splits: list[str]) -> str:
    """Chance, and the paper's figures for the splits that it has."""
    words = "Chance is 0.167 with five negatives; rank 1 is best."
    for split in dict.fromkeys(splits):
        found = [
            f"{line.model} {line.accuracy[split]:.2f} ({line.sequence // 1024}K{', a subset' if line.subset else ''})"
            for line in published_models()
            if split in line.accuracy
        ]
        words += f" Published for {split} by Sun et al. (2022), table 2: {', '.join(found)}." if found else ""
    return words


def _count(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)


def _plain_table(results: Mapping[str, Any]) -> Table:
    from rich.markup import escape

    table = _new_table(f"{results.get('benchmark', '')} · {results.get('model', '')}")
    rows = results["metrics"]
    with_settings = any(row["settings"] for row in rows)
    table.add_column("task")
    if with_settings:
        table.add_column("settings")
    table.add_column("metric")
    for heading in ("value", "95 % interval", "items", "clusters"):
        table.add_column(heading, justify="right")
    for row in rows:
        clusters = row.get("clusters")
        cells = [
            escape(str(row["task"])),
            *([escape(_settings_words(row["settings"]))] if with_settings else []),
            escape(str(row["metric"])),
            f"[bold]{_fraction(row['value'])}[/bold]",
            _interval(*(row.get("ci95") or (None, None))),
            f"{row['n']:,}",
            "–" if clusters is None else f"{clusters:,}",
        ]
        table.add_row(*cells)
    return table


def _new_table(title: str) -> Table:
    # rich takes a tenth of a second to import; those who only want JSON need not wait for it.
    from rich import box
    from rich.markup import escape
    from rich.table import Table

    return Table(
        title=escape(title),
        box=box.SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
        title_justify="left",
        caption_justify="left",
    )


def _settings_words(settings: Mapping[str, Any]) -> str:
    """Unlike in a column of block sizes, a lone block size needs its name here."""
    words = settings_label(settings)
    return f"block size {words}" if list(settings) == ["block_size"] else words


def _fraction(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def _interval(low: float | None, high: float | None) -> str:
    return "–" if low is None or high is None else f"{low:.3f}–{high:.3f}"


def _signed_interval(low: float | None, high: float | None) -> str:
    # "to" rather than a dash, which would look like another minus.
    return "–" if low is None or high is None else f"{low:+.3f} to {high:+.3f}"


def _p_value(value: float) -> str:
    return "<0.001" if value < 0.001 else f"{value:.3f}"
