"""The loss of a language model on packed rows: of the next token, or of those that were masked."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from ensue.scoring.network import Network
from ensue.train.lm.rows import Frame, Ints, RowBatch, Rows

# Of the tokens to be predicted, the share that is masked and the share up to which another token stands in; the rest
# stay as they are (Devlin et al. 2019).
_MASKED, _REPLACED = 0.8, 0.9
# No target.
_NONE = -100
# How far a loss may move, in nats a token, and be the same but for rounding.
_EQUAL = 2e-3


class Masking(NamedTuple):
    """The mask token, the share of the tokens to predict, and how many tokens there are to draw from."""

    mask: int
    share: float
    vocabulary: int


class LanguageObjective(nn.Module):  # type: ignore[misc]
    """A language model whose loss is that of each text on its own, however many lie in a row.

    Texts are kept apart by the attention mask and by positions that begin anew with each. `packed` says whether rows
    may hold several texts: where a model does not take such a mask, they hold one each.
    """

    def __init__(self, model: Any, frame: Frame, *, masking: Masking | None = None, seed: int = 0) -> None:
        super().__init__()
        self.model, self.frame, self.masking, self.seed = model, frame, masking, seed
        self.network = Network(model)
        self.shift = _first_position(model)
        self.packed = _can_pack(self)

    def forward(self, batch: RowBatch) -> Tensor:
        """Return the mean loss a token that is predicted."""
        total, count = self.total(batch)
        return total / count

    def total(self, batch: RowBatch, draw: torch.Generator | None = None) -> tuple[Tensor, int]:
        """Return the summed loss, and of how many tokens; `draw` decides what is masked, torch's own numbers if None.

        Nothing here waits for the device.
        """
        ids, texts = batch.ids.long(), batch.texts
        if self.masking is None:
            states = self.states(ids, texts, batch.places)
            same = (texts[:, 1:] == texts[:, :-1]) & (texts[:, 1:] > 0)
            targets = torch.where(same, ids[:, 1:], _NONE)
            return self._loss(
                states[:, :-1].flatten(0, 1), targets.flatten()
            ), batch.token_count - batch.text_count
        count = max(round(self.masking.share * (batch.token_count - batch.text_count * self.frame.extra)), 1)
        picks, seen = self._masked(ids, batch.own, count, draw)
        states = self.states(seen, texts, batch.places).flatten(0, 1)
        return self._loss(states.index_select(0, picks), ids.flatten()[picks]), count

    def figures(self, rows: Rows, size: int) -> dict[str, float]:
        """Return the loss a token on held-out rows, always masked alike, and the perplexity that it makes."""
        totals, count = [], 0
        for batch in rows.batches(size):
            draw = torch.Generator().manual_seed(self.seed * 1_000_003 + batch.number)
            total, tokens = self.total(batch, draw)
            totals.append(total.detach())
            count += tokens
        loss = float(torch.stack(totals).double().sum()) / count
        return {"dev_loss": loss, "perplexity": math.exp(min(loss, 700.0))}

    def states(self, ids: Tensor, texts: Tensor, places: Tensor) -> Tensor:
        """Return the trunk's last states of rows, each text run for itself."""
        causal = self.masking is None
        if not self.packed:
            # What is on a text's right is not seen by a causal model, and hidden from another.
            return self.network.hidden(ids, attention_mask=None if causal else (texts > 0).long())
        mask = texts[:, None, :, None] == texts[:, None, None, :]
        if causal:
            width = ids.shape[1]
            mask = mask & torch.ones((width, width), dtype=torch.bool, device=ids.device).tril()
        return self.network.hidden(ids, attention_mask=mask, position_ids=places.long() + self.shift)

    def _masked(
        self, ids: Tensor, own: Tensor, count: int, draw: torch.Generator | None
    ) -> tuple[Tensor, Tensor]:
        """Choose tokens to predict, exactly `count` of the texts' own: where they are, and what is read instead."""
        masking = self.masking
        assert masking is not None

        def random(size: int) -> Tensor:
            return torch.rand(size, device=None if draw else ids.device, generator=draw).to(ids.device)

        picks = torch.where(own.flatten(), random(ids.numel()), -1.0).topk(count).indices
        kind = random(count)
        other = (random(count) * masking.vocabulary).long()
        kept = ids.flatten()[picks]
        read = torch.where(kind < _MASKED, masking.mask, torch.where(kind < _REPLACED, other, kept))
        return picks, ids.flatten().scatter(0, picks, read).view_as(ids)

    def _loss(self, states: Tensor, targets: Tensor) -> Tensor:
        """Return the summed loss; the logits of a chunk of positions are made at a time, and again to go backward."""
        total = torch.zeros((), device=states.device)
        for begin in range(0, len(targets), self.network.chunk):
            chunk = states[begin : begin + self.network.chunk], targets[begin : begin + self.network.chunk]
            if torch.is_grad_enabled():
                total = total + checkpoint(
                    self._chunk_loss, *chunk, use_reentrant=False, preserve_rng_state=False
                )
            else:
                total = total + self._chunk_loss(*chunk)
        return total

    def _chunk_loss(self, states: Tensor, targets: Tensor) -> Tensor:
        logits = self.network.logits(states)
        return nn.functional.cross_entropy(logits, targets, reduction="sum", ignore_index=_NONE)


def _can_pack(objective: LanguageObjective) -> bool:
    """Return whether texts side by side in a row have the states they have on their own: found out, not assumed.

    Layers that look back only so far are told by the configuration: the texts tried here are too short for them.
    """
    network, lengths = objective.network, (9, 8, 7)
    if not (network.takes_positions and network.sees_by_mask) or network.rope is not None:
        return False
    tried = [np.arange(length, 3 * length, 2, dtype=np.int32) * 31 % network.vocabulary for length in lengths]
    training = objective.model.training
    objective.model.eval()
    try:
        with torch.inference_mode():
            beside, alone = (_states_of(objective, tried, packed=packed) for packed in (True, False))
    except (RuntimeError, TypeError, ValueError, AttributeError, LookupError):
        return False
    finally:
        objective.model.train(training)
    return bool((beside - alone).abs().max() <= _EQUAL * alone.abs().max().clamp(min=1))


def _states_of(objective: LanguageObjective, tried: Sequence[Ints], *, packed: bool) -> Tensor:
    """Return the states of texts, side by side in a row or each in its own."""
    objective.packed = packed
    rows = Rows(tried, objective.frame, sum(map(len, tried)), objective.network.device, packed=packed)
    found = [
        objective.states(batch.ids.long(), batch.texts, batch.places)[0].float() for batch in rows.batches(1)
    ]
    return torch.cat(found)


def _first_position(model: Any) -> int:
    """Return the number of a text's first position: RoBERTa counts from its padding id on."""
    table = getattr(getattr(model.base_model, "embeddings", None), "position_embeddings", None)
    shift = getattr(table, "padding_idx", None)
    return 0 if shift is None else int(shift) + 1
