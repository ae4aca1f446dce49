"""What summarises: people, a story's first, best or nearest sentences, a file of summaries, a model that writes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from ensue.benchmarks.base import LoadModel, NamedSystem, RunContext
from ensue.benchmarks.nlu.files import Found, jsonl_rows
from ensue.benchmarks.squality import inputs
from ensue.benchmarks.squality.data import Story, StoryQuestion
from ensue.benchmarks.summaries.extractive import Retriever, lead, nearest_text, oracle
from ensue.benchmarks.writing import write_texts
from ensue.errors import EnsueError
from ensue.models.protocols import Encoder, Generator, Model, portion_of, require
from ensue.records import digest_of, plain
from ensue.text.sentences import split_sentences

HUMAN, LEAD, ORACLE, RETRIEVAL, WRITTEN = "human", "lead", "oracle", "retrieval", "written"
GENERATE = "generate"
SYSTEMS = (HUMAN, LEAD, ORACLE, RETRIEVAL, WRITTEN, GENERATE)
# What a model is that is only one of these names.
BASELINE_KIND = "summaries"
DEFAULT_ENCODER = "minilm"
# The settings of a search, all of which a model is told.
DECODING = ("min_tokens", "beams", "block_ngrams", "length_penalty")
# Prompts handed to a generator at once: what is finished is kept after each portion.
_ON_CPU, _ELSEWHERE, _ON_GPU = 4, 16, 128
# What models wrote, among the records of a run; the key holds all that a text depends on.
_TEXTS = plain("texts")


class Summary(NamedTuple):
    """A summary, and what is worth keeping of how it came about."""

    text: str
    about: dict[str, Any]


def system_of(model: Model, asked: str | None) -> str:
    """Return the system a run is of: what was asked for, or what the model can do."""
    if asked is not None:
        return asked
    if model.card.kind == BASELINE_KIND:
        return model.card.name
    if isinstance(model, Generator):
        return GENERATE
    if isinstance(model, Encoder):
        return RETRIEVAL
    raise EnsueError(
        f"{model.card.name} neither writes nor encodes text, so it cannot summarise; give a model that does, or one "
        f"of {', '.join(SYSTEMS[:-1])}."
    )


def named(name: str) -> NamedSystem:
    """Return a summariser that needs no model."""
    return NamedSystem.of(name, BASELINE_KIND, summaries=name)


def summarise(
    system: str,
    model: Model,
    examples: Sequence[StoryQuestion],
    settings: Mapping[str, Any],
    *,
    encoder: Encoder | None,
    question: Mapping[str, Any],
    context: RunContext,
    some: bool = False,
) -> list[Summary]:
    """Return a summary for every example, by any system but people.

    `encoder` is what `retriever_of` found, `question` everything that what a model writes depends on; `some` says
    that the examples are not all of a split.
    """
    if system == LEAD:
        return [Summary(lead(sentences_of(one.story), settings["words"]), {}) for one in examples]
    if system == WRITTEN:
        if settings["summaries"] is None:
            raise EnsueError("Measuring summaries that are written already needs --set summaries=FILE.")
        found = read_summaries(Path(settings["summaries"]).expanduser(), examples, some=some)
        return [Summary(text.strip(), {}) for text in found]
    if system == ORACLE:
        return [_oracle(one) for one in examples]
    retriever = None if encoder is None else Retriever(encoder)
    if system == RETRIEVAL:
        assert retriever is not None, "who retrieves has an encoder"
        nearest = []
        for one in examples:
            nearest.append(_nearest(one, retriever, settings["words"]))
            _report(context, len(nearest), len(examples))
        return nearest
    generator = require(model, Generator, "Summarising")
    return _generated(generator, examples, settings, retriever, question, context)


def _report(context: RunContext, done: int, total: int) -> None:
    context.progress(done, total, "summaries")


def read_summaries(path: Path, examples: Sequence[StoryQuestion], *, some: bool = False) -> list[str]:
    """Read the summary of every example, in their order, from rows with `id` (as in items.jsonl) and `summary`.

    One that is missing, unknown or there twice is named. Where the examples are only `some` of a split, the file may
    well have others.
    """
    known = {one.id for one in examples}
    found: dict[str, str] = {}
    for row in jsonl_rows(Found(path)):
        name = row.text("id")
        if name in found:
            row.refuse(f"{name} was there before; leave one of the two")
        if name not in known and not some:
            row.refuse(f"{name} is no question of this split, such as {examples[0].id}")
        found[name] = row.any_text("summary")
    missing = [one.id for one in examples if one.id not in found]
    if missing:
        raise EnsueError(
            f"{path} has no summary for {len(missing)} of {len(examples)} questions, {missing[0]} among them; "
            f"an empty one counts, a missing one does not."
        )
    return [found[one.id] for one in examples]


@lru_cache(maxsize=256)
def sentences_of(story: Story) -> tuple[str, ...]:
    """Return a story's sentences; they are divided once, though five questions are asked about it."""
    return tuple(split_sentences(story.text))


