"""`squality/human-eval`: what people made of models' summaries, and how metrics agree (tables 5.5 to 5.7, A.10)."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ensue.benchmarks.base import LoadModel, Outcome, RunContext, content_of
from ensue.benchmarks.squality.data import Story
from ensue.benchmarks.squality.evaluation import bertscore_by, measures_of
from ensue.benchmarks.squality.human_eval import HUMAN, PROPERTIES, Rated, rating_table
from ensue.benchmarks.squality.judged import KINDS, references_of, summary_correlations
from ensue.benchmarks.summaries.loads import Loads
from ensue.benchmarks.summaries.scoring import LEFT_OUT, named, scores_of
from ensue.models.protocols import Model
from ensue.report.results import Item, MetricRow
from ensue.stats.clustered import clustered_interval
from ensue.stats.ranges import range_of

TASK = "human-eval"
# Ratings go to 100; rows are of fractions.
_SCALE = 100.0


@dataclass(frozen=True)
class HumanEvalRun:
    """The evaluation's summaries with their ratings, and the stories whose references they are measured against."""

    rated: list[Rated]
    stories: list[Story]
    path: Path
    label: str
    seed: int
    settings: dict[str, Any]
    load: LoadModel

    @property
    def fingerprint(self) -> str:
        texts = [f"{one.example}\t{one.system}\t{one.text}\t{one.rating('overall')}" for one in self.rated]
        return hashlib.sha256("\n".join([*texts, *map(repr, self.stories)]).encode()).hexdigest()

    @property
    def source(self) -> str:
        return str(self.path)

    def evaluate(self, model: Model, context: RunContext) -> Outcome:
        """Measure the rated summaries; the model takes no part."""
        notes = Counter({f"the model {model.card.name} takes no part in {TASK}": 1})
        load = Loads(context.load or self.load)
        by_metric = scores_of(
            [one.text for one in self.rated],
            references_of(self.rated, self.stories),
            measures_of(self.settings, load, notes),
        )
        items = list(self._items(by_metric))
        rows = [*self._means(items), *self._correlations(by_metric)]
        parts = [
            f"set:{self.label}",
            f"metrics:{','.join(self.settings['metrics'])}",
        ]
        if "bertscore" in self.settings["metrics"]:
            parts.append(bertscore_by(self.settings, load.cards))
        parts += ["property:overall", f"seed:{self.seed}"]
        # Table A.10's deviations belong to no single metric row.
        extras = {"ratings": [row._asdict() for row in rating_table(self.rated)]}
        return Outcome(
            items=items,
            metrics=rows,
            signature=" ".join(parts),
            skipped={},
            tokens=0,
            extras=extras,
            notes=notes,
        )

    def _items(self, by_metric: Mapping[str, Sequence[Sequence[float]]]) -> Iterator[Item]:
        references = references_of(self.rated, self.stories)
        for place, one in enumerate(self.rated):
            ratings = {name: one.rating(name) for name in PROPERTIES}
            by_reference = {name: list(rows[place]) for name, rows in by_metric.items()}
            scores = named(by_reference)
            if one.system == HUMAN:
                # Its own text is left out of the references already.
                scores |= {name + LEFT_OUT: scores[name] for name in by_metric}
            yield Item(
                id=f"{one.example}/{one.system}",
                cluster=one.story,
                task=TASK,
                settings={"system": one.system},
                scores={**{name: rating / _SCALE for name, rating in ratings.items()}, **scores},
                outputs={"summary": one.text, "by_reference": by_reference},
                content=content_of(one.text, references[place], ratings),
            )

    def _means(self, items: Sequence[Item]) -> Iterator[MetricRow]:
        """Ratings (table 5.5) and metrics (table 5.7) of each system."""
        for system in dict.fromkeys(one.system for one in self.rated):
            own = [item for item in items if item["settings"]["system"] == system]
            clusters = [item["cluster"] for item in own]
            for name in own[0]["scores"]:
                if not all(name in item["scores"] for item in own):
                    continue
                values = [item["scores"][name] for item in own]
                found = clustered_interval(values, clusters, bounds=range_of(name))
                yield MetricRow(
                    task=TASK,
                    metric=name,
                    value=found.value,
                    ci95=[found.low, found.high],
                    n=found.n,
                    clusters=found.clusters,
                    settings={"system": system},
                )

    def _correlations(self, by_metric: Mapping[str, Sequence[Sequence[float]]]) -> Iterator[MetricRow]:
        """Table 5.6, and the same by ranks; a correlation that does not exist has no row."""
        best = {name: [max(row) for row in rows] for name, rows in by_metric.items()}
        stories = {
            "model": {one.story for one in self.rated if one.system != HUMAN},
            "human": {one.story for one in self.rated if one.system == HUMAN},
            "all": {one.story for one in self.rated},
        }
        for kind in KINDS:
            for found in summary_correlations(self.rated, best, kind=kind, seed=self.seed):
                if found.value is not None:
                    yield MetricRow(
                        task=TASK,
                        metric=kind,
                        value=found.value,
                        ci95=[found.low, found.high],
                        n=found.n,
                        clusters=len(stories[found.subset]),
                        settings={"of": found.metric, "with": "overall", "summaries": found.subset},
                    )
