"""Train readers on a GPU and write down what the verdict is studied with: log-probabilities, likenesses, logits.

    python bench/following_gpu.py all CARRY OUT --models DIR --seconds 300 [--variants a,b] [--folds 0,1,all]
    python bench/following_gpu.py train VARIANT FOLD CARRY OUT --models DIR --seconds 150
    python bench/following_gpu.py harvest MODEL CARRY OUT --seconds 250

CARRY is what bench/following_prepare.py made; DIR has the folders of models (smollm2-*, minilm-*, gemma3-270m-*,
qwen*). `all` starts the others side by side and ends when they do. Readers of a fold are trained on the BBC articles
of the other one, `all` on those of both; what they say of every version is in OUT/read-VARIANT-FOLD.npz, their
weights in OUT/reader-VARIANT-FOLD.safetensors, log-probabilities in OUT/NAME.npz, all written as far as it came.
"""

from __future__ import annotations

import argparse
import json
import lzma
import math
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from queue import Queue
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
BEGAN = time.perf_counter()


@dataclass(frozen=True)
class Shape:
    """A reader: its base, how many of its layers, how many of these see both ways, the width of what sentences see
    each other in, and the rank of the adapter."""

    base: str
    layers: int
    both: int
    among: int
    rank: int
    rate: float
    tokens: int = 16_384
    max_length: int = 1024
    max_sentence: int = 128


VARIANTS = {
    "s16b": Shape("smollm2", 16, 6, 256, 16, 6e-4),
    "s16c": Shape("smollm2", 16, 0, 256, 16, 6e-4),
    "s30c": Shape("smollm2", 30, 0, 256, 16, 5e-4),
    "s10b": Shape("smollm2", 10, 5, 256, 16, 8e-4),
    "m6": Shape("minilm", 6, 0, 256, 32, 8e-4, max_length=512),
    "s24b": Shape("smollm2", 24, 8, 256, 16, 5e-4),
}
# How often each collection is drawn: at the beginning, and at the end.
MIX = {"bbc": (0.25, 0.5), "news": (0.3, 0.3), "wikipedia": (0.25, 0.1), "fiction": (0.2, 0.1)}
COUNTS = ((0, 0.12), (1, 0.5), (2, 0.22), (3, 0.16))
HARD = 0.65
FIRST_STEPS = 60


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    whole = commands.add_parser("all")
    whole.add_argument("--variants", default="s16b,s16c,s30c,s10b,m6")
    whole.add_argument("--folds", default="0")
    whole.add_argument("--harvest", default="smollm2", help="models, by comma; none: none")
    train = commands.add_parser("train")
    train.add_argument("variant", choices=VARIANTS)
    train.add_argument("fold")
    harvest = commands.add_parser("harvest")
    harvest.add_argument("model")
    for one in (whole, train, harvest):
        one.add_argument("carry", type=Path)
        one.add_argument("output", type=Path)
        one.add_argument("--models", type=Path, required=True)
        one.add_argument("--seconds", type=float, default=300)
        one.add_argument("--steps", type=int, default=1200)
        one.add_argument("--device", default="cuda")
        one.add_argument("--limit", type=int, help="so many versions and documents, to try it")
        one.add_argument("--begin", type=int, default=0, help="harvest smollm2 from this version on")
        one.add_argument("--set", action="append", default=[], help="of a shape: rate=…, rank=…")
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    {"all": everything, "train": trained, "harvest": harvested}[options.command](options)


def say(what: str) -> None:
    print(f"{time.perf_counter() - BEGAN:7.1f} s  {what}", flush=True)


