"""Transfer: models trained to tell texts from shuffled ones, beside others, on tests they were not trained for."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, cast

from ensue.benchmarks import settings as read
from ensue.benchmarks.base import Outcome, Prepared, PreparedTask, RunContext, Setting
from ensue.benchmarks.coherence.documents import documents_signature, of_steps
from ensue.benchmarks.coherence.rating import rater_of
from ensue.benchmarks.intruder.task import SETTINGS as INTRUDER_SETTINGS
from ensue.benchmarks.ratings.task import SETTINGS as RATINGS_SETTINGS
from ensue.benchmarks.shuffle.task import SETTINGS as SHUFFLE_SETTINGS
from ensue.benchmarks.transfer.asked import Test, tests_of
from ensue.benchmarks.transfer.judging import agree, metric_rows
from ensue.errors import EnsueError
from ensue.models.protocols import Model, Scorer, require
from ensue.records import digest_of
from ensue.report.results import Item, read_items, read_results, read_run
from ensue.version import __version__


def _named(text: str) -> str:
    name, colon, path = text.partition(":")
    if not (colon and name.strip() and path.strip()):
        raise ValueError("sets as NAME:PATH, divided by commas")
    return f"{name.strip()}:{path.strip()}"


SETTINGS = {
    "models": Setting([], "further models by commas, trained ones and others", read.many(read.text)),
    "beside": Setting(
        [],
        "folders of finished runs of the same tests, whose models' answers are put beside, by commas",
        read.many(read.text),
    ),
    "domains": Setting([], "documents of other domains, as NAME:PATH by commas", read.many(_named)),
    "ratings": Setting(
        None,
        "texts that people rated: a .jsonl file or SummEval's .json (none: left out)",
        read.optional(read.text),
    ),
    "rating": RATINGS_SETTINGS["rating"],
    "kinds": replace(INTRUDER_SETTINGS["kinds"], default=["random", "hard"]),
    **SHUFFLE_SETTINGS,
}
del SETTINGS["allow_shuffle_trained"], SETTINGS["window"]


@dataclass(frozen=True)
class TransferRun:
    """The tests with their texts read and their settings fixed."""

    tests: Sequence[Test]
    seed: int
    settings: dict[str, Any]
    earlier: Sequence[Earlier] = ()

    @property
    def fingerprint(self) -> str:
        return digest_of([(one.name, one.set, one.prepared.fingerprint) for one in self.tests])

    @property
    def source(self) -> str:
        return self.tests[0].prepared.source

    def depends_on(self, model: Model) -> dict[str, Any]:
        """Return which folders the further models and runs are in, as they stand: one made anew is another; and the
        fingerprint of every test, by which later runs know that they ask the same."""
        named = [*self.settings["models"], *self.settings["beside"]]
        folders = {name: mark for name in named if (mark := _mark(name))}
        return {"folders": folders, TESTS: _fingerprints(self.tests)}

    def evaluate(self, model: Model, context: RunContext) -> Outcome:
        """Have every model take every test."""
        # All of them, before hours have passed.
        named = [(model.card.name, model)]
        named += [(name, context.load_further(name)) for name in self.settings["models"]]
        models = _by_name(named)
        _refuse_twice([*models, *(name for run in self.earlier for name in run.trained)])
        for one in models.values():
            if rater_of(one, self.settings, "Transfer") is None:
                require(one, Scorer, "Transfer")
        items: list[Item] = []
        tokens, skipped, notes = 0, Counter[str](), Counter[str]()
        steps = len(models) * len(self.tests)
        for place, (name, one) in enumerate(models.items()):
            for number, test in enumerate(self.tests):
                done = place * len(self.tests) + number
                progress = of_steps(context.progress, done, steps)
                outcome = test.prepared.evaluate(one, replace(context, progress=progress))
                items += test.answers(outcome, name)
                tokens += outcome.tokens
                # The same for every model.
                skipped |= {f"{test.name}, {test.set}: {what}": n for what, n in outcome.skipped.items()}
                notes |= {f"{test.name}, {test.set}: {what}": n for what, n in outcome.notes.items()}
        trained = {name: one.card.trained_on_shuffled_text for name, one in models.items()}
        for run in self.earlier:
            items += run.items
            trained |= run.trained
            skipped |= run.skipped
            notes |= run.notes
        return Outcome(
            items=items,
            metrics=list(metric_rows(items, trained)),
            signature=f"{_models_signature(models, self.earlier)} {self._signature()}",
            skipped=dict(skipped),
            tokens=tokens,
            notes=notes,
        )

    def _signature(self) -> str:
        s = self.settings
        by = f"by:{s['by']} " if s["by"] else ""
        return f"{by}shuffles:{s['shuffles']} ties:1e-4 {documents_signature(s, self.seed)}"


def _fingerprints(tests: Sequence[Test]) -> dict[str, str]:
    return {f"{one.name} {one.set}": one.prepared.fingerprint for one in tests}


def _models_signature(models: Mapping[str, Model], earlier: Sequence[Earlier]) -> str:
    marked = ["-".join(one.card.marked_name.split()) for one in models.values()]
    return f"models:{','.join([*marked, *(run.signed for run in earlier)])}"


def _refuse_twice(names: Sequence[str]) -> None:
    for name, count in Counter(names).items():
        if count > 1:
            raise EnsueError(f"{name} is among the models twice, here and in the runs beside.")


def _by_name(named: Sequence[tuple[str, Model]]) -> dict[str, Model]:
    """Return models by the names on their cards; where two have one name, by what they were given as."""
    names = Counter(model.card.name for _, model in named)
    found: dict[str, Model] = {}
    for given, model in named:
        name = model.card.name if names[model.card.name] == 1 else given
        if name in found:
            raise EnsueError(f"{given} is among the models twice.")
        found[name] = model
    return found


def _mark(name: str) -> str:
    """Return a digest of how the files of a folder stand; nothing where a model is no folder."""
    folder = Path(name).expanduser()
    if not folder.is_dir():
        return ""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    states = [(str(path.relative_to(folder)), path.stat()) for path in files]
    return digest_of([(path, state.st_size, state.st_mtime_ns) for path, state in states])[:16]


def _prepare(task: str, data: str | None, limit: int | None, seed: int, settings: dict[str, Any]) -> Prepared:
    read.refuse_task("transfer", task)
    sets: dict[str, str | None] = {"bundled" if data is None else Path(data).stem or data: data}
    for one in settings["domains"]:
        name, _, path = one.partition(":")
        if name in sets:
            raise EnsueError(f"Two sets are called {name}; name the domains otherwise (NAME:PATH).")
        sets[name] = str(Path(path).expanduser()) if Path(path).expanduser().exists() else path
    tests = tests_of(sets, settings["ratings"], limit, seed, settings)
    asked = {**settings, "limit": limit, "seed": seed}
    earlier = [read_earlier(folder, asked, _fingerprints(tests)) for folder in settings["beside"]]
    return TransferRun(tests, seed, settings, earlier)


TASK = PreparedTask(SETTINGS, _prepare)


# What the texts themselves are held against says more about these than a path does.
_PATHS = ("models", "beside", "domains", "ratings")
# Under which name a run keeps the fingerprints of its tests.
TESTS = "tests"
_MODELS = re.compile(r"\bmodels:(\S+)")


class Earlier(NamedTuple):
    """A finished run: where it lies, what its models answered, which of them saw shuffled text, how they are signed,
    what was left out, and what is to be known of their answers."""

    folder: str
    items: list[Item]
    trained: dict[str, bool]
    signed: str
    skipped: Counter[str]
    notes: Counter[str]


def read_earlier(folder: str, asked_now: Mapping[str, Any], tests: Mapping[str, str]) -> Earlier:
    """Read a finished run of transfer; one that was asked otherwise, or about other texts, is refused.

    A test may be missing on either side, though not all of them; where both have it, its fingerprint is the same.
    """
    path = Path(folder).expanduser()
    results = read_results(path)
    if results.get("benchmark") != "transfer":
        raise EnsueError(f"{folder} is a run of {results.get('benchmark')}, not of transfer.")
    asked = read_run(path).get("asked")
    if not isinstance(asked, dict) or not all(
        isinstance(asked.get(key), dict) for key in ("settings", TESTS)
    ):
        raise EnsueError(f"{path / 'run.json'} does not say what was asked.")
    then, now = {**asked, **asked["settings"]}, {**asked_now, "version": __version__}
    for key in [key for key in now if key not in _PATHS]:
        if then.get(key) != now[key]:
            raise EnsueError(
                f"{folder} was run with {key} {then.get(key)}, not {now[key]}, so its answers cannot stand beside "
                f"these."
            )
    if not tests.keys() & asked[TESTS].keys():
        raise EnsueError(
            f"{folder} has none of these tests but {', '.join(asked[TESTS])}, so its answers cannot stand beside "
            f"these; sets are known by the names of their files."
        )
    for test, mark in tests.items():
        if asked[TESTS].get(test, mark) != mark:
            raise EnsueError(
                f"{folder} asked about other texts ({test}), so its answers cannot stand beside these."
            )
    trained = {
        str(row["settings"]["model"]): bool(row["settings"]["trained"])
        for row in results["metrics"]
        if "trained" in row["settings"]
    }
    signed = _MODELS.search(str(results.get("signature")))
    items = [cast(Item, item) for item in read_items(path)]
    skipped = results.get("skipped")
    if not isinstance(skipped, dict) or not agree(items, results["metrics"]):
        raise EnsueError(f"The items of {folder} are not those of its results; run it again.")
    notes = results.get("notes")
    seen = Counter(notes if isinstance(notes, dict) else {})
    return Earlier(folder, items, trained, signed[1] if signed else "", Counter(skipped), seen)
