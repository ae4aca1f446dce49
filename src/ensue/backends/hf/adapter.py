"""Small folders of what was trained on a model that lies elsewhere: adapter, head, and the name of that model."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from torch import Tensor, nn

from ensue.backends.hf.loading import ADAPTER, ModelFolder, load_base, save_folder
from ensue.backends.hf.lora import add_lora, fill_learned, merge_lora
from ensue.errors import EnsueError
from ensue.records import file_digest


@dataclass(frozen=True)
class AdapterShape:
    """What of a network learns: adapters of a rank on linear layers (all, where no targets are named), and, with
    `vectors`, its biases, norms and token types too, which are few."""

    rank: int = 32
    alpha: float = 64.0
    targets: tuple[str, ...] = ()
    vectors: bool = True


def adapt(trunk: nn.Module, shape: AdapterShape, dropout: float = 0.0) -> None:
    """Freeze a trunk but for what the shape says learns."""
    trunk.requires_grad_(False)
    if not any(isinstance(layer, nn.Linear) for layer in trunk.modules()):
        raise EnsueError(
            f"{type(trunk).__name__} has no linear layers that an adapter could stand on; train it whole (--full)."
        )
    if shape.vectors:
        for name, parameter in trunk.named_parameters():
            if "pooler" not in name and (parameter.ndim == 1 or "token_type_embeddings" in name):
                parameter.requires_grad_(True)
    # After the layers were chosen, so that only the new matrices and the vectors above learn.
    add_lora(trunk, rank=shape.rank, alpha=shape.alpha, dropout=dropout, targets=shape.targets)


def base_fingerprint(network: Any) -> str:
    """Return a digest of a model's weights that is the same however they are stored: names, shapes and first rows.

    Not that of its files, which hold the version of the library that wrote them.
    """
    digest = hashlib.sha256()
    for name, value in sorted(network.named_parameters()):
        digest.update(f"{name} {tuple(value.shape)} ".encode())
        digest.update(value[:1].detach().float().cpu().numpy().tobytes())
    return digest.hexdigest()


def learned_tensors(network: nn.Module) -> dict[str, Tensor]:
    """Return all that learns of a network, in half precision."""
    return {
        name: value.detach().to("cpu", torch.float16).contiguous()
        for name, value in network.named_parameters()
        if value.requires_grad
    }


def save_adapter(
    folder: Path,
    network: nn.Module,
    *,
    architecture: str,
    base: str,
    fingerprint: str,
    shape: AdapterShape,
    more: Mapping[str, Any] | None = None,
) -> None:
    """Save what learned of a network, and a configuration that names the model under it; `more` goes into that."""
    config = {
        "architectures": [architecture],
        "base": base,
        "base_fingerprint": fingerprint,
        "adapter": asdict(shape),
        **(more or {}),
    }
    save_folder(folder, config, learned_tensors(network), ADAPTER)


def open_adapter(
    folder: ModelFolder, what: str, build: Callable[[Any], nn.Module], trunk_of: Callable[[Any], nn.Module]
) -> tuple[Any, nn.Module]:
    """Load the base of a folder and put its adapter on it, merged: the base, and the network `build` makes of it.

    `build` is given the base and returns the network with everything frozen but a head; `trunk_of` says which part of
    that network the adapter stands on.
    """
    base: Any = load_base(folder)
    stated = folder.config["base"]
    if getattr(base, "network", None) is None or getattr(base, "tokenizer", None) is None:
        raise EnsueError(f"{folder.name} stands on {stated}, which has no network that an adapter fits.")
    if base_fingerprint(base.network) != folder.config.get("base_fingerprint"):
        raise EnsueError(
            f'{stated} is not the model {folder.name} was trained on: its weights differ; point "base" in '
            f"{folder.path / 'config.json'} to the right one."
        )
    with folder.loading(what):
        network = build(base)
        held = dict(folder.config["adapter"])
        adapt(trunk_of(network), AdapterShape(**{**held, "targets": tuple(held.get("targets", ()))}))
        fill_learned(network, load_file(folder.path / ADAPTER))
    merge_lora(network)
    return base, network


def adapted_identity(folder: ModelFolder, base: Any) -> dict[str, str]:
    """Return what of a model on a base changes a score: the base's weights and the adapter's own."""
    return {
        **base.card.identity,
        "dtype": folder.options.dtype,
        # Of the adapter and its configuration alone: a training leaves its checkpoints beside it.
        "adapter": hashlib.sha256(
            bytes.fromhex(file_digest(folder.path / ADAPTER) + file_digest(folder.path / "config.json"))
        ).hexdigest(),
    }
