"""What an answerer learns from: rows of question and text with where answers begin and end, and the loss on them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from ensue.backends.qa.answerer import PairForm, Reading, Tokens, Window, padded
from ensue.backends.qa.network import SpanNetwork
from ensue.text.io.squad import Answer, Example
from ensue.train.batching import alike

# Rows of like length are looked for among so many batches' worth, so that batches stay mixed.
_POOL = 50


class Target(NamedTuple):
    """One answer: first and last place in the row wherever it stands, and the share of annotators who marked it."""

    places: tuple[tuple[int, int], ...]
    share: float


class SpanRow(NamedTuple):
    """One window behind its question, its text at places `first` to `last`; where no answer is in it, the one target
    is the null place."""

    ids: list[int]
    types: list[int]
    first: int
    last: int
    targets: tuple[Target, ...]


def rows_of(
    examples: Sequence[Example], form: PairForm, reading: Reading, *, any_place: bool = False
) -> list[SpanRow]:
    """Return all windows of all examples, texts and questions tokenised once.

    With `any_place` an answer counts wherever its words stand in the text, for data whose places are not reliable.
    """
    asked = list(dict.fromkeys(one.question for one in examples))
    texts = list(dict.fromkeys(one.context for one in examples))
    questions = dict(zip(asked, form.tokens(asked, reading.max_question), strict=True))
    contexts = dict(zip(texts, form.tokens(texts), strict=True))
    found = []
    for one in examples:
        question, context = questions[one.question], contexts[one.context]
        marked = _marked(one, context, any_place)
        for window in form.windows(question, context, reading):
            ids, types = form.row(question, context, window)
            last = window.first + window.end - window.begin - 1
            found.append(SpanRow(ids, types, window.first, last, _targets(marked, window, form.null)))
    return found


def _marked(example: Example, tokens: Tokens, any_place: bool) -> Counter[tuple[tuple[int, int], ...]]:
    """Return the token spans of each answer, and how many annotators marked it."""
    marked: Counter[tuple[tuple[int, int], ...]] = Counter()
    for answer in example.answers:
        starts = occurrences(example.context, answer) if any_place else [answer.start]
        spans = [token_span(tokens, start, start + len(answer.text)) for start in starts]
        marked[tuple(span for span in spans if span is not None)] += 1
    return marked


def _targets(marked: Counter[tuple[tuple[int, int], ...]], window: Window, null: int) -> tuple[Target, ...]:
    """Return the answers that lie whole in the window, as places of its row."""
    shift = window.first - window.begin
    inside: Counter[tuple[tuple[int, int], ...]] = Counter()
    for spans, count in marked.items():
        held = tuple((a + shift, b + shift) for a, b in spans if window.begin <= a and b < window.end)
        if held:
            inside[held] += count
    if not inside:
        return (Target(((null, null),), 1.0),)
    return tuple(Target(places, count / inside.total()) for places, count in inside.items())


def occurrences(context: str, answer: Answer) -> list[int]:
    """Return where the words of an answer stand as words of their own; where it is marked, if nowhere.

    >>> occurrences("The art of the party is art.", Answer("art", 16))
    [4, 24]
    """
    before = r"(?<!\w)" if answer.text[0].isalnum() else ""
    after = r"(?!\w)" if answer.text[-1].isalnum() else ""
    found = [match.start() for match in re.finditer(before + re.escape(answer.text) + after, context)]
    return found or [answer.start]


def token_span(tokens: Tokens, start: int, end: int) -> tuple[int, int] | None:
    """First and last token with a character in `start` to `end`; None where there is none (an answer of spaces)."""
    inside = np.flatnonzero(
        (tokens.offsets[:, 1] > start)
        & (tokens.offsets[:, 0] < end)
        & (tokens.offsets[:, 1] > tokens.offsets[:, 0])
    )
    return (int(inside[0]), int(inside[-1])) if len(inside) else None


def epoch_batches(rows: Sequence[SpanRow], size: int, seed: int, epoch: int) -> Iterator[list[SpanRow]]:
    """Yield all rows in an order of the epoch's own, rows of like length together, batches mixed."""
    draw = np.random.default_rng([seed, epoch])
    order = draw.permutation(len(rows))
    batches = alike(order.tolist(), lambda place: len(rows[place].ids), size, _POOL)
    for place in draw.permutation(len(batches)):
        yield [rows[row] for row in batches[place]]


def span_loss(scores: Tensor, rows: Sequence[SpanRow], null: int) -> Tensor:
    """Return the mean loss of rows × tokens × 2 scores: half of minus the log-probability of the answer anywhere.

    Where annotators differ, each answer counts by its share. Only what an answer can be takes part: tokens of the
    text, and the null place.
    """
    device = scores.device
    places = torch.arange(scores.shape[1], device=device)[None]
    first = torch.tensor([row.first for row in rows], device=device)[:, None]
    last = torch.tensor([row.last for row in rows], device=device)[:, None]
    possible = ((places >= first) & (places <= last)) | (places == null)
    logs = scores.float().masked_fill(~possible[..., None], -torch.inf).log_softmax(1)
    held = [(at, target) for at, row in enumerate(rows) for target in row.targets]
    most = max(len(target.places) for _, target in held)
    # Answers × places they stand at; a place said again and again adds nothing, for it is blotted out below.
    table = torch.tensor(
        [[*t.places, *[t.places[0]] * (most - len(t.places))] for _, t in held], device=device
    )
    real = torch.tensor([[n < len(t.places) for n in range(most)] for _, t in held], device=device)
    which = torch.tensor([at for at, _ in held], device=device)[:, None]
    found = logs[which, table[..., 0], 0] + logs[which, table[..., 1], 1]
    whole = found.masked_fill(~real, -torch.inf).logsumexp(1)
    shares = torch.tensor([target.share for _, target in held], device=device)
    return -(whole * shares).sum() / (2 * len(rows))


class SpanObjective(nn.Module):  # type: ignore[misc]
    """The loss of a batch of rows."""

    def __init__(self, network: SpanNetwork, form: PairForm, pad: int) -> None:
        super().__init__()
        self.network = network
        self._form, self._pad = form, pad

    def forward(self, rows: Sequence[SpanRow]) -> Tensor:
        inputs = padded(
            [(row.ids, row.types) for row in rows], self._form, self._pad, self.network.weight.device
        )
        return span_loss(self.network(**inputs), rows, self._form.null)
