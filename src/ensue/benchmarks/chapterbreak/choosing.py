"""Annotation projects of kind `chapterbreak`, and people as a system of ChapterBreak: which chapter comes next?

The end of a chapter, and the beginnings of the next one and of later ones, in an order of chance: choose one. In a
control the words of all but the right one are mixed, which anybody who reads sees.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from statistics import median
from typing import TYPE_CHECKING, Any

from ensue.benchmarks import settings as read
from ensue.benchmarks.answered import kappa_rows, people_outcome
from ensue.benchmarks.base import Outcome, Setting, content_of
from ensue.benchmarks.chapterbreak.data.examples import Example, read_examples
from ensue.benchmarks.chapterbreak.people import READS, WORD, end_of, sampled
from ensue.benchmarks.chapterbreak.ranking import SuffixChoice
from ensue.benchmarks.chapterbreak.task import IN_BOOK, asked_of, suffix_digest
from ensue.benchmarks.people.agreement import Judgment
from ensue.benchmarks.people.aside import QUALIFICATION, set_aside
from ensue.benchmarks.people.export import Export, Record
from ensue.benchmarks.people.form import Field, Form, Panel, options
from ensue.benchmarks.people.kind import Built, Phase, Plain, WorkItem, instructions, mean_row
from ensue.errors import EnsueError
from ensue.report.results import Item, MetricRow
from ensue.stats.ranges import SHARE, UNBOUNDED

if TYPE_CHECKING:
    from ensue.models.protocols import Model

FIELD = "next"
CONTEXT, SUFFIX = "context_words", "suffix_words"
_LETTERS = "abcdefghijklmnop"
_METRICS = {"accuracy": SHARE, "accuracy_majority": SHARE, "seconds": UNBOUNDED}


class ChapterBreak(Plain):
    """The kind `chapterbreak`."""

    name = "chapterbreak"
    about = "the end of a chapter and several beginnings: which chapter comes next? (ChapterBreak)"
    reads = READS
    settings: Mapping[str, Setting] = {
        "sample": Setting(
            100, "how many chapter breaks, chosen at random (none: all)", read.optional(read.whole())
        ),
        CONTEXT: Setting(500, "how much of the chapter's end is shown", read.whole()),
        SUFFIX: Setting(100, "how much of each beginning is shown", read.whole()),
        "split": Setting(None, "only one split of the data", read.optional(read.text)),
        "training": Setting(2, "practice, of chapter breaks of their own", read.whole(0)),
        "qualification": QUALIFICATION,
        "controls": Setting(2, "choices among mixed words, of chapter breaks of their own", read.whole(0)),
    }
    defaults: Mapping[str, Any] = {"labels": 3, "most_missed": 0}

    def build(self, data: str | None, settings: Mapping[str, Any], seed: int) -> Built:
        if data is None:
            raise EnsueError(
                "A chapterbreak project needs --data: ChapterBreak's, or what `ensue build chapterbreak` made."
            )
        found = read_examples(data, split=settings["split"])
        breaks = [example for example in found.items if example.boundary == "chapter"]
        count = settings["training"] + settings["qualification"] + settings["controls"]
        aside = set_aside(sampled(breaks, count, seed), settings)
        kept = {one.id for one in (*aside.training, *aside.qualification, *aside.controls)}
        work = sampled([one for one in breaks if one.id not in kept], settings["sample"], seed)
        if not work:
            raise EnsueError(
                f"{data} has {len(breaks)} chapter breaks, all of which practice, qualification and controls"
                " take; set these lower, or give more."
            )
        items = [_item(one, settings, seed, phase) for phase, one in aside.taught()]
        items += [_control(one, settings, seed) for one in aside.controls]
        items += [_item(one, settings, seed) for one in work]
        title = "Which chapter comes next?"
        return Built(title, instructions(__file__, self.name), items, data)


def _item(example: Example, settings: Mapping[str, Any], seed: int, phase: Phase = "work") -> WorkItem:
    texts = (example.gold, *example.negatives)
    order = _order(example.id, len(texts), seed)
    right = _LETTERS[order.index(0)]
    key = {
        "id": example.id,
        "content": content_of(example.context, example.gold, example.negatives),
        "order": order,
        "right": right,
    }
    form = _form(example, [texts[number] for number in order], settings)
    return WorkItem(
        form, key, phase, gold={FIELD: right}, words=f"The next chapter begins with {right.upper()}."
    )


def _control(example: Example, settings: Mapping[str, Any], seed: int) -> WorkItem:
    chance = random.Random(f"{seed}/{example.id}/mixed")
    texts = [example.gold, *(_mixed(text, chance) for text in example.negatives)]
    id = f"{example.id}#control"
    order = _order(id, len(texts), seed)
    form = _form(example, [texts[number] for number in order], settings)
    return WorkItem(form, {"id": id}, control=True, gold={FIELD: _LETTERS[order.index(0)]})


def _mixed(text: str, chance: random.Random) -> str:
    words = text.split()
    chance.shuffle(words)
    return " ".join(words)


def _order(id: str, count: int, seed: int) -> list[int]:
    """Return which of the texts, the right one first, stands at each letter."""
    order = list(range(count))
    random.Random(f"{seed}/{id}/order").shuffle(order)
    return order


def _form(example: Example, shown: Sequence[str], settings: Mapping[str, Any]) -> Form:
    named = [
        (letter, f"{letter.upper()}: {beginning_of(text, settings[SUFFIX])}")
        for letter, text in zip(_LETTERS, shown, strict=False)
    ]
    field = Field(FIELD, "choice", "Which of these comes next?", options(*named))
    panel = Panel("context", "The chapter ends", end_of(example.context, settings[CONTEXT]))
    return Form((panel,), (field,), minimum_seconds=float(settings["minimum_seconds"]))


def beginning_of(text: str, words: int) -> str:
    """Return the first words of a text as they stand, with a mark where something comes after.

    >>> beginning_of("It rained.  All day.", 2), beginning_of("It rained.", 2)
    ('It rained. …', 'It rained.')
    """
    ends = [found.end() for found in WORD.finditer(text)]
    return text if len(ends) <= words else text[: ends[words - 1]] + " …"


KIND = ChapterBreak()


# People as a system


def outcome_of(
    questions: Sequence[SuffixChoice], skipped: Counter[str], model: Model, export: Export
) -> Outcome:
    """Return what people are worth on the chapter breaks of a run: `accuracy` is that of one person.

    An item counts as the share of its annotators who chose the right beginning; `accuracy_majority` counts votes,
    where a right one that ties is wrong, as it is of models.
    """
    return people_outcome(
        model,
        export,
        {one.example.id: one.example for one in questions if IN_BOOK in one.negatives},
        what="chapter break",
        content=lambda one: content_of(one.context, one.gold, one.negatives),
        item=lambda one, given: _judged(one, given, export.settings),
        rows=_rows,
        skipped=skipped,
    )


def _judged(example: Example, given: Sequence[Record], settings: Mapping[str, Any]) -> Item:
    chosen = [int(one.key["order"][_LETTERS.index(one.values[FIELD])]) for one in given]
    votes = Counter(chosen).most_common()
    clear = len(votes) == 1 or votes[0][1] > votes[1][1]
    return Item(
        id=example.id,
        cluster=f"{example.split}/{example.work}",
        task=example.split,
        settings={
            "boundary": example.boundary,
            "negatives": IN_BOOK,
            CONTEXT: int(settings[CONTEXT]),
            SUFFIX: int(settings[SUFFIX]),
        },
        scores={
            "accuracy": chosen.count(0) / len(chosen),
            "accuracy_majority": float(clear and votes[0][0] == 0),
            "seconds": median(one.seconds for one in given),
        },
        outputs={
            "example": example.id,
            "suffixes": [suffix_digest(text) for text in (example.gold, *example.negatives)],
            "choice": votes[0][0] if clear else None,
            "annotators": {one.annotator: place for one, place in zip(given, chosen, strict=True)},
        },
        content=str(given[0].key["content"]),
        asked=asked_of(example, example.negatives),
    )


def _rows(items: Sequence[Item], records: Mapping[str, Sequence[Record]]) -> Iterator[MetricRow]:
    for split in dict.fromkeys(item["task"] for item in items):
        some = [item for item in items if item["task"] == split]
        clusters = [item["cluster"] for item in some]
        settings = some[0]["settings"]
        for metric, bounds in _METRICS.items():
            values = [item["scores"][metric] for item in some]
            yield mean_row(split, metric, values, clusters, bounds, **settings)
        chance = [1 / len(item["outputs"]["suffixes"]) for item in some]
        yield mean_row(split, "chance", chance, clusters, SHARE, **settings)
        judgments = [
            Judgment(
                item["cluster"],
                item["id"],
                one.annotator,
                str(one.key["order"][_LETTERS.index(one.values[FIELD])]),
            )
            for item in some
            for one in records[item["id"]]
        ]
        yield from kappa_rows(judgments, split, settings)
