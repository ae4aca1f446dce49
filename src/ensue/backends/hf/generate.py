"""Text generation with Hugging Face models: every setting stated, so that a folder's own defaults do not rule."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ensue.backends.hf.batching import continued_together, pad
from ensue.errors import EnsueError
from ensue.records import file_digest
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
def _own_tokens_only(network: Any) -> Iterator[None]:
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
    return file_digest(path) if path.is_file() else ""


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
    in_lanes: Callable[[int], Any],
) -> list[str]:
    """Continue each prompt (token ids) up to the first stop string; greedily unless `options` say otherwise.

    In lanes where that gives the same (`in_lanes` returns, for what is the longest, the executor that has them, or
    None); else by transformers.
    """
    from ensue.backends.hf.lane_generate import is_plain_search, write_in_lanes
    from ensue.scoring.rope import one_for_all

    fill = tokenizer.pad_token_id if tokenizer.pad_token_id is not None else (tokenizer.eos_token_id or 0)
    settings = decoding({"max_new_tokens": max_tokens, "pad_token_id": fill, **options})
    if stop:
        settings |= {"stop_strings": list(stop), "tokenizer": tokenizer}
    _check_room(prompts, max_tokens, limit, model)

    def begins(ids: Sequence[int]) -> str:
        return str(tokenizer.decode(ids[:40], skip_special_tokens=True))

    out: dict[int, str] = {}
    longest = max(map(len, prompts), default=0) + max_tokens
    executor = in_lanes(longest) if prompts and is_plain_search(network, settings) else None
    if executor is not None:
        rows = write_in_lanes(executor, prompts, settings, tokenizer, model)
        return [cut_at(tokenizer.decode(row, skip_special_tokens=True), stop) for row in rows]
    room = _TOKENS
    if network.device.type == "cuda":
        room = max(_GPU_TOKENS // int(settings["num_beams"]), _TOKENS)
    lengths, border = [len(ids) for ids in prompts], one_for_all(network)
    for chosen in continued_together(lengths, max_tokens, room, rows=_ROWS, border=border):
        ids, mask = (table.to(network.device) for table in pad([prompts[i] for i in chosen], fill, left=True))
        found = make_rows(network, ids, mask, [begins(prompts[i]) for i in chosen], model, settings)
        for index, row in zip(chosen, found[:, ids.shape[1] :], strict=True):
            out[index] = cut_at(tokenizer.decode(row, skip_special_tokens=True), stop)
    return [out[i] for i in range(len(prompts))]


def make_rows(
    network: Any, ids: Any, mask: Any, texts: Sequence[str], model: str, settings: Mapping[str, Any]
) -> Any:
    """Make the rows of one batch; an error names its text where a number is none."""
    import torch

    with torch.inference_mode(), _own_tokens_only(network):
        return network.generate(
            input_ids=ids,
            attention_mask=mask,
            logits_processor=[watched(texts, model, network.dtype)],
            **settings,
        )


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
