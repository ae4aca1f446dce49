"""Measures coherence on a GPU: trains the models that are missing, then runs every task on all of them.

    python bench/coherence_sets.py ~/ensue-data carried && python bench/kbst_sets.py ~/ensue-data carried/sets
    python bench/coherence_gpu.py --data carried --keep models --runs runs --output $OUT --lane a --seconds 500 &
    python bench/coherence_gpu.py --data carried --keep models --runs runs --output $OUT --lane b --seconds 500; wait

Two lanes may share a GPU: `a` has masked models and `gemma3-270m`, `b` all else. Each is one process in which models
stay loaded; a job that is over its seconds is stopped and the next one begins. All of it may be asked for again: what
is finished is read, what was stopped goes on. OUTPUT gets a line a run in summary-LANE.jsonl as soon as it ends, and
the folders of runs and trained models in runs-LANE.tar and models-LANE.tar, less what is large: journals, items of
single Shuffle Tests, adapters of `smollm2`.
KEEP holds the models: `coherence-bbc` and `coherence-wsj` are trained where they are not there. `--tiny FOLDER` tries
the script itself on a CPU, with a small causal model for `smollm2` and `gemma3-270m`.
"""

from __future__ import annotations

import argparse
import gc
import gzip
import io
import json
import math
import signal
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

CAUSAL = ("smollm2", "lm-bbc", "lm-wsj")
RATERS = ("coherence-bbc", "coherence-wsj")
MASKED, GEMMA = "mlm", "gemma3-270m"
NEWS = ("bbc", "wsj")
SETS = ("bbc", "wsj", "blog", "legal")
# How the supervised models of docs/coherence.md were trained.
SUPERVISED = {
    "coherence-bbc": {"shuffles": 3, "epochs": 1, "batch": 32, "evaluate_every": 100},
    "coherence-wsj": {"shuffles": 20, "epochs": 3, "batch": 32, "evaluate_every": 125},
}
# A masked model learns for about so long; how many epochs that is, and at which rate, is found out.
MASKED_SECONDS, PILOT_STEPS, PILOT_DOCUMENTS = 75.0, 150, 250
PILOT_RATES = (5e-4, 1e-3, 2e-3)
# Larger adapters are not brought home.
LARGEST = 6_000_000


class Stopped(BaseException):
    """Raised where a job's time is over; no handler of errors takes it for one."""


class Job(NamedTuple):
    """What is done, in which lane, and in how many seconds at most."""

    lane: str
    seconds: float
    work: Callable[[Lane], None]


