"""Language models that stand on others: adapters, and encoders that were given a masked-language-model head."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import nn

from ensue.backends.hf.adapter import adapted_identity, open_adapter
from ensue.backends.hf.encoder import EncoderModel
from ensue.backends.hf.language import CausalModel, MaskedModel
from ensue.backends.hf.loading import Loaded, ModelFolder, max_length
from ensue.errors import EnsueError

CAUSAL, MASKED = "AdaptedCausalLM", "AdaptedMaskedLM"


def load_adapted_causal(folder: ModelFolder) -> CausalModel:
    """Load the adapter of a folder on the causal model it was trained on."""
    base, network = open_adapter(folder, "an adapted language model", _causal, trunk_of)
    return CausalModel(_loaded(folder, base, network, "causal"))


def load_adapted_masked(folder: ModelFolder) -> MaskedModel:
    """Load the adapter of a folder, and the head where its base has none, as a masked language model."""
    base, network = open_adapter(folder, "an adapted language model", masked_network, trunk_of)
    return MaskedModel(_loaded(folder, base, network, "masked"))


def trunk_of(network: Any) -> nn.Module:
    """Return what of a language model lies below its head."""
    trunk: nn.Module = network.base_model
    return trunk


def _causal(base: Any) -> nn.Module:
    if not isinstance(base, CausalModel):
        raise EnsueError(f"{base.card.name} is not a causal language model, which this adapter belongs on.")
    return base.network.requires_grad_(False)


def masked_network(base: Any) -> Any:
    """Return the masked language model of an encoder: its own weights under a new head, tied to its embeddings.

    The new head's weights are drawn at random; they can learn, and nothing else. A model that has a head keeps it.
    """
    import transformers

    if isinstance(base, MaskedModel):
        return base.network
    if not isinstance(base, EncoderModel):
        raise EnsueError(
            f"{base.card.name} is not an encoder, so it cannot be given a masked-language-model head."
        )
    trunk = base.network.base_model
    try:
        network = transformers.AutoModelForMaskedLM.from_config(trunk.config, dtype=torch.float32)
    except ValueError as error:
        raise EnsueError(
            f"{base.card.name} ({type(trunk).__name__}) has no kind of masked-language-model head."
        ) from error
    missing, _ = network.base_model.load_state_dict(trunk.state_dict(), strict=False)
    if missing:
        raise EnsueError(f"{base.card.name} lacks {missing[0]}, which a masked language model needs.")
    network.tie_weights()
    network.eval().requires_grad_(True)
    network.base_model.requires_grad_(False)
    return network.to(trunk.device)


def room_of_positions(base: Any) -> int | None:
    """Return how many tokens a network has positions for: a sentence encoder states where sentences are cut, too."""
    return max_length(base.network, base.tokenizer)


def _loaded(folder: ModelFolder, base: Any, network: nn.Module, kind: str) -> Loaded:
    facts = folder.facts
    card = replace(
        base.card,
        name=folder.name,
        kind=kind,
        source=str(facts.get("source", folder.path)),
        identity=adapted_identity(folder, base),
        licence=str(facts.get("licence", base.card.licence)),
        training=str(facts.get("training", "")),
        max_length=room_of_positions(base),
        # A base's note, package and calibrations are of the base.
        weights_name="",
        note="",
        package="",
        following=stated if isinstance(stated := facts.get("following"), dict) else {},
    )
    # Merged in full precision, and only then as small and where it is asked for.
    return Loaded(folder.placed(network), base.tokenizer, card, folder.options)
