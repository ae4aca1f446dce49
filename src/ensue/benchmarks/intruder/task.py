"""The intruder: is the one sentence of a document that does not follow the one that a model finds to follow least?"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ensue.benchmarks import settings as read
from ensue.benchmarks.base import Outcome, RunContext, Setting
from ensue.benchmarks.coherence.documents import (
    DocumentsRun,
    DocumentsTask,
    documents_signature,
    generator_of,
    long_enough,
    policy_of,
    portions,
    sentence_settings,
    within,
)
from ensue.benchmarks.coherence.rating import rater_of, rater_signature, read_in_part
from ensue.benchmarks.intruder.edits import ENGLISH, KINDS, Edited, Pool, edit
from ensue.benchmarks.intruder.finders import by_rating, by_reading, insertion_by_likelihood
from ensue.benchmarks.intruder.judging import UNTOUCHED, Version, item_of, metric_rows
from ensue.benchmarks.intruder.rules import (
    BELONGING,
    EVERY_RULE,
    INSERTION,
    RATERS_RULES,
    REMOVAL,
    RULES,
    Sentences,
    Values,
    crossfit,
)
from ensue.benchmarks.people.human import people_of
from ensue.errors import EnsueError
from ensue.fetch.following import encoder_mark, known_calibrations, reader_beside
from ensue.models.protocols import Encoder, Model, Rater, Reader, Scorer, portion_of, require
from ensue.records import digest_of
from ensue.report.results import Item
from ensue.scoring.engine import choices
from ensue.scoring.following import Following, Pieces, follow
from ensue.scoring.verdict import RATE, RULE, Calibration
from ensue.text.documents import Document

# Of fewer sentences there is too little to tell one from the others.
FEWEST = 6
# Versions are scored together until the texts before their sentences have so many characters, all held at once: those
# of some 60 and 500 documents of twenty sentences.
_ON_CPU, _ELSEWHERE = 10_000_000, 80_000_000


def _share(text: str) -> float:
    value = read.number(text)
    if not 0.0 < value < 1.0:
        raise ValueError("a number between 0 and 1")
    return value


SETTINGS = {
    "kinds": Setting(list(KINDS), f"kinds of edits: {', '.join(KINDS)}", read.many(read.one_of(*KINDS))),
    "rules": Setting(
        None,
        f"only these of {', '.join(EVERY_RULE)} (none: all that the model allows but insertion, which takes long)",
        read.optional(read.many(read.one_of(*EVERY_RULE))),
    ),
    "encoder": Setting(
        "minilm",
        "model whose vectors say how alike sentences are (none: do without)",
        read.optional(read.text),
    ),
    "reader": Setting(
        "auto",
        "model that says which sentences belong (none: do without; auto: smollm2-reader with minilm)",
        read.optional(read.text),
    ),
    "false_alarms": Setting(
        RATE, "share of untouched documents in which a sentence may be said to stand out", _share
    ),
    **sentence_settings(20, FEWEST),
}


@dataclass(frozen=True)
class IntruderRun(DocumentsRun):
    """The test with its documents read and its settings fixed."""

    def depends_on(self, model: Model) -> dict[str, Any]:
        """Return what results depend on beside data, settings and weights: the calibrations of the model."""
        known = known_calibrations(model.card, RULE)
        return {"rule": RULE} | ({"calibration": digest_of(known)[:16]} if known else {})

    def evaluate(self, model: Model, context: RunContext) -> Outcome:
        """Measure the sentences of every version of every document, and judge each rule by them."""
        export = people_of(model, "intruder")
        if export is not None:
            from ensue.benchmarks.intruder.people import outcome_of

            return outcome_of(self, model, export)
        rater = rater_of(model, self.settings, "The intruder")
        if rater is not None:
            return self._by_rating(rater, context)
        if isinstance(model, Reader) and not isinstance(model, Scorer):
            return self._by_reading(model)
        scorer = require(model, Scorer, "The intruder")
        encoder, reader = self._encoder(context), self._reader(context)
        rules = self._rules(reader is not None)
        scorer.check(policy_of(self.settings))
        versions, skipped, notes = self.versions()
        measured, tokens = self._measure(scorer, encoder, reader, versions, rules, context, notes)
        calibration = self._calibration(model, encoder, reader)
        if calibration and (
            otherwise := calibration.scored_otherwise(scorer.policy_signature(policy_of(self.settings)))
        ):
            notes[f"versions judged by a calibration that was made otherwise ({otherwise})"] += len(versions)
        items, examples = self._judge(versions, measured, rules, calibration, notes)
        return Outcome(
            items=items,
            metrics=list(metric_rows(items)),
            signature=f"{choices(scorer, policy_of(self.settings))} {self._signature(encoder, reader)}",
            skipped=dict(skipped),
            tokens=tokens,
            extras={"examples": examples},
            notes=notes,
        )

    def _by_rating(self, rater: Rater, context: RunContext) -> Outcome:
        rules = self._raters_rules()
        versions, skipped, notes = self.versions()
        texts = [version.edited.sentences for version in versions]
        notes += read_in_part(rater, texts)
        items, examples = self._judge(versions, by_rating(rater, texts, rules, context), rules, None, notes)
        return Outcome(
            items=items,
            metrics=list(metric_rows(items)),
            signature=f"{rater_signature(rater)} {self._signature(None)}",
            skipped=dict(skipped),
            tokens=0,
            extras={"examples": examples},
            notes=notes,
        )

    def _by_reading(self, reader: Reader) -> Outcome:
        """Judge a model that was trained to find intruders by what it says of each sentence."""
        if other := [rule for rule in self.settings["rules"] or () if rule != BELONGING]:
            raise EnsueError(
                f"The rule {other[0]} needs another model; one that reads is judged by {BELONGING}."
            )
        versions, skipped, notes = self.versions()
        measured = by_reading(reader, [version.edited.sentences for version in versions])
        items, examples = self._judge(versions, measured, [BELONGING], None, notes)
        return Outcome(
            items=items,
            metrics=list(metric_rows(items)),
            signature=f"reading {self._signature(None, reader)}",
            skipped=dict(skipped),
            tokens=0,
            extras={"examples": examples},
            notes=notes,
        )

    def versions(self) -> tuple[list[Version], Counter[str], Counter[str]]:
        """Return every version of every document, and counts of what was left out and what was cut."""
        documents, skipped, notes = self.usable()
        found = list(self._versions(documents, skipped))
        if len(found) == len(documents):
            raise EnsueError(
                f"No document of {self.source} allows an edit of the kinds {', '.join(self.settings['kinds'])}."
            )
        return found, skipped, notes

    def _encoder(self, context: RunContext) -> Encoder | None:
        name = self.settings["encoder"]
        return None if name is None else require(context.load_further(name), Encoder, "Likeness")

    def _reader(self, context: RunContext) -> Reader | None:
        name = self.settings["reader"]
        if name == "auto":
            name = reader_beside(self.settings["encoder"])
        return None if name is None else require(context.load_further(name), Reader, "Belonging")

    def _raters_rules(self) -> list[str]:
        """Return the rules that a model that rates texts is judged by; all others need log-likelihoods."""
        chosen = self.settings["rules"] or (REMOVAL,)
        if other := [rule for rule in chosen if rule not in RATERS_RULES]:
            raise EnsueError(
                f"The rule {other[0]} needs a model that scores text; one that rates texts is judged by "
                f"{' and '.join(RATERS_RULES)}."
            )
        return [rule for rule in RATERS_RULES if rule in chosen]

    def _rules(self, reads: bool) -> list[str]:
        chosen = self.settings["rules"]
        if REMOVAL in (chosen or ()):
            raise EnsueError("The rule removal needs a model that rates texts (--set by=rating).")
        if self.settings["encoder"] is None and "likeness" in (chosen or ()):
            raise EnsueError("The rule likeness needs an encoder: leave out --set encoder=none.")
        if not reads and BELONGING in (chosen or ()):
            raise EnsueError(
                f"The rule {BELONGING} needs a reader: name one with --set reader=smollm2-reader."
            )
        without = [] if self.settings["encoder"] else ["likeness"]
        without += [] if reads else [BELONGING]
        return [rule for rule in EVERY_RULE if rule in (chosen or RULES) and rule not in without]

    def usable(self) -> tuple[Sequence[Document], Counter[str], Counter[str]]:
        """Return the documents that are long enough, two at least, and counts of what was left out or cut."""
        found = long_enough(self.documents, self.settings, FEWEST)
        if len(found[0]) < 2:
            count = "one document" if found[0] else "no document"
            raise EnsueError(
                f"{self.source} has {count} of {FEWEST} sentences or more, but intruders come from other documents: "
                f"give at least two."
            )
        return found

    def _versions(self, documents: Sequence[Document], skipped: Counter[str]) -> Iterator[Version]:
        """Yield each document as it is, and with one edit of each kind that it allows."""
        pool = Pool([document.sentences for document in documents])
        english = self.settings["language"].lower().partition("-")[0] == "en"
        for number, document in enumerate(documents):
            yield Version(document, Edited(document.sentences, (), UNTOUCHED))
            # The same places for all kinds, never the first: they differ in the edit alone.
            places = list(range(1, len(document.sentences)))
            generator_of(self.seed, document).shuffle(places)
            for kind in self.settings["kinds"]:
                if kind in ENGLISH and not english:
                    skipped[f"documents that allow no {kind} edit, which is of English texts"] += 1
                    continue
                edited = edit(number, kind, pool, places, generator_of(self.seed, document, kind))
                if edited is None:
                    skipped[f"documents that allow no {kind} edit"] += 1
                else:
                    yield Version(document, edited)

    def _measure(
        self,
        scorer: Scorer,
        encoder: Encoder | None,
        reader: Reader | None,
        versions: Sequence[Version],
        rules: Sequence[str],
        context: RunContext,
        notes: Counter[str],
    ) -> tuple[list[Sentences], int]:
        """Measure the sentences of all versions, some at a time, and count the tokens scored."""
        texts = [Pieces.joined(version.edited.sentences, self.settings["joiner"]) for version in versions]
        most = portion_of(scorer, on_cpu=_ON_CPU, elsewhere=_ELSEWHERE)
        measured: list[list[Following]] = []
        tokens = 0
        for portion in portions(texts, lambda text: sum(text.ends), most):
            found, scored = follow(
                scorer,
                portion,
                encoder=encoder,
                reader=reader,
                policy=policy_of(self.settings),
                journal=context.journal,
                progress=within(context.progress, len(measured), len(portion), len(texts), "texts"),
            )
            measured += found
            tokens += scored.tokens
            notes.update(scored.notes)
        inserted: list[Values] = []
        if INSERTION in rules:
            inserted, more = self._inserted(scorer, versions, context, notes)
            tokens += more
        found_of = [
            Sentences(each, {INSERTION: inserted[place]} if inserted else {}, mean_logprob(each))
            for place, each in enumerate(measured)
        ]
        return found_of, tokens

    def _inserted(
        self, scorer: Scorer, versions: Sequence[Version], context: RunContext, notes: Counter[str]
    ) -> tuple[list[Values], int]:
        """Return how firmly sentences stand at their places, and count the tokens scored."""
        texts = [version.edited.sentences for version in versions]
        most = portion_of(scorer, on_cpu=_ON_CPU, elsewhere=_ELSEWHERE)
        values: list[Values] = []
        tokens = 0
        for portion in portions(texts, lambda text: sum(map(len, text)) * len(text) ** 2, most):
            progress = within(context.progress, len(values), len(portion), len(texts), "texts")
            found, scored = insertion_by_likelihood(
                scorer,
                portion,
                self.settings["joiner"],
                policy_of(self.settings),
                replace(context, progress=progress),
            )
            values += found
            tokens += scored.tokens
            notes.update(scored.notes)
        return values, tokens

    def _judge(
        self,
        versions: Sequence[Version],
        measured: Sequence[Sentences],
        rules: Sequence[str],
        calibration: Calibration | None,
        notes: Counter[str],
    ) -> tuple[list[Any], list[dict[str, Any]]]:
        rate = self.settings["false_alarms"]
        pairs = list(zip(versions, measured, strict=True))
        controls = {version.document.id: found for version, found in pairs if version.kind == UNTOUCHED}
        fitted = crossfit(controls, rules, rate, self.seed)
        few = sum(not each.enough(rate) for each in fitted.values())
        if few:
            notes[f"documents judged by too few others for a false-alarm rate of {rate:g}"] += few
        items = [
            item_of(
                version, found, controls[version.document.id], fitted[version.document.id], calibration, rate
            )
            for version, found in pairs
        ]
        return items, chosen_examples(versions, items)

    def _calibration(
        self, model: Model, encoder: Encoder | None, reader: Reader | None
    ) -> Calibration | None:
        """Return the verdict's own thresholds, where they are known of this model, encoder and reader."""
        known = known_calibrations(model.card, RULE)
        cards = (None if one is None else one.card for one in (encoder, reader))
        facts = known.get(encoder_mark(*cards))
        return None if facts is None else Calibration.of(facts)

    def _signature(self, encoder: Encoder | None, reader: Reader | None = None) -> str:
        s = self.settings
        beside = " ".join(
            f"{role}:{'none' if one is None else '-'.join(one.card.marked_name.split())}"
            for role, one in (("encoder", encoder), ("reader", reader))
        )
        return f"{beside} false-alarms:{s['false_alarms']:g} {documents_signature(s, self.seed)}"


