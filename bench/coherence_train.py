"""Trains the models of docs/coherence.md on a GPU: in-domain, masked and supervised ones; prints seconds for each.

    python bench/coherence_sets.py ~/ensue-data carried
    python bench/coherence_train.py --data carried/train --weights WEIGHTS --output $OUT [--jobs lm-bbc,mlm]

Needs torch, transformers, accelerate and the folder `src` on PYTHONPATH and nothing else of this package's
dependencies. WEIGHTS holds the folders `smollm2` and `minilm`. Models are trained in --keep (a folder of the
machine); all but checkpoints is packed into OUTPUT as models.tar.gz.NN, pieces small enough to be brought home:
`cat models.tar.gz.* | tar xz`. Adapters name `smollm2` and `minilm` as their base. `mlm` learns from open texts
alone, so that it may be given away.
"""

from __future__ import annotations

import argparse
import importlib.util
import io
import json
import sys
import tarfile
import tempfile
import time
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

PIECE = 15 << 20
# Whole models are not brought home unless asked for.
LARGEST = 20 << 20

NEWS = ["bbc.jsonl", "xsum.jsonl"]
# What may be given away in a package: texts in the public domain and CC BY-SA.
OPEN = ["novels.jsonl", "wiki.jsonl", "stories.jsonl"]
ABOUT = {
    "bbc.jsonl": "BBC news articles of 2004-05, every other one",
    "wsj.jsonl": "the Wall Street Journal sample of the Penn Treebank, every other article (non-commercial)",
    "xsum.jsonl": "1,000 articles of XSum",
    "novels.jsonl": "novels of ELTeC and LitBank's works at Project Gutenberg, every other one (public domain)",
    "wiki.jsonl": "pages of Wikipedia: what SQuAD 1.1 dev asks about, WikiText-2 valid and test (CC BY-SA)",
    "stories.jsonl": "the stories of SQuALITY's training split, from Project Gutenberg (public domain)",
}
CAUSAL = {"trainer": "lm", "model": "smollm2", "batch": 8, "dev_share": 0.05}
MASKED = {
    **{"trainer": "lm", "model": "minilm", "objective": "masked", "epochs": 8, "batch": 64},
    **{"dev_share": 0.02, "row_tokens": 512},
}
RATER = {"trainer": "coherence", "model": "minilm", "batch": 16}
JOBS: dict[str, dict[str, Any]] = {
    # The figure to reach: 2,000 articles in under 90 seconds, evaluations and saving counted.
    "lm-news-full": {**CAUSAL, "data": NEWS, "full": True},
    "lm-bbc": {**CAUSAL, "data": ["bbc.jsonl"], "lora": 16, "epochs": 3},
    "lm-wsj": {**CAUSAL, "data": ["wsj.jsonl"], "lora": 16, "epochs": 3, "batch": 4},
    "mlm": {**MASKED, "data": OPEN, "lora": 32, "learning_rate": 2e-3},
    "mlm-all": {**MASKED, "data": [*OPEN, *NEWS, "wsj.jsonl"], "lora": 32, "learning_rate": 2e-3},
    "coherence-bbc": {**RATER, "data": ["bbc.jsonl"], "lora": 32, "shuffles": 10, "epochs": 2},
    "coherence-wsj": {**RATER, "data": ["wsj.jsonl"], "lora": 32, "shuffles": 20, "epochs": 6},
    "coherence-bbc-full": {**RATER, "data": ["bbc.jsonl"], "full": True, "shuffles": 10, "epochs": 2},
    "coherence-wsj-full": {**RATER, "data": ["wsj.jsonl"], "full": True, "shuffles": 20, "epochs": 6},
    "mlm-full": {**MASKED, "data": OPEN, "full": True, "learning_rate": 5e-4},
}
DEFAULT = "lm-news-full,lm-bbc,lm-wsj,mlm,coherence-bbc,coherence-wsj"


def stand_in() -> None:
    """Let the trainers' options be read where typer is missing, and documents where the splitter is."""
    if importlib.util.find_spec("typer") is None:
        typer, models = types.ModuleType("typer"), types.ModuleType("typer.models")

        class OptionInfo:
            def __init__(self, *_: Any, min: Any = None, max: Any = None, **__: Any) -> None:
                self.min, self.max = min, max

        models.OptionInfo = OptionInfo  # type: ignore[attr-defined]
        typer.Option, typer.models = OptionInfo, models  # type: ignore[attr-defined]
        sys.modules |= {"typer": typer, "typer.models": models}
    if importlib.util.find_spec("sentencex") is None:
        sys.modules["sentencex"] = types.ModuleType("sentencex")


