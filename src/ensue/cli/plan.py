"""`ensue plan`: what a run will cost, before it starts."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from ensue import console


@console.takes_model_options
def plan(
    benchmark: Annotated[str, typer.Argument(metavar="BENCHMARK[/TASK]", help="As for `ensue run`.")],
    model: Annotated[
        str | None, typer.Option("--model", "-m", help="Short name or folder [default: the benchmark's own]")
    ] = None,
    name: console.Name = None,
    shape: Annotated[
        str | None,
        typer.Option(help="For a model that is not here: 135M, 1B, 3B, 8B, 70B, or a config.json."),
    ] = None,
    tokenizer: Annotated[
        str | None, typer.Option(help="With --shape: another model's, or characters a token (such as 4.3).")
    ] = None,
    data: Annotated[str | None, typer.Option(help="As for `ensue run`.")] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Use only the first N documents.")] = None,
    documents: Annotated[
        int | None, typer.Option(min=1, help="Plan for N documents like those of --data.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Random seed.")] = 0,
    hardware: Annotated[
        str | None,
        typer.Option(
            help="h200, h100, a100, cpu, cpu-avx512 (one core), or a .toml file [default: this machine]"
        ),
    ] = None,
    devices: Annotated[int, typer.Option(min=1, help="How many devices share the work.")] = 1,
    price: Annotated[float | None, typer.Option(min=0, help="What a device costs an hour.")] = None,
    measure: Annotated[
        bool, typer.Option("--measure", help="Measure a few seconds of the work here and extrapolate.")
    ] = False,
    written: Annotated[
        int | None,
        typer.Option(min=1, help="Tokens to assume for each generated text [default: the maximum]"),
    ] = None,
    settings: console.Settings = None,
    mode: Annotated[
        str | None, typer.Option(help="glue, superglue: majority, prompt, generate, frozen.")
    ] = None,
    chat: Annotated[
        bool, typer.Option("--chat", help="Prompted tasks: put each prompt into the model's chat template.")
    ] = False,
    form: console.Format = "table",
    json: console.Json = False,
    *,
    options: dict[str, Any],
) -> None:
    """Say what a run will cost before it starts.

    Tokens, operations, time, memory, disk and money, without running it.
    """
    from ensue.backends.hf.loading import need_torch
    from ensue.report.table import check_format

    need_torch("Planning")
    from ensue.runs.planning.plan import plan as plan_run
    from ensue.runs.planning.tables import plan_json, plan_tables

    check_format(form)
    own = {"mode": mode, "chat": "yes" if chat else None}
    chosen = console.settings_beside(settings, plan_run, {key: value for key, value in own.items() if value})
    with console.progress_bar(f"plan {benchmark}") as progress:
        made = plan_run(
            benchmark,
            model=model,
            shape=shape,
            tokenizer=tokenizer,
            data=data,
            limit=limit,
            documents=documents,
            seed=seed,
            hardware=hardware,
            devices=devices,
            price=price,
            measure=measure,
            written=written,
            model_options=options,
            progress=progress,
            **chosen,
        )
    if json:
        console.print_json(plan_json(made))
        return
    console.print_tables(plan_tables(made), form)
