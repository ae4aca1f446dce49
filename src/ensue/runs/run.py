"""Runs a benchmark: reads the data, loads the model, evaluates, and leaves a run folder behind."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import cache, cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ensue import lazy
from ensue.backends.names import load_model
from ensue.benchmarks import registry
from ensue.benchmarks.base import HUMAN, PEOPLE, Benchmark, Depending, LoadModel, Prepared, RunContext
from ensue.benchmarks.settings import resolve
from ensue.environment import environment, peak_memory
from ensue.errors import EnsueError
from ensue.executing import Chosen, Executor, LocalExecutor, executing
from ensue.lazy import from_extra
from ensue.models.protocols import Model
from ensue.progress import Progress, ignore
from ensue.records import DAMAGED, Records
from ensue.report.results import Results, read_items, read_results
from ensue.runs.folder import ITEMS, RESULTS, RUN, RunFolder
from ensue.scoring.journal import Journal
from ensue.version import __version__

if TYPE_CHECKING:
    import pandas


# The ways of answering GLUE and SuperGLUE that train a network, which a layer above the benchmarks implements.
lazy.provide("mode", "train", "ensue.train.sentences.system:system")
lazy.provide("mode", "finetune", "ensue.train.finetune.system:system")


@dataclass(frozen=True)
class Run:
    """A finished run, read from its folder; `computed` is False where it was finished before it was asked for."""

    folder: Path
    computed: bool = field(default=True, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "folder", Path(self.folder))

    @cached_property
    def results(self) -> Results:
        """The contents of results.json, read once."""
        return read_results(self.folder)

    @cached_property
    def items(self) -> list[dict[str, Any]]:
        """The lines of items.jsonl, read once."""
        return list(read_items(self.folder))

    def to_pandas(self) -> pandas.DataFrame:
        """Return the metric rows as a data frame, settings as columns."""
        frame = from_extra("pandas:DataFrame", "to_pandas", "pandas", "pandas")
        rows = [{**row, **row["settings"]} for row in self.results["metrics"]]
        return frame([{k: v for k, v in row.items() if k != "settings"} for row in rows])


def folder_of(run: str | Path | Run) -> Path:
    """Return the folder of a run that is given as itself or by its folder."""
    return run.folder if isinstance(run, Run) else Path(run)


def suite_of(about: Mapping[str, Any]) -> str:
    """Return the benchmark, without the task, that results or a question name."""
    return str(about.get("benchmark")).partition("/")[0]


def part_of(suite: str, part: str) -> Any:
    """Load a part of a benchmark (`tables`, `page`, `comparing`); None where it has none or is not known here."""
    reference = getattr(registry.find(suite), part) if suite in registry.names() else None
    return None if reference is None else lazy.load(reference)


def run(
    benchmark: str,
    *,
    model: str | Model | None = None,
    data: str | Path | None = None,
    limit: int | None = None,
    seed: int = 0,
    output: str | Path | None = None,
    resume: bool = False,
    model_options: Mapping[str, Any] | None = None,
    executor: str | Chosen | Executor | None = None,
    progress: Progress | None = None,
    **settings: Any,
) -> Run:
    """Run a benchmark (or one of its tasks, `benchmark/task`) and return the finished run.

    Without `model` it is the benchmark's default. Without `output` the folder is `runs/BENCHMARK-MODEL-HASH`, the
    hash that of the question asked. A folder that holds the finished run of the same question is read and nothing is
    computed; an unfinished one is continued only where `resume` says so; one of another question is refused.

    `executor` says where models run: `local`, `ray` (`ray:ADDRESS` for a cluster), or one that is open. Numbers do
    not depend on it, and a run that one began another may go on with.
    """
    for option, number in (("limit", limit), ("seed", seed)):
        if number is not None and type(number) is not int:
            raise EnsueError(f"{option} is a whole number, not {number!r}.")
    name, _, task = benchmark.partition("/")
    found = registry.find(name)
    asked_task = found.load_task()
    values = resolve(name, asked_task.settings, settings)
    prepared = asked_task.prepare(task, None if data is None else str(data), limit, seed, values)
    options = dict(model_options or {})
    if (needed := getattr(prepared, "dtype", None)) and options.get("dtype", "auto") == "auto":
        options["dtype"] = needed
    named = model if model is not None else found.default_model
    with executing(executor) as hands:
        loaded = _load(hands, found, named, options)
        if (what := training(values, loaded)) and not isinstance(hands, LocalExecutor):
            raise EnsueError(f"{what} trains a network, which is done in one process; leave --executor out.")
        asked = {
            "benchmark": benchmark,
            "model": loaded.card.name,
            "limit": limit,
            "seed": seed,
            "settings": values,
            "model_identity": loaded.card.identity,
            "model_generation": loaded.card.generation,
            "data_fingerprint": prepared.fingerprint,
            "version": __version__,
        }
        if isinstance(prepared, Depending):
            asked |= prepared.depends_on(loaded)
        folder = RunFolder(Path(output) if output else _default_output(asked), asked, resume=resume)
        computed = not folder.finished
        try:
            if not computed:
                # It may have been killed in between.
                folder.clean()
            else:
                # What a further model shares with the run's own; its revision and what it is trusted with are not.
                shared: dict[str, Any] = {key: options[key] for key in ("dtype", "device") if key in options}
                further = cache(partial(_load, hands, found, options=shared))
                _evaluate(folder, prepared, loaded, progress, further, hands)
        finally:
            folder.close()
    return Run(folder.path, computed)


def training(values: Mapping[str, Any], model: Model | None = None) -> str | None:
    """Say what of a run trains a network: how it is to answer, or what its model is; None where nothing does."""
    if values.get("mode") in lazy.provided("mode"):
        return f"mode={values['mode']}"
    return (
        model.card.name if model is not None and "mode" in values and model.card.kind == "untrained" else None
    )


def _load(hands: Executor, benchmark: Benchmark, model: str | Model, /, options: Mapping[str, Any]) -> Model:
    """Load a model where it is to run; what is no more than a name or a file of answers is loaded here."""
    if not isinstance(model, str):
        if not isinstance(hands, LocalExecutor):
            raise EnsueError(f"Workers load models by their names; give that of {model.card.name}.")
        return model
    load = partial(load_for, benchmark, model, **options)
    return load() if model.startswith(HUMAN) or model in benchmark.systems else load_by(hands, model, load)


def load_by(hands: Executor, model: str, load: Callable[[], Model]) -> Model:
    """Load a model of that name where it is to run; a server runs on machines of its own."""
    if model.startswith(("http://", "https://")) and not isinstance(hands, LocalExecutor):
        raise EnsueError(
            f"{model} runs on machines of its own; leave --executor out and say with --concurrency how much is asked "
            f"at once."
        )
    return hands.load(load)


def load_for(benchmark: Benchmark, model: str, /, **options: Any) -> Model:
    """Load a system of the benchmark's own, or a model by its name."""
    if model.startswith(HUMAN):
        people: Model = lazy.load("ensue.benchmarks.people.human:load_people")(model)
        return people
    if model not in benchmark.systems:
        refuse_systems(model, f"not of {benchmark.name}")
        return load_model(model, **options)
    if options.get("name") is not None:
        raise EnsueError(f"{model} has a name already; --name is for folders, files, endpoints and hub ids.")
    found: Model = lazy.load(benchmark.systems[model].load)(model)
    return found


