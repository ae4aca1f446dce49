"""Encoders on a GPU beside their peers: sentence vectors, masked scoring, fine-tuning; weights of MiniLM's shape.

    python bench/gpu_encoders.py --pack carry               # here: tokenizer, 100,000 sentences, nine small tasks
    python bench/gpu_encoders.py --data carry [--work encode,masked,check,steps,nine] [--seconds 500] [--each 150]
                                 [--output FOLDER]

Weights are random, so only time and agreement are told by it. Each way of each work runs in a process of its own,
start-up apart; rows come as they are done (and go to `results.jsonl` in the folder), a way is stopped after `--each`
seconds, and none is begun after `--seconds`. Peers: sentence-transformers as it
comes; for masked scoring a loop that runs each text's masked copies as one batch, every logit made, as minicons does;
for fine-tuning this package's own steps one kernel at a time. `--device cpu --small` tries the script itself.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

# Importing it first avoids a circular import in some versions of it.
import transformers

# No text is divided into sentences here, and not every machine has what does it.
sys.modules.setdefault("sentencex", types.ModuleType("sentencex"))

SHAPE = {
    "hidden_size": 384,
    "num_hidden_layers": 6,
    "num_attention_heads": 12,
    "intermediate_size": 1536,
    "vocab_size": 30522,
    "max_position_embeddings": 512,
}
SMALL = {
    **SHAPE,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 64,
}
WAYS = {
    "encode": ("peer", "ours", "peer-bf16", "ours-bf16"),
    "masked": ("peer-bf16", "ours-bf16", "ours"),
    "check": ("float32", "bf16", "refused"),
    "steps": ("plain", "recorded"),
    "nine": ("recorded",),
}
TASKS = {"glue": ("CoLA", "MRPC", "STS-B", "RTE", "WNLI"), "superglue": ("CB", "COPA", "WSC", "WiC")}
RESULT = "RESULT "


def pack(folder: Path) -> None:
    """Put together what the other machine needs, 12 MB: no weights."""
    from encode import read_sentences

    home = Path(os.environ.get("ENSUE_DATA", "~/ensue-data")).expanduser()
    model = Path("~/.cache/ensue/models/minilm-0.1.0").expanduser()
    shutil.copytree(model, folder / "minilm", ignore=shutil.ignore_patterns("*.safetensors", "data_config*"))
    sentences = list(dict.fromkeys(read_sentences(home / "discoeval", 0, 0)))[:100_000]
    with gzip.open(folder / "sentences.json.gz", "wt", encoding="utf-8") as file:
        json.dump(sentences, file)
    for suite, tasks in TASKS.items():
        for task in tasks:
            shutil.copytree(
                home / suite / task, folder / suite / task, ignore=shutil.ignore_patterns("msr_*", "sts-*")
            )
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    print(f"{folder}: {len(sentences)} sentences, {size / 2**20:.1f} MB")


def sentences_of(arguments: argparse.Namespace, count: int) -> list[str]:
    with gzip.open(arguments.data / "sentences.json.gz", "rt", encoding="utf-8") as file:
        return list(json.load(file)[: 300 if arguments.small else count])


def random_network(arguments: argparse.Namespace, kind: str) -> Any:
    import torch

    torch.manual_seed(0)
    config = transformers.BertConfig(**(SMALL if arguments.small else SHAPE))
    return getattr(transformers, kind).from_config(config).eval()


def model_folder(arguments: argparse.Namespace, scratch: Path) -> Path:
    """A folder as sentence-transformers has them, with random weights."""
    folder = scratch / "minilm"
    shutil.copytree(arguments.data / "minilm", folder)
    random_network(arguments, "AutoModel").save_pretrained(folder)
    return folder


def loaded(arguments: argparse.Namespace, network: Any, kind: str, dtype: str, length: int) -> Any:
    from ensue.backends.hf.loading import Loaded, Options, pick_dtype
    from ensue.models.card import ModelCard

    tokenizer = transformers.AutoTokenizer.from_pretrained(arguments.data / "minilm")
    identity = {"weights": "random", "tokenizer": "-", "dtype": dtype, "revision": "-"}
    card = ModelCard("random", kind, "bench", identity, max_length=length)
    placed = network.to(pick_dtype(dtype)).requires_grad_(False).to(arguments.device)
    # Its code is no part of a model's identity here, so it is probed each time.
    return Loaded(placed, tokenizer, card, Options(dtype=dtype, trust_remote_code=True))


def waited(arguments: argparse.Namespace) -> float:
    """The time, when the device has done all it was given."""
    if arguments.device == "cuda":
        import torch

        torch.cuda.synchronize()
    return time.perf_counter()


def passes(arguments: argparse.Namespace, work: Callable[[], Any]) -> tuple[list[float], Any]:
    """Seconds of each pass; a peer has two."""
    taken, found = [], None
    for _ in range(min(arguments.passes, 2) if arguments.way.startswith("peer") else arguments.passes):
        began = waited(arguments)
        found = work()
        taken.append(waited(arguments) - began)
    return taken, found


def encode(arguments: argparse.Namespace) -> dict[str, Any]:
    sentences = sentences_of(arguments, 100_000)
    dtype = "bfloat16" if arguments.way.endswith("bf16") else "float32"
    began = time.perf_counter()
    stages: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as scratch:
        folder = model_folder(arguments, Path(scratch))
        if arguments.way.startswith("peer"):
            from sentence_transformers import SentenceTransformer

            peer = SentenceTransformer(str(folder), device=arguments.device)
            peer = peer.bfloat16() if dtype == "bfloat16" else peer

            def work() -> Any:
                return np.asarray(peer.encode(sentences, show_progress_bar=False), np.float32)

        else:
            from ensue.backends.hf.encoder import EncoderModel

            network = transformers.AutoModel.from_pretrained(folder)
            model = EncoderModel(loaded(arguments, network, "encoder", dtype, 512), folder)

            def work() -> Any:
                return model.encode(sentences)

        start_up = waited(arguments) - began
        taken, vectors = passes(arguments, work)
        if arguments.way.startswith("ours"):
            began = time.perf_counter()
            tokens = model._quick(sentences)
            stages = {"tokenise": time.perf_counter() - began, "tokens": float(len(tokens.ids))}
            stages["threads"] = float(os.cpu_count() or 0)
            stages["long_way_10k"] = -time.perf_counter()
            model._tokenised(sentences[:10_000])
            stages["long_way_10k"] += time.perf_counter()
            stages["without_tokenising"] = without_tokenising(arguments, model, work)
    np.save(arguments.scratch / f"encode-{arguments.way}.npy", vectors)
    return {
        "start_up": start_up,
        "passes": taken,
        "units": len(sentences),
        "unit": "sentences",
        "stages": stages,
    }


def without_tokenising(arguments: argparse.Namespace, model: Any, work: Callable[[], Any]) -> float:
    """Seconds of a pass whose tokens are known."""
    quick, known = model._quick, {}

    def remembered(texts: list[str]) -> Any:
        key = (len(texts), texts[0], texts[-1])
        if key not in known:
            known[key] = quick(texts)
        return known[key]

    model.__dict__["_quick"] = remembered
    work()
    began = waited(arguments)
    work()
    return waited(arguments) - began


def masked(arguments: argparse.Namespace) -> dict[str, Any]:
    import torch

    sentences = sentences_of(arguments, 1000)[: 6 if arguments.small else 1000]
    every = sentences_of(arguments, 4000)
    documents = [" ".join(every[i : i + 8]) for i in range(0, len(every) // 25, 8)]
    texts = [*sentences, *documents[: 0 if arguments.small else None]]
    dtype = "bfloat16" if arguments.way.endswith("bf16") else "float32"
    began = time.perf_counter()
    network = random_network(arguments, "AutoModelForMaskedLM")
    held = loaded(arguments, network, "masked", dtype, 512)
    tokenizer, mask = held.tokenizer, held.tokenizer.mask_token_id
    if arguments.way.startswith("peer"):

        def work() -> list[float]:
            totals = []
            for text in texts:
                ids = tokenizer(text, truncation=True, max_length=512, return_tensors="pt")["input_ids"]
                ids = ids.to(arguments.device)[0]
                places = torch.arange(1, len(ids) - 1, device=ids.device)
                rows = torch.arange(len(places), device=ids.device)
                copies = ids.repeat(len(places), 1)
                copies[rows, places] = mask
                with torch.inference_mode():
                    table = network(input_ids=copies).logits.float().log_softmax(-1)
                    totals.append(float(table[rows, places, ids[1:-1]].double().sum()))
            return totals

    else:
        from ensue.backends.hf.language import MaskedModel
        from ensue.models.request import Request
        from ensue.scoring.engine import score

        model = MaskedModel(held)

        def work() -> list[float]:
            return [one.logprob for one in score(model, [Request(text) for text in texts]).scores]

    start_up = waited(arguments) - began
    taken, totals = passes(arguments, work)
    lengths = [len(row) for row in tokenizer(texts, truncation=True, max_length=512)["input_ids"]]
    stages = {}
    if arguments.way.startswith("ours"):
        stages["end_to_end"] = float(model.executor.way is not None)
    np.save(arguments.scratch / f"masked-{arguments.way}.npy", np.asarray(totals))
    fed = sum((length - 2) * length for length in lengths)
    return {"start_up": start_up, "passes": taken, "units": fed, "unit": "tokens", "stages": stages}


def finetuned(
    arguments: argparse.Namespace, take_steps: Any, *, epochs: int, **choices: Any
) -> tuple[Any, list[float]]:
    """MRPC without dev, and the time at every step."""
    import torch

    from ensue.benchmarks.glue.data import read_task
    from ensue.benchmarks.nlu.suites import specs_of
    from ensue.train.finetune.inputs import Inputs
    from ensue.train.finetune.recipe import SETTINGS, recipe_for
    from ensue.train.finetune.training import fit, lay_out

    tokenizer = transformers.AutoTokenizer.from_pretrained(arguments.data / "minilm")
    (spec,) = (spec for spec in specs_of("glue") if spec.name == "MRPC")
    data = read_task(arguments.data / "glue", spec)
    assert data is not None
    examples = data.splits["train"][: 64 if arguments.small else None]
    given = {key: setting.default for key, setting in SETTINGS.items()} | {"epochs": epochs} | choices
    recipe = recipe_for(data.spec, 3668, given, width=384, limit=512, pool="mean")
    device = torch.device(arguments.device)
    split = lay_out(data.spec, examples, Inputs(tokenizer, 512), recipe, device, 0)
    network = random_network(arguments, "AutoModel")
    if recipe.dropout == 0.0:
        for part in network.modules():
            if isinstance(part, torch.nn.Dropout):
                part.p = 0.0
    times: list[float] = []
    trained = fit(
        network.to(device),
        split,
        None,
        recipe,
        0,
        lambda *state: times.append(time.perf_counter()),
        take_steps,
    )
    return trained, times


def steps(arguments: argparse.Namespace) -> dict[str, Any]:
    """Milliseconds a step of MRPC in bf16: all of the second and third epoch, evaluation left out."""
    from ensue.train.finetune.steps import Steps, steps_for

    began = time.perf_counter()
    take = Steps if arguments.way == "plain" else steps_for
    _, times = finetuned(arguments, take, epochs=4, precision="bf16")
    each = len(times) // 4
    # The loss is read, so all is done, between the last step of an epoch and the first of the next.
    found = [(times[each * (n + 1)] - times[each * n]) / each for n in range(3)]
    stages = {f"epoch {n + 1}, ms a step": 1000 * value for n, value in enumerate(found)}
    start_up = times[0] - began
    return {
        "start_up": start_up,
        "passes": [f * each for f in found],
        "units": each,
        "unit": "steps",
        "stages": stages,
    }


def check(arguments: argparse.Namespace) -> dict[str, Any]:
    """Recorded steps against plain ones without dropout, and a recording that is refused half way."""
    import torch

    from ensue.train.finetune.steps import RecordedSteps, Steps, steps_for
    from ensue.train.recording import CudaRecord

    began = time.perf_counter()
    precision = arguments.way if arguments.way != "refused" else "float32"
    dropout = 0.1 if arguments.way == "refused" else 0.0
    one, _ = finetuned(arguments, Steps, epochs=2, precision=precision, dropout=dropout)

    class Waiting(RecordedSteps):
        def _after(self, found: list[Any]) -> bool:
            self.read = float(found[0])  # a GPU refuses this while it records
            return super()._after(found)

    def refused(network: Any, recipe: Any, total: int, losses: Any) -> Any:
        record: Any = CudaRecord() if arguments.device == "cuda" else (lambda work: work)
        return Waiting(network, recipe, total, losses, record)

    other, _ = finetuned(
        arguments,
        refused if arguments.way == "refused" else steps_for,
        epochs=2,
        precision=precision,
        dropout=dropout,
    )
    weights = [trained.network.state_dict() for trained in (one, other)]
    moved = torch.cat(
        [(weights[0][n] - weights[1][n]).flatten() for n in weights[0] if not n.endswith("key.bias")]
    )
    stages = {f"loss {n + 1} plain": value for n, value in enumerate(one.record["losses"])}
    stages |= {f"loss {n + 1} recorded": value for n, value in enumerate(other.record["losses"])}
    stages |= {"weights apart, largest": float(moved.abs().max()), "rms": float(moved.square().mean().sqrt())}
    return {
        "start_up": 0.0,
        "passes": [time.perf_counter() - began],
        "units": 230 * 2,
        "unit": "steps",
        "stages": stages,
    }


def nine(arguments: argparse.Namespace) -> dict[str, Any]:
    """The nine small tasks, each as a whole run: reading, tokenising, training, answering all splits, intervals."""
    import finetune

    from ensue.backends.hf.encoder import EncoderModel

    began = time.perf_counter()
    stages: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as scratch:
        folder = model_folder(arguments, Path(scratch))
        network = transformers.AutoModel.from_pretrained(folder)
        model = EncoderModel(loaded(arguments, network, "encoder", "float32", 512), folder)
        start_up = waited(arguments) - began
        began = time.perf_counter()
        training = 0.0
        chosen = [("superglue", "CB")] if arguments.small else finetune.chosen(None)
        for suite, task in chosen:
            options = argparse.Namespace(limit=None, seed=0, runs=1, output=None, set=["precision=bf16"])
            if arguments.small:
                options.set = ["epochs=1"]
            found = finetune.fine_tune(
                model, suite, task, arguments.data / suite, Path(scratch) / "runs", options
            )
            training += found["training_seconds"]
            print(f"  {finetune.line(found)}", flush=True)
        taken = waited(arguments) - began
        stages["training alone"] = training
    return {"start_up": start_up, "passes": [taken], "units": len(chosen), "unit": "tasks", "stages": stages}


def one_way(arguments: argparse.Namespace) -> None:
    import torch

    if arguments.device == "cpu":
        torch.set_num_threads(1)
    found = globals()[arguments.one](arguments)
    found["gib"] = torch.cuda.max_memory_allocated() / 2**30 if arguments.device == "cuda" else 0.0
    print(RESULT + json.dumps({"work": arguments.one, "way": arguments.way, **found}), flush=True)


def run(arguments: argparse.Namespace, work: str, way: str, scratch: str) -> dict[str, Any] | None:
    """Run one way in a process of its own; what it prints beside its result is printed at once."""
    asked = [sys.executable, __file__, *sys.argv[1:], "--one", work, "--way", way, "--scratch", scratch]
    environment = {
        **os.environ,
        "PYTHONUNBUFFERED": "1",
        "TOKENIZERS_PARALLELISM": "true",
        "HF_HUB_OFFLINE": "1",
    }
    found = None
    with subprocess.Popen(asked, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        clock = threading.Timer(arguments.each, process.kill)
        clock.start()
        for line in process.stdout:
            if line.startswith(RESULT):
                found = json.loads(line.removeprefix(RESULT))
            else:
                print(line, end="", flush=True)
        clock.cancel()
    if found is not None and arguments.output is not None:
        with (arguments.output / "results.jsonl").open("a", encoding="utf-8") as file:
            file.write(json.dumps(found) + "\n")
    return found


def report(found: dict[str, Any], peer: dict[str, Any] | None, scratch: Path) -> None:
    first, *later = found["passes"]
    best = min(later, default=first)
    words = f"{found['work']:7} {found['way']:10} first {first:7.2f} s  later {best:7.2f} s"
    words += f" = {found['units'] / best:12,.0f} {found['unit']}/s  start-up {found['start_up']:.1f} s"
    words += f"  {found['gib']:.1f} GiB"
    if peer is not None:
        theirs = min(peer["passes"][1:], default=peer["passes"][0])
        words += f"  ×{peer['passes'][0] / first:.2f} / ×{theirs / best:.2f}"
        pair = [scratch / f"{one['work']}-{one['way']}.npy" for one in (peer, found)]
        if all(path.is_file() for path in pair):
            one, other = (np.load(path) for path in pair)
            words += f"  apart {np.abs(one - other).max():.1e} of {np.abs(one).max():.1e}"
    print(words, flush=True)
    if found["stages"]:
        print("  " + "  ".join(f"{name} {value:.4g}" for name, value in found["stages"].items()), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pack", type=Path)
    parser.add_argument("--data", type=Path, default=Path("carry"))
    parser.add_argument("--work", default=",".join(WAYS))
    parser.add_argument("--ways")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--passes", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=540.0)
    parser.add_argument("--each", type=float, default=150.0)
    parser.add_argument("--output", type=Path)
    parser.add_argument("--small", action="store_true")
    for hidden in ("--one", "--way"):
        parser.add_argument(hidden, help=argparse.SUPPRESS)
    parser.add_argument("--scratch", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.pack is not None:
        pack(arguments.pack)
        return
    if arguments.one:
        one_way(arguments)
        return
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as scratch:
        for work in arguments.work.split(","):
            peers: dict[str, dict[str, Any]] = {}
            for way in WAYS[work] if arguments.ways is None else arguments.ways.split(","):
                if time.monotonic() - began > arguments.seconds:
                    print(f"{work:7} {way:10} not begun: {arguments.seconds:.0f} s are over", flush=True)
                    continue
                found = run(arguments, work, way, scratch)
                if found is None:
                    print(f"{work:7} {way:10} failed or longer than {arguments.each:.0f} s", flush=True)
                    continue
                precision = "bf16" if way.endswith("bf16") else "float32"
                if way.startswith(("peer", "plain")):
                    peers[precision] = found
                    report(found, None, Path(scratch))
                else:
                    report(found, peers.get(precision) if work != "check" else None, Path(scratch))


if __name__ == "__main__":
    main()
