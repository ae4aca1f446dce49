"""Model folders: read and check one, load it safely, fingerprint it, and save what was trained as one."""

from __future__ import annotations

import hashlib
import json
import logging
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ensue.atomic import make_readable, replacing, write_atomic
from ensue.backends.hf.generate import generation_fingerprint
from ensue.environment import avoid_trapping_tiles
from ensue.errors import EnsueError
from ensue.jsonl import read_object
from ensue.lazy import from_extra
from ensue.models.card import ModelCard, read_card_facts
from ensue.records import file_digest

log = logging.getLogger(__name__)

# The file of weights of a model that is saved whole, and of one that stands on another.
WEIGHTS, ADAPTER = "model.safetensors", "adapter.safetensors"
# What a training leaves beside them to go on from, which is no part of the model.
CHECKPOINT = "checkpoint.safetensors"
# What a training says of itself: how it was asked for, and how it ended once it has.
RECORD = "training.json"


@dataclass(frozen=True)
class Options:
    """How a model is to be loaded. Nothing here runs code or unpickles unless it says so."""

    dtype: str = "auto"
    device: str = "auto"
    revision: str | None = None
    allow_pickle: bool = False
    trust_remote_code: bool = False
    batch_tokens: int | None = None
    share_prefixes: bool = True
    compile: str = "auto"


@dataclass
class Loaded:
    """A model in memory with its tokenizer and card."""

    network: Any
    tokenizer: Any
    card: ModelCard
    options: Options


def need_torch(why: str) -> None:
    """Raise one sentence instead of an ImportError where the models extra is not installed."""
    _, transformers = (from_extra(name, why, name, "models") for name in ("torch", "transformers"))
    avoid_trapping_tiles()
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "true")
    transformers.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()


def _check_finished(path: Path) -> None:
    """Refuse what a training of this package that was stopped, or that still goes on, has left so far."""
    record = path / RECORD
    stated = read_object(record) if record.is_file() else {}
    if {"asked", "started"} <= stated.keys() and "fitted" not in stated:
        raise EnsueError(
            f"{path} holds a training that has not come to its end; go on with it by adding --resume to its command."
        )


