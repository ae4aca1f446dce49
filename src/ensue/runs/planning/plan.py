"""A plan: what a run asks of its models and of the machine, before it starts."""

from __future__ import annotations

import json
import math
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ensue.benchmarks import registry
from ensue.benchmarks.base import Benchmark, Guided, Outcome, Prepared, RunContext
from ensue.benchmarks.settings import resolve
from ensue.errors import EnsueError
from ensue.fetch.store import home
from ensue.jsonl import read_object
from ensue.models.protocols import Model
from ensue.progress import Progress, ignore
from ensue.records import Records
from ensue.runs.planning.hardware import Hardware, find_hardware
from ensue.runs.planning.tally import Ledger, Tally, Work
from ensue.runs.run import load_for, training
from ensue.scoring.journal import Journal

_Z = 1.96
# Of fewer seconds of the host, importing and reading word lists may be most.
_BRIEF = 60.0


@dataclass(frozen=True)
class Costs:
    """The work of one model and kind, in numbers: tokens, operations, and seconds of one device."""

    work: Work
    tally: Tally
    operations: float
    seconds: float
    spread: float
    measured: float | None


@dataclass(frozen=True)
class Plan:
    """What a run costs.

    `times` is how often the work of the data at hand is done. `seconds` are those of one device at work, with a 95 %
    interval where text was sampled or scaled; `host` those that this machine took for all that is not the network,
    `outside` the part of them that a GPU waits for: reading, building, judging, but no tokenising and planning.
    """

    benchmark: str
    model: str
    hardware: Hardware
    devices: int
    price: float | None
    ledger: Ledger
    items: int
    clusters: int
    tokens: int
    times: float
    costs: list[Costs]
    host: float
    outside: float
    start: float
    disk: dict[str, float]
    memory: dict[str, float]
    spread: float
    notes: list[str] = field(default_factory=list)

    @property
    def seconds(self) -> float:
        return sum(cost.seconds for cost in self.costs)

    @property
    def operations(self) -> float:
        return sum(cost.operations for cost in self.costs)

    @property
    def busy(self) -> float:
        """Seconds that devices are taken for, with what of the host's part is not done meanwhile."""
        return self.seconds + (self.host if self.hardware.kind == "cpu" else self.outside)

    @property
    def wall(self) -> float:
        """Seconds from start to end with all devices, each of which loads the model."""
        return self.start + self.busy / self.devices

    @property
    def device_hours(self) -> float:
        return (self.busy + self.start * self.devices) / 3600

    @property
    def money(self) -> float | None:
        return None if self.price is None else self.device_hours * self.price

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval of the seconds at work, as far as sampling and scaling go."""
        reach = _Z * self.spread
        return self.seconds * max(1 - reach, 0.0), self.seconds * (1 + reach)


def plan(
    benchmark: str,
    *,
    model: str | None = None,
    shape: str | None = None,
    tokenizer: str | None = None,
    data: str | Path | None = None,
    limit: int | None = None,
    seed: int = 0,
    hardware: str | Hardware | None = None,
    devices: int = 1,
    price: float | None = None,
    documents: int | None = None,
    measure: bool = False,
    clock: Callable[[], float] = time.perf_counter,
    written: int | None = None,
    model_options: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
    **settings: Any,
) -> Plan:
    """Plan a run of a benchmark as `ensue.run` would do it, without doing it.

    `hardware` is a profile's name or a file's; `shape` stands for a model that is not here, with the tokenizer of
    another model or, as `tokenizer="4.2"`, so many characters a token. `documents` plans for so many documents like
    those of the data. `measure` runs a few seconds of the work here, by `clock`, and corrects the
    profile by it.
    """
    from ensue.runs.planning.counting import counting_model
    from ensue.runs.planning.target import Target

    if measure and shape is not None:
        raise EnsueError(
            "--measure runs the model, and a shape has no weights; leave out --measure or --shape."
        )
    if shape is not None and model is not None:
        raise EnsueError(f"--shape stands for a model that is not here; leave it out or --model {model}.")
    if tokenizer is not None and shape is None:
        raise EnsueError("--tokenizer goes with --shape: a model that is here has its own; leave it out.")
    if price is not None and not 0 <= price < math.inf:
        raise EnsueError(f"A device costs from 0 an hour up, not {price}.")
    name, _, task = benchmark.partition("/")
    found = registry.find(name)
    asked = found.load_task()
    values = resolve(name, asked.settings, settings)
    _refuse_training(training(values))
    options = dict(model_options or {})
    device = hardware if isinstance(hardware, Hardware) else find_hardware(hardware or _here())
    dtype = options.get("dtype", "auto")
    target = Target(
        kind=device.kind,
        memory=device.bytes,
        dtype=device.dtype if dtype == "auto" else dtype,
        compile=options.get("compile", "auto"),
        batch_tokens=options.get("batch_tokens"),
        written=written,
    )
    prepared = asked.prepare(task, None if data is None else str(data), limit, seed, values)
    models = _Models(found, target, options, shape, tokenizer)
    loaded = models.load(model or found.default_model) if shape is None else models.shaped(shape)
    _refuse_training(training(values, loaded))

    def counted() -> tuple[Ledger, Model, _Seen]:
        ledger = Ledger()

        def further(which: str) -> Model:
            other = models.load(which)
            return counting_model(other, ledger, models.target_of(other))

        counting = counting_model(loaded, ledger, models.target_of(loaded))
        return ledger, counting, _evaluate(prepared, counting, further, progress, ledger)

    ledger, counting, seen = counted()
    times = 1.0 if documents is None else documents / seen.clusters
    first, another = seen, target.compile == "auto" and models.decide(ledger, times)
    if another or (times > 1 and seen.host < _BRIEF):
        # So many documents are run in another way than those at hand, or what is done once is told from the rest.
        prepared = asked.prepare(task, None if data is None else str(data), limit, seed, values)
        ledger, counting, seen = counted()
    guided = prepared.assumed(counting) if isinstance(prepared, Guided) else ""
    assumptions = [*models.notes, *ledger.assumptions, *([guided] if guided else [])]
    notes = [f"assumed: {words}" for words in assumptions]
    if documents is not None:
        notes.append(f"scaled from {seen.clusters:,} documents of {prepared.source} to {documents:,}")
    ratios: dict[tuple[str, str], float] = {}
    if measure:
        from ensue.runs.planning.pilot import measured_ratios

        ratios = measured_ratios(ledger, device, models, clock)
    costs = [_costs(work, device, times, ratios.get((work.model, work.what))) for work in ledger]
    memory, start = _memory(ledger, device, target, times), _start(ledger, device, costs, options)
    if memory and sum(memory.values()) > device.bytes:
        notes.append(
            f"does not fit: {sum(memory.values()) / 2**30:.0f} GiB are needed and a {device.name} has "
            f"{device.memory:.0f}; a model is not divided between devices here"
        )
    return Plan(
        benchmark=benchmark,
        model=loaded.card.name,
        hardware=device,
        devices=devices,
        price=price,
        ledger=ledger,
        items=seen.items,
        clusters=seen.clusters,
        tokens=seen.tokens,
        times=times,
        costs=costs,
        host=seen.host * times + max(first.host - seen.host, 0.0),
        outside=seen.outside * times + max(first.outside - seen.outside, 0.0),
        start=start,
        disk={key: value * times for key, value in seen.disk.items()},
        memory=memory,
        spread=_spread(costs, times, seen.clusters),
        notes=notes,
    )


def _refuse_training(what: str | None) -> None:
    """Refuse what is a matter of steps, which nothing here counts."""
    if what is not None:
        raise EnsueError(
            f"{what} trains a network, and how long that takes is not planned here; run it with --limit and see what "
            f"a step takes, or plan a model that is trained already, with mode=prompt or mode=frozen."
        )


def _here() -> str:
    """Return the profile of this machine: its GPU's where there is one that has a profile."""
    from ensue.environment import environment, is_amd_with_avx512
    from ensue.runs.planning.hardware import profiles

    gpu = str(environment().get("gpu") or "").lower()
    cpu = "cpu-avx512" if is_amd_with_avx512() else "cpu"
    return next((name for name, one in profiles().items() if one.kind == "cuda" and name in gpu), cpu)