def everything(options: argparse.Namespace) -> None:
    """Start every training and harvest in a process of its own and wait for them."""
    common = [
        str(options.carry),
        str(options.output),
        "--models",
        str(options.models),
        "--device",
        options.device,
    ]
    common += [] if options.limit is None else ["--limit", str(options.limit)]
    common += [f"--set={one}" for one in options.set]
    left = options.seconds - 25
    jobs = []
    for name in options.harvest.split(",") if options.harvest != "none" else ():
        begin = options.begin if name == "smollm2" else 0
        timed = ["--seconds", str(left), "--begin", str(begin)]
        jobs.append((f"harvest {name}", ["harvest", name, *common, *timed]))
    for fold in options.folds.split(","):
        for variant in options.variants.split(",") if options.variants != "none" else ():
            timed = ["--seconds", str(left - 75), "--steps", str(options.steps)]
            jobs.append((f"{variant} {fold}", ["train", variant, fold, *common, *timed]))
    started = [(name, subprocess.Popen([sys.executable, "-u", __file__, *words])) for name, words in jobs]
    for name, process in started:
        try:
            say(
                f"{name}: ended with {process.wait(max(1.0, options.seconds - (time.perf_counter() - BEGAN)))}"
            )
        except subprocess.TimeoutExpired:
            process.kill()
            say(f"{name}: cut off")


def lines_of(path: Path) -> Iterator[Any]:
    with lzma.open(path, "rt", encoding="utf-8") as file:
        yield from map(json.loads, file)


def folder_of(models: Path, name: str) -> Path:
    return next(path for path in sorted(models.iterdir()) if path.name.startswith(name) and path.is_dir())


