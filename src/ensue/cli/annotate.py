"""`ensue annotate`: measure people. Make annotation projects, open and close them, see how they go, export them."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from ensue import console
from ensue.cli.serve import Platform, command_of
from ensue.errors import EnsueError

app = typer.Typer(help="Measure people: annotation projects.", no_args_is_help=True, rich_markup_mode=None)

Name = Annotated[str, typer.Argument(help="The project's name in addresses.")]
Annotator = Annotated[str, typer.Argument(help="The person's pseudonym.")]


@app.command("kinds")
def list_kinds(
    kind: Annotated[str | None, typer.Argument(help="One kind, with its settings.")] = None,
    json: console.Json = False,
) -> None:
    """List the kinds of projects, or the settings of one."""
    from ensue.benchmarks.people import kind as people
    from ensue.benchmarks.settings import written

    known = [kind] if kind is not None else sorted(people.kinds())
    found = [people.described(name) for name in known]
    if json:
        console.print_json(found)
        return
    for one in found:
        print(f"{one['name']:<16} {one['about']}")
        if kind is not None:
            print(f"  --data: {one['data']}")
            for key, setting in one["settings"].items():
                print(f"  {key + '=' + written(setting['default']):<28} {setting['about']}")


@command_of(app)
def create(
    platform: Platform,
    kind: Annotated[str, typer.Argument(help="What people do (ensue annotate kinds).")],
    name: Name,
    data: Annotated[Path | None, typer.Option(help="The file or folder that items are made of.")] = None,
    set_: console.Settings = None,
    seed: Annotated[int, typer.Option(min=0, help="Random seed.")] = 0,
    title: Annotated[str, typer.Option(help="Its title (default: the kind's).")] = "",
    owner: Annotated[
        str | None, typer.Option(help="The e-mail address of the organiser who keeps it, besides admins.")
    ] = None,
) -> None:
    """Make a project; nobody can enter it before it is opened."""
    from ensue.benchmarks.people import kind as people
    from ensue.benchmarks.settings import from_here

    wanted: dict[str, Any] = {"kind": kind, "name": name, "seed": seed, "title": title, "owner": owner}
    wanted["data"] = None if data is None else str(data.expanduser().absolute())
    wanted["settings"] = from_here(people.settings_of(people.kind(kind)), console.parse_settings(set_))
    made = platform.perform("annotate.create", wanted)
    if platform.json:
        console.print_json(made)
        return
    for note in made["notes"]:
        print(note)
    work = made["progress"]["work"]
    parts = [f"{one['items']:,} {phase}" for phase, one in made["progress"].items() if phase != "work"]
    more = f" ({', '.join(parts)} items besides)" if parts else ""
    print(f"{name} has {_many(work['items'], 'item')} for {_many(work['wanted'], 'answer')}{more}.")
    print(f"Open it with: ensue annotate open {name}{_where(platform.home)}")
    if owner is None:
        print("On the pages only admins find it; --owner EMAIL makes it an organiser's.")


def _many(count: int, word: str) -> str:
    """Write how many there are of something.

    >>> _many(1, "answer"), _many(1200, "answer")
    ('1 answer', '1,200 answers')
    """
    return f"{count:,} {word}{'' if count == 1 else 's'}"


def _people(count: int) -> str:
    return f"{count:,} {'person' if count == 1 else 'people'}"


def _where(home: Path | None) -> str:
    """Return the option with which another command finds the same projects."""
    return "" if home is None else f" --home {shlex.quote(str(home))}"


@command_of(app, "list")
def list_projects(platform: Platform) -> None:
    """List the projects."""
    found = platform.perform("annotate.list", {})["projects"]
    if platform.json:
        console.print_json(found)
        return
    for one in found:
        work = one["progress"].get("work", {"answered": 0, "wanted": 0})
        far = f"{work['answered']:,}/{work['wanted']:,}"
        print(f"{one['name']:<24} {one['state']:<8} {one['kind']:<16} {far:>14} {_people(one['people']):>12}")


@command_of(app)
def show(platform: Platform, name: Name) -> None:
    """Show a project: how far it is and who is at work on it."""
    found = platform.perform("annotate.show", {"name": name})
    if platform.json:
        console.print_json({key: value for key, value in found.items() if key != "numbers"})
        return
    print(f"{name}: {found['title']} ({found['kind']}, {found['state']})")
    for phase, one in found["progress"].items():
        wanted = f" of {one['wanted']:,}" if one["wanted"] else ""
        void = f", {one['void']:,} void" if one["void"] else ""
        print(
            f"  {phase:<14} {_many(one['items'], 'item')}, {one['answered']:,}{wanted}"
            f" answer{'' if one['answered'] == 1 and not wanted else 's'}, {one['leased']:,} under way{void}"
        )
    for one in found["people"]:
        print(
            f"  {one['annotator']:<12} {one['state']:<9} {one['phase']:<14} {one['answers']:>6,} answers"
            f" {one['missed']:>3}/{one['controls']} controls missed {one['hasty']:>3} hasty"
            f" {one['seconds'] / 60:>7.1f} min"
        )


@command_of(app, "open")
def open_project(platform: Platform, name: Name) -> None:
    """Open a project: let people take part."""
    made = platform.perform("annotate.state", {"name": name, "state": "open"})
    link = f"ensue annotate link {name}{_where(platform.home)}"
    platform.answer(made, f"{name} is open. Print its link with: {link}")


@command_of(app)
def pause(platform: Platform, name: Name) -> None:
    """Pause a project: hand out no new work; what is under way can be finished."""
    _set_state(name, "paused", platform)


@command_of(app)
def close(platform: Platform, name: Name) -> None:
    """Close a project; its answers stay."""
    _set_state(name, "closed", platform)


def _set_state(name: str, state: str, platform: Platform) -> None:
    made = platform.perform("annotate.state", {"name": name, "state": state})
    platform.answer(made, f"{name} is {state}.")


@command_of(app)
def link(platform: Platform, name: Name) -> None:
    """Print the link that people are sent, also as Prolific takes it."""
    found = platform.perform("annotate.link", {"name": name})
    platform.answer(found, f"{found['link']}\nProlific: {found['prolific']}")


@command_of(app)
def export(
    platform: Platform,
    name: Name,
    output: Annotated[Path | None, typer.Option(help="The file (default: NAME.jsonl or NAME.csv).")] = None,
    csv: Annotated[bool, typer.Option("--csv", help="A table instead of JSON lines.")] = False,
    history: Annotated[bool, typer.Option("--history", help="All that was ever saved, drafts too.")] = False,
) -> None:
    """Write the final answers, by pseudonyms: what `--model human:FILE` and everything else reads."""
    if csv and history:
        raise EnsueError("The history has no table; leave out --csv.")
    form = "csv" if csv else "history" if history else "answers"
    path = output or Path(f"{name}.csv" if csv else f"{name}.jsonl")
    _write(name, form, path, platform)


@app.command()
def convert(
    export: Annotated[Path, typer.Argument(help="What `ensue annotate export` wrote.")],
    output: Annotated[Path, typer.Option(help="Folder to write, which must be new or empty.")],
    data: Annotated[Path | None, typer.Option(help="The project's data, if they have moved.")] = None,
    json: console.Json = False,
) -> None:
    """Convert an export to the format of its kind's benchmark, as `ensue run` and `ensue report` read it."""
    from ensue.benchmarks.people import kind as people

    files = people.convert(export, output.expanduser(), None if data is None else str(data))
    made = {"folder": str(output), "files": list(files.texts), "notes": list(files.notes)}
    console.print_answer(made, json, "\n".join([*files.notes, *(str(output / name) for name in files.texts)]))


