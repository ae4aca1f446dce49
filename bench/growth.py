"""How work grows with data: time and memory of building, planning and scoring, in a process each.

    python bench/growth.py [--output bench/results] [--requests 1000000]

Documents, texts and examples ×1, ×10, ×100 (invented, all different) are built, read, planned, scored and run with a
tiny random model, where scoring itself is not the point; contexts of 1,024 to 8,192 tokens with six continuations
each are planned and scored with a wider one; and a million requests are planned, in portions as a GPU is given them.
Seconds are the process's own, so that a busy machine changes them little; memory is the process's peak above what it
had once everything was imported. Writes growth.md, growth.json and growth.png. `--only KIND …` measures these again
and keeps the other figures; the table says when that was of the requests.
"""

from __future__ import annotations

import argparse
import gc
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
# Documents, works, texts and examples that ×1 stands for.
DOCUMENTS, WORKS, TEXTS, EXAMPLES = 50, 3, 200, 20
# Tokens that a GPU is given in one portion, at most: 2,000,000 characters.
PORTION = 465_000


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


def write_texts(path: Path, count: int) -> Path:
    """Write texts of twelve sentences."""
    draw = np.random.default_rng(0)
    with path.open("w") as file:
        for _ in range(count):
            file.write(json.dumps({"text": " ".join(sentence(draw) for _ in range(12))}) + "\n")
    return path


def write_examples(folder: Path, count: int) -> Path:
    """Write ChapterBreak examples, 100 to a file: contexts of 2,000 words, and suffixes of 100."""
    draw = np.random.default_rng(0)
    folder.mkdir()
    for begin in range(0, count, 100):
        works = {}
        for number in range(begin, min(begin + 100, count)):
            gold, *others = (" ".join(draw.choice(WORDS, 100)) for _ in range(6))
            works[f"w{number}"] = [{"ctx": " ".join(draw.choice(WORDS, 2000)), "pos": gold, "negs": others}]
        (folder / f"examples-{begin}.json").write_text(json.dumps({"invented": works}))
    return folder


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


def texts(work: Path, factor: int) -> dict[str, float]:
    """Score a file of texts as `ensue score` does."""
    import torch

    import ensue
    from ensue.models.request import Policy
    from ensue.runs.score import SETTINGS, score_texts
    from ensue.runs.texts import read_texts

    torch.set_num_threads(1)
    model = ensue.load_model(tiny_model(work / "model", 32, 2))
    values = {name: setting.default for name, setting in SETTINGS.items()}

    def score(source: Path) -> None:
        score_texts(read_texts(str(source), values, limit=None), model=model, policy=Policy(window="strided"))

    score(write_texts(work / "few.jsonl", 2))
    source = write_texts(work / "texts.jsonl", TEXTS * factor)
    return _timed(lambda: score(source)) | {"count": TEXTS * factor}


def examples(work: Path, factor: int) -> dict[str, float]:
    """Run ChapterBreak at two prefix lengths."""
    import torch

    import ensue

    torch.set_num_threads(1)
    model = ensue.load_model(tiny_model(work / "model", 32, 2))
    lengths = {"prefix_tokens": [128, 512], "suffix_tokens": [32]}
    few, many = write_examples(work / "few", 1), write_examples(work / "many", EXAMPLES * factor)
    ensue.run("chapterbreak", model=model, data=few, output=work / "warm", **lengths)
    found = _timed(lambda: ensue.run("chapterbreak", model=model, data=many, output=work / "run", **lengths))
    return found | {"count": EXAMPLES * factor}


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
    """Requests of 400 tokens, of which 64 are shared by four, about as Shuffle Tests share theirs, in portions."""
    from ensue.models.request import TokenPart
    from ensue.scoring.forest import grow_forest
    from ensue.scoring.plan import Budget, make_plan
    from ensue.scoring.rows import make_rows
    from ensue.scoring.tree import build_tree

    # As the engine does while a GPU works.
    gc.disable()
    draw = np.random.default_rng(0)
    took = {"forest": 0.0, "rows": 0.0, "tree": 0.0, "steps": 0.0}
    mib, fed, asked = 0.0, 0, 0
    made: dict[str, Any] = {}
    budget = Budget(65_536, 32_768, 4_000_000, 65_536 * 24)
    while asked < count:
        parts: list[Any] = []
        while len(parts) < PORTION // 400:
            shared = draw.integers(0, 50_000, 64, dtype=np.int32)
            own = draw.integers(0, 50_000, (4, 336), dtype=np.int32)
            parts += [TokenPart(np.concatenate([shared, one]), 1) for one in own]
        asked += len(parts)
        todo: dict[str, Callable[[], Any]] = {
            "forest": lambda parts=parts: grow_forest(parts),
            "rows": lambda: sum(1 for _ in make_rows(made["forest"], 65_536)),
            "tree": lambda parts=parts: build_tree(parts),
            "steps": lambda: make_plan(made["tree"], budget),
        }
        for name, do in todo.items():
            found = _timed(lambda name=name, do=do: made.update({name: do()}))
            took[name] += found["seconds"]
            mib += found["mib"]
        fed += made["forest"].size
    return {"count": asked, **took, "mib": mib, "fed": fed, "given": 400 * asked}


KINDS = {
    "build": build, "read": read, "plan": plan, "run": run, "texts": texts, "examples": examples, "prefix": prefix,
    "million": million,
}  # fmt: skip
NAMES = {
    "build": "works built",
    "read": "documents read",
    "plan": "documents planned (Shuffle Test)",
    "run": "documents run (Shuffle Test)",
    "texts": "texts scored",
    "examples": "examples run (ChapterBreak)",
}


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


