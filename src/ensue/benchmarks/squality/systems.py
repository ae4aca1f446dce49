"""What summarises: people, a story's beginning, its best sentences or the nearest ones, or a model that writes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from ensue.benchmarks.base import LoadModel, NamedSystem, RunContext
from ensue.benchmarks.squality.data import Example, Story
from ensue.benchmarks.squality.given import read_summaries
from ensue.benchmarks.squality.inputs import (
    STOPS,
    Given,
    Layout,
    Room,
    layout_of,
    retrieved,
    room_of,
    truncated,
)
from ensue.benchmarks.summaries.extractive import lead, oracle
from ensue.benchmarks.summaries.retrieval import Retriever, nearest_text
from ensue.benchmarks.summaries.written import WrittenTexts
from ensue.errors import EnsueError
from ensue.models.protocols import Encoder, Generator, Model, portion_of, require
from ensue.text.sentences import split_sentences

HUMAN, LEAD, ORACLE, RETRIEVAL, WRITTEN = "human", "lead", "oracle", "retrieval", "written"
GENERATE = "generate"
SYSTEMS = (HUMAN, LEAD, ORACLE, RETRIEVAL, WRITTEN, GENERATE)
# What a model is that is only one of these names.
BASELINE_KIND = "summaries"
DEFAULT_ENCODER = "minilm"
# Prompts handed to a generator at once: what is finished is kept after each portion.
_ON_CPU, _ELSEWHERE = 4, 16


class Summary(NamedTuple):
    """A summary, and what is worth keeping of how it came about."""

    text: str
    about: dict[str, Any]


def system_of(model: Model, asked: str | None) -> str:
    """Which system a run is of: what was asked for, or what the model can do."""
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


def summarise(
    system: str,
    model: Model,
    examples: Sequence[Example],
    settings: Mapping[str, Any],
    *,
    encoder: Encoder | None,
    kept: WrittenTexts,
    context: RunContext,
) -> list[Summary]:
    """A summary for every example, by any system but people; `encoder` is what `retriever_of` found."""
    if system == LEAD:
        return [Summary(lead(sentences_of(one.story), settings["words"]), {}) for one in examples]
    if system == WRITTEN:
        if settings["summaries"] is None:
            raise EnsueError("Measuring summaries that are written already needs --set summaries=FILE.")
        some = settings["limit"] is not None
        found = read_summaries(Path(settings["summaries"]).expanduser(), examples, some=some)
        return [Summary(text.strip(), {}) for text in found]
    if system == ORACLE:
        return [_oracle(one) for one in examples]
    retriever = None if encoder is None else Retriever(encoder)
    if system == RETRIEVAL:
        assert retriever is not None, "who retrieves has an encoder"
        return [_nearest(one, retriever, settings["words"]) for one in _told(examples, context)]
    generator = require(model, Generator, "Summarising")
    return _generated(generator, examples, settings, retriever, kept, context)


@lru_cache(maxsize=256)
def sentences_of(story: Story) -> tuple[str, ...]:
    """A story's sentences; divided once, though five questions are asked about it."""
    return tuple(split_sentences(story.text))


def prompts_of(
    examples: Sequence[Example], layout: Layout, room: Room, retriever: Retriever | None
) -> list[Given]:
    """What a model reads for each example: the truncated story, or the retrieved part of it."""
    given = []
    for one in examples:
        question = one.question.text
        if retriever is None:
            given.append(truncated(layout, question, one.story.text, room))
        else:
            sentences = sentences_of(one.story)
            order = retriever.nearest(question, sentences)
            given.append(retrieved(layout, question, sentences, order, room))
    return given


def generation_options(model: Model, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Beam search and lengths, all of them said; a server is asked plainly."""
    if model.card.kind == "endpoint":
        return {}
    return {name: settings[name] for name in ("beams", "min_tokens", "block_ngrams", "length_penalty")}


def _oracle(example: Example) -> Summary:
    sentences = sentences_of(example.story)
    chosen = oracle(sentences, example.question.references)
    text = " ".join(sentences[place] for place in chosen.places)
    return Summary(text, {"sentences": list(chosen.places)})


def _nearest(example: Example, retriever: Retriever, words: int) -> Summary:
    sentences = sentences_of(example.story)
    order = retriever.nearest(example.question.text, sentences)
    return Summary(nearest_text(order, sentences, words), {"nearest": order[:10]})


def retriever_of(system: str, model: Model, named: str | None, load: LoadModel) -> Encoder | None:
    """What ranks sentences where any are retrieved: the named encoder, the model itself, or the default."""
    if system not in (RETRIEVAL, GENERATE) or (system == GENERATE and named is None):
        return None
    if named is None and isinstance(model, Encoder):
        return model
    name = named or DEFAULT_ENCODER
    return require(load(name), Encoder, f"Retrieving with {name}")


def _generated(
    generator: Generator,
    examples: Sequence[Example],
    settings: Mapping[str, Any],
    retriever: Retriever | None,
    kept: WrittenTexts,
    context: RunContext,
) -> list[Summary]:
    """What a model writes, portion by portion; what an interrupted run wrote is taken as it is.

    Portions are cut from all examples, whatever is known already, so that the same texts meet in a batch when a run
    goes on; one of which anything is missing is written whole.
    """
    new = settings["max_tokens"]
    room = room_of(generator, settings["max_input"], new)
    given = prompts_of(examples, layout_of(generator, settings["prompt"]), room, retriever)
    # Like-long ones together: a batch is as slow as its longest.
    order = sorted(range(len(examples)), key=lambda place: (-len(given[place].text), place))
    size = portion_of(generator, on_cpu=_ON_CPU, elsewhere=_ELSEWHERE)
    stop = STOPS if generator.card.kind != "seq2seq" and settings["prompt"] == "plain" else ()
    for begin in range(0, len(order), size):
        portion = order[begin : begin + size]
        if all(kept.get(examples[place].id) is not None for place in portion):
            continue
        texts = generator.generate(
            [given[place].text for place in portion],
            max_tokens=new,
            stop=stop,
            **generation_options(generator, settings),
        )
        kept.add((examples[place].id, text.strip()) for place, text in zip(portion, texts, strict=True))
        if context.progress is not None:
            context.progress(begin + len(portion), len(examples), "summaries")
    missing = "sentences_left_out" if retriever else "words_cut"
    return [
        Summary(kept.get(one.id) or "", {missing: each.left_out})
        for one, each in zip(examples, given, strict=True)
    ]


def _told(examples: Sequence[Example], context: RunContext) -> Iterator[Example]:
    """The examples one by one, telling how many are done."""
    for done, example in enumerate(examples, 1):
        yield example
        if context.progress is not None:
            context.progress(done, len(examples), "summaries")


def named(name: str) -> NamedSystem:
    """Return a summariser that needs no model."""
    return NamedSystem.of(name, "summaries", summaries=name)
