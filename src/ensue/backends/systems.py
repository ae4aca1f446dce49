"""Systems of single benchmarks that answer to a model's name too: what they do is known to their benchmark alone."""

from __future__ import annotations

from ensue.models.card import ModelCard

# By name, the kind of a system and the word its identity goes by.
SYSTEMS = {
    "most-frequent": ("majority", "architecture"),
    "hypothesis-only": ("hypothesis-only", "architecture"),
    "cbow": ("untrained", "architecture"),
    "bilstm": ("untrained", "architecture"),
    "bilstm-attention": ("untrained", "architecture"),
    "source-overlap": ("untrained", "architecture"),
    "human": ("summaries", "summaries"),
    "lead": ("summaries", "summaries"),
    "oracle": ("summaries", "summaries"),
    "retrieval": ("summaries", "summaries"),
    "written": ("summaries", "summaries"),
}


class SystemModel:
    """A system under its name: it learns from a task's training set, or needs none."""

    def __init__(self, name: str) -> None:
        kind, identity = SYSTEMS[name]
        self.card = ModelCard(
            name=name, kind=kind, source="ensue", identity={identity: name}, licence="Apache-2.0"
        )
