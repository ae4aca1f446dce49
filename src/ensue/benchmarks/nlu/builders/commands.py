"""`ensue build qnli|wnli|wsc|rte`: tasks of GLUE and SuperGLUE made from the collections they came from."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ensue import console

if TYPE_CHECKING:
    from ensue.benchmarks.output import BuildReport

Output = Annotated[Path, typer.Option(help="Data folder; the task's own folder in it must be new or empty.")]
Dev = Annotated[float, typer.Option(min=0, max=1, help="Share of the sources for dev.")]
Test = Annotated[float, typer.Option(min=0, max=1, help="Share of the sources for test.")]
Seed = Annotated[int, typer.Option(help="Seed of the division into splits.")]
Overwrite = Annotated[
    bool, typer.Option("--overwrite", help="Replace the build that the task's folder holds.")
]
Schemas = Annotated[str, typer.Argument(help="Winograd schemas as .jsonl, or a WSC file of SuperGLUE.")]


def qnli(
    source: Annotated[str, typer.Argument(help="A SQuAD file, 1.1 or 2.0.")],
    output: Output,
    model: Annotated[
        str | None,
        typer.Option(
            "--model",
            "-m",
            help="Encoder that compares sentences, such as glove-50d (default: shared words).",
        ),
    ] = None,
    dev: Dev = 0.1,
    test: Test = 0.1,
    seed: Seed = 0,
    overwrite: Overwrite = False,
    json: console.Json = False,
) -> None:
    """Build QNLI from SQuAD: does the sentence hold the answer, where similarity does not tell."""
    from ensue.benchmarks.nlu.builders.qnli import build_qnli

    encoder = None
    if model is not None:
        import ensue
        from ensue.models.protocols import Encoder, require

        encoder = require(ensue.load_model(model), Encoder, "Comparing sentences")
    with console.stoppable("nothing was written"):
        done = build_qnli(source, output, encoder=encoder, dev=dev, test=test, seed=seed, overwrite=overwrite)
    _report(done, json)


def _winograd(task: str, about: str) -> Callable[..., None]:
    """Return the command that builds a task of Winograd schemas."""

    def command(
        source: Schemas,
        output: Output,
        dev: Dev = 0.1,
        test: Test = 0.1,
        seed: Seed = 0,
        overwrite: Overwrite = False,
        json: console.Json = False,
    ) -> None:
        from ensue.benchmarks.nlu.builders.winograd import build_winograd

        done = build_winograd(task, source, output, dev=dev, test=test, seed=seed, overwrite=overwrite)
        _report(done, json)

    command.__doc__ = f"Build {task} from Winograd schemas: {about}."
    return command


wnli = _winograd("WNLI", "does a text entail itself with a pronoun replaced")
wsc = _winograd("WSC", "does a pronoun refer to a noun phrase")


def rte(
    source: Annotated[
        str,
        typer.Argument(help="Three-class pairs: a .jsonl or .tsv file, or a folder of train, dev and test."),
    ],
    output: Output,
    suite: Annotated[str, typer.Option(help="Whose layout to write: glue or superglue.")] = "glue",
    dev: Dev = 0.1,
    test: Test = 0.1,
    seed: Seed = 0,
    overwrite: Overwrite = False,
    json: console.Json = False,
) -> None:
    """Build RTE from three-class inference: neutral and contradiction become not_entailment."""
    from ensue.benchmarks.nlu.builders.entailment import build_rte

    _report(build_rte(source, output, suite=suite, dev=dev, test=test, seed=seed, overwrite=overwrite), json)


def _report(done: BuildReport, as_json: bool) -> None:
    """Print the examples of every split with their labels, and what was left out."""
    if as_json:
        console.print_json({**done.as_dict(), "folder": str(done.folder)})
        return
    from ensue.report.table import Column, Table

    columns = [Column("split", words=True), Column("examples"), Column("labels", words=True)]
    table = Table(columns, title=done.settings["task"])
    for split, row in done.statistics["examples"].items():
        labels = ", ".join(f"{label}: {count:,}" for label, count in row["labels"].items())
        table.add(split, row["lines"], labels)
    console.print_tables([table])
    for reason, count in {**done.skipped, **done.notes}.items():
        print(f"{reason}: {count:,}")
    print(f"data: {done.folder}")
