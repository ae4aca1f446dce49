"""How text is decoded: every setting is said outright, so that nothing a model's folder asks for by itself rules."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

FILE = "generation_config.json"
# What is done where nothing else is asked for: the likeliest token each time, up to the model's own end.
_PLAIN: Mapping[str, Any] = {
    "do_sample": False,
    "num_beams": 1,
    "early_stopping": False,
    "length_penalty": 1.0,
    "min_new_tokens": 0,
    "no_repeat_ngram_size": 0,
    "repetition_penalty": 1.0,
}
# What callers say, and what transformers calls it.
_NAMES = {"beams": "num_beams", "min_tokens": "min_new_tokens", "block_ngrams": "no_repeat_ngram_size"}
# What a model needs to be told of itself: with which tokens its texts begin and end, and which are never written.
_OWN = (
    "bos_token_id",
    "eos_token_id",
    "pad_token_id",
    "decoder_start_token_id",
    "forced_bos_token_id",
    "forced_eos_token_id",
    "bad_words_ids",
    "suppress_tokens",
    "begin_suppress_tokens",
)


def decoding(options: Mapping[str, Any]) -> dict[str, Any]:
    """All settings of a generation in transformers' words; `options` may use theirs or ours.

    >>> decoding({"beams": 4})["num_beams"], decoding({})["no_repeat_ngram_size"]
    (4, 0)
    """
    return {**_PLAIN, **{_NAMES.get(name, name): value for name, value in options.items()}}


@contextmanager
def own_tokens_only(network: Any) -> Iterator[None]:
    """Leave aside, while texts are made, all that a folder says of generation but for its tokens."""
    from transformers import GenerationConfig

    stated = network.generation_config
    network.generation_config = GenerationConfig(**{name: getattr(stated, name, None) for name in _OWN})
    try:
        yield
    finally:
        network.generation_config = stated


def generation_fingerprint(folder: Path) -> str:
    """A digest of what a folder says of generation; nothing where it says nothing."""
    path = folder / FILE
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