def mean_logprob(sentences: Sequence[Following]) -> float | None:
    """Return the mean log-likelihood per token of what follows a text's first sentence, which no edit touches."""
    tokens = sum(one.tokens for one in sentences)
    return math.fsum(one.logprob or 0.0 for one in sentences) / tokens if tokens else None


TASK = DocumentsTask("intruder", SETTINGS, IntruderRun)


# So many hits and so many misses of each kind: all sentences of all versions would be many times the data.
_EACH = 2


def chosen_examples(versions: Sequence[Version], items: Sequence[Item]) -> list[dict[str, Any]]:
    """Return the first hits and misses of each kind, and false alarms, as the first rule of the run has them."""
    rule = next(iter(items[0]["outputs"]["values"]))
    seen: dict[tuple[str, bool], int] = {}
    found = []
    for version, item in zip(versions, items, strict=True):
        untouched = version.kind == UNTOUCHED
        right = bool(item["scores"][f"{rule}/{'false_alarms' if untouched else 'hit_rate_at'}"]) != untouched
        group = (version.kind, right)
        # An untouched document of which nothing is said is no example of anything.
        if (untouched and right) or seen.get(group, 0) == _EACH:
            continue
        seen[group] = seen.get(group, 0) + 1
        found.append(
            {
                "id": item["id"],
                "document": version.document.id,
                "kind": version.kind,
                "rule": rule,
                "right": right,
                "places": list(version.edited.places),
                "flagged": item["outputs"]["flagged"][rule],
                "sentences": list(version.edited.sentences),
                "before": [version.document.sentences[place] for place in version.edited.places],
                "values": item["outputs"]["values"][rule],
            }
        )
    return found
