"""Models that count: they take what a benchmark gives a model, count what it would cost, and answer with stand-ins.

Each is the model it stands for but for the network: texts are tokenised, cut, windowed, planned and refused as they
would be. So every benchmark is planned by its own code, and one from another package too.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Generator, Iterator, Sequence, Set
from dataclasses import astuple, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from ensue.backends.hf.encoder import VectorModel
from ensue.backends.hf.generate import decoding
from ensue.backends.hf.language import CausalModel, MaskedModel
from ensue.backends.hf.loading import Loaded
from ensue.backends.hf.rater import CoherenceRater
from ensue.backends.hf.reader import SentenceReader
from ensue.backends.qa.answerer import AnswerModel
from ensue.backends.qg.questioner import CausalQuestioner, check_asked
from ensue.errors import EnsueError
from ensue.models.protocols import Answerer, AnswerSpan, Asked, FoundAnswer, Model, QuestionSearch
from ensue.models.request import MaskedPart, Part, PartScore, Policy, Prepared, Request, TokenPart
from ensue.runs.planning.tally import (
    Ledger,
    Tally,
    count_batches,
    count_masked,
    row_padding,
)
from ensue.runs.planning.target import Counter, Target
from ensue.scoring.network import Network
from ensue.scoring.tokens import tokenise

# Of texts beyond so many characters, blocks of consecutive ones are tokenised and planned: so many blocks where one
# call has all, and ever less of each where there are many.
SAMPLED, BLOCKS = 12_000_000, 12
# A question is this long, where its search may go on to 60 tokens: the mean over QAGS' own.
QUESTION_TOKENS = 14
_STUB = -1
_CHARS = 4
_QUOTED = re.compile("“(.*?)”")
_WORDS = 4096


class _Vectors(VectorModel):
    """Encodes with stand-ins: bags of words, so that what is trained on them behaves as it does on vectors."""

    counter: Counter

    @property
    def device_kind(self) -> str:
        return self.counter.target.kind

    def encode(
        self, texts: Sequence[str], *, layers: Sequence[int] | None = None, pooling: str | None = None
    ) -> npt.NDArray[np.float32]:
        self._check(layers, pooling or self.pooling)
        self.counter.called("encoded", "encode", texts, layers=layers, pooling=pooling)
        self._count(texts)
        vectors = _bags(texts, self.counter.shape.width)
        return vectors if layers is None else np.repeat(vectors[:, None], len(layers), axis=1)

    def encode_tokens(self, texts: Sequence[str], layer: int | None = None) -> list[npt.NDArray[np.float32]]:
        self.counter.called("encoded", "encode_tokens", texts, layer=layer)
        lengths = self._count(texts)
        draw = np.random.default_rng(0)
        return [draw.standard_normal((length, self.counter.shape.width), np.float32) for length in lengths]

    def _count(self, texts: Sequence[str]) -> list[int]:
        with self.counter.ledger.within():
            lengths = [len(row) for row in self._tokenised(texts)["input_ids"]] if texts else []
        tally = self.counter.count_read(lengths)
        tally.characters = sum(map(len, texts))
        self.counter.work("encoded").add(tally)
        return lengths


def _bags(texts: Sequence[str], width: int) -> npt.NDArray[np.float32]:
    """Return the sum of the random vectors of each text's words, as long as 1."""
    table = np.random.default_rng(0).standard_normal((_WORDS, width), np.float32)
    found = np.zeros((len(texts), width), np.float32)
    for place, text in enumerate(texts):
        words = [zlib.crc32(word.encode("utf-8", "replace")) % _WORDS for word in text.lower().split()]
        found[place] = table[words].sum(0) if words else table[0]
    found /= np.maximum(np.linalg.norm(found, axis=1, keepdims=True), 1e-6)
    return found


def _marked(loaded: Loaded, counter: Counter) -> Loaded:
    """Return a model under another identity: what stands in for its vectors and scores must never pass for them."""
    identity = {**loaded.card.identity, "planned": counter.ledger.mark}
    return replace(loaded, card=replace(loaded.card, identity=identity))


class CountingEncoder(_Vectors):
    """An encoder that counts."""

    def __init__(self, model: VectorModel, counter: Counter) -> None:
        super().__init__(_marked(model._loaded, counter))
        self.counter, self.pooling, self.normalise = counter, model.pooling, model.normalise


