"""Insertion: a sentence is taken out of a document, every position scored, and the best held against its own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from ensue.benchmarks import settings as read
from ensue.benchmarks.base import Outcome, RunContext, Setting, content_of
from ensue.benchmarks.coherence.documents import (
    REMOVED,
    DocumentsRun,
    DocumentsTask,
    documents_signature,
    model_signature,
    policy_of,
    portions,
    sentence_settings,
    shuffled_numbers,
    some_long_enough,
    within,
)
from ensue.benchmarks.coherence.judging import rows_by_domain
from ensue.benchmarks.coherence.neighbours import find_neighbours
from ensue.benchmarks.coherence.people import gold_of, outcome_of
from ensue.benchmarks.coherence.rating import rate_texts, rater_of, read_in_part
from ensue.benchmarks.insertion.positions import Removed, judge, requests_of, values_between, values_of
from ensue.benchmarks.people.export import Record
from ensue.benchmarks.people.human import people_of
from ensue.models.protocols import Encoder, Model, Rater, Scorer, portion_of, require
from ensue.report.results import Item, MetricRow
from ensue.scoring.engine import score
from ensue.shelf import Shelf
from ensue.text.documents import Document

# Two sentences have two positions; of fewer there is nothing to choose.
FEWEST = 3
METRICS = ("accuracy", "distance")
CHANCE = ("chance", "chance_distance")
METHODS = ("text", "neighbours")
# Documents are scored together until what is asked about them has so many characters, all held at once.
_ON_CPU, _ELSEWHERE = 10_000_000, 80_000_000

SETTINGS = {
    "removed": Setting(
        5, "sentences taken out of each document in turn (none: all)", read.optional(read.whole())
    ),
    "method": Setting(
        None,
        "text (log-likelihood or rating of the text at each position) or neighbours (pairs of sentences; all an "
        "encoder can do); none: what the model can",
        read.optional(read.one_of(*METHODS)),
    ),
    "after": Setting(
        2,
        "sentences after the inserted one that are scored with and without it (none: the whole text)",
        read.optional(read.whole(0)),
    ),
    **sentence_settings(20, FEWEST),
}


class _Valued(NamedTuple):
    """The values of each position of the removed sentences, and what was done to get them."""

    values: list[list[float]]
    tokens: int
    notes: Counter[str]


@dataclass(frozen=True)
class InsertionRun(DocumentsRun):
    """The test with its documents read and its settings fixed."""

    def evaluate(self, model: Model, context: RunContext) -> Outcome:
        """Score every position of every sentence that is taken out, and judge the best; people chose one."""
        export = people_of(model, "insertion")
        if export is not None:
            documents, skipped, _ = some_long_enough(self.documents, self.settings, FEWEST)
            return outcome_of(documents, model, export, _by_people, metric_rows, skipped)
        rater = rater_of(model, self.settings, "Insertion")
        whole = rater is not None or isinstance(model, Scorer)
        method = self.settings["method"] or ("text" if whole else "neighbours")
        if rater is None and (method == "text" or not isinstance(model, Encoder)):
            require(model, Scorer, "Insertion")
        documents, skipped, notes = some_long_enough(self.documents, self.settings, FEWEST)
        items: Shelf[Item] = Shelf()
        tokens = done = 0
        most = portion_of(model, on_cpu=_ON_CPU, elsewhere=_ELSEWHERE)
        if rater is not None:
            notes += read_in_part(rater, (document.sentences for document in documents))
        for portion in portions(documents, self._size, most):
            removed = [one for document in portion for one in self._removed(document)]
            progress = within(context.progress, done, len(portion), len(documents), "documents")
            lent = replace(context, progress=progress)
            if method == "neighbours":
                found = self._between(model, removed, lent)
            elif rater is not None:
                found = _by_rating(rater, removed, lent)
            else:
                found = self._by_text(model, removed, lent)
            items.extend(map(_item, removed, found.values))
            tokens += found.tokens
            notes.update(found.notes)
            done += len(portion)
        return Outcome(
            items=items,
            metrics=list(metric_rows(items)),
            signature=f"{model_signature(model, self.settings)} {self._signature(method, rater is not None)}",
            skipped=dict(skipped),
            tokens=tokens,
            notes=notes,
        )

    def removed(self) -> list[Removed]:
        """Return every document and sentence that is asked about."""
        documents, _, _ = some_long_enough(self.documents, self.settings, FEWEST)
        return [one for document in documents for one in self._removed(document)]

    def _removed(self, document: Document) -> list[Removed]:
        """Return the document without each of the sentences drawn, in their order."""
        places = list(range(len(document.sentences)))
        wanted = self.settings["removed"]
        if wanted is not None and wanted < len(places):
            # The first of a fixed shuffle: asking for more keeps those that were asked before.
            places = sorted(shuffled_numbers(self.seed, document, REMOVED)[:wanted])
        return [Removed(document, place) for place in places]

    def _size(self, document: Document) -> int:
        count = len(document.sentences)
        return sum(map(len, document.sentences)) * count * min(count, self.settings["removed"] or count)

    def _by_text(self, model: Model, removed: Sequence[Removed], context: RunContext) -> _Valued:
        scorer, after, joiner = (
            require(model, Scorer, "Insertion"),
            self.settings["after"],
            self.settings["joiner"],
        )
        requests = [request for one in removed for request in requests_of(one, joiner, after)]
        scored = score(
            scorer,
            requests,
            policy=policy_of(self.settings),
            journal=context.journal,
            progress=context.progress,
        )
        logprobs = iter([one.logprob for one in scored.scores])
        return _Valued([values_of(one, logprobs, after) for one in removed], scored.tokens, scored.notes)

    def _between(self, model: Model, removed: Sequence[Removed], context: RunContext) -> _Valued:
        documents = {one.document.id: one.document for one in removed}
        texts = [document.sentences for document in documents.values()]
        found = find_neighbours(model, texts, self.settings, context, "Insertion")
        of = dict(zip(documents, found.documents, strict=True))
        return _Valued(
            [values_between(one, of[one.document.id]) for one in removed], found.tokens, found.notes
        )

    def _signature(self, method: str, rated: bool) -> str:
        s = self.settings
        removed = "all" if s["removed"] is None else s["removed"]
        # A rating is of the whole text.
        after = "" if rated or method != "text" else f" after:{'all' if s['after'] is None else s['after']}"
        return f"method:{method}{after} removed:{removed} ties:1e-4 {documents_signature(s, self.seed)}"


def _by_rating(rater: Rater, removed: Sequence[Removed], context: RunContext) -> _Valued:
    """Rate the text with each sentence at every position."""
    counts = [len(one.document.sentences) for one in removed]
    texts = [one.at(at) for one, count in zip(removed, counts, strict=True) for at in range(count)]
    ratings = iter(rate_texts(rater, texts, context))
    return _Valued([[next(ratings) for _ in range(count)] for count in counts], 0, Counter())


def _item(removed: Removed, values: Sequence[float]) -> Item:
    right = removed.right()
    judged = judge(values, right)
    count = len(values)
    return Item(
        id=removed.id,
        cluster=removed.document.id,
        task="insertion",
        settings={},
        scores={"accuracy": judged.accuracy, "distance": judged.distance},
        outputs={
            "domain": removed.document.domain,
            "right": right,
            "best": judged.best,
            "chance": len(right) / count,
            "chance_distance": sum(min(abs(at - one) for one in right) for at in range(count)) / count,
            "values": [round(value, 4) for value in values],
        },
        content=content_of(removed.document.sentences, removed.place),
        asked=content_of(removed.rest, removed.sentence),
    )


def _by_people(document: Document, given: Sequence[Record]) -> Item:
    """Return an item whose values are how many people chose each position."""
    removed = Removed(document, int(gold_of(given[0])["place"]))
    chosen = [int(one.values["place"]) for one in given]
    found = _item(removed, [float(chosen.count(at)) for at in range(len(document.sentences))])
    off = [min(abs(at - right) for right in removed.right()) for at in chosen]
    found["scores"] = {"accuracy": off.count(0) / len(off), "distance": sum(off) / len(off)}
    found["outputs"]["chosen"] = chosen
    return found


def metric_rows(items: Iterable[Item]) -> Iterator[MetricRow]:
    """Yield accuracy and distance with what chance gives, of all documents and by domain."""
    return rows_by_domain("insertion", items, METRICS, CHANCE)


TASK = DocumentsTask("insertion", SETTINGS, InsertionRun)
