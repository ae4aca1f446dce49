"""Annotation projects of kind `consistency`: is each sentence of a summary supported by its article? (A.3.1)

People see the article and judge the summary's sentences one by one, with a reason. Practice, qualification and
controls are made of the articles: a copied sentence, which is supported, beside a sentence of another article, which
is not. The paper put both into every summary and mixed two sentences of one article; here they are items of their
own, so that no summary is read with something foreign in it.
"""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ensue.benchmarks import settings as read
from ensue.benchmarks.base import Setting, content_of
from ensue.benchmarks.nlu.files import Found, Row, jsonl_rows
from ensue.benchmarks.people.aside import QUALIFICATION, set_aside
from ensue.benchmarks.people.export import Export
from ensue.benchmarks.people.form import Field, Form, Panel, Values, options
from ensue.benchmarks.people.kind import Built, Files, Phase, Plain, Reads, WorkItem, instructions
from ensue.benchmarks.qags.data.files import text_list
from ensue.benchmarks.qags.data.sets import PLACES, find_set
from ensue.errors import EnsueError
from ensue.text.sentences import split_sentences

FIELD = "judgments"
# The sets of `ensue run qags` that have the form of an export.
SETS = ("own", "cnndm", "xsum")
# Shorter sentences of an article say too little to be a check.
_LEAST_WORDS = 6


class Summary(NamedTuple):
    """An article and the sentences of a summary of it."""

    id: str
    article: str
    sentences: tuple[str, ...]

    @property
    def content(self) -> str:
        return content_of(self.article, self.sentences)


class Consistency(Plain):
    """The kind `consistency`."""

    name = "consistency"
    about = "is each sentence of a summary supported by its article? (QAGS)"
    reads = Reads(
        "JSON lines with an `article` and a `summary` (or its `sentences`) each, or the folder of QAGS's data."
    )
    settings: Mapping[str, Setting] = {
        "set": Setting(
            "own", f"the set of `ensue run qags` it becomes: {', '.join(SETS)}", read.one_of(*SETS)
        ),
        "controls": Setting(10, "how many controls are made of the articles", read.whole(0)),
        "training": Setting(2, "how many training items are made of the articles", read.whole(0)),
        "qualification": QUALIFICATION,
        "limit": Setting(None, "only the first N summaries", read.optional(read.whole())),
    }
    # The paper's: three people, thirty seconds, 15 cents and a bonus of 85.
    defaults: Mapping[str, Any] = {"labels": 3, "minimum_seconds": 30.0, "pay": 0.15, "bonus": 0.85}

    def build(self, data: str | None, settings: Mapping[str, Any], seed: int) -> Built:
        summaries = read_summaries(data, settings["set"])[: settings["limit"]]
        least = float(settings["minimum_seconds"])
        work = [
            WorkItem(_form(one.article, one.sentences, least), {"id": one.id, "content": one.content})
            for one in summaries
        ]
        made = _checks(summaries, settings, least, random.Random(f"{seed}/checks"))
        notes = () if made or len(summaries) > 1 else ("one article alone makes no controls and no training",)
        title = "Is each sentence supported by the article?"
        return Built(title, instructions(__file__, "consistency"), [*made, *work], str(data), notes)

    def right(self, gold: Values, values: Values) -> bool:
        """Return whether all sentences are judged as expected, whatever the reasons."""
        expected, given = gold[FIELD], values.get(FIELD) or []
        return [one["value"] for one in expected] == [one.get("value") for one in given]

    def files(self, export: Export, data: str | None) -> Files:
        """Return the judgments as `ensue run qags` reads them; workers are numbered as they entered."""
        name = str(export.settings.get("set", "own"))
        summaries = {one.id: one for one in read_summaries(export.data(data), name)}
        workers = {annotator: number for number, annotator in enumerate(export.annotators, 1)}
        given: dict[str, list[tuple[int, Sequence[Mapping[str, Any]]]]] = {}
        for one in export.answers():
            found = summaries.get(one.item)
            if found is None or found.content != one.key.get("content"):
                raise EnsueError(
                    f"The summary {one.item} is not as it was judged in {export.data(data)}; "
                    "name the project's data with --data."
                )
            given.setdefault(one.item, []).append((workers[one.annotator], one.values[FIELD]))
        if not given:
            raise EnsueError("Nobody has judged a summary yet.")
        lines = [_line(summaries[id], given[id]) for id in summaries if id in given]
        notes = [f"{len(given)} of {len(summaries)} summaries are judged"]
        return Files({"/".join(PLACES[name]): "".join(lines)}, notes)