class _Models:
    """How the models of a plan are come by: by name, without their weights in memory, or by shape."""

    def __init__(
        self,
        benchmark: Benchmark,
        target: Any,
        options: dict[str, Any],
        shape: str | None,
        tokenizer: str | None,
    ) -> None:
        self.benchmark, self.target, self.options = benchmark, target, options
        self.tokenizer = tokenizer
        self.notes: list[str] = []
        self.loaded: dict[str, tuple[str, Model]] = {}
        self.compile: dict[str, str] = {}

    def load(self, name: str) -> Model:
        """Load a model by its name on the device `meta`, where it takes no memory."""
        if name.startswith(("http://", "https://")):
            raise EnsueError(
                f"{name} is served elsewhere, where nothing of its shape is known; plan with --shape and --tokenizer."
            )
        kept = {
            key: value
            for key, value in self.options.items()
            if key not in ("device", "concurrency", "timeout")
        }
        found = load_for(self.benchmark, name, **kept, device="meta")
        self.loaded[found.card.name] = (name, found)
        return found

    def real(self, name: str) -> Model:
        """Load a model with its weights, as a run would."""
        return load_for(self.benchmark, self.loaded[name][0], **self.options)

    def decide(self, ledger: Ledger, times: float) -> bool:
        """Decide which models are compiled for so many times the work, and return whether that is another way than
        they were counted in. Work in several streams is then in more of them, each as long as before."""
        from ensue.runs.planning.target import is_repaid

        ways = {work.model: is_repaid(work.saved * times) for work in ledger if work.streams == 1}
        other = {work.model for work in ledger if work.model in ways and ways[work.model] != work.compiled}
        self.compile = {name: "always" if ways[name] else "never" for name in other}
        return bool(other)

    def target_of(self, model: Model) -> Any:
        """Return the target of a model: how it is compiled, and in which dtype it is loaded."""
        target = replace(self.target, compile=self.compile.get(model.card.name, self.target.compile))
        return self._with_dtype(model, target)

    def _with_dtype(self, model: Model, target: Any) -> Any:
        """Return the target with the dtype a kind of model is loaded in: only language models are halved."""
        from ensue.backends.hf.language import LanguageModel
        from ensue.backends.qg.questioner import CausalQuestioner

        if self.options.get("dtype", "auto") != "auto" or isinstance(model, LanguageModel | CausalQuestioner):
            return target
        return replace(target, dtype="float32")

    def shaped(self, shape: str) -> Model:
        """Make a causal model of a shape, with a tokenizer of another model or a guess in its place."""
        from ensue.backends.hf.language import CausalModel
        from ensue.backends.hf.loading import Loaded, Options, max_length, need_torch
        from ensue.models.card import ModelCard
        from ensue.runs.planning.guessing import find_tokenizer
        from ensue.runs.planning.shapes import empty_network, find_shape

        need_torch("Planning with a shape")
        network = empty_network(find_shape(shape))
        tokenizer, said = find_tokenizer(self.tokenizer)
        self.notes.append(said)
        label = Path(shape).name if len(shape) < 60 else "shape"
        card = ModelCard(
            label, "causal", "a shape without weights", {"weights": "-", "dtype": self.target.dtype},
            max_length=max_length(network),
        )  # fmt: skip
        return CausalModel(Loaded(network, tokenizer, card, Options(dtype=self.target.dtype, device="meta")))


