"""Our question generator as a small model folder: a low-rank adapter and the name of the model it belongs on."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from ensue.atomic import make_readable
from ensue.backends.hf.loading import Options, need_torch, pick_device, pick_dtype
from ensue.backends.qg.prompts import plain_prompt
from ensue.backends.qg.questioner import CausalQuestioner
from ensue.errors import EnsueError
from ensue.models.card import read_card_facts

ARCHITECTURE = "QuestionGenerator"
ADAPTER = "adapter.safetensors"
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


def base_fingerprint(network: Any) -> str:
    """A digest of a model's weights that is the same however they are stored: names, shapes and first rows.

    Not that of its files, which hold the version of the library that wrote them.
    """
    digest = hashlib.sha256()
    for name, value in sorted(network.named_parameters()):
        digest.update(f"{name} {tuple(value.shape)} ".encode())
        digest.update(value[:1].detach().float().cpu().numpy().tobytes())
    return digest.hexdigest()


def load_question_generator(
    folder: Path, name: str, config: dict[str, Any], options: Options
) -> CausalQuestioner:
    """The generator saved in a folder, its adapter merged into the model it was trained on."""
    need_torch(f"Loading {name}")
    from ensue.backends.hf.language import CausalModel
    from ensue.backends.hf.loading import Loaded
    from ensue.backends.hf.lora import add_lora, merge_lora

    base = _base_model(folder, name, config)
    if config.get("prompt") != PROMPT:
        raise EnsueError(
            f"{name} was trained with prompt {config.get('prompt')!r} where this version of ensue has {PROMPT}; "
            f"train it again, or use the version it was trained with."
        )
    network = base.network
    try:
        shape = dict(config["adapter"])
        adapter = Adapter(int(shape["rank"]), float(shape["alpha"]), tuple(shape["targets"]))
        names = add_lora(network, rank=adapter.rank, alpha=adapter.alpha, targets=adapter.targets)
        _fill(network, names, folder / ADAPTER)
    except EnsueError:
        raise
    except Exception as error:  # a broken folder raises types of several libraries
        reason = " ".join(str(error).split())[:200]
        raise EnsueError(
            f"{name} is no question generator that can be loaded ({type(error).__name__}): {reason}"
        ) from error
    merge_lora(network)
    # Merged in full precision, and only then as small and where it is asked for.
    network = (
        network.to(pick_dtype(options.dtype)).eval().requires_grad_(False).to(pick_device(options.device))
    )
    facts = read_card_facts(folder)
    card = replace(
        base.card,
        name=name,
        kind="question-generator",
        source=str(facts.get("source", folder)),
        identity={
            **base.card.identity,
            "dtype": options.dtype,
            "adapter": _digest(folder / ADAPTER),
            "end": str(config.get("end", base.tokenizer.eos_token)),
        },
        licence=str(facts.get("licence", base.card.licence)),
        training=str(facts.get("training", "")),
        # Its questions end with the token it was trained with, whatever the base says.
        generation="",
    )
    return as_generator(CausalModel(Loaded(network, base.tokenizer, card, options)), config.get("end"))


def as_generator(model: Any, end: str | None = None) -> CausalQuestioner:
    """A causal model prompted as our adapters are trained, whose questions end with one token.

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
    from safetensors.torch import save_file

    folder.mkdir(parents=True, exist_ok=True)
    weights = {
        name: value.detach().to("cpu", torch.float16).contiguous()
        for name, value in network.named_parameters()
        if name.endswith((".down", ".up"))
    }
    part = folder / f".{ADAPTER}.part"
    save_file(weights, part)
    part.replace(folder / ADAPTER)
    make_readable(folder)
    config = {
        "architectures": [ARCHITECTURE],
        "base": base,
        "base_fingerprint": fingerprint,
        "end": end,
        "prompt": PROMPT,
        "adapter": asdict(adapter),
    }
    (folder / "config.json").write_text(json.dumps(config, indent=2, sort_keys=True) + "\n", "utf-8")


def _digest(path: Path) -> str:
    """Of the adapter alone: a training leaves its checkpoints beside it."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _base_model(folder: Path, name: str, config: dict[str, Any]) -> Any:
    """The causal model the adapter was trained on, and no other."""
    from ensue.backends.hf.language import CausalModel
    from ensue.backends.names import load_model

    stated = config.get("base")
    if not isinstance(stated, str) or not stated:
        raise EnsueError(
            f"{folder / 'config.json'} names no base model, without which {name} cannot be used."
        )
    base = load_model(stated, device="cpu")
    if not isinstance(base, CausalModel):
        raise EnsueError(f"{name} belongs on a causal language model, which {stated} is not.")
    if base_fingerprint(base.network) != config.get("base_fingerprint"):
        raise EnsueError(
            f'{stated} is not the model {name} was trained on: its weights differ; point "base" in '
            f"{folder / 'config.json'} to the right one."
        )
    return base


def _fill(network: Any, names: list[str], path: Path) -> None:
    """Put the saved weights into the adapters just added; all of them and nothing else."""
    from safetensors.torch import load_file

    held = load_file(path)
    wanted = {f"{name}.{part}" for name in names for part in ("down", "up")}
    if set(held) != wanted:
        odd = sorted(set(held) ^ wanted)
        raise EnsueError(f"{path} does not fit the model: {odd[0]} and {len(odd) - 1} more are amiss.")
    parameters = dict(network.named_parameters())
    for name, value in held.items():
        parameters[name].data.copy_(value.float())
