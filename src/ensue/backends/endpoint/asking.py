"""Questions from a served model, for QAGS: an instruction with examples, one question for each answer.

A server searches as it will, so what is asked of a search but its length is left out: the question is the likeliest
one token by token.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ensue.backends.endpoint.styles import first_choice
from ensue.backends.qg.questioner import few_shot_prompt
from ensue.models.protocols import AnswerSpan, Asked, QuestionSearch


def question_prompts(contexts: Sequence[str], answers: Sequence[AnswerSpan]) -> list[str]:
    """Return what a model is asked: to write a question that the marked part of each text answers."""
    return ["".join(few_shot_prompt(*pair)) for pair in zip(contexts, answers, strict=True)]


def question_options(search: dict[str, Any], *, chat: bool) -> dict[str, Any]:
    """Return what is asked of the server for each question."""
    most = QuestionSearch(**search).max_tokens
    return {"max_tokens": most, "temperature": 0, "stop": ["\n"], "logprobs": True if chat else 1}


def read_question(reply: Any, text: str) -> list[Asked]:
    """Return the question that was written, with its mean log-probability a token (0 where that is not told)."""
    question = next((line.strip() for line in text.splitlines() if line.strip()), "")
    told = first_choice(reply).get("logprobs")
    told = told if isinstance(told, dict) else {}
    content = told.get("content")
    values = [one.get("logprob") for one in content if isinstance(one, dict)] if content else None
    known = [
        float(value)
        for value in (values if values is not None else told.get("token_logprobs") or [])
        if isinstance(value, int | float) and math.isfinite(value)
    ]
    return [Asked(question, math.fsum(known) / len(known) if known else 0.0)] if question else []
