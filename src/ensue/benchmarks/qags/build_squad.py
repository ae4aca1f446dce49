"""`ensue build squad`: questions and answers about plain texts, to train an answerer where nobody wrote any."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ensue import console


def squad(
    source: Annotated[
        Path, typer.Argument(help="Texts: .jsonl with a text a line, or plain text divided by blank lines.")
    ],
    output: Annotated[Path, typer.Option(help="File to write, in SQuAD's format.")],
    questioner: Annotated[str, typer.Option(metavar="MODEL", help="What asks.")] = "smollm2-qg",
    answerer: Annotated[
        str, typer.Option(metavar="MODEL", help="What must answer as expected.")
    ] = "minilm-qa",
    answers: Annotated[
        int, typer.Option(min=1, help="Names and phrases of a text that are asked about.")
    ] = 6,
    questions: Annotated[int, typer.Option(min=1, help="Most questions kept of a text, the likeliest.")] = 3,
    agree: Annotated[
        str, typer.Option(help="The answer must be the same as expected, or overlap with it by a word.")
    ] = "overlap",
    impossible: Annotated[
        float,
        typer.Option(
            min=0, max=1, help="Share of the questions also put to a text that does not answer them."
        ),
    ] = 0.0,
    beams: Annotated[int, typer.Option(min=1, help="Width of the search for questions.")] = 2,
    text: Annotated[str, typer.Option(help="Field of a line that holds the text.")] = "text",
    title: Annotated[str, typer.Option(help="Field that names its article.")] = "title",
    cache: Annotated[
        Path | None, typer.Option(help="Keep finished steps in this file, so that a killed run goes on.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of everything random.")] = 0,
    json: console.Json = False,
    dtype: console.Dtype = "float32",
    device: console.Device = "auto",
) -> None:
    """Make up questions about texts and keep those that are answered as they were meant."""
    from json import dumps

    from ensue.atomic import write_atomic
    from ensue.benchmarks.qags import loading, synthesis
    from ensue.benchmarks.qags.finding import DefaultFinder
    from ensue.benchmarks.qags.pipeline import Parts
    from ensue.benchmarks.qags.steps import Steps

    kept = synthesis.keeping(questions, agree)
    passages = synthesis.read_passages(source, text=text, title=title)
    options = {"dtype": dtype, "device": device}
    parts = Parts(
        DefaultFinder(),
        loading.load_questioner(questioner, **options),
        loading.load_answerer(answerer, **options),
    )
    left = "nothing was written" if cache is None else f"finished steps are in {cache}"
    with console.stoppable(left), console.progress_bar("questions") as progress, Steps(cache) as steps:
        made = synthesis.make_questions(
            passages,
            parts,
            synthesis.asking(answers, beams, seed),
            kept,
            impossible=impossible,
            steps=steps,
            progress=progress,
        )
    write_atomic(output, [dumps(made.document, ensure_ascii=False)], make_folder=True)
    if json:
        console.print_json(
            {
                "questions": made.questions,
                "texts": len(passages),
                "left_out": made.left_out,
                "file": str(output),
            }
        )
        return
    also = f" and {made.impossible:,} without an answer" if made.impossible else ""
    print(f"{made.questions:,} questions{also} about {len(passages):,} texts: {output}")
    for reason, count in made.left_out.items():
        print(f"{reason}: {count:,}")
