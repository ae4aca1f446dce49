"""Pages: one self-contained HTML file each, no scripts, nothing fetched, safe to mail."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

from ensue.atomic import write_atomic
from ensue.errors import EnsueError
from ensue.report.figure import count, fraction, interval, signed
from ensue.report.profiles import ProfiledDocument, most_surprising
from ensue.report.svg import Picture, drawn_twice

# Pictures for these, tables only for some more, a count for the rest: the file must stay small.
PICTURED_DOCUMENTS = 6
LISTED_DOCUMENTS = 18


@dataclass(frozen=True)
class Page:
    """The page of a benchmark's runs: a template in the `templates` folder of `package`, and what it needs.

    `facts` is given the run folders, the one the report is of first, and a file of annotations or None. Where it
    finds nothing it knows, it returns an empty mapping and the run is shown in plain tables. `write_sheet` writes an
    empty sheet to annotate a run in and returns its number of rows.
    """

    package: str
    template: str
    facts: Callable[[Sequence[Path], Path | None], dict[str, Any]]
    takes_runs: bool = False
    takes_annotations: bool = False
    write_sheet: Callable[[Path, Path], int] | None = None


def write_page(package: str, template: str, facts: Mapping[str, Any], output: str | Path) -> Path:
    """Write a page that is of no run, and say where it is."""
    return write_text(Path(output), environment(package).get_template(template).render(dict(facts)))


def write_text(path: Path, page: str) -> Path:
    if path.exists() and not path.is_file():
        raise EnsueError(f"{path} is there and is not a file, so the page was not written.")
    return write_atomic(path, [page])


def run_names(folders: Sequence[Path], results: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return what runs are called on a page: their models, and the folder too where a model comes twice."""
    models = [str(each.get("model") or folder.name) for folder, each in zip(folders, results, strict=True)]
    names: list[str] = []
    for folder, model in zip(folders, models, strict=True):
        name = model if models.count(model) == 1 else f"{model} ({folder.name})"
        names.append(name if name not in names else f"{model} ({folder})")
    return names


def profile_facts(profiles: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return what the section of surprisal profiles needs."""
    documents, total = most_surprising(profiles, PICTURED_DOCUMENTS + LISTED_DOCUMENTS)
    pictured = [
        (document, _profile_picture(document, f"profile-{place}"))
        for place, document in enumerate(documents[:PICTURED_DOCUMENTS], start=1)
    ]
    return {
        "pictured": pictured,
        "listed": documents[PICTURED_DOCUMENTS:],
        "profiles_left_out": total - len(documents),
        "profiles_count": total,
        "any_shuffled": any(len(document.versions) > 1 for document in documents),
    }


def _profile_picture(document: ProfiledDocument, name: str) -> Picture:
    from ensue.report.plots import profile_plot

    return drawn_twice(lambda width: profile_plot(document, name, width=width))


def environment(package: str = "") -> Environment:
    """Return what renders templates: those of a package before our own."""
    own = PackageLoader("ensue.report")
    found = Environment(
        loader=ChoiceLoader([PackageLoader(package), own]) if package else own,
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.filters |= {
        "fraction": fraction,
        "whole": count,
        "signed": partial(signed, digits=2),
        "duration": _duration,
    }
    found.globals["interval"] = interval
    return found


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{seconds:.1f} s"
