"""`ensue qags` questions one summary about its source, or a file of them; `ensue build squad` makes up questions
and answers about plain texts, to train an answerer where nobody wrote any.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import ensue
from ensue import console
from ensue.errors import EnsueError

if TYPE_CHECKING:
    from ensue.benchmarks.qags.inspecting import Inspection
    from ensue.benchmarks.qags.pipeline import QagsModels
    from ensue.benchmarks.qags.questions import Preset
    from ensue.progress import Progress


Cache = Annotated[
    Path | None,
    typer.Option(help="Keep finished questions and answers in this file, so that a killed run goes on."),
]
Seed = Annotated[int, typer.Option(help="Random seed.")]
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
        str,
        typer.Option(metavar="MODEL", help="Model that asks the questions; any that generates text."),
    ] = "smollm2-qg",
    answerer: Annotated[
        str,
        typer.Option(metavar="MODEL", help="Model that answers them: a folder of an extractive QA model."),
    ] = "minilm-qa",
    encoder: Annotated[
        str | None,
        typer.Option(metavar="MODEL", help="Compare answers by this model's vectors, not by words."),
    ] = None,
    settings: console.Settings = None,
    html: Annotated[Path | None, typer.Option(help="Write a page with the summary marked.")] = None,
    cache: Cache = None,
    seed: Seed = 0,
    json: console.Json = False,
    dtype: console.Dtype = "float32",
    device: console.Device = "auto",
) -> None:
    """Ask about a summary and mark what its source does not bear out.

    Summary and source answer the same questions; the mean similarity of the answers is the score.

    Settings: preset (default, paper, strict or fast), candidates, answers, count, beams, questions, agree, padding,
    order.
    """
    from ensue.atomic import write_atomic
    from ensue.benchmarks.qags.data.files import read_text
    from ensue.benchmarks.qags.inspecting import read_pairs, score_pairs
    from ensue.records import Records

    chosen: dict[str, Any] = dict(console.parse_settings(settings))
    preset = _preset(chosen, seed)
    both, neither = None not in (source, summary), source is None and summary is None
    if not (both if pairs is None else neither):
        raise EnsueError("Give --source and --summary, or else --pairs with many of both.")
    if (pairs is None) != (output is None) or (pairs is not None and html is not None):
        raise EnsueError("--pairs needs --output, which is of no use without it, and makes no --html page.")
    options: dict[str, Any] = {"dtype": dtype, "device": device}
    left = "nothing is kept" if cache is None else f"finished questions are in {cache}"
    if pairs is not None and output is not None:
        given = read_pairs(pairs)
        # The models first: without them there is nothing to find candidates for.
        models, compared = _load_models(questioner, answerer, options), _compared(encoder, options)
        with console.stoppable(left), console.progress_bar("qags") as progress, Records(cache) as records:
            rows = list(score_pairs(given, models, preset, **compared, records=records, progress=progress))
        write_atomic(output, (dumps(row, ensure_ascii=False) + "\n" for row in rows), make_folder=True)
        words = _words(models.questioner.card.name, models.answerer.card.name)
        _report_pairs(rows, output, words, json)
    elif source is not None and summary is not None:
        text, summarised = read_text(source), read_text(summary)
        with console.stoppable(left), console.progress_bar("qags") as progress:
            found = question(
                text,
                summarised,
                questioner=questioner,
                answerer=answerer,
                encoder=encoder,
                cache=cache,
                seed=seed,
                model_options=options,
                progress=progress,
                **chosen,
            )
        _report_one(found, text, html, json)


def question(
    source: str,
    summary: str,
    *,
    questioner: str = "smollm2-qg",
    answerer: str = "minilm-qa",
    encoder: str | None = None,
    cache: str | Path | None = None,
    seed: int = 0,
    model_options: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
    **settings: Any,
) -> Inspection:
    """Ask about a summary, let it and its source answer, and return the score, each question and the parts in doubt.

    Answers are compared by their words, or by the vectors of an `encoder`. Settings are those of `ensue qags --set`:
    preset, candidates, answers, count, beams, questions, agree, padding, order.
    """
    from ensue.progress import ignore
    from ensue.records import Records

    asking = open_inspector(questioner, answerer, encoder, seed=seed, model_options=model_options, **settings)
    with Records(None if cache is None else Path(cache)) as records:
        return asking(source, summary, records=records, progress=progress or ignore)


def open_inspector(
    questioner: str = "smollm2-qg",
    answerer: str = "minilm-qa",
    encoder: str | None = None,
    *,
    seed: int = 0,
    model_options: Mapping[str, Any] | None = None,
    **settings: Any,
) -> Callable[..., Inspection]:
    """Load what asks and answers, and return what inspects a source and a summary with it, time and again."""
    from ensue.benchmarks.qags.inspecting import inspect

    preset, options = _preset(settings, seed), dict(model_options or {})
    models, compared = _load_models(questioner, answerer, options), _compared(encoder, options)
    return partial(inspect, models=models, preset=preset, **compared)


def _preset(settings: Mapping[str, Any], seed: int) -> Preset:
    from ensue.benchmarks.qags.questions import PRESET_SETTINGS, preset_of
    from ensue.benchmarks.settings import resolve

    return preset_of(resolve("qags", PRESET_SETTINGS, settings), seed)


def _compared(encoder: str | None, options: dict[str, Any]) -> dict[str, Any]:
    """Return how answers are compared: by words, or by the vectors of an encoder."""
    from ensue.models.protocols import Encoder, require

    if encoder is None:
        return {"similarity": "f1", "encoder": None}
    model = ensue.load_model(encoder, **options)
    vectors = require(model, Encoder, "Comparing answers by their vectors")
    return {"similarity": "embedding", "encoder": vectors}


def _words(questioner: str, answerer: str) -> str:
    return f"{questioner} asks, {answerer} answers"


def _report_pairs(rows: list[dict[str, Any]], output: Path, models: str, json: bool) -> None:
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


def _report_one(found: Inspection, source: str, html: Path | None, json: bool) -> None:
    from rich.console import Console

    from ensue.benchmarks.qags.report.table import marked_summary, questions_table

    words = _words(found.questioner, found.answerer)
    if html is not None:
        from ensue.benchmarks.qags.report.page import write_inspection

        console.say(f"page: {write_inspection(found, html, words, source)}")
    if json:
        console.print_json(found.as_dict())
        return
    screen = Console()
    screen.print(marked_summary(found))
    screen.print(questions_table(found).to_rich())
    print(f"QAGS {found.score:.3f} ({words})")


def squad(
    source: Annotated[
        Path, typer.Argument(help="Texts: .jsonl with a text a line, or plain text divided by blank lines.")
    ],
    output: Annotated[Path, typer.Option(help="File to write, in SQuAD's format.")],
    questioner: Annotated[
        str, typer.Option(metavar="MODEL", help="Model that asks the questions.")
    ] = "smollm2-qg",
    answerer: Annotated[
        str, typer.Option(metavar="MODEL", help="Model that must answer them as expected.")
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
    cache: Cache = None,
    seed: Seed = 0,
    json: console.Json = False,
    dtype: console.Dtype = "float32",
    device: console.Device = "auto",
) -> None:
    """Make up questions about texts and keep those that are answered as they were meant."""
    from ensue.atomic import write_atomic
    from ensue.benchmarks.qags.data import squad as making
    from ensue.records import Records

    kept = making.keeping(questions, agree)
    passages = making.read_passages(source, text=text, title=title)
    models = _load_models(questioner, answerer, {"dtype": dtype, "device": device})
    left = "nothing was written" if cache is None else f"finished steps are in {cache}"
    with console.stoppable(left), console.progress_bar("questions") as progress, Records(cache) as records:
        asked = making.asking(answers, beams, seed)
        made = making.make_questions(
            passages, models, asked, kept, impossible=impossible, records=records, progress=progress
        )
    write_atomic(output, [dumps(made.document, ensure_ascii=False)], make_folder=True)
    if json:
        counts = {"questions": made.questions, "texts": len(passages), "left_out": made.left_out}
        console.print_json({**counts, "file": str(output)})
        return
    also = f" and {made.impossible:,} without an answer" if made.impossible else ""
    print(f"{made.questions:,} questions{also} about {len(passages):,} texts: {output}")
    for reason, count in made.left_out.items():
        print(f"{reason}: {count:,}")


def _load_models(questioner: str, answerer: str, options: dict[str, Any]) -> QagsModels:
    from ensue.benchmarks.qags.candidates import SpacyFinder
    from ensue.benchmarks.qags.pipeline import QagsModels
    from ensue.models.protocols import Answerer, Questioner, require

    return QagsModels(
        SpacyFinder(),
        require(ensue.load_model(questioner, **options), Questioner, "QAGS"),
        require(ensue.load_model(answerer, **options), Answerer, "QAGS"),
    )
