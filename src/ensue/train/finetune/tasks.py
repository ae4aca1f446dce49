"""Fine-tunes a model on one task after the other, each seed once, and collects what each classifier answers."""

from __future__ import annotations

import copy
import json
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from ensue.atomic import make_readable, replacing
from ensue.backends.hf.loading import state_of
from ensue.benchmarks.base import RunContext
from ensue.benchmarks.nlu.examples import DEV, TRAIN, Example, TaskData
from ensue.benchmarks.nlu.framing import PredictedAnswers, answered_as, parts_of
from ensue.benchmarks.nlu.systems import Answered
from ensue.benchmarks.nlu.training import TrainedAnswers as Kept
from ensue.benchmarks.nlu.training import answered, best_of
from ensue.errors import EnsueError
from ensue.models.card import ModelCard, write_card_facts
from ensue.progress import Progress
from ensue.records import digest_of, file_digest, plain
from ensue.train.finetune.inputs import Inputs
from ensue.train.finetune.intermediate import PAPER, read_intermediate
from ensue.train.finetune.recipe import Recipe, recipe_for
from ensue.train.finetune.training import Split, Trained, answer, fit, lay_out, steps_of
from ensue.version import __version__

PRETRAINED = "pretrained"
FOLDER, HEAD = "finetuned", "head"
# The digest of a file of intermediate weights.
_WEIGHTS = plain("weights")
_NLI = "MNLI"


class Base(NamedTuple):
    """The encoder that everything starts from."""

    trunk: Any
    tokenizer: Any
    card: ModelCard
    pool: str
    limit: int

    @property
    def pad(self) -> int:
        return int(self.tokenizer.pad_token_id or 0)

    def recipe(self, data: TaskData, examples: int, settings: Mapping[str, Any]) -> Recipe:
        width = int(self.trunk.config.hidden_size)
        return recipe_for(data.spec, examples, settings, width=width, limit=self.limit, pool=self.pool)


