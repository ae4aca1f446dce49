"""Measures coherence on a GPU: trains what is missing, then runs every task on every model, what matters most first.

    python bench/coherence_sets.py ~/ensue-data carried && python bench/kbst_sets.py ~/ensue-data carried/sets
    python bench/coherence_gpu.py --data carried --keep models --runs runs --output $OUT --seconds 500

A process a lane shares the GPU, since small models do not fill it. Each lane goes through its list in order: a run
that is over its seconds is stopped, and gone on with at the end if time is left. All of it may be asked for again:
what is finished is not done twice. As soon as a training or a run ends it is in OUTPUT: a line in lines.jsonl, and
its folder (trained models; results and items, not journals) in part-N.tar, so that a machine that goes away takes
what is unfinished and nothing else. The models' runs of `transfer` are joined at home (`--set beside=`).

`--tiny FOLDER` tries the script itself on a CPU with few documents and the small models FOLDER/causal, FOLDER/encoder
and FOLDER/masked (tests/support/tiny.py makes such).
"""

from __future__ import annotations

import argparse
import fcntl
import gc
import io
import json
import lzma
import re
import signal
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

# Importing these first avoids a circular import in some versions of transformers.
import transformers
from coherence_train import ABOUT, JOBS, stand_in
from transformers import AutoModelForCausalLM

ZERO, GEMMA, QWEN, MASKED = "smollm2", "gemma3-270m", "qwen2.5-1.5b", "minilm-mlm"
DOMAIN, RATERS = ("lm-bbc", "lm-wsj"), ("coherence-bbc", "coherence-wsj")
NEWS, SETS, LONG = ("bbc", "wsj"), ("legal", "bbc", "wsj", "blog"), ("stories", "chapters")
# How the supervised models of docs/coherence.md were trained.
SUPERVISED = {
    "coherence-bbc": {"shuffles": 3, "epochs": 1, "batch": 32, "evaluate_every": 100},
    "coherence-wsj": {"shuffles": 20, "epochs": 3, "batch": 32, "evaluate_every": 125},
}
# What comes back from the machine: files of so many bytes, so many bytes in all.
PART, ALL = 15_500_000, 60_000_000


class Stopped(BaseException):
    """Raised where a run's time is over; no handler of errors takes it for one."""


class Training(NamedTuple):
    """A model that is trained unless it is there."""

    name: str
    trainer: str
    options: dict[str, Any]
    seconds: float = 150


class Wanted(NamedTuple):
    """A run of a benchmark, and in how many seconds at most it is tried first."""

    name: str
    benchmark: str
    model: str
    data: tuple[str, str]
    settings: dict[str, Any]
    seconds: float = 90


Work = Training | Wanted


def transfer(model: str, *domains: str, seconds: float = 240) -> Wanted:
    """The command of docs/coherence.md with one model; the runs of all are joined afterwards."""
    places = {"wsj": "test", "blog": "sets", "legal": "sets"}
    settings = {"domains": [(name, places[name]) for name in domains], "shuffles": 4, "limit": 100}
    return Wanted(f"transfer-{model}", "transfer", model, ("test", "bbc"), settings, seconds)


def kbst(model: str, shuffles: int, seconds: float = 180) -> list[Work]:
    how = {"shuffles": shuffles}
    return [Wanted(f"kbst-{one}-{model}", "shuffle", model, ("sets", one), how, seconds) for one in SETS]


def long_texts(model: str, shuffles: int) -> list[Work]:
    """Blocks of up to twenty sentences: of the first forty, and of whole texts."""
    how = {"block_size": [1, 2, 3, 5, 10, 20], "shuffles": shuffles}
    return [
        Wanted(f"{form}-{one}-{model}", "shuffle", model, ("sets", one), {**how, "max_sentences": most}, 150)
        for form, most in (("forty", 40), ("long", None))
        for one in LONG
    ]


def tasks(model: str) -> list[Work]:
    """Insertion and ordering; a rating is of a whole text, whatever `after` says."""
    found: list[Work] = []
    for one in NEWS:
        found.append(
            Wanted(f"insertion-{one}-{model}", "insertion", model, ("test", one), {"after": 2, "limit": 100})
        )
        how = {"method": "beam", "beam": 8, "limit": 100}
        found.append(Wanted(f"ordering-{one}-{model}", "ordering", model, ("test", f"{one}-ten"), how))
    return found


