"""Answerers as model folders: any Hugging Face one, and our own as a small adapter on an encoder."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ensue.atomic import make_readable
from ensue.backends.hf.loading import (
    ADAPTER,
    ModelFolder,
    file_digest,
    load,
    load_base,
    max_length,
    pick_device,
    pick_dtype,
    save_folder,
    write_config,
)
from ensue.backends.qa.answerer import AnswerModel, Reading
from ensue.errors import EnsueError

if TYPE_CHECKING:
    from ensue.backends.hf.adapter import AdapterShape
    from ensue.backends.qa.network import SpanNetwork

ARCHITECTURE = "ExtractiveAnswerer"
# Under which a Hugging Face folder's configuration may say how its model is to read.
READING = "ensue_reading"


def load_hf_answerer(folder: ModelFolder) -> AnswerModel:
    """Load the extractive model of a Hugging Face folder."""
    loaded = load(folder, "AutoModelForQuestionAnswering", "answerer")
    network = loaded.network

    def scores(**inputs: Any) -> Any:
        import torch

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
    from safetensors.torch import load_file

    from ensue.backends.hf.adapter import AdapterShape
    from ensue.backends.qa.network import with_adapter
    from ensue.backends.suffixlm.model import bare_encoder

    reading = make_reading(folder.config.get("reading") or {}, folder.path / "config.json")
    base = _base(folder)
    with folder.loading("answerer"):
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
    from ensue.backends.qa.network import adapter_tensors

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
    import torch
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
    config = json.loads((folder / "config.json").read_text("utf-8"))
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
        raise EnsueError(f"{folder.name} stands on {asked}, which is no encoder.")
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
