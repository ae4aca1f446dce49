"""`ensue score`: log-likelihoods of the texts in a file."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ensue import console
from ensue.errors import EnsueError

if TYPE_CHECKING:
    from ensue.models.request import Score

_NOTES = {"windowed": "texts longer than the model takes at once, scored in windows"}


@console.takes_executor
@console.takes_model_options
def score(
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE",
            help="JSON lines (text, sentences, or context and continuation), a .txt file, a folder, or - for "
            "standard input.",
        ),
    ],
    model: console.ModelName = "smollm2",
    name: console.Name = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Use only the first N texts.")] = None,
    profile: Annotated[
        bool, typer.Option("--profile", help="How well each sentence follows, and which one stands out.")
    ] = False,
    html: Annotated[
        Path | None, typer.Option(help="With --profile: write a page of the texts, the doubtful ones first.")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            help="With --profile: write JSON lines here as they come; the same command goes on after a kill."
        ),
    ] = None,
    fail_on_break: Annotated[
        bool, typer.Option("--fail-on-break", help="With --profile: exit code 1 where a sentence stands out.")
    ] = False,
    journal: Annotated[
        Path | None, typer.Option(help="Keep finished scores here and start from them next time.")
    ] = None,
    settings: console.Settings = None,
    json: console.Json = False,
    *,
    options: dict[str, Any],
    executor: Any,
) -> None:
    """Score texts: log-likelihoods in nats, in input order.

    Settings: window, overflow, bos, max_length, masked, joiner, encoding, text_column; with --profile also language,
    encoder, reader, false_alarms (0.1) and calibration.
    """
    only = {"--html": html, "--output": output, "--fail-on-break": fail_on_break or None}
    for option in (name for name, value in only.items() if value is not None and not profile):
        raise EnsueError(f"{option} is for profiles; add --profile.")
    if profile and not executor.is_local:
        raise EnsueError("Profiles are made in this process; leave out --executor or --profile.")
    if profile:
        from ensue.cli.profile import print_profiles

        found = print_profiles(
            file,
            model,
            settings,
            options,
            limit=limit,
            html=html,
            output=output,
            journal=journal,
            json=json,
        )
        raise typer.Exit(int(found and fail_on_break))
    from ensue.benchmarks.settings import resolve
    from ensue.runs.score import SETTINGS, policy_of, score_texts
    from ensue.runs.texts import read_texts

    values = resolve("score", SETTINGS, console.parse_settings(settings))
    texts = read_texts(file, values, limit=limit)
    kept = "with --journal what was scored is kept"
    with console.stoppable(kept), console.progress_bar(f"score {name or model}") as progress:
        scored = score_texts(
            texts,
            model=model,
            policy=policy_of(values),
            journal=journal,
            progress=progress,
            model_options=options,
            executor=executor,
        )
    if json:
        for text, result in scored.scores:
            row = {
                "id": text,
                "tokens": result.tokens,
                "logprob": _total(result),
                "logprob_per_token": result.logprob_per_token,
            }
            console.print_json(row)
    else:
        print(f"{'total, nats':>14} {'per token':>10} {'tokens':>7}  text")
        for text, result in scored.scores:
            total = _total(result)
            shown = "–" if total is None else f"{total:.4f}"
            print(f"{shown:>14} {result.logprob_per_token:10.4f} {result.tokens:7d}  {text}")
    for note, count in sorted(scored.notes.items()):
        console.say(f"{_NOTES.get(note, note)}: {count}")
    if scored.notes["windowed"] and values["window"] == "average":
        console.say(
            "window=average: a windowed text has a mean over its windows and no log-likelihood, so no total is given"
        )
    console.say(scored.signature)


def _total(score: Score) -> float | None:
    """Return the log-likelihood of a text; None where windows were averaged, whose mean is no total of its tokens."""
    whole = math.isclose(score.logprob, score.logprob_per_token * score.tokens, rel_tol=1e-9, abs_tol=1e-9)
    return score.logprob if whole else None