class Lane:
    """One process: its folders, the models it has loaded, and what it writes."""

    def __init__(self, args: argparse.Namespace) -> None:
        self.data, self.keep, self.runs, self.output = args.data, args.keep, args.runs, args.output
        self.name, self.tiny, self.began = args.lane, args.tiny is not None, time.monotonic()
        self.small = args.tiny
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
        if name in (*RATERS, *CAUSAL[1:], MASKED):
            return str(self.keep / name)
        return str(self.small) if self.tiny and name in (CAUSAL[0], GEMMA) else name

    def forget(self) -> None:
        """Drop all models: one that was stopped may be anywhere."""
        import torch

        self._models.clear()
        gc.collect()
        if torch.cuda.is_available():
            torch.cuda.empty_cache()

    def has(self, name: str) -> bool:
        from ensue.fetch.catalog import catalog
        from ensue.fetch.store import pulled

        if name in (*RATERS, *CAUSAL[1:], MASKED):
            return (self.keep / name / "README.md").is_file()
        return name != GEMMA or self.tiny or bool(pulled(catalog()[GEMMA]))

    def run(self, name: str, benchmark: str, model: str, data: Path | None, **settings: Any) -> None:
        """Run a benchmark unless it was, and pack its folder; what is refused is said."""
        import ensue
        from ensue.errors import EnsueError, RunFailed

        if not self.has(model):
            self.say(name, "is left out: there is no", model)
            return
        folder, began = self.runs / name, time.monotonic()
        if self.tiny:
            settings["limit"] = 3
            settings |= {"shuffles": 1} if "shuffles" in settings else {}
        try:
            loaded = self.place(model) if benchmark == "transfer" else self.model(model)
            found = ensue.run(benchmark, model=loaded, data=data, output=folder, resume=True, **settings)
        except (EnsueError, RunFailed) as error:
            self.say(name, "FAILED:", error)
            self.write({"run": name, "failed": str(error)})
            return
        results = found.results
        seconds = round(time.monotonic() - began, 1)
        self.say(name, f"{seconds} s, {results['tokens']:,} tokens")
        self.write({"run": name, "wall": seconds, "new": found.computed, **results})
        if found.computed:
            self.pack(f"runs-{self.name}.tar", folder)

    def write(self, line: dict[str, Any]) -> None:
        with (self.output / f"summary-{self.name}.jsonl").open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")

    def pack(self, archive: str, folder: Path) -> None:
        """Add a folder to an archive, so that what is finished is there whatever comes after."""
        with tarfile.open(self.output / archive, "a") as held:
            for path in sorted(folder.iterdir()):
                if not path.is_file() or path.name.startswith((".", "journal", "checkpoint", "profiles")):
                    continue
                if path.stat().st_size > LARGEST and path.suffix == ".safetensors":
                    continue
                if path.name == "items.jsonl" and folder.name.startswith(("shuffle-", "kbst-")):
                    continue
                data, name = path.read_bytes(), path.name
                if path.suffix == ".jsonl":
                    data, name = gzip.compress(data), f"{name}.gz"
                info = tarfile.TarInfo(f"{folder.name}/{name}")
                info.size = len(data)
                held.addfile(info, io.BytesIO(data))

    def train(self, name: str, trainer: str, files: list[str], **options: Any) -> None:
        """Train a model unless it was, and pack its folder."""
        import ensue

        if self.has(name):
            return
        began = time.monotonic()
        options["model"] = self.place(options["model"])
        if self.tiny:
            options |= {"epochs": 1, "batch": 2}
        sources = [str(self.cut(self.data / "train" / file, 12 if self.tiny else None)) for file in files]
        fitted = ensue.train(
            trainer,
            data=sources,
            output=self.keep / name,
            about_data="; ".join(ABOUT[file] for file in files) + ".",
            resume=(self.keep / name / "training.json").is_file(),
            **options,
        )
        line = {
            "train": name,
            "wall": round(time.monotonic() - began, 1),
            "loop": round(fitted.seconds, 1),
            "steps": fitted.steps,
            "best_step": fitted.best_step,
            **{key: round(value, 4) for key, value in fitted.best.items()},
        }
        self.say(line)
        self.write(line)
        self.pack(f"models-{self.name}.tar", self.keep / name)

    def file(self, folder: str, name: str, sentences: int = 8) -> Path:
        """Return a set of documents; to try the script, three of them and the beginnings alone."""
        path: Path = self.data / folder / f"{name}.jsonl"
        if not self.tiny:
            return path
        rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
        rows = [row for row in rows if len(row["sentences"]) >= sentences][:3]
        short: Path = self.runs / folder / f"{name}.jsonl"
        short.parent.mkdir(parents=True, exist_ok=True)
        cut = [{**row, "sentences": row["sentences"][:sentences]} for row in rows]
        short.write_text("".join(json.dumps(row) + "\n" for row in cut), "utf-8")
        return short

    def cut(self, path: Path, limit: int | None) -> Path:
        """Return the file, or its first documents where few are wanted; to try the script, the beginnings of them."""
        if limit is None:
            return path
        short: Path = self.runs / f"{path.stem}-{limit}.jsonl"
        with path.open(encoding="utf-8") as lines:
            rows = [json.loads(line) for line, _ in zip(lines, range(limit), strict=False)]
        if self.tiny:
            rows = [{**row, "sentences": row["sentences"][:20]} for row in rows]
        short.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
        return short


def options_of(job: str) -> dict[str, Any]:
    """Return the options of a training as bench/coherence_train.py has them."""
    known = dict(JOBS[job])
    return {key: value for key, value in known.items() if key not in ("trainer", "data")}


