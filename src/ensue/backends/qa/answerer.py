"""An extractive question answerer: reads texts in windows and finds the span that answers, or that none does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ensue.backends.hf.batching import like_long, pad
from ensue.errors import EnsueError
from ensue.models.card import ModelCard
from ensue.models.protocols import FoundAnswer
from ensue.scoring.finite import check_rows

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Reading:
    """How a text is read: tokens a row, tokens two neighbouring windows share, the most tokens of a question and of
    an answer, and the score above which an answer is given at all."""

    max_length: int = 384
    stride: int = 128
    max_question: int = 64
    max_answer: int = 30
    threshold: float = 0.0

    def __post_init__(self) -> None:
        for name in ("max_length", "max_question", "max_answer"):
            if not isinstance(getattr(self, name), int) or getattr(self, name) < 1:
                raise EnsueError(f"Invalid {name}={getattr(self, name)}: expected 1 or more.")
        if not isinstance(self.stride, int) or self.stride < 0:
            raise EnsueError(f"Invalid stride={self.stride}: expected 0 or more.")


class Tokens(NamedTuple):
    """A text's tokens, and the characters each was made of."""

    ids: Ints
    offsets: Ints


class Window(NamedTuple):
    """Tokens `begin` to `end` of a text, behind a question; `first` is where the row has the first of them."""

    begin: int
    end: int
    first: int
    length: int


class PairForm:
    """How a tokenizer joins two texts into a row: the special tokens before, between and after, and their types."""

    def __init__(self, tokenizer: Any) -> None:
        if not tokenizer.is_fast:
            raise EnsueError(
                f"{tokenizer.name_or_path} has a tokenizer without character positions, which answering needs; "
                f"use a folder with a tokenizer.json."
            )
        self.tokenizer = tokenizer
        found = tokenizer("a", "a", return_token_type_ids=True)
        owners = found.sequence_ids(0)
        ids, types = found["input_ids"], found.get("token_type_ids") or [0] * len(owners)
        asked, text = owners.index(0), owners.index(1)
        middle, end = asked + owners.count(0), text + owners.count(1)
        self.before, self.between, self.after = ids[:asked], ids[middle:text], ids[end:]
        self.types = (types[:asked], types[asked], types[middle:text], types[text], types[end:])
        self.typed = "token_type_ids" in tokenizer.model_input_names
        # "No answer" is said at the first token of the model's own, as SQuAD 2.0's systems do.
        specials = [place for place, token in enumerate(ids) if token == tokenizer.cls_token_id]
        self.null = specials[0] if specials else 0
        if self.null >= asked:
            raise EnsueError(
                f"{tokenizer.name_or_path} puts no token of its own first, so it cannot say that there is no answer."
            )

    @property
    def specials(self) -> int:
        """How many tokens of a row are neither question nor text."""
        return len(self.before) + len(self.between) + len(self.after)

    def tokens(self, texts: Sequence[str], limit: int | None = None) -> list[Tokens]:
        """Tokenise each text by itself, cut at so many tokens."""
        if not texts:
            return []
        found = self.tokenizer(
            list(texts),
            add_special_tokens=False,
            return_attention_mask=False,
            return_token_type_ids=False,
            return_offsets_mapping=True,
            verbose=False,
        )
        return [
            Tokens(
                np.array(ids[:limit], dtype=np.int64), np.array(places[:limit], dtype=np.int64).reshape(-1, 2)
            )
            for ids, places in zip(found["input_ids"], found["offset_mapping"], strict=True)
        ]

    def windows(self, question: Tokens, text: Tokens, reading: Reading) -> list[Window]:
        """Cut a text into windows that share `stride` tokens with the one before; an empty text has none."""
        asked = len(question.ids)
        room = reading.max_length - self.specials - asked
        if room <= reading.stride and room < len(text.ids):
            raise EnsueError(
                f"Rows of {reading.max_length} tokens leave {max(room, 0)} for the text beside a question of "
                f"{asked}, no more than the {reading.stride} that windows share; allow longer rows or "
                f"a smaller stride."
            )
        first = len(self.before) + asked + len(self.between)
        found, begin = [], 0
        while begin < len(text.ids):
            end = min(begin + room, len(text.ids))
            found.append(Window(begin, end, first, self.specials + asked + end - begin))
            if end == len(text.ids):
                break
            begin = end - reading.stride
        return found

    def row(self, question: Tokens, text: Tokens, window: Window) -> tuple[list[int], list[int]]:
        """Return ids and types of one row."""
        asked, shown = question.ids.tolist(), text.ids[window.begin : window.end].tolist()
        before, one, between, two, after = self.types
        types = [*before, *[one] * len(asked), *between, *[two] * len(shown), *after]
        return [*self.before, *asked, *self.between, *shown, *self.after], types