def train(data: Path, weights: Path, output: Path, keep: Path, jobs: list[str], limit: int | None) -> None:
    """Train every job in turn; what failed is said and does not stop the others."""
    stand_in()
    import torch

    import ensue
    from ensue.environment import peak_memory

    output.mkdir(parents=True, exist_ok=True)
    if torch.cuda.is_available() and (weights / "smollm2").is_dir():
        try:
            print(json.dumps(waits(weights / "smollm2")), flush=True)
        except Exception as error:
            print(f"whether a step waits could not be tried: {error}", flush=True)
    lines = []
    for name in jobs:
        options = dict(JOBS[name])
        trainer, files = options.pop("trainer"), options.pop("data")
        sources = [str(cut(data / file, keep, limit)) for file in files]
        began = time.monotonic()
        try:
            fitted = ensue.train(
                trainer,
                **{**options, "model": str(weights / options["model"]), "base_name": options["model"]},
                data=sources,
                about_data="; ".join(ABOUT[file] for file in files) + ".",
                output=keep / name,
            )
            line = {
                "job": name,
                "seconds": round(time.monotonic() - began, 1),
                "loop_seconds": round(fitted.seconds, 1),
                "steps": fitted.steps,
                "best_step": fitted.best_step,
                **{key: round(value, 4) for key, value in fitted.best.items()},
                **facts_of(json.loads((keep / name / "training.json").read_text("utf-8"))),
                "peak": peak_memory(),
            }
        except Exception as error:
            line = {"job": name, "failed": f"{type(error).__name__}: {error}"}
        lines.append(line)
        print(json.dumps(line), flush=True)
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats()
    (output / "training.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    pack([keep / line["job"] for line in lines if "failed" not in line], output)


def waits(folder: Path) -> dict[str, Any]:
    """Take three steps in bf16 where torch raises as soon as the host waits for the device within one."""
    import numpy as np
    import torch

    from ensue.backends.names import load_model
    from ensue.descent import descend
    from ensue.train.lm.objective import LanguageObjective
    from ensue.train.lm.rows import Frame, Rows

    loaded: Any = load_model(str(folder), device="cuda", dtype="float32")
    device = loaded.network.device
    objective = LanguageObjective(loaded.network.requires_grad_(True), Frame())
    pieces = [np.arange(300 + 7 * n, dtype=np.int32) % 40_000 for n in range(40)]
    batches = list(Rows(pieces, Frame(), 2048, device, packed=objective.packed).batches(2))
    parameters = list(objective.parameters())
    optimiser = torch.optim.AdamW(parameters, lr=1e-5)
    objective.train()

    def losses(number: int) -> Iterator[Any]:
        with torch.autocast("cuda", dtype=torch.bfloat16):
            yield objective(batches[number % len(batches)])

    def clip() -> None:
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)

    descend([losses(0)], optimiser, clip=clip, after=lambda found: False)
    torch.cuda.synchronize()
    torch.cuda.set_sync_debug_mode("error")
    try:
        descend((losses(number) for number in range(3)), optimiser, clip=clip, after=lambda found: False)
        found = "never"
    except RuntimeError as error:
        found = str(error).splitlines()[0]
    finally:
        torch.cuda.set_sync_debug_mode("default")
    return {"within a step the host waits for the device": found, "packed": objective.packed}


def facts_of(record: dict[str, Any]) -> dict[str, Any]:
    """What of a record is worth printing."""
    found = {key: record[key] for key in ("tokens", "rows", "pairs", "cut", "before") if key in record}
    return {**found, "documents": record["documents"]["train"], "gpu": record["environment"]["gpu"]}


def cut(path: Path, keep: Path, limit: int | None) -> Path:
    """The file, or its first lines where a trial run asks for few."""
    if limit is None:
        return path
    keep.mkdir(parents=True, exist_ok=True)
    short = keep / f"{path.stem}-{limit}.jsonl"
    with path.open(encoding="utf-8") as lines:
        short.write_text("".join(line for line, _ in zip(lines, range(limit), strict=False)), "utf-8")
    return short


def pack(folders: list[Path], output: Path) -> None:
    """Put all small models into one archive, in pieces."""
    held = io.BytesIO()
    with tarfile.open(fileobj=held, mode="w:gz") as archive:
        for folder in folders:
            kept = [path for path in sorted(folder.rglob("*")) if path.is_file()]
            kept = [path for path in kept if not path.name.startswith("checkpoint")]
            if sum(path.stat().st_size for path in kept) > LARGEST:
                kept = [path for path in kept if path.suffix in (".json", ".jsonl", ".md")]
                print(f"{folder.name}: too large to be packed, only what it says of itself is")
            for path in kept:
                archive.add(path, f"{folder.name}/{path.relative_to(folder)}")
    whole = held.getvalue()
    for number, begin in enumerate(range(0, len(whole), PIECE)):
        (output / f"models.tar.gz.{number:02d}").write_bytes(whole[begin : begin + PIECE])
    print(f"packed {len(folders)} models, {len(whole) / 1e6:.1f} MB")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--weights", type=Path, default=Path("weights"))
    parser.add_argument("--keep", type=Path, help="where models are trained (default: a temporary folder)")
    parser.add_argument("--jobs", default=DEFAULT, help=f"of {', '.join(JOBS)}")
    parser.add_argument("--limit", type=int, help="documents a file, to try the script itself")
    args = parser.parse_args()
    keep = args.keep or Path(tempfile.mkdtemp())
    train(args.data, args.weights, args.output, keep, args.jobs.split(","), args.limit)


if __name__ == "__main__":
    main()
