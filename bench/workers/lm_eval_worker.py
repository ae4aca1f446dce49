"""lm-evaluation-harness's side: its Hugging Face model, its own batching, the same tokens or texts."""

from __future__ import annotations

from collections.abc import Callable

from common import Job, contend
from lm_eval.api.instance import Instance
from lm_eval.models.huggingface import HFLM


def setup(job: Job) -> Callable[[], list[float]]:
    lm = HFLM(pretrained=job["model"], device="cpu", dtype=job["dtype"], batch_size=job["batch_size"])
    if job["kind"] == "rolling":
        instances = [
            Instance(request_type="loglikelihood_rolling", doc={}, arguments=(r["continuation"],), idx=i)
            for i, r in enumerate(job["requests"])
        ]
        return lambda: [float(x) for x in lm.loglikelihood_rolling(instances, disable_tqdm=True)]
    tokens = [(("", ""), r["ids"][: r["start"]], r["ids"][r["start"] :]) for r in job["requests"]]
    return lambda: [float(x) for x, _ in lm._loglikelihood_tokens(tokens, disable_tqdm=True)]


contend(setup)
