"""A model folder made from a GGUF file, packed small for a machine that cannot fetch it, and unpacked bit for bit.

    python bench/carry.py pack FOLDER FILE.gguf OUT      # OUT/NAME.0, OUT/NAME.1, … of at most 42 MB each
    python bench/carry.py unpack OUT/NAME TARGET         # there: joins the pieces, makes TARGET

A converted folder holds float32 weights, five times what the GGUF file has. What is packed is the quantised rows,
in the order of the folder; what cannot be had back from them exactly (norms, say) is kept as it is. A folder without
a GGUF file (`-`) is packed as it is. Unpacking needs numpy and safetensors alone, and ends in the digest of the
weights, which must be that of the folder: scores, fingerprints and calibrations are then those of the model here.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import io
import re
import shutil
import sys
import tarfile
import types
from pathlib import Path
from typing import Any

import numpy as np

WEIGHTS, PACKED = "model.safetensors", "packed.npz"
# With the tree itself, 27 MB, a little less than the machine takes at once.
PIECE = 36_000_000
NAMES = {
    "token_embd": "model.embed_tokens",
    "output_norm": "model.norm",
    "output": "lm_head",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("what", choices=("pack", "unpack"))
    parser.add_argument("places", nargs="+", type=Path)
    options = parser.parse_args()
    (pack if options.what == "pack" else unpack)(*options.places)


def pack(folder: Path, file: Path, output: Path) -> None:
    """Pack a folder into pieces."""
    import gguf

    output.mkdir(parents=True, exist_ok=True)
    made = io.BytesIO()
    # Tokenizers are text and shrink to a sixth; quantised rows hardly do.
    with tarfile.open(fileobj=made, mode="w:gz", compresslevel=1) as archive:
        for path in sorted(folder.iterdir()):
            if path.is_file() and (path.name != WEIGHTS or file == Path("-")):
                archive.add(path, path.name)
        if file != Path("-"):
            quants = Path(gguf.__file__).parent
            for name in ("quants.py", "constants.py", "lazy.py"):
                archive.add(quants / name, f"gguf/{name}")
            add(archive, PACKED, packed(folder / WEIGHTS, file))
        add(archive, "digest", digest(folder / WEIGHTS).encode())
    held = made.getvalue()
    size = -(-len(held) // -(-len(held) // PIECE))
    for number, begin in enumerate(range(0, len(held), size)):
        place = output / f"{folder.name}.{number}"
        place.write_bytes(held[begin : begin + size])
        print(place, place.stat().st_size)


def add(archive: tarfile.TarFile, name: str, data: bytes) -> None:
    info = tarfile.TarInfo(name)
    info.size = len(data)
    archive.addfile(info, io.BytesIO(data))


def packed(weights: Path, file: Path) -> bytes:
    """Return the tensors of a folder as quantised rows, where these give them back exactly."""
    import gguf
    from safetensors import safe_open

    known = {quantised_name(one.name): one for one in gguf.GGUFReader(file).tensors}
    kept: dict[str, Any] = {}
    with safe_open(weights, "numpy") as tensors:
        for name in tensors.keys():  # noqa: SIM118 - it is no mapping
            wanted = tensors.get_tensor(name)
            one = known.get(name)
            rows = None if one is None else same_rows(one, wanted)
            if rows is None:
                kept[f"{name}|F32"] = wanted
            else:
                kept[f"{name}|{one.tensor_type.name}"] = rows
    made = io.BytesIO()
    np.savez(made, **kept)
    return made.getvalue()


def same_rows(tensor: Any, wanted: Any) -> Any:
    """Return a tensor's quantised rows in the order of the folder; None where they do not give it exactly."""
    from gguf.quants import dequantize

    rows = np.asarray(tensor.data)
    if rows.ndim != 2 or len(rows) != len(wanted):
        return None
    plain = dequantize(rows, tensor.tensor_type)
    # Llama's queries and keys are turned within each head, one half after the other.
    orders = [np.arange(len(rows))]
    for width in (64, 128, 256):
        if len(rows) % width == 0:
            orders.append(orders[0].reshape(-1, width // 2, 2).swapaxes(1, 2).reshape(-1))
    for order in orders:
        if plain.shape == wanted.shape and np.array_equal(plain[order], wanted):
            return np.ascontiguousarray(rows[order])
    return None


def quantised_name(name: str) -> str:
    """Return what a tensor of a GGUF file is called in a folder."""
    layer = re.fullmatch(r"blk\.(\d+)\.(\w+)\.weight", name)
    if layer:
        return f"model.layers.{layer[1]}.{NAMES.get(layer[2], layer[2])}.weight"
    stem = name.removesuffix(".weight")
    return f"{NAMES.get(stem, stem)}.weight"


def unpack(stem: Path, target: Path) -> None:
    """Join pieces and write the folder they were made of; fail where the weights are not the same."""
    if (target / WEIGHTS).is_file():
        print(f"{target} is there already")
        return
    from safetensors.numpy import save_file

    pieces = sorted(stem.parent.glob(f"{stem.name}.*"), key=lambda path: int(path.suffix[1:]))
    scratch = target.with_name(f"{target.name}.unpacking")
    shutil.rmtree(scratch, ignore_errors=True)
    with tarfile.open(fileobj=io.BytesIO(b"".join(path.read_bytes() for path in pieces))) as archive:
        archive.extractall(scratch, filter="data")
    wanted = (scratch / "digest").read_text()
    if (scratch / PACKED).is_file():
        quants = quants_in(scratch / "gguf")
        tensors = {}
        with np.load(scratch / PACKED) as held:
            for key in held.files:
                name, kind = key.split("|")
                rows = held[key]
                tensors[name] = (
                    rows if kind == "F32" else quants.dequantize(rows, quants.GGMLQuantizationType[kind])
                )
        save_file(tensors, scratch / WEIGHTS, metadata={"format": "pt"})
        (scratch / PACKED).unlink()
        shutil.rmtree(scratch / "gguf")
    (scratch / "digest").unlink()
    if digest(scratch / WEIGHTS) != wanted:
        sys.exit(f"{scratch / WEIGHTS} is not what was packed")
    scratch.rename(target)
    print(f"{target}: {wanted[:12]}")


def quants_in(folder: Path) -> Any:
    """Load the package's dequantising alone: its front imports what is not everywhere."""
    package = types.ModuleType("gguf")
    package.__path__ = [str(folder)]
    sys.modules["gguf"] = package
    return importlib.import_module("gguf.quants")


def digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


if __name__ == "__main__":
    main()
