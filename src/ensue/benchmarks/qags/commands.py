"""`ensue qags`: one summary questioned about its source, or a file of them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ensue import console
from ensue.errors import EnsueError

if TYPE_CHECKING:
    from ensue.benchmarks.qags.inspect import Inspection


# Of so many summaries in trouble the ids are printed; all are in the file.
_NAMED = 5


def qags(
    source: Annotated[Path | None, typer.Option(help="File of the text that was summarised.")] = None,
    summary: Annotated[Path | None, typer.Option(help="File of the summary.")] = None,
    pairs: Annotated[
        Path | None,
        typer.Option(help="Many at once: .jsonl with source, summary and perhaps id; needs --output."),
    ] = None,
    output: Annotated[
        Path | None, typer.Option(help="With --pairs: .jsonl for each summary's score, questions and doubts.")
    ] = None,
    questioner: Annotated[
        str, typer.Option(metavar="MODEL", help="What asks; any model that generates text, or a folder.")
    ] = "smollm2-qg",
    answerer: Annotated[
        str, typer.Option(metavar="MODEL", help="What answers; a folder of an extractive QA model.")
    ] = "minilm-qa",
    encoder: Annotated[
        str | None,
        typer.Option(metavar="MODEL", help="Compare answers by this model's vectors, not by words."),
    ] = None,
    settings: console.Settings = None,
    html: Annotated[Path | None, typer.Option(help="Write a page with the summary marked.")] = None,
    cache: Annotated[
        Path | None,
        typer.Option(help="Keep questions and answers in this file, so that a killed run goes on."),
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of everything random.")] = 0,
    json: console.Json = False,
    dtype: console.Dtype = "float32",
    device: console.Device = "auto",
) -> None:
    """Ask about a summary and mark what its source does not bear out.

    Summary and source answer the same questions; the mean similarity of the answers is the score.

    Settings: preset (default, paper, strict or fast), candidates, answers, count, beams, questions, agree, padding,
    order.
    """
    from ensue.benchmarks.qags import loading
    from ensue.benchmarks.qags.choices import PRESET_SETTINGS, preset_of
    from ensue.benchmarks.qags.files import read_text
    from ensue.benchmarks.qags.finding import DefaultFinder
    from ensue.benchmarks.qags.inspect import inspect
    from ensue.benchmarks.qags.many import read_pairs, score_pairs, write_rows
    from ensue.benchmarks.qags.pipeline import Parts
    from ensue.benchmarks.qags.steps import Steps
    from ensue.benchmarks.settings import resolve

    preset = preset_of(resolve("qags", PRESET_SETTINGS, console.parse_settings(settings)), seed)
    both, neither = None not in (source, summary), source is None and summary is None
    if not (both if pairs is None else neither):
        raise EnsueError("Give --source and --summary, or else --pairs with many of both.")
    if (pairs is None) != (output is None) or (pairs is not None and html is not None):
        raise EnsueError("--pairs needs --output, which is of no use without it, and makes no --html page.")
    given = read_pairs(pairs) if pairs is not None else []
    texts = (
        (read_text(source), read_text(summary)) if source is not None and summary is not None else ("", "")
    )
    options = {"dtype": dtype, "device": device}
    # The models first: without them there is nothing to find candidates for.
    asks = loading.load_questioner(questioner, **options)
    answers = loading.load_answerer(answerer, **options)
    vectors = None if encoder is None else loading.load_encoder(encoder, **options)
    parts = Parts(DefaultFinder(), asks, answers)
    compared: dict[str, Any] = {"similarity": "f1" if vectors is None else "embedding", "encoder": vectors}
    models = f"{asks.card.name} asks, {answers.card.name} answers"
    left = "nothing is kept" if cache is None else f"finished questions are in {cache}"
    with console.stoppable(left), console.progress_bar("qags") as progress, Steps(cache) as steps:
        if output is not None:
            rows = list(score_pairs(given, parts, preset, **compared, steps=steps, progress=progress))
        else:
            found = inspect(*texts, parts, preset, **compared, steps=steps, progress=progress)
    if output is not None:
        write_rows(rows, output)
        _tell_many(rows, output, models, json)
        return
    if html is not None:
        from ensue.benchmarks.qags.report.inspection import write_inspection

        console.say(f"page: {write_inspection(found, html, models, texts[0])}")
    if json:
        console.print_json({**found.as_dict(), "questioner": asks.card.name, "answerer": answers.card.name})
        return
    _show(found)
    print(f"QAGS {found.score:.3f} ({models})")


def _tell_many(rows: list[dict[str, Any]], output: Path, models: str, json: bool) -> None:
    mean = sum(row["score"] for row in rows) / len(rows)
    troubles: dict[str, list[str]] = {}
    for row in rows:
        if "trouble" in row:
            troubles.setdefault(row["trouble"], []).append(row["id"])
    if json:
        counts = {trouble: len(ids) for trouble, ids in troubles.items()}
        console.print_json({"summaries": len(rows), "mean": mean, "troubles": counts, "file": str(output)})
        return
    for trouble, ids in troubles.items():
        more = ", …" if len(ids) > _NAMED else ""
        print(f"{trouble}, scored 0: {len(ids):,} ({', '.join(ids[:_NAMED])}{more})")
    print(f"QAGS {mean:.3f} on average of {len(rows):,} summaries ({models}): {output}")


def _show(found: Inspection) -> None:
    from rich.console import Console

    from ensue.benchmarks.qags.report.table import marked_summary, questions_table

    screen = Console()
    screen.print(marked_summary(found))
    screen.print(questions_table(found).to_rich())
