"""What is said of SQuALITY runs: systems beside published ones, statistics, and metrics beside people's ratings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ensue.benchmarks.squality.published import (
    citation,
    published_correlations,
    published_lengths,
    published_mean_and_max,
    published_ratings,
    published_scores,
    published_sharing,
)
from ensue.errors import EnsueError
from ensue.report.page import Page, run_names
from ensue.report.results import read_items, read_results, read_run
from ensue.text.io.rows import json_objects

BENCHMARK = "squality"
HUMAN_EVAL = "squality/human-eval"
# Metrics as they are written, in the order of table 5.4; what the paper has not comes last.
TITLES = {
    "rouge1": "ROUGE-1",
    "rouge2": "ROUGE-2",
    "rougeL": "ROUGE-L",
    "meteor": "METEOR",
    "bertscore": "BERTScore",
}
PROPERTIES = ("correctness", "coverage", "overall")
SUBSETS = ("model", "human", "all")
WORDS = "words"
_STATISTICS, _RATINGS = "statistics.jsonl", "ratings.jsonl"
_LONGEST_EXAMPLE = 1500


class Figure(NamedTuple):
    """One number with its interval."""

    value: float
    low: float | None = None
    high: float | None = None
    n: int = 0
    clusters: int = 0


class Score(NamedTuple):
    """A metric of a system: by the best reference, by the mean over them, and as people are measured."""

    metric: str
    best: Figure
    mean: Figure | None
    left_out: Figure | None

    @property
    def title(self) -> str:
        return TITLES.get(self.metric, self.metric)


class System(NamedTuple):
    """A run of one system, under the model's name; `kind` is what summarised."""

    name: str
    kind: str
    split: str
    version: str
    scores: dict[str, Score]
    words: Figure | None
    limit: int | None
    encoder: str


class Beside(NamedTuple):
    """A measured number and the published one; either may be missing."""

    name: str
    measured: float | None
    published: float | None


class Sharing(NamedTuple):
    """A line of table 5.3, measured and published."""

    text: str
    measured: tuple[float, ...]
    published: tuple[float, ...]


class Rating(NamedTuple):
    """A cell of table A.10, measured and published, on the scale of 100."""

    system: str
    property: str
    mean: float
    deviation: float
    printed_mean: float | None
    printed_deviation: float | None


class Agreement(NamedTuple):
    """A cell of table 5.6."""

    metric: str
    subset: str
    figure: Figure
    published: float | None


class Shown(NamedTuple):
    """A summary to read."""

    id: str
    question: str
    text: str
    rouge1: float
    words: str


def is_squality(results: Mapping[str, Any]) -> bool:
    """Whether results are told this way."""
    return str(results.get("benchmark")).partition("/")[0] == BENCHMARK


def figure_of(row: Mapping[str, Any]) -> Figure:
    low, high = row.get("ci95") or (None, None)
    return Figure(row["value"], low, high, row["n"], row.get("clusters") or 0)


def scores_of(results: Mapping[str, Any]) -> dict[str, Score]:
    """The metrics of a run of one system, in order."""
    found = {row["metric"]: figure_of(row) for row in results["metrics"]}
    return {
        name: Score(name, found[name], found.get(f"{name}_mean"), found.get(f"{name}_loo"))
        for name in TITLES
        if name in found
    }


def agreements(results: Mapping[str, Any], kind: str = "pearson") -> list[Agreement]:
    """Correlations with people's ratings, beside table 5.6 where it has them."""
    printed = {(one.metric, one.subset): one.value for one in published_correlations()}
    return [
        Agreement(
            row["settings"]["of"],
            row["settings"]["summaries"],
            figure_of(row),
            printed.get((row["settings"]["of"], row["settings"]["summaries"])) if kind == "pearson" else None,
        )
        for row in results["metrics"]
        if row["metric"] == kind and "of" in row["settings"]
    ]


def rated_systems(results: Mapping[str, Any]) -> dict[str, dict[str, Figure]]:
    """Of each rated system its ratings and metrics."""
    found: dict[str, dict[str, Figure]] = {}
    for row in results["metrics"]:
        if "system" in row["settings"]:
            found.setdefault(row["settings"]["system"], {})[row["metric"]] = figure_of(row)
    return found


def mean_and_max(results: Mapping[str, Any], system: str = "bart-dpr") -> list[tuple[Beside, Beside]]:
    """Table 5.7: a metric's mean over references and its maximum, each beside the printed one."""
    own = rated_systems(results).get(system, {})
    printed = {one.metric: one for one in published_mean_and_max()}
    pairs = []
    for name in TITLES:
        if name in own and f"{name}_mean" in own:
            paper = printed.get(name)
            pairs.append(
                (
                    Beside(name, own[f"{name}_mean"].value, paper and paper.mean),
                    Beside(name, own[name].value, paper and paper.max),
                )
            )
    return pairs