def exact_insertion(model: str) -> list[Work]:
    return [
        Wanted(
            f"insertion-{one}-{model}-exact", "insertion", model, ("test", one), {"after": None, "limit": 100}
        )
        for one in NEWS
    ]


# Ways to put sentences in order with fewer tokens; one is chosen on the dev documents and judged on the test ones.
LESS: dict[str, dict[str, Any]] = {
    "rescored": {"method": "rescored", "beam": 8},
    "rescored-words-8": {"method": "rescored", "beam": 8, "words": 8},
    "rescored-4-words-8": {"method": "rescored", "beam": 4, "words": 8},
    "rescored-4-words-4": {"method": "rescored", "beam": 4, "words": 4},
    "neighbours": {"method": "neighbours"},
    "neighbours-words-8": {"method": "neighbours", "words": 8},
    "neighbours-words-4": {"method": "neighbours", "words": 4},
    "beam-words-8": {"method": "beam", "beam": 8, "words": 8},
    "beam-words-8-context-2": {"method": "beam", "beam": 8, "words": 8, "context": 2},
    "beam-context-2": {"method": "beam", "beam": 8, "context": 2},
}


def fast_ordering(model: str) -> list[Work]:
    places = {"dev-bbc": ("dev", "bbc"), "bbc": ("test", "bbc-ten"), "wsj": ("test", "wsj-ten")}
    ways = [("dev-bbc", "beam", {"method": "beam", "beam": 8})]
    ways += [(data, name, how) for data in places for name, how in LESS.items()]
    return [
        Wanted(f"ordering-{data}-{model}-{name}", "ordering", model, places[data], {**how, "limit": 100})
        for data, name, how in ways
    ]


def masked_tasks() -> list[Work]:
    found: list[Work] = []
    for one in NEWS:
        few = {"limit": 40, "removed": 1}
        found.append(Wanted(f"insertion-{one}-{MASKED}", "insertion", MASKED, ("test", one), few))
        how = {"method": "neighbours", "limit": 100}
        found.append(Wanted(f"ordering-{one}-{MASKED}", "ordering", MASKED, ("test", f"{one}-ten"), how))
    for one in ("blog", "legal"):
        how = {"shuffles": 2, "limit": 50}
        found.append(Wanted(f"kbst-{one}-{MASKED}", "shuffle", MASKED, ("sets", one), how, 200))
    for one in NEWS:
        how = {"masked": "released", "shuffles": 1, "limit": 50}
        found.append(Wanted(f"released-{one}-{MASKED}", "shuffle", MASKED, ("test", one), how))
    return found


def trainings(names: tuple[str, ...]) -> list[Work]:
    found: list[Work] = []
    for name in names:
        known = {key: value for key, value in JOBS[name].items() if key not in ("trainer", "data")}
        if name in SUPERVISED:
            known = {"model": "minilm", "lora": 32, **SUPERVISED[name]}
        found.append(Training(name, JOBS[name]["trainer"], known))
    return found


EVERYWHERE = ("wsj", "blog", "legal")
LANES: dict[str, tuple[str, list[Work]]] = {
    "zero": (
        ZERO,
        [
            transfer(ZERO, *EVERYWHERE),
            *kbst(ZERO, 20),
            *tasks(ZERO),
            *long_texts(ZERO, 8),
            *exact_insertion(ZERO),
            *fast_ordering(ZERO),
        ],
    ),
    "domain": (
        ZERO,
        [
            *trainings(DOMAIN),
            *(transfer(one, *EVERYWHERE) for one in DOMAIN),
            *(work for one in DOMAIN for work in tasks(one)),
        ],
    ),
    "rated": (
        "minilm",
        [
            *trainings(RATERS),
            *(transfer(one, *EVERYWHERE) for one in RATERS),
            *(work for one in RATERS for work in tasks(one)),
        ],
    ),
    "masked": ("minilm", [transfer(MASKED, "wsj", seconds=400), *masked_tasks()]),
    "gemma": (GEMMA, [*kbst(GEMMA, 10), *long_texts(GEMMA, 4), transfer(GEMMA, *EVERYWHERE), *tasks(GEMMA)]),
    "qwen": (QWEN, [*kbst(QWEN, 10), *long_texts(QWEN, 4), transfer(QWEN, *EVERYWHERE)]),
}


