"""Plans beside runs: `check` prints planned against measured, `calibrate` a profile of this machine's processor.

    python bench/plan.py calibrate              # seconds of one core, on random tokens
    python bench/plan.py check                  # benchmarks on the processor (ENSUE_DATA for the real data)
    python bench/plan.py gpu --hardware h200 --tokenizer FOLDER --data DOCUMENTS.jsonl

A profile is calibrated on random tokens and judged on benchmarks. On a processor, seconds are those of the process
on one thread, since others may be at work; `--wall` takes the clock, as a GPU needs it.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import ensue
from ensue.models.request import TokenPart
from ensue.report.table import Column, Table, render
from ensue.runs.planning.counting import counting_model
from ensue.runs.planning.hardware import Hardware, find_hardware
from ensue.runs.planning.plan import Plan, plan
from ensue.runs.planning.tally import Ledger
from ensue.runs.planning.target import Target

DATA = Path(os.environ.get("ENSUE_DATA", "/tmp/ensue-data"))


class Case(NamedTuple):
    """A run that is planned and then done."""

    benchmark: str
    model: str
    data: str | None
    limit: int
    settings: dict[str, Any]


def cases(data: Path) -> list[Case]:
    """The benchmarks of the check on a processor, each of a minute or less."""
    return [
        Case("shuffle", "smollm2", str(data / "news_bbc"), 2, {"shuffles": 6}),
        Case("chapterbreak", "smollm2", str(data / "chapterbreak.jsonl"), 2, {"prefix_tokens": [512, 2048]}),
        Case("insertion", "smollm2", str(data / "news_bbc"), 1, {"max_sentences": 8}),
        Case("superglue/COPA", "smollm2", str(data / "superglue"), 40, {"mode": "prompt"}),
        Case("discoeval/SP/rocstory", "minilm", str(data / "discoeval"), 1500, {}),
        Case("qags", "smollm2-qg", str(data / "qags"), 2, {"preset": "fast"}),
    ]


# ---------------------------------------------------------------------------------------------- calibrating


class _Sample(NamedTuple):
    """Some work of a model: what to do, and what it is called."""

    name: str
    model: str
    do: Callable[[Any], Any]


def _samples() -> Iterator[_Sample]:
    """Work of several forms on random tokens, which together tell what each part of a pass takes."""
    draw = np.random.default_rng(0)

    def parts(count: int, length: int, start: int, prefix: int = 0) -> list[TokenPart]:
        shared = draw.integers(1000, 40_000, prefix)
        rows = [np.concatenate([shared, draw.integers(1000, 40_000, length)]) for _ in range(count)]
        return [TokenPart(row.astype(np.int32), start) for row in rows]

    def scoring(some: list[TokenPart]) -> Callable[[Any], Any]:
        return lambda model: list(model.execute(some, frozenset()))

    for name, some in {
        "6 × 96, all scored": parts(6, 96, 1),
        "6 × 96, ends scored": parts(6, 96, 95),
        "2 × 400, all scored": parts(2, 400, 1),
        "1 × 2000, end scored": parts(1, 2000, 1999),
        "30 × 12, all scored": parts(30, 12, 1),
        "1000 + 6 × 60": parts(6, 60, 1000, 1000),
        "200 + 12 × 12": parts(12, 12, 200, 200),
    }.items():
        yield _Sample(name, "smollm2", scoring(some))
    words = [f"w{i}" for i in range(3000)]

    def texts(count: int, length: int) -> list[str]:
        return [" ".join(draw.choice(words, length)) for _ in range(count)]

    short, long = texts(200, 6), texts(10, 90)
    yield _Sample("200 sentences", "minilm", lambda model: model.encode(short))
    yield _Sample("10 long texts", "minilm", lambda model: model.encode(long))
    for count, length, new, beams in ((6, 60, 8, 1), (2, 60, 8, 6), (2, 300, 8, 4)):
        prompts = texts(count, length // 3)
        yield _Sample(
            f"{count} × {length}, {new} tokens, {beams} beams",
            "smollm2",
            lambda model, p=prompts, n=new, b=beams: model.generate(p, max_tokens=n, num_beams=b),
        )


_FEATURES = (
    "rate",
    "attention",
    "elementwise",
    "vocabulary",
    "a_pass",
    "written",
    "written_seen",
    "a_step",
    "a_text",
)


def _features(work: Any) -> list[float]:
    """What each number of a profile is multiplied by, for some work."""
    tally, shape = work.total, work.shape
    wide = shape.layers * shape.width
    return [
        shape.linear_operations(tally.run) + shape.head_operations(tally.scored),
        shape.attention_operations(max(tally.attended, tally.seen), 0),
        tally.run * wide,
        tally.scored * shape.vocabulary if shape.head else 0.0,
        tally.passes,
        tally.written * wide,
        tally.written_seen * wide,
        tally.steps,
        tally.texts,
    ]


def calibrate() -> None:
    """Fit a profile of one core to work on random tokens, and print it."""
    import torch
    from scipy.optimize import nnls

    torch.set_num_threads(1)
    rows, seconds = [], []
    load = cache(ensue.load_model)
    for sample in _samples():
        real, ledger = load(sample.model), Ledger()
        sample.do(counting_model(load(sample.model, device="meta"), ledger, Target()))
        took = min(_cpu(lambda s=sample, r=real: s.do(r)) for _ in range(2))
        print(f"# {sample.name} ({sample.model}): {took:.3f} s", flush=True)
        rows.append(np.sum([_features(work) for work in ledger], axis=0))
        seconds.append(took)
    table, took = np.asarray(rows), np.asarray(seconds)
    # Each sample counts alike, whatever it takes; columns are scaled so that the fit is sound.
    scale = np.maximum(table.max(0), 1e-30)
    found, _ = nnls(table / scale / took[:, None], np.ones(len(took)))
    values = dict(zip(_FEATURES, found / scale, strict=True))
    print("# by the fit:", *(f"{planned:.2f}" for planned in table @ (found / scale) / took), "of these")
    print(f"rates = {{ float32 = {1 / max(values['rate'], 1e-30):.3g} }}")
    print(f"attention = {1 / max(values['attention'], 1e-30):.3g}")
    for key in _FEATURES[2:]:
        print(f"{key} = {values[key]:.3g}")


def _cpu(do: Callable[[], Any]) -> float:
    began = time.process_time()
    do()
    return time.process_time() - began


# ------------------------------------------------------------------------------------------------- checking


def check(chosen: list[Case], hardware: str, wall: bool) -> list[dict[str, Any]]:
    """Plan and run every case; return the rows of the table."""
    import torch

    if not wall:
        torch.set_num_threads(1)
    device = find_hardware(hardware)
    rows = []
    for case in chosen:
        for measure in (False, True):
            made, took = _cpu_or_wall(wall, lambda c=case, m=measure: _planned(c, device, m, wall))
            row = {"planned": made.busy, "planning": took, "plan": made}
            rows.append((case, measure, row))
        measured = _measured(case, wall)
        for _, measure, row in rows[-2:]:
            row["measured"] = measured
            print(
                f"{case.benchmark} {'pilot' if measure else 'profile'}: planned {row['planned']:.2f} s, "
                f"measured {measured:.2f} s, ratio {row['planned'] / measured:.2f}",
                flush=True,
            )
    return [_row(case, measure, row) for case, measure, row in rows]


def _planned(case: Case, device: Hardware, measure: bool, wall: bool) -> Plan:
    clock = time.perf_counter if wall else time.process_time
    return plan(
        case.benchmark, model=case.model, data=case.data, limit=case.limit, hardware=device, measure=measure,
        clock=clock, **case.settings,
    )  # fmt: skip


def _measured(case: Case, wall: bool) -> float:
    """Run a case whole and return its seconds, once the model is warm."""
    with tempfile.TemporaryDirectory() as folder:
        model = ensue.load_model(case.model)
        done = ensue.run(
            case.benchmark,
            model=model,
            data=case.data,
            limit=case.limit,
            output=f"{folder}/run",
            **case.settings,
        )
        about = json.loads((done.folder / "run.json").read_text())
        return float(about["seconds" if wall else "cpu_seconds"])


def _row(case: Case, measure: bool, row: dict[str, Any]) -> dict[str, Any]:
    made: Plan = row["plan"]
    return {
        "benchmark": case.benchmark,
        "model": case.model,
        "by": "pilot" if measure else f"profile {made.hardware.name}",
        "fed": sum(cost.tally.fed for cost in made.costs),
        "planned": row["planned"],
        "measured": row["measured"],
        "ratio": row["planned"] / row["measured"],
    }


def _cpu_or_wall(wall: bool, do: Callable[[], Plan]) -> tuple[Plan, float]:
    clock = time.perf_counter if wall else time.process_time
    began = clock()
    return do(), clock() - began


def gpu(hardware: str, tokenizer: str, data: str) -> list[dict[str, Any]]:
    """Plan and do work on a GPU, random weights in the shapes of SmolLM2-135M and MiniLM; later passes count."""
    import torch
    import transformers

    from ensue.runs.planning.shapes import known_shapes

    device = find_hardware(hardware)
    rows = []
    with tempfile.TemporaryDirectory() as work:
        config = transformers.AutoConfig.for_model(**known_shapes()["135M"], bos_token_id=None)
        causal, encoder = f"{work}/causal", f"{work}/encoder"
        transformers.AutoModelForCausalLM.from_config(config).to(torch.bfloat16).save_pretrained(causal)
        small = transformers.BertConfig(
            vocab_size=config.vocab_size, hidden_size=384, intermediate_size=1536, num_hidden_layers=6,
            num_attention_heads=12,
        )  # fmt: skip
        transformers.BertModel(small).save_pretrained(encoder)
        for folder in (causal, encoder):
            transformers.AutoTokenizer.from_pretrained(tokenizer).save_pretrained(folder)
        for way in ("never", "always"):
            options = {"compile": way}
            made = plan("shuffle", model=causal, data=data, hardware=device, model_options=options)
            model = ensue.load_model(causal, **options)
            passes = []
            for number in range(3):
                done = ensue.run("shuffle", model=model, data=data, output=f"{work}/{way}{number}")
                passes.append(float(json.loads((done.folder / "run.json").read_text())["seconds"]))
            case = Case(f"shuffle, compile {way}", "135M", data, 0, {})
            rows.append(_row(case, False, {"plan": made, "planned": made.busy, "measured": min(passes)}))
            rows[-1] |= {"first pass": passes[0], "start planned": made.start}
            print(json.dumps({**rows[-1], "passes": passes, "memory": made.memory}), flush=True)
            peak = torch.cuda.max_memory_allocated()
            held = sum(value for key, value in made.memory.items() if key != "the process")
            print(
                f"memory on the device: planned {held / 2**30:.1f}, peak {peak / 2**30:.1f} GiB", flush=True
            )
            del model
            torch.cuda.empty_cache()
        texts = [one for row in Path(data).read_text().splitlines() for one in json.loads(row)["sentences"]]
        texts = [f"{one} {number}" for number in range(60_000 // len(texts) + 1) for one in texts][:60_000]
        ledger, reader = Ledger(), ensue.load_model(encoder)
        there = Target(kind="cuda", memory=device.bytes)
        counting_model(ensue.load_model(encoder, device="meta"), ledger, there).encode(texts)
        passes = [_wall(lambda: reader.encode(texts)) for _ in range(2)]
        (read,) = ledger
        planned = device.seconds_of(read)
        rows.append(
            {
                "benchmark": "60,000 sentences encoded", "model": "MiniLM", "by": f"profile {device.name}",
                "fed": read.total.fed, "planned": planned, "measured": passes[-1], "ratio": planned / passes[-1],
                "first pass": passes[0], "start planned": 0.0,
            }
        )  # fmt: skip
    return rows


def _wall(do: Callable[[], Any]) -> float:
    began = time.perf_counter()
    do()
    return time.perf_counter() - began


def show(rows: list[dict[str, Any]]) -> str:
    """Return the table in Markdown."""
    words = ("benchmark", "model", "by")
    table = Table([Column(name, words=name in words) for name in rows[0]])
    for row in rows:
        table.add(*(f"{value:.3g}" if isinstance(value, float) else value for value in row.values()))
    return render([table], "markdown")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=("calibrate", "check", "gpu"))
    parser.add_argument("--hardware", default="cpu")
    parser.add_argument("--wall", action="store_true", help="seconds by the clock, all threads")
    parser.add_argument("--only", help="benchmarks by commas")
    parser.add_argument("--output", type=Path)
    parser.add_argument("--tokenizer", help="gpu: a folder with a tokenizer")
    parser.add_argument("--data", help="gpu: documents, lines with `sentences`")
    args = parser.parse_args()
    if args.what == "calibrate":
        calibrate()
        return
    if args.what == "gpu":
        print(show(gpu(args.hardware, args.tokenizer, args.data)))
        return
    chosen = [case for case in cases(DATA) if not args.only or case.benchmark in args.only.split(",")]
    text = show(check(chosen, args.hardware, args.wall))
    print(text)
    if args.output:
        args.output.write_text(text, "utf-8")


if __name__ == "__main__":
    main()