@dataclass(frozen=True)
class _Seen:
    """What evaluating with counting models brought to light."""

    items: int
    clusters: int
    tokens: int
    host: float
    outside: float
    disk: dict[str, float]


def _evaluate(
    prepared: Prepared, model: Model, load: Callable[[str], Model], progress: Progress | None, ledger: Ledger
) -> _Seen:
    """Evaluate as a run does, in a folder that is thrown away, and see how large everything in it becomes."""
    began, own = time.process_time(), time.thread_time()
    folder = Path(tempfile.mkdtemp(prefix="ensue-plan-"))
    known: dict[str, Model] = {}

    def once(name: str) -> Model:
        return known[name] if name in known else known.setdefault(name, load(name))

    try:
        with Records(folder / "journal.jsonl") as records:
            context = RunContext(Journal(records), folder, progress or ignore, once, records)
            outcome: Outcome = prepared.evaluate(model, context)
            items, clusters, size = 0, set(), 0
            for item in outcome.items:
                items += 1
                clusters.add((item["task"], item["cluster"]))
                size += len(json.dumps(item)) + 1
            size += sum(len(json.dumps(row)) + 1 for rows in outcome.extras.values() for row in rows)
            journal = os.path.getsize(folder / "journal.jsonl") if len(records) else 0
        host, outside = time.process_time() - began, time.thread_time() - own - ledger.inside
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        vectors = _drop_vectors(ledger.mark)
    disk = {"run folder": float(size), "journal, until it is finished": float(journal)}
    disk |= {"vectors": vectors} if vectors else {}
    return _Seen(items, max(len(clusters), 1), outcome.tokens, host, max(outside, 0.0), disk)