@dataclass(frozen=True)
class ModelFolder:
    """A folder that holds a model: its configuration, how it is to be loaded, and what is known of it beyond that."""

    path: Path
    name: str
    config: dict[str, Any]
    options: Options
    facts: dict[str, Any]

    @classmethod
    def read(
        cls, path: Path, name: str, options: Options, facts: dict[str, Any] | None = None
    ) -> ModelFolder:
        """Read the folder's config.json and card; `facts` say more than the card, or something else."""
        file = path / "config.json"
        if not file.is_file():
            raise EnsueError(f"{path} is not a model folder: it has no config.json.")
        _check_finished(path)
        return cls(path, name, read_object(file), options, {**read_card_facts(path), **(facts or {})})

    def with_dtype(self, *, fast: bool) -> ModelFolder:
        """Settle the dtype `auto`: bfloat16 where `fast` is asked for and a GPU has it, else float32.

        On a CPU it is float32 even where bfloat16 would be faster: a score should not depend on which CPU one has.
        """
        device = pick_device(self.options.device)
        if self.options.dtype == "auto":
            half = fast and device.type == "cuda" and has_bfloat16(device)
            return replace(self, options=replace(self.options, dtype="bfloat16" if half else "float32"))
        if self.options.dtype == "bfloat16" and not has_bfloat16(device):
            log.warning("bfloat16 is slower than float32 here: this processor has no instructions for it")
        return self

    def check(self) -> None:
        """Refuse a folder that lacks a tokenizer or safe weights before anything is loaded."""
        names = {path.name for path in self.path.iterdir()}
        if not names & {"tokenizer.json", "vocab.txt", "vocab.json", "tokenizer.model", "spiece.model"}:
            raise EnsueError(
                f"{self.path} has no tokenizer (tokenizer.json, vocab.txt or a sentencepiece model)."
            )
        if not any(name.endswith(".safetensors") for name in names):
            pickled = [name for name in names if name.endswith((".bin", ".pt", ".pth"))]
            if pickled and not self.options.allow_pickle:
                raise EnsueError(
                    f"{self.path} holds only pickled weights ({pickled[0]}), which can run code; convert them to "
                    f"safetensors or pass --allow-pickle if you trust them."
                )
            if not pickled:
                raise EnsueError(f"{self.path} holds no weights (*.safetensors).")

    def card(
        self, kind: str, identity: dict[str, str], *, licence: str = "unknown", **more: Any
    ) -> ModelCard:
        """Make the model's card of its identity and of the facts every folder may state."""
        return ModelCard(
            name=self.name,
            kind=kind,
            source=str(self.facts.get("source", self.path)),
            identity=identity,
            licence=str(self.facts.get("licence", licence)),
            training=str(self.facts.get("training", "")),
            trained_on_shuffled_text=bool(self.facts.get("trained_on_shuffled_text", False)),
            package=str(self.facts.get("package", "")),
            following=stated if isinstance(stated := self.facts.get("following"), dict) else {},
            **more,
        )

    def identity(self, tokenizer: str, revision: str | None = None) -> dict[str, str]:
        """Return what of a model that is loaded whole changes a score; `tokenizer` is a digest of its own."""
        facts = {"weights": self.weights_fingerprint(), "tokenizer": tokenizer}
        return facts | {"dtype": self.options.dtype, "revision": revision or "-"}

    @contextmanager
    def loading(self, what: str) -> Iterator[None]:
        """Turn what a broken folder raises, types of several libraries, into one sentence."""
        try:
            yield
        except EnsueError:
            raise
        except Exception as error:
            raise EnsueError(
                f"{self.name} is not {what} that can be loaded ({type(error).__name__}): {one_line(error)}"
            ) from error

    def placed(self, network: Any) -> Any:
        """Cast a network to the dtype asked for, ready to run, and put it on its device."""
        network = network.to(pick_dtype(self.options.dtype)).eval().requires_grad_(False)
        return network.to(pick_device(self.options.device))

    def weights_fingerprint(self) -> str:
        """Return a digest of the weight files and the configuration."""
        digest = hashlib.sha256()
        for path in sorted(self.path.iterdir()):
            if path.name == CHECKPOINT:
                continue
            if path.name == "config.json" or path.suffix in (".safetensors", ".bin", ".pt", ".pth"):
                digest.update(path.name.encode() + b"\0" + bytes.fromhex(file_digest(path)))
        return digest.hexdigest()

    def tokenizer_fingerprint(self, tokenizer: Any) -> str:
        """Return a digest of the tokenizer as it stands in memory (or of its files, for a slow one)."""
        digest = hashlib.sha256(repr(sorted(tokenizer.special_tokens_map.items())).encode())
        if tokenizer.is_fast:
            digest.update(tokenizer.backend_tokenizer.to_str().encode())
        else:
            for path in sorted(self.path.iterdir()):
                if path.suffix in (".model", ".txt") or path.name.startswith(("tokenizer", "vocab")):
                    digest.update(path.read_bytes())
        return digest.hexdigest()


def save_folder(
    folder: Path, config: Mapping[str, Any], weights: Mapping[str, Any], file: str = WEIGHTS
) -> None:
    """Write a model's weights and configuration to its folder, each file complete or not at all."""
    from safetensors.torch import save_file

    folder.mkdir(parents=True, exist_ok=True)
    with replacing(folder / file) as part:
        save_file(dict(weights), part)
    make_readable(folder)
    write_config(folder, config)


def write_config(folder: Path, config: Mapping[str, Any]) -> None:
    """Write a folder's configuration; its bytes are part of a model's fingerprint, so their form is fixed."""
    text = json.dumps(config, indent=2, sort_keys=True, default=str) + "\n"
    write_atomic(folder / "config.json", [text])


def state_of(network: Any) -> dict[str, Any]:
    """Return all weights of a network as safetensors stores them."""
    return {name: value.detach().cpu().contiguous() for name, value in network.state_dict().items()}


def one_line(error: BaseException) -> str:
    """Put what an error says on one line of at most 200 characters."""
    return " ".join(str(error).split())[:200]


