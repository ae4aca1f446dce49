"""ChapterBreak: does a model find the true beginning of the next chapter among beginnings of later ones?"""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ensue.benchmarks import naming
from ensue.benchmarks import settings as read
from ensue.benchmarks.base import DataRun, Outcome, Prepared, PreparedTask, RunContext, Setting, content_of
from ensue.benchmarks.chapterbreak.data.examples import BOUNDARIES, Example, Examples, read_examples
from ensue.benchmarks.chapterbreak.data.negatives import out_of_book
from ensue.benchmarks.chapterbreak.named import NamedSuffix, name_suffixes
from ensue.benchmarks.chapterbreak.ranking import (
    Questions,
    Ranked,
    Ranker,
    SegmentRanker,
    SuffixChoice,
    TokenRanker,
)
from ensue.benchmarks.comparing import Asked, MeanScores
from ensue.benchmarks.marks import BY, MARK
from ensue.benchmarks.people.human import people_of
from ensue.errors import EnsueError
from ensue.models.protocols import Generator, Model, Scorer, SuffixScorer, require
from ensue.models.request import Policy
from ensue.report.figure import Figure
from ensue.report.results import Item, MetricRow
from ensue.shelf import Shelf
from ensue.stats.clustered import Interval, clustered_interval, clustered_ratio
from ensue.stats.ranges import POSITIVE, range_of

IN_BOOK = "in-book"

METRICS = ("accuracy", "rank", "margin", "ties")
# Two scores no further apart than this are the same.
TIE = 1e-6