def squality_facts(folders: Sequence[Path], annotations: Path | None) -> dict[str, Any]:
    """All that the page needs beyond what every report has."""
    results = [read_results(folder) for folder in folders]
    kinds = {str(one["benchmark"]) == HUMAN_EVAL for one in results}
    if len(kinds) > 1:
        raise EnsueError(
            "Runs of squality and of squality/human-eval have no tables in common; report them apart."
        )
    names = run_names(folders, results)
    common = {"names": names, "citation": citation(), "titles": TITLES, "human_eval": kinds == {True}}
    if kinds == {True}:
        return {**common, **_human_eval_facts(folders[0], results[0])}
    systems = [_system(*one) for one in zip(names, folders, results, strict=True)]
    if not systems[0].scores:
        return {}
    columns = [name for name in TITLES if any(name in one.scores for one in systems)]
    return {
        **common,
        "systems": systems,
        "columns": columns,
        "published": published_scores(),
        **_statistics(folders[0] / _STATISTICS),
        "shown": list(_shown(folders[0])),
    }


def _human_eval_facts(folder: Path, results: Mapping[str, Any]) -> dict[str, Any]:
    printed = {(one.system, one.property): one for one in published_ratings()}
    ratings = [
        Rating(
            row["system"],
            row["property"],
            row["mean"],
            row["deviation"],
            paper.mean if (paper := printed.get((row["system"], row["property"]))) else None,
            paper.deviation if paper else None,
        )
        for row in _rows(folder / _RATINGS)
    ]
    return {
        "ratings": ratings,
        "agreements": {kind: agreements(results, kind) for kind in ("pearson", "spearman", "kendall")},
        "mean_and_max": mean_and_max(results),
        "subsets": SUBSETS,
    }


def _system(name: str, folder: Path, results: Mapping[str, Any]) -> System:
    rows = results["metrics"]
    settings = rows[0]["settings"] if rows else {}
    asked = read_run(folder).get("asked") or {}
    words = next((figure_of(row) for row in rows if row["metric"] == WORDS), None)
    marked = [part for part in str(results.get("signature", "")).split() if part.startswith("system:")]
    return System(
        name=name,
        kind=marked[0].removeprefix("system:") if marked else "",
        split=str(settings.get("split", "")),
        version=str(settings.get("version", "")),
        scores=scores_of(results),
        words=words,
        limit=asked.get("limit"),
        encoder=str((asked.get("settings") or {}).get("bertscore_model", "")),
    )


def _statistics(path: Path) -> dict[str, Any]:
    """Tables 5.2 and 5.3 where the run counted them."""
    rows = _rows(path)
    if not rows:
        return {"lengths": [], "sharing": [], "counted": ""}
    found, paper = rows[0]["lengths"], published_lengths()
    lengths = [
        Beside("stories", found["stories"], paper.stories),
        Beside("questions", found["examples"], None),
        Beside("summaries", found["summaries"], None),
        Beside("words a story", found["story_words"]["mean"], paper.story_mean),
        Beside("their deviation", found["story_words"]["deviation"], paper.story_deviation),
        Beside("the shortest story", found["story_words"]["least"], paper.story_least),
        Beside("the longest story", found["story_words"]["most"], paper.story_most),
        Beside("words a summary", found["summary_words"]["mean"], paper.summary_mean),
        Beside("their deviation ", found["summary_words"]["deviation"], paper.summary_deviation),
        Beside("words of a plot", found["plot_words"]["mean"], paper.plot_mean),
        Beside("words of other answers", found["other_words"]["mean"], paper.other_mean),
        Beside("compression, %", 100 * found["compression"], 100 * paper.compression),
    ]
    printed = published_sharing()
    sharing = [
        Sharing(one["text"], tuple(one["shares"]), printed.get(one["text"], ())) for one in rows[0]["sharing"]
    ]
    return {"lengths": lengths, "sharing": sharing, "counted": str(rows[0].get("words", ""))}


def _shown(folder: Path) -> Iterator[Shown]:
    """The best, the middle and the worst summary by ROUGE-1; none of people's, whose texts are the data's own."""
    items = [
        item
        for item in read_items(folder)
        if isinstance(item.get("outputs"), dict)
        and "summary" in item["outputs"]
        and "rouge1" in item["scores"]
    ]
    items.sort(key=lambda item: -item["scores"]["rouge1"])
    places = {"best": 0, "middle": len(items) // 2, "worst": len(items) - 1} if len(items) > 2 else {}
    for words, place in places.items():
        item = items[place]
        text = str(item["outputs"]["summary"])
        cut = text if len(text) <= _LONGEST_EXAMPLE else text[:_LONGEST_EXAMPLE] + " …"
        yield Shown(
            item["id"], str(item["outputs"].get("question", "")), cut, item["scores"]["rouge1"], words
        )


def _rows(path: Path) -> list[dict[str, Any]]:
    return [row for _, row in json_objects(path)] if path.is_file() and path.stat().st_size else []


PAGE = Page("ensue.benchmarks.squality.report", "squality.html.j2", squality_facts, takes_runs=True)