def load_base(folder: ModelFolder) -> Any:
    """Load the model that an adapter's configuration names as its base, in float32 on the CPU."""
    from ensue.backends.names import load_model

    base = folder.config.get("base")
    if not isinstance(base, str) or not base:
        raise EnsueError(
            f"{folder.path / 'config.json'} names no base model, without which {folder.name} cannot be used."
        )
    try:
        return load_model(base, device="cpu", dtype="float32")
    except RecursionError as error:
        raise EnsueError(
            f"{folder.path / 'config.json'} names {base} as its base, which stands on {folder.name} itself."
        ) from error


def load(folder: ModelFolder, auto_class: str, kind: str) -> Loaded:
    """Load a checked folder; weights are cast to the asked dtype and put in eval mode."""
    import transformers

    from ensue.backends.hf.products import quicken

    folder.check()
    name, options, facts = folder.name, folder.options, folder.facts
    remote = {"trust_remote_code": options.trust_remote_code, "local_files_only": True}
    dtype = pick_dtype(options.dtype)
    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder.path, **remote)
        network, report = getattr(transformers, auto_class).from_pretrained(
            folder.path,
            dtype=dtype,
            use_safetensors=None if options.allow_pickle else True,
            output_loading_info=True,
            **remote,
        )
    except Exception as error:  # a broken folder raises types of four libraries, some of them plain Exception
        if "trust_remote_code" in str(error):
            raise EnsueError(
                f"{name} brings code of its own, which is run only with --trust-remote-code, if you trust it."
            ) from error
        raise EnsueError(f"{name} cannot be loaded ({type(error).__name__}): {one_line(error)}") from error
    # They would be drawn at random; a pooler is never used here.
    if missing := sorted(key for key in report["missing_keys"] if "pooler" not in key):
        more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        raise EnsueError(f"{name} lacks weights its config.json promises: {missing[0]}{more}.")
    device = pick_device(options.device)
    try:
        network = network.eval().requires_grad_(False).to(device)
    except (RuntimeError, AssertionError) as error:
        raise EnsueError(f"{name} cannot be put on {device}: {str(error).splitlines()[0]}") from None
    if device.type == "cpu":
        quicken(network)
    card = folder.card(
        kind,
        folder.identity(folder.tokenizer_fingerprint(tokenizer), options.revision),
        max_length=facts.get("max_length") or max_length(network, tokenizer),
        needs_bos=bool(facts.get("needs_bos", False)),
        weights_name=str(facts.get("weights_name", "")),
        note=str(facts.get("note", "")),
        generation=generation_fingerprint(folder.path) if network.can_generate() else "",
    )
    return Loaded(network, tokenizer, card, options)


def pick_device(name: str) -> Any:
    """Return the device of that name; `auto` is a GPU where there is one."""
    import torch

    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        return torch.device(name)
    except RuntimeError as error:
        raise EnsueError(f"There is no device {name!r}: {str(error).splitlines()[0]}") from None


def has_bfloat16(device: Any) -> bool:
    """Return whether a device multiplies matrices of bfloat16 faster than those of float32."""
    import torch

    if device.type == "cuda":
        return bool(torch.cuda.is_available() and torch.cuda.is_bf16_supported(including_emulation=False))
    # Names that torch keeps for itself, and has had for years.
    asked = ("_is_amx_tile_supported", "_is_avx512_bf16_supported")
    return device.type == "cpu" and any(getattr(torch.cpu, name, bool)() for name in asked)


def pick_dtype(name: str) -> Any:
    """Return the dtype of that name."""
    import torch

    return getattr(torch, name)


def max_length(network: Any, tokenizer: Any = None) -> int | None:
    """Return how many tokens the model takes, special ones included; None where nothing states a limit."""
    config = network.config
    limits = []
    for attribute in ("max_position_embeddings", "n_positions", "max_seq_len"):
        value = getattr(config, attribute, None)
        if isinstance(value, int) and value > 0:
            # RoBERTa counts positions from its padding id on, and so has fewer than it says.
            embeddings = getattr(network.base_model, "embeddings", None)
            table = getattr(embeddings, "position_embeddings", None)
            shift = getattr(table, "padding_idx", None)
            limits.append(value - (shift + 1 if shift is not None else 0))
            break
    stated = getattr(tokenizer, "model_max_length", None)
    if isinstance(stated, int) and stated < 10**7:
        limits.append(stated)
    return min(limits, default=None)
