"""Answerers: an encoder with a span head, and model folders, any Hugging Face one or our own, a small adapter."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from torch import Tensor, nn

from ensue.atomic import make_readable
from ensue.backends.hf.adapter import AdapterShape, adapt
from ensue.backends.hf.loading import (
    ADAPTER,
    ModelFolder,
    load,
    load_base,
    max_length,
    pick_device,
    pick_dtype,
    save_folder,
    write_config,
)
from ensue.backends.hf.lora import fill_learned, merge_lora
from ensue.backends.qa.answerer import AnswerModel, Reading
from ensue.backends.suffixlm.model import bare_encoder
from ensue.errors import EnsueError
from ensue.jsonl import read_object
from ensue.records import file_digest


class SpanNetwork(nn.Module):  # type: ignore[misc]
    """Start and end scores from the last layer of an encoder.

    The head's weights are stored divided by `faster`, so that under Adam, whose steps have the size of the learning
    rate, the new head learns so many times as fast as the encoder.
    """

    def __init__(self, trunk: nn.Module, faster: float = 1.0) -> None:
        super().__init__()
        width = int(trunk.config.hidden_size)
        self.trunk, self.faster = trunk, faster
        self.weight = nn.Parameter(torch.randn(2, width) * 0.02 / faster)
        self.bias = nn.Parameter(torch.zeros(2))

    def forward(self, input_ids: Tensor, attention_mask: Tensor | None = None, **more: Tensor) -> Tensor:
        """Return rows × tokens × 2, always in float32: spans are compared by small differences."""
        states = self.trunk(input_ids=input_ids, attention_mask=attention_mask, **more)[0]
        with torch.autocast(states.device.type, enabled=False):
            scores: Tensor = nn.functional.linear(
                states.float(), self.weight.float() * self.faster, self.bias.float()
            )
        return scores


def prepare_adapter(network: SpanNetwork, shape: AdapterShape, dropout: float = 0.0) -> None:
    """Freeze the encoder but for what the shape says learns."""
    adapt(network.trunk, shape, dropout)
    network.weight.requires_grad_(True)
    network.bias.requires_grad_(True)


def adapter_tensors(network: SpanNetwork) -> dict[str, Tensor]:
    """Return what was trained, in fp16; the head with its speed multiplied in."""
    found = {
        name: value.detach().float() for name, value in network.named_parameters() if value.requires_grad
    }
    found["weight"] = found["weight"] * network.faster
    return {name: value.to(torch.float16).cpu().contiguous() for name, value in found.items()}


def with_adapter(trunk: nn.Module, shape: AdapterShape, tensors: dict[str, Tensor]) -> SpanNetwork:
    """Make the network those tensors were trained for, merged and ready to read; ValueError if they do not fit."""
    network = SpanNetwork(trunk)
    prepare_adapter(network, shape)
    fill_learned(network, tensors)
    merge_lora(network.trunk)
    return network


ARCHITECTURE = "ExtractiveAnswerer"
# Under which a Hugging Face folder's configuration may say how its model is to read.
READING = "ensue_reading"


def load_hf_answerer(folder: ModelFolder) -> AnswerModel:
    """Load the extractive model of a Hugging Face folder."""
    loaded = load(folder, "AutoModelForQuestionAnswering", "answerer")
    network = loaded.network

    def scores(**inputs: Any) -> Any:
        out = network(**inputs)
        return torch.stack([out.start_logits, out.end_logits], -1)

    held = dict(folder.config.get(READING) or {})
    # As many as SQuAD's systems read at once, unless the folder says otherwise or the model takes fewer.
    held["max_length"] = min(held.get("max_length", 384), loaded.card.max_length or 384)
    held.setdefault("stride", min(128, held["max_length"] // 3))
    held.setdefault("max_question", min(64, held["max_length"] // 3))
    reading = make_reading(held, folder.path / "config.json")
    identity = {**loaded.card.identity, "reading": json.dumps(asdict(reading), sort_keys=True)}
    card = replace(loaded.card, identity=identity, max_length=reading.max_length)
    return AnswerModel(scores, loaded.tokenizer, card, reading, network.device, folder.options.batch_tokens)


def load_answerer(folder: ModelFolder) -> AnswerModel:
    """Load the adapter of a folder on the encoder it was trained with, merged into one network."""
    reading = make_reading(folder.config.get("reading") or {}, folder.path / "config.json")
    base = _base(folder)
    with folder.loading("an answerer"):
        held = dict(folder.config["adapter"])
        shape = AdapterShape(**{**held, "targets": tuple(held.get("targets", ()))})
        trunk = base.network.base_model
        bare_encoder(trunk)
        network = with_adapter(trunk, shape, load_file(folder.path / ADAPTER))
    _check_room(reading, network.trunk, folder.path)
    options = folder.options
    device = pick_device(options.device)
    network = network.eval().requires_grad_(False).to(device)
    # The head stays in float32.
    network.trunk.to(pick_dtype(options.dtype))
    identity = {
        "weights": adapter_fingerprint(folder.path),
        "base": base.card.identity["weights"],
        "tokenizer": base.card.identity["tokenizer"],
        "dtype": options.dtype,
        "revision": "-",
    }
    card = folder.card("answerer", identity, licence=base.card.licence, max_length=reading.max_length)
    return AnswerModel(network, base.tokenizer, card, reading, device, options.batch_tokens)


def save_answerer(
    folder: Path, network: SpanNetwork, shape: AdapterShape, reading: Reading, base: str, fingerprint: str
) -> None:
    """Save what was trained: a small file of weights, and a configuration that names the encoder under it."""
    config = {
        "architectures": [ARCHITECTURE],
        "base": base,
        "base_weights": fingerprint,
        "adapter": asdict(shape),
        "reading": asdict(reading),
    }
    save_folder(folder, config, adapter_tensors(network), ADAPTER)


def save_full_answerer(folder: Path, network: SpanNetwork, reading: Reading, tokenizer: Any) -> None:
    """Save an answerer whose encoder was trained whole, as a Hugging Face folder that needs nothing else."""
    import transformers

    target = transformers.AutoModelForQuestionAnswering.from_config(network.trunk.config)
    head = getattr(target, "qa_outputs", None)
    if head is None or tuple(head.weight.shape) != tuple(network.weight.shape):
        raise EnsueError(
            f"{type(target).__name__} has another kind of head, so it cannot be trained whole; leave out --full."
        )
    # The trunk of such a model may lack the pooler that a bare encoder has.
    target.base_model.load_state_dict(network.trunk.state_dict(), strict=False)
    with torch.no_grad():
        head.weight.copy_(network.weight * network.faster)
        head.bias.copy_(network.bias)
    folder.mkdir(parents=True, exist_ok=True)
    target.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    make_readable(folder)
    config = read_object(folder / "config.json")
    write_config(folder, {**config, READING: asdict(reading)})


def make_reading(held: Any, path: Path) -> Reading:
    """Return how a configuration says a model reads; one sentence where it says something else."""
    known = {field.name for field in fields(Reading)}
    if not isinstance(held, dict) or held.keys() - known:
        raise EnsueError(f"{path} does not say how to read texts: it may have {', '.join(sorted(known))}.")
    try:
        return Reading(**held)
    except (TypeError, EnsueError) as error:
        raise EnsueError(f"{path} does not say how to read texts: {error}") from None


def adapter_fingerprint(folder: Path) -> str:
    """Return a digest of adapter and configuration alone, the same wherever a folder's log and checkpoints are."""
    digest = hashlib.sha256()
    for name in ("config.json", ADAPTER):
        digest.update(name.encode() + b"\0" + bytes.fromhex(file_digest(folder / name)))
    return digest.hexdigest()


def _base(folder: ModelFolder) -> Any:
    """Load the encoder an adapter stands on, in float32 on the CPU; the very one it was trained with."""
    base: Any = load_base(folder)
    asked = folder.config["base"]
    if getattr(base, "network", None) is None or getattr(base, "tokenizer", None) is None:
        raise EnsueError(f"{folder.name} stands on {asked}, which is not an encoder.")
    if base.card.identity.get("weights") != folder.config.get("base_weights"):
        raise EnsueError(
            f"{folder.name} was trained on other weights than those of {asked} here; get the encoder its card names."
        )
    return base


def _check_room(reading: Reading, trunk: Any, folder: Path) -> None:
    # A sentence encoder's tokenizer states where sentences are cut, which says nothing of the positions it has.
    limit = max_length(trunk)
    if limit is not None and reading.max_length > limit:
        raise EnsueError(
            f"{folder} reads {reading.max_length} tokens at once, but its encoder takes {limit}."
        )
