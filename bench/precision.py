"""Does bfloat16 choose as float32 does? Runs a Shuffle Test in each, and packs the runs to be compared.

    python bench/precision.py --model FOLDER --data DOCUMENTS.jsonl --output OUT [--ways float32,bfloat16]
    tar xzf OUT/precision.tar.gz && ensue compare --agreement float32 bfloat16

`bfloat16-compiled` is the same with `--compile always`. `rounded` stands for bfloat16 on a processor that has no such
products: float32, but weights and what every module returns are rounded to bfloat16, as a GPU's are, which sums in
float32 too. Needs torch, transformers and the folder `src` on PYTHONPATH
alone. `--limit 3 --device cpu` tries the script itself.
"""

from __future__ import annotations

import argparse
import json
import tarfile
import tempfile
import time
from pathlib import Path
from typing import Any

# Importing these first avoids a circular import in some versions of transformers.
import torch
import transformers
from coherence_train import stand_in
from transformers import AutoModelForCausalLM

ROUNDED = "rounded"
KEPT = ("run.json", "results.json", "items.jsonl")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--model", required=True)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--ways", default="float32,bfloat16,bfloat16-compiled")
    parser.add_argument("--shuffles", type=int, default=20)
    parser.add_argument("--limit", type=int)
    parser.add_argument("--device", default="cuda")
    options = parser.parse_args()
    stand_in()
    import ensue

    print("transformers", transformers.__version__, AutoModelForCausalLM.__name__, flush=True)
    options.output.mkdir(parents=True, exist_ok=True)
    folders: dict[str, Path] = {}
    with tempfile.TemporaryDirectory() as held:
        for way in options.ways.split(","):
            dtype, _, compiled = way.replace(ROUNDED, "float32").partition("-")
            model = ensue.load_model(
                options.model,
                name="smollm2",
                dtype=dtype,
                device=options.device,
                compile="always" if compiled else "auto",
            )
            if way == ROUNDED:
                round_all(model.network)
            began = time.perf_counter()
            folders[way] = Path(held) / way
            found = ensue.run(
                "shuffle",
                model=model,
                data=options.data,
                output=folders[way],
                shuffles=options.shuffles,
                limit=options.limit,
            ).results
            seconds = time.perf_counter() - began
            print(f"{way}: {seconds:.1f} s, {found['tokens'] / seconds / 1e3:.0f} k tokens/s", flush=True)
            for row in found["metrics"]:
                if row["metric"] == "accuracy":
                    print("  ", json.dumps({key: row[key] for key in ("metric", "settings", "value", "n")}))
            del model
            pack(options.output / "precision.tar.gz", folders)


def round_all(network: Any) -> None:
    """Round the weights of a network, and from now on whatever its modules return, to bfloat16."""

    def rounded(value: Any) -> Any:
        if isinstance(value, tuple):
            return tuple(map(rounded, value))
        floats = isinstance(value, torch.Tensor) and value.is_floating_point()
        return value.bfloat16().float() if floats else value

    with torch.no_grad():
        for weight in network.parameters():
            weight.copy_(rounded(weight))
    for module in network.modules():
        module.register_forward_hook(lambda _, __, found: rounded(found))


def pack(archive: Path, folders: dict[str, Path]) -> None:
    """Write what comparing needs of all runs made so far."""
    with tarfile.open(archive, "w:gz") as made:
        for way, folder in folders.items():
            for name in KEPT:
                made.add(folder / name, f"{way}/{name}")


if __name__ == "__main__":
    main()
