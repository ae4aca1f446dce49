"""What a model can do, as small protocols; a benchmark states which of them it needs."""

from __future__ import annotations

from collections import abc
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeVar, runtime_checkable

import numpy as np
import numpy.typing as npt

from ensue.errors import EnsueError
from ensue.models.card import ModelCard
from ensue.models.request import Part, PartScore, Policy, Prepared, Request
from ensue.parallel import side_by_side

Given = TypeVar("Given")
Made = TypeVar("Made")


@runtime_checkable
class Model(Protocol):
    """Anything with a card."""

    @property
    def card(self) -> ModelCard: ...


@runtime_checkable
class Scorer(Model, Protocol):
    """Gives log-likelihoods of text. `ensue.scoring.score` drives it; nobody else need call these."""

    def check(self, policy: Policy) -> None:
        """Raise EnsueError where this scorer cannot follow the policy."""

    def prepare(self, requests: Sequence[Request], policy: Policy) -> list[Prepared]:
        """Turn requests into parts (tokenise, mark the boundary, cut windows)."""

    def execute(self, parts: Sequence[Part], done: Set[int]) -> Iterator[list[tuple[int, PartScore]]]:
        """Score the parts not in `done`, batch by batch; batches do not depend on `done`."""

    def policy_signature(self, policy: Policy) -> str:
        """Return the scorer's choices (BOS, first token, boundary, window, precision) in a few words."""


@runtime_checkable
class Streaming(Scorer, Protocol):
    """A scorer that is better given parts while others are still made ready."""

    def execute_more(
        self, parts: Sequence[Part], done: Set[int], *, share: float, last: bool
    ) -> abc.Generator[list[tuple[int, PartScore]], None, set[int]]:
        """Score parts as `execute` does, which are such a share of all there will be; return those that are to be
        given again with more, unless these are the last.

        Which these are depends on the parts and the share alone.
        """


@runtime_checkable
class Divisible(Scorer, Protocol):
    """A scorer whose work can be done in shares by several of its kind, with the scores of one to the last bit."""

    def divide(self, parts: Sequence[Part], done: Set[int]) -> Iterator[Any]:
        """Yield shares of what `execute` would do; they need nothing of each other and can be pickled."""

    def work(self, share: Any) -> Iterator[list[Any]]:
        """Do a share, and yield `scoring.shares.Piece`s."""


@runtime_checkable
class Bounded(Model, Protocol):
    """Takes only so much text at once."""

    def room(self, policy: Policy) -> int:
        """Return how many tokens of text fit, its own special tokens not counted."""


@runtime_checkable
class Encoder(Model, Protocol):
    """Turns texts into vectors."""

    def encode(
        self, texts: Sequence[str], *, layers: Sequence[int] | None = None, pooling: str | None = None
    ) -> npt.NDArray[np.float32]:
        """Return an array texts × width, or texts × layers × width when `layers` is given (0 is the embedding)."""


@runtime_checkable
class Cutting(Encoder, Protocol):
    """An encoder that reads only the beginning of a long text, and can say of which."""

    def count_cut(self, texts: Sequence[str]) -> int:
        """Count the texts that are longer than it takes."""


@runtime_checkable
class Together(Model, Protocol):
    """A model that says which texts it reads together, so that others of its kind can each read some of them and get
    the same to the last bit."""

    def together(self, texts: Sequence[Any]) -> list[list[int]]:
        """Return the places of the texts that are read in one batch, batch after batch."""


@runtime_checkable
class Layered(Encoder, Protocol):
    """An encoder that gives vectors of any of its layers, as many as are asked for in one pass."""

    @property
    def layer_count(self) -> int:
        """How many layers lie above the embedding; `range(layer_count + 1)` names them all."""


class TextTokens(NamedTuple):
    """A text's tokens as numbers, and which of them the tokenizer put there itself."""

    ids: list[int]
    special: list[bool]


