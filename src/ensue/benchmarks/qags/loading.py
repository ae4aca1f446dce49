"""The models QAGS is made of, by name; the default ones come with the package."""

from __future__ import annotations

from typing import Any

from ensue.models.protocols import Answerer, Encoder, Model, Questioner, require

QUESTIONER, ANSWERER = "smollm2-qg", "minilm-qa"


def load_by_name(name: str, **options: Any) -> Model:
    """Any model."""
    # Only here, so that reading data and settings needs no model library.
    from ensue.backends.names import load_model

    return load_model(name, **options)


def load_questioner(name: str = QUESTIONER, **options: Any) -> Questioner:
    """A model that asks."""
    return require(load_by_name(name, **options), Questioner, "QAGS")


def load_answerer(name: str = ANSWERER, **options: Any) -> Answerer:
    """A model that answers."""
    return require(load_by_name(name, **options), Answerer, "QAGS")


def load_encoder(name: str, **options: Any) -> Encoder:
    """A model whose vectors compare answers."""
    return require(load_by_name(name, **options), Encoder, "Comparing answers by their vectors")