def best_spans(
    starts: npt.NDArray[np.float32],
    ends: npt.NDArray[np.float32],
    firsts: Sequence[int],
    counts: Sequence[int],
    longest: int,
) -> tuple[npt.NDArray[np.float32], Ints, Ints]:
    """Find each row's best sum of a start and an end that is not before it nor `longest` tokens on.

    Starts and ends are rows × tokens; the text of a row stands at tokens `firsts` to `firsts + counts`. Of equal sums
    the shortest span wins, then the earliest.
    """
    places = np.arange(starts.shape[1])[None]
    low = np.asarray(firsts)[:, None]
    inside = (places >= low) & (places < low + np.asarray(counts)[:, None])
    starts = np.where(inside, starts, -np.inf).astype(np.float32)
    ends = np.where(inside, ends, -np.inf).astype(np.float32)
    rows = np.arange(len(starts))
    best = np.full(len(starts), -np.inf, np.float32)
    begin, finish = np.zeros(len(starts), np.int64), np.zeros(len(starts), np.int64)
    for apart in range(min(longest, starts.shape[1])):
        sums = starts[:, : starts.shape[1] - apart] + ends[:, apart:]
        place = sums.argmax(1)
        value = sums[rows, place]
        better = value > best
        best = np.where(better, value, best)
        begin, finish = np.where(better, place, begin), np.where(better, place + apart, finish)
    return best, begin, finish


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
        """Return one answer for each question and its context; empty where no answer is the better guess.

        The score is shifted by the model's threshold, so that above 0 an answer is given.
        """
        likeliest = self.best_spans(questions, contexts)
        shifted = [one._replace(score=one.score - self.reading.threshold) for one in likeliest]
        return [one if one.score > 0 else FoundAnswer("", 0, 0, one.score) for one in shifted]

    def best_spans(self, questions: Sequence[str], contexts: Sequence[str]) -> list[FoundAnswer]:
        """Return the likeliest span of each context whether or not it answers, with its log-odds against no answer.

        As in SQuAD 2.0: the best span of all windows, against the least score any window gives to no answer.
        """
        if len(questions) != len(contexts):
            raise EnsueError(
                f"There are {len(questions)} questions for {len(contexts)} texts; give one text each."
            )
        pairs = list(zip(questions, contexts, strict=True))
        distinct = list(dict.fromkeys(pairs))
        asked = self._tokens([question for question, _ in distinct], self.reading.max_question)
        read = self._tokens([context for _, context in distinct], None)
        # Windows of one question that hold the same tokens are read once, whichever texts they are from.
        rows: dict[tuple[str, bytes], int] = {}
        jobs: list[tuple[Tokens, Tokens, Window]] = []
        places: list[list[tuple[Window, int]]] = []
        for question, context in distinct:
            tokens = read[context]
            places.append([])
            for window in self.form.windows(asked[question], tokens, self.reading):
                key = (question, tokens.ids[window.begin : window.end].tobytes())
                if key not in rows:
                    rows[key] = len(jobs)
                    jobs.append((asked[question], tokens, window))
                places[-1].append((window, rows[key]))
        found = self._read(jobs)
        answers = {
            pair: _answer_of(pair[1], read[pair[1]], [(window, found[row]) for window, row in held])
            for pair, held in zip(distinct, places, strict=True)
        }
        return [answers[pair] for pair in pairs]

    def _tokens(self, texts: Sequence[str], limit: int | None) -> dict[str, Tokens]:
        once = list(dict.fromkeys(texts))
        return dict(zip(once, self.form.tokens(once, limit), strict=True))

    def _read(self, jobs: Sequence[tuple[Tokens, Tokens, Window]]) -> list[_Best]:
        """Return the best span of every window, batches of like length within the budget of tokens."""
        import torch

        out: list[_Best] = [_Best(0.0, 0.0, 0, 0)] * len(jobs)
        if not jobs:
            return out
        for chosen in like_long([window.length for _, _, window in jobs], self.batch_tokens):
            rows = [self.form.row(*jobs[job]) for job in chosen]
            inputs = padded(rows, self.form, self.tokenizer.pad_token_id or 0, self.device)
            with torch.inference_mode():
                scores = self.network(**inputs).float().cpu().numpy()
            # A window without numbers would lose against every other one without a word.
            for job, said, (ids, _) in zip(chosen, scores, rows, strict=True):
                if not np.isfinite(said[: len(ids)]).all():
                    _, text, window = jobs[job]
                    words = self.tokenizer.decode(text.ids[window.begin : window.end].tolist())
                    check_rows([said[: len(ids)]], [words], self.card)
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
    rows: Sequence[tuple[list[int], list[int]]], form: PairForm, fill: int, device: Any
) -> dict[str, Any]:
    """Return rows of ids and types as a network takes them."""
    ids, mask = pad([ids for ids, _ in rows], fill)
    inputs = {"input_ids": ids.to(device)}
    if not mask.all():
        inputs["attention_mask"] = mask.to(device)
    if form.typed:
        inputs["token_type_ids"] = pad([types for _, types in rows], 0)[0].to(device)
    return inputs


def _answer_of(context: str, tokens: Tokens, windows: Sequence[tuple[Window, _Best]]) -> FoundAnswer:
    """Return the best span of all windows as characters of the text, without spaces around it."""
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
