"""The special tokens a tokenizer puts around a text, read off an example."""

from __future__ import annotations

from typing import Any

from ensue.errors import EnsueError


def specials_around(tokenizer: Any, model: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """What stands before and after a text's own tokens."""
    whole = list(tokenizer("a")["input_ids"])
    bare = list(tokenizer("a", add_special_tokens=False)["input_ids"])
    for offset in range(len(whole) - len(bare) + 1):
        if whole[offset : offset + len(bare)] == bare:
            return tuple(whole[:offset]), tuple(whole[offset + len(bare) :])
    raise EnsueError(f"The tokenizer of {model} changes a text when it adds special tokens.")
