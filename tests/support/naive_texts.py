"""Log-likelihoods from transformers alone: the reference of tests on whole texts."""

from __future__ import annotations

from pathlib import Path

import torch


class NaiveCausal:
    """A causal model without a BOS as transformers loads it: a text's first token conditions the rest."""

    def __init__(self, folder: Path) -> None:
        from transformers import AutoModelForCausalLM, AutoTokenizer

        self.tokenizer = AutoTokenizer.from_pretrained(folder)
        self.model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()

    def ids(self, text: str) -> list[int]:
        return list(self.tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"])

    def logprobs(self, text: str) -> list[float]:
        ids = self.ids(text)
        with torch.no_grad():
            table = self.model(torch.tensor([ids])).logits[0].double().log_softmax(-1)
        return [table[place, token].item() for place, token in enumerate(ids[1:])]

    def total(self, text: str) -> float:
        return sum(self.logprobs(text))

    def after(self, text: str, context: str) -> float:
        """The log-likelihood of a text after another, from where the tokens of both leave those of the first."""
        joint, first = self.ids(context + text), self.ids(context)
        shared = next((i for i, (a, b) in enumerate(zip(joint, first, strict=False)) if a != b), len(first))
        return sum(self.logprobs(context + text)[max(shared, 1) - 1 :])
