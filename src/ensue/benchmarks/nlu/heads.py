"""The classifiers that GLUE's baselines put on sentence vectors: features of a row, the layers, the losses."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from ensue.benchmarks.nlu.examples import Form

HIDDEN = 512


def pair_features(u: Tensor, v: Tensor) -> Tensor:
    """[u; v; |u−v|; u*v]."""
    return torch.cat([u, v, (u - v).abs(), u * v], -1)


def row_features(texts: list[Tensor], marked: list[Tensor]) -> Tensor:
    """The features of rows of one text or two, followed by those of the pair of marked stretches, if any."""
    parts = [texts[0] if len(texts) == 1 else pair_features(*texts)]
    if marked:
        parts.append(pair_features(*marked))
    return torch.cat(parts, -1)


def features_in(texts: int, marks: int, width: int) -> int:
    """How many numbers `row_features` gives for vectors of a width."""
    return width * ((1 if texts == 1 else 4) + (4 if marks else 0))


class Classifier(nn.Sequential):  # type: ignore[misc]
    """One hidden layer with tanh; the paper gives its width alone."""

    def __init__(self, inputs: int, outputs: int, hidden: int = HIDDEN) -> None:
        super().__init__(nn.Linear(inputs, hidden), nn.Tanh(), nn.Linear(hidden, outputs))


def loss_of(form: Form, outputs: Tensor, targets: Tensor, owners: Tensor) -> Tensor:
    """The mean loss of rows [rows, outputs]; `owners` rises and tells the rows of one example from the next.

    Classes: cross-entropy; scores: squared error; choices: cross-entropy over the choices of an example; entities:
    each for itself, right or wrong.
    """
    if form == "score":
        return functional.mse_loss(outputs[:, 0], targets)
    if form == "entity":
        return functional.binary_cross_entropy_with_logits(outputs[:, 0], targets)
    if form == "choice":
        return _choice_loss(outputs[:, 0], targets, owners)
    return functional.cross_entropy(outputs, targets.long())


def _choice_loss(values: Tensor, targets: Tensor, owners: Tensor) -> Tensor:
    places = torch.unique_consecutive(owners, return_inverse=True)[1]
    examples = int(places[-1]) + 1
    highest = values.new_full((examples,), -torch.inf).scatter_reduce(0, places, values, "amax").detach()
    powers = (values - highest[places]).exp()
    totals = values.new_zeros(examples).index_add(0, places, powers)
    logs = values - highest[places] - totals[places].log()
    return -(logs * targets).sum() / examples
