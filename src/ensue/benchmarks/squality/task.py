"""SQuALITY: can a model answer questions about a story with summaries like those that people write?"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ensue.benchmarks import settings as read
from ensue.benchmarks.base import LoadModel, Outcome, Prepared, PreparedTask, RunContext, Setting
from ensue.benchmarks.people.export import Export
from ensue.benchmarks.people.human import people_of
from ensue.benchmarks.squality import systems
from ensue.benchmarks.squality.data import (
    REFERENCES,
    Story,
    StoryQuestion,
    check_references,
    examples,
    find_file,
    find_version,
    read_stories,
    split_name,
)
from ensue.benchmarks.squality.evaluation import (
    METRICS,
    bertscore_by,
    human_items,
    judged_items,
    measures_of,
    people_items,
    rows_of,
)
from ensue.benchmarks.squality.human_eval import TASK as HUMAN_EVAL
from ensue.benchmarks.squality.human_eval import HumanEvalRun
from ensue.benchmarks.squality.inputs import STYLES
from ensue.benchmarks.squality.rounds import answers_to
from ensue.benchmarks.squality.statistics import statistics_row
from ensue.errors import EnsueError
from ensue.models.protocols import Encoder, Model
from ensue.records import file_digest
from ensue.version import __version__

SETTINGS = {
    "version": Setting(
        None, "v1, v1-3, v1-3/html …; the paper's v1, or else the newest, when none", read.optional(read.text)
    ),
    "split": Setting("test", "train, dev or test", split_name),
    "system": Setting(
        None,
        f"what summarises: {', '.join(systems.SYSTEMS)} (none: what the model can do)",
        read.optional(read.one_of(*systems.SYSTEMS)),
    ),
    "metrics": Setting(
        ["rouge", "meteor"], f"some of {', '.join(METRICS)}", read.many(read.one_of(*METRICS))
    ),
    "bertscore_model": Setting("minilm", "the encoder of BERTScore; the paper's is roberta-large", read.text),
    "bertscore_layer": Setting(None, "its layer (none: tuned, or last)", read.optional(read.whole(0))),
    "retrieve": Setting(
        None,
        "an encoder: the sentences nearest the question are retrieved with it, to be read or to be the summary",
        read.optional(read.text),
    ),
    "summaries": Setting(
        None, "written: .jsonl with the id and the summary of every question", read.optional(read.text)
    ),
    "words": Setting(237, "lead, retrieval: most words; people write 237 on average", read.whole()),
    "references": Setting(
        REFERENCES, "how many every question must have; none takes any number", read.optional(read.whole())
    ),
    "prompt": Setting(
        "plain",
        "generate: plain (as summarisers are trained) or chat (the model's chat template, with an instruction)",
        read.one_of(*STYLES),
    ),
    "max_input": Setting(
        None, "generate: most tokens read; as many as the model takes when none", read.optional(read.whole(8))
    ),
    "max_tokens": Setting(512, "generate: most tokens written", read.whole()),
    "min_tokens": Setting(0, "generate: fewest tokens written", read.whole(0)),
    "beams": Setting(4, "generate: width of the beam (an endpoint decides for itself)", read.whole()),
    "block_ngrams": Setting(0, "generate: no n-gram of this length twice; 0 allows all", read.whole(0)),
    "length_penalty": Setting(
        1.0, "generate: above 0 longer summaries win the beam, the higher the longer", read.number
    ),
    "statistics": Setting("yes", "no leaves out tables 5.2 and 5.3", read.one_of("yes", "no")),
}
# What changes a text that a model writes: a resumed run takes only texts that agree in all of it.
_WRITING = ("system", "prompt", "max_input", "max_tokens", *systems.DECODING)


@dataclass(frozen=True)
class SqualityRun:
    """The stories of a split, read and checked, with the settings fixed."""

    stories: list[Story]
    everything: list[Story]
    path: Path
    label: str
    limit: int | None
    seed: int
    settings: dict[str, Any]

    @property
    def fingerprint(self) -> str:
        return hashlib.sha256("\n".join(map(repr, self.stories)).encode("utf-8", "replace")).hexdigest()

    @property
    def source(self) -> str:
        return str(self.path)

    def evaluate(self, model: Model, context: RunContext) -> Outcome:
        """Have every question answered, and measure the answers against people's."""
        export = people_of(model, "squality")
        if export is not None:
            return self._by_people(model, export, context)
        system = systems.system_of(model, self.settings["system"])
        notes: Counter[str] = Counter()
        skipped: Counter[str] = Counter()
        load = context.load_further
        encoder = systems.retriever_of(system, model, self.settings["retrieve"], load)
        measures = measures_of(self.settings, load, notes)
        about = {"version": self.label, "split": self.settings["split"]}
        asked = list(examples(self.stories))
        if system == systems.HUMAN:
            shared = [one for one in asked if len(one.question.references) > 1]
            if len(shared) < len(asked):
                alone = "questions with one reference, which has none to be measured against"
                skipped[alone] = len(asked) - len(shared)
            items = human_items(shared, measures, about)
        else:
            summaries = systems.summarise(
                system,
                model,
                asked,
                self.settings,
                encoder=encoder,
                question=self._question(model, encoder),
                context=context,
                some=self.limit is not None,
            )
            notes.update(_noted(summaries))
            items = judged_items(asked, summaries, measures, about)
        notes.update(_odd_references(asked))
        row = statistics_row(self.everything, notes) if self.settings["statistics"] == "yes" else None
        return Outcome(
            items=items,
            metrics=rows_of(items),
            signature=self._signature(model, system, encoder, load),
            skipped=dict(skipped),
            tokens=0,
            extras={} if row is None else {"statistics": [row]},
            notes=+notes,
        )

    def _by_people(self, model: Model, export: Export, context: RunContext) -> Outcome:
        """Measure what the writers of a project answered to the data's own questions, as a model is measured."""
        notes: Counter[str] = Counter()
        asked = list(examples(self.stories))
        answers = answers_to(export, asked)
        chosen = [place for place, given in enumerate(answers) if given]
        if not chosen:
            raise EnsueError(
                f"{model.card.source} has no answer to a question of {self.path}; in a project without the stage"
                " questions people answer those of the data."
            )
        measures = measures_of(self.settings, context.load_further, notes)
        about = {"version": self.label, "split": self.settings["split"]}
        kept = [asked[place] for place in chosen]
        items = people_items(kept, [answers[place] for place in chosen], measures, about, notes)
        if not items:
            raise EnsueError(
                f"The answers of {model.card.source} are the only references of {self.path}, so that there is nothing"
                " to measure them against."
            )
        left = len(asked) - len(chosen)
        people = len({writer for given in answers for writer in given})
        return Outcome(
            items=items,
            metrics=rows_of(items),
            signature=f"model:{model.card.signed_name} export:{model.card.mark} people:{people} "
            f"set:{self.label}/{self.settings['split']} references:best rouge:stems",
            skipped={"questions that nobody answered": left} if left else {},
            tokens=0,
            notes=+notes,
        )

    def _question(self, model: Model, encoder: Encoder | None) -> dict[str, Any]:
        """Return all that what a model writes depends on; a retriever by what it is, since names are reused."""
        return {
            "version": __version__,
            "model": model.card.identity or model.card.name,
            "generation": model.card.generation,
            "retriever": None if encoder is None else encoder.card.identity or encoder.card.name,
            "max_length": model.card.max_length,
            "data": self.fingerprint,
            **{name: self.settings[name] for name in _WRITING},
        }

    def _signature(self, model: Model, system: str, encoder: Encoder | None, load: LoadModel) -> str:
        s, card = self.settings, model.card
        parts = [f"model:{card.signed_name}", f"weights:{card.mark}", f"system:{system}"]
        if system == systems.GENERATE:
            parts += [f"beams:{s['beams']}", f"tokens:{s['min_tokens']}-{s['max_tokens']}"]
            parts += [f"ngrams:{s['block_ngrams'] or 'all'}", f"length:{s['length_penalty']:g}"]
            parts.append("sampling:no")
            parts += [f"prompt:{s['prompt']}", f"input:{s['max_input'] or card.max_length or 'whole'}"]
            parts.append(f"generation:{card.generation[:12] or '-'}")
        if encoder is not None:
            parts.append(f"retrieve:{encoder.card.marked_name}")
        if system in (systems.LEAD, systems.RETRIEVAL):
            parts.append(f"words:{s['words']}")
        if system == systems.WRITTEN:
            parts.append(f"summaries:{file_digest(Path(s['summaries']).expanduser())[:12]}")
        parts += [f"set:{self.label}/{s['split']}", "references:best", "rouge:stems"]
        if "meteor" in s["metrics"]:
            parts.append("meteor:nltk")
        if "bertscore" in s["metrics"]:
            parts.append(bertscore_by(s, load))
        parts.append(f"seed:{self.seed}")
        return " ".join(parts)


