"""`ensue score --profile`: which sentence of a text stands out, in the terminal, as JSON lines and as a page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ensue import console
from ensue.atomic import check_place
from ensue.benchmarks.settings import resolve
from ensue.errors import EnsueError
from ensue.progress import Progress
from ensue.report.following import Doubtful, profile_table, ranking_table, write_profiles
from ensue.runs.profile import SETTINGS, open_profiler, profiles_of
from ensue.runs.score import policy_of
from ensue.runs.texts import STANDARD_INPUT, Texts, whole_texts
from ensue.text.io.rows import is_read_of
from ensue.text.visible import visible

if TYPE_CHECKING:
    from ensue.models.profile import Profile

# So many texts are shown sentence by sentence; of more there is the list of the most doubtful.
_SHOWN = 12


def print_profiles(
    file: str,
    model: str,
    settings: list[str] | None,
    options: Mapping[str, Any],
    *,
    limit: int | None,
    html: Path | None,
    output: Path | None,
    journal: Path | None,
    json: bool,
) -> bool:
    """Profile the texts of a source and print what was found; return whether a sentence of any stands out."""
    values = resolve("score --profile", SETTINGS, console.parse_settings(settings))
    texts = whole_texts(file, values, limit=limit)
    _check_places(file, html=html, output=output, journal=journal)
    few = (
        sum(1 for _ in islice(texts, _SHOWN + 1)) <= _SHOWN if texts.count is None else texts.count <= _SHOWN
    )
    profiler = open_profiler(
        model,
        encoder=values["encoder"],
        reader=values["reader"],
        rate=values["false_alarms"],
        calibration=None if values["calibration"] is None else Path(values["calibration"]),
        policy=policy_of(values),
        model_options=options,
    )
    doubtful = Doubtful()
    kept = "what is finished is kept" if output or journal else "with --output what is finished is kept"
    with console.stoppable(kept), console.progress_bar(f"profile {profiler.scorer.card.name}") as progress:
        stream = profiles_of(
            profiler,
            texts,
            values["joiner"],
            output=output,
            journal=journal,
            progress=progress if texts.count == 1 else None,
        )
        for found in _told(stream, texts, progress):
            doubtful.add(found)
            if json:
                console.print_json(found.row())
            elif few:
                _print(found)
    if html is not None:
        console.say(f"profiles: {write_profiles(doubtful, html, profiler.signature)}")
    if not json and doubtful.count > 1:
        console.print_tables([ranking_table(doubtful)])
    if output is not None:
        console.say(f"profiles: {output}")
    console.say(profiler.signature)
    return bool(doubtful.found)


def _check_places(source: str, **places: Path | None) -> None:
    """Refuse to write where nothing can be written, over the texts themselves, or two things to one file."""
    check_place(places["html"])
    named = [(f"--{option}", place) for option, place in places.items() if place is not None]
    for option, place in named:
        if source != STANDARD_INPUT and is_read_of(source, place):
            raise EnsueError(f"{option} {place} is one of the texts themselves; name another file.")
    for (one, place), (other, second) in combinations(named, 2):
        if place.resolve() == second.resolve():
            raise EnsueError(f"{one} and {other} are both {place}; name two files.")


def _told(stream: Iterator[Profile], texts: Texts, progress: Progress) -> Iterator[Profile]:
    """Tell of each profile that is finished, where there are several."""
    for done, found in enumerate(stream, start=1):
        if texts.count != 1:
            progress(done, texts.count or 0, "texts")
        yield found


def _print(found: Profile) -> None:
    console.print_tables([profile_table(found)])
    print(visible(f"{found.verdict}\n{found.why[:1].upper()}{found.why[1:]}.\n"))
