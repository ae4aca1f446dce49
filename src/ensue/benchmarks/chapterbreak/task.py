"""ChapterBreak: does a model find the true beginning of the next chapter among beginnings of later ones?"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from ensue.benchmarks import settings as read
from ensue.benchmarks.base import Outcome, Prepared, RunContext, Setting
from ensue.benchmarks.chapterbreak.data.examples import BOUNDARIES, Example, Examples, read_examples
from ensue.benchmarks.chapterbreak.data.negatives import out_of_book
from ensue.benchmarks.chapterbreak.judging import items_of, metric_rows
from ensue.benchmarks.chapterbreak.ranking import Question, Ranker, SegmentRanker, TokenRanker
from ensue.errors import EnsueError
from ensue.models.protocols import Model, Scorer, SuffixScorer, require
from ensue.models.request import Policy

IN_BOOK = "in-book"

SETTINGS = {
    "prefix_tokens": Setting(
        [128, 256, 512, 1024, 2048, 4096, 8192],
        "tokens of context, one result row each; what does not fit the model becomes the most that does",
        read.many(read.whole()),
    ),
    "suffix_tokens": Setting([128], "tokens of each suffix, separator included", read.many(read.whole())),
    "separator": Setting("\n\n", "what stands before every suffix", read.text),
    "negatives": Setting(
        [IN_BOOK],
        "in-book (the data's own), same-split, other-split (drawn from other works)",
        read.many(read.one_of(IN_BOOK, "same-split", "other-split")),
    ),
    "boundary": Setting(
        None, f"only {', '.join(BOUNDARIES)} (none: all)", read.optional(read.many(read.one_of(*BOUNDARIES)))
    ),
    "max_length": Setting(
        None, "use no more than so many tokens even if the model takes more", read.optional(read.whole(2))
    ),
    "bos": read.POLICY_SETTINGS["bos"],
    "masked": read.POLICY_SETTINGS["masked"],
}


@dataclass(frozen=True)
class ChapterBreakRun:
    """The task with its examples read and its settings fixed; `split` and `limit` say which are asked about."""

    examples: Examples
    seed: int
    settings: dict[str, Any]
    split: str | None = None
    limit: int | None = None

    @property
    def fingerprint(self) -> str:
        return self.examples.fingerprint

    @property
    def source(self) -> str:
        return self.examples.source

    def evaluate(self, model: Model, context: RunContext) -> Outcome:
        """Score the suffixes of every example at every length, and judge each choice."""
        ranker = self._ranker(model, context)
        questions, skipped = self._questions()
        several = len(self.settings["suffix_tokens"]) > 1
        items = [
            item for ranked in ranker.rank(questions, context.progress) for item in items_of(ranked, several)
        ]
        if not items:
            raise EnsueError(f"No example of {self.source} could be scored.")
        return Outcome(
            items=items,
            metrics=list(metric_rows(items)),
            signature=f"{ranker.signature} {self._signature()}",
            skipped=dict(skipped + ranker.skipped),
            tokens=ranker.tokens,
            notes=Counter(self.examples.notes) + ranker.notes,
        )

    def _ranker(self, model: Model, context: RunContext) -> Ranker:
        s = self.settings
        suffixes = sorted(s["suffix_tokens"])
        if isinstance(model, SuffixScorer):
            return SegmentRanker(model, suffixes, s["prefix_tokens"], context.records)
        scorer = require(model, Scorer, "ChapterBreak")
        policy = Policy(window="refuse", bos=s["bos"], max_length=s["max_length"], masked=s["masked"])
        return TokenRanker(scorer, policy, s["separator"], suffixes, context.journal, s["prefix_tokens"])

    def _questions(self) -> tuple[list[Question], Counter[str]]:
        """The examples asked about with their negatives of each kind; one without some kind lacks only that."""
        pool = self._of_boundary(self.examples.items)
        chosen = self._first(pool)
        skipped = Counter(self.examples.skipped)
        negatives: dict[str, dict[str, tuple[str, ...]]] = {}
        for kind in self.settings["negatives"]:
            drawn = chosen if kind == IN_BOOK else out_of_book(pool, kind, self.seed)[0]
            negatives[kind] = {example.id: example.negatives for example in drawn}
            if lacking := sum(example.id not in negatives[kind] for example in chosen):
                skipped[f"examples without enough {kind} negatives"] += lacking
        questions = [
            Question(e, {kind: found[e.id] for kind, found in negatives.items() if e.id in found})
            for e in chosen
        ]
        return [question for question in questions if question.negatives], skipped

    def _of_boundary(self, examples: list[Example]) -> list[Example]:
        wanted = self.settings["boundary"] or BOUNDARIES
        chosen = [example for example in examples if example.boundary in wanted]
        if not chosen:
            there = ", ".join(dict.fromkeys(example.boundary for example in examples))
            raise EnsueError(f"{self.source} has no {' or '.join(wanted)} boundaries; it has {there}.")
        return chosen

    def _first(self, examples: list[Example]) -> list[Example]:
        """The examples of the split, up to the limit for each split and boundary."""
        taken: Counter[tuple[str, str]] = Counter()
        chosen = []
        for example in examples:
            place = (example.split, example.boundary)
            if self.split in (None, example.split) and (self.limit is None or taken[place] < self.limit):
                taken[place] += 1
                chosen.append(example)
        if not chosen:
            there = ", ".join(dict.fromkeys(example.split for example in examples))
            raise EnsueError(f"{self.source} has no split {self.split!r}; it has {there}.")
        return chosen

    def _signature(self) -> str:
        separator = self.settings["separator"].encode("unicode_escape").decode()
        return f"separator:'{separator}' ties:1e-6 seed:{self.seed}"


class ChapterBreakTask:
    """Make and judge the items of the benchmark."""

    settings = SETTINGS

    def prepare(
        self, task: str, data: str | None, limit: int | None, seed: int, settings: dict[str, Any]
    ) -> Prepared:
        if data is None:
            raise EnsueError(
                "chapterbreak needs --data: a file made by `ensue build chapterbreak`, or the published data set, "
                "simsun131/chapterbreak."
            )
        split = task or None
        # Other works' suffixes are drawn from all there is, so that --limit and the split do not change them.
        elsewhere = set(settings["negatives"]) - {IN_BOOK}
        examples = read_examples(
            data,
            split=None if "other-split" in elsewhere else split,
            limit=None if elsewhere else limit,
        )
        return ChapterBreakRun(examples, seed, settings, split, limit)


TASK = ChapterBreakTask()
