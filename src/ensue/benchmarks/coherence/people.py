"""Annotation projects of kinds `insertion` and `ordering`: where a sentence belongs, and in which order several do.

Any documents will do, and they are the gold answers. Insertion is judged by the share of sentences put where they
were and by how many places off they are, ordering by the share of texts put right and by Kendall's tau. In a control
every sentence has its number before it, which anybody who reads sees.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ensue.benchmarks import settings as read
from ensue.benchmarks.answered import people_outcome
from ensue.benchmarks.base import Outcome, Setting, content_of
from ensue.benchmarks.coherence.documents import ORDERING as LAID_OUT
from ensue.benchmarks.coherence.documents import REMOVED, shuffled_numbers
from ensue.benchmarks.people.aside import QUALIFICATION, set_aside
from ensue.benchmarks.people.export import Export, Record
from ensue.benchmarks.people.form import Field, Form, Panel, Values
from ensue.benchmarks.people.kind import DOCUMENTS, Built, Phase, Plain, WorkItem, instructions, mean_row
from ensue.errors import EnsueError
from ensue.metrics.ordering import kendall_tau, perfect_match
from ensue.models.protocols import Model
from ensue.report.results import Item, MetricRow
from ensue.stats.ranges import CORRELATION, POSITIVE
from ensue.text.documents import BUNDLED, Document, read_documents

FEWEST = 3
_SETTINGS: dict[str, Setting] = {
    "max_sentences": Setting(10, "keep only the first N sentences of a document", read.whole(FEWEST)),
    "sample": Setting(None, "how many documents, chosen at random (none: all)", read.optional(read.whole())),
    "training": Setting(2, "how many of them come first, with the right answer shown", read.whole(0)),
    "qualification": QUALIFICATION,
    "controls": Setting(2, "how many of them have their sentences numbered", read.whole(0)),
    **read.DOCUMENT_SETTINGS,
}


class _Sentences(Plain):
    """What both kinds share: documents, cut, some of them for training, qualification and controls."""

    reads = DOCUMENTS
    settings: Mapping[str, Setting] = _SETTINGS
    defaults: Mapping[str, Any] = {"labels": 3}
    name = ""
    title = ""

    def build(self, data: str | None, settings: Mapping[str, Any], seed: int) -> Built:
        documents, notes = _documents(data, settings)
        chance = random.Random(f"{seed}/{self.name}")
        if settings["sample"] is not None and settings["sample"] < len(documents):
            documents = chance.sample(documents, settings["sample"])
        aside = set_aside(documents, settings, at_least_left=1)
        items = [self.item(document, phase, seed) for phase, document in aside.taught()]
        items += [self._control(document, seed) for document in aside.controls]
        items += [self.item(document, "work", seed) for document in aside.left]
        said = [f"{count} {what}" for what, count in notes.items()]
        return Built(self.title, instructions(__file__, self.name), items, str(data or BUNDLED), said)

    def item(self, document: Document, phase: Phase, seed: int) -> WorkItem:
        raise NotImplementedError

    def _control(self, document: Document, seed: int) -> WorkItem:
        """Return an item of which every sentence says which one of the text it is."""
        numbered = tuple(f"({number}) {text}" for number, text in enumerate(document.sentences, 1))
        item = self.item(replace(document, sentences=numbered), "work", seed)
        return replace(item, key={"id": f"{document.id}#control"}, control=True, words="")


class Insertion(_Sentences):
    """The kind `insertion`."""

    name = "insertion"
    about = "where does this sentence belong? (any documents)"
    title = "Where does this sentence belong?"

    def item(self, document: Document, phase: Phase, seed: int) -> WorkItem:
        sentences = list(document.sentences)
        # The first that a run of the same seed takes out, however many it does, so that models answer it, too.
        place = shuffled_numbers(seed, document, REMOVED)[0]
        taken = sentences.pop(place)
        asked = Field(
            "place", "place", "Where does the sentence belong?", {"panel": "text", "sentence": taken}
        )
        form = Form((Panel("text", "The text that is left", sentences=tuple(sentences)),), (asked,))
        key = {
            "id": document.id,
            "content": content_of(document.sentences),
            "sentences": len(document.sentences),
        }
        return WorkItem(
            form, key, phase, gold={"place": place}, words=f"It was sentence {place + 1} of the text."
        )

    def scores(self, export: Export) -> list[MetricRow]:
        """Return the share put in the right place, and the mean number of places off."""
        answers = _judged(export)
        off = [abs(int(one.values["place"]) - int(gold_of(one)["place"])) for one in answers]
        documents = [one.item for one in answers]
        if not answers:
            return []
        return [
            mean_row(self.name, "accuracy", [float(one == 0) for one in off], documents),
            mean_row(self.name, "distance", off, documents, POSITIVE),
        ]


class Ordering(_Sentences):
    """The kind `ordering`."""

    name = "ordering"
    about = "put shuffled sentences in order (any documents)"
    title = "Put the sentences in order"

    def item(self, document: Document, phase: Phase, seed: int) -> WorkItem:
        # As a run of the same seed lays them out, but never in the right order.
        shown = shuffled_numbers(seed, document, LAID_OUT)
        if shown == sorted(shown):
            shown = [*shown[1:], shown[0]]
        # Numbered as they are shown, so that the ids say nothing of the right order.
        ids = {number: f"s{place}" for place, number in enumerate(shown, 1)}
        entries = [{"id": ids[number], "text": document.sentences[number]} for number in shown]
        form = Form((), (Field("order", "order", "Put the sentences in order.", {"entries": entries}),))
        key = {"id": document.id, "content": content_of(document.sentences), "sentences": len(shown)}
        key["asked"] = content_of(tuple(document.sentences[number] for number in shown))
        gold = {"order": [ids[number] for number in sorted(ids)]}
        return WorkItem(form, key, phase, gold=gold, words="The right order is shown.")

    def scores(self, export: Export) -> list[MetricRow]:
        """Return the share of texts put wholly right, and Kendall's tau with the right order."""
        answers = _judged(export)
        documents = [one.item for one in answers]
        if not answers:
            return []
        orders = [order_of(one) for one in answers]
        taus, right = [kendall_tau(order) for order in orders], [perfect_match(order) for order in orders]
        return [
            mean_row(self.name, "accuracy", right, documents),
            mean_row(self.name, "kendall_tau", taus, documents, CORRELATION),
        ]


