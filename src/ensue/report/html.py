"""The report of a run as one self-contained HTML file: no scripts, nothing fetched, safe to mail."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from ensue.benchmarks.shuffle.published import citation
from ensue.errors import EnsueError
from ensue.report.profiles import Document, most_surprising
from ensue.report.provenance import command_of, environment_rows
from ensue.report.shuffle import (
    MOST_DOMAINS,
    BlockRow,
    block_rows,
    published_lines,
    tally_domains,
)
from ensue.runs.reading import read_items, read_profiles, read_results, read_run

# Pictures for these, tables only for some more, a count for the rest: the file must stay small.
PICTURED_DOCUMENTS = 6
LISTED_DOCUMENTS = 18
MOST_METRIC_ROWS = 500
_WIDE, _NARROW = 8.6, 4.4


class Picture(NamedTuple):
    """One plot drawn twice, so that its words are readable on a desk and on a telephone."""

    wide: Markup
    narrow: Markup


class PicturedDocument(NamedTuple):
    """A document with the picture of its profile."""

    document: Document
    picture: Picture


def write_report(run_folder: str | Path, output: str | Path | None = None) -> Path:
    """Write the report of a finished run, by default as `report.html` in its folder, and say where it is."""
    folder = Path(run_folder)
    path = folder / "report.html" if output is None else Path(output)
    return _write_whole(path / "report.html" if path.is_dir() else path, render_report(folder))


def write_profiles(profiles: Iterable[Mapping[str, Any]], output: str | Path, signature: str = "") -> Path:
    """Write a page of surprisal profiles, each as a line of `profiles.jsonl` has it, and say where it is."""
    facts = {"signature": signature, **_profile_facts(profiles)}
    return _write_whole(Path(output), _environment().get_template("profiles.html.j2").render(facts))


def _write_whole(path: Path, page: str) -> Path:
    if path.exists() and not path.is_file():
        raise EnsueError(f"{path} is there and is no file, so the page was not written.")
    # Under another name until it is whole, so that a full disk leaves no half report.
    temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        temporary.write_text(page, "utf-8")
        temporary.replace(path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise EnsueError(f"{path} cannot be written: {error.strerror or error}.") from error
    return path


def render_report(folder: Path) -> str:
    """The report as text."""
    results, run = read_results(folder), read_run(folder)
    facts: dict[str, Any] = {
        "results": results,
        "metrics": results["metrics"][:MOST_METRIC_ROWS],
        "metrics_left_out": max(0, len(results["metrics"]) - MOST_METRIC_ROWS),
        "skipped": dict(results.get("skipped") or {}),
        "notes": dict(results.get("notes") or {}),
        "signature": str(results.get("signature") or run.get("signature") or ""),
        "command": command_of(run),
        "environment": environment_rows(run),
        "blocks": [],
    }
    if results.get("benchmark") == "shuffle":
        facts |= _shuffle_facts(folder, results)
    facts |= _profile_facts(read_profiles(folder))
    return _environment().get_template("report.html.j2").render(facts)


def _shuffle_facts(folder: Path, results: Mapping[str, Any]) -> dict[str, Any]:
    blocks = block_rows(results)
    tally = tally_domains(read_items(folder))
    domains = tally.domains
    return {
        "blocks": blocks,
        "accuracy_picture": _accuracy_picture(blocks),
        "domain_rows": tally.rows() if len(domains) > 1 else [],
        "domains_left_out": max(0, len(domains) - MOST_DOMAINS),
        "documents": max((row.documents or 0 for row in blocks), default=0),
        "citation": citation(),
    }


def _accuracy_picture(blocks: Sequence[BlockRow]) -> Picture | None:
    if not any(row.block_size is not None for row in blocks):
        return None
    # Drawing needs matplotlib, which takes half a second to import; reports without pictures do without it.
    from ensue.report.plots import accuracy_plot

    lines = published_lines()
    return Picture(*(Markup(accuracy_plot(blocks, lines, width=width)) for width in (_WIDE, _NARROW)))


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

    return Picture(*(Markup(profile_plot(document, name, width=width)) for width in (_WIDE, _NARROW)))


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
