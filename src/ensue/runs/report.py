"""The report of a finished run or training as one HTML page: the benchmark's own, or plain tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ensue.errors import EnsueError
from ensue.report.page import Page, environment, profile_facts, write_text
from ensue.report.provenance import command_of, environment_rows
from ensue.report.results import read_profiles, read_results, read_run
from ensue.runs.run import Run, folder_of, part_of, suite_of
from ensue.runs.tables import counts_table, plain_table
from ensue.train.report.page import is_training, write_training_report

MOST_METRIC_ROWS = 500


def write_report(
    run: str | Path | Run,
    output: str | Path | None = None,
    *,
    beside: Sequence[str | Path | Run] = (),
    annotations: str | Path | None = None,
) -> Path:
    """Write the report of a finished run or training, by default as `report.html` in its folder.

    A run is given as itself or by its folder. Runs given as `beside` are drawn beside it. Return its path.
    """
    folder = folder_of(run)
    path = folder / "report.html" if output is None else Path(output)
    path = path / "report.html" if path.is_dir() else path
    if is_training(folder):
        if beside or annotations is not None:
            raise EnsueError(
                f"{folder} holds a training, which is reported alone: give it no runs or annotations."
            )
        return write_training_report(folder, path)
    others = [folder_of(each) for each in beside]
    return write_text(path, render_report(folder, others, None if annotations is None else Path(annotations)))


def write_annotation_sheet(run_folder: str | Path, sheet: str | Path) -> int:
    """Write an empty sheet to annotate a run in, and return its number of rows."""
    results = read_results(run_folder)
    page: Page | None = part_of(suite_of(results), "page")
    if page is None or page.write_sheet is None:
        raise EnsueError(f"{run_folder} is a run of {suite_of(results)}, which has nothing to annotate.")
    return page.write_sheet(Path(run_folder), Path(sheet))


def render_report(folder: Path, beside: Sequence[Path] = (), annotations: Path | None = None) -> str:
    """Return the report of a run as text."""
    results, run = read_results(folder), read_run(folder)
    page: Page | None = part_of(suite_of(results), "page")
    _check_company(folder, beside, annotations, suite_of(results), page)
    found = page.facts([folder, *beside], annotations) if page else {}
    facts: dict[str, Any] = {
        "results": results,
        "metrics": replace(plain_table(results, MOST_METRIC_ROWS), title=""),
        "metrics_left_out": max(0, len(results["metrics"]) - MOST_METRIC_ROWS),
        "skipped": counts_table("left out because", results.get("skipped") or {}),
        "notes": counts_table("also noted", results.get("notes") or {}),
        "signature": str(results.get("signature") or run.get("signature") or ""),
        "command": command_of(run),
        "environment": environment_rows(run),
        "has_findings": bool(found),
    }
    facts |= found
    facts |= profile_facts(read_profiles(folder))
    if page and found:
        return environment(page.package).get_template(page.template).render(facts)
    return environment().get_template("report.html.j2").render(facts)


def _check_company(
    folder: Path, beside: Sequence[Path], annotations: Path | None, benchmark: str, page: Page | None
) -> None:
    """Refuse other runs and annotations that are not of the same benchmark, or where its page shows none."""
    if beside and not (page and page.takes_runs):
        raise EnsueError(f"{folder} is a run of {benchmark}, which is reported alone: give it no other runs.")
    if annotations is not None and not (page and page.takes_annotations):
        raise EnsueError(f"{folder} is a run of {benchmark}, which takes no annotations.")
    seen = {folder.resolve()}
    for other in beside:
        if is_training(other):
            raise EnsueError(
                f"{other} holds a training, not a run of {benchmark}, so it has no place beside one."
            )
        named = suite_of(read_results(other))
        if named != benchmark:
            raise EnsueError(
                f"{other} is a run of {named}, not of {benchmark}, so it has no place beside one."
            )
        if other.resolve() in seen:
            raise EnsueError(f"{other} is given twice.")
        seen.add(other.resolve())