def prompts_of(
    examples: Sequence[StoryQuestion], layout: inputs.Layout, room: inputs.Room, retriever: Retriever | None
) -> list[inputs.ModelInput]:
    """Return what a model reads for each example: the truncated story, or the retrieved part of it."""
    given = []
    for one in examples:
        question = one.question.text
        if retriever is None:
            given.append(inputs.truncated(layout, question, one.story.text, room))
        else:
            sentences = sentences_of(one.story)
            order = retriever.nearest(question, sentences)
            given.append(inputs.retrieved(layout, question, sentences, order, room))
    return given


def _oracle(example: StoryQuestion) -> Summary:
    sentences = sentences_of(example.story)
    chosen = oracle(sentences, example.question.references)
    text = " ".join(sentences[place] for place in chosen.places)
    return Summary(text, {"sentences": list(chosen.places)})


def _nearest(example: StoryQuestion, retriever: Retriever, words: int) -> Summary:
    sentences = sentences_of(example.story)
    order = retriever.nearest(example.question.text, sentences)
    return Summary(nearest_text(order, sentences, words), {"nearest": order[:10]})


def retriever_of(system: str, model: Model, named: str | None, load: LoadModel) -> Encoder | None:
    """Return what ranks sentences where any are retrieved: the named encoder, the model itself, or the default."""
    if system not in (RETRIEVAL, GENERATE) or (system == GENERATE and named is None):
        return None
    if named is None and isinstance(model, Encoder):
        return model
    name = named or DEFAULT_ENCODER
    return require(load(name), Encoder, f"Retrieving with {name}")


def _generated(
    generator: Generator,
    examples: Sequence[StoryQuestion],
    settings: Mapping[str, Any],
    retriever: Retriever | None,
    question: Mapping[str, Any],
    context: RunContext,
) -> list[Summary]:
    """Have a model write; what an interrupted run wrote is taken as it is."""
    new = settings["max_tokens"]
    room = inputs.room_of(generator, settings["max_input"], new)
    given = prompts_of(examples, inputs.layout_of(generator, settings["prompt"]), room, retriever)
    # Like-long ones together: a batch is as slow as its longest.
    order = sorted(range(len(examples)), key=lambda place: (-len(given[place].text), place))
    size = portion_of(generator, on_cpu=_ON_CPU, elsewhere=_ELSEWHERE, on_gpu=_ON_GPU)
    keys = [digest_of(question, one.id) for one in examples]
    stop = inputs.STOPS if generator.card.kind != "seq2seq" and settings["prompt"] == "plain" else ()
    # A server is asked plainly.
    options = {} if generator.card.kind == "endpoint" else {name: settings[name] for name in DECODING}
    texts = write_texts(
        generator,
        [given[place].text for place in order],
        [keys[place] for place in order],
        context.records,
        _TEXTS,
        portion=size,
        progress=context.progress,
        unit="summaries",
        max_tokens=new,
        stop=stop,
        **options,
    )
    of_place = dict(zip(order, texts, strict=True))
    missing = "sentences_left_out" if retriever else "words_cut"
    return [Summary(of_place[place].strip(), {missing: each.left_out}) for place, each in enumerate(given)]
