"""Questions and summaries a second, beside transformers' own generation; random weights of SmolLM2-135M's shape.

    python bench/generate.py [--work equal,questions,summaries] [--seconds 90] [--output FOLDER]

Prompts are random tokens, so nothing ends early and all ways write as many tokens: a question 60 with 10 beams after
a text of 600 tokens that 10 questions share and 30 of its own, no trigram twice; a summary 128 with 4 beams after
5,000 to 7,000 tokens. `one`: transformers' `generate` for one prompt after another; `eight`: for eight at a time,
padded on the left; `former`: this package without lanes; `lanes`: as it is. Peers are given fewer prompts, which
their row says. `equal` compares hypotheses in float32 with transformers' own. `--device cpu --small` tries it out.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import logging
import sys
import time
import traceback
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import transformers

# No text is divided into sentences here, and not every machine has what does it.
sys.modules.setdefault("sentencex", types.ModuleType("sentencex"))

SHAPE = {
    "hidden_size": 576,
    "num_hidden_layers": 30,
    "num_attention_heads": 9,
    "num_key_value_heads": 3,
    "intermediate_size": 1536,
    "vocab_size": 49152,
    "max_position_embeddings": 8192,
    "tie_word_embeddings": True,
}
SMALL = {**SHAPE, "hidden_size": 72, "num_hidden_layers": 2, "intermediate_size": 96, "vocab_size": 512}
END = 2


def random_network(arguments: argparse.Namespace, dtype: torch.dtype) -> Any:
    torch.manual_seed(0)
    config = transformers.LlamaConfig(**(SMALL if arguments.small else SHAPE), eos_token_id=END)
    with torch.device(arguments.device):
        network = transformers.AutoModelForCausalLM.from_config(config)
    # Wide enough that hypotheses differ clearly.
    for parameter in network.parameters():
        if parameter.dim() > 1:
            torch.nn.init.normal_(parameter, 0, 0.05)
    network.tie_weights()
    return network.to(dtype).eval().requires_grad_(False)


def drawn(count: int, seed: int, vocabulary: int) -> tuple[int, ...]:
    draw = torch.Generator().manual_seed(seed)
    return tuple(torch.randint(10, vocabulary, (count,), generator=draw).tolist())


def waited(arguments: argparse.Namespace) -> float:
    if arguments.device == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter()


def questions(arguments: argparse.Namespace, count: int, vocabulary: int) -> tuple[list[Any], Any]:
    from ensue.backends.hf.beam import BeamRules, TokenPrompt

    text, most = (40, 6) if arguments.small else (600, 60)
    rules = BeamRules(10, frozenset({END}), most, most, 1.0, 3)
    texts = [drawn(text - 7 * (n % 9), n, vocabulary) for n in range(-(-count // 10))]
    prompts = [TokenPrompt(texts[n // 10], drawn(30, 1000 + n, vocabulary)) for n in range(count)]
    return prompts, rules


def summaries(arguments: argparse.Namespace, count: int, vocabulary: int) -> tuple[list[Any], Any]:
    from ensue.backends.hf.beam import BeamRules, TokenPrompt

    most = 6 if arguments.small else 128
    sizes = [60 + n % 20 if arguments.small else 5000 + 317 * n % 2000 for n in range(count)]
    rules = BeamRules(4, frozenset({END}), most, most, 1.0, 0)
    return [TokenPrompt((), drawn(size, 5000 + n, vocabulary)) for n, size in enumerate(sizes)], rules


@torch.inference_mode()
def by_transformers(network: Any, prompts: list[Any], rules: Any, size: int) -> list[list[int]]:
    """The best hypothesis of each prompt, `size` prompts at a time; n-grams of prompts are barred too."""
    out = []
    for begin in range(0, len(prompts), size):
        rows = [prompt.shared + prompt.own for prompt in prompts[begin : begin + size]]
        width = max(map(len, rows))
        ids = torch.tensor([[0] * (width - len(row)) + list(row) for row in rows], device=network.device)
        mask = torch.tensor(
            [[0] * (width - len(row)) + [1] * len(row) for row in rows], device=network.device
        )
        made = network.generate(
            input_ids=ids,
            attention_mask=mask,
            num_beams=rules.beams,
            min_new_tokens=rules.min_tokens,
            max_new_tokens=rules.max_tokens,
            length_penalty=rules.length_penalty,
            no_repeat_ngram_size=rules.block_ngrams,
            early_stopping=False,
            do_sample=False,
            pad_token_id=0,
        )
        out += made[:, width:].tolist()
    return out


def in_lanes(network: Any, prompts: list[Any], rules: Any) -> list[list[int]]:
    from ensue.backends.hf.lane_search import search_lanes
    from ensue.backends.hf.running import default_budget
    from ensue.scoring.network import Network

    budget = default_budget(network, None)
    found = search_lanes(
        Network(network), prompts, rules, room=budget.cache, batch=budget.batch, apart=True, history=True
    )
    best = {place: hypotheses[0] for place, hypotheses in found}
    return [[*best[n].tokens, *([best[n].end] if best[n].end else [])] for n in range(len(prompts))]


def formerly(network: Any, prompts: list[Any], rules: Any, former: Path | None) -> list[list[int]]:
    """Questions by the search whose choices are made by the host; summaries by transformers in batches by memory."""
    from ensue.backends.hf import beam
    from ensue.scoring.network import Network

    if not prompts[0].shared:
        room = 131_072 // rules.beams
        return by_transformers(
            network, prompts, rules, max(room // (len(prompts[0].own) + rules.max_tokens), 1)
        )
    source = beam if former is None else loaded(former)
    decoder = source.SharingDecoder(Network(network), prompts, beams=rules.beams, max_tokens=rules.max_tokens)
    return [list(found[0].tokens) for found in source.search(decoder, rules)]


def loaded(file: Path) -> Any:
    """The module of a file."""
    found = importlib.util.spec_from_file_location("former", file)
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    sys.modules["former"] = module
    found.loader.exec_module(module)
    return module


def equal(arguments: argparse.Namespace) -> dict[str, Any]:
    """Best hypotheses in float32, of prompts of which some take the place of others, against one at a time."""
    network = random_network(arguments, torch.float32)
    same, kinds = 0, {}
    for name, make in (("questions", questions), ("summaries", summaries)):
        prompts, rules = make(arguments, 4 if name == "summaries" else 6, network.config.vocab_size)
        rules = type(rules)(rules.beams, rules.ends, 0, 12, 1.0, rules.block_ngrams)
        found, expected = in_lanes(network, prompts, rules), by_transformers(network, prompts, rules, 1)
        same = sum(one == other for one, other in zip(found, expected, strict=True))
        kinds[name] = f"{same} of {len(prompts)} equal"
    return kinds


def timed(
    arguments: argparse.Namespace, name: str, way: str, count: int, work: Callable[[], list[Any]]
) -> list[Any]:
    began = waited(arguments)
    found = work()
    seconds = waited(arguments) - began
    tokens = sum(map(len, found))
    gib = torch.cuda.max_memory_allocated() / 2**30 if arguments.device == "cuda" else 0.0
    say(
        arguments,
        {
            "work": name,
            "way": way,
            "prompts": count,
            "seconds": round(seconds, 2),
            "a_second": round(count / seconds, 3),
            "tokens_a_second": round(tokens / seconds),
            "GiB": round(gib, 1),
        },
    )
    return found


def say(arguments: argparse.Namespace, row: dict[str, Any]) -> None:
    print("  ".join(f"{key} {value}" for key, value in row.items()), flush=True)
    if arguments.output is not None:
        with (arguments.output / "generate.jsonl").open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--work", default="equal,questions,summaries")
    parser.add_argument("--ways", default="lanes,one,eight,former,lanes again")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--seconds", type=float, default=90.0)
    parser.add_argument("--output", type=Path)
    parser.add_argument("--former", type=Path, help="backends/hf/beam.py of another commit")
    parser.add_argument("--small", action="store_true")
    arguments = parser.parse_args()
    logging.basicConfig(format="  %(message)s")
    if arguments.output is not None:
        logging.getLogger().addHandler(logging.FileHandler(arguments.output / "generate.log"))
    logging.getLogger("ensue.backends.hf.lane_search").setLevel(logging.DEBUG)
    if arguments.device == "cpu":
        torch.set_num_threads(1)
    began = time.monotonic()
    counts = {
        "questions": {"one": 2, "eight": 16, "former": 200, "lanes": 1000, "lanes again": 1000},
        "summaries": {"one": 1, "eight": 8, "former": 10, "lanes": 128, "lanes again": 128},
    }
    network = None
    for name in arguments.work.split(","):
        if name == "equal":
            try:
                say(arguments, {"work": name, **equal(arguments)})
            except Exception:
                traceback.print_exc()
            continue
        network = network or random_network(
            arguments, torch.bfloat16 if arguments.device == "cuda" else torch.float32
        )
        answers: dict[str, list[Any]] = {}
        for way in arguments.ways.split(","):
            if time.monotonic() - began > arguments.seconds:
                print(f"{name} {way} not begun: {arguments.seconds:.0f} s are over", flush=True)
                continue
            count = 12 if arguments.small else counts[name][way]
            prompts, rules = globals()[name](arguments, count, network.config.vocab_size)
            size = {"one": 1, "eight": 8}.get(way)
            try:
                if size is not None:
                    work = lambda: by_transformers(network, prompts, rules, size)  # noqa: B023, E731
                elif way == "former":
                    work = lambda: formerly(network, prompts, rules, arguments.former)  # noqa: B023, E731
                else:
                    work = lambda: in_lanes(network, prompts, rules)  # noqa: B023, E731
                answers[way] = timed(arguments, name, way, count, work)
            except Exception:
                traceback.print_exc()
            if "lanes" in answers and way == "one":
                pairs = list(zip(answers["lanes"], answers["one"], strict=False))
                shared = [
                    next((n for n, (a, b) in enumerate(zip(*pair, strict=False)) if a != b), len(pair[1]))
                    for pair in pairs
                ]
                print(f"  equal tokens before the first that differs: {shared}", flush=True)


if __name__ == "__main__":
    main()
