"""What a run is planned for, and how the executor of that target would divide and count texts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ensue.backends.hf.batching import like_long
from ensue.models.request import TokenPart
from ensue.runs.planning.shapes import BYTES, Shape, shape_of
from ensue.runs.planning.tally import (
    Call,
    Ledger,
    Tally,
    What,
    Work,
    count_batches,
    count_rows,
    count_texts,
)
from ensue.scoring.plan import Budget

# Tokens in a pass, the bytes of the cache, and the longest row, as backends/hf/running.py has them.
_CPU_BATCH, _CPU_CACHE, _CPU_RUN, _LONGEST = 1024, 384 * 2**20, 256 * 2**20, 8192
_GPU_BATCH, _GPU_WIDTH, _GPU_SHARE, _GPU_WIDE = 65_536, 7168, 0.25, 6
# What compiling saves and takes, and when prefixes are worth their sharing, as scoring/packed.py has them.
_SAVED, _COMPILING, _LITTLE_SHARED = 1e-10, 8.0, 0.7
_ROWS = {"cuda": 2048, "cpu": 160}


@dataclass(frozen=True)
class Target:
    """What a run is planned for: the kind of device, its memory in bytes, the dtype, and how models are compiled.

    `written` is how many tokens a model is taken to write where it may write more; None: all it may.
    """

    kind: str = "cpu"
    memory: int = 8 * 2**30
    dtype: str = "float32"
    compile: str = "auto"
    batch_tokens: int | None = None
    written: int | None = None


def budget_of(shape: Shape, target: Target) -> Budget:
    """Return what the executor would be given on the target, as `default_budget` has it."""
    size = BYTES[target.dtype]
    cache, wide = max(shape.cache_bytes(target.dtype), 1), shape.inner * size
    if target.kind == "cuda":
        free = max(target.memory - shape.weights * size, target.memory // 20)
        room = int(free * _GPU_SHARE / (_GPU_WIDE * wide)) // 2048 * 2048
        busy = _GPU_BATCH * _GPU_WIDTH // shape.inner // 2048 * 2048
        batch = target.batch_tokens or max(min(_GPU_BATCH, busy, room), 2048)
        kept = max(int(free * _GPU_SHARE / cache), batch)
        return Budget(batch=batch, full=batch // 2, cache=kept, attended=batch * 24)
    batch = target.batch_tokens or _CPU_BATCH
    run = 0 if target.batch_tokens else min(_LONGEST, _CPU_RUN // wide)
    return Budget(
        batch=batch, full=min(256, batch), cache=max(_CPU_CACHE // cache, batch), attended=batch * 16, run=run
    )


def is_repaid(saved: float) -> bool:
    """Return whether so many seconds saved repay compiling."""
    return saved > _COMPILING


class Counter:
    """What counting models share: the ledger, the target, a model's shape and name."""

    def __init__(self, ledger: Ledger, target: Target, network: Any, name: str) -> None:
        self.ledger, self.target, self.name = ledger, target, name
        self.shape: Shape = shape_of(network)

    def work(self, what: What) -> Work:
        return self.ledger.work(self.name, what, self.shape, self.target.dtype)

    def called(self, what: What, method: str, *lists: Sequence[Any], **options: Any) -> None:
        """Keep a call, of which the largest are measured if any is."""
        calls = self.work(what).calls
        calls.append(Call(method, lists, options))
        calls.sort(key=lambda call: -len(call.lists[0]))
        del calls[4:]

    @cached_property
    def budget(self) -> Budget:
        return budget_of(self.shape, self.target)

    def count_scored(
        self, parts: Sequence[TokenPart], *, share: bool, pack: bool, whole: float
    ) -> tuple[Tally, int]:
        """Count token parts as the executor of the target would run them, where all are `whole` times as many."""
        window = self.shape.window
        if self.target.kind != "cuda" or not (share and pack):
            return count_batches(parts, self.budget, window, share=share, pack=pack)
        rows = count_rows(parts, self.budget, window, share=True)
        saved = _SAVED * rows.fed * whole * self.shape.layers * self.shape.width
        work = self.work("scored")
        work.saved = max(work.saved, saved)
        if self.target.compile == "always" or (self.target.compile == "auto" and is_repaid(saved)):
            work.compiled = True
            return rows, 0
        if rows.fed > _LITTLE_SHARED * rows.given:
            return count_rows(parts, self.budget, window, share=False), 0
        return count_batches(parts, self.budget, window, share=True, pack=True)

    def count_read(self, lengths: Sequence[int]) -> Tally:
        """Count texts of an encoder as it batches them on the target."""
        if not lengths:
            return Tally()
        batch = _GPU_BATCH if self.target.kind == "cuda" else _CPU_BATCH
        return count_texts(lengths, list(like_long(lengths, batch)))

    def count_search(self, prompts: Sequence[int], beams: int, tokens: int) -> Tally:
        """Count the tokens of searches of so many beams and tokens, after prompts of these lengths."""
        lanes = max(min(_ROWS.get(self.target.kind, _ROWS["cpu"]) // beams, len(prompts)), 1)
        written = float(len(prompts) * beams * tokens)
        seen = float(sum(beams * tokens * length for length in prompts)) + written * (tokens + 1) / 2
        steps = -(-len(prompts) // lanes) * tokens
        return Tally(written=written, written_seen=seen, steps=steps, scored=written)
