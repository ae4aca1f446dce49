"""Text generation with Hugging Face models: every setting stated, so that a folder's own defaults do not rule."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ensue.errors import EnsueError
from ensue.scoring.finite import watched

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
# What is taken from a folder: with which tokens its texts begin and end, and which are never written.
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
    """Return all settings of a generation in transformers' words; `options` may use theirs or ours.

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
    """Return a digest of what a folder says of generation; nothing where it says nothing."""
    path = folder / FILE
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""


# Rows of one batch, and the tokens (prompts and what is to come) that they may have together; a GPU wants many more,
# and there every beam counts.
_ROWS = 64
_TOKENS = 8192
_GPU_TOKENS = 131_072


def generate(
    network: Any,
    tokenizer: Any,
    prompts: Sequence[Sequence[int]],
    *,
    max_tokens: int,
    stop: Sequence[str],
    limit: int | None,
    model: str,
    options: dict[str, Any],
) -> list[str]:
    """Continue each prompt (token ids) up to the first stop string; greedily unless `options` say otherwise."""
    import torch

    from ensue.scoring.rope import one_for_all

    pad = tokenizer.pad_token_id if tokenizer.pad_token_id is not None else (tokenizer.eos_token_id or 0)
    settings = decoding(options)
    if stop:
        settings |= {"stop_strings": list(stop), "tokenizer": tokenizer}
    _check_room(prompts, max_tokens, limit, model)

    def begins(ids: Sequence[int]) -> str:
        return str(tokenizer.decode(ids[:40], skip_special_tokens=True))

    out: dict[int, str] = {}
    room = _TOKENS
    if network.device.type == "cuda":
        room = max(_GPU_TOKENS // int(settings["num_beams"]), _TOKENS)
    for chosen in _batches([len(ids) for ids in prompts], max_tokens, room, one_for_all(network)):
        width = max(max(len(prompts[i]) for i in chosen), 1)
        batch = torch.tensor([[pad] * (width - len(prompts[i])) + list(prompts[i]) for i in chosen])
        mask = torch.tensor([[0] * (width - len(prompts[i])) + [1] * len(prompts[i]) for i in chosen])
        with torch.inference_mode(), own_tokens_only(network):
            found = network.generate(
                input_ids=batch.to(network.device),
                attention_mask=mask.to(network.device),
                max_new_tokens=max_tokens,
                pad_token_id=pad,
                logits_processor=[watched([begins(prompts[i]) for i in chosen], model, network.dtype)],
                **settings,
            )
        for index, row in zip(chosen, found[:, width:], strict=True):
            out[index] = cut_at(tokenizer.decode(row, skip_special_tokens=True), stop)
    return [out[i] for i in range(len(prompts))]


def _batches(lengths: Sequence[int], new: int, room: int, border: float) -> Iterator[list[int]]:
    """Group prompts of like length, the longest first: what does not fit memory shows at once.

    One that may go beyond the border, where positions are those of the longest of a batch, is continued alone.
    """
    batch: list[int] = []
    for index in sorted(range(len(lengths)), key=lambda i: (-lengths[i], i)):
        longest = lengths[batch[0]] + new if batch else 0
        if batch and (len(batch) == _ROWS or (len(batch) + 1) * longest > room or longest > border):
            yield batch
            batch = []
        batch.append(index)
    if batch:
        yield batch


def _check_room(prompts: Sequence[Sequence[int]], new: int, limit: int | None, model: str) -> None:
    """Raise before any work where a prompt leaves too little room for what is to come."""
    longest = max(map(len, prompts), default=0)
    if limit is not None and prompts and longest + new > limit:
        raise EnsueError(
            f"A prompt of {longest} tokens and {new} new ones do not fit the {limit} tokens {model} takes; shorten "
            f"it or ask for fewer."
        )


def cut_at(text: str, stop: Sequence[str]) -> str:
    """Return the text up to the first stop string."""
    ends = [place for word in stop if (place := text.find(word)) >= 0]
    return text[: min(ends)] if ends else text
