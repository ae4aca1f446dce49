"""The zero-shot Shuffle Test and its k-block form: does a model prefer the text in its own order?"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from ensue.benchmarks import naming
from ensue.benchmarks import settings as read
from ensue.benchmarks.base import Outcome, RunContext, Setting, content_of
from ensue.benchmarks.coherence.documents import DocumentsRun, DocumentsTask
from ensue.benchmarks.coherence.rating import rate_texts, rater_of, rater_signature, read_in_part
from ensue.benchmarks.marks import BY, MARK
from ensue.benchmarks.people.human import people_of
from ensue.benchmarks.shuffle.judging import SingleBlocks, metric_rows, scores_of
from ensue.benchmarks.shuffle.permute import document_seed, sentence_order, shuffled_orders
from ensue.errors import EnsueError
from ensue.metrics.preference import Verdict, prefer_per_token, prefer_total
from ensue.models.protocols import Generator, Model, Rater, Scorer, require
from ensue.models.request import Policy, Request, Score
from ensue.report.results import Item
from ensue.scoring.engine import choices, score
from ensue.scoring.surprisal import joined_ends, profile_version
from ensue.text.documents import Document

SETTINGS = {
    "block_size": Setting(
        [1, 2, 3, 4, 5], "sentences per block, one result row each", read.many(read.whole())
    ),
    "shuffles": Setting(20, "shuffled versions per document and block size", read.whole()),
    "max_sentences": Setting(
        20, "documents are cut after so many sentences (none: never)", read.optional(read.whole(2))
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
    def sentences(self) -> list[str]:
        """Its sentences, in its own order."""
        every = self.document.sentences
        return [every[i] for i in sentence_order(len(every), self.block_size, self.order)]

    @property
    def asked(self) -> str:
        """A digest of the document and of this order of it."""
        return content_of(self.document.sentences, self.block_size, self.order)


class _Judged(NamedTuple):
    """The items of all versions, what was scored for them, and how."""

    items: list[Item]
    signature: str
    tokens: int
    extras: dict[str, list[dict[str, Any]]]
    notes: Counter[str]


@dataclass(frozen=True)
class ShuffleRun(DocumentsRun):
    """The test with its documents read and its settings fixed."""

    def evaluate(self, model: Model, context: RunContext) -> Outcome:
        """Score or rate every document and its shuffled versions, and judge each pair."""
        export = people_of(model, "shuffle")
        if export is not None:
            from ensue.benchmarks.shuffle.people import people_outcome

            return people_outcome(self, model, export)
        naming_it = self.settings["by"] == BY
        generator = require(model, Generator, "Choice by generation") if naming_it else None
        rater = None if naming_it else rater_of(model, self.settings, "The Shuffle Test")
        scorer = (
            None if rater is not None or generator is not None else require(model, Scorer, "The Shuffle Test")
        )
        self._zero_shot(model)
        documents, versions, skipped, notes = self.versions()
        used = {v.document.id for v in versions}
        single = self.single_blocks(documents, versions)
        documents = [d for d in documents if d.id in used]
        if scorer is not None:
            found = self._by_likelihood(scorer, documents, versions, context)
        elif generator is not None:
            found = self._by_generation(generator, versions, context)
        else:
            assert rater is not None
            found = _by_rating(rater, documents, versions, context)
        notes.update(found.notes)
        return Outcome(
            items=found.items,
            metrics=list(metric_rows(found.items, single)),
            signature=f"{found.signature} {self._signature()}",
            skipped=skipped,
            tokens=found.tokens,
            extras=found.extras,
            notes=notes,
        )

    def _by_likelihood(
        self,
        scorer: Scorer,
        documents: Sequence[Document],
        versions: Sequence[ShuffledVersion],
        context: RunContext,
    ) -> _Judged:
        shown = _first_versions(versions)
        # Document by document, so that what an interrupted run has scored is a sample of documents.
        asked: dict[Document | ShuffledVersion, Request] = {}
        for document, its_versions in _by_document(documents, versions):
            asked[document] = Request(self._text(document.sentences), detail=True)
            asked |= {version: Request(version.text, detail=version in shown) for version in its_versions}
        scored = score(
            scorer,
            list(asked.values()),
            policy=self._policy(),
            journal=context.journal,
            progress=context.progress,
        )
        found = dict(zip(asked, scored.scores, strict=True))
        originals = {document.id: found[document] for document in documents}
        pairs = [(version, found[version]) for version in versions]
        items = [_scored_item(v, originals[v.document.id], s) for v, s in pairs]
        accuracy = _accuracy_by_document(items)
        joiner = self.settings["joiner"]
        profiles = [
            _profile_row(v, joiner, originals[v.document.id], s, accuracy[v.document.id])
            for v, s in pairs
            if v in shown
        ]
        signature = choices(scorer, self._policy())
        return _Judged(items, signature, scored.tokens, {"profiles": profiles}, scored.notes)

    def _by_generation(
        self, generator: Generator, versions: Sequence[ShuffledVersion], context: RunContext
    ) -> _Judged:
        """Ask which of two texts is the original; a reply that names none is wrong."""
        choices = [
            naming.Choice(v.id, _BEFORE, (self._text(v.document.sentences), v.text), _QUESTION)
            for v in versions
        ]
        tokens = self.settings["answer_tokens"]
        chosen = naming.choose(generator, choices, self.seed, tokens, context)
        items = []
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

    def versions(self) -> tuple[list[Document], list[ShuffledVersion], dict[str, int], Counter[str]]:
        """Return the documents as they are used, their shuffled versions, and counts of what was left out or cut."""
        documents, notes = self._cut()
        versions, skipped = self._versions(documents)
        if not versions:
            raise EnsueError(
                f"No document of {self.source} is long enough to shuffle: each needs two blocks of different text."
            )
        return documents, versions, skipped, notes

    def single_blocks(
        self, documents: Sequence[Document], versions: Sequence[ShuffledVersion]
    ) -> SingleBlocks:
        """Return the domains of the documents that have no shuffled version at each block size."""
        have = {(version.block_size, version.document.id) for version in versions}
        return {
            size: [document.domain for document in documents if (size, document.id) not in have]
            for size in self.settings["block_size"]
        }

    def _cut(self) -> tuple[list[Document], Counter[str]]:
        """Cut documents to the sentence limit, and count how many were."""
        limit = self.settings["max_sentences"]
        notes: Counter[str] = Counter()
        out = []
        for document in self.documents.items:
            if limit is not None and len(document.sentences) > limit:
                notes[f"documents cut to {limit} sentences"] += 1
                document = Document(document.id, document.sentences[:limit], document.domain)
            out.append(document)
        return out, notes

    def _versions(self, documents: list[Document]) -> tuple[list[ShuffledVersion], dict[str, int]]:
        skipped = Counter(self.documents.skipped)
        versions = []
        for size in self.settings["block_size"]:
            for document in documents:
                count = len(document.sentences)
                if count <= size:
                    skipped[f"too short for block size {size}"] += 1
                    continue
                seed = document_seed(self.seed, document.id, size)
                orders = shuffled_orders(
                    document.sentences, size, self.settings["shuffles"], seed, self.settings["joiner"]
                )
                if not orders:
                    skipped[f"all orders read alike at block size {size}"] += 1
                for number, order in enumerate(orders):
                    sentences = tuple(document.sentences[i] for i in sentence_order(count, size, order))
                    versions.append(ShuffledVersion(document, size, number, order, self._text(sentences)))
        return versions, dict(skipped)

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


def _by_document(
    documents: Sequence[Document], versions: Sequence[ShuffledVersion]
) -> list[tuple[Document, list[ShuffledVersion]]]:
    of: dict[str, list[ShuffledVersion]] = {document.id: [] for document in documents}
    for version in versions:
        of[version.document.id].append(version)
    return [(document, of[document.id]) for document in documents]


def _by_rating(
    rater: Rater, documents: Sequence[Document], versions: Sequence[ShuffledVersion], context: RunContext
) -> _Judged:
    """Judge by ratings: the rating of a text has no tokens, so there is nothing per token and no profile."""
    texts = [list(document.sentences) for document in documents]
    ratings = rate_texts(rater, [*texts, *(version.sentences for version in versions)], context)
    originals = dict(zip((document.id for document in documents), ratings, strict=False))
    items = []
    for version, shuffled in zip(versions, ratings[len(documents) :], strict=True):
        original = originals[version.document.id]
        scores = scores_of(prefer_total(original, shuffled), None)
        items.append(_item(version, scores, {"rating": original}, {"rating": shuffled}))
    return _Judged(items, rater_signature(rater), 0, {}, read_in_part(rater, texts))


def _first_versions(versions: Sequence[ShuffledVersion]) -> set[ShuffledVersion]:
    """Return the first shuffled version of each document, whose surprisal profile is kept."""
    first: dict[str, ShuffledVersion] = {}
    for version in versions:
        first.setdefault(version.document.id, version)
    return set(first.values())


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
    version: ShuffledVersion, joiner: str, original: Score, shuffled: Score, accuracy: dict[str, float]
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


def _accuracy_by_document(items: list[Item]) -> dict[str, dict[str, float]]:
    """Return each document's accuracy at each block size."""
    found: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for item in items:
        found[item["cluster"]][str(item["settings"]["block_size"])].append(item["scores"]["accuracy"])
    return {d: {size: sum(v) / len(v) for size, v in sizes.items()} for d, sizes in found.items()}


TASK = DocumentsTask("shuffle", SETTINGS, ShuffleRun)