def scoring_seconds(fed: float, asked: float, size: str = "135M") -> dict[str, float]:
    """What scoring so many tokens takes by the profiles of `ensue plan`, with a model of a size."""
    from ensue.runs.planning.hardware import profiles
    from ensue.runs.planning.shapes import empty_network, known_shapes, shape_of
    from ensue.runs.planning.tally import Tally

    shape = shape_of(empty_network(known_shapes()[size]))
    tally = Tally(fed=fed, run=fed, seen=200 * fed, attended=200 * fed, scored=asked)
    return {name: profiles()[name].seconds(tally, shape, profiles()[name].dtype) for name in ("h200", "cpu")}


def table(rows: list[dict[str, Any]]) -> str:
    """Return the measurements in Markdown."""
    lines = ["| what | size | CPU seconds | MiB above imports |", "|---|---|---|---|"]
    lines += [
        f"| {NAMES[row['kind']]} | {row['count']:,} | {row['seconds']:.2f} | {row['mib']:.0f} |"
        for row in rows
        if row["kind"] in NAMES
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
        planned, steps = row["forest"] + row["rows"], row["tree"] + row["steps"]
        took = {size: scoring_seconds(row["fed"], row["fed"], size) for size in ("135M", "1B", "3B", "8B")}
        shares = ", ".join(
            f"{100 * planned / one['h200']:.2g} % with {size} ({one['h200']:,.0f} s)"
            for size, one in took.items()
        )
        core, again = took["135M"]["cpu"], f" (measured again on {row['on']})" if "on" in row else ""
        lines += [
            "",
            f"{row['count']:,} requests of 400 tokens in portions of {PORTION // 400:,}{again}: for a GPU prefix "
            f"trees {row['forest']:.1f} s and rows {row['rows']:.1f} s of one core, for batches a tree of objects "
            f"{row['tree']:.1f} s and steps {row['steps']:.1f} s, {row['mib']:,.0f} MiB; {row['given']:,} tokens "
            f"become {row['fed']:,}. Beside what scoring them takes by the profiles of `ensue plan`, trees and rows "
            f"are, on an H200, {shares}; tree and steps are {100 * steps / core:.4f} % of the {core / 3600:,.0f} h "
            f"that 135M takes one core.",
        ]
    return "\n".join(lines) + "\n"


def picture(rows: list[dict[str, Any]], path: Path) -> None:
    """Draw time and memory by size."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    from ensue.report.svg import BLUE, COLOURS, GREY, MARKERS, ORANGE, STYLE

    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(11, 3.6), layout="constrained")
        times, memory, contexts = figure.subplots(1, 3)
        for kind, colour, marker in zip(NAMES, COLOURS, MARKERS, strict=True):
            own = [row for row in rows if row["kind"] == kind]
            sizes = [row["size"] for row in own]
            times.plot(
                sizes, [max(row["seconds"], 1e-3) for row in own], f"{marker}-", color=colour, label=kind
            )
            memory.plot(sizes, [max(row["mib"], 0.5) for row in own], f"{marker}-", color=colour, label=kind)
        own = [row for row in rows if row["kind"] == "prefix"]
        lengths = [row["count"] for row in own]
        contexts.plot(lengths, [row["seconds"] for row in own], "o-", color=BLUE, label="scoring")
        contexts.plot(lengths, [row["planning"] for row in own], "o-", color=ORANGE, label="planning")
        # What grows with the data would be as steep.
        memory.plot(FACTORS, [2 * factor for factor in FACTORS], ":", color=GREY, label="in proportion")
        factors = [f"×{factor}" for factor in FACTORS]
        for axes, name, what, ticks, words in (
            (times, "CPU seconds", "documents, works, texts, examples", FACTORS, factors),
            (memory, "peak MiB above imports", "documents, works, texts, examples", FACTORS, factors),
            (
                contexts,
                "CPU seconds",
                "tokens of context, 6 continuations",
                lengths,
                [f"{n:,}" for n in lengths],
            ),
        ):
            axes.set_xscale("log")
            axes.set_yscale("log")
            axes.set_xticks(ticks, words)
            axes.minorticks_off()
            axes.yaxis.set_major_formatter(lambda value, _: f"{value:,g}")
            axes.set_xlabel(what)
            axes.set_ylabel(name)
        memory.legend(frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5))
        contexts.legend(frameon=False, fontsize=8, loc="center right")
        figure.savefig(path, dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "results")
    parser.add_argument("--requests", type=int, default=1_000_000)
    parser.add_argument("--only", nargs="+", choices=list(KINDS), help="measure these kinds alone")
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one:
        with tempfile.TemporaryDirectory() as work:
            print(json.dumps(KINDS[args.one[0]](Path(work), int(args.one[1]))))
        return
    kept = args.output / "growth.json"
    known = json.loads(kept.read_text()) if args.only and kept.exists() else []
    rows: list[dict[str, Any]] = []
    for kind in KINDS:
        if args.only and kind not in args.only:
            rows += [row for row in known if row["kind"] == kind]
            continue
        sizes = {"prefix": LENGTHS, "million": (args.requests,)}.get(kind, FACTORS)
        again = {"on": time.strftime("%-d %B, %H:%M")} if args.only else {}
        rows += [one(kind, size) | again for size in sizes]
    kept.write_text(json.dumps(rows, indent=1) + "\n")
    words = "Made by `python bench/growth.py`, one core; see there for what is measured.\n\n"
    (args.output / "growth.md").write_text(f"# How work grows\n\n{words}{table(rows)}")
    picture(rows, args.output / "growth.png")


if __name__ == "__main__":
    main()
