"""Readers: encoders that read a text whole and say of each sentence whether it belongs where it stands."""

from __future__ import annotations

import json
import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from ensue.backends.hf.batching import batches, pad
from ensue.backends.hf.encoder import VectorModel
from ensue.backends.hf.loading import Loaded, ModelFolder
from ensue.backends.hf.reader_network import NOBODY, READER, ReaderNetwork, ReaderReading
from ensue.models.card import ModelCard
from ensue.scoring.finite import check_rows

Numbers = npt.NDArray[np.int64]


class Row(NamedTuple):
    """The tokens of a window, and the number of the sentence that each is of."""

    ids: Numbers
    owners: Numbers


class _Window(NamedTuple):
    """A window of a text: the text's number, the first sentence, those it says something of, and its tokens."""

    text: int
    begin: int
    places: list[int]
    row: Row


class SentenceTokens:
    """Turns sentences into tokens, each on its own, and windows of them into rows."""

    def __init__(self, model: VectorModel, reading: ReaderReading) -> None:
        self._model, self.reading = model, reading
        tokenizer = model.tokenizer
        self.first = [tokenizer.cls_token_id] if tokenizer.cls_token_id is not None else []
        # A language model knows lines; what ends a sequence would end the text to it.
        self._end = (
            [tokenizer.sep_token_id]
            if tokenizer.sep_token_id is not None
            else tokenizer("\n", add_special_tokens=False)["input_ids"]
        )

    @property
    def room(self) -> int:
        """How many tokens of sentences a row takes."""
        return self.reading.max_length - len(self.first)

    def of(self, sentences: Sequence[str]) -> list[Numbers]:
        """Return each sentence's tokens and what ends it; one that has neither is padding."""
        most = self.reading.max_sentence - len(self._end)
        fill = [self._model.tokenizer.pad_token_id or 0]
        return [
            np.array([i for i, special in zip(*one, strict=True) if not special][:most] + self._end or fill)
            for one in self._model.text_tokens(sentences)
        ]

    def row(self, sentences: Sequence[Numbers]) -> Row:
        """Lay the sentences of a window into a row."""
        parts = [np.array(self.first, np.int64), *sentences]
        numbers = np.arange(len(parts)) - 1
        if not self.first:
            parts, numbers = parts[1:], numbers[1:]
        return Row(np.concatenate(parts), np.repeat(numbers, [len(one) for one in parts]))


class SentenceReader:
    """Says of each sentence of a text whether it belongs where it stands: the logit of a trained encoder."""

    def __init__(self, loaded: Loaded, head: Mapping[str, Tensor], reading: ReaderReading) -> None:
        self._vectors = VectorModel(loaded)
        self._network: Any = ReaderNetwork(loaded.network, reading)
        self._network.fill_head(head)
        for part in (one for name, one in self._network.named_children() if name != "trunk"):
            part.to(loaded.network.device)
        self._network.eval()
        self.tokens = SentenceTokens(self._vectors, reading)

    @property
    def card(self) -> ModelCard:
        return self._vectors.card

    @property
    def device_kind(self) -> str:
        return self._vectors.device_kind

    def read(self, texts: Sequence[Sequence[str]]) -> list[list[float]]:
        """Return a logit a sentence; a long text is read in windows, each sentence where most stands around it."""
        found: list[list[float]] = [[0.0] * len(text) for text in texts]
        read = self._windows(texts)
        for chosen in self._batches(read):
            logits = self._logits([read[i].row for i in chosen])
            for i, of_window in zip(chosen, logits, strict=True):
                number, begin, places, _ = read[i]
                for place in places:
                    found[number][place] = float(of_window[place - begin])
        return found

    def together(self, texts: Sequence[Sequence[str]]) -> list[list[int]]:
        """Return which texts are read in one batch: all, where one has windows, which may be read in several."""
        read = self._windows(texts)
        if [window.text for window in read] != list(range(len(texts))):
            return [list(range(len(texts)))]
        return list(self._batches(read))

    def _windows(self, texts: Sequence[Sequence[str]]) -> list[_Window]:
        each = self.tokens.of([sentence for text in texts for sentence in text])
        found: list[_Window] = []
        at = 0
        for number, text in enumerate(texts):
            own = each[at : at + len(text)]
            at += len(text)
            for (begin, end), places in windows_of([len(one) for one in own], self.tokens.room):
                found.append(_Window(number, begin, places, self.tokens.row(own[begin:end])))
        return found

    def _batches(self, read: Sequence[_Window]) -> Iterable[list[int]]:
        return batches(self._vectors.network, [len(window.row.ids) for window in read]) if read else ()

    def _logits(self, rows: Sequence[Row]) -> list[npt.NDArray[np.float32]]:
        """Return the logits of each row's sentences."""
        counts = [int(row.owners.max(initial=NOBODY)) + 1 for row in rows]
        firsts = list(accumulate(counts, initial=0))
        owners = [
            np.where(row.owners == NOBODY, NOBODY, row.owners + first).tolist()
            for row, first in zip(rows, firsts, strict=False)
        ]
        device = self._vectors.network.device
        ids, mask = pad([row.ids.tolist() for row in rows], self._vectors.tokenizer.pad_token_id or 0)
        theirs = pad(owners, NOBODY)[0].to(device)
        with torch.inference_mode():
            logits = self._network(ids.to(device), mask.to(device), theirs, firsts[-1]).float().cpu().numpy()
        check_rows([logits], [""], self.card)
        return np.split(logits, firsts[1:-1])


def windows_of(lengths: Sequence[int], room: int) -> list[tuple[tuple[int, int], list[int]]]:
    """Return windows of sentences that fit the room, and of which sentences each says something.

    They overlap by half, and a sentence goes to the window in which the nearer end is farthest; an end of the text is
    no end of a window.

    >>> windows_of([1, 1, 1, 1], 4)
    [((0, 4), [0, 1, 2, 3])]
    >>> windows_of([1, 1, 1, 1, 1, 1], 4)
    [((0, 4), [0, 1, 2]), ((2, 6), [3, 4, 5])]
    """
    ends = [0, *accumulate(lengths)]
    count = len(lengths)
    found: list[tuple[int, int]] = []
    begin = 0
    while count:
        end = max(begin + 1, bisect_right(ends, ends[begin] + room) - 1)
        if end == count:
            # The last one reaches as far back as it can.
            begin = min(begin, bisect_left(ends, ends[end] - room))
        found.append((begin, end))
        if end == count:
            break
        begin = max(begin + 1, bisect_left(ends, ends[end] - room // 2))
    best = [(-1.0, 0)] * count
    for number, (first, last) in enumerate(found):
        for place in range(first, last):
            before = ends[place] - ends[first] if first else math.inf
            after = ends[last] - ends[place + 1] if last < count else math.inf
            best[place] = max(best[place], (min(before, after), -number))
    kept: list[list[int]] = [[] for _ in found]
    for place, (_, number) in enumerate(best):
        kept[-number].append(place)
    return list(zip(found, kept, strict=True))


def load_reader(folder: ModelFolder) -> SentenceReader:
    """Load a reader that was saved whole, or as an adapter on the model it was trained from."""
    with folder.loading(READER.what):
        reading = ReaderReading(**folder.config[READER.kind])
    loaded, head = READER.load(folder)
    identity = {**loaded.card.identity, "reading": json.dumps(asdict(reading), sort_keys=True)}
    card = replace(loaded.card, identity=identity, max_length=reading.max_length)
    return SentenceReader(replace(loaded, card=card), head, reading)
