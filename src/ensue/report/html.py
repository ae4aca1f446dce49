"""The report of a run as one self-contained HTML file: no scripts, nothing fetched, safe to mail."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from jinja2 import Environment, PackageLoader, StrictUndefined

from ensue.atomic import write_atomic
from ensue.benchmarks.chapterbreak.report.page import chapterbreak_facts
from ensue.benchmarks.nlu.report.page import nlu_facts
from ensue.benchmarks.probing.report.page import probing_facts
from ensue.benchmarks.qags.report.page import qags_facts
from ensue.benchmarks.shuffle.published import citation
from ensue.benchmarks.shuffle.report.rows import (
    MOST_DOMAINS,
    BlockRow,
    block_rows,
    published_lines,
    tally_domains,
)
from ensue.benchmarks.squality.report.page import squality_facts
from ensue.errors import EnsueError
from ensue.report.profiles import Document, most_surprising
from ensue.report.provenance import command_of, environment_rows
from ensue.report.reading import read_items, read_profiles, read_results, read_run
from ensue.report.svg import Picture, drawn_twice
from ensue.train.report.page import is_training, training_facts

# Pictures for these, tables only for some more, a count for the rest: the file must stay small.
PICTURED_DOCUMENTS = 6
LISTED_DOCUMENTS = 18
MOST_METRIC_ROWS = 500


class PicturedDocument(NamedTuple):
    """A document with the picture of its profile."""

    document: Document
    picture: Picture


class _Page(NamedTuple):
    """How runs of one benchmark are told: the template, and what it needs beyond what every report has.

    `facts` is given the folders, the one the report is of first, and a file of annotations or None. Where it
    finds nothing it knows, it gives an empty mapping and the run is told in plain tables.
    """

    template: str
    facts: Callable[[Sequence[Path], Path | None], dict[str, Any]]
    takes_runs: bool = False
    takes_annotations: bool = False


def write_report(
    run_folder: str | Path,
    output: str | Path | None = None,
    *,
    beside: Sequence[str | Path] = (),
    annotations: str | Path | None = None,
) -> Path:
    """Write the report of a finished run or training, by default as `report.html` in its folder.

    Runs given as `beside` are drawn beside it. What comes back is where the report is.
    """
    folder = Path(run_folder)
    path = folder / "report.html" if output is None else Path(output)
    if is_training(folder):
        if beside or annotations is not None:
            raise EnsueError(
                f"{folder} holds a training, which is reported alone: give it no runs or annotations."
            )
        page = _environment().get_template("training.html.j2").render(training_facts(folder))
    else:
        page = render_report(
            folder, [Path(each) for each in beside], None if annotations is None else Path(annotations)
        )
    return _write_page(path / "report.html" if path.is_dir() else path, page)


def write_profiles(profiles: Iterable[Mapping[str, Any]], output: str | Path, signature: str = "") -> Path:
    """Write a page of surprisal profiles, each as a line of `profiles.jsonl` has it, and say where it is."""
    facts = {"signature": signature, **_profile_facts(profiles)}
    return _write_page(Path(output), _environment().get_template("profiles.html.j2").render(facts))


def write_page(template: str, facts: Mapping[str, Any], output: str | Path) -> Path:
    """Write a page that is of no run, and say where it is."""
    return _write_page(Path(output), _environment().get_template(template).render(dict(facts)))


def _write_page(path: Path, page: str) -> Path:
    if path.exists() and not path.is_file():
        raise EnsueError(f"{path} is there and is no file, so the page was not written.")
    return write_atomic(path, [page])


def render_report(folder: Path, beside: Sequence[Path] = (), annotations: Path | None = None) -> str:
    """The report of a run as text."""
    results, run = read_results(folder), read_run(folder)
    kind = _PAGES.get(_suite(results))
    _check_company(folder, beside, annotations, results, kind)
    found = kind.facts([folder, *beside], annotations) if kind else {}
    facts: dict[str, Any] = {
        "results": results,
        "metrics": results["metrics"][:MOST_METRIC_ROWS],
        "metrics_left_out": max(0, len(results["metrics"]) - MOST_METRIC_ROWS),
        "skipped": dict(results.get("skipped") or {}),
        "notes": dict(results.get("notes") or {}),
        "signature": str(results.get("signature") or run.get("signature") or ""),
        "command": command_of(run),
        "environment": environment_rows(run),
        "has_findings": bool(found),
    }
    facts |= found
    facts |= _profile_facts(read_profiles(folder))
    template = kind.template if kind and found else "report.html.j2"
    return _environment().get_template(template).render(facts)


def _check_company(
    folder: Path,
    beside: Sequence[Path],
    annotations: Path | None,
    results: Mapping[str, Any],
    kind: _Page | None,
) -> None:
    """What else is given must be of the same benchmark, and of one that can show it."""
    benchmark = _suite(results)
    if beside and not (kind and kind.takes_runs):
        both = _listed([name for name, page in _PAGES.items() if page.takes_annotations])
        runs = _listed([n for n, page in _PAGES.items() if page.takes_runs and not page.takes_annotations])
        raise EnsueError(
            f"{folder} is a run of {benchmark}; other runs and annotations go with runs of {both}, "
            f"other runs with those of {runs} too."
        )
    if annotations is not None and not (kind and kind.takes_annotations):
        able = _listed([name for name, page in _PAGES.items() if page.takes_annotations])
        raise EnsueError(f"{folder} is a run of {benchmark}; annotations go with runs of {able} only.")
    seen = {folder.resolve()}
    for other in beside:
        if is_training(other):
            raise EnsueError(
                f"{other} holds a training, not a run of {benchmark}, so it has no place beside one."
            )
        named = _suite(read_results(other))
        if named != benchmark:
            raise EnsueError(
                f"{other} is a run of {named}, not of {benchmark}, so it has no place beside one."
            )
        if other.resolve() in seen:
            raise EnsueError(f"{other} is given twice.")
        seen.add(other.resolve())


def _listed(names: Sequence[str]) -> str:
    return " and ".join([*([", ".join(names[:-1])] if len(names) > 1 else []), *names[-1:]])


def _suite(results: Mapping[str, Any]) -> str:
    """The benchmark without the task that a run may be of."""
    return str(results.get("benchmark")).partition("/")[0]


def _shuffle_facts(folders: Sequence[Path], annotations: Path | None) -> dict[str, Any]:
    blocks = block_rows(read_results(folders[0]))
    if not blocks:
        return {}
    tally = tally_domains(read_items(folders[0]))
    domains = tally.domains
    return {
        "blocks": blocks,
        "accuracy_picture": _accuracy_picture(blocks),
        "domain_rows": tally.rows() if len(domains) > 1 else [],
        "domains_left_out": max(0, len(domains) - MOST_DOMAINS),
        "documents": max((row.documents or 0 for row in blocks), default=0),
        "citation": citation(),
    }


_PAGES = {
    "shuffle": _Page("shuffle.html.j2", _shuffle_facts),
    "chapterbreak": _Page(
        "chapterbreak.html.j2", chapterbreak_facts, takes_runs=True, takes_annotations=True
    ),
    "discoeval": _Page("probing.html.j2", probing_facts, takes_runs=True),
    "senteval": _Page("probing.html.j2", probing_facts, takes_runs=True),
    "qags": _Page("qags.html.j2", qags_facts, takes_runs=True),
    "squality": _Page("squality.html.j2", squality_facts, takes_runs=True),
    "glue": _Page("nlu.html.j2", nlu_facts, takes_runs=True),
    "superglue": _Page("nlu.html.j2", nlu_facts, takes_runs=True),
}


def _accuracy_picture(blocks: Sequence[BlockRow]) -> Picture | None:
    if not any(row.block_size is not None for row in blocks):
        return None
    # Drawing needs matplotlib, which takes half a second to import; reports without pictures do without it.
    from ensue.report.plots import accuracy_plot

    lines = published_lines()
    return drawn_twice(lambda width: accuracy_plot(blocks, lines, width=width))


def _profile_facts(profiles: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    documents, count = most_surprising(profiles, PICTURED_DOCUMENTS + LISTED_DOCUMENTS)
    pictured = [
        PicturedDocument(document, _profile_picture(document, f"profile-{place}"))
        for place, document in enumerate(documents[:PICTURED_DOCUMENTS], start=1)
    ]
    return {
        "pictured": pictured,
        "listed": documents[PICTURED_DOCUMENTS:],
        "profiles_left_out": count - len(documents),
        "profiles_count": count,
        "any_shuffled": any(len(document.versions) > 1 for document in documents),
    }


def _profile_picture(document: Document, name: str) -> Picture:
    from ensue.report.plots import profile_plot

    return drawn_twice(lambda width: profile_plot(document, name, width=width))


def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("ensue.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    filters: dict[str, Callable[..., str]] = {
        "fraction": _fraction,
        "whole": lambda number: "–" if number is None else f"{number:,}",
        "signed": lambda number: f"{number:+.2f}".replace("-", "−"),
        "duration": _duration,
        "parameters": _parameters,
    }
    environment.filters.update(filters)
    environment.globals["interval"] = lambda low, high: (
        "–" if low is None or high is None else f"{_fraction(low)} – {_fraction(high)}"
    )
    return environment


def _fraction(value: Any, digits: int = 3) -> str:
    return f"{value:.{digits}f}" if isinstance(value, (int, float)) else "–"


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{seconds:.1f} s"


def _parameters(count: int | None) -> str:
    if count is None:
        return "–"
    return f"{count / 1e9:g}B" if count >= 1e9 else f"{count / 1e6:g}M"
