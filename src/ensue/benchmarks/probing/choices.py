"""What every suite on sentence vectors lets a user choose: layers, pooling, and where classifiers are trained."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ensue.benchmarks import settings as read
from ensue.benchmarks.base import Setting
from ensue.errors import EnsueError
from ensue.models.protocols import Encoder, Layered

POOLINGS = ("cls", "mean", "last", "cls-average-over-layers")


def _layers(text: str) -> list[int] | str:
    return "all" if text == "all" else read.many(read.whole(0))(text)


VECTOR_SETTINGS = {
    "layer": Setting(
        None,
        "layers, one result row each, 0 the embedding, or all (none: own output)",
        read.optional(_layers),
    ),
    "pooling": Setting(
        None, f"{', '.join(POOLINGS)} (none: the encoder's own)", read.optional(read.one_of(*POOLINGS))
    ),
    "classifier_device": Setting(
        "auto", "where classifiers are trained: auto, cpu or cuda", read.one_of("auto", "cpu", "cuda")
    ),
}


def layers_of(encoder: Encoder, settings: Mapping[str, Any]) -> list[int | None]:
    """The layers asked for in rising order, none twice; [None] for the encoder's own output."""
    wanted = settings["layer"]
    if wanted is None:
        return [None]
    if settings["pooling"] == "cls-average-over-layers":
        raise EnsueError("cls-average-over-layers takes all layers at once; leave out layer or pooling.")
    if not isinstance(encoder, Layered):
        raise EnsueError(f"{encoder.card.name} has no layers to choose from; leave out layer.")
    depth = encoder.layer_count
    if wanted == "all":
        return list(range(depth + 1))
    beyond = [number for number in wanted if number > depth]
    if beyond:
        raise EnsueError(
            f"{encoder.card.name} has layers 0 (the embedding) to {depth}, no layer {beyond[0]}."
        )
    return sorted(wanted)
