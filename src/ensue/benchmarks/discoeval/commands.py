"""`ensue build discoeval`: the data of one task made from a raw corpus."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ensue import console

if TYPE_CHECKING:
    from ensue.report.table import Table


def discoeval(
    task: Annotated[
        str,
        typer.Argument(
            help="SP/wiki, SP/arxiv, SP/rocstory, BSO/(the same), DC/wiki, DC/chat, SSP/abs, PDTB/explicit, "
            "PDTB/implicit or RST."
        ),
    ],
    source: Annotated[
        str,
        typer.Argument(
            help="SP, BSO, DC: documents as .jsonl, text, MediaWiki dump, ROC .csv, annotated chat logs or "
            "hub name; SSP: papers as JSON; PDTB: folder of .pipe files; RST: folder with TRAINING and TEST "
            "of .dis files."
        ),
    ],
    output: Annotated[
        Path, typer.Option(help="Data folder; the task's own folder in it must be new or empty.")
    ],
    seed: Annotated[int, typer.Option(help="Random seed.")] = 0,
    train: Annotated[
        int | None, typer.Option(min=1, help="Lines to train on (default: as published).")
    ] = None,
    valid: Annotated[
        int | None, typer.Option(min=1, help="Lines, for RST documents, to validate on.")
    ] = None,
    test: Annotated[int | None, typer.Option(min=1, help="Lines to test on.")] = None,
    per_document: Annotated[
        int | None,
        typer.Option(min=0, help="DC: runs of six, SSP: sentences of each kind, a document; 0 for all."),
    ] = None,
    others: Annotated[
        str | None,
        typer.Option(help="SP: the four other sentences in-order, or shuffled as in the published SP/wiki."),
    ] = None,
    unpaired: Annotated[
        bool, typer.Option("--unpaired", help="DC: each run coherent or broken, not both in turn.")
    ] = False,
    valid_list: Annotated[
        Path | None, typer.Option(help="RST: file of ids, one a line, of the documents to validate on.")
    ] = None,
    text_column: Annotated[str | None, typer.Option(help="Column that holds the text.")] = None,
    split: Annotated[
        str | None, typer.Option(help="How text is split: sentences, or lines of one sentence each.")
    ] = None,
    language: Annotated[str | None, typer.Option(help="Language of the text, for the splitter.")] = None,
    encoding: Annotated[str, typer.Option(help="Encoding of the files.")] = "utf-8",
    limit: Annotated[int | None, typer.Option(min=1, help="Read the first N documents only.")] = None,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Processes that split text (default: all cores).")
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace the build that the task's folder holds.")
    ] = False,
    json: console.Json = False,
) -> None:
    """Build the data of a DiscoEval task from a raw corpus, in the published layout."""
    from ensue.benchmarks.discoeval.builders.build import build
    from ensue.benchmarks.discoeval.builders.common import BuildOptions
    from ensue.parallel import cores

    options = BuildOptions(
        seed=seed,
        train=train,
        valid=valid,
        test=test,
        per_document=per_document,
        others=others,
        unpaired=unpaired or None,
        valid_list=valid_list,
        text_column=text_column,
        split=split,
        language=language,
        encoding=encoding,
        limit=limit,
    )
    with console.stoppable("nothing was written"), console.progress_bar(task) as progress:
        done = build(
            task,
            source,
            output,
            options,
            workers=workers or cores(),
            overwrite=overwrite,
            progress=progress,
        )
    if json:
        console.print_json({**done.as_dict(), "folder": str(done.folder)})
        return
    console.print_tables([examples_table(done.settings["task"], done.statistics["examples"])])
    for reason, count in {**done.skipped, **done.notes}.items():
        print(f"{reason}: {count:,}")
    print(f"data: {done.folder}")


def rst_json(
    source: Annotated[Path, typer.Argument(help="Folder with RST_TRAIN.pkl, RST_DEV.pkl and RST_TEST.pkl.")],
    output: Annotated[Path, typer.Option(help="Folder for the JSON lines; may be the same.")],
    json: console.Json = False,
) -> None:
    """Import the published RST pickles as JSON lines, without running anything they may hold."""
    from ensue.benchmarks.discoeval.rst import convert_rst

    written = [str(path) for path in convert_rst(source, output)]
    if json:
        console.print_json({"written": written})
    else:
        print("\n".join(written))


def examples_table(task: str, examples: dict[str, Any]) -> Table:
    """Return documents and lines of every split, with its commonest labels."""
    from ensue.report.table import Column, Table

    labels = Column("labels", words=True, fold=True)
    table = Table([Column("split", words=True), Column("documents"), Column("lines"), labels], title=task)
    for split, row in examples.items():
        counts = sorted(row["labels"].items(), key=lambda pair: -pair[1])
        shown = ", ".join(f"{label}: {count:,}" for label, count in counts[:5])
        more = f", and {len(counts) - 5} more" if len(counts) > 5 else ""
        table.add(split, row["documents"], row["lines"], shown + more)
    return table
