"""How work grows with data: time and memory of building, planning and scoring, in a process each.

    python bench/growth.py [--output bench/results] [--requests 1000000]

Documents ×1, ×10, ×100 (invented, all different) are built, planned and scored with a tiny random model, where
scoring itself is not the point; contexts of 1,024 to 8,192 tokens with six continuations each are planned and
scored with a wider one; and a million requests are planned in one tree. Seconds are the process's own, so that a busy
machine changes them little; memory is the process's peak above what it had once everything was imported. Writes
growth.md, growth.json and growth.png.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

WORDS = [f"{a}{b}{c}" for a in "bdfgklmnprst" for b in "aeiou" for c in ("n", "r", "s", "l")]
SHUFFLE = {"block_size": [1, 2], "shuffles": 5}
FACTORS, LENGTHS = (1, 10, 100), (1024, 2048, 4096, 8192)
# Documents and works that ×1 stands for.
DOCUMENTS, WORKS = 5, 3


def sentence(draw: np.random.Generator, length: int = 12) -> str:
    """An invented sentence."""
    return " ".join(draw.choice(WORDS, length)).capitalize() + "."


def write_documents(path: Path, count: int) -> Path:
    """Write documents of twelve sentences."""
    draw = np.random.default_rng(0)
    with path.open("w") as file:
        for number in range(count):
            row = {"id": f"d{number}", "sentences": [sentence(draw) for _ in range(12)]}
            file.write(json.dumps(row) + "\n")
    return path


def write_works(path: Path, count: int) -> Path:
    """Write works of ten chapters, 12,000 words each."""
    draw = np.random.default_rng(0)
    with path.open("w") as file:
        for number in range(count):
            chapters = [
                {"head": f"Chapter {place}", "paragraphs": [sentence(draw, 40) for _ in range(30)]}
                for place in range(1, 11)
            ]
            file.write(
                json.dumps({"id": f"w{number}", "title": f"Work {number}", "chapters": chapters}) + "\n"
            )
    return path


def tiny_model(folder: Path, width: int, layers: int) -> str:
    """Save a Llama of random weights with a tokenizer of whole words."""
    import transformers
    from tokenizers import Tokenizer, models, pre_tokenizers

    marks = ["<unk>", ".", *WORDS, *(word.capitalize() for word in WORDS)]
    made = Tokenizer(models.WordLevel({word: place for place, word in enumerate(marks)}, unk_token="<unk>"))
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=made, unk_token="<unk>", eos_token="<unk>"
    )
    config = transformers.LlamaConfig(
        hidden_size=width, intermediate_size=2 * width, num_hidden_layers=layers, num_attention_heads=4,
        vocab_size=len(marks), max_position_embeddings=16_384, bos_token_id=None, eos_token_id=0,
    )  # fmt: skip
    transformers.LlamaForCausalLM(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return str(folder)


# --------------------------------------------------------------------- one measurement, in a process of its own


def _timed(do: Callable[[], Any]) -> dict[str, float]:
    from ensue.environment import peak_memory

    before, began = peak_memory()["cpu_mib"], time.process_time()
    do()
    return {"seconds": time.process_time() - began, "mib": peak_memory()["cpu_mib"] - before}


def build(work: Path, factor: int) -> dict[str, float]:
    import ensue

    source = write_works(work / "works.jsonl", WORKS * factor)
    warm = write_works(work / "one.jsonl", 1)
    ensue.build("chapterbreak", str(warm), work / "warm", split="train", prefix_words=2000)
    found = _timed(
        lambda: ensue.build("chapterbreak", str(source), work / "made", split="train", prefix_words=2000)
    )
    return found | {"count": WORKS * factor}


def read(work: Path, factor: int) -> dict[str, float]:
    from ensue.text.documents import read_documents

    source = write_documents(work / "documents.jsonl", DOCUMENTS * factor)
    read_documents(limit=1)
    return _timed(lambda: read_documents(source)) | {"count": DOCUMENTS * factor}


def plan(work: Path, factor: int) -> dict[str, float]:
    from ensue.runs.planning.plan import plan as plan_run

    source = write_documents(work / "documents.jsonl", DOCUMENTS * factor)
    model = tiny_model(work / "model", 32, 2)
    plan_run("shuffle", model=model, hardware="cpu", limit=1, **SHUFFLE)
    made: list[Any] = []
    found = _timed(
        lambda: made.append(plan_run("shuffle", model=model, data=source, hardware="cpu", **SHUFFLE))
    )
    tally = made[0].costs[0].tally
    return found | {
        "count": DOCUMENTS * factor,
        "requests": tally.texts,
        "fed": tally.fed,
        "given": tally.given,
    }


def run(work: Path, factor: int) -> dict[str, float]:
    import torch

    import ensue

    torch.set_num_threads(1)
    source = write_documents(work / "documents.jsonl", DOCUMENTS * factor)
    model = ensue.load_model(tiny_model(work / "model", 32, 2))
    ensue.run("shuffle", model=model, limit=1, output=work / "warm", **SHUFFLE)
    found = _timed(lambda: ensue.run("shuffle", model=model, data=source, output=work / "run", **SHUFFLE))
    return found | {"count": DOCUMENTS * factor}


def prefix(work: Path, length: int) -> dict[str, float]:
    """Six continuations of 64 tokens after a context, planned and scored."""
    import torch

    import ensue
    from ensue.models.request import TokenPart
    from ensue.runs.planning.tally import count_batches

    torch.set_num_threads(1)
    model: Any = ensue.load_model(tiny_model(work / "model", 256, 4))
    draw = np.random.default_rng(0)
    context = draw.integers(2, 200, length)
    parts = [
        TokenPart(np.concatenate([context, draw.integers(2, 200, 64)]).astype(np.int32), length)
        for _ in range(6)
    ]
    list(model.execute(parts[:2], frozenset()))
    planned: list[Any] = []
    began = time.process_time()
    planned.append(count_batches(parts, model.executor.budget, 0, share=True, pack=True)[0])
    between = time.process_time()
    found = _timed(lambda: list(model.execute(parts, frozenset())))
    tally = planned[0]
    return found | {
        "count": length, "planning": between - began, "fed": tally.fed, "given": tally.given, "seen": tally.seen
    }  # fmt: skip


def million(work: Path, count: int) -> dict[str, float]:
    """Requests of 400 tokens, of which 64 are shared by four, about as Shuffle Tests share theirs, in one tree."""
    from ensue.models.request import TokenPart
    from ensue.scoring.plan import Budget, make_plan
    from ensue.scoring.rows import make_rows
    from ensue.scoring.tree import build_tree

    draw = np.random.default_rng(0)
    parts = []
    for _ in range(count // 4):
        shared = draw.integers(0, 50_000, 64, dtype=np.int32)
        parts += [
            TokenPart(np.concatenate([shared, draw.integers(0, 50_000, 336, dtype=np.int32)]), 1)
            for _ in range(4)
        ]
    tree: list[Any] = []
    found = _timed(lambda: tree.append(build_tree(parts)))
    steps = _timed(lambda: make_plan(tree[0], Budget(65_536, 32_768, 4_000_000, 65_536 * 24)))
    rows = _timed(lambda: sum(1 for _ in make_rows(tree[0], [part.start for part in parts], 65_536)))
    fed = sum(node.length for node in tree[0])
    return {
        "count": count, "tree": found["seconds"], "steps": steps["seconds"], "rows": rows["seconds"],
        "mib": found["mib"] + steps["mib"] + rows["mib"], "fed": fed, "given": 400 * count,
    }  # fmt: skip


KINDS = {"build": build, "read": read, "plan": plan, "run": run, "prefix": prefix, "million": million}


def one(kind: str, size: int) -> dict[str, Any]:
    """Measure in a process of its own, so that memory is that of this work alone."""
    done = subprocess.run(
        [sys.executable, __file__, "--one", kind, str(size)], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(f"{kind} ×{size} failed: {done.stderr[-800:]}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    print(kind, size, {key: round(value, 3) for key, value in found.items()}, flush=True)
    return {"kind": kind, "size": size, **found}


# ------------------------------------------------------------------------------------------- table and picture


def scoring_seconds(fed: float, asked: float) -> dict[str, float]:
    """What scoring so many tokens takes by the profiles of `ensue plan`, with 135 M parameters."""
    from ensue.runs.planning.hardware import profiles
    from ensue.runs.planning.shapes import empty_network, known_shapes, shape_of
    from ensue.runs.planning.tally import Tally

    shape = shape_of(empty_network(known_shapes()["135M"]))
    tally = Tally(fed=fed, run=fed, seen=200 * fed, attended=200 * fed, scored=asked)
    return {name: profiles()[name].seconds(tally, shape, profiles()[name].dtype) for name in ("h200", "cpu")}


def table(rows: list[dict[str, Any]]) -> str:
    """Return the measurements in Markdown."""
    lines = ["| what | size | CPU seconds | MiB above imports |", "|---|---|---|---|"]
    names = {
        "build": "works built",
        "read": "documents read",
        "plan": "documents planned",
        "run": "documents run whole",
    }
    lines += [
        f"| {names[row['kind']]} | {row['count']:,} | {row['seconds']:.2f} | {row['mib']:.0f} |"
        for row in rows
        if row["kind"] in names
    ]
    lines += [
        "",
        "| context | tokens alone | fed | planning | scoring, CPU seconds |",
        "|---|---|---|---|---|",
    ]
    lines += [
        f"| {row['count']:,} + 6 × 64 | {row['given']:,} | {row['fed']:,.0f} | {row['planning']:.4f} "
        f"| {row['seconds']:.2f} |"
        for row in rows
        if row["kind"] == "prefix"
    ]
    for row in (row for row in rows if row["kind"] == "million"):
        took = scoring_seconds(row["fed"], row["fed"])
        all_of_it = row["tree"] + row["rows"]
        lines += [
            "",
            f"{row['count']:,} requests of 400 tokens: tree {row['tree']:.1f} s, steps of batches "
            f"{row['steps']:.1f} s, rows for a GPU {row['rows']:.1f} s of one core, {row['mib']:,.0f} MiB; "
            f"{row['given']:,} tokens become {row['fed']:,}. Scoring them with 135 M parameters takes, by the "
            f"profiles of `ensue plan`, {took['h200']:,.0f} s on an H200 and {took['cpu'] / 3600:,.0f} h of one "
            f"core: planning is {100 * all_of_it / took['h200']:.1f} % (tree and rows) and "
            f"{100 * (row['tree'] + row['steps']) / took['cpu']:.4f} % (tree and steps) of that.",
        ]
    return "\n".join(lines) + "\n"


def picture(rows: list[dict[str, Any]], path: Path) -> None:
    """Draw time and memory by size."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    from ensue.report.svg import BLUE, GREEN, ORANGE, STYLE, VIOLET

    colours = {"build": GREEN, "read": VIOLET, "plan": ORANGE, "run": BLUE}
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(10, 3.4), layout="constrained")
        times, memory, contexts = figure.subplots(1, 3)
        for kind, colour in colours.items():
            own = [row for row in rows if row["kind"] == kind]
            sizes = [row["size"] for row in own]
            times.plot(sizes, [max(row["seconds"], 1e-3) for row in own], "o-", color=colour, label=kind)
            memory.plot(sizes, [max(row["mib"], 0.5) for row in own], "o-", color=colour, label=kind)
        own = [row for row in rows if row["kind"] == "prefix"]
        lengths = [row["count"] for row in own]
        contexts.plot(lengths, [row["seconds"] for row in own], "o-", color=BLUE, label="scoring")
        contexts.plot(lengths, [row["planning"] for row in own], "o-", color=ORANGE, label="planning")
        for axes, name, what in (
            (times, "CPU seconds", "documents, ×"),
            (memory, "MiB above imports", "documents, ×"),
            (contexts, "CPU seconds", "tokens of context, 6 continuations"),
        ):
            axes.set_xscale("log")
            axes.set_yscale("log")
            axes.set_xlabel(what)
            axes.set_ylabel(name)
            axes.legend(frameon=False, fontsize=8)
        contexts.set_xticks(lengths, [f"{n:,}" for n in lengths])
        contexts.minorticks_off()
        figure.savefig(path, dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "results")
    parser.add_argument("--requests", type=int, default=1_000_000)
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one:
        with tempfile.TemporaryDirectory() as work:
            print(json.dumps(KINDS[args.one[0]](Path(work), int(args.one[1]))))
        return
    rows = [one(kind, factor) for kind in ("build", "read", "plan", "run") for factor in FACTORS]
    rows += [one("prefix", length) for length in LENGTHS]
    rows.append(one("million", args.requests))
    (args.output / "growth.json").write_text(json.dumps(rows, indent=1) + "\n")
    words = "Made by `python bench/growth.py`, one core; see there for what is measured.\n\n"
    (args.output / "growth.md").write_text(f"# How work grows\n\n{words}{table(rows)}")
    picture(rows, args.output / "growth.png")


if __name__ == "__main__":
    main()
