"""`ensue build chapterbreak`: ChapterBreak data made from raw works."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ensue import console

if TYPE_CHECKING:
    from ensue.report.table import Table


def chapterbreak(
    source: Annotated[str, typer.Argument(help="Works: a file or folder of text, TEI, JSON or an AO3 dump.")],
    output: Annotated[Path, typer.Option(help="Folder to write, which must be new or empty.")],
    kind: Annotated[str, typer.Option(help="auto, gutenberg, tei, json or ao3.")] = "auto",
    headings: Annotated[
        str, typer.Option(help="How chapters are found in plain text: robust, or paper for the paper's rule.")
    ] = "robust",
    split: Annotated[
        str | None, typer.Option(help="Name of the split (default: ao3, pg19 or the source's name).")
    ] = None,
    boundary: Annotated[
        str, typer.Option(help="chapter, cause, dialogue, or several by commas.")
    ] = "chapter",
    negatives: Annotated[str, typer.Option(help="in-book, same-split or other-split.")] = "in-book",
    negatives_data: Annotated[
        str | None, typer.Option(help="Built or published data that other-split negatives come from.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Random seed.")] = 0,
    prefix_words: Annotated[int, typer.Option(min=1, help="Longest context.")] = 8192,
    suffix_words: Annotated[int, typer.Option(min=1, help="Longest suffix.")] = 192,
    tokenizer: Annotated[
        str | None, typer.Option(help="Model whose tokens, not words, those lengths count.")
    ] = None,
    per_work: Annotated[
        int | None,
        typer.Option(
            min=1, help="Most examples a work and boundary (default: all chapters, 10 causes, 20 dialogues)."
        ),
    ] = None,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Processes that read works (default: all cores).")
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Stop after N works that gave examples.")] = None,
    only: Annotated[Path | None, typer.Option(help="File of work ids, one a line: use no others.")] = None,
    exclude: Annotated[
        Path | None, typer.Option(help="File of work ids, one a line: leave them out.")
    ] = None,
    shard: Annotated[
        int | None,
        typer.Option(
            min=1, help="A file for every N works: memory stays flat, and a stopped build can go on."
        ),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on after the last whole shard of a build that was stopped.")
    ] = False,
    executor: Annotated[
        str, typer.Option(help="Where works are read: local, ray or ray:ADDRESS (docs/many-machines.md).")
    ] = "local",
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace the build that the folder holds.")
    ] = False,
    json: console.Json = False,
) -> None:
    """Build ChapterBreak data: what follows a chapter break, against what follows later ones."""
    # All that was given, by the names of the parameters of `build`.
    options = {name: value for name, value in locals().items() if name != "json"}
    import ensue
    from ensue.benchmarks.chapterbreak.data.build import build
    from ensue.executing import LOCAL, choose
    from ensue.parallel import cores

    options |= {
        "boundaries": tuple(name.strip() for name in options.pop("boundary").split(",")),
        "tokenizer": ensue.load_tokenizer(tokenizer) if tokenizer else None,
        "workers": workers or cores(),
        "executor": None if executor == LOCAL else choose(executor, workers=workers),
    }
    kept = "nothing was written" if shard is None else "whole shards are kept: run it again with --resume"
    with console.stoppable(kept), console.progress_bar("chapterbreak") as progress:
        done = build(**options, progress=progress)
    if json:
        console.print_json({**done.as_dict(), "folder": str(done.folder)})
        return
    console.print_tables(statistics_tables(done.statistics))
    for reason, count in {**done.skipped, **done.notes}.items():
        print(f"{reason}: {count:,}")
    print(f"data: {done.folder}")


def statistics_tables(statistics: dict[str, Any]) -> list[Table]:
    """Return the works that were read, and the examples they gave, as tables."""
    from ensue.report.table import Cell, Column, Table

    def mean(value: float) -> Cell:
        return Cell(f"{value:,.1f}", value=value)

    works = Table(
        [Column("a work's", words=True), *map(Column, ("mean", "min", "max"))],
        title=f"{statistics['works']:,} works",
    )
    for name in ("chapters", "words"):
        extent = statistics[name]
        works.add(name, mean(extent["mean"]), extent["min"], extent["max"])
    headings = ("works", "examples", "words of context", "words of gold")
    examples = Table(
        [Column("boundary", words=True), Column("split", words=True, fold=True), *map(Column, headings)],
        title="examples",
    )
    for boundary, splits in statistics["examples"].items():
        for split, row in splits.items():
            means = mean(row["context_words"]), mean(row["gold_words"])
            examples.add(boundary, split, row["works"], row["examples"], *means)
    return [works, examples]
