"""The engine beside a plain loop on a GPU: random weights in the shapes of two models, first and later passes.

    python bench/gpu.py --tokenizer FOLDER --data DOCUMENTS.jsonl [--work shuffle,prefix,eight,windows]
        [--ways loop,never,always] [--profile]

Each way runs in a process of its own. `loop` is the plainest way: texts sorted by length, padded to 65,536 tokens a
batch, the model called on them, every logit made. The others are this engine with `--compile never` and `always`.
Start-up is loading. The engine's first pass counts the probe of how the model may be run, which is otherwise kept
between runs. `--profile` looks into the probe and into one more pass: what the device did, and when it waited.
DOCUMENTS has lines with `sentences`; FOLDER is that of a model, of which only the tokenizer is used (`smollm2`).
Needs a CUDA device; `--device cpu --small` tries the script itself.
"""

from __future__ import annotations

import argparse
import cProfile
import json
import pstats
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

# Importing these first avoids a circular import in some versions of transformers.
import transformers
from transformers import AutoModelForCausalLM

SHAPES: dict[str, dict[str, int]] = {
    "135M": {
        "hidden_size": 576,
        "intermediate_size": 1536,
        "num_hidden_layers": 30,
        "num_attention_heads": 9,
        "num_key_value_heads": 3,
        "vocab_size": 49152,
    },
    "8B": {
        "hidden_size": 4096,
        "intermediate_size": 14336,
        "num_hidden_layers": 32,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "vocab_size": 128256,
    },
    "small": {
        "hidden_size": 64,
        "intermediate_size": 128,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "vocab_size": 49152,
    },
}
# Those of gemma3-270m but for its vocabulary (a plain loop has no room for its logits) and windows that texts exceed.
SHAPES["windows"] = {
    "hidden_size": 640,
    "intermediate_size": 2048,
    "num_hidden_layers": 18,
    "num_attention_heads": 4,
    "num_key_value_heads": 1,
    "head_dim": 256,
    "sliding_window": 128,
    "vocab_size": 49152,
}
WORK = {"shuffle": "135M", "prefix": "135M", "eight": "8B", "windows": "windows"}
DOCUMENTS = {"shuffle": 60, "eight": 8, "windows": 20}
BATCH = 65_536


def texts_of(path: Path, documents: int) -> list[str]:
    """The Shuffle Test's texts: each document and 20 shuffles at block sizes 1 to 5, of 20 sentences at most.

    Shuffles of few blocks repeat each other, as they do in the test itself.
    """
    found = []
    generator = random.Random(0)
    for line in path.read_text("utf-8").splitlines()[:documents]:
        sentences = json.loads(line)["sentences"][:20]
        found.append(" ".join(sentences))
        for block in range(1, 6):
            blocks = [sentences[i : i + block] for i in range(0, len(sentences), block)]
            for _ in range(20):
                generator.shuffle(blocks)
                found.append(" ".join(sentence for one in blocks for sentence in one))
    return found


def random_model(shape: str, device: str) -> Any:
    import torch

    from ensue.environment import avoid_trapping_tiles

    avoid_trapping_tiles()
    torch.manual_seed(0)
    kind = transformers.Gemma3TextConfig if shape == "windows" else transformers.LlamaConfig
    config = kind(**SHAPES[shape], max_position_embeddings=16384, tie_word_embeddings=True)
    torch.set_default_dtype(torch.bfloat16)
    with torch.device(device):
        model = AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16)
    torch.set_default_dtype(torch.float32)
    return model.eval().requires_grad_(False)


def prefix_parts(vocabulary: int, small: bool) -> list[Any]:
    """12 prefixes of 8,000 tokens with 6 continuations of 128 each."""
    import numpy as np

    from ensue.models.request import TokenPart

    generator = np.random.default_rng(0)
    prefix, tail, count = (60, 8, 2) if small else (8000, 128, 12)
    parts = []
    for _ in range(count):
        above = generator.integers(0, vocabulary, prefix, dtype=np.int32)
        for _ in range(6):
            below = generator.integers(0, vocabulary, tail, dtype=np.int32)
            parts.append(TokenPart(np.concatenate([above, below]), prefix))
    return parts