@command_of(app)
def bonuses(
    platform: Platform,
    name: Name,
    output: Annotated[Path | None, typer.Option(help="The file (default: NAME-bonuses.csv).")] = None,
) -> None:
    """Write the bonuses to pay, by the recruiting site's ids; nothing is paid here."""
    _write(name, "bonuses", output or Path(f"{name}-bonuses.csv"), platform)


def _write(name: str, form: str, path: Path, platform: Platform) -> None:
    wanted = {"name": name, "form": form, "path": str(path.expanduser().absolute())}
    done = platform.perform("annotate.export", wanted)
    platform.answer(done, f"{path}: {done['bytes']:,} bytes.")


@command_of(app)
def overview(platform: Platform, name: Name) -> None:
    """Show what the answers say so far: agreement, times, disagreements, pay."""
    shown = platform.perform("annotate.show", {"name": name})
    found = shown["numbers"]
    if platform.json:
        console.print_json(found)
        return
    for line in overview_lines(found, shown["settings"]["currency"]):
        print(line)


def overview_lines(found: dict[str, Any], currency: str = "") -> list[str]:
    """Return what answers say as lines for a terminal."""
    from ensue.report.figure import Figure

    lines = []
    for one in found["progress"]:
        wanted = f" of {one['wanted']:,}" if one["wanted"] else ""
        stage = f"{one['stage']}: " if one["stage"] else ""
        lines.append(
            f"{stage}{one['answers']:,}{wanted} answers to {_many(one['items'], 'item')}"
            f" by {_people(one['people'])}"
        )
    for one in found["times"]:
        low, high = one["quartiles"]
        stage = f"{one['stage']}: " if one["stage"] else ""
        lines.append(f"{stage}median {one['median']:.1f} s an answer (quartiles {low:.1f} to {high:.1f} s)")
    for one in found["agreement"]:
        if one["alike"]:
            lines.append(f"{one['field']}: everybody gave the same answer throughout, {one['units']:,} units")
        for measure in ("cohen", "fleiss", "alpha", "overlap"):
            figure = one.get(measure)
            if figure is not None:
                shown = Figure.of(figure)
                lines.append(
                    f"{one['field']}: {measure} {shown.text()} [{shown.interval()}], {shown.n:,} units"
                )
    lines += _score_lines(found["scores"])
    lines += [
        f"disagreed on: {one['item']} ({one['agreeing']:.0%} of pairs agree,"
        f" {one['agreeing_ci95'][0]:.0%} to {one['agreeing_ci95'][1]:.0%})"
        for one in found["disagreements"][:5]
    ]
    if found["pay_per_hour"] is not None and found["owed"]:
        of = f" {currency}" if currency else ""
        hour, owed = (f"{found[key]:,.2f}{of}" for key in ("pay_per_hour", "owed"))
        lines.append(f"pay per hour at the median: {hour}; owed {owed}, bonuses included")
    return lines