SETTINGS = {
    "prefix_tokens": Setting(
        [128, 256, 512, 1024, 2048, 4096, 8192],
        "tokens of context, one result row each; too long for the model: as many as fit",
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
    "by": Setting(
        "likelihood",
        "likelihood (or the ranks of a segment-level model), or generation (a model is asked which text comes next)",
        read.one_of("likelihood", BY),
    ),
    **naming.SETTINGS,
    "max_length": Setting(
        None, "maximum number of tokens, where the model takes more", read.optional(read.whole(2))
    ),
    "bos": read.POLICY_SETTINGS["bos"],
    "masked": read.POLICY_SETTINGS["masked"],
}


@dataclass(frozen=True)
class ChapterBreakRun(DataRun[Examples]):
    """The task with its examples read and its settings fixed; `split` and `limit` say which are asked about."""

    seed: int
    split: str | None = None
    limit: int | None = None

    def evaluate(self, model: Model, context: RunContext) -> Outcome:
        """Score the suffixes of every example at every length, and judge each choice."""
        export = people_of(model, "chapterbreak")
        if export is not None:
            from ensue.benchmarks.chapterbreak.choosing import outcome_of

            return outcome_of(*self.questions(), model, export)
        if self.settings["by"] == BY:
            return self._by_generation(model, context)
        ranker = self._ranker(model, context)
        questions, skipped = self.questions()
        several = len(self.settings["suffix_tokens"]) > 1
        items = Shelf(
            item for ranked in ranker.rank(questions, context.progress) for item in items_of(ranked, several)
        )
        if not items:
            raise EnsueError(f"No example of {self.source} could be scored.")
        return Outcome(
            items=items,
            metrics=list(metric_rows(items)),
            signature=f"{ranker.signature} {self._signature()}",
            skipped=dict(skipped + ranker.skipped),
            tokens=ranker.tokens,
            notes=Counter(self.data.notes) + ranker.notes,
        )

    def _by_generation(self, model: Model, context: RunContext) -> Outcome:
        """Ask a model to name the suffix that comes next, and judge each choice."""
        generator = require(model, Generator, "Choice by generation")
        questions, skipped = self.questions()
        named, notes = name_suffixes(generator, questions, self.settings, self.seed, context)
        several = len(self.settings["suffix_tokens"]) > 1
        items = [named_item(one, several) for one in named]
        about = naming.signature_of(generator, self.settings["answer_tokens"])
        return Outcome(
            items=items,
            metrics=list(metric_rows(items)),
            signature=f"{about} {self._signature()}",
            skipped=dict(skipped),
            tokens=0,
            notes=Counter(self.data.notes) + notes,
        )

    def _ranker(self, model: Model, context: RunContext) -> Ranker:
        s = self.settings
        lengths = {"suffixes": sorted(s["suffix_tokens"]), "asked": s["prefix_tokens"]}
        if isinstance(model, SuffixScorer):
            return SegmentRanker(model=model, records=context.records, **lengths)
        scorer = require(model, Scorer, "ChapterBreak")
        policy = Policy(window="refuse", bos=s["bos"], max_length=s["max_length"], masked=s["masked"])
        return TokenRanker(
            model=scorer, policy=policy, separator=s["separator"], journal=context.journal, **lengths
        )

    def questions(self) -> tuple[Questions, Counter[str]]:
        """Return the examples asked about with their negatives of each kind; one that lacks a kind has the others."""
        examples = self.data.items
        # Of each example no more than this is held.
        brief = [(example.id, example.split, example.boundary) for example in examples]
        pool = self._of_boundary([boundary for _, _, boundary in brief])
        chosen = self._first(pool, brief)
        skipped = Counter(self.data.skipped)
        kinds: dict[str, dict[str, tuple[str, ...]] | None] = {}
        for kind in self.settings["negatives"]:
            if kind == IN_BOOK:
                kinds[kind] = None
                continue
            drawn, _ = out_of_book([examples[place] for place in pool], kind, self.seed)
            known = kinds[kind] = {example.id: example.negatives for example in drawn}
            if lacking := sum(brief[place][0] not in known for place in chosen):
                skipped[f"examples without enough {kind} negatives"] += lacking
        having = [
            place
            for place in chosen
            if any(drawn is None or brief[place][0] in drawn for drawn in kinds.values())
        ]
        return Questions(examples, having, kinds), skipped

    def _of_boundary(self, boundaries: Sequence[str]) -> list[int]:
        """Return the places of the examples at boundaries that are asked about."""
        wanted = self.settings["boundary"] or BOUNDARIES
        chosen = [place for place, boundary in enumerate(boundaries) if boundary in wanted]
        if not chosen:
            there = ", ".join(dict.fromkeys(boundaries))
            raise EnsueError(f"{self.source} has no {' or '.join(wanted)} boundaries; it has {there}.")
        return chosen

    def _first(self, places: Sequence[int], brief: Sequence[tuple[str, str, str]]) -> list[int]:
        """Return those in the split, up to the limit for each split and boundary."""
        taken: Counter[tuple[str, str]] = Counter()
        chosen = []
        for place in places:
            _, split, boundary = brief[place]
            if self.split in (None, split) and (self.limit is None or taken[split, boundary] < self.limit):
                taken[split, boundary] += 1
                chosen.append(place)
        if not chosen:
            there = ", ".join(dict.fromkeys(brief[place][1] for place in places))
            raise EnsueError(f"{self.source} has no split {self.split!r}; it has {there}.")
        return chosen

    def _signature(self) -> str:
        separator = self.settings["separator"].encode("unicode_escape").decode()
        return f"separator:'{separator}' ties:1e-6 seed:{self.seed}"


def _prepare(task: str, data: str | None, limit: int | None, seed: int, settings: dict[str, Any]) -> Prepared:
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
    return ChapterBreakRun(examples, settings, seed, split, limit)


def judge(gold: float, negatives: Sequence[float]) -> dict[str, float]:
    """Judge a choice: right only where the gold suffix is above every negative; one that ties ranks before it.

    >>> judge(-2.0, [-3.0, -2.5]) == {"accuracy": 1.0, "rank": 1.0, "margin": 0.5, "ties": 0.0}
    True
    >>> judge(-2.0, [-2.0, -1.0, -4.0]) == {"accuracy": 0.0, "rank": 3.0, "margin": -1.0, "ties": 0.0}
    True
    """
    margin = gold - max(negatives)
    return {
        "accuracy": float(margin > TIE),
        "rank": 1.0 + sum(gold - negative <= TIE for negative in negatives),
        "margin": margin,
        "ties": float(abs(margin) <= TIE),
    }


def suffix_digest(text: str) -> str:
    """Return what a submission calls a suffix by, whose place in the data would give away which is the gold one."""
    return content_of(text)


def asked_of(example: Example, negatives: Sequence[str]) -> str:
    """Return a digest of a context and its suffixes, whichever of them is the gold one."""
    return content_of(example.context, sorted(map(suffix_digest, (example.gold, *negatives))))


def items_of(ranked: Ranked, several_suffix_lengths: bool) -> Iterator[Item]:
    """Yield an item for each kind of negatives."""
    example = ranked.question.example
    lengths = ranked.prefix_tokens, ranked.suffix_tokens
    for kind, texts in ranked.question.negatives.items():
        scores = [ranked.scores[example.gold], *(ranked.scores[text] for text in texts)]
        outputs: dict[str, Any] = {
            "scores": scores,
            "choice": max(range(len(scores)), key=scores.__getitem__),
            "context_tokens": ranked.context_tokens,
        }
        if ranked.gold is not None:
            outputs["gold"] = ranked.gold._asdict()
        judged = judge(scores[0], scores[1:])
        yield _item(ranked.question, kind, lengths, several_suffix_lengths, judged, outputs)


def named_item(named: NamedSuffix, several_suffix_lengths: bool) -> Item:
    """Return the item of a choice by generation, which has neither ranks nor margins."""
    chosen = named.chosen
    lengths = named.prefix_tokens, named.suffix_tokens
    outputs = {"choice": chosen.place, **naming.outputs_of(chosen)}
    judged = {"accuracy": float(chosen.place == 0)}
    item = _item(named.question, named.kind, lengths, several_suffix_lengths, judged, outputs)
    item["settings"] |= MARK
    return item


def _item(
    question: SuffixChoice,
    kind: str,
    lengths: tuple[int, int],
    several_suffix_lengths: bool,
    scores: dict[str, float],
    outputs: Mapping[str, Any],
) -> Item:
    example, texts = question.example, question.negatives[kind]
    prefix, suffix = lengths
    name = f"{example.id}#n{prefix}" + (f"#s{suffix}" if several_suffix_lengths else "")
    return Item(
        id=name + ("" if kind == IN_BOOK else f"#{kind}"),
        cluster=f"{example.split}/{example.work}",
        task=example.split,
        settings={
            "boundary": example.boundary,
            "negatives": kind,
            "prefix_tokens": prefix,
            "suffix_tokens": suffix,
        },
        scores=scores,
        outputs={
            "example": example.id,
            "suffixes": [suffix_digest(text) for text in (example.gold, *texts)],
            **outputs,
        },
        content=content_of(example.context, example.gold, texts),
        asked=asked_of(example, texts),
    )


class _Column:
    """What metrics need of the items of one task and setting: a number takes eight bytes."""

    def __init__(self, first: Item) -> None:
        self.task, self.settings = first["task"], first["settings"]
        self.clusters: list[str] = []
        self.scores = {metric: array("d") for metric in METRICS if metric in first["scores"]}
        # Of gold suffixes whose words are known.
        self.counted: list[str] = []
        self.gold = {name: array("d") for name in ("logprob", "tokens", "words")}

    def add(self, item: Item, cluster: str) -> None:
        self.clusters.append(cluster)
        for metric, values in self.scores.items():
            values.append(item["scores"][metric])
        gold = item["outputs"].get("gold", {})
        if gold.get("words"):
            self.counted.append(cluster)
            for name, values in self.gold.items():
                values.append(gold[name])

    def rows(self) -> Iterator[MetricRow]:
        for metric, values in self.scores.items():
            yield self._row(metric, clustered_interval(values, self.clusters, bounds=range_of(metric)))
        if self.counted:
            logprobs, tokens, words = (values.tolist() for values in self.gold.values())
            lost = [-logprob for logprob in logprobs]
            surprisal = clustered_ratio(lost, words, self.counted, bounds=POSITIVE)
            # The mean over subwords times subwords per word is the sum over words (the paper's appendix E).
            yield self._row("word_perplexity", _exponential(surprisal))
            ratio = clustered_ratio(tokens, words, self.counted, bounds=POSITIVE)
            yield self._row("subwords_per_word", ratio)

    def _row(self, metric: str, found: Interval) -> MetricRow:
        return Figure(*found).row(self.task, metric, self.settings)


def metric_rows(items: Iterable[Item]) -> Iterator[MetricRow]:
    """Yield rows for each split, boundary, kind of negatives, suffix and prefix length, shorter prefixes first."""
    groups: dict[tuple[str, str, str, int], dict[int, _Column]] = {}
    # Each name is held once, however many items have it.
    names: dict[str, str] = {}
    for item in items:
        s = item["settings"]
        place = (item["task"], s["boundary"], s["negatives"], s["suffix_tokens"])
        by_prefix = groups.setdefault(place, {})
        if s["prefix_tokens"] not in by_prefix:
            by_prefix[s["prefix_tokens"]] = _Column(item)
        cluster = item["cluster"]
        by_prefix[s["prefix_tokens"]].add(item, names.setdefault(cluster, cluster))
    for by_prefix in groups.values():
        for _, column in sorted(by_prefix.items()):
            yield from column.rows()


def _exponential(interval: Interval) -> Interval:
    value, low, high = (None if x is None else math.exp(min(x, 700.0)) for x in interval[:3])
    assert value is not None  # only the ends of an interval may be missing
    return interval._replace(value=value, low=low, high=high)


class ChapterBreakComparing(MeanScores):
    """Compares runs by example: an item's id says its lengths only where a run has several.

    How much was read is a way of answering: lengths that both runs have are compared one by one. People read words,
    not tokens, and are held against a model's longest prefix.
    """

    def asked(self, item: Mapping[str, Any]) -> Asked:
        outputs, settings = item.get("outputs") or {}, item["settings"]
        way = {key: value for key, value in settings.items() if key.endswith(("_tokens", "_words"))}
        rest = {key: value for key, value in settings.items() if key not in way}
        return Asked(outputs.get("example", item["id"]), item["task"], rest, way)

    def headline(self, ways: Sequence[Mapping[str, Any]]) -> Sequence[Mapping[str, Any]]:
        return [max(ways, key=lambda way: (way.get("prefix_tokens", 0), way.get("suffix_tokens", 0)))]


TASK = PreparedTask(SETTINGS, _prepare)
COMPARING = ChapterBreakComparing()
