"""`ensue qags`: one summary, questioned about its source."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ensue.cli import common


def qags(
    source: Annotated[Path, typer.Option(help="File of the text that was summarised.")],
    summary: Annotated[Path, typer.Option(help="File of the summary.")],
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
    settings: common.Settings = None,
    html: Annotated[Path | None, typer.Option(help="Write a page with the summary marked.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of everything random.")] = 0,
    json: common.Json = False,
    dtype: common.Dtype = "float32",
    device: common.Device = "auto",
) -> None:
    """Ask questions about a summary, answer them by summary and source, and mark what the source does not bear out.

    Settings: preset (paper or fast), answers, count, beams, questions, agree, padding.
    """
    from ensue.benchmarks.qags import loading
    from ensue.benchmarks.qags.choices import PRESET_SETTINGS, preset_of
    from ensue.benchmarks.qags.files import read_text
    from ensue.benchmarks.qags.finding import DefaultFinder
    from ensue.benchmarks.qags.inspect import inspect
    from ensue.benchmarks.qags.pipeline import Parts
    from ensue.benchmarks.settings import resolve

    preset = preset_of(resolve("qags", PRESET_SETTINGS, common.parse_settings(settings)), seed)
    texts = read_text(source), read_text(summary)
    options = {"dtype": dtype, "device": device}
    # The models first: without them there is nothing to find candidates for.
    asks = loading.load_questioner(questioner, **options)
    answers = loading.load_answerer(answerer, **options)
    vectors = None if encoder is None else loading.load_encoder(encoder, **options)
    parts = Parts(DefaultFinder(), asks, answers)
    with common.stoppable("nothing is kept"), common.progress_bar("qags") as progress:
        found = inspect(
            *texts,
            parts,
            preset,
            similarity="f1" if vectors is None else "embedding",
            encoder=vectors,
            progress=progress,
        )
    models = f"{asks.card.name} asks, {answers.card.name} answers"
    if html is not None:
        from ensue.report.qags_inspection import write_inspection

        common.say(f"page: {write_inspection(found, html, models, texts[0])}")
    if json:
        common.print_json({**found.as_dict(), "questioner": asks.card.name, "answerer": answers.card.name})
        return
    from rich.console import Console

    from ensue.report.tables_qags import marked_summary, questions_table

    console = Console()
    console.print(marked_summary(found))
    console.print(questions_table(found))
    print(f"QAGS {found.score:.3f} ({models})")
