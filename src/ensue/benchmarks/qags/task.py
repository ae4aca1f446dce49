"""`ensue run qags`: how well do metrics agree with people on whether summaries are consistent?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ensue.benchmarks import settings as read
from ensue.benchmarks.base import (
    DataRun,
    NamedSystem,
    Outcome,
    Prepared,
    PreparedTask,
    RunContext,
    Setting,
    content_of,
)
from ensue.benchmarks.people.export import Export
from ensue.benchmarks.people.human import people_of
from ensue.benchmarks.qags.candidates import Finder, SpacyFinder
from ensue.benchmarks.qags.data.sets import PLACES, JudgedSet, JudgedSets, read_sets
from ensue.benchmarks.qags.human import HELD_OUT, PEOPLE, peoples_sets
from ensue.benchmarks.qags.judging import correlation_rows, correlations_of, judge
from ensue.benchmarks.qags.measures import (
    GROUPS,
    QAGS,
    REFERENCE_VALUES,
    Values,
    bertscore_values,
    overlap_values,
)
from ensue.benchmarks.qags.pipeline import QagsModels, find_candidates
from ensue.benchmarks.qags.questions import PRESET_SETTINGS, Preset, preset_of
from ensue.benchmarks.qags.scoring import ABLATIONS, SIMILARITIES, Questioned, question_all
from ensue.errors import EnsueError
from ensue.models.protocols import Answerer, Model, Questioner, TokenEncoder, require
from ensue.records import DAMAGED, Records
from ensue.report.results import Item, MetricRow

# A model's name that says that none is wanted.
WITHOUT_MODELS = "source-overlap"
SAME = "same"
ANSWERER = "minilm-qa"
SETTINGS = {
    "sets": Setting(
        None,
        f"which of {', '.join(PLACES)} (none: those of the first five that are there)",
        read.optional(read.many(read.one_of(*PLACES))),
    ),
    "metrics": Setting(
        None,
        f"which of {QAGS}, {', '.join(GROUPS)} (none: all that can be computed)",
        read.optional(read.many(read.one_of(QAGS, *GROUPS))),
    ),
    "answerer": Setting(ANSWERER, "the model that answers; same: the one that asks", read.text),
    "encoder": Setting(
        None,
        "a model whose vectors compare answers and, for BERTScore, texts, such as minilm",
        read.optional(read.text),
    ),
    "similarity": Setting(
        "f1", "how answers are compared: f1, exact or embedding", read.one_of(*SIMILARITIES)
    ),
    **PRESET_SETTINGS,
    "ablations": Setting(
        ["questions", "similarity"],
        "what is varied beside the run itself: questions, similarity, filters, or none",
        read.optional(read.many(read.one_of(*ABLATIONS))),
    ),
    "human": Setting(
        "main", "main: one human score a collection; all: every one", read.one_of("main", "all")
    ),
    "cache": Setting(
        None,
        "keep candidates, questions and answers in this file, for other runs too (source-overlap: candidates only)",
        read.optional(read.text),
    ),
}


@dataclass(frozen=True)
class QagsRun(DataRun[JudgedSets]):
    """The judgments read and the settings fixed; `finder` is what finds answers to ask about."""

    preset: Preset
    finder: Callable[[], Finder] = SpacyFinder

    def evaluate(self, model: Model, context: RunContext) -> Outcome:
        """Compute every metric on every set, and hold it against what people say of the same summaries."""
        skipped: Counter[str] = Counter(
            {f"set {name} left out, for want of {PLACES[name][1]}": 1 for name in self.data.missing}
        )
        export = people_of(model, "consistency")
        if export is not None:
            return self._by_people(model, export, skipped)
        notes: Counter[str] = Counter()
        with_questions = self._wants(QAGS) and not self._without_models(model)
        # First, so that a model that cannot ask is known before anything is computed.
        models = self._models(model, context) if with_questions else None
        encoder = self._encoder(context)
        values: dict[str, Values] = {}
        for one in self.data.sets:
            values[one.name] = self._values(one, encoder, skipped)
            context.progress(len(values), len(self.data.sets), "sets by other metrics")
        questioned = None
        with self._records(context, notes) as records:
            if models is not None:
                questioned = question_all(
                    self.data.sets, models, self.preset, self.settings, encoder, records, context.progress
                )
            elif self.settings["cache"] is not None:
                # For a run elsewhere, such as on a machine that has models and no spaCy.
                texts = [pair.summary for one in self.data.sets for pair in one.pairs]
                find_candidates(texts, self.finder(), records)
        extras: dict[str, list[dict[str, Any]]] = {}
        if questioned is not None:
            for one in self.data.sets:
                values[one.name] = {QAGS: questioned.values[one.name], **values[one.name]}
            notes.update(questioned.notes)
            extras["questions"] = questioned.rows
        rows, extras["comparisons"] = self._judged(values, questioned, notes)
        return Outcome(
            items=self._items(values, questioned),
            metrics=rows,
            signature=self._signature(model, models, encoder),
            skipped=dict(skipped),
            tokens=0,
            extras=extras,
            notes=notes,
        )

    def _by_people(self, model: Model, export: Export, skipped: Counter[str]) -> Outcome:
        """Hold people against those who judged the data, beside the metrics that need no model."""
        found = peoples_sets(export, self.data.sets, self.preset.asking.seed, skipped)
        values = {one.judged.name: {PEOPLE: one.values, **overlap_values(one.judged)} for one in found}
        cut = replace(self, data=replace(self.data, sets=tuple(one.judged for one in found)))
        notes = Counter({HELD_OUT: n} if (n := sum(len(one.values) for one in found if one.held_out)) else {})
        rows, comparisons = cut._judged(values, None, notes)
        people = len({one.annotator for one in export.answers()})
        against = "held-out:one-a-summary" if any(one.held_out for one in found) else "against:the-data"
        return Outcome(
            items=cut._items(values, None),
            metrics=rows,
            signature=f"model:{model.card.signed_name} export:{model.card.mark} people:{people} {against}"
            f" seed:{self.preset.asking.seed}",
            skipped=dict(skipped),
            tokens=0,
            extras={"comparisons": comparisons},
            notes=notes,
        )

    def _wants(self, group: str) -> bool:
        return self.settings["metrics"] is None or group in self.settings["metrics"]

    def _without_models(self, model: Model) -> bool:
        if model.card.name != WITHOUT_MODELS:
            return False
        if self.settings["metrics"] is not None:
            raise EnsueError(
                f"{WITHOUT_MODELS} asks no questions; leave {QAGS} out of metrics or name a model that asks."
            )
        return True

    def _models(self, model: Model, context: RunContext) -> QagsModels:
        questioner = require(model, Questioner, "QAGS")
        named = self.settings["answerer"]
        answers = model if named == SAME else context.load_further(str(named))
        return QagsModels(self.finder(), questioner, require(answers, Answerer, "QAGS"))

    def _encoder(self, context: RunContext) -> Model | None:
        name = self.settings["encoder"]
        if name is not None:
            return context.load_further(str(name))
        if self.settings["similarity"] == "embedding" or "bertscore" in (self.settings["metrics"] or ()):
            raise EnsueError("Comparing by vectors needs an encoder; name one, such as --set encoder=minilm.")
        return None

    def _values(self, judged: JudgedSet, encoder: Model | None, skipped: Counter[str]) -> Values:
        """Compute what needs no questions; unless metrics were named, one that cannot be had is counted."""
        values: Values = overlap_values(judged)
        if not judged.has_references:
            if asked := [name for name in self.settings["metrics"] or () if name not in ("overlap", QAGS)]:
                skipped[f"{judged.name} has no references, so no {', '.join(asked)}"] += 1
            return values
        for name, measure in REFERENCE_VALUES.items():
            if not self._wants(name):
                continue
            try:
                values |= measure(judged)
            except EnsueError as error:
                if self.settings["metrics"] is not None:
                    raise
                skipped[f"{name} on {judged.name} left out: {str(error).rstrip('.')}"] += 1
        if self._wants("bertscore"):
            if encoder is None:
                skipped[f"bertscore on {judged.name} left out, for want of --set encoder"] += 1
            else:
                values |= bertscore_values(judged, require(encoder, TokenEncoder, "BERTScore"))
        return values

    def _judged(
        self, values: dict[str, Values], questioned: Questioned | None, notes: Counter[str]
    ) -> tuple[list[MetricRow], list[dict[str, Any]]]:
        rows: list[MetricRow] = []
        comparisons: list[dict[str, Any]] = []
        for one in self.data.sets:
            found = judge(one, values[one.name])
            rows += found.rows
            comparisons += found.comparisons
            notes.update(found.notes)
            for variant, given in questioned.variants[one.name] if questioned else ():
                settings = {"measure": QAGS, "ablation": variant.ablation, "setting": variant.setting}
                if one.triplets:
                    rows += [
                        {**row, "settings": settings}
                        for row in judge(one, {QAGS: given}).rows
                        if row["metric"] == "accuracy"
                    ]
                else:
                    rows += correlation_rows(one, correlations_of(one, given), settings, notes)
        return rows, comparisons

    @contextmanager
    def _records(self, context: RunContext, notes: Counter[str]) -> Iterator[Records]:
        """Open the records of finished work: a file for several runs, or the run's own."""
        if self.settings["cache"] is None:
            yield context.records
            return
        with Records(Path(self.settings["cache"]).expanduser()) as records:
            yield records
        if records.damaged:
            notes[DAMAGED] += records.damaged

    def _items(self, values: dict[str, Values], questioned: Questioned | None) -> Iterator[Item]:
        for one in self.data.sets:
            for place, id in enumerate(one.ids):
                outputs: dict[str, Any] = {"human": {name: given[place] for name, given in one.human.items()}}
                if one.systems:
                    outputs["system"] = one.systems[place % len(one.systems)]
                if questioned is not None:
                    outputs["qags"] = questioned.accounts[one.name][place]
                yield Item(
                    id=id,
                    cluster=one.clusters[place],
                    task=one.name,
                    settings={},
                    scores={name: given[place] for name, given in values[one.name].items()},
                    outputs=outputs,
                    content=content_of(*one.content(place)),
                    asked=content_of(*one.pairs[place]),
                )

    def _signature(self, model: Model, models: QagsModels | None, encoder: Model | None) -> str:
        vectors = "" if encoder is None else f"encoder:{encoder.card.marked_name} "
        asking, keeping = self.preset.asking, self.preset.keeping
        if models is None:
            return f"metrics without models {vectors}seed:{asking.seed}"
        return (
            f"asks:{model.card.signed_name} weights:{model.card.mark} "
            f"answers:{models.answerer.card.signed_name} weights:{models.answerer.card.mark} "
            f"candidates:{asking.candidates} made:{asking.answers}x{asking.count} beams:{asking.beams} "
            f"tokens:{asking.min_tokens}-{asking.max_tokens} "
            f"kept:{keeping.questions} agree:{keeping.agree} padding:{keeping.padding} order:{keeping.order} "
            f"finds:{models.finder.identity} similarity:{self.settings['similarity']} {vectors}seed:{asking.seed}"
        )


def _prepare(task: str, data: str | None, limit: int | None, seed: int, settings: dict[str, Any]) -> Prepared:
    if task:
        raise EnsueError(
            f"qags has no tasks, so there is no qags/{task}; choose sets with --set sets={task}."
        )
    if data is None:
        raise EnsueError("qags needs --data: the folder that holds qags, falke2019 and summeval.")
    preset = preset_of(settings, seed)
    sets = read_sets(data, settings["sets"], limit, every_score=settings["human"] == "all")
    return QagsRun(sets, settings, preset)


def named(name: str) -> NamedSystem:
    """Return what stands for no model at all."""
    return NamedSystem.of(name, "untrained", architecture=name)


TASK = PreparedTask(SETTINGS, _prepare)