def _prepare(task: str, data: str | None, limit: int | None, seed: int, settings: dict[str, Any]) -> Prepared:
    if task not in ("", HUMAN_EVAL):
        raise EnsueError(
            f"squality has no task {task!r}; there is {HUMAN_EVAL}, or none for the benchmark itself."
        )
    if data is None:
        raise EnsueError("squality needs --data: SQuALITY's folder, with v1 or v1-3 in it, or a file of it.")
    if settings["min_tokens"] > settings["max_tokens"]:
        raise EnsueError(
            f"A summary of {settings['min_tokens']} tokens at least and {settings['max_tokens']} at most cannot "
            f"be; set max_tokens higher or min_tokens lower."
        )
    folder = Path(data).expanduser()
    if task == HUMAN_EVAL:
        return HumanEvalRun.read(folder, limit, seed, settings)
    if not folder.exists():
        raise EnsueError(f"{folder} is not there; name SQuALITY's folder or a file of it with --data.")
    path, label = find_file(folder, settings["version"], settings["split"])
    stories = _checked(path, settings["references"])
    everything = _all_splits(folder, settings, stories) if settings["statistics"] == "yes" else stories
    if limit is not None:
        stories = stories[:limit]
    if not stories:
        raise EnsueError(f"{path} has no story in it; name another file with --data.")
    return SqualityRun(stories, everything, path, label, limit, seed, settings)


