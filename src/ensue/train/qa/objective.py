"""The loss of an answerer: cross-entropy of where answers begin and end, among the text and the null place."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from ensue.backends.qa.answerer import PairForm, padded
from ensue.backends.qa.network import SpanNetwork
from ensue.train.qa.rows import Row


def span_loss(scores: Tensor, rows: Sequence[Row], null: int) -> Tensor:
    """The mean loss of rows × tokens × 2 scores: half the negative log-probability of the answer, wherever it stands.

    Where annotators differ, each answer counts by its share. Only what an answer can be takes part: tokens of the
    text, and the null place.
    """
    device = scores.device
    places = torch.arange(scores.shape[1], device=device)[None]
    first = torch.tensor([row.first for row in rows], device=device)[:, None]
    last = torch.tensor([row.last for row in rows], device=device)[:, None]
    possible = ((places >= first) & (places <= last)) | (places == null)
    logs = scores.float().masked_fill(~possible[..., None], -torch.inf).log_softmax(1)
    held = [(at, target) for at, row in enumerate(rows) for target in row.targets]
    most = max(len(target.places) for _, target in held)
    # Answers × places they stand at; a place said again and again adds nothing, for it is blotted out below.
    table = torch.tensor(
        [[*t.places, *[t.places[0]] * (most - len(t.places))] for _, t in held], device=device
    )
    real = torch.tensor([[n < len(t.places) for n in range(most)] for _, t in held], device=device)
    which = torch.tensor([at for at, _ in held], device=device)[:, None]
    found = logs[which, table[..., 0], 0] + logs[which, table[..., 1], 1]
    whole = found.masked_fill(~real, -torch.inf).logsumexp(1)
    shares = torch.tensor([target.share for _, target in held], device=device)
    return -(whole * shares).sum() / (2 * len(rows))


class Objective(nn.Module):  # type: ignore[misc]
    """The loss of a batch of rows."""

    def __init__(self, network: SpanNetwork, form: PairForm, pad: int) -> None:
        super().__init__()
        self.network = network
        self._form, self._pad = form, pad

    def forward(self, rows: Sequence[Row]) -> Tensor:
        inputs = padded(
            [(row.ids, row.types) for row in rows], self._form, self._pad, self.network.weight.device
        )
        return span_loss(self.network(**inputs), rows, self._form.null)
