"""Kills runs of every benchmark at random points and goes on with them; a script, so that its children can be forks.

    python -m tests.runs.killing FOLDER

prints for each benchmark at which of its steps it was killed and how many records the last part found.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

import ensue
import ensue.backends.hf.encoder
import ensue.backends.hf.language
import ensue.train.finetune.tasks
from ensue.benchmarks.qags import task
from tests.benchmarks.discoeval.folders import write_suite
from tests.benchmarks.nlu import folders
from tests.benchmarks.qags.small_sets import write_sets
from tests.benchmarks.qags.toys import NameAfter, NameFinder, WordsBefore
from tests.benchmarks.senteval.folders import WordEncoder, write_downstream
from tests.benchmarks.squality.invented import story_row, write_rows
from tests.support import tiny
from tests.support.command import write_lines
from tests.support.corpus import write_corpus

KILLS = 2


class Both(WordsBefore, NameAfter):
    """Asks and answers."""

    def __init__(self) -> None:
        NameAfter.__init__(self)
        WordsBefore.__init__(self)


def questions(place: Path) -> dict[str, dict[str, Any]]:
    """A small run of each benchmark that keeps finished work."""
    llama = str(tiny.save_llama(place / "llama", max_length=256))
    encoder = str(tiny.save_encoder(place / "encoder"))
    write_downstream(place / "senteval" / "downstream")
    stories = write_rows(place / "t.jsonl", *(story_row(str(n)) for n in range(20)))
    return {
        "shuffle": {
            "model": llama,
            "data": write_corpus(place / "corpus.jsonl", (6,) * 4),
            "model_options": {"batch_tokens": 256},
        },
        "qags": {"model": Both(), "data": write_sets(place / "qags"), "answerer": "same", "metrics": "qags"},
        "discoeval": {"model": encoder, "data": write_suite(place / "discoeval"), "protocol": "converged"},
        "senteval": {"model": WordEncoder(), "data": place / "senteval", "protocol": "converged"},
        "squality": {
            "model": llama,
            "data": stories,
            "metrics": "rouge",
            "statistics": "no",
            "max_tokens": 6,
            "beams": 1,
        },
        "superglue": {
            "model": encoder,
            "data": write_pairs(place / "superglue"),
            "mode": "finetune",
            "epochs": 1,
            "runs": 2,
        },
        "glue": {
            "model": llama,
            "data": folders.glue(place / "glue"),
            "mode": "generate",
            "answer_tokens": 3,
        },
    }


def write_pairs(folder: Path) -> Path:
    for split, size in (("train", 24), ("val", 8)):
        for name, labels in (("RTE", ("entailment", "not_entailment")), ("CB", ("entailment", "neutral"))):
            (folder / name).mkdir(parents=True, exist_ok=True)
            write_lines(
                folder / name / f"{split}.jsonl",
                [
                    {
                        "premise": f"Boat {n} left.",
                        "hypothesis": "It stayed." if n % 2 else "It went.",
                        "label": labels[n % 2],
                        "idx": n,
                    }
                    for n in range(size)
                ],
            )
    return folder


class Steps:
    """Counts a run's steps, which are its reports of progress and the files it opens, renames or removes; at one of
    them the process is killed."""

    def __init__(self, output: Path, last: int | None = None) -> None:
        self.output, self.last, self.count = str(output), last, 0
        sys.addaudithook(self.file)

    def file(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event in ("open", "os.rename", "os.remove") and self.output in str(arguments[0]):
            self.progress()

    def progress(self, *_: object) -> None:
        self.count += 1
        if self.count == self.last:
            os.kill(os.getpid(), signal.SIGKILL)


def in_a_child(work: Callable[[], int]) -> int:
    """Do it in a fork, which knows nothing of what others computed; return what it ended with."""
    child = os.fork()
    if not child:
        try:
            os._exit(min(work(), 200))
        except BaseException as error:
            print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
            os._exit(255)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def run_once(name: str, asked: dict[str, Any], output: Path, last: int | None = None) -> int:
    """Run it in a child, which may be killed at a step; return how many steps it took."""

    def work() -> int:
        steps = Steps(output, last)
        ensue.run(name, output=output, resume=True, progress=steps.progress, **asked)
        return steps.count

    os.environ["ENSUE_HOME"] = str(output.with_name(f"home of {output.name}"))
    return in_a_child(work)


def kill_and_go_on(name: str, asked: dict[str, Any], place: Path, rng: random.Random) -> dict[str, Any]:
    """The run undisturbed, then again with kills."""
    steps = run_once(name, asked, place / "whole" / name)
    assert steps < 255, name
    output = place / "killed" / name
    at = [rng.randint(1, steps) for _ in range(KILLS)]
    killed = [run_once(name, asked, output, last) == -signal.SIGKILL for last in at]
    journal = output / "journal.jsonl"
    # Killed once its results are in place, a run is finished: what it leaves is cleared away and not gone on with.
    goes_on = journal.exists() and not (output / "results.json").exists()
    lines = journal.read_bytes().splitlines(keepends=True) if goes_on else []
    kept = len({tuple(json.loads(line)[2:4]) for line in lines if line.endswith(b"\n")})
    assert run_once(name, asked, output) < 255, name
    return {"steps": steps, "at": at, "killed": killed, "kept": kept}


def main(place: Path) -> None:
    torch.set_num_threads(1)
    # The finder stands in a default of the run, which is made by name and cannot be given one.
    task.QagsRun.__init__.__defaults__ = (NameFinder,)
    rng = random.Random(os.urandom(8))
    asked = questions(place)
    print(json.dumps({name: kill_and_go_on(name, asked[name], place, rng) for name in asked}))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
