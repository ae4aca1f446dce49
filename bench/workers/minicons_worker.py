"""minicons's side: pseudo-log-likelihood of a masked language model."""

from __future__ import annotations

from collections.abc import Callable

from common import Job, contend
from transformers import PreTrainedTokenizerBase

# The released minicons calls a method that transformers 5 dropped.
PreTrainedTokenizerBase.batch_encode_plus = lambda self, *args, **kwargs: self(*args, **kwargs)

from minicons import scorer  # noqa: E402


def setup(job: Job) -> Callable[[], list[float]]:
    model = scorer.MaskedLMScorer(job["model"], "cpu")
    texts = [r["continuation"] for r in job["requests"]]
    return lambda: [float(x) for x in model.sequence_score(texts, reduction=lambda x: x.sum(0).item())]


contend(setup)