def read_summaries(data: str | None, name: str) -> list[Summary]:
    """Read summaries to be judged: JSON lines of `article` and `summary` or `sentences`, or QAGS's own lines.

    A `reference` is put before its article, as the paper does with XSum's. A folder is that of `ensue run qags`.
    """
    if data is None:
        raise EnsueError(
            "A consistency project needs --data: JSON lines with an article and a summary each, or QAGS's folder."
        )
    path = Path(data).expanduser()
    found = find_set(path, name) if path.is_dir() else path
    if found is None:
        raise EnsueError(f"{path} has no {PLACES[name][1]}; give a file, or another set=…")
    summaries: dict[str, Summary] = {}
    for number, row in enumerate(jsonl_rows(Found(found))):
        one = _summary(row, number)
        if one.id in summaries:
            row.refuse(f"the id {one.id!r} is there already")
        summaries[one.id] = one
    if not summaries:
        raise EnsueError(f"{found} has no summary in it.")
    return list(summaries.values())


def _summary(row: Row, number: int) -> Summary:
    id = row.text("id") if "id" in row.fields else str(number)
    article = row.text("article")
    if "reference" in row.fields:
        article = f"{row.text('reference')} {article}"
    if "summary_sentences" in row.fields:
        sentences = tuple(one.text("sentence") for one in row.rows("summary_sentences"))
    elif "sentences" in row.fields:
        sentences = text_list(row, "sentences")
    else:
        sentences = tuple(split_sentences(row.text("summary")))
    if not sentences:
        row.refuse("the summary has no sentences; take the line away or give it some")
    return Summary(id, article, sentences)


def _form(article: str, sentences: Sequence[str], least: float) -> Form:
    asked = Field(
        FIELD,
        "sentences",
        "Is the sentence supported by the article?",
        {"panel": "summary", **options(("yes", "Yes"), ("no", "No")), "reason": "required"},
        help="Give a reason in a few words.",
    )
    panels = (Panel("article", "Article", article), Panel("summary", "Summary", sentences=tuple(sentences)))
    return Form(panels, (asked,), minimum_seconds=least)


def _checks(
    summaries: Sequence[Summary], settings: Mapping[str, Any], least: float, chance: random.Random
) -> list[WorkItem]:
    """Make practice, qualification and controls, as many as there are articles for."""
    long = {one.id: _sentences_of(one.article) for one in summaries}
    chosen = [one for one in summaries if long[one.id]]
    chance.shuffle(chosen)
    made: list[WorkItem] = []
    aside = set_aside(chosen, settings)
    asked: list[tuple[Phase, Summary]] = [*aside.taught(), *(("work", one) for one in aside.controls)]
    for phase, one in asked:
        strange = [
            text
            for other in chosen
            if other.id != one.id
            for text in long[other.id]
            if text not in one.article
        ]
        if not strange:
            continue
        pair = [(chance.choice(long[one.id]), "yes"), (chance.choice(strange), "no")]
        chance.shuffle(pair)
        copied = next(place for place, (_, said) in enumerate(pair, 1) if said == "yes")
        gold = {FIELD: [{"value": said} for _, said in pair]}
        words = f"Sentence {copied} stands in the article as it is; the other is from another article."
        form = _form(one.article, [text for text, _ in pair], least if phase == "work" else 0.0)
        key = {"id": f"{'check' if phase == 'work' else phase}:{one.id}"}
        made.append(WorkItem(form, key, phase, control=phase == "work", gold=gold, words=words))
    return made


def _sentences_of(article: str) -> list[str]:
    return [text for text in split_sentences(article) if len(text.split()) >= _LEAST_WORDS]


def _line(summary: Summary, given: Sequence[tuple[int, Sequence[Mapping[str, Any]]]]) -> str:
    sentences = [
        {
            "sentence": text,
            "responses": [
                {
                    "worker_id": worker,
                    "response": said[place]["value"],
                    "reason": said[place].get("reason", ""),
                }
                for worker, said in given
            ],
        }
        for place, text in enumerate(summary.sentences)
    ]
    return json.dumps({"article": summary.article, "summary_sentences": sentences}, ensure_ascii=False) + "\n"


KIND = Consistency()