class _Scoring(_Vectors):
    """What counting scorers share: a call that is too long is counted in blocks of it."""

    def __init__(self, loaded: Loaded, counter: Counter) -> None:
        super().__init__(_marked(loaded, counter))
        self.counter = counter
        # The block of each part that is looked at, by its identity, until it has been.
        self._sampled: dict[int, tuple[int, Part]] = {}
        self._stubs = 0
        # The tokens of the stream under way so far.
        self._fed = 0.0

    def _prepare(self, requests: Sequence[Request], policy: Policy) -> list[Prepared]:
        raise NotImplementedError  # each kind of model makes its own parts

    def _tally(self, parts: Sequence[Any], whole: float) -> tuple[Tally, int]:
        """Count parts, of which there are `whole` times as many in all."""
        raise NotImplementedError

    def prepare(self, requests: Sequence[Request], policy: Policy) -> list[Prepared]:
        """Prepare requests as the model does, or, where they are many, blocks of them and stubs for the rest."""
        with self.counter.ledger.within():
            return self._ready(requests, policy)

    def _ready(self, requests: Sequence[Request], policy: Policy) -> list[Prepared]:
        self.counter.called("scored", "score", requests, policy=policy)
        work = self.counter.work("scored")
        sizes = _new_characters(requests)
        work.characters += float(sizes.sum())
        work.texts += len(requests)
        if work.counted.characters + sizes.sum() <= SAMPLED:
            ready = self._prepare(requests, policy)
            work.counted.characters += float(sizes.sum())
            return ready
        # As large a part of this call as may be looked at of all that has come.
        blocks = _blocks(sizes, SAMPLED * float(sizes.sum()) / work.characters)
        prepared: list[Prepared] = [Prepared(())] * len(requests)
        taken = np.zeros(len(requests), np.bool_)
        for begin, end in blocks:
            taken[begin:end] = True
            ready = self._prepare(requests[begin:end], policy)
            prepared[begin:end] = ready
            number = len(work.blocks)
            work.blocks.append(Tally(characters=float(sizes[begin:end].sum())))
            work.counted.characters += float(sizes[begin:end].sum())
            self._sampled |= {id(part): (number, part) for one in ready for part in one.parts}
        for place in np.flatnonzero(~taken).tolist():
            prepared[place] = self._stub(requests[place])
        return prepared

    def _stub(self, request: Request) -> Prepared:
        """Stand in for a request that is not looked at: as many tokens as its text would have at four characters."""
        self._stubs += 1
        count = max(len(request.continuation) // _CHARS, 1)
        ids = np.asarray([_STUB, self._stubs, count], np.int32)
        spans = tuple((i * _CHARS, (i + 1) * _CHARS) for i in range(count)) if request.detail else None
        used = None if request.cut is None else len(request.context) // _CHARS
        return Prepared((TokenPart(ids, 1),), tokens=count, spans=spans, context_tokens=used)

    def execute(self, parts: Sequence[Part], done: Set[int]) -> Iterator[list[tuple[int, PartScore]]]:
        """Count the parts, and answer with log-probabilities that depend on each part's tokens alone."""
        yield from self.execute_more(parts, done, share=1.0, last=True)

    def execute_more(
        self, parts: Sequence[Part], done: Set[int], *, share: float, last: bool
    ) -> Generator[list[tuple[int, PartScore]], None, set[int]]:
        real: dict[int | None, list[Any]] = {}
        for part in parts:
            if not _is_stub(part):
                block, _ = self._sampled.pop(id(part), (None, part))
                real.setdefault(block, []).append(part)
        work = self.counter.work("scored")
        for number, some in real.items():
            with self.counter.ledger.within():
                tally, held = self._tally(some, len(parts) / len(some) / share)
            work.held = max(work.held, held)
            work.counted += tally
            self._fed += tally.fed
            if number is not None:
                work.blocks[number] += tally
        if last:
            # A row that a portion does not fill is filled by the next one.
            work.padding += row_padding(self._fed, self.counter.budget.batch) if work.compiled else 0.0
            work.streams, self._fed = work.streams + 1, 0.0
        yield [(place, PartScore(_stand_in(part))) for place, part in enumerate(parts) if place not in done]

        return set()


def _new_characters(requests: Sequence[Request]) -> npt.NDArray[np.int64]:
    """Count the characters of each request, without a context that is the one before's."""
    before = ["", *(one.context for one in requests)]
    return np.asarray(
        [
            len(one.continuation) + (0 if one.context is last else len(one.context))
            for one, last in zip(requests, before, strict=False)
        ]
    )


def _blocks(sizes: npt.NDArray[np.int64], wanted: float) -> list[tuple[int, int]]:
    """Choose blocks of consecutive texts, evenly apart, that have about so many characters."""
    reached = np.cumsum(sizes)
    count = max(round(BLOCKS * wanted / SAMPLED), 1)
    starts = (np.arange(count) + 0.5) / count * reached[-1] - wanted / count / 2
    found: list[tuple[int, int]] = []
    for start in starts:
        begin = int(np.searchsorted(reached, max(start, 0)))
        end = int(np.searchsorted(reached, max(start, 0) + wanted / count)) + 1
        begin = max(begin, found[-1][1] if found else 0)
        if begin < min(end, len(sizes)):
            found.append((begin, min(end, len(sizes))))
    return found


def _is_stub(part: Part) -> bool:
    return isinstance(part, TokenPart) and len(part.ids) == 3 and int(part.ids[0]) == _STUB


def _stand_in(part: Part) -> npt.NDArray[np.float64]:
    """Return log-probabilities that nobody measured, one a scored token."""
    if _is_stub(part):
        assert isinstance(part, TokenPart)
        return np.full(int(part.ids[2]), -3.0) - (int(part.ids[1]) % 97) / 97
    if isinstance(part, TokenPart):
        return -3.0 - (part.ids[part.start :].astype(np.float64) * 31 % 97) / 97
    assert isinstance(part, MaskedPart)
    return -3.0 - (part.ids[list(part.targets)].astype(np.float64) * 31 % 97) / 97


class CountingCausal(_Scoring, CausalModel):
    """A causal model that counts; how it may be run is assumed from its configuration, not found out."""

    @cached_property
    def _way(self) -> tuple[bool, bool]:
        network = Network(self.network)
        shares = network.takes_cache and network.takes_positions
        if not shares:
            self.counter.ledger.assume(f"{self.card.name} shares no prefixes, as recurrent models do not")
        return shares, shares and network.sees_by_mask

    def _prepare(self, requests: Sequence[Request], policy: Policy) -> list[Prepared]:
        return CausalModel.prepare(self, requests, policy)

    def _tally(self, parts: Sequence[TokenPart], whole: float) -> tuple[Tally, int]:
        share, pack = self._way
        return self.counter.count_scored(parts, share=share, pack=pack, whole=whole)

    def generate(
        self, prompts: Sequence[str], *, max_tokens: int = 64, stop: Sequence[str] = (), **options: Any
    ) -> list[str]:
        counter = self.counter
        counter.called("written", "generate", prompts, max_tokens=max_tokens, stop=stop, **options)
        search = decoding(options)
        tokens = min(max(counter.target.written or max_tokens, search["min_new_tokens"]), max_tokens)
        counter.ledger.assume(f"each text that is generated has {tokens} tokens (at most {max_tokens})")
        lengths = [len(ids) for ids in tokenise(self.tokenizer, prompts)]
        read = counter.count_read([max(length, 1) for length in lengths])
        read.characters = sum(map(len, prompts))
        tally = read + counter.count_search(lengths, search["num_beams"], tokens)
        counter.work("written").add(tally, held=max(lengths, default=0) + tokens)
        return [_sentences(tokens)] * len(prompts)

    @cached_property
    def _questioner(self) -> CausalQuestioner:
        found = super()._questioner
        return CountingQuestioner(self, found.prompt, found.ends, found.end)


def _sentences(tokens: int) -> str:
    """Return words as a text of so many tokens has."""
    return "It is said here, and it is so. " * max(tokens // 10, 1)


class CountingQuestioner(CausalQuestioner):
    """Asks stand-ins: questions of the usual length with the answer in quotes, where a counting answerer finds it."""

    def __init__(self, model: CountingCausal, prompt: Any, ends: frozenset[int], end: int) -> None:
        super().__init__(model, prompt, ends, end)
        self.counter = model.counter

    def ask(self, contexts: Sequence[str], answers: Sequence[AnswerSpan], **search: Any) -> list[list[Asked]]:
        check_asked(contexts, answers)
        counter = self.counter
        counter.called("asked", "ask", contexts, answers, **search)
        count, beams, least, most, _, _ = astuple(QuestionSearch(**search))
        tokens = min(max(QUESTION_TOKENS, least), most)
        counter.ledger.assume(
            f"searches for questions end after {tokens} tokens (at most {most}), each is kept"
        )
        prompts = self._prompts(contexts, answers)
        self._check_room(prompts, most)
        distinct = list(dict.fromkeys(prompts))
        rows = [
            TokenPart(np.asarray([*p.shared, *p.own, 0], np.int32), len(p.shared) + len(p.own))
            for p in distinct
        ]
        tally, held = count_batches(rows, counter.budget, counter.shape.window, share=True, pack=False)
        tally.scored = 0
        tally.characters = sum(map(len, contexts))
        tally += counter.count_search([len(row.ids) - 1 for row in rows], beams, tokens)
        counter.work("asked").add(tally, held=held)
        return [
            [
                Asked(
                    f"What does the text say about “{text[span.start : span.end]}” as number {i}?",
                    -1.0 - i / 10,
                )
                for i in range(count)
            ]
            for text, span in zip(contexts, answers, strict=True)
        ]


class CountingMasked(_Scoring, MaskedModel):
    """A masked model that counts."""

    def _prepare(self, requests: Sequence[Request], policy: Policy) -> list[Prepared]:
        return MaskedModel.prepare(self, requests, policy)

    def _tally(self, parts: Sequence[MaskedPart], whole: float) -> tuple[Tally, int]:
        tally = count_masked(parts)
        tally.passes = -(-tally.fed // self.counter.budget.batch)
        return tally, 0


class CountingAnswerer(AnswerModel):
    """Answers stand-ins: what a question has in quotes, where the text has it too."""

    def __init__(self, model: AnswerModel, counter: Counter) -> None:
        super().__init__(model.network, model.tokenizer, model.card, model.reading, model.device)
        self.counter = counter

    @property
    def device_kind(self) -> str:
        return self.counter.target.kind

    def answer(self, questions: Sequence[str], contexts: Sequence[str]) -> list[FoundAnswer]:
        self.counter.called("answered", "answer", questions, contexts)
        self.best_spans(questions, contexts)
        found = []
        for question, context in zip(questions, contexts, strict=True):
            quoted = _QUOTED.search(question)
            start = context.find(quoted[1]) if quoted else -1
            text = quoted[1] if quoted and start >= 0 else ""
            found.append(FoundAnswer(text, max(start, 0), max(start, 0) + len(text), 1.0 if text else -1.0))
        return found

    def _read(self, jobs: Sequence[Any]) -> list[Any]:
        from ensue.backends.qa.answerer import _Best

        tally = self.counter.count_read([window.length for _, _, window in jobs])
        tally.characters = sum(
            int(text.offsets[w.end - 1, 1] - text.offsets[w.begin, 0]) for _, text, w in jobs
        )
        self.counter.work("answered").add(tally)
        return [_Best(0.0, 0.0, 0, 0)] * len(jobs)


class CountingReader(SentenceReader):
    """Says of every sentence that it belongs, and counts what was read."""

    def __init__(self, model: SentenceReader, counter: Counter) -> None:
        self.counter, self.tokens = counter, model.tokens
        self._vectors = CountingEncoder(model._vectors, counter)
        # Whether padding is heeded cannot be found out without weights; all encoders that were tried heed it.
        self._vectors.network._ensue_heeds_mask = True

    def read(self, texts: Sequence[Sequence[str]]) -> list[list[float]]:
        self.counter.called("encoded", "read", texts)
        return super().read(texts)

    def _logits(self, rows: Sequence[Any]) -> list[npt.NDArray[np.float32]]:
        self.counter.work("encoded").add(self.counter.count_read([len(row.ids) for row in rows]))
        return [np.ones(int(row.owners.max(initial=-1)) + 1, np.float32) for row in rows]


def counting_model(model: Model, ledger: Ledger, target: Target) -> Model:
    """Return the model that counts in place of one that was loaded on the device `meta`; what has no network is
    itself."""
    from ensue.backends.hf.language import LanguageModel

    name = model.card.name

    def counter(network: Any) -> Counter:
        return Counter(ledger, target, network, name)

    if isinstance(model, CausalModel):
        return CountingCausal(model._loaded, counter(model.network))
    if isinstance(model, MaskedModel):
        return CountingMasked(model._loaded, counter(model.network))
    if isinstance(model, CausalQuestioner):
        inner = CountingCausal(replace(model.model._loaded, card=model.card), counter(model.model.network))
        return CountingQuestioner(inner, model.prompt, model.ends, model.end)
    if isinstance(model, AnswerModel):
        return CountingAnswerer(model, counter(_trunk_of(model)))
    if isinstance(model, CoherenceRater):
        model._vectors = CountingEncoder(model._vectors, counter(model._vectors.network))
        return model
    if isinstance(model, VectorModel) and not isinstance(model, LanguageModel):
        return CountingEncoder(model, counter(model.network))
    if isinstance(model, SentenceReader):
        return CountingReader(model, counter(model._vectors.network))
    if hasattr(model, "network") or isinstance(model, Answerer):
        raise EnsueError(
            f"ensue plan counts models that score, encode, generate, ask and answer, and {name} "
            f"({model.card.kind}) is none of these; plan with another model, or measure a few items with --limit."
        )
    return model


def _trunk_of(model: AnswerModel) -> Any:
    """Return the network of an answerer as transformers made it, whose configuration says its shape."""
    import torch

    network: Any = model.network
    modules = network.modules() if isinstance(network, torch.nn.Module) else ()
    found = next((one for one in modules if hasattr(one, "config") and hasattr(one, "base_model")), None)
    if found is None:
        raise EnsueError(f"{model.card.name} does not say its shape, so that it cannot be planned.")
    return found
