"""Numbers that are none: a NaN or an infinity is refused where it is made, by a sentence that names the text.

A score that is no number wins or loses every comparison without a word, and so does one of minus infinity, which a
model gives a token it holds for impossible; neither is ever passed on.
"""

from __future__ import annotations

from ensue.errors import RunFailed

_ADVICE = {
    "float16": "float16 overflows beyond 65,504, so use --dtype bfloat16 or float32",
    "bfloat16": "use --dtype float32",
    "float32": "the weights may be damaged, or one of its tokens impossible for the model",
}
_ELSEWHERE = "see with which dtype the server runs it (bfloat16 holds larger numbers than float16)"


def not_finite(value: float, *, model: str, dtype: str | None, what: str) -> RunFailed:
    """The error about a number that is none, made by a model from `what`."""
    kind = f" in {dtype}" if dtype else ""
    advice = _ADVICE.get(dtype, _ADVICE["float32"]) if dtype else _ELSEWHERE
    return RunFailed(
        f"{model} makes {value} of {what}{kind}, which cannot be compared with anything; {advice}."
    )


def beginning(text: str) -> str:
    """A text as an error names it."""
    return f"the text that begins {text[:40]!r}"
