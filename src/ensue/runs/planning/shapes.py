"""The shape of a model: what a token costs in it, in operations and bytes, with or without its weights."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from ensue.errors import EnsueError
from ensue.jsonl import read_object

BYTES = {"float32": 4, "bfloat16": 2, "float16": 2}
# How many experts there are and how many of them a token goes through, under the names configurations have for it.
_EXPERTS = ("num_local_experts", "num_experts", "n_routed_experts")
_CHOSEN = ("num_experts_per_tok", "num_experts_per_token", "moe_topk")


@dataclass(frozen=True)
class Shape:
    """What of a model costs time and memory.

    `weights` are all there are, `linear` those in the layers' products that a token goes through, `head` those
    between the last state and the vocabulary. `queries` and `keys` are how wide the queries, and the keys and values
    together, of one layer are. Of the layers, `near` see only `window` tokens back.
    """

    layers: int
    width: int
    inner: int
    vocabulary: int
    queries: int
    keys: int
    weights: int
    linear: int
    head: int
    near: int = 0
    window: int = 0

    def linear_operations(self, tokens: float) -> float:
        """Count the operations of the layers' products: two a weight and token."""
        return 2.0 * self.linear * tokens

    def head_operations(self, places: float) -> float:
        """Count the operations of the head where it is asked."""
        return 2.0 * self.head * places

    def attention_operations(self, seen: float, near: float) -> float:
        """Count the operations of attention: of each pair of a token and one that it sees, a product of queries and
        keys and one of weights and values; `near` are the pairs within the window."""
        return 4.0 * self.queries * ((self.layers - self.near) * seen + self.near * near)

    def cache_bytes(self, dtype: str) -> int:
        """Return the bytes of one token's keys and values in all layers."""
        return self.layers * self.keys * BYTES[dtype]

    def as_dict(self) -> dict[str, int]:
        return asdict(self)


def shape_of(network: Any) -> Shape:
    """Read the shape off a network; it may be on the device `meta` and have no weights."""
    config = network.config.get_text_config()
    width = int(config.hidden_size)
    heads = int(getattr(config, "num_attention_heads", None) or 1)
    own = int(getattr(config, "head_dim", None) or width // heads)
    key_heads = int(getattr(config, "num_key_value_heads", None) or heads)
    layers = int(config.num_hidden_layers)
    kinds = list(getattr(config, "layer_types", None) or [])
    near = sum("sliding" in str(kind) for kind in kinds)
    window = int(getattr(config, "sliding_window", None) or 0) if near else 0
    out: Any = network.get_output_embeddings() if hasattr(network, "get_output_embeddings") else None
    head = 0 if out is None else out.weight.numel()
    weights = sum(one.numel() for one in network.parameters())
    if head and out.weight is not network.get_input_embeddings().weight and config.tie_word_embeddings:
        weights -= head  # one table, of which moving a network to `meta` makes two
    share = _chosen_share(config)
    linear = sum(
        round(count * share) if ".experts." in f".{name}." else count
        for name, count in _products(network.base_model)
    )
    return Shape(
        layers=layers,
        width=width,
        inner=int(
            getattr(config, "intermediate_size", None) or getattr(config, "n_inner", None) or 4 * width
        ),
        vocabulary=int(config.vocab_size),
        queries=heads * own,
        keys=2 * key_heads * own,
        weights=weights,
        linear=linear,
        head=head,
        near=near,
        window=window,
    )


def _products(trunk: Any) -> Iterator[tuple[str, int]]:
    """Yield the name and the size of every weight of a trunk that tokens are multiplied by."""
    import torch

    tables = {id(module.weight) for module in trunk.modules() if isinstance(module, torch.nn.Embedding)}
    for name, weight in trunk.named_parameters():
        # A pooler is never run here.
        if weight.dim() >= 2 and id(weight) not in tables and not name.startswith("pooler."):
            yield name, weight.numel()


def _chosen_share(config: Any) -> float:
    """Return the part of its experts' weights that a token goes through."""
    there = next((n for key in _EXPERTS if (n := getattr(config, key, None))), None)
    used = next((n for key in _CHOSEN if (n := getattr(config, key, None))), None)
    return used / there if there and used else 1.0


def empty_network(config: Mapping[str, Any]) -> Any:
    """Build a network of a configuration on the device `meta`, without weights."""
    import torch
    import transformers
    from transformers.models.auto.modeling_auto import MODEL_FOR_MASKED_LM_MAPPING_NAMES

    facts = dict(config)
    family = facts.pop("model_type", None)
    if not isinstance(family, str):
        raise EnsueError("A shape needs a model_type, as every config.json has one (such as llama).")
    try:
        read = transformers.AutoConfig.for_model(family, **facts)
        with torch.device("meta"):
            network = transformers.AutoModelForCausalLM.from_config(read)
    except Exception as error:  # of whatever a configuration may lack
        said = " ".join(str(error).split())[:160]
        raise EnsueError(f"No network can be made of this shape ({type(error).__name__}): {said}") from error
    # Encoders can be made to write, too, but none is given for that.
    if family in MODEL_FOR_MASKED_LM_MAPPING_NAMES and not getattr(read, "is_decoder", False):
        raise EnsueError(
            f"A shape stands for a causal language model, and {family} is none; plan with the name or the folder of "
            f"an encoder or a masked model."
        )
    return network.eval()


def find_shape(name: str) -> dict[str, Any]:
    """Return the configuration of a shape: one that comes with the package (`8B`), a config.json, or its folder."""
    known = known_shapes()
    if name in known:
        return known[name]
    path = Path(name).expanduser()
    path = path / "config.json" if path.is_dir() else path
    if path.is_file():
        return read_object(path)
    if re.fullmatch(r"\{.*\}", name.strip(), re.DOTALL):
        try:
            return dict(json.loads(name))
        except ValueError as error:
            raise EnsueError(f"This shape is no JSON: {error}.") from None
    raise EnsueError(f"There is no shape {name}: give a config.json, or one of {', '.join(known)}.")


def known_shapes() -> dict[str, dict[str, Any]]:
    """Return the shapes that come with the package, by name."""
    text = resources.files("ensue.runs.planning").joinpath("shapes.toml").read_text("utf-8")
    return tomllib.loads(text)
