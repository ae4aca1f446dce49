"""A Hugging Face encoder-decoder model: generates text from text, and asks questions about marked answers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ensue.backends.hf.batching import continued_together, pad
from ensue.backends.hf.generate import cut_at, decoding, make_rows
from ensue.backends.hf.loading import Loaded, ModelFolder, load
from ensue.backends.qg.questioner import check_asked, check_span, end_tokens
from ensue.errors import EnsueError, TooLong
from ensue.models.card import ModelCard
from ensue.models.protocols import AnswerSpan, Asked, QuestionSearch
from ensue.scoring.finite import check_rows

# Tokens of one batch, read and written, all beams of a row counted.
_TOKENS = {"cuda": 262_144}
_CPU_TOKENS = 16_384
# Logits (rows × tokens × vocabulary) that are made at once where questions are scored.
_ENTRIES = 2**27
# Where a model folder may state the wording of its questions' input, in config.json.
SETTINGS = "ensue_questions"


@dataclass(frozen=True)
class QuestionInput:
    """How answer and text are put to a seq2seq model: `{answer}`, `{context}` and, where the model was trained with
    the answer marked in the text, `{marked}`, between `open` and `close`."""

    template: str = "answer: {answer} context: {context}"
    open: str = "<hl> "
    close: str = " <hl>"

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any]) -> QuestionInput:
        """Read `template`, `open` and `close`; what is not given stays as usual."""
        known = {field.name for field in fields(cls)}
        odd = sorted(set(settings) - known)
        if odd:
            raise EnsueError(
                f"A question's input has no setting {odd[0]!r}; there are {', '.join(sorted(known))}."
            )
        made = cls(**{name: str(value) for name, value in settings.items()})
        try:
            said = made.text("one two", AnswerSpan(0, 3))
        except (KeyError, IndexError, ValueError):
            said = ""
        if "one" not in said or "two" not in said:
            raise EnsueError(
                f"Invalid template {made.template!r}: expected {{answer}} and {{context}}, or {{marked}}, in it."
            )
        return made

    def text(self, context: str, answer: AnswerSpan) -> str:
        """Return what the encoder reads."""
        check_span(context, answer)
        words = context[answer.start : answer.end]
        marked = f"{context[: answer.start]}{self.open}{words}{self.close}{context[answer.end :]}"
        return self.template.format(answer=words, context=context, marked=marked)


class Read(NamedTuple):
    """Texts of a batch as tokens, padded on the right, and the mask that hides the padding."""

    ids: Any
    mask: Any


class Seq2SeqModel:
    """An encoder-decoder with its tokenizer and the wording of its questions' input."""

    def __init__(self, loaded: Loaded, question_input: QuestionInput | None = None) -> None:
        self.network, self.tokenizer, self.options = loaded.network, loaded.tokenizer, loaded.options
        self.card: ModelCard = loaded.card
        self.question_input = question_input or QuestionInput()

    def generate(
        self, prompts: Sequence[str], *, max_tokens: int = 64, stop: Sequence[str] = (), **options: Any
    ) -> list[str]:
        """Return what each text becomes (greedily unless `options` say otherwise: `beams`, `length_penalty`, …)."""
        settings = decoding({"max_new_tokens": max_tokens, **options})
        if stop:
            settings |= {"stop_strings": list(stop), "tokenizer": self.tokenizer}
        out: dict[int, str] = {}
        for chosen, _, found in self._run(prompts, settings):
            for index, row in zip(chosen, found, strict=True):
                out[index] = cut_at(self.tokenizer.decode(row, skip_special_tokens=True), stop)
        return [out[index] for index in range(len(prompts))]

    def ask(self, contexts: Sequence[str], answers: Sequence[AnswerSpan], **search: Any) -> list[list[Asked]]:
        """Ask about the answer marked in each context; `search` are fields of `QuestionSearch`."""
        check_asked(contexts, answers)
        texts = [self.question_input.text(text, span) for text, span in zip(contexts, answers, strict=True)]
        wanted = asdict(QuestionSearch(**search))
        count, most = wanted.pop("count"), wanted.pop("max_tokens")
        settings = decoding({**wanted, "max_new_tokens": most, "num_return_sequences": count})
        out: list[list[Asked]] = [[] for _ in texts]
        for chosen, read, found in self._run(texts, settings):
            scores = self._means(read, found, count)
            check_rows(scores, [texts[index] for index in chosen for _ in range(count)], self.card)
            for place, index in enumerate(chosen):
                here = slice(place * count, (place + 1) * count)
                out[index] = self._asked(found[here], scores[here])
        return out

    def question_logprobs(
        self, contexts: Sequence[str], answers: Sequence[AnswerSpan], questions: Sequence[str]
    ) -> list[npt.NDArray[np.float64]]:
        """Return the log-probability of every token of each question, the end token among them."""
        import torch

        texts = [self.question_input.text(text, span) for text, span in zip(contexts, answers, strict=True)]
        out = []
        for text, question in zip(texts, questions, strict=True):
            read = self.tokenizer(text, return_tensors="pt").input_ids.to(self.network.device)
            labels = self.tokenizer(text_target=question.strip(), return_tensors="pt").input_ids.to(
                read.device
            )
            with torch.inference_mode():
                logits = self.network(input_ids=read, labels=labels).logits[0].float()
            table = torch.log_softmax(logits, -1)
            out.append(table.gather(1, labels[0][:, None])[:, 0].double().cpu().numpy())
        check_rows(out, texts, self.card)
        return out

    def _asked(self, rows: Any, scores: Sequence[float]) -> list[Asked]:
        """Return each wording once, in the order of the search."""
        found: dict[str, float] = {}
        for row, score in zip(rows, scores, strict=True):
            said = self.tokenizer.decode(row, skip_special_tokens=True).strip()
            if said:
                found.setdefault(said, score)
        return [Asked(question, score) for question, score in found.items()]

    def _means(self, read: Read, rows: Any, count: int) -> list[float]:
        """Return the mean log-probability of each row's tokens, its end among them, `count` rows a text.

        By one more pass: asked for scores, transformers would keep those of every step and word.
        """
        import torch

        ends = torch.tensor(sorted(end_tokens(self)), device=rows.device)
        made = rows[:, 1:]  # the first starts every row
        ended = torch.isin(made, ends)
        real = (ended.cumsum(1) - ended.long()) == 0
        vocabulary = int(self.network.get_output_embeddings().weight.shape[0])
        step = max(_ENTRIES // (rows.shape[1] * vocabulary * count), 1)
        out: list[float] = []
        for begin in range(0, len(rows) // count, step):
            texts, here = slice(begin, begin + step), slice(begin * count, (begin + step) * count)
            with torch.inference_mode():
                logits = self.network(
                    input_ids=read.ids[texts].repeat_interleave(count, 0),
                    attention_mask=read.mask[texts].repeat_interleave(count, 0),
                    decoder_input_ids=rows[here, :-1],
                ).logits.float()
            table = torch.log_softmax(logits, -1).gather(2, made[here, :, None])[..., 0]
            sums = torch.where(real[here], table, 0.0).sum(1)
            out += (sums / real[here].sum(1).clamp(min=1)).tolist()
        return out

    def _run(self, texts: Sequence[str], settings: dict[str, Any]) -> Iterator[tuple[list[int], Read, Any]]:
        """Run batches of like-long texts; yield their places, what was read, and the rows made of them."""
        rows = self.tokenizer(list(texts), verbose=False)["input_ids"] if texts else []
        self._check_room(rows)
        device, name, lengths = self.network.device, self.card.name, [len(row) for row in rows]
        budget = self.options.batch_tokens or _TOKENS.get(device.type, _CPU_TOKENS)
        room = budget // int(settings["num_beams"])
        for chosen in continued_together(lengths, settings["max_new_tokens"], room):
            ids, mask = pad([rows[index] for index in chosen], self.tokenizer.pad_token_id or 0)
            read = Read(ids.to(device), mask.to(device))
            yield chosen, read, make_rows(self.network, *read, [texts[i] for i in chosen], name, settings)

    def _check_room(self, rows: Sequence[Sequence[int]]) -> None:
        limit = self.card.max_length
        if limit is None:
            return
        if places := [place for place, row in enumerate(rows) if len(row) > limit]:
            raise TooLong(
                f"A text of {max(map(len, rows))} tokens does not fit the {limit} tokens {self.card.name} takes; "
                f"shorten it.",
                places,
            )

    @property
    def device_kind(self) -> str:
        return str(self.network.device.type)


def load_seq2seq(folder: ModelFolder) -> Seq2SeqModel:
    """Load an encoder-decoder; its config.json may state its questions' input under `ensue_questions`."""
    stated = folder.config.get(SETTINGS) or {}
    if not isinstance(stated, dict):
        raise EnsueError(f'{folder.path / "config.json"}: "{SETTINGS}" must be an object with a template.')
    return Seq2SeqModel(load(folder, "AutoModelForSeq2SeqLM", "seq2seq"), QuestionInput.from_settings(stated))