def _drop_vectors(mark: str) -> float:
    """Remove the vectors that stand in for a model's, which a suite keeps, and return their bytes."""
    dropped = 0.0
    for about in (home() / "vectors").glob("*/about.json"):
        try:
            planned = read_object(about).get("identity", {}).get("planned")
        except EnsueError:
            continue
        if planned == mark:
            dropped += sum(path.stat().st_size for path in about.parent.iterdir())
            shutil.rmtree(about.parent, ignore_errors=True)
    return dropped


def _costs(work: Work, device: Hardware, times: float, ratio: float | None) -> Costs:
    tally, shape = work.times(times), work.shape
    operations = (
        shape.linear_operations(tally.fed + tally.written)
        + shape.attention_operations(tally.seen + tally.written_seen, tally.near + tally.written_seen)
        + shape.head_operations(tally.scored)
    )
    seconds = device.seconds_of(work, tally) * (1.0 if ratio is None else ratio)
    return Costs(work, tally, operations, seconds, work.spread(lambda one: one.fed), ratio)


def _spread(costs: list[Costs], times: float, clusters: int) -> float:
    """Return the standard error of all seconds as a part of them."""
    total = sum(cost.seconds for cost in costs)
    if not total:
        return 0.0
    sampled = math.sqrt(sum((cost.spread * cost.seconds) ** 2 for cost in costs)) / total
    if times == 1.0:
        return sampled
    own = math.sqrt(sum((cost.work.unevenness * cost.seconds) ** 2 for cost in costs)) / total
    # Documents beyond those at hand are like them only on average.
    return math.hypot(sampled, own * math.sqrt(max(1 - 1 / times, 0.0)))


def _memory(ledger: Ledger, device: Hardware, target: Any, times: float) -> dict[str, float]:
    """Return the bytes on a device for so many times the work, by what they are for: all models' weights, the most of
    the rest."""
    from ensue.runs.planning.target import budget_of

    found: dict[str, float] = {}
    weights: dict[str, float] = {}
    for work in ledger:
        longest = budget_of(work.shape, replace(target, dtype=work.dtype)).longest_run
        parts = device.memory_of(work, longest, times)
        weights[work.model] = parts.pop("weights")
        for key, value in parts.items():
            found[key] = max(found.get(key, 0.0), value)
    if not weights:
        return {}
    return {"weights": sum(weights.values()), **found, "the process": device.process * 2**30}


def _start(ledger: Ledger, device: Hardware, costs: list[Costs], options: Mapping[str, Any]) -> float:
    """Return the seconds before a process works: starting, reading weights, compiling where that is repaid."""
    weights = {work.model: work.shape.weights * (2 if work.dtype != "float32" else 4) for work in ledger}
    compiles = any(cost.work.compiled for cost in costs)
    return device.start + sum(weights.values()) / 2**30 / device.loading + compiles * device.compiling
