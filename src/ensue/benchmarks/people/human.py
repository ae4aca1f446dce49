"""People as a model: `--model human:EXPORT` has a benchmark take its answers from an annotation project's export."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from ensue.benchmarks.base import HUMAN, PEOPLE
from ensue.benchmarks.people.export import Export, read
from ensue.errors import EnsueError
from ensue.models.card import ModelCard
from ensue.models.protocols import Model


@dataclass(frozen=True)
class People:
    """People who answered in a project, with a card as models have one; the export is what they are known by."""

    card: ModelCard
    export: Export


def load_people(model: str) -> People:
    """Load people by the name of their export, as in `human:rain.jsonl`."""
    path = Path(model.removeprefix(HUMAN)).expanduser()
    if not path.name:
        raise EnsueError("human: names no export; give human:FILE, a file of ensue annotate export.")
    export = read(path)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    name = f"human-{export.project}"
    note = f"{len(export.annotators)} people"
    if not export.counted:
        note += "; an older export, which does not say how many answers it has: export again, in case it was cut off"
    card = ModelCard(name, PEOPLE, str(path), {"weights": digest}, note=note)
    return People(card, export)


def people_of(model: Model, kind: str) -> Export | None:
    """Return what people answered, None for any other model; refuse people who did something else."""
    if not isinstance(model, People):
        return None
    if model.export.kind != kind:
        raise EnsueError(
            f"{model.card.source} is of the kind {model.export.kind}; this benchmark reads people of kind {kind}."
        )
    return model.export