def refuse_systems(name: str, but: str) -> None:
    """Refuse a name that only means something in other benchmarks."""
    owners = [one.name for one in registry.every() if name in one.systems]
    if owners:
        raise EnsueError(f"{name} is a system of {' and '.join(owners)}, {but}; give a model.")


def _default_output(asked: dict[str, Any]) -> Path:
    digest = hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()[:8]
    plain = "".join(c if c.isalnum() or c in "._" else "-" for c in f"{asked['benchmark']}-{asked['model']}")
    return Path("runs") / f"{plain}-{digest}"


def _evaluate(
    folder: RunFolder,
    prepared: Prepared,
    model: Model,
    progress: Progress | None,
    load: LoadModel,
    hands: Executor,
) -> None:
    began, cpu_began = time.monotonic(), time.process_time()
    about: dict[str, Any] = {
        "asked": folder.asked,
        "data": {"source": prepared.source, "fingerprint": prepared.fingerprint},
        "model": model.card.as_dict(),
        "environment": environment(),
        "started": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
    }
    folder.write_json(RUN, about)
    with Records(folder.journal) as records:
        about["resumed_from"] = len(records)
        context = RunContext(Journal(records), folder.path, progress or ignore, load, records)
        is_people = model.card.kind == PEOPLE
        refusing = lazy.load("ensue.benchmarks.people.export:refusing_edited") if is_people else nullcontext
        with refusing(model.card.source):
            outcome = prepared.evaluate(model, context)
    if records.damaged:
        outcome.notes[DAMAGED] += records.damaged
    # What was asked of which data, before what the benchmark says of the model and its own choices.
    asked = folder.asked
    limit = "" if asked["limit"] is None else f"limit:{asked['limit']} "
    data = f"benchmark:{asked['benchmark']} data:{asked['data_fingerprint'][:12]}"
    signature = f"ensue:{asked['version']} {data} {limit}{outcome.signature}"
    about |= {
        "signature": signature,
        "seconds": round(time.monotonic() - began, 2),
        "cpu_seconds": round(time.process_time() - cpu_began, 2),
        "peak_memory": peak_memory(),
        **hands.about(),
    }
    folder.write_lines(ITEMS, outcome.items)
    for name, rows in outcome.extras.items():
        folder.write_lines(f"{name}.jsonl", rows)
    folder.write_json(RUN, about)
    # Last of all: a folder without it is an unfinished run.
    results = {
        "benchmark": asked["benchmark"],
        "model": asked["model"],
        "signature": signature,
        "metrics": outcome.metrics,
        "skipped": dict(sorted(outcome.skipped.items())),
        "notes": dict(sorted(outcome.notes.items())),
        "seconds": about["seconds"],
        "tokens": outcome.tokens,
    }
    folder.write_json(RESULTS, results)
    folder.clean()
