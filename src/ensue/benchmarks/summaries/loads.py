"""Further models of a run (a retriever, BERTScore's encoder): loaded once each, and named in its signature."""

from __future__ import annotations

from ensue.benchmarks.base import LoadModel
from ensue.models.card import ModelCard
from ensue.models.protocols import Model


class Loads:
    """Loads models by name and remembers them."""

    def __init__(self, load: LoadModel) -> None:
        self._load = load
        self._models: dict[str, Model] = {}

    def __call__(self, name: str) -> Model:
        if name not in self._models:
            self._models[name] = self._load(name)
        return self._models[name]

    @property
    def cards(self) -> dict[str, ModelCard]:
        return {name: model.card for name, model in self._models.items()}