def _judged(export: Export) -> list[Record]:
    return [one for one in export.answers() if one.gold is not None]


def gold_of(answer: Record) -> Values:
    """Return the gold answer, which everything that is judged has."""
    if answer.gold is None:
        raise ValueError("an answer without a gold one")
    return answer.gold


def order_of(answer: Record) -> list[int]:
    """Return the order that somebody chose as the sentences' own numbers."""
    numbers = {id: number for number, id in enumerate(gold_of(answer)["order"])}
    return [numbers[id] for id in answer.values["order"]]


def outcome_of(
    documents: Sequence[Document],
    model: Model,
    export: Export,
    item_of: Callable[[Document, Sequence[Record]], Item],
    rows_of: Callable[[Sequence[Item]], Iterable[MetricRow]],
    skipped: Counter[str],
) -> Outcome:
    """Return what people are worth on the documents of a run; an item's scores are the mean over its annotators."""
    return people_outcome(
        model,
        export,
        {document.id: document for document in documents},
        what="document",
        content=lambda document: content_of(document.sentences),
        item=item_of,
        rows=lambda items, _: rows_of(items),
        skipped=skipped,
        hint=f", with --set max_sentences={export.settings['max_sentences']}",
    )


def _documents(data: str | None, settings: Mapping[str, Any]) -> tuple[list[Document], Counter[str]]:
    """Return documents that are long enough, cut; one that says a sentence twice has no one right order."""
    how = {name: settings[name] for name in read.DOCUMENT_SETTINGS}
    found, notes = [], Counter[str]()
    for document in read_documents(data or BUNDLED, **how):
        cut = document.sentences[: settings["max_sentences"]]
        if len(cut) < FEWEST:
            notes[f"documents of fewer than {FEWEST} sentences left out"] += 1
        elif len(set(cut)) < len(cut):
            notes["documents left out that say a sentence twice"] += 1
        else:
            found.append(Document(document.id, cut, document.domain))
    if not found:
        raise EnsueError(f"{data} has no document of {FEWEST} different sentences or more.")
    return found, notes


INSERTION = Insertion()
ORDERING = Ordering()
