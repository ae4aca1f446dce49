"""Summaries judged against their references: items with every metric, and rows with intervals over whole stories.

People are judged too: every reference in turn is the candidate, measured against those that are left (§5.5.4). On the
test split of version 1, with stems, the mean over 720 summaries of the best of three references is ROUGE-1 46.6,
ROUGE-2 12.5 and ROUGE-L 22.6; table 5.4 prints 46.6, 12.5 and 22.7. Systems are measured against four references,
which gives them a better chance of a good match; `scoring.LEFT_OUT` measures them as people are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ensue.benchmarks.base import LoadModel, content_of
from ensue.benchmarks.squality.data import StoryQuestion
from ensue.benchmarks.squality.systems import Summary
from ensue.benchmarks.summaries import scoring
from ensue.benchmarks.summaries.bertscore import layer_for
from ensue.benchmarks.summaries.extractive import count_words
from ensue.benchmarks.summaries.scoring import LEFT_OUT, Measure, named, scores_of
from ensue.errors import EnsueError
from ensue.models.protocols import TokenEncoder, require
from ensue.report.figure import Figure
from ensue.report.results import Item, MetricRow
from ensue.stats.clustered import clustered_interval
from ensue.stats.ranges import range_of

TASK = "squality"
# What `--set metrics=` understands; `rouge` is three metrics.
METRICS = ("rouge", "meteor", "bertscore")
WORDS = "words"


def measures_of(settings: Mapping[str, Any], load: LoadModel, notes: Counter[str]) -> list[Measure]:
    """Return the metrics that were asked for, ready to be computed; what they do to texts is counted in `notes`."""
    found: list[Measure] = []
    for name in settings["metrics"]:
        if name == "rouge":
            found.append(scoring.rouge_measure)
        elif name == "meteor":
            found.append(scoring.meteor_measure(scoring.wordnet_for_meteor()))
        else:
            encoder = require(load(settings["bertscore_model"]), TokenEncoder, "BERTScore")
            found.append(scoring.bertscore_measure(encoder, settings["bertscore_layer"], notes))
    return found


def bertscore_by(settings: Mapping[str, Any], load: LoadModel) -> str:
    """Return how BERTScore was measured, for a signature: the model, known by its weights, and the layer."""
    card = load(settings["bertscore_model"]).card
    layer = layer_for(card.name, settings["bertscore_layer"])
    return f"bertscore:{card.marked_name}/{'last' if layer is None else layer}"


def judged_items(
    examples: Sequence[StoryQuestion],
    summaries: Sequence[Summary],
    measures: Sequence[Measure],
    settings: Mapping[str, Any],
) -> list[Item]:
    """Return an item for every example: its metrics by the best reference, by the mean, and as people are judged."""
    texts = [summary.text for summary in summaries]
    by_metric = scores_of(texts, [one.question.references for one in examples], measures)
    items = []
    for place, (example, summary) in enumerate(zip(examples, summaries, strict=True)):
        by_reference = {name: rows[place] for name, rows in by_metric.items()}
        scores = {**named(by_reference), WORDS: float(count_words(summary.text))}
        outputs = {"summary": summary.text, **summary.about, "by_reference": by_reference}
        items.append(_item(example, settings, scores, outputs))
    return items


def human_items(
    examples: Sequence[StoryQuestion], measures: Sequence[Measure], settings: Mapping[str, Any]
) -> list[Item]:
    """Return an item for every question: the mean over its summaries of each one's metrics against the others.

    By question, so that a system can be compared with people question by question. Where every question has as many
    references, which is checked, the mean over questions is the mean over summaries.
    """
    references = [one.question.references for one in examples]
    texts = [text for own in references for text in own]
    others = [own[:place] + own[place + 1 :] for own in references for place in range(len(own))]
    by_metric = scores_of(texts, others, measures)
    items = []
    begin = 0
    for example in examples:
        responses = example.question.responses
        places = range(begin, begin + len(responses))
        begin = places.stop
        rows = [{name: values[place] for name, values in by_metric.items()} for place in places]
        each = [named(row) for row in rows]
        scores = {name: float(np.mean([one[name] for one in each])) for name in each[0]}
        # People are judged with one left out to begin with.
        scores |= {name + LEFT_OUT: scores[name] for name in by_metric}
        scores[WORDS] = float(np.mean([count_words(response.text) for response in responses]))
        summaries = [
            {"writer": response.writer, "by_reference": row}
            for response, row in zip(responses, rows, strict=True)
        ]
        items.append(_item(example, settings, scores, {"summaries": summaries}))
    return items


def people_items(
    examples: Sequence[StoryQuestion],
    answers: Sequence[Mapping[str, str]],
    measures: Sequence[Measure],
    settings: Mapping[str, Any],
    notes: Counter[str],
) -> list[Item]:
    """Return an item for every question that people of a project answered, by writer: the mean over them.

    Nobody is measured against their own words: on the references of a project's own round everybody is measured
    against those of the others, as `human_items` does.
    """
    given: list[_Given] = []
    for place, (example, said) in enumerate(zip(examples, answers, strict=True)):
        responses = example.question.responses
        for writer, text in said.items():
            others = [one.text for one in responses if one.writer != writer]
            if others:
                given.append(_Given(place, writer, text, others, len(others) < len(responses)))
            else:
                notes["answers whose writer wrote the only reference, so that there is none for them"] += 1
    by_metric = scores_of([one.text for one in given], [one.references for one in given], measures)
    if own := sum(one.is_own for one in given):
        notes["answers by writers of the references, each measured against the others"] += own
    rows: dict[int, list[tuple[_Given, dict[str, Any]]]] = {}
    for at, one in enumerate(given):
        rows.setdefault(one.place, []).append((one, {name: values[at] for name, values in by_metric.items()}))
    items = []
    for place, some in rows.items():
        each = []
        for one, row in some:
            scores = named(row)
            # As people are judged: one is left out already.
            scores |= {name + LEFT_OUT: scores[name] for name in row if one.is_own}
            each.append({**scores, WORDS: float(count_words(one.text))})
        means = {
            name: float(np.mean([scores[name] for scores in each]))
            for name in each[0]
            if all(name in scores for scores in each)
        }
        summaries = [{"writer": one.writer, "summary": one.text, "by_reference": row} for one, row in some]
        items.append(_item(examples[place], settings, means, {"summaries": summaries}))
    return items


class _Given(NamedTuple):
    """What somebody answered to a question, and the references of others; `is_own`: without their own."""

    place: int
    writer: str
    text: str
    references: Sequence[str]
    is_own: bool


def asked_of(example: StoryQuestion) -> str:
    """Return a digest of a story and a question, without people's answers."""
    return content_of(example.story.document, example.question.text)


def _item(
    example: StoryQuestion,
    settings: Mapping[str, Any],
    scores: dict[str, float],
    outputs: Mapping[str, Any],
) -> Item:
    return Item(
        id=example.id,
        cluster=example.story.id,
        task=TASK,
        settings=dict(settings),
        scores=scores,
        outputs={"question": example.question.text, **outputs},
        content=content_of(example.story.document, example.question.text, example.question.references),
        asked=asked_of(example),
    )


def rows_of(items: Sequence[Item]) -> list[MetricRow]:
    """Return every metric that all items have as a mean with an interval; stories are what is independent."""
    if not items:
        raise EnsueError("There is nothing to judge: no question is left.")
    clusters = [item["cluster"] for item in items]
    rows = []
    for name in items[0]["scores"]:
        if not all(name in item["scores"] for item in items):
            continue
        values = [item["scores"][name] for item in items]
        found = Figure(*clustered_interval(values, clusters, bounds=range_of(name)))
        rows.append(found.row(items[0]["task"], name, items[0]["settings"]))
    return rows
