"""Stories, questions and references as what a model reads and what it is to write, one instance a reference."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from ensue.benchmarks.squality.data import Example
from ensue.benchmarks.squality.inputs import Room, layout_for, token_counter
from ensue.benchmarks.squality.systems import prompts_of
from ensue.benchmarks.summaries.retrieval import Retriever
from ensue.errors import EnsueError
from ensue.scoring.tokens import own_bos

# Instances are sorted by length within so many batches: little padding, and still a different order each epoch.
_SORTED_TOGETHER = 16


class Instance(NamedTuple):
    """Token ids of the input and of the summary, whose last is the end token; `cut` where the summary was longer."""

    read: tuple[int, ...]
    write: tuple[int, ...]
    cut: bool = False

    @property
    def size(self) -> int:
        return len(self.read) + len(self.write)


class Shape(NamedTuple):
    """Whether a model reads on from its input, and how much it may read and write."""

    causal: bool
    max_input: int
    max_output: int


def make_instances(
    examples: Sequence[Example], tokenizer: Any, shape: Shape, retriever: Retriever | None = None
) -> list[Instance]:
    """Every example once with each of its references; inputs are cut as in the benchmark, so that they agree."""
    room = Room(shape.max_input, token_counter(tokenizer), exact=True)
    given = prompts_of(examples, layout_for(shape.causal, tokenizer), room, retriever)
    found: list[Instance] = []
    for example, each in zip(examples, given, strict=True):
        read = tuple(_read(tokenizer, each.text, shape))
        found += [
            Instance(read, *_write(tokenizer, reference, shape)) for reference in example.question.references
        ]
    if not found:
        raise EnsueError("There is nothing to train on: no story has a question with a reference.")
    return found


def epoch_batches(
    instances: Sequence[Instance], batch: int, seed: int, epoch: int
) -> Iterator[list[Instance]]:
    """All instances in batches of like-long ones, in an order of the epoch's own; the last may be smaller."""
    draw = random.Random(f"{seed}/{epoch}")
    order = list(instances)
    draw.shuffle(order)
    together = batch * _SORTED_TOGETHER
    batches: list[list[Instance]] = []
    for begin in range(0, len(order), together):
        chunk = sorted(order[begin : begin + together], key=lambda one: one.size)
        batches += [chunk[start : start + batch] for start in range(0, len(chunk), batch)]
    draw.shuffle(batches)
    yield from batches


def batches_in(instances: int, batch: int) -> int:
    """How many batches an epoch has.

    >>> batches_in(33, 2)
    17
    """
    whole, rest = divmod(instances, batch * _SORTED_TOGETHER)
    return whole * _SORTED_TOGETHER + -(-rest // batch)


def fixed_batches(instances: Sequence[Instance], batch: int) -> Iterator[list[Instance]]:
    """All instances, the longest first."""
    order = sorted(instances, key=lambda one: -one.size)
    return (order[begin : begin + batch] for begin in range(0, len(order), batch))


def _read(tokenizer: Any, text: str, shape: Shape) -> list[int]:
    if not shape.causal:
        return list(tokenizer(text, verbose=False)["input_ids"])
    bos = own_bos(tokenizer)
    ids = tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"]
    return [*([] if bos is None else [bos]), *ids]


def _write(tokenizer: Any, reference: str, shape: Shape) -> tuple[tuple[int, ...], bool]:
    """A summary's tokens with the end token, cut to what may be written; where it was cut, it does not end."""
    text = reference.strip()
    if shape.causal:
        # After "Answer:" comes a space, which belongs to the first word's token.
        ids = list(tokenizer(f" {text}", add_special_tokens=False, verbose=False)["input_ids"])
        if tokenizer.eos_token_id is not None:
            ids.append(tokenizer.eos_token_id)
    else:
        ids = list(tokenizer(text_target=text, verbose=False)["input_ids"])
    return tuple(ids[: shape.max_output]), len(ids) > shape.max_output