@runtime_checkable
class TokenEncoder(Model, Protocol):
    """Turns each token of a text into a vector, special ones too."""

    def encode_tokens(self, texts: Sequence[str], layer: int | None = None) -> list[npt.NDArray[np.float32]]:
        """Return an array tokens × width of each text, of the last layer where none is named (0 is the embedding)."""

    def text_tokens(self, texts: Sequence[str]) -> list[TextTokens]:
        """Return the tokens those vectors belong to."""


@runtime_checkable
class TokensTogether(TokenEncoder, Protocol):
    """Says of vectors of tokens, too, which texts are read together."""

    def tokens_together(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the places of the texts whose tokens are read in one batch, batch after batch."""


@runtime_checkable
class Generator(Model, Protocol):
    """Continues prompts."""

    def generate(
        self, prompts: Sequence[str], *, max_tokens: int = 64, stop: Sequence[str] = (), **options: Any
    ) -> list[str]: ...


@runtime_checkable
class EachGenerator(Generator, Protocol):
    """A generator that gives its texts one by one; none depends on what else is asked for."""

    def generate_each(
        self, prompts: Sequence[str], *, max_tokens: int = 64, stop: Sequence[str] = (), **options: Any
    ) -> Iterator[list[tuple[int, str]]]:
        """Yield texts as they are finished, in any order, each with the place of its prompt."""


@runtime_checkable
class TextCutter(Model, Protocol):
    """Cuts texts in its own tokens."""

    def cut_texts(self, texts: Sequence[str], tokens: int, *, last: bool = False) -> list[str]:
        """Return the first so many tokens of each text, or the last ones."""


@runtime_checkable
class Talker(Model, Protocol):
    """Knows how a conversation with it is written down."""

    def as_chat(self, prompt: str, policy: Policy) -> str:
        """Write down what a user says as the text after which the model replies, without the policy's BOS."""


class AnswerSpan(NamedTuple):
    """Characters `start` to `end` of a text: what a question is to be asked about."""

    start: int
    end: int


class Asked(NamedTuple):
    """A question somebody came up with, and its log-probability (the mean a token)."""

    question: str
    score: float


class FoundAnswer(NamedTuple):
    """Where a text answers a question; `text` is empty where it is said not to. `score` is the log-probability of the
    span less that of there being no answer: above 0 the text more likely answers than not."""

    text: str
    start: int
    end: int
    score: float


@dataclass(frozen=True)
class QuestionSearch:
    """How questions are searched for: at most `count` of `beams` hypotheses, each of `min_tokens` to `max_tokens`,
    ranked by length to the power `length_penalty`, no n-gram of `block_ngrams` tokens twice."""

    count: int = 10
    beams: int = 10
    min_tokens: int = 8
    max_tokens: int = 60
    length_penalty: float = 1.0
    block_ngrams: int = 3

    def __post_init__(self) -> None:
        if not 1 <= self.count <= self.beams:
            raise EnsueError(
                f"{self.beams} beams give 1 to {self.beams} questions, not {self.count}; use more beams."
            )


@runtime_checkable
class Questioner(Model, Protocol):
    """Asks questions that a given part of a text answers."""

    def ask(self, contexts: Sequence[str], answers: Sequence[AnswerSpan], **search: Any) -> list[list[Asked]]:
        """Ask about the answer marked in each context, likeliest first; `search` are fields of `QuestionSearch`."""


@runtime_checkable
class Answerer(Model, Protocol):
    """Answers questions with a part of a text, or says that the text does not answer."""

    def answer(self, questions: Sequence[str], contexts: Sequence[str]) -> list[FoundAnswer]:
        """Return one answer for each question and its context; long contexts are read in overlapping windows."""


@runtime_checkable
class SuffixScorer(Model, Protocol):
    """Says how well whole suffixes follow a context, at several prefix lengths at once."""

    @property
    def max_prefix_tokens(self) -> int:
        """The longest prefix it can use."""

    def score_suffixes(
        self, context: str, suffixes: Sequence[str], *, prefix_tokens: Sequence[int], suffix_tokens: int
    ) -> list[list[float]]:
        """Score each suffix, cut to so many tokens, after each prefix length; the higher, the better."""


@runtime_checkable
class Rater(Model, Protocol):
    """Rates how coherent whole texts are, as a model trained to tell good texts from bad ones does."""

    def rate(self, texts: Sequence[Sequence[str]]) -> list[float]:
        """Return one number a text, given as its sentences; the higher, the more coherent. Texts of one sentence are
        rated, too. Ratings of texts of the same length may be compared, whatever the model."""


@runtime_checkable
class CuttingRater(Rater, Protocol):
    """A rater that reads only the beginning of a long text, and can say of which."""

    def count_cut(self, texts: Sequence[Sequence[str]]) -> int:
        """Count the texts that are longer than it takes."""


@runtime_checkable
class Reader(Model, Protocol):
    """Says of each sentence of a text whether it belongs there, as a model trained to find intruders does."""

    def read(self, texts: Sequence[Sequence[str]]) -> list[list[float]]:
        """Return a number a sentence of each text, given as its sentences: the higher, the more it belongs."""


@runtime_checkable
class Placed(Protocol):
    """A model that says on what kind of device it runs."""

    @property
    def device_kind(self) -> str:
        """`cpu`, `cuda` and so on."""


@runtime_checkable
class ManyHands(Model, Protocol):
    """A model that others have, each of which does a call of its own at the same time."""

    @property
    def at_once(self) -> int:
        """How many calls may be under way at once, from threads of their own."""


def each_call(
    model: Model | None, function: Callable[[Given], Made], items: Iterable[Given]
) -> Iterator[Made]:
    """`function`, which calls a model, of every item in turn; side by side where the model has many hands.

    Items are the portions that one process takes one by one, so a call gives the same wherever it is done.
    """
    if isinstance(model, ManyHands):
        return side_by_side(function, items, model.at_once)
    return map(function, items)


def portion_of(model: Model, *, on_cpu: int, elsewhere: int, on_gpu: int | None = None) -> int:
    """Say how many requests to hand over at once where each portion is kept when it is done.

    Few on a slow machine, so that little is lost by a kill. By the kind of device and never by the clock: the same
    texts must meet in a batch when a run goes on.
    """
    kind = model.device_kind if isinstance(model, Placed) else None
    return {"cpu": on_cpu, "cuda": on_gpu or elsewhere}.get(kind or "", elsewhere)


Capability = TypeVar("Capability", bound=Model)

_ABILITIES: dict[type, str] = {
    Scorer: "score text",
    Encoder: "encode text",
    Generator: "generate text",
    SuffixScorer: "rank suffixes",
    Questioner: "ask questions",
    Answerer: "answer questions",
    Rater: "rate how coherent a text is",
    Reader: "say which sentences belong",
}
# Finer ones, asked for by name; a list of what a model can do has the coarser one already.
_FINER: dict[type, str] = {TokenEncoder: "give vectors of tokens", TextCutter: "cut texts in its tokens"}


def room_of(model: Model, policy: Policy) -> int | None:
    """Return how many tokens of text a model takes at once under a policy; None where it has no limit."""
    return model.room(policy) if isinstance(model, Bounded) else model.card.max_length


def abilities(model: Model) -> list[str]:
    """Return the capabilities of a model, in words."""
    return [words for protocol, words in _ABILITIES.items() if isinstance(model, protocol)]


def require(model: Model, capability: type[Capability], why: str) -> Capability:
    """Return the model if it has the capability; otherwise raise one sentence that says what it can do instead."""
    if isinstance(model, capability):
        return model
    can = " and ".join(abilities(model))
    instead = f"can only {can}" if can else "cannot; `ensue models list` says what each name is for"
    raise EnsueError(
        f"{why} needs a model that can {(_ABILITIES | _FINER)[capability]}, but {model.card.name} {instead}."
    )