class Lane:
    """One process: its folders, the models it has loaded, and what it writes."""

    def __init__(self, args: argparse.Namespace) -> None:
        self.data, self.keep, self.runs, self.output = args.data, args.keep, args.runs, args.output
        self.name, self.small, self.began = args.lane, args.tiny, time.monotonic()
        self._models: dict[str, Any] = {}
        for folder in (self.keep, self.runs, self.output):
            folder.mkdir(parents=True, exist_ok=True)

    def say(self, *words: Any) -> None:
        print(f"[{self.name} {time.monotonic() - self.began:4.0f} s]", *words, flush=True)

    def model(self, name: str) -> Any:
        """Return a loaded model, by its name or that of its folder."""
        import ensue

        if name not in self._models:
            self._models[name] = ensue.load_model(self.place(name))
        return self._models[name]

    def place(self, name: str) -> str:
        if name in (*RATERS, *DOMAIN):
            return str(self.keep / name)
        kinds = {"minilm": "encoder", MASKED: "masked"}
        return str(self.small / kinds.get(name, "causal")) if self.small else name

    def forget(self) -> None:
        """Drop all models: one that was stopped may be anywhere."""
        import torch

        self._models.clear()
        gc.collect()
        if torch.cuda.is_available():
            torch.cuda.empty_cache()

    def finished(self, work: Work) -> bool:
        if isinstance(work, Training):
            return (self.keep / work.name / "README.md").is_file()
        return (self.runs / work.name / "results.json").is_file()

    def do(self, work: Work) -> None:
        if isinstance(work, Training):
            self._train(work)
        else:
            self._run(work)

    def _run(self, work: Wanted) -> None:
        """Run a benchmark and send it home; what is refused is said."""
        import ensue

        folder, began = self.runs / work.name, time.monotonic()
        settings = dict(work.settings)
        if work.benchmark == "transfer":
            settings["domains"] = [f"{one}:{self._file(where, one)}" for one, where in settings["domains"]]
            settings["ratings"] = str(self.data / "test" / "summeval.json")
        if self.small:
            settings["limit"] = 3
            settings |= {"shuffles": 1} if "shuffles" in settings else {}
            settings |= {"block_size": [1, 20]} if "block_size" in settings else {}
        loaded, path = self.model(work.model), self._file(*work.data)
        found = ensue.run(work.benchmark, model=loaded, data=path, output=folder, resume=True, **settings)
        results, seconds = found.results, round(time.monotonic() - began, 1)
        self.say(work.name, f"{seconds} s, {results['tokens']:,} tokens", figures(results))
        self.write({"run": work.name, "wall": seconds, **results})
        self.pack(folder)

    def _train(self, work: Training) -> None:
        """Train a model and send it home."""
        import ensue

        began, options, files = time.monotonic(), dict(work.options), JOBS[work.name]["data"]
        options["model"] = self.place(options["model"])
        if self.small:
            options |= {"epochs": 1, "batch": 2}
        fitted = ensue.train(
            work.trainer,
            data=[str(self._file("train", Path(file).stem)) for file in files],
            output=self.keep / work.name,
            about_data="; ".join(ABOUT[file] for file in files) + ".",
            resume=(self.keep / work.name / "training.json").is_file(),
            **options,
        )
        line = {
            "train": work.name,
            "wall": round(time.monotonic() - began, 1),
            "loop": round(fitted.seconds, 1),
            "steps": fitted.steps,
            "best_step": fitted.best_step,
            **{key: round(value, 4) for key, value in fitted.best.items()},
        }
        self.say(line)
        self.write(line)
        self.pack(self.keep / work.name)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Keep other lanes from writing meanwhile."""
        with (self.runs / "home.lock").open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def write(self, line: dict[str, Any]) -> None:
        with self._alone(), (self.output / "lines.jsonl").open("a", encoding="utf-8") as file:
            file.write(json.dumps({"lane": self.name, **line}) + "\n")

    def pack(self, folder: Path) -> None:
        """Add a folder to the first archive that has room for it."""
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w") as archive:
            for path in sorted(folder.iterdir()):
                if path.is_file() and not path.name.startswith((".", "journal", "checkpoint", "profiles")):
                    data, name = path.read_bytes(), path.name
                    if path.suffix == ".jsonl":
                        data, name = lzma.compress(data, preset=4), f"{name}.xz"
                    info = tarfile.TarInfo(f"{folder.name}/{name}")
                    info.size = len(data)
                    archive.addfile(info, io.BytesIO(data))
        size = len(packed.getvalue())
        with self._alone():
            held = {path: path.stat().st_size for path in sorted(self.output.glob("part-*.tar"))}
            if sum(held.values()) + size > ALL:
                self.say(folder.name, "does not come home, there is no room")
                return
            room = [path for path, used in held.items() if used + size <= PART]
            place = room[0] if room else self.output / f"part-{len(held)}.tar"
            with (
                tarfile.open(place, "a") as archive,
                tarfile.open(fileobj=io.BytesIO(packed.getvalue())) as new,
            ):
                for info in new:
                    archive.addfile(info, new.extractfile(info))

    def _file(self, folder: str, name: str) -> Path:
        """Return a set of documents; to try the script, a few of them and the beginnings alone."""
        path: Path = self.data / folder / f"{name}.jsonl"
        if not self.small:
            return path
        few, sentences = (12, 20) if folder == "train" else (3, 45 if name in LONG else 8)
        rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
        rows = [row for row in rows if len(row["sentences"]) >= sentences][:few]
        short: Path = self.runs / "few" / self.name / folder / f"{name}.jsonl"
        short.parent.mkdir(parents=True, exist_ok=True)
        cut = [{**row, "sentences": row["sentences"][:sentences]} for row in rows]
        short.write_text("".join(json.dumps(row) + "\n" for row in cut), "utf-8")
        return short


def figures(results: Any) -> str:
    """The first figures of a run, to be seen at once."""
    rows = [row for row in results["metrics"] if row["metric"] in ("accuracy", "kendall_tau")]
    return " ".join(f"{row['value']:.3f}" for row in rows[:6])


def go_through(lane: Lane, list_of_work: list[Work], seconds: float) -> None:
    """Do all of it in order, each within its time; then go on with what was stopped."""
    failed: set[str] = set()
    for again in (False, True):
        for work in list_of_work:
            left = seconds - (time.monotonic() - lane.began)
            if lane.finished(work) or work.name in failed:
                continue
            if left < 5:
                if again:
                    lane.say(work.name, "is left out: the time is over")
                continue
            try:
                with at_most(1e6 if lane.small else left if again else min(work.seconds, left)):
                    lane.do(work)
            except Stopped:
                lane.say(work.name, "was stopped")
                lane.forget()
            except Exception as error:
                failed.add(work.name)
                lane.say(work.name, "FAILED:", type(error).__name__, error)
                lane.write({"work": work.name, "failed": f"{type(error).__name__}: {error}"})
                lane.forget()
    lane.say("done")


@contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """Raise `Stopped` in the block once so many seconds have passed."""

    def stop(*_: Any) -> None:
        raise Stopped

    signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, max(seconds, 0.1))
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def is_there(model: str) -> bool:
    from ensue.fetch.catalog import catalog
    from ensue.fetch.store import pulled

    return pulled(catalog()[model])


def start_lanes(args: argparse.Namespace, there: Callable[[str], bool]) -> None:
    """Start a process a lane whose model is there, and wait for all."""
    names = args.lanes.split(",") if args.lanes else list(LANES)
    begun = []
    for name in names:
        if args.tiny or there(LANES[name][0]):
            begun.append(subprocess.Popen([sys.executable, *sys.argv, "--lane", name]))
        else:
            print(f"[{name}] is left out: there is no {LANES[name][0]}", flush=True)
    for one in begun:
        one.wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--keep", type=Path, required=True)
    parser.add_argument("--runs", type=Path, required=True)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--lanes", help=f"only these of {', '.join(LANES)}")
    parser.add_argument("--only", default="", help="only work whose name this regular expression finds")
    parser.add_argument("--lane", help="go through one list in this process")
    parser.add_argument("--seconds", type=float, default=500.0, help="for every lane")
    parser.add_argument(
        "--tiny",
        type=Path,
        help="try the script: three documents of everything, the small models of this folder",
    )
    args = parser.parse_args()
    stand_in()
    if args.lane is None:
        start_lanes(args, is_there)
        return
    lane = Lane(args)
    lane.say("transformers", transformers.__version__, AutoModelForCausalLM.__name__)
    wanted = [work for work in LANES[args.lane][1] if re.search(args.only, work.name)]
    go_through(lane, wanted, args.seconds)


if __name__ == "__main__":
    main()
