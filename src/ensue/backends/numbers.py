"""Refuses what a model makes that is no number (vectors, logits), by the text it was made of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ensue.models.card import ModelCard
from ensue.scoring.finite import beginning, not_finite


def check_rows(rows: Sequence[npt.ArrayLike], texts: Sequence[str], card: ModelCard) -> None:
    """Raise where the numbers a text was turned into hold one that is none."""
    for row, text in zip(rows, texts, strict=True):
        values = np.asarray(row)
        if not np.isfinite(values).all():
            bad = float(values[~np.isfinite(values)].flat[0])
            raise not_finite(bad, model=card.name, dtype=card.identity.get("dtype"), what=beginning(text))


def watched(texts: Sequence[str], model: str, dtype: Any) -> Callable[[Any, Any], Any]:
    """A logits processor for `generate`, with as many rows a text as there are beams, that lets only numbers through.

    The likeliest token is none where any logit is NaN or infinite; a token that is ruled out is minus infinity and no
    fault.
    """
    import torch

    def check(ids: Any, scores: Any) -> Any:
        best = scores.amax(-1)
        good = torch.isfinite(best)
        if not bool(good.all()):
            row = int((~good).nonzero()[0])
            what = beginning(texts[row * len(texts) // len(scores)])
            raise not_finite(
                float(best[row]), model=model, dtype=str(dtype).removeprefix("torch."), what=what
            )
        return scores

    return check