def _score_lines(rows: Sequence[dict[str, Any]]) -> list[str]:
    """Return scores, a line for all of what is scored together."""
    from ensue.report.figure import Figure, settings_text

    lines: dict[str, list[str]] = {}
    for row in rows:
        of = f", {settings_text(row['settings'])}" if row["settings"] else ""
        figure = Figure.of(row)
        interval = f" [{figure.interval()}]" if row["ci95"] else ""
        lines.setdefault(f"{row['task']}{of}", []).append(f"{row['metric']} {figure.text()}{interval}")
    return [f"{of}: {', '.join(words)}" for of, words in lines.items()]


@command_of(app)
def exclude(platform: Platform, name: Name, annotator: Annotator) -> None:
    """Exclude a person from a project; their work is void and given to others."""
    done = platform.perform("annotate.exclude", {"name": name, "annotator": annotator})
    again = f"{_many(done['void'], 'answer')} {'is' if done['void'] == 1 else 'are'} wanted again"
    platform.answer(done, f"{annotator} is excluded; {again}.")


@command_of(app)
def forget(platform: Platform, name: Name, annotator: Annotator) -> None:
    """Delete a person's answers and everything stored about them."""
    done = platform.perform("annotate.forget", {"name": name, "annotator": annotator})
    platform.answer(done, f"{annotator} is forgotten.")


@command_of(app, "top-up")
def top_up(
    platform: Platform,
    name: Name,
    labels: Annotated[int, typer.Option(min=1, help="People an item from now on.")],
) -> None:
    """Have each item answered by more people."""
    done = platform.perform("annotate.top-up", {"name": name, "labels": labels})
    platform.answer(done, f"{name} wants {labels} answers an item.")


@command_of(app)
def delete(
    platform: Platform,
    name: Name,
    yes: Annotated[bool, typer.Option("--yes", help="Without asking.")] = False,
) -> None:
    """Delete a project with everybody's answers."""
    if not yes and not typer.confirm(f"Delete {name} with everybody's answers?"):
        raise EnsueError(f"{name} is kept.")
    done = platform.perform("annotate.delete", {"name": name})
    platform.answer(done, f"{name} is deleted.")
