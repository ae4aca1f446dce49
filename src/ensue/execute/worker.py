"""What a worker does in its own process: it loads each model once, keeps it, and does what the driver asks."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable, Mapping, Sequence, Set
from typing import Any, NamedTuple

from ensue.errors import RunFailed
from ensue.models.card import ModelCard
from ensue.models.protocols import Divisible, Model, Together, TokensTogether
from ensue.models.request import PartScore
from ensue.scoring.shares import Piece
from ensue.version import __version__

# What a model may be asked for from afar, in the words of the protocols.
_METHODS = (
    "answer",
    "as_chat",
    "ask",
    "check",
    "count_cut",
    "encode",
    "encode_tokens",
    "execute",
    "generate",
    "policy_signature",
    "prepare",
    "rate",
    "read",
    "room",
    "score_suffixes",
    "text_tokens",
)
_FACTS = ("device_kind", "layer_count", "max_prefix_tokens")


class ModelKey(NamedTuple):
    """A model under a name of the driver's, what loads it, and what the first that was loaded says it is."""

    name: str
    load: Callable[[], Model]
    identity: Mapping[str, str] | None = None


class ModelFacts(NamedTuple):
    """A model as one that does not have it knows it: its card, what it can do, and what it says of itself."""

    card: ModelCard
    methods: frozenset[str]
    facts: dict[str, Any]


class Place(NamedTuple):
    """Where a worker is, and with what it works."""

    version: str
    host: str
    process: int
    threads: int


class Worker:
    """Models by their keys. One thing is done at a time."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        # Before torch is imported, which reads how many threads it may use.
        os.environ.update(environment)
        from ensue.environment import avoid_trapping_tiles

        avoid_trapping_tiles()
        self._models: dict[str, Model] = {}
        self._loaded: list[str] = []

    def place(self) -> Place:
        """Say where this worker is; answered when it is ready."""
        return Place(__version__, platform.node(), os.getpid(), int(os.environ["OMP_NUM_THREADS"]))

    def loaded(self) -> list[str]:
        """Return the names of the models that were loaded, one for each time."""
        return self._loaded

    def spent(self) -> float:
        """Return the processor's seconds that this worker has had."""
        return time.process_time()

    def facts(self, key: ModelKey) -> ModelFacts:
        """Say what a model is."""
        model = self._model(key)
        methods = frozenset(method for method in _METHODS if hasattr(model, method))
        return ModelFacts(
            model.card, methods, {fact: getattr(model, fact) for fact in _FACTS if hasattr(model, fact)}
        )

    def call(self, key: ModelKey, method: str, arguments: Sequence[Any], options: Mapping[str, Any]) -> Any:
        """Do what a method of a model does."""
        return getattr(self._model(key), method)(*arguments, **options)

    def call_each(
        self, key: ModelKey, method: str, calls: Sequence[Sequence[Any]], options: Mapping[str, Any]
    ) -> list[Any]:
        """Do so with each of several arguments."""
        return [self.call(key, method, arguments, options) for arguments in calls]

    def together(self, key: ModelKey, method: str, texts: Sequence[Any]) -> list[list[int]]:
        """Say which texts a method of a model reads together: all of them, where the model does not say."""
        model = self._model(key)
        if method == "encode_tokens" and isinstance(model, TokensTogether):
            return model.tokens_together(texts)
        if method != "encode_tokens" and isinstance(model, Together):
            return model.together(texts)
        return [list(range(len(texts)))]

    def divide(self, key: ModelKey, parts: Sequence[Any], done: Set[int]) -> list[Any]:
        """Divide scoring into shares; what is not divisible is one."""
        model = self._model(key)
        return list(model.divide(parts, done)) if isinstance(model, Divisible) else [_Whole(parts, done)]

    def work(self, key: ModelKey, share: Any) -> list[Piece]:
        """Do a share of scoring."""
        model: Any = self._model(key)
        if isinstance(share, _Whole):
            found: list[tuple[int, PartScore]] = [
                item for batch in model.execute(share.parts, share.done) for item in batch
            ]
            return [Piece(part, score) for part, score in found]
        return [piece for batch in model.work(share) for piece in batch]

    def apply(self, function: Callable[[Any], Any], item: Any) -> Any:
        """Apply a function."""
        return function(item)

    def _model(self, key: ModelKey) -> Model:
        if key.name not in self._models:
            model = key.load()
            if key.identity is not None and dict(key.identity) != model.card.identity:
                raise RunFailed(
                    f"The worker on {platform.node()} loads another {model.card.name} than the first worker did "
                    f"({_difference(key.identity, model.card.identity)}); give all machines the same model."
                )
            self._models[key.name] = model
            self._loaded.append(model.card.name)
        return self._models[key.name]


class _Whole(NamedTuple):
    """All parts, for a scorer whose work is not divided."""

    parts: Sequence[Any]
    done: Set[int]


def _difference(one: Mapping[str, str], other: Mapping[str, str]) -> str:
    """Name the first fact in which two identities differ."""
    name = next(name for name in sorted({*one, *other}) if one.get(name) != other.get(name))
    return f"{name} {str(other.get(name))[:12]}, not {str(one.get(name))[:12]}"
