"""Summaries judged against their references: items with every metric, and rows with intervals over whole stories."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ensue.benchmarks.base import LoadModel, content_of
from ensue.benchmarks.squality.data import Example
from ensue.benchmarks.squality.human import held_out, rouge_measure
from ensue.benchmarks.squality.systems import Summary
from ensue.benchmarks.summaries.bertscore import layer_for
from ensue.benchmarks.summaries.extractive import count_words
from ensue.benchmarks.summaries.scoring import (
    LEFT_OUT,
    Measure,
    bertscore_measure,
    meteor_measure,
    named,
    scores_of,
    wordnet_for_meteor,
)
from ensue.errors import EnsueError
from ensue.models.card import ModelCard
from ensue.models.protocols import TokenEncoder, require
from ensue.report.results import Item, MetricRow
from ensue.stats.clustered import clustered_interval
from ensue.stats.ranges import range_of

TASK = "squality"
# What `--set metrics=` understands; `rouge` is three metrics.
METRICS = ("rouge", "meteor", "bertscore")
WORDS = "words"


def measures_of(
    settings: Mapping[str, Any], load: LoadModel, notes: Counter[str] | None = None
) -> list[Measure]:
    """The metrics that were asked for, ready to be computed; what they do to texts is counted in `notes`."""
    found: list[Measure] = []
    for name in settings["metrics"]:
        if name == "rouge":
            found.append(rouge_measure)
        elif name == "meteor":
            found.append(meteor_measure(wordnet_for_meteor()))
        else:
            encoder = require(load(settings["bertscore_model"]), TokenEncoder, "BERTScore")
            found.append(bertscore_measure(encoder, settings["bertscore_layer"], notes))
    return found


def bertscore_by(settings: Mapping[str, Any], loaded: Mapping[str, ModelCard]) -> str:
    """How BERTScore was measured, for a signature: by which model, known by its weights, and at which layer."""
    card = loaded[settings["bertscore_model"]]
    layer = layer_for(card.name, settings["bertscore_layer"])
    return f"bertscore:{card.marked_name}/{'last' if layer is None else layer}"


def judged_items(
    examples: Sequence[Example],
    summaries: Sequence[Summary],
    measures: Sequence[Measure],
    settings: Mapping[str, Any],
) -> list[Item]:
    """An item for every example: its metrics by the best reference, by the mean, and as people are judged."""
    texts = [summary.text for summary in summaries]
    by_metric = scores_of(texts, [one.question.references for one in examples], measures)
    items = []
    for place, (example, summary) in enumerate(zip(examples, summaries, strict=True)):
        by_reference = {name: rows[place] for name, rows in by_metric.items()}
        items.append(
            Item(
                id=example.id,
                cluster=example.story.id,
                task=TASK,
                settings=dict(settings),
                scores={**named(by_reference), WORDS: float(count_words(summary.text))},
                outputs={
                    "question": example.question.text,
                    "summary": summary.text,
                    **summary.about,
                    "by_reference": by_reference,
                },
                content=_content(example),
            )
        )
    return items


def human_items(
    examples: Sequence[Example], measures: Sequence[Measure], settings: Mapping[str, Any]
) -> list[Item]:
    """An item for every question: the mean over its summaries of each one's metrics against the others.

    By question, so that a system can be compared with people question by question. Where every question has as many
    references, which is checked, the mean over questions is the mean over summaries.
    """
    summaries = held_out(examples)
    by_metric = scores_of(
        [one.candidate for one in summaries], [one.references for one in summaries], measures
    )
    items = []
    begin = 0
    for example in examples:
        places = range(begin, begin + len(example.question.references))
        begin = places.stop
        each = [named({name: rows[place] for name, rows in by_metric.items()}) for place in places]
        scores = {name: float(np.mean([one[name] for one in each])) for name in each[0]}
        # People are judged with one left out to begin with.
        scores |= {name + LEFT_OUT: scores[name] for name in by_metric}
        scores[WORDS] = float(np.mean([count_words(summaries[place].candidate) for place in places]))
        items.append(
            Item(
                id=example.id,
                cluster=example.story.id,
                task=TASK,
                settings=dict(settings),
                scores=scores,
                outputs={
                    "question": example.question.text,
                    "summaries": [
                        {
                            "writer": summaries[place].writer,
                            "by_reference": {name: rows[place] for name, rows in by_metric.items()},
                        }
                        for place in places
                    ],
                },
                content=_content(example),
            )
        )
    return items


def _content(example: Example) -> str:
    return content_of(example.story.document, example.question.text, example.question.references)


def rows_of(items: Sequence[Item]) -> list[MetricRow]:
    """Every metric that all items have, as a mean with an interval; stories are what is independent."""
    if not items:
        raise EnsueError("There is nothing to judge: no question is left.")
    clusters = [item["cluster"] for item in items]
    rows = []
    for name in items[0]["scores"]:
        if not all(name in item["scores"] for item in items):
            continue
        found = clustered_interval([item["scores"][name] for item in items], clusters, bounds=range_of(name))
        rows.append(
            MetricRow(
                task=items[0]["task"],
                metric=name,
                value=found.value,
                ci95=[found.low, found.high],
                n=found.n,
                clusters=found.clusters,
                settings=dict(items[0]["settings"]),
            )
        )
    return rows
