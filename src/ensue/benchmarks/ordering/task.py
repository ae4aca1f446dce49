"""Ordering: the sentences of a document, shuffled, are put into the order that a model finds best."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from ensue.benchmarks import settings as read
from ensue.benchmarks.base import Outcome, RunContext, Setting, content_of
from ensue.benchmarks.coherence.documents import (
    ORDERING,
    DocumentsRun,
    DocumentsTask,
    documents_signature,
    model_signature,
    of_steps,
    policy_of,
    portions,
    sentence_settings,
    shuffled_numbers,
    some_long_enough,
    within,
)
from ensue.benchmarks.coherence.judging import rows_by_domain
from ensue.benchmarks.coherence.neighbours import Found, Neighbours, find_neighbours
from ensue.benchmarks.coherence.people import order_of, outcome_of
from ensue.benchmarks.coherence.rating import rater_of, read_in_part
from ensue.benchmarks.ordering.beam import Ask, Hypothesis, Order, State, search, set_and_last, whole_order
from ensue.benchmarks.ordering.gains import Gains, RatedBeginnings
from ensue.benchmarks.people.export import Record
from ensue.benchmarks.people.human import people_of
from ensue.errors import EnsueError
from ensue.metrics.ordering import (
    edit_distance,
    kendall_tau,
    lcs_share,
    perfect_match,
    positional_accuracy,
    with_equals_in_order,
)
from ensue.metrics.preference import TIE
from ensue.models.protocols import Encoder, Model, Scorer, portion_of, require
from ensue.report.results import Item, MetricRow
from ensue.shelf import Shelf
from ensue.text.documents import Document

FEWEST = 3
METHODS = ("rescored", "beam", "neighbours")
METRICS = ("kendall_tau", "perfect", "lcs", "edit_distance", "positional_accuracy", "accuracy_search")
CHANCE = ("chance_positional",)
# Values of pairs are at hand, so that many more beginnings can be kept.
_WIDE = 256
# Documents are put in order together until what is asked in a step has so many characters, all held at once.
_ON_CPU, _ELSEWHERE = 20_000_000, 80_000_000

SETTINGS = {
    "method": Setting(
        None,
        "rescored (the best orders by neighbours, read whole), beam (search by the likelihood of each sentence after "
        "all before it, or by the rating of what is there) or neighbours (by pairs of sentences; all an encoder can "
        "do); none: rescored where the model scores text, beam where it rates it, else neighbours",
        read.optional(read.one_of(*METHODS)),
    ),
    "beam": Setting(8, "orders that are rescored, or beginnings that are kept at each step", read.whole()),
    "words": Setting(
        None,
        "first words of a sentence that count when it is looked for (none: all): fewer tokens, and another measure",
        read.optional(read.whole()),
    ),
    "context": Setting(
        None,
        "sentences that beam reads before the next one (none: all that are there)",
        read.optional(read.whole()),
    ),
    **sentence_settings(10, FEWEST),
}


class Shuffled(NamedTuple):
    """A document whose sentences lie in another order; `numbers` says which sentence lies where."""

    document: Document
    numbers: Order

    @property
    def sentences(self) -> tuple[str, ...]:
        return tuple(self.document.sentences[number] for number in self.numbers)

    @property
    def written(self) -> Order:
        """The order they were written in, by where they lie now."""
        return tuple(sorted(range(len(self.numbers)), key=lambda place: self.numbers[place]))


class _Ordered(NamedTuple):
    """The best order found of each document, the value of the order it was written in, and what was done."""

    found: list[Hypothesis]
    written: list[float]
    tokens: int
    notes: Counter[str]


@dataclass(frozen=True)
class OrderingRun(DocumentsRun):
    """The test with its documents read and its settings fixed."""

    def evaluate(self, model: Model, context: RunContext) -> Outcome:
        """Search for the best order of every document, and hold it against its own; people found theirs."""
        export = people_of(model, "ordering")
        if export is not None:
            documents, skipped, _ = some_long_enough(self.documents, self.settings, FEWEST)
            return outcome_of(documents, model, export, _by_people, metric_rows, skipped)
        rater = rater_of(model, self.settings, "Ordering")
        rated = rater is not None
        method = self._method(model, rated)
        if not rated and (method != "neighbours" or not isinstance(model, Encoder)):
            require(model, Scorer, "Ordering")
        self._check(method, rated or not isinstance(model, Scorer))
        documents, skipped, notes = some_long_enough(self.documents, self.settings, FEWEST)
        items: Shelf[Item] = Shelf()
        tokens = done = 0
        most = portion_of(model, on_cpu=_ON_CPU, elsewhere=_ELSEWHERE)
        if rater is not None:
            notes += read_in_part(rater, (document.sentences for document in documents))
        for portion in portions(documents, self._size, most):
            shuffled = [self._shuffled(document) for document in portion]
            progress = within(context.progress, done, len(portion), len(documents), "documents")
            ordered = self._ways[method](model, shuffled, replace(context, progress=progress))
            items.extend(map(_item, shuffled, ordered.found, ordered.written))
            tokens += ordered.tokens
            notes.update(ordered.notes)
            done += len(portion)
        return Outcome(
            items=items,
            metrics=list(metric_rows(items)),
            signature=f"{model_signature(model, self.settings)} {self._signature(method)}",
            skipped=dict(skipped),
            tokens=tokens,
            notes=notes,
        )

    def assumed(self, model: Model) -> str:
        """Say that which orders are tried depends on the scores of others, unless all pairs are scored at once."""
        if self._method(model, rater_of(model, self.settings, "Ordering") is not None) == "neighbours":
            return ""
        return "which orders are tried depends on scores: tokens fed are near those of the run, not the same"

    def _method(self, model: Model, rated: bool) -> str:
        if method := self.settings["method"]:
            return str(method)
        if rated or self.settings["context"] is not None:
            return "beam"
        return "rescored" if isinstance(model, Scorer) else "neighbours"

    def _check(self, method: str, otherwise: bool) -> None:
        """Refuse settings that would do nothing."""
        if otherwise and self.settings["words"] is not None:
            raise EnsueError(
                "--set words= is of models that score text: one that rates or encodes reads it all."
            )
        if self.settings["context"] is not None and (otherwise or method != "beam"):
            raise EnsueError("--set context= is of method=beam with a model that scores text.")

    def _shuffled(self, document: Document) -> Shuffled:
        """Lay the sentences in another order, so that no rule that breaks ties can find the right one."""
        return Shuffled(document, tuple(shuffled_numbers(self.seed, document, ORDERING)))

    def _size(self, document: Document) -> int:
        beam: int = self.settings["beam"]
        return sum(map(len, document.sentences)) * len(document.sentences) * beam

    @property
    def _ways(self) -> dict[str, Callable[[Model, Sequence[Shuffled], RunContext], _Ordered]]:
        return {"rescored": self._rescored, "beam": self._beam, "neighbours": self._pairs}

    def _beam(self, model: Model, shuffled: Sequence[Shuffled], context: RunContext) -> _Ordered:
        """Search by what each sentence gains from all that stand before it, in nats over what it is on its own, or by
        how beginnings are rated."""
        last: int | None = self.settings["context"]
        gains = self._gains(model, shuffled, context, self.settings["words"], last)
        written = gains.of_orders(list(enumerate(one.written for one in shuffled)))
        state = whole_order if last is None else set_and_last(last)
        found = search([len(one.numbers) for one in shuffled], self.settings["beam"], gains, state)
        return _Ordered([each[0] for each in found], written, gains.tokens, gains.notes)

    def _rescored(self, model: Model, shuffled: Sequence[Shuffled], context: RunContext) -> _Ordered:
        """Take the orders that are best by neighbours, and of these the one that is best read whole."""
        first, second = (replace(context, progress=of_steps(context.progress, done, 2)) for done in (0, 1))
        wide = max(_WIDE, self.settings["beam"])
        neighbours, found = self._by_neighbours(model, shuffled, first, whole_order, wide)
        gains = self._gains(model, shuffled, second, at_once=True)
        proposed = [
            (number, one.order) for number, best in enumerate(found) for one in best[: self.settings["beam"]]
        ]
        written = list(enumerate(one.written for one in shuffled))
        values = gains.of_orders([*written, *proposed])
        best: dict[int, Hypothesis] = {}
        for (number, order), value in zip(proposed, values[len(written) :], strict=True):
            if number not in best or value > best[number].value:
                best[number] = Hypothesis(order, value)
        return _Ordered(
            [best[number] for number, _ in written],
            values[: len(written)],
            gains.tokens + neighbours.tokens,
            gains.notes + neighbours.notes,
        )

    def _pairs(self, model: Model, shuffled: Sequence[Shuffled], context: RunContext) -> _Ordered:
        """Search by how well each sentence follows the one before it."""
        neighbours, found = self._by_neighbours(model, shuffled, context, set_and_last())
        written = [
            sum(_step(of, one.written[:at], one.written[at]) for at in range(len(one.written)))
            for of, one in zip(neighbours.documents, shuffled, strict=True)
        ]
        return _Ordered([each[0] for each in found], written, neighbours.tokens, neighbours.notes)

    def _by_neighbours(
        self,
        model: Model,
        shuffled: Sequence[Shuffled],
        context: RunContext,
        state: State,
        width: int = _WIDE,
    ) -> tuple[Found, list[list[Hypothesis]]]:
        neighbours = find_neighbours(
            model, [one.sentences for one in shuffled], self.settings, context, "Ordering"
        )

        def answer(asked: Sequence[Ask]) -> list[float]:
            return [_step(neighbours.documents[ask.number], ask.order, ask.following) for ask in asked]

        return neighbours, search([len(one.numbers) for one in shuffled], width, answer, state)

    def _gains(
        self,
        model: Model,
        shuffled: Sequence[Shuffled],
        context: RunContext,
        words: int | None = None,
        last: int | None = None,
        *,
        at_once: bool = False,
    ) -> Gains | RatedBeginnings:
        rater = rater_of(model, self.settings, "Ordering")
        if rater is not None:
            return RatedBeginnings(rater, [one.sentences for one in shuffled], context, at_once=at_once)
        scorer = require(model, Scorer, "Ordering")
        return Gains(
            scorer,
            [one.sentences for one in shuffled],
            joiner=self.settings["joiner"],
            policy=policy_of(self.settings),
            journal=context.journal,
            progress=context.progress,
            words=words,
            context=last,
            at_once=at_once,
        )

    def _signature(self, method: str) -> str:
        s = self.settings
        beam = f" beam:{s['beam']}" if method != "neighbours" else ""
        less = "".join(f" {key}:{s[key]}" for key in ("words", "context") if s[key] is not None)
        return f"method:{method}{beam}{less} {documents_signature(s, self.seed)}"


def _step(of: Neighbours, order: Order, following: int) -> float:
    return float(of.follows[order[-1], following] if order else of.opens[following])


def _item(shuffled: Shuffled, found: Hypothesis, written: float) -> Item:
    document = shuffled.document
    order = with_equals_in_order([shuffled.numbers[place] for place in found.order], document.sentences)
    return Item(
        id=document.id,
        cluster=document.id,
        task="ordering",
        settings={},
        scores={
            **_scores(order),
            # Where the written order is worth more, the search missed it and the model did not.
            "accuracy_search": float(found.value >= written - TIE),
        },
        outputs={
            "domain": document.domain,
            "order": order,
            "value": round(found.value, 4),
            "value_written": round(written, 4),
            "chance_positional": 1.0 / len(order),
        },
        content=content_of(document.sentences),
        asked=content_of(shuffled.sentences),
    )


def _scores(order: Sequence[int]) -> dict[str, float]:
    return {
        "kendall_tau": kendall_tau(order),
        "perfect": perfect_match(order),
        "lcs": lcs_share(order),
        "edit_distance": edit_distance(order),
        "positional_accuracy": positional_accuracy(order),
    }


def _by_people(document: Document, given: Sequence[Record]) -> Item:
    """Return the mean of what people's orders are worth; nobody searched, so nothing is said of a search."""
    orders = [order_of(one) for one in given]
    each = [_scores(order) for order in orders]
    return Item(
        id=document.id,
        cluster=document.id,
        task="ordering",
        settings={},
        scores={name: sum(one[name] for one in each) / len(each) for name in each[0]},
        outputs={
            "domain": document.domain,
            "orders": orders,
            "chance_positional": 1.0 / len(document.sentences),
        },
        content=content_of(document.sentences),
        asked=str(given[0].key.get("asked", "")),
    )


def metric_rows(items: Sequence[Item]) -> Iterator[MetricRow]:
    """Yield every metric, of all documents and by domain."""
    scored = [metric for metric in METRICS if metric in items[0]["scores"]]
    return rows_by_domain("ordering", items, scored, CHANCE)


TASK = DocumentsTask("ordering", SETTINGS, OrderingRun)
