"""Models: what they can do, and where they come from."""

from ensue.models.card import ModelCard, write_card_facts
from ensue.models.protocols import Encoder, Generator, Model, Scorer, abilities, require

__all__ = [
    "Encoder",
    "Generator",
    "Model",
    "ModelCard",
    "Scorer",
    "abilities",
    "require",
    "write_card_facts",
]