def loop(model: Any, ids: list[Any], starts: list[int]) -> list[float]:
    """Score texts one padded batch after another: the plainest loop."""
    import numpy as np
    import torch

    order = sorted(range(len(ids)), key=lambda i: -len(ids[i]))
    totals = [0.0] * len(ids)
    begin = 0
    while begin < len(order):
        longest = len(ids[order[begin]])
        batch = order[begin : begin + max(BATCH // longest, 1)]
        begin += len(batch)
        given = np.zeros((len(batch), longest), np.int64)
        mask = np.zeros_like(given)
        for row, index in enumerate(batch):
            given[row, : len(ids[index])], mask[row, : len(ids[index])] = ids[index], 1
        tokens, seen = torch.from_numpy(given).to(model.device), torch.from_numpy(mask).to(model.device)
        with torch.inference_mode():
            logits = model(input_ids=tokens, attention_mask=seen).logits[:, :-1]
            table = torch.log_softmax(logits.float(), -1)
            chosen = table.gather(2, tokens[:, 1:, None])[:, :, 0]
            del logits, table
        scores = chosen.double().cpu().numpy()
        for row, index in enumerate(batch):
            totals[index] = float(scores[row, starts[index] - 1 : len(ids[index]) - 1].sum())
    return totals


def one_way(arguments: argparse.Namespace) -> dict[str, Any]:
    """Run one kind of work in one way: seconds of a first and of two later passes."""
    import torch

    shape = "small" if arguments.small else WORK[arguments.one]
    began = time.perf_counter()
    model = random_model(shape, arguments.device)
    tokenizer = transformers.AutoTokenizer.from_pretrained(arguments.tokenizer)
    engine_model = None if arguments.way == "loop" else as_model(model, tokenizer, arguments.way)
    if arguments.device == "cuda":
        torch.cuda.synchronize()
    loaded = time.perf_counter()
    with called(arguments.profile):
        if engine_model is not None:
            _ = engine_model.executor  # how it may be run is found out once, and kept between runs
    if arguments.device == "cuda":
        torch.cuda.synchronize()
    probe, start_up = time.perf_counter() - loaded, loaded - began
    passes, totals, stages = [], [], {}
    texts = (
        []
        if arguments.one == "prefix"
        else texts_of(arguments.data, arguments.documents or DOCUMENTS[arguments.one])
    )
    parts = prefix_parts(SHAPES[shape]["vocab_size"], arguments.small) if arguments.one == "prefix" else []
    tokens = sum(len(part.ids) for part in parts)
    for _ in range(arguments.passes):
        if arguments.device == "cuda":
            torch.cuda.synchronize()
        began = time.perf_counter()
        if engine_model is not None:
            totals, tokens = engine_pass(engine_model, texts, parts)
        elif parts:
            totals = loop(model, [part.ids for part in parts], [part.start for part in parts])
        else:
            ids = tokenizer(texts, add_special_tokens=False)["input_ids"]
            stages["tokenise"] = time.perf_counter() - began
            tokens = sum(map(len, ids))
            totals = loop(model, ids, [1] * len(ids))
        if arguments.device == "cuda":
            torch.cuda.synchronize()
        passes.append(time.perf_counter() - began + (0.0 if passes else probe))
    if engine_model is not None:
        stages = {"probe": probe, **stages_of(engine_model, texts, parts)}
        if arguments.profile:
            profile(lambda: engine_pass(engine_model, texts, parts))
    memory = torch.cuda.max_memory_allocated() / 2**30 if arguments.device == "cuda" else 0.0
    return {
        "work": arguments.one,
        "way": arguments.way,
        "start_up": start_up,
        "passes": passes,
        "tokens": tokens,
        "stages": stages,
        "gib": memory,
        "totals": totals,
    }


def engine_pass(model: Any, texts: list[str], parts: list[Any]) -> tuple[list[float], int]:
    """Score all once: the totals, and how many tokens they are of."""
    from ensue.models.request import Request
    from ensue.scoring.engine import score

    if parts:
        found = dict(one for batch in model.executor.run(parts) for one in batch)
        return [float(found[i].logprobs.sum()) for i in range(len(parts))], sum(
            len(part.ids) for part in parts
        )
    scored = score(model, [Request(text) for text in texts])
    return [one.logprob for one in scored.scores], scored.tokens + len(texts)


@contextmanager
def called(wanted: bool) -> Iterator[None]:
    """Say which calls of the host took longest, where that is wanted."""
    if not wanted:
        yield
        return
    with cProfile.Profile() as found:
        yield
    pstats.Stats(found, stream=sys.stderr).sort_stats("cumulative").print_stats(45)


def profile(work: Callable[[], Any]) -> None:
    """Say what the device did in some work: by kernel, and when it waited for longer than a millisecond."""
    import torch

    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as found:
        began = time.time_ns()
        work()
        torch.cuda.synchronize()
        ended = time.time_ns()
    spent: dict[str, list[float]] = {}
    waits, until = [], began
    events = [one for one in found.profiler.kineto_results.events() if "CUDA" in str(one.device_type())]
    for event in sorted(events, key=lambda one: one.start_ns()):
        start, length = event.start_ns(), event.duration_ns()
        spent.setdefault(event.name(), []).append(length / 1e6)
        if start - until > 1e6:
            waits.append(((until - began) / 1e9, (start - until) / 1e6))
        until = max(until, start + length)
    waits.append(((until - began) / 1e9, (ended - until) / 1e6))
    busy, idle = sum(map(sum, spent.values())), sum(length for _, length in waits)
    say = lambda *words: print(*words, file=sys.stderr, flush=True)  # noqa: E731
    say(
        f"  a pass of {(ended - began) / 1e9:.3f} s: the device worked {busy / 1e3:.3f}, waited {idle / 1e3:.3f}"
    )
    say("  waits (at s: ms): " + "  ".join(f"{at:.2f}: {length:.0f}" for at, length in waits))
    for name, lengths in sorted(spent.items(), key=lambda one: -sum(one[1]))[:40]:
        say(f"  {sum(lengths):8.1f} ms {len(lengths):6} × {sum(lengths) / len(lengths):7.3f}  {name[:150]}")


def as_model(network: Any, tokenizer: Any, compile: str) -> Any:
    from ensue.backends.hf.language import CausalModel
    from ensue.backends.hf.loading import Loaded, Options
    from ensue.models.card import ModelCard

    identity = {"weights": "random", "tokenizer": "-", "dtype": "bfloat16", "revision": "-"}
    card = ModelCard("random", "causal", "bench", identity, max_length=16384)
    # Its code is no part of a model's identity here, so it is probed each time.
    options = Options(dtype="bfloat16", compile=compile, trust_remote_code=True)
    return CausalModel(Loaded(network, tokenizer, card, options))


def stages_of(model: Any, texts: list[str], parts: list[Any]) -> dict[str, float]:
    """Time the host's work alone, stage by stage."""
    from ensue.models.request import Policy, Request
    from ensue.scoring.forest import grow_forest
    from ensue.scoring.rows import BLOCK, make_rows, seen_blocks

    stages = {}
    began = time.perf_counter()
    if texts:
        prepared = model.prepare([Request(text) for text in texts], Policy())
        parts = [part for one in prepared for part in one.parts]
        stages["prepare"] = time.perf_counter() - began
    began = time.perf_counter()
    forest = grow_forest(parts)
    stages["tree"] = time.perf_counter() - began
    began = time.perf_counter()
    rows = list(make_rows(forest, BATCH))
    stages["rows"] = time.perf_counter() - began
    began = time.perf_counter()
    for row in rows:
        seen_blocks(row.padded(BATCH if len(row.ids) <= BATCH else -(-len(row.ids) // BLOCK) * BLOCK).ends)
    stages["blocks"] = time.perf_counter() - began
    stages["fed_tokens"] = sum(len(row.ids) for row in rows)
    return stages


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tokenizer", required=True)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--work", default="shuffle,prefix,eight")
    parser.add_argument("--ways", default="loop,never,always")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--documents", type=int)
    parser.add_argument("--passes", type=int, default=3)
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--profile", action="store_true")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("--way", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        print(json.dumps(one_way(arguments)))
        return
    for work in arguments.work.split(","):
        plain: dict[str, Any] = {}
        for way in arguments.ways.split(","):
            asked = [sys.executable, __file__, *sys.argv[1:], "--one", work, "--way", way]
            done = subprocess.run(asked, stdout=subprocess.PIPE, text=True, check=False)
            if done.returncode:
                print(f"{work:8} {way:7} failed", flush=True)
                continue
            found = json.loads(done.stdout.splitlines()[-1])
            plain = found if way == "loop" else plain
            report(found, plain)


def report(found: dict[str, Any], plain: dict[str, Any]) -> None:
    first, *later = found["passes"]
    best = min(later, default=first)
    words = f"{found['work']:8} {found['way']:7} first {first:6.2f} s  later {best:6.2f} s"
    words += f" = {found['tokens'] / first / 1e3:6.0f} / {found['tokens'] / best / 1e3:6.0f} k tokens/s"
    words += f"  start-up {found['start_up']:.1f} s  {found['gib']:.1f} GiB"
    if plain and plain is not found:
        gaps = [abs(a - b) for a, b in zip(found["totals"], plain["totals"], strict=True)]
        mean = sum(gaps) / max(found["tokens"], 1)
        words += (
            f"  ×{plain['passes'][0] / first:.2f} / ×{min(plain['passes'][1:] or plain['passes']) / best:.2f}"
        )
        words += f"  gap {mean:.4f} nats/token"
    print(words, flush=True)
    if found["stages"]:
        print("  " + "  ".join(f"{name} {value:.2f}" for name, value in found["stages"].items()), flush=True)


if __name__ == "__main__":
    main()
