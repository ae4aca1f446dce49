"""A trained SuffixLM as a model: it ranks suffixes by how well their vector fits the one it predicts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ensue.atomic import make_readable
from ensue.backends.hf.loading import (
    Options,
    check_folder,
    need_torch,
    pick_device,
    pick_dtype,
    tokenizer_fingerprint,
    weights_fingerprint,
)
from ensue.backends.numbers import check_rows
from ensue.backends.suffixlm.segments import first_segment, frame_of, pack_to_end, sentence_tokens
from ensue.errors import EnsueError
from ensue.models.card import ModelCard, read_card_facts

ARCHITECTURE = "SuffixLM"
_BATCH_SEGMENTS = {"cuda": 2048}
WEIGHTS = "model.safetensors"


class SuffixModel:
    """A SuffixLM with its tokenizer."""

    def __init__(self, network: Any, tokenizer: Any, card: ModelCard, device: Any) -> None:
        self.network, self.tokenizer, self.card, self.device = network, tokenizer, card, device
        self._frame = frame_of(tokenizer, network.shape.segment_tokens)

    @property
    def max_prefix_tokens(self) -> int:
        shape = self.network.shape
        return int(shape.max_segments * shape.segment_tokens)

    def score_suffixes(
        self, context: str, suffixes: Sequence[str], *, prefix_tokens: Sequence[int], suffix_tokens: int
    ) -> list[list[float]]:
        """Dot products of each suffix's vector with the predicted one, for each prefix length.

        A prefix of n tokens is the last n / 128 segments (at least one), so every segment is encoded once
        whatever the number of lengths. A suffix is its first segment: the sentences that fit whole, as in training.
        """
        import torch

        shape = self.network.shape
        counts = [max(tokens // shape.segment_tokens, 1) for tokens in prefix_tokens]
        size = self._frame.room
        most = min(max(counts), shape.max_segments)
        before = pack_to_end(sentence_tokens(self.tokenizer, context), size, most)
        if not before:
            raise EnsueError(f"A context has no word {self.card.name} can read: {context[:40]!r}.")
        shorter = min(size, suffix_tokens)
        after = [first_segment(sentence_tokens(self.tokenizer, suffix), shorter) for suffix in suffixes]
        with torch.inference_mode():
            vectors = self.network.vectors(self._encode([*before, *after]))
            choices = vectors[len(before) :].float()
            out = []
            for count in counts:
                prefix = vectors[: len(before)][-count:]
                predicted = self.network(prefix[None])[0, -1].float()
                scores = (choices @ predicted).tolist()
                check_rows(scores, suffixes, self.card)
                out.append(scores)
        return out

    def _encode(self, segments: Sequence[Sequence[int]]) -> Any:
        import torch

        step = _BATCH_SEGMENTS.get(self.device.type, 64)
        pieces = []
        for begin in range(0, len(segments), step):
            rows = [self._frame.around(segment) for segment in segments[begin : begin + step]]
            ids, mask = _padded(rows, int(self.tokenizer.pad_token_id or 0))
            pieces.append(self.network.encode(ids.to(self.device), mask.to(self.device)))
        return torch.cat(pieces)


def _padded(rows: Sequence[Sequence[int]], pad: int) -> tuple[Any, Any]:
    """Ids and mask of rows, padded to the longest."""
    import torch

    width = max(len(row) for row in rows)
    ids = torch.full((len(rows), width), pad, dtype=torch.long)
    mask = torch.zeros((len(rows), width), dtype=torch.long)
    for place, row in enumerate(rows):
        ids[place, : len(row)] = torch.tensor(row, dtype=torch.long)
        mask[place, : len(row)] = 1
    return ids, mask


def load_suffixlm(folder: Path, name: str, config: dict[str, Any], options: Options) -> SuffixModel:
    """The SuffixLM saved in a folder."""
    need_torch(f"Loading {name}")
    import transformers
    from safetensors.torch import load_file

    from ensue.backends.suffixlm.network import Shape, SuffixLM, bare_encoder

    check_folder(folder, options)
    try:
        described = dict(config["encoder"])
        encoder_config = transformers.AutoConfig.for_model(described.pop("model_type"), **described)
        encoder = transformers.AutoModel.from_config(encoder_config)
        bare_encoder(encoder)
        network = SuffixLM(encoder, Shape(**config["shape"]))
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True)
        network.load_state_dict(load_file(folder / WEIGHTS))
    except Exception as error:  # a broken folder raises types of four libraries
        reason = " ".join(str(error).split())[:200]
        raise EnsueError(
            f"{name} is no SuffixLM that can be loaded ({type(error).__name__}): {reason}"
        ) from error
    device = pick_device(options.device)
    network = network.to(pick_dtype(options.dtype)).eval().requires_grad_(False).to(device)
    facts = read_card_facts(folder)
    card = ModelCard(
        name=name,
        kind="suffixlm",
        source=str(facts.get("source", folder)),
        identity={
            "weights": weights_fingerprint(folder),
            "tokenizer": tokenizer_fingerprint(tokenizer, folder),
            "dtype": options.dtype,
            "revision": "-",
        },
        licence=str(facts.get("licence", "unknown")),
        max_length=network.shape.max_segments * network.shape.segment_tokens,
        training=str(facts.get("training", "")),
    )
    return SuffixModel(network, tokenizer, card, device)


def save_suffixlm(folder: Path, network: Any, tokenizer: Any) -> None:
    """Save a SuffixLM as a model folder: one file of weights, a configuration, the tokenizer."""
    from safetensors.torch import save_file

    folder.mkdir(parents=True, exist_ok=True)
    config = {
        "architectures": [ARCHITECTURE],
        "shape": network.shape.as_dict(),
        "encoder": network.encoder.config.to_dict(),
    }
    tokenizer.save_pretrained(folder)
    text = json.dumps(config, indent=2, sort_keys=True, default=str) + "\n"
    (folder / "config.json").write_text(text, "utf-8")
    weights = {name: value.detach().cpu().contiguous() for name, value in network.state_dict().items()}
    temporary = folder / f".{WEIGHTS}.part"
    save_file(weights, temporary)
    temporary.replace(folder / WEIGHTS)
    make_readable(folder)
