"""Examples as rows of tokens and rows as batches of like length; only a question's own tokens are learned."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ensue.backends.qg.prompts import plain_prompt
from ensue.backends.qg.questioner import after_prompt, question_tokens
from ensue.train.qg.examples import QuestionExample

# So many batches are sorted by length together: enough that little is padded, few enough to stay mixed.
_POOLED = 20
Ints = npt.NDArray[np.int64]


class Row(NamedTuple):
    """Prompt, question and end token; the question begins at `start`."""

    ids: tuple[int, ...]
    start: int


class Batch(NamedTuple):
    """Rows padded on the right, and the places before each learned token: row, column, and the token itself."""

    ids: Ints
    rows: Ints
    columns: Ints
    targets: Ints


class Rows(NamedTuple):
    """Rows that fit, the examples they are of, and how many were too long."""

    rows: list[Row]
    examples: list[QuestionExample]
    too_long: int


def make_rows(tokenizer: Any, bos: int | None, examples: Sequence[QuestionExample], limit: int) -> Rows:
    """The rows of examples, tokenised exactly as a questioner does when it asks."""
    prompts = [plain_prompt(example.context, example.answer) for example in examples]
    texts = list(dict.fromkeys(prompt.shared for prompt in prompts))
    shared = dict(zip(texts, question_tokens(tokenizer, texts), strict=True))
    own = question_tokens(tokenizer, [prompt.own for prompt in prompts])
    said = question_tokens(tokenizer, [after_prompt(example.question) for example in examples])
    first = () if bos is None else (bos,)
    rows = []
    for prompt, mine, question in zip(prompts, own, said, strict=True):
        before = first + shared[prompt.shared] + mine
        rows.append(Row((*before, *question, int(tokenizer.eos_token_id)), len(before)))
    kept = [place for place, row in enumerate(rows) if len(row.ids) <= limit]
    return Rows([rows[n] for n in kept], [examples[n] for n in kept], len(rows) - len(kept))


def epoch_batches(rows: Sequence[Row], tokens: int, seed: int, epoch: int) -> Iterator[Batch]:
    """All rows once in batches of like length under a budget of tokens, rows and batches in random order."""
    rng = np.random.default_rng([seed, epoch])
    order = rng.permutation(len(rows))
    mean = max(sum(len(row.ids) for row in rows) // max(len(rows), 1), 1)
    pool = max(tokens // mean, 1) * _POOLED
    for begin in range(0, len(order), pool):
        near = sorted(order[begin : begin + pool], key=lambda place: len(rows[place].ids))
        groups = list(_groups([rows[place] for place in near], tokens))
        for place in rng.permutation(len(groups)):
            yield make_batch(groups[place])


def batches_in(rows: Sequence[Row], tokens: int, seed: int) -> int:
    """How many batches an epoch has, near enough: the first epoch's."""
    return sum(1 for _ in epoch_batches(rows, tokens, seed, 0))


def fixed_batches(rows: Sequence[Row], tokens: int) -> Iterator[Batch]:
    """All rows, always in the same batches: what a dev loss is measured on."""
    for group in _groups(sorted(rows, key=lambda row: len(row.ids)), tokens):
        yield make_batch(group)


def make_batch(rows: Sequence[Row]) -> Batch:
    """Padding repeats token 0: a left-to-right model never looks to its right."""
    ids = np.zeros((len(rows), max(len(row.ids) for row in rows)), dtype=np.int64)
    places: list[int] = []
    columns: list[int] = []
    targets: list[int] = []
    for place, row in enumerate(rows):
        ids[place, : len(row.ids)] = row.ids
        columns += range(row.start - 1, len(row.ids) - 1)
        targets += row.ids[row.start :]
        places += [place] * (len(row.ids) - row.start)
    return Batch(ids, *(np.asarray(found, dtype=np.int64) for found in (places, columns, targets)))


def _groups(rows: Sequence[Row], tokens: int) -> Iterator[list[Row]]:
    """Neighbours together, as many as fit the budget with their padding; rows come from short to long."""
    group: list[Row] = []
    for row in rows:
        if group and (len(group) + 1) * len(row.ids) > tokens:
            yield group
            group = []
        group.append(row)
    if group:
        yield group