class Finetuning:
    """One run: its encoder, its tasks, its choices."""

    def __init__(
        self,
        base: Base,
        tasks: Sequence[TaskData],
        settings: Mapping[str, Any],
        seed: int,
        context: RunContext,
    ) -> None:
        self._base, self._settings, self._seed, self._context = base, settings, seed, context
        self._trained = [data for data in tasks if parts_of(data, seed) is not None]
        self._others = [data for data in tasks if not data.labelled(TRAIN)]
        self._seeds = range(seed, seed + settings["runs"])
        self._first = self._intermediate()
        self._begun: Any = None
        self._done, self._total = 0, 0
        if settings["save"] == "yes" and context.folder is None:
            raise EnsueError(
                "save=yes keeps weights in the run's folder, and this run has none; name an output."
            )

    def answers(self) -> Iterator[Answered]:
        """Yield every trained task's answers, then those of the diagnostic sets its classifier answers."""
        self._total = len(self._seeds) * sum(self._steps(data) for data in self._trained)
        for data in self._trained:
            asked = [data, *self._asked_of(data)]
            question = self._question(data, asked)
            train = partial(self._train, data, asked, [])
            best, fits = best_of(data.spec.name, question, asked, self._seeds, self._context, train)
            yield from answered(best, fits, {})

    def _asked_of(self, data: TaskData) -> list[TaskData]:
        """Sets without training data whose examples this task's classifier answers; MNLI's where nobody else does."""
        names = {one.spec.name for one in self._trained}
        return [
            other
            for other in self._others
            if other.spec.answered_by == data.spec.name
            or (other.spec.answered_by and other.spec.answered_by not in names and data.spec.name == _NLI)
        ]

    def _train(self, data: TaskData, asked: Sequence[TaskData], layouts: list[_Layout], seed: int) -> Kept:
        """Train with a seed; the sequences in `layouts` are laid out once, when the first is trained."""
        if not layouts:
            layouts.append(_Layout(self._base, data, self._settings, self._seed))
        layout = layouts[0]
        name, start = self._start(layout.data)
        trained = layout.fit(start, seed, self._progress())
        if self._settings["save"] == "yes" and self._context.folder is not None:
            save_trained(self._context.folder, trained, self._base.tokenizer, self._base.card, seed)
        given: dict[str, dict[str, PredictedAnswers]] = {}
        cuts = {layout.data.spec.name: Counter({layout.words("training sequences"): trained.record["cut"]})}
        cut = 0
        for other in asked:
            splits = {
                split: layout.split(other, split) for split in other.judged_splits if other.splits[split]
            }
            here = sum(one.cut for one in splits.values())
            cuts.setdefault(other.spec.name, Counter())[layout.words("sequences")] += here
            cut += here
            given[other.spec.name] = {split: _answered(trained, one, other) for split, one in splits.items()}
        noted = {task: dict(+found) for task, found in cuts.items() if +found}
        record = {**trained.record, "start": name, "cut_judged": cut, "cuts": noted}
        return Kept(float(trained.record.get("dev_score") or 0.0), record, given)

    def _steps(self, data: TaskData) -> int:
        examples = len(_parts(data, self._seed)[0])
        return steps_of(self._base.recipe(data, examples, self._settings), examples)

    def _progress(self) -> Progress:
        """Return what a training reports to: its steps count on from those of the trainings before it."""
        before = self._done

        def report(done: int, total: int, unit: str) -> None:
            self._done = before + done
            self._context.progress(min(self._done, self._total), self._total, unit)

        return report

    def _question(self, data: TaskData, asked: Sequence[TaskData]) -> dict[str, Any]:
        """Return all that an outcome depends on, but for its seed."""
        settings = {key: value for key, value in self._settings.items() if key != "runs"}
        return {
            "version": __version__,
            "model": self._base.card.identity,
            "device": self._base.trunk.device.type,
            "settings": settings,
            "seed": self._seed,
            "data": [
                [one.spec.name, one.fingerprint, {split: len(found) for split, found in one.splits.items()}]
                for one in asked
            ],
            "first": self._first.fingerprint if self._first is not None else None,
        }

    def _start(self, data: TaskData) -> tuple[str, Any]:
        """Return what a task starts from: the encoder as it came, or after its intermediate training."""
        if self._first is None or not self._wants_first(data):
            return PRETRAINED, self._base.trunk
        if self._begun is None:
            self._begun = self._train_first(self._first)
        return self._first.spec.name, self._begun

    def _wants_first(self, data: TaskData) -> bool:
        if data is self._first:
            return False
        wanted, name = self._settings["intermediate_for"], data.spec.name
        if wanted == ["paper"]:
            return name in PAPER.get(self._settings["intermediate"], (name,))
        return "all" in wanted or name in wanted

    def _train_first(self, first: TaskData) -> Any:
        """Return the encoder after its intermediate training, which a resumed run finds in its folder."""
        key = digest_of(self._question(first, [first]))
        path, records = self._context.kept_file(f"{key}.safetensors"), self._context.records
        trunk = copy.deepcopy(self._base.trunk).float()
        if path is not None and take_weights(path, trunk, records.get(_WEIGHTS, key)):
            return trunk
        layout = _Layout(self._base, first, self._settings, self._seed)
        self._total += self._steps(first)
        trained = layout.fit(self._base.trunk, self._seed, self._progress()).network.trunk
        if path is not None:
            records.add(_WEIGHTS, [(key, keep_weights(path, trained))])
        return trained

    def _intermediate(self) -> TaskData | None:
        """Return what is trained on first, from a file or from the run's own MNLI."""
        name, path = self._settings["intermediate"], self._settings["intermediate_data"]
        if name == "none":
            return None
        if path is None and name in PAPER:
            own = [data for data in self._trained if data.spec.name.lower() == name]
            if own:
                return own[0]
            raise EnsueError(
                f"intermediate={name} needs its training set, which is not among the data of this run; name its "
                f"file with --set intermediate_data=FILE."
            )
        file = Path(path or name).expanduser()
        return read_intermediate(name if path else file.stem, file, self._seed)


