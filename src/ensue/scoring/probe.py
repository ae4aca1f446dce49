"""Finds out how a model may be run, by comparing each fast path with the model's own plain forward pass."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
import torch

from ensue.errors import EnsueError
from ensue.scoring.causal import CausalExecutor, out_of_memory
from ensue.scoring.network import Network
from ensue.scoring.plan import Budget
from ensue.scoring.request import TokenPart

log = logging.getLogger(__name__)

# Nats a token. Wrong masks or positions show as whole nats, rounding as far less.
_TOLERANCE = {torch.float32: 2e-3, torch.float64: 2e-3}
_LOW_PRECISION_TOLERANCE = 0.25
# Small batches that force branching, padding on both sides and a chain of runs.
_TINY = Budget(batch=24, full=12, cache=40, attended=200)


def probe_causal(model: Any, budget: Budget) -> CausalExecutor:
    """An executor for a causal model: prefix sharing and a divided head where they give the model's own
    numbers, plainer paths where they do not."""
    parts = _probe_parts(int(model.get_output_embeddings().weight.shape[0]))
    reference = [_plain(model, part) for part in parts]
    tolerance = _TOLERANCE.get(model.dtype, _LOW_PRECISION_TOLERANCE)
    worst = "no path was tried"
    for split, share, pack in (
        (True, True, True),
        (True, True, False),
        (True, False, False),
        (False, True, True),
        (False, True, False),
        (False, False, False),
    ):
        try:
            network = Network(model, split=split)
            if share and not network.takes_cache:
                continue
            found = dict(
                item
                for batch in CausalExecutor(network, _TINY, share=share, pack=pack).run(parts)
                for item in batch
            )
        except (
            RuntimeError,
            TypeError,
            ValueError,
            AttributeError,
            NotImplementedError,
            KeyError,
            IndexError,
        ) as error:
            if out_of_memory(error):
                raise
            worst = f"{type(error).__name__}: {str(error)[:120]}"
            log.debug("split=%s share=%s pack=%s failed: %s", split, share, pack, worst)
            continue
        gap = max(float(np.abs(found[i].logprobs - r).max()) for i, r in enumerate(reference))
        if gap <= tolerance:
            return CausalExecutor(Network(model, split=split), budget, share=share, pack=pack)
        worst = f"scores moved by {gap:.3g} nats"
        log.debug("split=%s share=%s pack=%s: %s", split, share, pack, worst)
    raise EnsueError(
        f"{type(model).__name__} cannot be scored: no way of running it gives its own numbers ({worst})."
    )


def _probe_parts(vocabulary: int) -> list[TokenPart]:
    """A few short sequences that share prefixes of different lengths."""
    generator = np.random.default_rng(0)
    draw = generator.integers(0, vocabulary, size=(7, 16), dtype=np.int32)
    trunk, other = draw[0], draw[4]
    rows = [
        trunk,
        np.concatenate([trunk[:12], draw[1][:9]]),
        np.concatenate([trunk[:12], draw[2][:14]]),
        np.concatenate([trunk[:12], draw[2][:9], draw[3][:5]]),
        draw[3][:11],
        # A second, shorter prefix: rows that branch from both need padding on the left.
        *(np.concatenate([other[:8], draw[i][:7]]) for i in (1, 2, 3, 5, 6)),
    ]
    return [TokenPart(ids, 1) for ids in rows]


def _plain(model: Any, part: TokenPart) -> np.ndarray[Any, np.dtype[np.float64]]:
    """One sequence, one call, the whole vocabulary at every position."""
    with torch.inference_mode():
        ids = torch.from_numpy(part.ids.astype(np.int64)).to(model.device)[None]
        logits = model(input_ids=ids).logits[0].float()
        table = torch.log_softmax(logits[:-1], -1)
        chosen = table.gather(1, ids[0, 1:, None])[:, 0]
        return chosen[part.start - 1 :].double().cpu().numpy()  # type: ignore[no-any-return]
