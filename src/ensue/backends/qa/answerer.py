"""An extractive question answerer: reads texts in windows and finds the span that answers, or that none does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ensue.backends.hf.encoder import _batches, _pad
from ensue.backends.numbers import check_rows
from ensue.backends.qa.windows import PairForm, Reading, Tokens, Window, best_spans
from ensue.errors import EnsueError
from ensue.models.card import ModelCard
from ensue.models.protocols import FoundAnswer

_BATCH_TOKENS = {"cpu": 1024, "cuda": 65_536}
# What an answer scores in a text without a word: far below any a network gives, and finite.
NOTHING = -1000.0


class _Best(NamedTuple):
    """The best span of a window: its score, that of no answer, and its first and last token within the text."""

    score: float
    null: float
    start: int
    end: int


class AnswerModel:
    """Answers questions from texts. `network` gives start and end scores, rows × tokens × 2, of rows of tokens."""

    def __init__(
        self,
        network: Callable[..., Any],
        tokenizer: Any,
        card: ModelCard,
        reading: Reading,
        device: Any,
        batch_tokens: int | None = None,
    ) -> None:
        self.network, self.tokenizer, self.card = network, tokenizer, card
        self.reading, self.device = reading, device
        self.form = PairForm(tokenizer)
        self.batch_tokens = batch_tokens or _BATCH_TOKENS.get(device.type, 1024)

    @property
    def device_kind(self) -> str:
        return str(self.device.type)

    def answer(self, questions: Sequence[str], contexts: Sequence[str]) -> list[FoundAnswer]:
        """One answer for each question and its context; empty where no answer is the better guess.

        The score is shifted by the model's threshold, so that above 0 an answer is given.
        """
        return [
            found if found.score > 0 else FoundAnswer("", 0, 0, found.score)
            for found in (
                one._replace(score=one.score - self.reading.threshold)
                for one in self.best_spans(questions, contexts)
            )
        ]

    def best_spans(self, questions: Sequence[str], contexts: Sequence[str]) -> list[FoundAnswer]:
        """The likeliest span of each context whether or not it answers, with its log-odds against no answer.

        As in SQuAD 2.0: the best span of all windows, against the least score any window gives to no answer.
        """
        if len(questions) != len(contexts):
            raise EnsueError(
                f"There are {len(questions)} questions for {len(contexts)} texts; give one text each."
            )
        pairs = list(zip(questions, contexts, strict=True))
        distinct = list(dict.fromkeys(pairs))
        asked = self._tokens([question for question, _ in distinct], self.reading.max_question)
        told = self._tokens([context for _, context in distinct], None)
        # Windows of one question that hold the same tokens are read once, whichever texts they are from.
        rows: dict[tuple[str, bytes], int] = {}
        jobs: list[tuple[Tokens, Tokens, Window]] = []
        places: list[list[tuple[Window, int]]] = []
        for question, context in distinct:
            tokens = told[context]
            places.append([])
            for window in self.form.windows(asked[question], tokens, self.reading):
                key = (question, tokens.ids[window.begin : window.end].tobytes())
                if key not in rows:
                    rows[key] = len(jobs)
                    jobs.append((asked[question], tokens, window))
                places[-1].append((window, rows[key]))
        found = self._read(jobs)
        answers = {
            pair: _answer_of(pair[1], told[pair[1]], [(window, found[row]) for window, row in held])
            for pair, held in zip(distinct, places, strict=True)
        }
        return [answers[pair] for pair in pairs]

    def _tokens(self, texts: Sequence[str], limit: int | None) -> dict[str, Tokens]:
        once = list(dict.fromkeys(texts))
        return dict(zip(once, self.form.tokens(once, limit), strict=True))

    def _words(self, job: tuple[Tokens, Tokens, Window]) -> str:
        """What a window holds, as an error names it."""
        _, told, window = job
        return str(self.tokenizer.decode(told.ids[window.begin : window.end].tolist()))

    def _read(self, jobs: Sequence[tuple[Tokens, Tokens, Window]]) -> list[_Best]:
        """The best span of every window, batches of like length within the budget of tokens."""
        import torch

        out: list[_Best] = [_Best(0.0, 0.0, 0, 0)] * len(jobs)
        if not jobs:
            return out
        for chosen in _batches([window.length for _, _, window in jobs], self.batch_tokens):
            rows = [self.form.row(*jobs[job]) for job in chosen]
            inputs = padded(rows, self.form, self.tokenizer.pad_token_id or 0, self.device)
            with torch.inference_mode():
                scores = self.network(**inputs).float().cpu().numpy()
            # A window without numbers would lose against every other one without a word.
            for job, said, (ids, _) in zip(chosen, scores, rows, strict=True):
                if not np.isfinite(said[: len(ids)]).all():
                    check_rows([said[: len(ids)]], [self._words(jobs[job])], self.card)
            starts, ends = scores[..., 0], scores[..., 1]
            windows = [jobs[job][2] for job in chosen]
            counts = [window.end - window.begin for window in windows]
            best, first, last = best_spans(
                starts, ends, [window.first for window in windows], counts, self.reading.max_answer
            )
            nulls = starts[:, self.form.null] + ends[:, self.form.null]
            for row, (job, window) in enumerate(zip(chosen, windows, strict=True)):
                # Within the window, for other texts may have it too.
                span = int(first[row]) - window.first, int(last[row]) - window.first
                out[job] = _Best(float(best[row]), float(nulls[row]), *span)
        return out


def padded(
    rows: Sequence[tuple[list[int], list[int]]], form: PairForm, pad: int, device: Any
) -> dict[str, Any]:
    """Rows of ids and types as a network takes them."""
    ids, mask = _pad([ids for ids, _ in rows], pad)
    inputs = {"input_ids": ids.to(device)}
    if mask is not None:
        inputs["attention_mask"] = mask.to(device)
    if form.typed:
        inputs["token_type_ids"] = _pad([types for _, types in rows], 0)[0].to(device)
    return inputs


def _answer_of(context: str, tokens: Tokens, windows: Sequence[tuple[Window, _Best]]) -> FoundAnswer:
    """The best span of all windows as characters of the text, without spaces around it."""
    if not windows:
        return FoundAnswer("", 0, 0, NOTHING)
    null = min(best.null for _, best in windows)
    window, best = max(windows, key=lambda held: held[1].score)
    start = int(tokens.offsets[window.begin + best.start, 0])
    end = int(tokens.offsets[window.begin + best.end, 1])
    text = context[start:end]
    start += len(text) - len(text.lstrip())
    text = text.strip()
    return FoundAnswer(text, start, start + len(text), best.score - null)
