"""What a frozen encoder makes of every segment: computed once, kept on disk for every training that asks the same."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ensue.backends.suffixlm.model import SuffixLM
from ensue.train.shared import held
from ensue.train.suffixlm.corpus import Corpus
from ensue.train.suffixlm.objective import tokens_of

ENCODED_AT_ONCE = 1024


def encoded_segments(network: SuffixLM, corpus: Corpus, folder: Path, name: str) -> Any:
    """The encoder's vector of each row of a corpus, mapped into memory.

    The file is named by what it was made from, written aside and put in place whole. Vectors of another encoder
    or other rows go; a training that has them mapped keeps them.
    """
    path = folder / f"{name}-vectors-{_key(network, corpus)}.npy"
    with held(folder):
        if not path.exists():
            part = folder / f".{name}-vectors.part"
            _write(network, corpus, part)
            part.replace(path)
        found = np.load(path, mmap_mode="r")
        for other in folder.glob(f"{name}-vectors*.npy"):
            if other != path:
                other.unlink()
    return found


def _key(network: SuffixLM, corpus: Corpus) -> str:
    device = network.positions.weight.device.type
    found = hashlib.sha256(f"{corpus.digest} {network.shape.pooling} {device}".encode())
    for name, value in network.encoder.state_dict().items():
        found.update(name.encode())
        found.update(value.detach().cpu().contiguous().view(torch.uint8).numpy().data)
    return found.hexdigest()[:16]


def _write(network: SuffixLM, corpus: Corpus, path: Path) -> None:
    width = int(network.encoder.config.hidden_size)
    table = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=(len(corpus), width))
    device = network.positions.weight.device
    with torch.inference_mode():
        for begin in range(0, len(corpus), ENCODED_AT_ONCE):
            rows = np.arange(begin, min(begin + ENCODED_AT_ONCE, len(corpus)))
            table[rows] = network.encode(*tokens_of(corpus, rows, device)).float().cpu().numpy()
    table.flush()
