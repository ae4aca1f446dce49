"""What all Hugging Face backends share: checking a model folder, loading it safely, and fingerprinting it."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from ensue.backends.hf.generate import generation_fingerprint
from ensue.errors import EnsueError
from ensue.models.card import ModelCard, read_card_facts

Kind = Literal["causal", "masked", "encoder"]
# What a configuration holds where pictures or sounds are read beside text.
_OTHER_SENSES = ("vision_config", "audio_config", "speech_config", "image_config", "text_config")


@dataclass(frozen=True)
class Options:
    """How a model is to be loaded. Nothing here runs code or unpickles unless it says so."""

    dtype: str = "float32"
    device: str = "auto"
    revision: str | None = None
    allow_pickle: bool = False
    trust_remote_code: bool = False
    batch_tokens: int | None = None
    share_prefixes: bool = True


@dataclass
class Loaded:
    """A model in memory with its tokenizer and card."""

    network: Any
    tokenizer: Any
    card: ModelCard
    options: Options


def need_torch(why: str) -> None:
    """One sentence instead of an ImportError where the models extra is not installed."""
    try:
        import torch  # noqa: F401
        import transformers
    except ImportError as error:
        raise EnsueError(f"{why} needs the models extra: pip install 'ensue[models]' ({error}).") from None
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "true")
    transformers.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()


def read_config(folder: Path) -> dict[str, Any]:
    """The model's config.json, or one sentence about what is wrong with the folder."""
    path = folder / "config.json"
    if not path.is_file():
        raise EnsueError(f"{folder} is not a model folder: it has no config.json.")
    try:
        config = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise EnsueError(f"{path} is not readable JSON: {error}.") from None
    if not isinstance(config, dict):
        raise EnsueError(f"{path} is not a model configuration.")
    return config


def kind_of(folder: Path, config: dict[str, Any]) -> Kind:
    """What a model folder is, by the architecture it states."""
    names = config.get("architectures") or []
    if not names:
        raise EnsueError(
            f"{folder / 'config.json'} names no architecture, so it is unclear what the model can do."
        )
    name = str(names[0])
    if name.endswith(("ForMaskedLM", "ForPreTraining")):
        return "masked"
    if name.endswith(("ForCausalLM", "LMHeadModel")):
        return "causal"
    if others := [key for key in _OTHER_SENSES if key in config]:
        raise EnsueError(
            f"{folder} is a model of more than text ({name}, with {others[0]}), which cannot be run here; give its "
            f"language model alone, saved as one (…ForCausalLM), or serve it and give the endpoint."
        )
    if name.endswith("ForConditionalGeneration") and not config.get("is_encoder_decoder"):
        raise EnsueError(
            f"{folder} states {name} and no encoder-decoder, so it is unclear what the model is; "
            f"give one saved as …ForCausalLM."
        )
    return "encoder"


def check_folder(folder: Path, options: Options) -> None:
    """Refuse a folder that lacks a tokenizer or safe weights before anything is loaded."""
    names = {path.name for path in folder.iterdir()}
    if not names & {"tokenizer.json", "vocab.txt", "vocab.json", "tokenizer.model", "spiece.model"}:
        raise EnsueError(f"{folder} has no tokenizer (tokenizer.json, vocab.txt or a sentencepiece model).")
    if not any(name.endswith(".safetensors") for name in names):
        pickled = [name for name in names if name.endswith((".bin", ".pt", ".pth"))]
        if pickled and not options.allow_pickle:
            raise EnsueError(
                f"{folder} holds only pickled weights ({pickled[0]}), which can run code; convert them to "
                f"safetensors or pass --allow-pickle if you trust them."
            )
        if not pickled:
            raise EnsueError(f"{folder} holds no weights (*.safetensors).")


