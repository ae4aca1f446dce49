"""Our question generator as a small model folder: a low-rank adapter and the name of the model it belongs on."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from ensue.backends.hf.adapter import base_fingerprint
from ensue.backends.hf.loading import ADAPTER, Loaded, ModelFolder, load_base, save_folder
from ensue.backends.qg.questioner import CausalQuestioner, plain_prompt
from ensue.errors import EnsueError
from ensue.records import file_digest

ARCHITECTURE = "QuestionGenerator"
# Raised when the wording of `plain_prompt` changes: an adapter knows only the prompt it was trained with.
PROMPT = 1
# The linear layers of Llama-like models; attention and feed-forward alike.
TARGETS = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")


@dataclass(frozen=True)
class Adapter:
    """The shape of an adapter: rank, strength (alpha / rank scales it), and the layers it stands on."""

    rank: int = 6
    alpha: float = 12.0
    targets: tuple[str, ...] = TARGETS


def load_question_generator(folder: ModelFolder) -> CausalQuestioner:
    """Load the generator saved in a folder, its adapter merged into the model it was trained on."""
    from safetensors.torch import load_file

    from ensue.backends.hf.language import CausalModel
    from ensue.backends.hf.lora import add_lora, fill_learned, merge_lora

    config, options = folder.config, folder.options
    base = _base_model(folder)
    if config.get("prompt") != PROMPT:
        raise EnsueError(
            f"{folder.name} was trained with prompt {config.get('prompt')!r} where this version of ensue has "
            f"{PROMPT}; train it again, or use the version it was trained with."
        )
    network = base.network
    with folder.loading("a question generator"):
        shape = config["adapter"]
        add_lora(
            network, rank=int(shape["rank"]), alpha=float(shape["alpha"]), targets=tuple(shape["targets"])
        )
        fill_learned(network, load_file(folder.path / ADAPTER))
    merge_lora(network)
    card = replace(
        # Its questions end with the token it was trained with, whatever the base says.
        base.card,
        generation="",
        name=folder.name,
        kind="question-generator",
        source=str(folder.facts.get("source", folder.path)),
        identity={
            **base.card.identity,
            "dtype": options.dtype,
            # Of the adapter alone: a training leaves its checkpoints beside it.
            "adapter": file_digest(folder.path / ADAPTER),
            "end": str(config.get("end", base.tokenizer.eos_token)),
        },
        licence=str(folder.facts.get("licence", base.card.licence)),
        training=str(folder.facts.get("training", "")),
    )
    # Merged in full precision, and only then as small and where it is asked for.
    loaded = Loaded(folder.placed(network), base.tokenizer, card, options)
    return as_generator(CausalModel(loaded), config.get("end"))


def as_generator(model: Any, end: str | None = None) -> CausalQuestioner:
    """Prompt a causal model as our adapters are trained; its questions end with one token.

    That is the tokenizer's own end token, unless the adapter was trained with another: to one that never comes,
    every question would run on to its last token, and all beams would be the same few questions.
    """
    number = model.tokenizer.eos_token_id if end is None else model.tokenizer.get_vocab().get(end)
    if number is None:
        raise EnsueError(
            f"{model.card.name} ends its questions with {end!r}, which the tokenizer does not have."
        )
    return CausalQuestioner(model, plain_prompt, frozenset({int(number)}), int(number))


def save_question_generator(
    folder: Path, network: Any, *, base: str, fingerprint: str, adapter: Adapter, end: str
) -> None:
    """Save the adapters of a network in half precision, with what is needed to put them back."""
    import torch

    weights = {
        name: value.detach().to("cpu", torch.float16).contiguous()
        for name, value in network.named_parameters()
        if name.endswith((".down", ".up"))
    }
    config = {
        "architectures": [ARCHITECTURE],
        "base": base,
        "base_fingerprint": fingerprint,
        "end": end,
        "prompt": PROMPT,
        "adapter": asdict(adapter),
    }
    save_folder(folder, config, weights, ADAPTER)


def _base_model(folder: ModelFolder) -> Any:
    """Load the causal model the adapter was trained on, and no other."""
    from ensue.backends.hf.language import CausalModel

    base, stated = load_base(folder), folder.config["base"]
    if not isinstance(base, CausalModel):
        raise EnsueError(f"{folder.name} belongs on a causal language model, which {stated} is not.")
    if base_fingerprint(base.network) != folder.config.get("base_fingerprint"):
        raise EnsueError(
            f'{stated} is not the model {folder.name} was trained on: its weights differ; point "base" in '
            f"{folder.path / 'config.json'} to the right one."
        )
    return base