def train_masked(lane: Lane) -> None:
    """Find the rate and the number of epochs by short trainings, then train the masked model."""
    if lane.has(MASKED):
        return
    options = options_of("mlm")
    files = JOBS["mlm"]["data"]
    if not (lane.keep / MASKED / "training.json").is_file():
        few = [
            str(lane.cut(lane.data / "train" / file, 4 if lane.tiny else PILOT_DOCUMENTS)) for file in files
        ]
        rates = PILOT_RATES[:1] if lane.tiny else PILOT_RATES
        found = {rate: pilot(lane, few, rate) for rate in rates}
        rate = min(found, key=lambda one: found[one][0])
        (lane.keep / "mlm.json").write_text(json.dumps({"rate": rate, "step": found[rate][1]}), "utf-8")
        lane.write({"pilots": {str(one): value for one, value in found.items()}})
    chosen = json.loads((lane.keep / "mlm.json").read_text("utf-8"))
    # About 1.3 tokens a word and 6 characters one, in rows of 512.
    size = sum((lane.data / "train" / file).stat().st_size for file in files)
    steps = max(size / 4.6 / 512 / options["batch"], 1.0)
    epochs = max(1, min(40, math.floor(MASKED_SECONDS / (steps * chosen["step"]))))
    lane.say("masked: rate", chosen["rate"], "epochs", epochs, "of about", round(steps), "steps")
    options |= {"learning_rate": chosen["rate"], "epochs": epochs}
    lane.train(MASKED, "lm", files, **options)