def load(
    folder: Path, name: str, auto_class: str, kind: Kind, options: Options, facts: dict[str, Any]
) -> Loaded:
    """Load a checked folder; weights are cast to the asked dtype and put in eval mode."""
    need_torch(f"Loading {name}")
    import transformers

    check_folder(folder, options)
    dtype = pick_dtype(options.dtype)
    remote = {"trust_remote_code": options.trust_remote_code, "local_files_only": True}
    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder, **remote)
        network, report = getattr(transformers, auto_class).from_pretrained(
            folder,
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
        reason = " ".join(str(error).split())[:200]
        raise EnsueError(f"{name} cannot be loaded ({type(error).__name__}): {reason}") from error
    _refuse_missing(name, report["missing_keys"])
    device = pick_device(options.device)
    try:
        network = network.eval().requires_grad_(False).to(device)
    except (RuntimeError, AssertionError) as error:
        raise EnsueError(f"{name} cannot be put on {device}: {str(error).splitlines()[0]}") from None
    facts = {**read_card_facts(folder), **facts}
    card = ModelCard(
        name=name,
        kind=kind,
        source=str(facts.get("source", folder)),
        identity={
            "weights": weights_fingerprint(folder),
            "tokenizer": tokenizer_fingerprint(tokenizer, folder),
            "dtype": options.dtype,
            "revision": options.revision or "-",
        },
        licence=str(facts.get("licence", "unknown")),
        max_length=facts.get("max_length") or max_length(network, tokenizer),
        needs_bos=bool(facts.get("needs_bos", False)),
        trained_on_shuffled_text=bool(facts.get("trained_on_shuffled_text", False)),
        training=str(facts.get("training", "")),
        weights_name=str(facts.get("weights_name", "")),
        note=str(facts.get("note", "")),
        generation=generation_fingerprint(folder) if network.can_generate() else "",
    )
    return Loaded(network, tokenizer, card, options)


def _refuse_missing(name: str, keys: Iterable[str]) -> None:
    """Weights a folder lacks would be drawn at random and score nonsense; a pooler is never used here."""
    missing = sorted(key for key in keys if "pooler" not in key)
    if missing:
        more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        raise EnsueError(f"{name} lacks weights its config.json promises: {missing[0]}{more}.")


def pick_device(name: str) -> Any:
    """The device of that name; `auto` is a GPU where there is one."""
    import torch

    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        return torch.device(name)
    except RuntimeError as error:
        raise EnsueError(f"There is no device {name!r}: {str(error).splitlines()[0]}") from None


def pick_dtype(name: str) -> Any:
    """The dtype of that name."""
    import torch

    known = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
    if name not in known:
        raise EnsueError(f"There is no dtype {name!r}; choose float32, bfloat16 or float16.")
    return known[name]


def max_length(network: Any, tokenizer: Any) -> int | None:
    """How many tokens the model takes, special ones included; None where nothing states a limit."""
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
    if isinstance(tokenizer.model_max_length, int) and tokenizer.model_max_length < 10**7:
        limits.append(tokenizer.model_max_length)
    return min(limits) if limits else None


def weights_fingerprint(folder: Path) -> str:
    """A digest of the weight files and the configuration."""
    digest = hashlib.sha256()
    for path in sorted(folder.iterdir()):
        if path.name == "config.json" or path.suffix in (".safetensors", ".bin", ".pt", ".pth"):
            with path.open("rb") as file:
                digest.update(path.name.encode() + b"\0" + hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()


def tokenizer_fingerprint(tokenizer: Any, folder: Path) -> str:
    """A digest of the tokenizer as it stands in memory (or of its files, for a slow one)."""
    digest = hashlib.sha256(repr(sorted(tokenizer.special_tokens_map.items())).encode())
    if tokenizer.is_fast:
        digest.update(tokenizer.backend_tokenizer.to_str().encode())
    else:
        for path in sorted(folder.iterdir()):
            if path.suffix in (".model", ".txt") or path.name.startswith(("tokenizer", "vocab")):
                digest.update(path.read_bytes())
    return digest.hexdigest()