def network_of(shape: Shape, folder: Path) -> Any:
    """Make a reader's network; all of it is in float32."""
    import torch
    from torch import nn
    from transformers import AutoModel

    class Low(nn.Module):  # type: ignore[misc]
        """A linear layer with a low-rank change, made anew each step: there are many more tokens than inputs."""

        def __init__(self, layer: Any) -> None:
            super().__init__()
            self.layer = layer.requires_grad_(False)
            self.down = nn.Parameter(torch.empty(shape.rank, layer.in_features))
            self.up = nn.Parameter(torch.zeros(layer.out_features, shape.rank))
            nn.init.kaiming_uniform_(self.down, a=math.sqrt(5))

        def forward(self, states: Any) -> Any:
            weight = self.layer.weight + 2.0 * (self.up @ self.down)
            return nn.functional.linear(states, weight, self.layer.bias)

    class Reader(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            trunk = AutoModel.from_pretrained(folder, dtype=torch.float32).requires_grad_(False)
            layers = trunk.layers if hasattr(trunk, "layers") else trunk.encoder.layer
            del layers[shape.layers :]
            for name, layer in list(trunk.named_modules()):
                if isinstance(layer, nn.Linear) and "pooler" not in name:
                    parent, _, last = name.rpartition(".")
                    setattr(trunk.get_submodule(parent), last, Low(layer))
            for name, parameter in trunk.named_parameters():
                if parameter.ndim == 1 and "pooler" not in name:
                    parameter.requires_grad_(True)
            self.trunk = trunk
            width = trunk.config.hidden_size
            self.drop = nn.Dropout(0.1)
            self.inner = nn.Linear(width, shape.among)
            self.among = nn.ModuleList(
                nn.TransformerEncoderLayer(
                    shape.among, 4, 2 * shape.among, 0.1, "gelu", batch_first=True, norm_first=True
                )
                for _ in range(2)
            )
            self.norm = nn.LayerNorm(shape.among)
            self.classifier = nn.Linear(shape.among, 1)
            angles = torch.arange(512)[:, None] * torch.exp(
                torch.arange(0, shape.among, 2) * (-6.0 / shape.among)
            )
            self.register_buffer("places", torch.cat([angles.sin(), angles.cos()], 1), persistent=False)

        def states(self, ids: Any, mask: Any) -> Any:
            trunk = self.trunk
            if not hasattr(trunk, "layers"):
                return trunk(input_ids=ids, attention_mask=mask)[0]
            hidden = self.drop(trunk.embed_tokens(ids))
            places = torch.arange(ids.shape[1], device=ids.device)[None]
            turned = trunk.rotary_emb(hidden, places)
            seen = mask.bool()[:, None, None, :].expand(-1, 1, ids.shape[1], -1)
            for number, layer in enumerate(trunk.layers):
                # Padding stands at the end, where nothing that counts looks from left to right.
                both = number >= len(trunk.layers) - shape.both
                found = layer(
                    hidden,
                    attention_mask=seen if both else None,
                    position_ids=places,
                    position_embeddings=turned,
                )
                hidden = found if torch.is_tensor(found) else found[0]
            return trunk.norm(hidden)

        def forward(self, ids: Any, mask: Any, owners: Any, present: Any) -> Any:
            """Return a logit for each sentence, rows × sentences."""
            states = self.states(ids, mask)
            rows, most = present.shape
            with torch.autocast(ids.device.type, enabled=False):
                sums = torch.zeros(rows, most + 1, states.shape[-1], device=ids.device)
                sums.scatter_add_(1, owners[..., None].expand_as(states), states.float())
                counts = torch.zeros(rows, most + 1, device=ids.device)
                counts.scatter_add_(1, owners, torch.ones_like(owners, dtype=torch.float32))
                means = (sums / counts.clamp(min=1)[..., None])[:, :most]
                hidden = self.inner(self.drop(means)) + 0.1 * self.places[:most]
                for layer in self.among:
                    hidden = layer(hidden, src_key_padding_mask=~present)
                return self.classifier(self.norm(hidden))[..., 0]

    return Reader()


class Words:
    """Sentences as tokens: each on its own, and what ends it."""

    def __init__(self, folder: Path, shape: Shape) -> None:
        from transformers import AutoTokenizer

        self.tokenizer = AutoTokenizer.from_pretrained(folder)
        encoder = self.tokenizer.cls_token_id is not None
        self.first = [self.tokenizer.cls_token_id] if encoder else []
        self.end = (
            [self.tokenizer.sep_token_id]
            if encoder
            else self.tokenizer("\n", add_special_tokens=False)["input_ids"]
        )
        self.most = shape.max_sentence - len(self.end)
        self.room = shape.max_length - len(self.first)
        self.fill = self.tokenizer.pad_token_id or 0

    def of(self, sentences: Sequence[str]) -> list[Any]:
        found = self.tokenizer(list(sentences), add_special_tokens=False)["input_ids"] if sentences else []
        return [np.array((one[: self.most] + self.end) or [self.fill], np.int64) for one in found]

    def laid(self, rows: Sequence[Sequence[Any]]) -> tuple[Any, Any, Any, Any]:
        """Return tokens, mask, owners and which sentences there are, of rows of sentences."""
        most = max(len(row) for row in rows)
        width = max(len(self.first) + sum(len(one) for one in row) for row in rows)
        width = min(-(-width // 64) * 64, len(self.first) + self.room)
        ids = np.full((len(rows), width), self.fill)
        owners = np.full((len(rows), width), most)
        present = np.zeros((len(rows), most), bool)
        for number, row in enumerate(rows):
            at = len(self.first)
            ids[number, :at] = self.first
            own = np.concatenate(row)
            ids[number, at : at + len(own)] = own
            owners[number, at : at + len(own)] = np.repeat(np.arange(len(row)), [len(one) for one in row])
            present[number, : len(row)] = True
        mask = owners < most
        mask[:, : len(self.first)] = True
        return ids, mask, owners, present


class Drawn:
    """Draws windows of documents with intruders, anew each time."""

    def __init__(self, documents: Sequence[dict[str, Any]], words: Words, shape: Shape, seed: int) -> None:
        self.words, self.shape, self.documents = words, shape, documents
        self.random = np.random.default_rng(seed)
        at = {(one["pool"], one["number"]): i for i, one in enumerate(documents)}
        self.near = [
            [
                [
                    (at[one["pool"], d], p)
                    for d, p in nearest
                    if (one["pool"], d) in at
                    and not (one.get("work") and documents[at[one["pool"], d]].get("work") == one["work"])
                ][:12]
                for nearest in one["near"]
            ]
            for one in documents
        ]
        flat = words.of([sentence for one in documents for sentence in one["sentences"]])
        self.tokens, begin = [], 0
        for one in documents:
            self.tokens.append(flat[begin : begin + len(one["sentences"])])
            begin += len(one["sentences"])
        self.domains = {
            name: np.array([i for i, one in enumerate(documents) if one["domain"] == name]) for name in MIX
        }
        self.pools: dict[str, Any] = {}
        for i, one in enumerate(documents):
            self.pools.setdefault(one["pool"], []).append(i)

    def window(self, domain: str) -> tuple[list[Any], list[int]]:
        """Return the sentences of a window as tokens, and where its intruders stand."""
        random = self.random
        number = int(random.choice(self.domains[domain]))
        one, tokens = self.documents[number], self.tokens[number]
        count = len(tokens)
        if random.random() < 0.5:
            begin, end = 0, min(count, 20)
        else:
            length = int(random.integers(5, max(6, min(count, 32) + 1)))
            begin = int(random.integers(0, max(1, count - length + 1)))
            end = min(count, begin + length)
        kept = list(range(begin, end))
        if len(kept) > 8 and random.random() < 0.25:
            gone = set(random.choice(kept[1:], int(random.integers(1, 4)), replace=False).tolist())
            kept = [place for place in kept if place not in gone]
        used, at = [], len(self.words.first)
        for place in kept:
            at += len(tokens[place])
            if at > self.words.room:
                break
            used.append(place)
        intruders = int(random.choice([c for c, _ in COUNTS], p=[p for _, p in COUNTS]))
        intruders = min(intruders, 1 if len(used) < 10 else 3, len(used) - 1)
        where = (
            sorted(random.choice(np.arange(1, len(used)), intruders, replace=False).tolist())
            if intruders > 0
            else []
        )
        row = [tokens[place] for place in used]
        found = []
        for place in where:
            sentence = self.intruder(number, one, used[place])
            if sentence is not None:
                row[place] = sentence
                found.append(place)
        # What an intruder is longer by may not fit.
        while sum(map(len, row)) > self.words.room:
            row.pop()
        return row, [place for place in found if place < len(row)]

    def intruder(self, number: int, one: dict[str, Any], place: int) -> Any:
        random = self.random
        near = self.near[number][place]
        if near and random.random() < HARD:
            rank = min(int(random.geometric(0.25)) - 1, len(near) - 1)
            other, at = near[rank]
            return self.tokens[other][at]
        pool = self.pools[one["pool"]]
        for _ in range(20):
            other = int(random.choice(pool))
            if other != number and not (one.get("work") and self.documents[other].get("work") == one["work"]):
                theirs = self.tokens[other]
                return theirs[int(random.integers(len(theirs)))]
        return None

    def batches(self, progress: Any) -> Iterator[Any]:
        """Yield batches of about so many tokens, windows of like length together."""
        while True:
            share = progress()
            weights = np.array([(1 - share) * a + share * b for a, b in MIX.values()])
            names = self.random.choice(
                list(MIX), 64 if len(self.documents) < 200 else 256, p=weights / weights.sum()
            )
            windows = sorted(
                (self.window(str(name)) for name in names), key=lambda one: sum(map(len, one[0]))
            )
            cut, batch, widest = [], [], 0
            for one in windows:
                width = sum(map(len, one[0])) + len(self.words.first)
                if batch and max(widest, width) * (len(batch) + 1) > self.shape.tokens:
                    cut.append(batch)
                    batch, widest = [], 0
                batch.append(one)
                widest = max(widest, width)
            cut.append(batch)
            for at in self.random.permutation(len(cut)):
                rows = [row for row, _ in cut[at]]
                ids, mask, owners, present = self.words.laid(rows)
                right = np.where(present, 1.0, -1.0)
                for line, (_, places) in enumerate(cut[at]):
                    right[line, places] = 0.0
                right[:, 0] = -1.0
                yield ids, mask, owners, present, right.astype(np.float32)


def trained(options: argparse.Namespace) -> None:
    """Train a reader, then write its weights and what it says of all versions."""
    import torch
    from torch import nn

    shape = VARIANTS[options.variant]
    for one in options.set:
        name, _, value = one.partition("=")
        shape = Shape(**{**asdict(shape), name: type(getattr(shape, name))(float(value))})
    title = f"{options.variant}-{options.fold}"
    device = torch.device(options.device)
    folder = folder_of(options.models, shape.base)
    documents = []
    counts: dict[str, int] = {}
    for one in lines_of(options.carry / "train.jsonl.xz"):
        one["number"] = counts.get(one["pool"], 0)
        counts[one["pool"]] = one["number"] + 1
        if options.fold == "all" or one["fold"] != int(options.fold):
            documents.append(one)
    if options.limit:
        documents = documents[:: max(1, len(documents) // options.limit)]
    torch.manual_seed(0)
    network = network_of(shape, folder).to(device)
    words = Words(folder, shape)
    drawn = Drawn(documents, words, shape, 0)
    versions = list(lines_of(options.carry / "versions.jsonl.xz"))
    if options.limit:
        versions = versions[:: max(1, len(versions) // options.limit)]
    held = [
        (i, one) for i, one in enumerate(versions) if one[1] == f"dev-{options.fold}" and one[2] != "whole"
    ]
    held = (
        held
        if options.fold != "all"
        else [(i, one) for i, one in enumerate(versions) if one[1] == "dev-0"][:120]
    )
    learned = [p for p in network.parameters() if p.requires_grad]
    groups = [
        {"params": [p for p in learned if p.ndim > 1], "weight_decay": 0.02},
        {"params": [p for p in learned if p.ndim <= 1], "weight_decay": 0.0},
    ]
    optimiser = torch.optim.AdamW(groups, lr=shape.rate, betas=(0.9, 0.98), fused=device.type == "cuda")
    say(f"{title}: {len(documents)} documents, {sum(p.numel() for p in learned)} parameters learn")
    done = {"step": 0, "began": time.perf_counter()}
    budget = options.seconds - (time.perf_counter() - BEGAN)

    def progress() -> float:
        timed = (time.perf_counter() - done["began"]) / max(1.0, budget)
        return min(1.0, max(done["step"] / options.steps, timed))

    queue: Queue[Any] = Queue(6)
    stop = threading.Event()

    def fill() -> None:
        for batch in drawn.batches(progress):
            if stop.is_set():
                return
            moved = tuple(torch.from_numpy(one) for one in batch)
            if device.type == "cuda":
                moved = tuple(one.pin_memory() for one in moved)
            queue.put(moved)

    def filled() -> None:
        try:
            fill()
        except BaseException as error:
            queue.put(error)
            raise

    threading.Thread(target=filled, daemon=True).start()
    shown, losses, evaluated = 0, [], 0.0
    network.train()
    known = options.carry / f"reader-{title}.safetensors"
    if known.is_file():
        from safetensors.torch import load_file

        own = dict(network.named_parameters())
        with torch.no_grad():
            for name, value in load_file(known).items():
                own[name].copy_(value.to(device))
        done["step"] = options.steps
    while (share := progress()) < 1.0:
        batch = queue.get(timeout=60)
        if isinstance(batch, BaseException):
            raise batch
        ids, mask, owners, present, right = (one.to(device, non_blocking=True) for one in batch)
        rate = (
            shape.rate * min(1.0, (done["step"] + 1) / FIRST_STEPS) * (0.5 + 0.5 * math.cos(math.pi * share))
        )
        for group in optimiser.param_groups:
            group["lr"] = rate
        with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
            logits = network(ids, mask, owners, present).float()
        asked = right >= 0
        each = nn.functional.binary_cross_entropy_with_logits(logits, right.clamp(min=0), reduction="none")
        loss = (each * asked).sum() / asked.sum()
        # Which one it is: the least of a window is to be an intruder.
        least = torch.log_softmax((-logits).masked_fill(~asked, -1e4), 1)
        strange = asked & (right == 0)
        loss = loss + 0.1 * -(least * strange).sum() / strange.sum().clamp(min=1)
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(learned, 1.0)
        optimiser.step()
        done["step"] += 1
        losses.append(loss.detach())
        if done["step"] - shown >= 100 or done["step"] == 5:
            shown = done["step"]
            mean = float(torch.stack(losses).mean())
            losses.clear()
            spent = time.perf_counter() - done["began"]
            say(
                f"{title}: step {shown}, {1000 * spent / shown:.0f} ms a step, {100 * share:.0f} %, loss {mean:.4f}"
            )
        if share >= evaluated + 0.45 and share < 0.95:
            evaluated = share
            figures(title, network, words, held, device)
            network.train()
    stop.set()
    say(f"{title}: {done['step']} steps")
    if not known.is_file():
        save(network, shape, options.output / f"reader-{title}", {"steps": done["step"]})
    if options.fold != "all":
        figures(title, network, words, held, device)
    chosen = [(i, one) for i, one in enumerate(versions) if wanted(one[1], options.fold)]
    logits = read_all(network, words, [one for _, one in chosen], device)
    np.savez_compressed(
        options.output / f"read-{title}.npz",
        row=np.repeat(np.array([i for i, _ in chosen], np.int32), [len(one) for one in logits]),
        logit=np.concatenate(logits).astype(np.float32),
    )
    say(f"{title}: {len(chosen)} versions read")


def wanted(name: str, fold: str) -> bool:
    """Say whether a reader of a fold is asked about a set: development articles by what has not learned from them."""
    if name.startswith("dev"):
        return name == f"dev-{fold}"
    return fold == "all" or not name.startswith("judged")


def save(network: Any, shape: Shape, path: Path, facts: dict[str, Any]) -> None:
    from safetensors.torch import save_file

    learned = {
        n: p.detach().half().cpu().contiguous() for n, p in network.named_parameters() if p.requires_grad
    }
    save_file(
        learned,
        f"{path}.safetensors",
        {"shape": json.dumps(asdict(shape)), **{k: str(v) for k, v in facts.items()}},
    )


def sentences_of(version: Any) -> list[str]:
    text, ends = version[4], version[5]
    return [text[a:b].strip() for a, b in zip([0, *ends[:-1]], ends, strict=True)]


def read_all(network: Any, words: Words, versions: Sequence[Any], device: Any) -> list[Any]:
    """Return what the network says of each sentence of each version; a long one is read in windows that overlap."""
    import torch

    network.eval()
    flat = [sentences_of(one) for one in versions]
    tokens = words.of([sentence for one in flat for sentence in one])
    jobs, begin = [], 0
    found = [np.zeros(len(one)) for one in flat]
    for number, one in enumerate(flat):
        own = tokens[begin : begin + len(one)]
        begin += len(one)
        for (first, last), places in windows_of([len(each) for each in own], words.room):
            jobs.append((number, first, places, own[first:last]))
    jobs.sort(key=lambda job: sum(map(len, job[3])))
    with torch.inference_mode():
        for at in range(0, len(jobs), 48):
            some = jobs[at : at + 48]
            batch = tuple(torch.from_numpy(one).to(device) for one in words.laid([job[3] for job in some]))
            logits = network(*batch).float().cpu().numpy()
            for line, (number, first, places, _) in enumerate(some):
                found[number][places] = logits[line, np.array(places) - first]
    return found


def windows_of(lengths: Sequence[int], room: int) -> Any:
    if sum(lengths) <= room:
        return [((0, len(lengths)), list(range(len(lengths))))]
    sys.path[:0] = [str(HERE.parent / "src")]
    from ensue.backends.hf.reader import windows_of as cut

    return cut(lengths, room)


def figures(title: str, network: Any, words: Words, held: Sequence[Any], device: Any) -> None:
    """Say how often the right sentence comes first, and is found where one in ten untouched texts is doubted."""
    logits = read_all(network, words, [one for _, one in held], device)
    kinds: dict[str, list[tuple[float, bool]]] = {"untouched": [], "random": [], "hard": []}
    for (_, version), own in zip(held, logits, strict=True):
        if version[2] in kinds and len(own) > 2:
            least = 1 + int(np.argmin(own[1:]))
            kinds[version[2]].append((float(own[least]), least in version[3]))
    if not all(kinds.values()):
        return
    words_of = []
    least = np.sort([value for value, _ in kinds["untouched"]])
    for kind in ("random", "hard"):
        first = float(np.mean([right for _, right in kinds[kind]]))
        rates = [
            float(np.mean([right and value < np.quantile(least, share) for value, right in kinds[kind]]))
            for share in (0.06, 0.08, 0.1, 0.12)
        ]
        words_of.append(f"{kind} first {first:.3f}, found {np.mean(rates):.3f}")
    say(f"{title}: held-out {'; '.join(words_of)}")


def harvested(options: argparse.Namespace) -> None:
    """Write the log-probabilities that the rule needs of each sentence: in context, alone, of its head both ways."""
    sys.path[:0] = [str(HERE.parent / "src"), str(HERE)]
    import following_harvest  # puts what the machine lacks in place  # noqa: F401
    import transformers  # noqa: F401 - first, which avoids a circular import in some versions
    from following_harvest import Row, requests
    from following_judge import likenesses

    from ensue.backends.names import load_model
    from ensue.scoring.engine import score
    from ensue.scoring.following import POLICY

    rows = [Row(*one) for one in lines_of(options.carry / "versions.jsonl.xz")]
    chosen = list(range(options.begin, len(rows)))
    if options.model not in ("smollm2", "minilm"):
        # No rule is chosen by it: what its verdict is fitted on and judged by, what is needed first standing first.
        chosen = [i for i in chosen if rows[i].kind == "whole" or rows[i].set.startswith("judged")]
        chosen.sort(key=lambda i: rows[i].set in ("judged-bbc-a", "judged-bbc-b", "forms_dev", "broken"))
    if options.limit:
        chosen = chosen[:: max(1, len(rows) // options.limit)]
    folder = folder_of(options.models, options.model)
    if options.model == "minilm":
        alike = likenesses(
            load_model(str(folder), dtype="float32", device=options.device), {i: rows[i] for i in chosen}
        )
        np.savez_compressed(
            options.output / "minilm.npz",
            row=np.repeat(np.array(chosen, np.int32), [len(rows[i].ends) for i in chosen]),
            likeness=np.concatenate([alike[i] for i in chosen]).astype(np.float32),
        )
        say(f"minilm: {len(chosen)} versions")
        return
    scorer: Any = load_model(str(folder), dtype="float32", device=options.device)
    say(f"{options.model}: loaded on {scorer.device_kind}")
    kept: list[list[float]] = []
    size = 240
    for at in range(0, len(chosen), size):
        if time.perf_counter() - BEGAN > options.seconds:
            say(f"{options.model}: time is over")
            break
        asked = [
            (kind, number, place, request)
            for kind in ("context", "alone", "head")
            for number in chosen[at : at + size]
            for place, _, request in requests(rows[number], kind)
        ]
        scores = score(scorer, [one[-1] for one in asked], policy=POLICY).scores
        found: dict[tuple[int, int], list[float]] = {}
        tokens: dict[tuple[int, int], Any] = {}
        for (kind, number, place, _), one in zip(asked, scores, strict=True):
            if kind == "context":
                found[number, place] = [number, place, one.tokens, one.logprob, 0.0, math.nan, math.nan]
                tokens[number, place] = one.token_logprobs
            elif kind == "alone":
                found[number, place][4] = one.logprob
            else:
                found[number, place][5] = math.fsum(tokens[number, place][: one.tokens])
                found[number, place][6] = one.logprob
        kept += found.values()
        if at % (4 * size) == 0 or at + size >= len(chosen):
            say(f"{options.model}: {min(at + size, len(chosen))} of {len(chosen)} versions")
            keep(options.output / f"{options.model}.npz", kept)
    keep(options.output / f"{options.model}.npz", kept)
    say(f"{options.model}: done")


def keep(path: Path, kept: list[list[float]]) -> None:
    """Write rows of version, place, tokens, in context, alone, head in context, head without the one before."""
    made = np.array(kept, np.float64)
    part = path.with_suffix(".part.npz")
    np.savez_compressed(part, where=made[:, :3].astype(np.int32), sums=made[:, 3:].astype(np.float32))
    part.rename(path)


if __name__ == "__main__":
    main()