def _checked(path: Path, references: int | None) -> list[Story]:
    stories = read_stories(path)
    if references is not None:
        check_references(stories, path, references)
    for story in stories:
        if not story.text.strip():
            raise EnsueError(f"{path}, story {story.id} has no words besides its markup; leave it out.")
    return stories


def _all_splits(folder: Path, settings: dict[str, Any], own: list[Story]) -> list[Story]:
    """Read the stories of every split of the version that is here; those of the run's own are read already."""
    if folder.is_file():
        return own
    files = find_version(folder, settings["version"]).files
    splits = (own if split == settings["split"] else read_stories(path) for split, path in files.items())
    return [story for split in splits for story in split]


def _noted(summaries: Sequence[systems.Summary]) -> Counter[str]:
    """Count what was done to inputs and what came out empty."""
    notes = Counter[str]()
    for one in summaries:
        notes["summaries that are empty, which score 0"] += not one.text.strip()
        notes["stories cut to what the model takes"] += bool(one.about.get("words_cut"))
        notes["stories of which only the sentences nearest the question were read"] += bool(
            one.about.get("sentences_left_out")
        )
    return +notes


def _odd_references(asked: Sequence[StoryQuestion]) -> dict[str, int]:
    """Count questions with another number of references than the usual four; none where it was checked."""
    found = Counter(len(one.question.references) for one in asked)
    return {f"questions with {n} references": found[n] for n in sorted(found) if n != REFERENCES}


TASK = PreparedTask(SETTINGS, _prepare)