class _Layout:
    """A task's sequences on the device, laid out once for all seeds."""

    def __init__(self, base: Base, data: TaskData, settings: Mapping[str, Any], seed: int) -> None:
        self.data, self._base = data, base
        self._train, self._dev = _parts(data, seed)
        self._recipe = base.recipe(data, len(self._train), settings)
        self._inputs = Inputs(base.tokenizer, self._recipe.max_length)
        self._known: dict[tuple[str, str], Split] = {}
        self._to_train = self._lay_out(data, self._train)

    def fit(self, start: Any, seed: int, progress: Progress) -> Trained:
        held_out = not self.data.labelled(DEV)
        dev = self._lay_out(self.data, self._dev) if held_out else self.split(self.data, DEV)
        trained = fit(start, self._to_train, dev, self._recipe, seed, progress)
        trained.record["chosen_on"] = "a part of train" if held_out else DEV
        return trained

    def words(self, what: str) -> str:
        """Return what is said of sequences that were cut."""
        return f"{what} cut at {self._recipe.max_length} tokens"

    def split(self, data: TaskData, split: str) -> Split:
        """Return a judged split, of this task or of one its classifier answers."""
        key = (data.spec.name, split)
        if key not in self._known:
            self._known[key] = self._lay_out(data, data.splits[split])
        # The classifier speaks in its own task's labels.
        return self._known[key]

    def _lay_out(self, data: TaskData, examples: list[Example]) -> Split:
        device = self._base.trunk.device
        return lay_out(self.data.spec, examples, self._inputs, self._recipe, device, self._base.pad)


def _answered(trained: Trained, split: Split, data: TaskData) -> PredictedAnswers:
    """Return a split in its own task's labels; what the best weights said of dev is known from choosing them."""
    known = trained.dev_answers if split is trained.dev else None
    return answered_as(known or answer(trained, split), trained.spec, data.spec)


def _parts(data: TaskData, seed: int) -> tuple[list[Example], list[Example]]:
    found = parts_of(data, seed)
    assert found is not None, "only tasks with a labelled training set are trained"
    return found.train, found.chosen_on


def save_trained(folder: Path, trained: Trained, tokenizer: Any, card: ModelCard, seed: int) -> Path:
    """Save the encoder with tokenizer and card, as any tool reads them, and its head, in `finetuned/TASK-SEED`."""
    place = folder / FOLDER / f"{trained.spec.name.replace('/', '-')}-{seed}"
    about = {"task": trained.spec.name, "labels": trained.spec.labels, "form": trained.spec.form}
    facts = {**about, "scale": trained.scale, "training": trained.record}
    with _put(place) as part:
        part.mkdir(parents=True)
        trained.network.trunk.save_pretrained(part)
        tokenizer.save_pretrained(part)
        weights = state_of(trained.network)
        head = {name: value for name, value in weights.items() if not name.startswith("trunk.")}
        # Under a name of its own ending, so that nobody takes the head for a shard of the encoder.
        save_file(head, part / f"{HEAD}.tensors")
        (part / f"{HEAD}.json").write_text(json.dumps(facts, indent=2) + "\n", "utf-8")
        training = f"{card.name} fine-tuned on {trained.spec.name}, seed {seed}"
        write_card_facts(part, source=card.source, licence=card.licence, training=training)
        make_readable(part)
        shutil.rmtree(place, ignore_errors=True)
    return place


def keep_weights(path: Path, trunk: Any) -> str:
    """Write weights to one file; return its digest."""
    with _put(path) as part:
        save_file(state_of(trunk), part)
    return file_digest(path)


def take_weights(path: Path, trunk: Any, digest: str | None) -> bool:
    """Put kept weights into the encoder; False where there are none, or not those with this digest."""
    if digest is None or not path.is_file() or file_digest(path) != digest:
        return False
    trunk.load_state_dict(load_file(path))
    return True


@contextmanager
def _put(path: Path) -> Iterator[Path]:
    """Write a file or folder atomically; where that fails, say how to go on."""
    try:
        with replacing(path) as part:
            yield part
    except (EnsueError, SafetensorError) as error:
        words = str(error) if isinstance(error, EnsueError) else f"{path} cannot be written: {error}"
        raise EnsueError(
            f"{words.rstrip('.')}; finished tasks are kept, make room and run again with --resume."
        ) from error
