"""Ensue's own side of a measurement."""

from __future__ import annotations

from collections.abc import Callable

from common import Job, contend

from ensue.backends.names import load_model
from ensue.models.request import Policy, Request, TokenCut
from ensue.scoring.engine import score


def setup(job: Job) -> Callable[[], list[float]]:
    model = load_model(job["model"], dtype=job["dtype"], device="cpu")
    requests = [
        Request(r["continuation"], r["context"], cut=TokenCut(*r["cut"]) if "cut" in r else None)
        for r in job["requests"]
    ]
    policy = Policy(bos=job["bos"])
    model.executor  # noqa: B018  probing belongs to loading
    return lambda: [s.logprob for s in score(model, requests, policy=policy).scores]


contend(setup)
