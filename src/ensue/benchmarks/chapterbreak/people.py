"""Annotation projects of kind `transitions`: what changes from one chapter to the next, by the scheme of table 1.

People read the end of the context and the opening of the next chapter. What they say becomes the file that
`ensue report --annotations` reads.
"""

from __future__ import annotations

import csv
import io
import random
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ensue.benchmarks import settings as read
from ensue.benchmarks.base import Setting, content_of
from ensue.benchmarks.chapterbreak.annotation import ANNOTATOR, ASPECTS, COLUMNS, Transition, read_annotations
from ensue.benchmarks.chapterbreak.data.examples import Example, read_examples
from ensue.benchmarks.people.aside import set_aside
from ensue.benchmarks.people.export import Export
from ensue.benchmarks.people.form import Field, Form, Panel, options
from ensue.benchmarks.people.kind import Built, Files, Phase, Plain, Reads, WorkItem, instructions
from ensue.errors import EnsueError

FILE = "annotations.csv"
_ASKED = {
    "events": "Does a new event begin?",
    "actors": "Does the point of view or the main character change?",
    "location": "Does the place change?",
    "continuity": "How does time go on?",
}
WORD = re.compile(r"\S+")
READS = Reads("ChapterBreak's JSON file, or what `ensue build chapterbreak` made of your own novels.")


class Transitions(Plain):
    """The kind `transitions`."""

    name = "transitions"
    about = "what changes from one chapter to the next: events, actors, location, time (ChapterBreak)"
    reads = READS
    settings: Mapping[str, Setting] = {
        "sample": Setting(
            300, "how many chapter breaks, chosen at random (none: all)", read.optional(read.whole())
        ),
        "context_words": Setting(500, "how much of the chapter's end is shown", read.whole()),
        "split": Setting(None, "only one split of the data", read.optional(read.text)),
        "training": Setting(
            None,
            "an annotation file with known answers: its examples come first, for practice",
            read.optional(read.file),
        ),
        "qualification": Setting(
            0, "how many of them are qualification, judged by bar, instead of practice", read.whole(0)
        ),
        "controls": Setting(0, "how many of them are controls among the work", read.whole(0)),
    }
    # Nothing in the data says what is right; without a file of known answers nothing can be a control.
    defaults: Mapping[str, Any] = {"labels": 3, "control_rate": 0.0}

    def build(self, data: str | None, settings: Mapping[str, Any], seed: int) -> Built:
        if data is None:
            raise EnsueError(
                "A transitions project needs --data: ChapterBreak's, or what `ensue build chapterbreak` made."
            )
        found = read_examples(data, split=settings["split"])
        breaks = [example for example in found.items if example.boundary == "chapter"]
        if not breaks:
            raise EnsueError(f"{data} has no chapter breaks.")
        known = _training(settings["training"], breaks)
        rest = [example for example in breaks if example.id not in known]
        words = settings["context_words"]
        answered = [example for example in breaks if example.id in known]
        checks = settings["qualification"] + settings["controls"]
        if checks > len(answered):
            raise EnsueError(
                f"qualification and controls want {checks} examples with known answers, of which there are"
                f" {len(answered)}; name a file of them as training, or more in it."
            )
        aside = set_aside(answered, {**settings, "training": len(answered) - checks})

        def taught(example: Example, phase: Phase, *, control: bool = False) -> WorkItem:
            gold = known[example.id]
            return WorkItem(_form(example, words), {"id": example.id}, phase, gold=gold, control=control)

        trained = [taught(example, phase) for phase, example in aside.taught()]
        trained += [taught(example, "work", control=True) for example in aside.controls]
        work = [
            WorkItem(
                _form(example, words),
                {"id": example.id, "content": content_of(example.context, example.gold)},
            )
            for example in sampled(rest, settings["sample"], seed)
        ]
        if not work:
            raise EnsueError(
                f"The answers to every chapter break of {data} are known; name fewer in {settings['training']}."
            )
        title = "What changes from one chapter to the next?"
        return Built(title, instructions(__file__, "transitions"), [*trained, *work], data)

    def files(self, export: Export, data: str | None) -> Files:
        """Return the annotations as `ensue report --annotations` reads them, a row an answer."""
        rows = [
            (one.item, *(one.values[aspect] for aspect in ASPECTS), one.annotator) for one in export.answers()
        ]
        if not rows:
            raise EnsueError("Nobody has annotated a transition yet.")
        file = io.StringIO()
        writer = csv.writer(file, lineterminator="\n")
        writer.writerows([(*COLUMNS, ANNOTATOR), *rows])
        return Files({FILE: file.getvalue()}, [f"{len({row[0] for row in rows})} transitions are annotated"])


def sampled(examples: Sequence[Example], count: int | None, seed: int) -> list[Example]:
    """Return so many examples chosen at random, in the order of the data."""
    if count is None or count >= len(examples):
        return list(examples)
    places = sorted(random.Random(f"{seed}/transitions").sample(range(len(examples)), count))
    return [examples[place] for place in places]


def _training(path: str | None, breaks: Sequence[Example]) -> dict[str, Transition]:
    """Return the agreed transitions of an annotation file; every one of its examples must be in the data."""
    if path is None:
        return {}
    found = read_annotations(Path(path).expanduser()).transitions
    agreed = {id: one for id, one in found.items() if all(one[aspect] is not None for aspect in ASPECTS)}
    if strange := sorted(agreed.keys() - {example.id for example in breaks}):
        raise EnsueError(f"{path} has the example {strange[0]!r}, which is not a chapter break of the data.")
    return agreed


def _form(example: Example, words: int) -> Form:
    panels = (
        Panel("context", "The chapter ends", end_of(example.context, words)),
        Panel("opening", "The next chapter begins", example.gold),
    )
    fields = tuple(
        Field(
            aspect,
            "choice",
            _ASKED[aspect],
            options(*((name, f"{name}: {about}") for name, about in said.items())),
        )
        for aspect, said in ASPECTS.items()
    )
    return Form(panels, fields)


def end_of(text: str, words: int) -> str:
    """Return the last words of a text as they stand, with a mark where something came before."""
    starts = [found.start() for found in WORD.finditer(text)]
    return text if len(starts) <= words else "… " + text[starts[-words] :]


KIND = Transitions()
