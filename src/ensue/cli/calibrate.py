"""`ensue calibrate`: what sound texts look like to a model, so that `ensue score --profile` can give a verdict."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from ensue import console


@console.takes_model_options
def calibrate(
    model: Annotated[str, typer.Argument(metavar="MODEL", help=console.MODEL_HELP)],
    data: Annotated[
        str,
        typer.Option(help="Coherent texts, preferably hundreds: JSON lines, a folder, or a hub data set."),
    ],
    encoder: Annotated[str, typer.Option(help="Encoder that compares sentences, or none.")] = "minilm",
    reader: Annotated[
        str,
        typer.Option(
            help="Reader that says which sentences belong: a model, none, or auto (smollm2-reader with minilm)."
        ),
    ] = "auto",
    about: Annotated[
        str | None,
        typer.Option(
            help="What the texts are, in a word or two (news, stories; default: the name of the data)."
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            help="Write it to this file, for `ensue score --profile --set calibration=FILE`, not to the model."
        ),
    ] = None,
    name: console.Name = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Use only the first N texts.")] = None,
    journal: Annotated[
        Path | None,
        typer.Option(help="Keep measurements here, to go on after a kill (default: in ENSUE_HOME)."),
    ] = None,
    settings: console.Settings = None,
    json: console.Json = False,
    *,
    options: dict[str, Any],
) -> None:
    """Fit the verdict of `score --profile` on sound texts.

    What sound texts look like is kept with the model. Killed, the same command goes on where it was. Settings:
    window, overflow, bos, max_length, masked, joiner, encoding, text_column, language.
    """
    from ensue.atomic import check_place
    from ensue.benchmarks.settings import resolve
    from ensue.fetch.following import check_calibrations
    from ensue.runs.calibrate import calibrate_model
    from ensue.runs.profile import CALIBRATION_SETTINGS
    from ensue.runs.score import policy_of
    from ensue.runs.texts import whole_texts

    values = resolve("calibrate", CALIBRATION_SETTINGS, console.parse_settings(settings))
    check_place(output)
    check_calibrations(output)
    texts = whole_texts(data, values, limit=limit)
    kept = "what was measured is kept; the same command goes on"
    with console.stoppable(kept), console.progress_bar(f"calibrate {name or model}") as progress:
        done = calibrate_model(
            model,
            texts,
            about=about or Path(data).stem or data,
            encoder=None if encoder == "none" else encoder,
            reader=None if reader == "none" else reader,
            output=output,
            journal=journal,
            joiner=values["joiner"],
            policy=policy_of(values),
            model_options=options,
            progress=progress,
        )
    found = done.calibration
    if json:
        console.print_json({**found.as_dict(), "texts": done.texts, "place": str(done.place)})
    else:
        from ensue.report.following import calibration_table
        from ensue.scoring.verdict import threshold

        lengths = (5, 10, 20, 40, 80)
        rows = {rate: [threshold(found, length, rate) for length in lengths] for rate in (0.05, 0.1, 0.2)}
        console.print_tables([calibration_table(found.as_dict(), lengths, rows)])
    left_out = done.texts - found.documents
    if left_out:
        console.say(f"too short to calibrate with, left out: {left_out}")
    console.say(f"kept in {done.place}")
    console.say(done.signature)
