"""One training in its folder, whatever is trained: check the folder, go through the loop, write record and cards."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from accelerate import Accelerator
from torch import nn

from ensue.atomic import write_atomic
from ensue.backends.hf.loading import RECORD
from ensue.environment import environment
from ensue.errors import EnsueError
from ensue.jsonl import read_object
from ensue.models.card import write_card_facts
from ensue.progress import Progress, ignore
from ensue.records import file_digest
from ensue.train.loop import Batches, Evaluate, Fitted, Loop, make_accelerator
from ensue.train.options import LoopSettings, TrainingOptions

README = "README.md"
# Where a training keeps its prepared corpus, unless another folder is named.
CORPUS = "corpus"


class Described(NamedTuple):
    """What is said of a finished model: two facts of its card, more facts of the record, the text of a README, and
    further facts of the card."""

    training: str
    source: str
    facts: Mapping[str, Any] = {}
    readme: str = ""
    card: Mapping[str, Any] = {}


@dataclass(frozen=True)
class Job:
    """What a trainer prepares: the objective, its data, how the best model is saved, and what is said of it.

    `facts` go into the record; `describe` is given the record and how the training ended, once the best model is in
    the folder. `question` is a digest of the data, by which a checkpoint of other data is known.
    """

    objective: nn.Module
    loop: LoopSettings
    batches: Batches
    evaluate: Evaluate
    save: Callable[[], None]
    describe: Callable[[Mapping[str, Any], Fitted], Described]
    facts: Mapping[str, Any] = field(default_factory=dict)
    question: str = ""


class Fit(NamedTuple):
    """What was fitted in one go, without steps: how it ended, facts of the record, how it is saved, what is said."""

    fitted: Fitted
    facts: Mapping[str, Any]
    save: Callable[[], None]
    described: Described


# Given the machine and where progress is reported.
Prepare = Callable[[Accelerator, Progress], Job]


def run_training(
    options: TrainingOptions,
    prepare: Prepare,
    progress: Progress | None = None,
    asked: Mapping[str, Any] | None = None,
) -> Fitted:
    """Train what `prepare` makes ready, from the last checkpoint if so asked, and leave the best model in the output.

    `asked` is what the outcome depends on, where the options alone do not say it. Of several processes the main one
    writes and reports.
    """
    output, asked = options.output, asked or options.asked()
    accelerator = make_accelerator(options.loop)
    main = bool(accelerator.is_main_process)
    made = main and not output.exists()
    if main:
        check_folder(output, asked, options.resume)
    shown = progress if main and progress is not None else ignore
    with _gone_if_empty(output) if made else nullcontext():
        job = prepare(accelerator, shown)
    loop = Loop(
        job.objective,
        job.loop,
        output,
        accelerator,
        save_best=job.save,
        progress=shown,
        question=job.question,
    )
    if main:
        begin_record(output, asked)
    fitted = loop.run(job.batches, job.evaluate, resume=options.resume)
    if main:
        facts = _facts(asked, job.facts, fitted, accelerator.num_processes)
        # Before it is described, for which some are loaded: what is not recorded as finished is refused.
        write_record(output, facts)
        _say(output, facts, job.describe(facts, fitted))
    return fitted


def run_fit(
    options: TrainingOptions, fit: Callable[[Progress], Fit], progress: Progress | None = None
) -> Fitted:
    """Fit what takes one go and leave the model in the output; with `resume` one that was stopped is fitted anew."""
    output, asked = options.output, options.asked()
    made = not output.exists()
    check_folder(output, asked, options.resume)
    with _gone_if_empty(output) if made else nullcontext():
        done = fit(progress or ignore)
    begin_record(output, asked)
    done.save()
    _say(output, _facts(asked, done.facts, done.fitted, 1), done.described)
    return done.fitted


def _facts(
    asked: Mapping[str, Any], found: Mapping[str, Any], fitted: Fitted, processes: int
) -> dict[str, Any]:
    """Return what the record of a finished training holds."""
    return {
        "asked": asked,
        **found,
        "fitted": asdict(fitted),
        "processes": processes,
        "environment": environment(),
    }


def _say(output: Path, facts: Mapping[str, Any], described: Described) -> None:
    """Write record, README and card of a finished training."""
    write_record(output, {**facts, **described.facts})
    if described.readme:
        write_atomic(output / README, [described.readme])
    write_card_facts(output, training=described.training, source=described.source, **described.card)


@contextmanager
def _gone_if_empty(folder: Path) -> Iterator[None]:
    """Take away a folder that was made for what then could not begin."""
    try:
        yield
    except BaseException:
        with suppress(OSError):
            folder.rmdir()
        raise


def check_folder(output: Path, asked: Mapping[str, Any], resume: bool) -> None:
    """Refuse a folder that holds anything but this training, to be resumed, or the corpus prepared for it."""
    try:
        output.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise EnsueError(f"{output} cannot be a folder: {error.strerror}.") from error
    record = output / RECORD
    if not record.exists():
        if {path.name for path in output.iterdir()} - {CORPUS}:
            raise EnsueError(f"{output} is not empty and holds no training; choose another --output.")
        return
    if not resume:
        raise EnsueError(
            f"{output} holds a training; add --resume to go on with it, or choose another --output."
        )
    if read_object(record).get("asked") != json.loads(json.dumps(asked)):
        raise EnsueError(f"{output} holds a training with other settings or data; choose another --output.")


def begin_record(output: Path, asked: Mapping[str, Any]) -> None:
    """Record what is trained, once it can begin; a training that goes on has done so."""
    if not (output / RECORD).exists():
        write_record(output, {"asked": asked, "started": time.strftime("%Y-%m-%dT%H:%M:%S%z")})


def write_record(output: Path, facts: Mapping[str, Any]) -> None:
    """Write the record; a figure that could not be had is NaN in it."""
    write_atomic(output / RECORD, [json.dumps(facts, indent=2) + "\n"])


def parameters_of(module: nn.Module) -> dict[str, int]:
    """Count the parameters of a network, and those of them that learn."""
    return {
        "parameters": sum(p.numel() for p in module.parameters()),
        "trained_parameters": sum(p.numel() for p in module.parameters() if p.requires_grad),
    }


def content_digest(files: Iterable[str | Path]) -> str:
    """Return a digest of what is in some files, by which a training knows its data again wherever it lies."""
    found = hashlib.sha256()
    for name in files:
        found.update(bytes.fromhex(file_digest(Path(name).expanduser())))
    return found.hexdigest()
