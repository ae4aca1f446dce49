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

    def work() -> list[float]:
        # One text at a time: all masked copies of all texts go into one pass, and three texts need 24 GB.
        total = lambda x: x.sum(0).item()  # noqa: E731
        return [float(model.sequence_score([text], reduction=total)[0]) for text in texts]

    return work


contend(setup)
