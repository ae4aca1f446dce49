"""The zero-shot Shuffle Test and its k-block form: does a model prefer the text in its own order?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, NamedTuple

from ensue.benchmarks import naming
from ensue.benchmarks import settings as read
from ensue.benchmarks.base import Outcome, RunContext, Setting, content_of
from ensue.benchmarks.coherence.documents import DocumentsRun, DocumentsTask
from ensue.benchmarks.coherence.rating import rate_texts, rater_of, rater_signature, read_in_part
from ensue.benchmarks.marks import BY, MARK
from ensue.benchmarks.people.human import people_of
from ensue.benchmarks.shuffle.judging import metric_rows, scores_of
from ensue.benchmarks.shuffle.permute import document_seed, order_count, sentence_order, shuffled_orders
from ensue.errors import EnsueError
from ensue.metrics.preference import Verdict, prefer_per_token, prefer_total
from ensue.models.protocols import Generator, Model, Rater, Scorer, require
from ensue.models.request import Policy, Request, Score
from ensue.report.results import Item
from ensue.scoring.engine import Scoring, choices
from ensue.scoring.surprisal import joined_ends, profile_version
from ensue.shelf import Joined, Shelf
from ensue.text.documents import Document

SETTINGS = {
    "block_size": Setting(
        [1, 2, 3, 4, 5], "sentences per block, one result row each", read.many(read.whole())
    ),
    "shuffles": Setting(20, "shuffled versions per document and block size", read.whole()),
    "max_sentences": Setting(
        20, "keep only the first N sentences of a document (none: all)", read.optional(read.whole(2))
    ),
    "joiner": Setting(" ", "what stands between sentences", read.text),
    "by": Setting(
        None,
        "likelihood, rating (of models that rate whole texts) or generation (a model is asked which text is the "
        "original); none: likelihood where the model gives it, else rating",
        read.optional(read.one_of("likelihood", "rating", BY)),
    ),
    **naming.SETTINGS,
    **read.POLICY_SETTINGS,
    **read.DOCUMENT_SETTINGS,
    "allow_shuffle_trained": Setting(
        "no", "yes: also run a model that was trained on shuffled text", read.one_of("no", "yes")
    ),
}


# What a model is told that is asked to name its choice.
_BEFORE = (
    "Two texts consist of the same sentences. One has them in their original order; in the other they have been "
    "shuffled."
)
_QUESTION = "Which text has its sentences in the original order?"
_PREFERRED: dict[Verdict, str] = {"good": "original", "bad": "shuffled", "same": "same"}


class ShuffledVersion(NamedTuple):
    """One shuffled version of a document: its block order and its text."""

    document: Document
    block_size: int
    number: int
    order: tuple[int, ...]
    text: str

    @property
    def id(self) -> str:
        return f"{self.document.id}#k{self.block_size}#{self.number}"

    @property
    def sentences(self) -> tuple[str, ...]:
        """Its sentences, in its own order."""
        every = self.document.sentences
        return tuple(every[i] for i in sentence_order(len(every), self.block_size, self.order))

    @property
    def asked(self) -> str:
        """A digest of the document and of this order of it."""
        return content_of(self.document.sentences, self.block_size, self.order)


class _Judged(NamedTuple):
    """The items of all versions, what was scored for them, and how."""

    items: Collection[Item]
    signature: str
    tokens: int
    extras: Mapping[str, Iterable[dict[str, Any]]]
    notes: Counter[str]


class _Asked(NamedTuple):
    """What a request is of: a document as it is, or a shuffled version of it."""

    document: Document
    version: ShuffledVersion | None = None


@dataclass
class Used:
    """What was left out of documents or cut, and by block size the domains of those that have no shuffled version."""

    skipped: Counter[str]
    notes: Counter[str] = field(default_factory=Counter)
    single: dict[int, list[str]] = field(default_factory=dict)


@dataclass(frozen=True)
class ShuffleRun(DocumentsRun):
    """The test with its documents read and its settings fixed."""

    def evaluate(self, model: Model, context: RunContext) -> Outcome:
        """Score or rate every document and its shuffled versions, and judge each pair."""
        export = people_of(model, "shuffle")
        if export is not None:
            from ensue.benchmarks.shuffle.people import outcome_of

            return outcome_of(self, model, export)
        naming_it = self.settings["by"] == BY
        generator = require(model, Generator, "Choice by generation") if naming_it else None
        rater = None if naming_it else rater_of(model, self.settings, "The Shuffle Test")
        scorer = (
            None if rater is not None or generator is not None else require(model, Scorer, "The Shuffle Test")
        )
        self._zero_shot(model)
        if scorer is not None:
            used = Used(Counter(self.documents.skipped))
            found = self._by_likelihood(scorer, used, context)
        else:
            documents, versions, used = self.versions()
            if generator is not None:
                found = self._by_generation(generator, versions, context)
            else:
                assert rater is not None
                found = _by_rating(rater, documents, versions, context)
        return Outcome(
            items=found.items,
            metrics=list(metric_rows(found.items, used.single)),
            signature=f"{found.signature} {self._signature()}",
            skipped=dict(used.skipped),
            tokens=found.tokens,
            extras=found.extras,
            notes=used.notes + found.notes,
        )

    def _by_likelihood(self, scorer: Scorer, used: Used, context: RunContext) -> _Judged:
        """Judge document by document as scores come, and keep on disk what is not needed for the metrics."""
        scoring = Scoring(scorer, policy=self._policy(), journal=context.journal, progress=context.progress)
        refusing = scoring.policy.window == "refuse"
        found = scoring.each(self._requests(used), self._characters(), refusing=refusing)
        by_size: dict[int, Shelf[Item]] = {size: Shelf() for size in self.settings["block_size"]}
        profiles: Shelf[dict[str, Any]] = Shelf()
        tokens = 0
        for _, group in groupby(found, key=lambda one: one[0].document.id):
            (_, (original, *_)), *others = group
            pairs = [(one.version, answer.score) for one, answer in others if one.version is not None]
            its_items = [_scored_item(version, original, score) for version, score in pairs]
            for item in its_items:
                by_size[item["settings"]["block_size"]].append(item)
            accuracy = _accuracy(its_items)
            profiles.append(_profile_row(*pairs[0], original, self.settings["joiner"], accuracy))
            tokens += original.tokens + sum(score.tokens for _, score in pairs)
        items = Joined(by_size.values())
        self._some(items)
        signature = choices(scorer, self._policy())
        return _Judged(items, signature, tokens, {"profiles": profiles}, scoring.notes)

    def _requests(self, used: Used) -> Iterator[tuple[_Asked, Request]]:
        """Yield each document that has shuffled versions, and these; the first of them is profiled as well."""
        for document, versions in self._shuffled(used):
            if versions:
                yield _Asked(document), Request(self._text(document.sentences), detail=True)
            for place, version in enumerate(versions):
                yield _Asked(document, version), Request(version.text, detail=place == 0)

    def _characters(self) -> int:
        """Count about the characters of all texts that are scored."""
        limit, shuffles = self.settings["max_sentences"], self.settings["shuffles"]
        total = 0
        for document in self.documents.items:
            sentences = document.sentences[:limit]
            orders = [order_count(len(sentences), size) - 1 for size in self.settings["block_size"]]
            times = sum(min(shuffles, count) for count in orders)
            total += (1 + times) * sum(map(len, sentences)) if times else 0
        return total

    def _by_generation(
        self, generator: Generator, versions: Collection[ShuffledVersion], context: RunContext
    ) -> _Judged:
        """Ask which of two texts is the original; a reply that names none is wrong."""
        choices = [
            naming.Choice(v.id, _BEFORE, (self._text(v.document.sentences), v.text), _QUESTION)
            for v in versions
        ]
        tokens = self.settings["answer_tokens"]
        chosen = naming.choose(generator, choices, self.seed, tokens, context)
        items: Shelf[Item] = Shelf()
        for version, one in zip(versions, chosen, strict=True):
            verdict: Verdict = "same" if one.place is None else "good" if one.place == 0 else "bad"
            item = _item(version, scores_of(verdict, None), {}, {})
            item["settings"] |= MARK
            item["outputs"] |= {"preferred": _PREFERRED[verdict], **naming.outputs_of(one)}
            items.append(item)
        return _Judged(items, naming.signature_of(generator, tokens), 0, {}, naming.unnamed(chosen))

    def _zero_shot(self, model: Model) -> None:
        if model.card.trained_on_shuffled_text and self.settings["allow_shuffle_trained"] == "no":
            raise EnsueError(
                f"{model.card.name} was trained on shuffled text, so its Shuffle Test is not zero-shot; "
                f"run it all the same with --set allow_shuffle_trained=yes."
            )

    def versions(self) -> tuple[Sequence[Document], Collection[ShuffledVersion], Used]:
        """Return the documents as they are used, their shuffled versions block size by block size, and what was left
        out or cut."""
        used = Used(Counter(self.documents.skipped))
        documents: Shelf[Document] = Shelf()
        by_size: dict[int, Shelf[ShuffledVersion]] = {size: Shelf() for size in self.settings["block_size"]}
        for document, its_own in self._shuffled(used):
            documents.append(document)
            for version in its_own:
                by_size[version.block_size].append(version)
        versions = Joined(by_size.values())
        self._some(versions)
        return documents, versions, used

    def _some(self, found: Collection[Any]) -> None:
        if not found:
            raise EnsueError(
                f"No document of {self.source} is long enough to shuffle: each needs two blocks of different text."
            )

    def _shuffled(self, used: Used) -> Iterator[tuple[Document, list[ShuffledVersion]]]:
        """Yield each document, cut to the sentence limit, and its shuffled versions; count what is left out."""
        limit = self.settings["max_sentences"]
        for document in self.documents.items:
            if limit is not None and len(document.sentences) > limit:
                used.notes[f"documents cut to {limit} sentences"] += 1
                document = Document(document.id, document.sentences[:limit], document.domain)
            versions = []
            for size in self.settings["block_size"]:
                own = self._versions(document, size, used.skipped)
                if not own:
                    used.single.setdefault(size, []).append(document.domain)
                versions += own
            yield document, versions

    def _versions(self, document: Document, size: int, skipped: Counter[str]) -> list[ShuffledVersion]:
        count = len(document.sentences)
        if count <= size:
            skipped[f"too short for block size {size}"] += 1
            return []
        seed = document_seed(self.seed, document.id, size)
        wanted, joiner = self.settings["shuffles"], self.settings["joiner"]
        orders = shuffled_orders(document.sentences, size, wanted, seed, joiner)
        if not orders:
            skipped[f"all orders read alike at block size {size}"] += 1
        return [
            ShuffledVersion(
                document,
                size,
                number,
                order,
                self._text(tuple(document.sentences[i] for i in sentence_order(count, size, order))),
            )
            for number, order in enumerate(orders)
        ]

    def _text(self, sentences: tuple[str, ...]) -> str:
        return str(self.settings["joiner"]).join(sentences)

    def _policy(self) -> Policy:
        s = self.settings
        return Policy(window=s["window"], bos=s["bos"], max_length=s["max_length"], masked=s["masked"])

    def _signature(self) -> str:
        s = self.settings
        joiner = s["joiner"].encode("unicode_escape").decode()
        zero_shot = "" if s["allow_shuffle_trained"] == "no" else " zero-shot:unchecked"
        return (
            f"shuffles:{s['shuffles']} sentences:{s['max_sentences']} joiner:'{joiner}' "
            f"ties:1e-4 seed:{self.seed}{zero_shot}"
        )


def _by_rating(
    rater: Rater, documents: Sequence[Document], versions: Collection[ShuffledVersion], context: RunContext
) -> _Judged:
    """Judge by ratings: the rating of a text has no tokens, so there is nothing per token and no profile."""
    having = {version.document.id for version in versions}
    rated = Shelf(document for document in documents if document.id in having)
    texts = Shelf(document.sentences for document in rated)
    notes = read_in_part(rater, texts)
    texts.extend(version.sentences for version in versions)
    ratings = iter(rate_texts(rater, texts, context))
    originals = {document.id: next(ratings) for document in rated}
    items: Shelf[Item] = Shelf()
    for version, shuffled in zip(versions, ratings, strict=True):
        original = originals[version.document.id]
        scores = scores_of(prefer_total(original, shuffled), None)
        items.append(_item(version, scores, {"rating": original}, {"rating": shuffled}))
    return _Judged(items, rater_signature(rater), 0, {}, notes)


def _scored_item(version: ShuffledVersion, original: Score, shuffled: Score) -> Item:
    total = prefer_total(original.logprob, shuffled.logprob)
    mean = prefer_per_token(original.logprob_per_token, shuffled.logprob_per_token)
    return _item(version, scores_of(total, mean), _numbers(original), _numbers(shuffled))


def _item(
    version: ShuffledVersion,
    scores: dict[str, float],
    original: Mapping[str, float],
    shuffled: Mapping[str, float],
) -> Item:
    return Item(
        id=version.id,
        cluster=version.document.id,
        task="shuffle",
        settings={"block_size": version.block_size},
        scores=scores,
        outputs={
            "domain": version.document.domain,
            "order": list(version.order),
            "original": original,
            "shuffled": shuffled,
        },
        # The document, not its order: other seeds shuffle the same document.
        content=content_of(version.document.sentences),
        asked=version.asked,
    )


def _profile_row(
    version: ShuffledVersion, shuffled: Score, original: Score, joiner: str, accuracy: dict[str, float]
) -> dict[str, Any]:
    """Return a line of profiles.jsonl: each sentence's surprisal, in the document as it is and as first shuffled."""
    document = version.document
    order = sentence_order(len(document.sentences), version.block_size, version.order)
    mixed = [document.sentences[i] for i in order]
    name = f"shuffled (block size {version.block_size})"
    sentences, unmixed = list(document.sentences), list(range(len(order)))
    versions = [
        profile_version("original", sentences, unmixed, joined_ends(sentences, joiner), original),
        profile_version(name, mixed, order, joined_ends(mixed, joiner), shuffled),
    ]
    return {
        "document": document.id,
        "domain": document.domain,
        "accuracy": accuracy,
        "versions": [v for v in versions if v is not None],
    }


def _numbers(score: Score) -> dict[str, float]:
    return {"logprob": score.logprob, "tokens": score.tokens, "logprob_per_token": score.logprob_per_token}


def _accuracy(items: Sequence[Item]) -> dict[str, float]:
    """Return a document's accuracy at each block size."""
    found: dict[str, list[float]] = {}
    for item in items:
        found.setdefault(str(item["settings"]["block_size"]), []).append(item["scores"]["accuracy"])
    return {size: sum(values) / len(values) for size, values in found.items()}


TASK = DocumentsTask("shuffle", SETTINGS, ShuffleRun)
