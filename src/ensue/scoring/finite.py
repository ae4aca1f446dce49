"""Refuse numbers that are none where they are made, by a sentence that names the text.

A score of NaN wins or loses every comparison without a word, and so does one of minus infinity, which a model gives a
token it holds for impossible; neither is ever passed on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ensue.errors import RunFailed
from ensue.models.card import ModelCard

_ADVICE = {
    "float16": "float16 overflows beyond 65,504, so use --dtype bfloat16 or float32",
    "bfloat16": "use --dtype float32",
    "float32": "the weights may be damaged, or one of its tokens impossible for the model",
}
_ELSEWHERE = "see with which dtype the server runs it (bfloat16 holds larger numbers than float16)"


def not_finite(value: float, *, model: str, dtype: str | None, what: str) -> RunFailed:
    """Return the error about a number that is none, made by a model from `what`."""
    kind = f" in {dtype}" if dtype else ""
    advice = _ADVICE.get(dtype, _ADVICE["float32"]) if dtype else _ELSEWHERE
    return RunFailed(
        f"{model} makes {value} of {what}{kind}, which cannot be compared with anything; {advice}."
    )


def beginning(text: str) -> str:
    """Return a text as an error names it."""
    return f"the text that begins {text[:40]!r}"


def check_rows(rows: Sequence[npt.ArrayLike], texts: Sequence[str], card: ModelCard) -> None:
    """Raise where the numbers a text was turned into hold one that is none."""
    for row, text in zip(rows, texts, strict=True):
        values = np.asarray(row)
        if not np.isfinite(values).all():
            bad = float(values[~np.isfinite(values)].flat[0])
            raise not_finite(bad, model=card.name, dtype=card.identity.get("dtype"), what=beginning(text))


def watched(texts: Sequence[str], model: str, dtype: Any) -> Callable[[Any, Any], Any]:
    """Make a logits processor for `generate` that lets only numbers through; a text has as many rows as beams.

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
