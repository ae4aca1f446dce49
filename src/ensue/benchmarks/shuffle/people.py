"""Annotation projects of kind `shuffle`, and people as a system of the Shuffle Test.

Two texts side by side, which one is the original? Each document is used at one block size alone, since whoever has
read it once knows its order; block sizes take turns. A control is a text beside one whose words are mixed within its
sentences, which anybody who reads sees.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ensue.benchmarks import settings as read
from ensue.benchmarks.answered import by_item, kappa_rows, people_outcome
from ensue.benchmarks.base import Outcome, Setting, content_of
from ensue.benchmarks.people.agreement import Judgment
from ensue.benchmarks.people.aside import QUALIFICATION, set_aside
from ensue.benchmarks.people.export import Export, Record
from ensue.benchmarks.people.form import Field, Form, Panel
from ensue.benchmarks.people.kind import DOCUMENTS, Built, Phase, Plain, WorkItem, instructions, mean_row
from ensue.benchmarks.shuffle.judging import metric_rows
from ensue.benchmarks.shuffle.task import SETTINGS, ShuffledVersion, ShuffleRun
from ensue.errors import EnsueError
from ensue.report.results import Item, MetricRow
from ensue.stats.ranges import POSITIVE, SHARE
from ensue.text.documents import Document

if TYPE_CHECKING:
    from ensue.models.protocols import Model

FIELD = "original"
_SIDES = ("left", "right")


class Shuffle(Plain):
    """The kind `shuffle`."""

    name = "shuffle"
    about = "two texts side by side: which is the original? (the k-Block Shuffle Test)"
    reads = DOCUMENTS
    settings: Mapping[str, Setting] = {
        "block_size": SETTINGS["block_size"],
        "max_sentences": SETTINGS["max_sentences"],
        "joiner": SETTINGS["joiner"],
        **read.DOCUMENT_SETTINGS,
        "pairs": Setting(None, "maximum number of pairs", read.optional(read.whole())),
        "training": Setting(3, "practice pairs, of documents of their own", read.whole(0)),
        "qualification": QUALIFICATION,
        "controls": Setting(3, "pairs with mixed words, of documents of their own", read.whole(0)),
    }
    defaults: Mapping[str, Any] = {"labels": 3, "most_missed": 0}

    def build(self, data: str | None, settings: Mapping[str, Any], seed: int) -> Built:
        documents = read.documents_of("shuffle", "", data, None, settings)
        run = ShuffleRun(documents, seed, {**settings, "shuffles": 1})
        found, versions, _ = run.versions()
        known = {(one.document.id, one.block_size): one for one in versions}
        usable = {id for id, _ in known}
        aside = set_aside([one for one in reversed(found) if one.id in usable], settings)
        items = [
            _item(one, settings, seed, phase)
            for phase, document in aside.taught()
            if (one := _any_size(document, known, settings)) is not None
        ]
        items += [_control(document, settings, seed) for document in aside.controls]
        work = _take_turns(aside.left[::-1], known, settings["block_size"])
        if not work:
            raise EnsueError(
                f"{documents.source} has {len(found)} documents that can be shuffled, all of which practice, "
                "qualification and controls take; set these lower, or give more documents."
            )
        work = work[: settings["pairs"]]
        items += [_item(one, settings, seed) for one in work]
        sizes = ", ".join(map(str, settings["block_size"]))
        notes = [f"{len(work):,} documents, each at one of the block sizes {sizes}"]
        short = len(found) - len(usable)
        if short:
            notes.append(f"{short:,} documents too short for every block size left out")
        title = "Which text is in its own order?"
        return Built(title, instructions(__file__, "shuffle"), items, documents.source, notes)

    def scores(self, export: Export) -> list[MetricRow]:
        """Return accuracy of one person and of the majority, seconds and kappa by block size, as a run has them."""
        records = by_item(export)
        items = [_judged(given) for given in records.values()]
        alone = [row for row in metric_rows(items) if row["metric"] == "accuracy"]
        return [*alone, *_more_rows(items), *_kappas(records)]


def _take_turns(
    documents: Sequence[Document], known: Mapping[tuple[str, int], ShuffledVersion], sizes: Sequence[int]
) -> list[ShuffledVersion]:
    """Return one version of each document; the block size with the fewest so far is taken, where there is one."""
    counts = Counter(dict.fromkeys(sizes, 0))
    found = []
    for document in documents:
        there = [size for size in sizes if (document.id, size) in known]
        if there:
            size = min(there, key=lambda one: (counts[one], sizes.index(one)))
            counts[size] += 1
            found.append(known[document.id, size])
    return found


def _any_size(
    document: Document, known: Mapping[tuple[str, int], ShuffledVersion], settings: Mapping[str, Any]
) -> ShuffledVersion | None:
    return next(
        (known[document.id, size] for size in settings["block_size"] if (document.id, size) in known), None
    )


def _item(
    version: ShuffledVersion, settings: Mapping[str, Any], seed: int, phase: Phase = "work"
) -> WorkItem:
    original = str(settings["joiner"]).join(version.document.sentences)
    side = _side(seed, version.id)
    key = {
        "id": version.id,
        "document": version.document.id,
        "content": content_of(version.document.sentences),
        "asked": version.asked,
        "block_size": version.block_size,
        "number": version.number,
        "order": list(version.order),
        "original": side,
    }
    form = _form(original, version.text, side, settings)
    return WorkItem(form, key, phase, gold={FIELD: side})


def _control(document: Document, settings: Mapping[str, Any], seed: int) -> WorkItem:
    """Return a pair of which one text has the words of its sentences mixed."""
    chance = random.Random(f"{seed}/{document.id}/control")
    mixed = []
    for sentence in document.sentences:
        words = sentence.split()
        chance.shuffle(words)
        mixed.append(" ".join(words))
    joiner, side = str(settings["joiner"]), _side(seed, f"{document.id}#control")
    form = _form(joiner.join(document.sentences), joiner.join(mixed), side, settings)
    return WorkItem(form, {"id": f"{document.id}#control"}, control=True, gold={FIELD: side})


def _side(seed: int, id: str) -> str:
    return random.Random(f"{seed}/{id}/side").choice(_SIDES)


def _form(original: str, other: str, side: str, settings: Mapping[str, Any]) -> Form:
    texts = (original, other) if side == "left" else (other, original)
    panels = tuple(
        Panel(id, title, text=text)
        for id, title, text in zip(_SIDES, ("Text 1", "Text 2"), texts, strict=True)
    )
    field = Field(FIELD, "preference", "Which text is in its own order?", {"left": "left", "right": "right"})
    return Form(panels, (field,), minimum_seconds=float(settings["minimum_seconds"]))


KIND = Shuffle()


# People as a system


def outcome_of(run: ShuffleRun, model: Model, export: Export) -> Outcome:
    """Return what people are worth on the documents of a run: `accuracy` is that of one person, by block size.

    An item's accuracy is the share of its annotators who found the original, so that annotators are averaged over and
    items stay what `ensue compare` pairs; `accuracy_majority` counts votes, a tie as half.
    """
    documents, _, used = run.versions()
    known = {document.id: document for document in documents}
    asked = _at_sizes(export, known, run.settings["block_size"], used.skipped)
    return people_outcome(
        model,
        asked,
        known,
        what="document",
        content=lambda document: content_of(document.sentences),
        item=lambda document, given: _judged(given, document.domain),
        rows=lambda items, records: [*metric_rows(items), *_more_rows(items), *_kappas(records)],
        skipped=used.skipped,
        notes=used.notes,
        key="document",
        hint=", cut as there",
    )


def _at_sizes(
    export: Export, known: Mapping[str, Document], sizes: Sequence[int], skipped: Counter[str]
) -> Export:
    """Return the answers to pairs at these block sizes; count the others."""
    here = {
        item: int(given[0].key["block_size"])
        for item, given in by_item(export).items()
        if given[0].key["document"] in known
    }
    others = {item: size for item, size in here.items() if size not in sizes}
    if others and len(others) == len(here):
        read_at = ", ".join(map(str, sorted(set(others.values()))))
        raise EnsueError(
            f"People read no pair at block size {', '.join(map(str, sizes))}; they read pairs at {read_at}."
        )
    skipped["pairs of people at block sizes that are not asked for"] += len(others)
    return replace(export, records=tuple(one for one in export.records if one.item not in others))


def _judged(given: Sequence[Record], domain: str = "") -> Item:
    key = given[0].key
    rights = [float(one.values[FIELD] == key["original"]) for one in given]
    share = sum(rights) / len(rights)
    return Item(
        id=str(key["id"]),
        cluster=str(key["document"]),
        task="shuffle",
        settings={"block_size": int(key["block_size"])},
        scores={
            "accuracy": share,
            "ties": float(share == 0.5),
            "accuracy_majority": 0.5 if share == 0.5 else float(share > 0.5),
            "seconds": float(np.median([one.seconds for one in given])),
        },
        outputs={
            "domain": domain,
            "order": key["order"],
            "annotators": {one.annotator: one.values[FIELD] == key["original"] for one in given},
            "seconds": {one.annotator: one.seconds for one in given},
            "preferred": "same" if share == 0.5 else "original" if share > 0.5 else "shuffled",
        },
        content=str(key["content"]),
        asked=str(key["asked"]),
    )


def _more_rows(items: Sequence[Item]) -> list[MetricRow]:
    """Return the majority's accuracy and the median seconds an item, by block size."""
    rows = []
    for size in sorted({item["settings"]["block_size"] for item in items}):
        chosen = [item for item in items if item["settings"]["block_size"] == size]
        clusters = [item["cluster"] for item in chosen]
        for metric, bounds in (("accuracy_majority", SHARE), ("seconds", POSITIVE)):
            values = [item["scores"][metric] for item in chosen]
            rows.append(mean_row("shuffle", metric, values, clusters, bounds, block_size=size))
    return rows


def _kappas(records: Mapping[str, Sequence[Record]]) -> list[MetricRow]:
    """Return Fleiss' kappa of the sides chosen, by block size; nothing where people cannot agree by chance."""
    judgments: dict[int, list[Judgment]] = {}
    for id, given in records.items():
        for one in given:
            found = judgments.setdefault(int(one.key["block_size"]), [])
            found.append(Judgment(id, FIELD, one.annotator, str(one.values[FIELD])))
    return [
        row
        for size in sorted(judgments)
        for row in kappa_rows(judgments[size], "shuffle", {"block_size": size})
    ]