def pilot(lane: Lane, sources: list[str], rate: float) -> tuple[float, float]:
    """Return the loss after a short training, and the seconds of a step once it runs."""
    import ensue

    output = lane.runs / f"pilot-{rate}-{time.time():.0f}"
    options = options_of("mlm") | {"learning_rate": rate, "epochs": 1, "evaluate_every": 10_000}
    if lane.tiny:
        options |= {"batch": 2}
    else:
        rows = sum(Path(source).stat().st_size for source in sources) / 4.6 / 512
        options["epochs"] = max(1, round(PILOT_STEPS * options["batch"] / rows))
    fitted = ensue.train("lm", data=sources, output=output, log_every=10, **options)
    rows = [json.loads(line) for line in (output / "training.jsonl").read_text("utf-8").splitlines()]
    timed = [(row["step"], row["seconds"]) for row in rows if "loss" in row]
    (first, began), (last, ended) = timed[len(timed) // 3], timed[-1]
    step = (ended - began) / max(last - first, 1)
    lane.say("pilot", rate, f"dev loss {fitted.best_loss:.3f}", f"{1000 * step:.1f} ms a step")
    return fitted.best_loss, max(step, 1e-3)


def train_causal(lane: Lane) -> None:
    for name in CAUSAL[1:]:
        lane.train(name, "lm", JOBS[name]["data"], **options_of(name))
    for name, options in SUPERVISED.items():
        lane.train(name, "coherence", JOBS[name]["data"], model="minilm", lora=32, **options)


def transfer(lane: Lane) -> None:
    """Run the command of docs/coherence.md: both supervised models beside the others."""
    others = [lane.place(name) for name in (RATERS[1], *CAUSAL) if lane.has(name)]
    places = {"wsj": "test", "blog": "sets", "legal": "sets"}
    settings = {
        "models": others,
        "domains": [f"{name}:{lane.file(folder, name)}" for name, folder in places.items()],
        "ratings": str(lane.data / "test" / "summeval.json"),
        "shuffles": 10,
        "limit": 100,
    }
    lane.run("transfer", "transfer", RATERS[0], lane.file("test", "bbc"), **settings)


def insertion_dev(lane: Lane) -> None:
    for data in NEWS:
        for after in (2, None, 0, 1, 4):
            name = f"insertion-dev-{data}-after-{after}"
            lane.run(name, "insertion", "smollm2", lane.file("dev", data), after=after)


def insertion(lane: Lane) -> None:
    for model in (*CAUSAL, *RATERS):
        for data in NEWS:
            for after in (2, None) if model in CAUSAL else (2,):
                name = f"insertion-{data}-{model}-after-{after}"
                lane.run(name, "insertion", model, lane.file("test", data), after=after)


def ordering(lane: Lane) -> None:
    for model in (*CAUSAL, *RATERS):
        for data in NEWS:
            path = lane.file("test", f"{data}-ten")
            lane.run(f"ordering-{data}-{model}", "ordering", model, path, limit=100, method="beam", beam=8)


def shuffle(lane: Lane) -> None:
    for model in (*CAUSAL, *RATERS):
        for data in NEWS:
            path = lane.file("test", data)
            lane.run(
                f"shuffle-{data}-{model}", "shuffle", model, path, allow_shuffle_trained="yes", shuffles=20
            )


def intruder(lane: Lane) -> None:
    for model in CAUSAL + RATERS:
        for data in NEWS:
            path, kinds = lane.file("test", data), ["random", "hard"]
            name = f"intruder-{data}-{model}"
            lane.run(name, "intruder", model, path, kinds=kinds, limit=100, encoder=None)


def masked_shuffle(lane: Lane) -> None:
    # A text of n tokens costs n copies of it.
    for masked, shuffles in (("original", 2), ("released", 1)):
        for data in NEWS:
            few = {"limit": 50, "shuffles": shuffles}
            path = lane.file("test", data)
            lane.run(f"shuffle-{data}-mlm-{masked}", "shuffle", MASKED, path, masked=masked, **few)


def masked_tasks(lane: Lane) -> None:
    for data in NEWS:
        few = {"limit": 40, "encoder": None, "kinds": ["random", "hard"]}
        ten = lane.file("test", f"{data}-ten")
        lane.run(f"ordering-{data}-mlm", "ordering", MASKED, ten, limit=100, method="neighbours")
        path = lane.file("test", data)
        lane.run(f"insertion-{data}-mlm", "insertion", MASKED, path, limit=40, removed=1)
        lane.run(f"intruder-{data}-mlm", "intruder", MASKED, path, **few)


def legal(lane: Lane) -> None:
    lane.run("kbst-legal-smollm2", "shuffle", "smollm2", lane.file("sets", "legal"), shuffles=20)


def gemma(lane: Lane) -> None:
    for data in SETS:
        lane.run(f"kbst-{data}-gemma3", "shuffle", GEMMA, lane.file("sets", data), shuffles=5)


def long(lane: Lane) -> None:
    for data in ("stories", "chapters"):
        long_texts(lane, "smollm2", data, 8)


def long_gemma(lane: Lane) -> None:
    for data in ("stories", "chapters"):
        long_texts(lane, GEMMA, data, 2)


def long_texts(lane: Lane, model: str, data: str, shuffles: int) -> None:
    sizes = [1, 20] if lane.tiny else [1, 2, 3, 5, 10, 20]
    path = lane.file("sets", data, sentences=45)
    settings = {"block_size": sizes, "shuffles": shuffles, "max_sentences": None}
    lane.run(f"long-{data}-{model}", "shuffle", model, path, **settings)


WORK = {
    "train-masked": Job("a", 200, train_masked),
    "masked-shuffle": Job("a", 120, masked_shuffle),
    "masked-tasks": Job("a", 60, masked_tasks),
    "gemma": Job("a", 120, gemma),
    "long-gemma": Job("a", 60, long_gemma),
    "train-causal": Job("b", 100, train_causal),
    "insertion-dev": Job("b", 50, insertion_dev),
    "transfer": Job("b", 190, transfer),
    "insertion": Job("b", 90, insertion),
    "ordering": Job("b", 60, ordering),
    "legal": Job("b", 40, legal),
    "long": Job("b", 60, long),
    "shuffle": Job("b", 90, shuffle),
    "intruder": Job("b", 90, intruder),
}


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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--keep", type=Path, required=True)
    parser.add_argument("--runs", type=Path, required=True)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--lane", default="b", help="a, b, or both as `all`")
    parser.add_argument("--jobs", help=f"only these of {', '.join(WORK)}")
    parser.add_argument("--seconds", type=float, default=500.0, help="for the whole lane")
    parser.add_argument(
        "--tiny", type=Path, help="try the script: three documents of everything, this model for larger ones"
    )
    args = parser.parse_args()
    stand_in()
    lane = Lane(args)
    lane.say("transformers", transformers.__version__, AutoModelForCausalLM.__name__)
    for name, job in WORK.items():
        chosen = name in args.jobs.split(",") if args.jobs else args.lane in (job.lane, "all")
        left = args.seconds - (time.monotonic() - lane.began)
        if not chosen:
            continue
        if left < 5:
            lane.say(name, "is left out: the time is over")
            continue
        began = time.monotonic()
        try:
            with at_most(1e6 if lane.tiny else min(job.seconds, left)):
                job.work(lane)
        except Stopped:
            lane.say(name, "was stopped")
            lane.forget()
        except Exception as error:
            lane.say(name, "FAILED:", type(error).__name__, error)
            lane.write({"job": name, "failed": f"{type(error).__name__}: {error}"})
            lane.forget()
        lane.say("==", name, f"{time.monotonic() - began:.1f} s")


if __name__ == "__main__":
    main()
