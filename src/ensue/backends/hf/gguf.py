"""GGUF files: dequantised once through transformers and kept as safetensors."""

from __future__ import annotations

import struct
import sys
from pathlib import Path
from typing import Any

from ensue.atomic import make_readable
from ensue.backends.hf.loading import need_torch, one_line
from ensue.errors import EnsueError, os_errors
from ensue.fetch.store import home, make_once
from ensue.models.card import write_card_facts
from ensue.records import file_digest

_MAGIC = b"GGUF"
# Raised when a conversion comes to say something else, so that what was kept is made again.
_CONVERSION = 2
# What llama.cpp puts a BOS before where a file does not say: tokenizers by kind (SentencePiece and WordPiece), and
# byte-level ones by how they divide words.
_BOS_TOKENIZERS = frozenset({"llama", "bert"})
_BOS_PRETOKENIZERS = frozenset(
    [
        "llama3",
        "llama-v3",
        "llama-bpe",
        "falcon3",
        "falcon-h1",
        "pixtral",
        "midm-2.0",
        "lfm2",
        "tekken",
        "chameleon",
    ]
)
_ENGLISH = "The children walked home together because the evening was warm and the road was quiet."


def convert(path: Path, target: Path) -> Path:
    """Write a GGUF file's model and tokenizer to `target` as float32 safetensors."""
    need_torch(f"Reading {path.name}")
    import torch
    import transformers

    with os_errors(path), path.open("rb") as file:
        if file.read(4) != _MAGIC:
            raise EnsueError(f"{path} is not a GGUF file.")
    print(f"converting {path.name} to safetensors, once …", file=sys.stderr, flush=True)
    where = {
        "pretrained_model_name_or_path": str(path.parent),
        "gguf_file": path.name,
        "local_files_only": True,
    }
    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(**where)
        model = transformers.AutoModelForCausalLM.from_pretrained(**where, dtype=torch.float32)
    except (OSError, ValueError, KeyError, ImportError, RuntimeError, IndexError, struct.error) as error:
        raise EnsueError(f"{path} cannot be converted: {one_line(error)}") from error
    # The weights are plain floats now; a quantisation config would make loaders look for packed ones.
    if hasattr(model.config, "quantization_config"):
        del model.config.quantization_config
    model.hf_quantizer = None
    model.is_quantized = False
    target.mkdir(parents=True, exist_ok=True)
    with os_errors(target, "written"):
        model.save_pretrained(target)
        tokenizer.save_pretrained(target)
        check_saved_tokenizer(target, tokenizer, path)
        write_card_facts(target, **bos_facts(path))
        make_readable(target)
    return target


def check_saved_tokenizer(target: Path, tokenizer: Any, path: Path) -> None:
    """Refuse a tokenizer that does not come back from disk as it was.

    transformers 5.17 loses Gemma's merges on the way: the saved copy spells English letter by letter, and all
    scores with it are nonsense without any error.
    """
    import transformers

    saved = transformers.AutoTokenizer.from_pretrained(target, local_files_only=True)
    before, after = (list(t(_ENGLISH, add_special_tokens=False)["input_ids"]) for t in (tokenizer, saved))
    if before != after:
        raise EnsueError(
            f"transformers {transformers.__version__} does not save the tokenizer of {path.name} properly "
            f"({len(after)} tokens instead of {len(before)} for a sentence); install a newer one."
        )


def bos_facts(path: Path) -> dict[str, Any]:
    """Return, for the model's card, whether texts begin with a BOS that the converted tokenizer does not add.

    Where the file does not say, it is taken as llama.cpp takes it: by the kind of tokenizer.
    """
    import gguf

    fields = gguf.GGUFReader(path).fields
    stated = fields.get("tokenizer.ggml.add_bos_token")
    if stated is not None:
        return {"needs_bos": bool(stated.contents())}
    kind, before = (
        str(fields[key].contents()) if key in fields else ""
        for key in ("tokenizer.ggml.model", "tokenizer.ggml.pre")
    )
    needs = kind in _BOS_TOKENIZERS or (kind == "gpt2" and before in _BOS_PRETOKENIZERS)
    which = f"{kind or 'unnamed'} tokenizer" + (f" of kind {before}" if before else "")
    note = (
        f"the file does not say whether texts begin with a BOS; as llama.cpp does for a {which}, "
        f"they {'do' if needs else 'do not'}"
    )
    return {"needs_bos": needs, "note": note}


def converted(path: Path) -> Path:
    """Return the converted copy of a GGUF file, made on first use and found again by the file's digest."""
    target = home() / "converted" / f"{file_digest(path)[:32]}-{_CONVERSION}"
    return make_once(target, lambda work: convert(path, work / "model"), f"{path} cannot be converted")
