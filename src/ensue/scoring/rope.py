"""Rotary positions that depend on a sequence's length: which lengths share them, and how to keep to one length.

LongRoPE (Phi-3) has one set of frequencies up to a length and another beyond it; dynamic NTK scaling has a set for
every length beyond it. transformers chooses by the longest position of the whole batch, and a dynamic one remembers
the longest it ever saw, so a text's score would depend on what it is run with. YaRN, linear and Llama-3 scaling are
the same at every length.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

_LONG = "longrope"
_DYNAMIC = "dynamic"


class LengthRope:
    """The rotary modules of a network whose frequencies follow the longest position they are given.

    Up to `border` tokens all lengths share their frequencies; beyond it all do (LongRoPE) or none (`each`).
    """

    def __init__(self, modules: list[Any], border: int, *, each: bool) -> None:
        self.modules, self.border, self.each = modules, border, each

    def length_for(self, length: int) -> int:
        """Return a length that stands for all that share the frequencies of this one."""
        if length <= self.border:
            return self.border
        return length if self.each else self.border + 1

    @contextmanager
    def held(self, length: int) -> Iterator[None]:
        """Give every position the frequencies it has in a sequence of that length, whatever is run."""

        def lengthen(module: Any, args: Any, kwargs: Any) -> Any:
            _forget(module)
            positions = kwargs["position_ids"] if "position_ids" in kwargs else args[1]
            last = positions.new_full((*positions.shape[:-1], 1), length - 1)
            longer = torch.cat([positions, last], -1)
            if "position_ids" in kwargs:
                return args, {**kwargs, "position_ids": longer}
            return (args[0], longer, *args[2:]), kwargs

        def shorten(module: Any, args: Any, output: Any) -> Any:
            return tuple(table[..., :-1, :] for table in output)

        handles = []
        for module in self.modules:
            handles.append(module.register_forward_pre_hook(lengthen, with_kwargs=True))
            handles.append(module.register_forward_hook(shorten))
        try:
            yield
        finally:
            for handle in handles:
                handle.remove()
            self.forget()

    def holds(self) -> bool:
        """Return whether `held` gives the modules' own numbers on both sides of the border."""
        lengths = (self.border, self.border + 1, self.border + 9)
        try:
            return all(self._same(module, length) for module in self.modules for length in lengths)
        except (RuntimeError, TypeError, AttributeError, LookupError):
            return False  # a module of another form, from a model with code of its own

    def _same(self, module: Any, length: int) -> bool:
        device = next(module.buffers()).device
        states = torch.zeros(1, device=device)
        positions = torch.arange(length, device=device)[None]
        kinds = module.rope_type
        for layer in [{"layer_type": name} for name in kinds] if isinstance(kinds, dict) else [{}]:
            _forget(module)
            whole = module(states, positions, **layer)
            with self.held(self.length_for(length)):
                start = module(states, positions[:, :5], **layer)
            if not all(torch.equal(a[..., :5, :], b) for a, b in zip(whole, start, strict=True)):
                return False
        _forget(module)
        return True

    def forget(self) -> None:
        """Leave no trace of the lengths seen so far."""
        for module in self.modules:
            _forget(module)


def length_rope(model: Any) -> LengthRope | None:
    """Return the rotary modules of a model that follow the length; None where none does."""
    modules = [m for m in model.modules() if _kinds(m) & {_LONG, _DYNAMIC}]
    if not modules:
        return None
    borders = {border for module in modules for border in _borders(module)}
    if len(borders) > 1:
        # No model is known to have two; where each length is on its own, any number of borders is kept.
        return LengthRope(modules, min(borders), each=True)
    return LengthRope(modules, borders.pop(), each=any(_DYNAMIC in _kinds(module) for module in modules))


def one_for_all(model: Any) -> float:
    """Return up to how many tokens, padding counted, sequences of any length may be run together."""
    rope = length_rope(model)
    if rope is not None:
        return rope.border
    return 0 if states_length_rope(model.config) else math.inf


def states_length_rope(config: Any) -> bool:
    """Return whether a configuration asks for such positions, in whatever module they are."""
    config = config.get_text_config()
    stated = getattr(config, "rope_parameters", None) or getattr(config, "rope_scaling", None) or {}
    return any(
        str(table.get("rope_type", table.get("type"))) in (_LONG, _DYNAMIC, "su") for table in _tables(stated)
    )


def _tables(stated: dict[str, Any]) -> list[dict[str, Any]]:
    """Return what a configuration says of positions: for all layers, or for each kind of layer."""
    return [stated, *(value for value in stated.values() if isinstance(value, dict))]


def _kinds(module: Any) -> set[str]:
    """Return the kinds of scaling a rotary module has: one, or one for each kind of layer."""
    stated = getattr(module, "rope_type", None)
    listed = stated.values() if isinstance(stated, dict) else [stated]
    return {_DYNAMIC if _DYNAMIC in kind else kind for kind in listed if isinstance(kind, str)}


def _borders(module: Any) -> Iterator[int]:
    for table in _tables(module.config.rope_parameters):
        if table.get("rope_type") == _LONG:
            yield int(table["original_max_position_embeddings"])
        elif _DYNAMIC in str(table.get("rope_type")):
            yield int(module.original_max_seq_len)


def _forget(module: Any) -> None:
    """Put a dynamic module back to where it began: it keeps the frequencies of the longest text until a short one."""
    if _DYNAMIC not in _kinds(module):
        return
    stated = module.rope_type
    layers = [f"{name}_" for name in stated] if isinstance(stated, dict) else [""]
    for layer in layers:
        first = getattr(module, f"{layer}original_inv_freq", None)
        if first is not None:
            module.register_buffer(f"{layer}inv_freq", first.clone(), persistent=False)
            setattr(module, f"{layer}max_seq_len_cached", module.original_max_seq_len)
