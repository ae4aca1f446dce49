"""Annotation projects of kind `intruder`, and people as a system of the intruder.

Which sentence of a text does not belong, or does every one? Each document is read in one version alone, since whoever
has read it knows it; kinds of edits and untouched documents take turns. In a control the words of one sentence are
mixed, which anybody who reads sees.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ensue.benchmarks import settings as read
from ensue.benchmarks.answered import kappa_rows, people_outcome
from ensue.benchmarks.base import Outcome, Setting
from ensue.benchmarks.intruder.edits import Edited
from ensue.benchmarks.intruder.judging import FALSE_ALARMS, PEOPLE, UNTOUCHED, Version, item_with, metric_rows
from ensue.benchmarks.intruder.rules import Values as Standing
from ensue.benchmarks.intruder.rules import rank_of
from ensue.benchmarks.intruder.task import SETTINGS, IntruderRun
from ensue.benchmarks.people.agreement import Judgment
from ensue.benchmarks.people.aside import QUALIFICATION, set_aside
from ensue.benchmarks.people.export import Export, Record
from ensue.benchmarks.people.form import Field, Form, Panel, Values, options
from ensue.benchmarks.people.kind import DOCUMENTS, Built, Phase, Plain, WorkItem, instructions, mean_row
from ensue.errors import EnsueError
from ensue.report.results import Item, MetricRow
from ensue.stats.ranges import POSITIVE
from ensue.text.documents import Document

if TYPE_CHECKING:
    from ensue.models.protocols import Model

FIELD, NONE = "sentence", "none"
_CONTROL = "mixed words"


class Intruder(Plain):
    """The kind `intruder`."""

    name = "intruder"
    about = "which sentence of a text does not belong, or does every one? (any documents)"
    reads = DOCUMENTS
    settings: Mapping[str, Setting] = {
        "kinds": SETTINGS["kinds"],
        "max_sentences": SETTINGS["max_sentences"],
        **read.DOCUMENT_SETTINGS,
        "texts": Setting(None, "maximum number of texts", read.optional(read.whole())),
        "training": Setting(2, "practice texts, of documents of their own", read.whole(0)),
        "qualification": QUALIFICATION,
        "controls": Setting(
            2, "texts with a sentence of mixed words, of documents of their own", read.whole(0)
        ),
    }
    defaults: Mapping[str, Any] = {"labels": 3, "most_missed": 0}

    def build(self, data: str | None, settings: Mapping[str, Any], seed: int) -> Built:
        documents = read.documents_of("intruder", "", data, None, settings)
        versions, skipped, _ = IntruderRun(documents, seed, dict(settings)).versions()
        by_document: dict[str, dict[str, Version]] = {}
        for one in versions:
            by_document.setdefault(one.document.id, {})[one.kind] = one
        aside = set_aside(list(reversed(by_document.values())), settings)
        work = _take_turns(aside.left[::-1], [*settings["kinds"], UNTOUCHED])[: settings["texts"]]
        if not work:
            raise EnsueError(
                f"{documents.source} has {len(by_document)} documents that can be edited, all of which practice,"
                " qualification and controls take; set these lower, or give more documents."
            )
        least = float(settings["minimum_seconds"])
        items = [_item(one, least, "training") for one in _take_turns(aside.training, settings["kinds"])]
        # As in the work, some of the texts that qualify are untouched.
        asked = _take_turns(aside.qualification, [*settings["kinds"], UNTOUCHED])
        items += [_item(one, least, "qualification") for one in asked]
        items += [_control(found[UNTOUCHED].document, seed, least) for found in aside.controls]
        items += [_item(one, least) for one in work]
        notes = [f"{len(work):,} texts: {_counted(work)}", *(f"{n} {what}" for what, n in skipped.items())]
        title = "Which sentence does not belong?"
        return Built(title, instructions(__file__, "intruder"), items, documents.source, notes)

    def right(self, gold: Values, values: Values) -> bool:
        """Return whether one of the sentences that do not belong was found; of two that changed places either is."""
        return values.get(FIELD) in gold[FIELD]


def _take_turns(documents: Sequence[Mapping[str, Version]], kinds: Sequence[str]) -> list[Version]:
    """Return one version of each document; the kind with the fewest so far is taken, where there is one."""
    counts = Counter(dict.fromkeys(kinds, 0))
    found = []
    for versions in documents:
        there = [kind for kind in kinds if kind in versions]
        if there:
            kind = min(there, key=lambda one: (counts[one], kinds.index(one)))
            counts[kind] += 1
            found.append(versions[kind])
    return found


def _counted(versions: Sequence[Version]) -> str:
    return ", ".join(f"{count} {kind}" for kind, count in Counter(one.kind for one in versions).items())


def _item(version: Version, least: float, phase: Phase = "work") -> WorkItem:
    sentences, places, _ = version.edited
    key = {
        "id": version.id,
        "document": version.document.id,
        "kind": version.kind,
        "asked": version.asked,
        "places": list(places),
    }
    return WorkItem(
        _form(sentences, least), key, phase, gold={FIELD: _gold(places)}, words=_words(sentences, places)
    )


def _gold(places: Sequence[int]) -> list[str]:
    return [str(place) for place in places] or [NONE]


def _words(sentences: Sequence[str], places: Sequence[int]) -> str:
    if not places:
        return "Nothing was changed: every sentence belongs."
    return f"It is “{sentences[places[0]]}”" + (f" or “{sentences[places[1]]}”" if places[1:] else "")


def _control(document: Document, seed: int, least: float) -> WorkItem:
    """Return a text of which one sentence has its words mixed."""
    chance = random.Random(f"{seed}/{document.id}/control")
    sentences = list(document.sentences)
    place = max(range(1, len(sentences)), key=lambda at: len(sentences[at].split()))
    words = sentences[place].split()
    chance.shuffle(words)
    sentences[place] = " ".join(words)
    key = {"id": f"{document.id}#{_CONTROL}"}
    return WorkItem(_form(sentences, least), key, control=True, gold={FIELD: [str(place)]})


def _form(sentences: Sequence[str], least: float) -> Form:
    """Return the text and its sentences to choose from; the first is never the one, as models know, too."""
    named = [(str(place), text) for place, text in enumerate(sentences) if place]
    named.append((NONE, "None: every sentence belongs"))
    field = Field(FIELD, "choice", "Which sentence does not belong?", options(*named))
    return Form((Panel("text", "The text", " ".join(sentences)),), (field,), minimum_seconds=least)


KIND = Intruder()


# People as a system


def outcome_of(run: IntruderRun, model: Model, export: Export) -> Outcome:
    """Return what people are worth on the versions of a run.

    A version's `hit_rate_at` is the share of its annotators who found the edited sentence, its `false_alarms` the
    share who found one where there is none; `hit_rate` and `rank` go by how many marked each sentence.
    """
    versions, skipped, notes = run.versions()
    return people_outcome(
        model,
        export,
        {one.id: one for one in versions},
        what="text",
        content=lambda version: version.asked,
        item=_judged,
        rows=lambda items, records: [*metric_rows(items), *_more_rows(items, records)],
        skipped=skipped,
        notes=notes,
        mark="asked",
        hint=f", with --seed {export.seed} and max_sentences={export.settings['max_sentences']}",
    )


def _judged(version: Version, given: Sequence[Record]) -> Item:
    edited = version.edited
    marked = [_place(one.values[FIELD]) for one in given]
    standing: Standing = [None, *(-_share(marked, place) for place in range(1, len(edited.sentences)))]
    most = Counter(marked).most_common()
    clear = most[0][0] if len(most) == 1 or most[0][1] > most[1][1] else None
    more = {
        "values": {PEOPLE: standing},
        "flagged": {PEOPLE: clear},
        "annotators": {one.annotator: place for one, place in zip(given, marked, strict=True)},
        "seconds": {one.annotator: one.seconds for one in given},
    }
    return item_with(version, dict(_scores(edited, marked, standing)), more)


def _scores(edited: Edited, marked: Sequence[int | None], standing: Standing) -> Iterator[tuple[str, float]]:
    if not edited.places:
        yield f"{PEOPLE}/{FALSE_ALARMS}", sum(place is not None for place in marked) / len(marked)
        return
    rank = rank_of(standing, edited.places)
    yield f"{PEOPLE}/hit_rate", float(rank == 1)
    yield f"{PEOPLE}/rank", float(rank)
    yield f"{PEOPLE}/hit_rate_at", sum(place in edited.places for place in marked) / len(marked)


def _place(value: Any) -> int | None:
    return None if value == NONE else int(value)


def _share(marked: Sequence[int | None], place: int) -> float:
    return sum(one == place for one in marked) / len(marked)


def _more_rows(items: Sequence[Item], records: Mapping[str, Sequence[Record]]) -> list[MetricRow]:
    """Return seconds an answer, by kind of edit, and how far people agree on the sentence they mark."""
    rows = []
    for kind in dict.fromkeys(item["settings"]["kind"] for item in items):
        some = [item for item in items if item["settings"]["kind"] == kind]
        seconds = [(one, item["cluster"]) for item in some for one in item["outputs"]["seconds"].values()]
        times, texts = [one for one, _ in seconds], [cluster for _, cluster in seconds]
        rows.append(mean_row("intruder", "seconds", times, texts, POSITIVE, kind=kind))
    there = {item["id"] for item in items}
    judgments = [
        Judgment(one.key["document"], id, one.annotator, str(one.values[FIELD]))
        for id, given in records.items()
        if id in there
        for one in given
    ]
    return [*rows, *kappa_rows(judgments, "intruder", {})]
