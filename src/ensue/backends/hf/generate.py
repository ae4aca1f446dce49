"""Greedy continuations of a Hugging Face causal model: like-long prompts together, padded on the left."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ensue.backends.hf.decoding import decoding, own_tokens_only
from ensue.backends.numbers import watched
from ensue.errors import EnsueError

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
    """What follows each prompt (token ids), up to the first stop string; greedy unless `options` say otherwise."""
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
    """Prompts of like length together, the longest first: what does not fit memory shows at once.

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
    """The text up to the first stop string."""
    ends = [place for word in stop if (place := text.find(word)) >= 0]
    return text[: min(ends)] if ends else text
