"""Whole texts rated by models that do so, for every task on coherence: each text once, kept as soon as it is rated.

A model that gives log-likelihoods is asked for those unless `--set by=rating` says otherwise; one that only rates is
asked for its ratings.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import islice
from typing import Any

from ensue.benchmarks import settings as read
from ensue.benchmarks.base import RunContext, Setting
from ensue.errors import RunFailed
from ensue.models.protocols import CuttingRater, Model, Placed, Rater, Scorer, require
from ensue.records import Codec, digest_of
from ensue.scoring.finite import check_rows

_RATINGS: Codec[float] = Codec("coherence-ratings", float, float)
# So many texts are rated together and kept.
_ON_CPU, _ON_GPU = 64, 2048

BY_SETTING = {
    "by": Setting(
        None,
        "likelihood, or rating (of models that rate whole texts); none: likelihood where the model gives it",
        read.optional(read.one_of("likelihood", "rating")),
    )
}


def rater_of(model: Model, settings: Mapping[str, Any], why: str) -> Rater | None:
    """Return the model as one that rates texts, where it is to rate them; None where it is to do anything else."""
    by = settings["by"]
    if by == "rating":
        return require(model, Rater, why)
    if by == "likelihood":
        require(model, Scorer, why)
        return None
    return model if isinstance(model, Rater) and not isinstance(model, Scorer) else None


def rate_texts(rater: Rater, texts: Collection[Sequence[str]], context: RunContext) -> list[float]:
    """Rate texts, given as sentences; those that the run's records have are not rated again.

    Texts meet in portions that depend on what is asked alone and never on what is known already: a run that goes on
    rates the same texts together and gets the same numbers. They are gone through once, a portion held at a time.
    """
    who = digest_of(rater.card.kind, rater.card.identity)
    fast = isinstance(rater, Placed) and rater.device_kind != "cpu"
    size = _ON_GPU if fast else _ON_CPU
    keys: list[str] = []
    known: dict[str, float] = {}
    portion: dict[str, Sequence[str]] = {}

    def rate_portion() -> None:
        context.progress(len(keys) - len(portion), len(texts), "texts")
        if not all(context.records.has(_RATINGS, key) for key in portion):
            context.records.add(_RATINGS, _rated(rater, list(portion.items())))
        known.update(
            (key, value) for key in portion if (value := context.records.get(_RATINGS, key)) is not None
        )
        portion.clear()

    for text in texts:
        key = digest_of(who, list(text))
        keys.append(key)
        if key not in known:
            portion[key] = text
        if len(portion) == size:
            rate_portion()
    rate_portion()
    context.progress(len(texts), len(texts), "texts")
    return [known[key] for key in keys]


def _rated(rater: Rater, portion: Sequence[tuple[str, Sequence[str]]]) -> list[tuple[str, float]]:
    texts = [text for _, text in portion]
    values = [float(value) for value in rater.rate(texts)]
    if len(values) != len(texts):
        raise RunFailed(f"{rater.card.name} gave {len(values)} ratings of {len(texts)} texts.")
    check_rows(values, [" ".join(text) for text in texts], rater.card)
    return [(key, value) for (key, _), value in zip(portion, values, strict=True)]


def read_in_part(rater: Rater, texts: Iterable[Sequence[str]]) -> Counter[str]:
    """Return the note on texts that are too long for a rater: of these it knows the beginning alone."""
    if not isinstance(rater, CuttingRater):
        return Counter()
    several, cut = iter(texts), 0
    while few := list(islice(several, _ON_GPU)):
        cut += rater.count_cut(few)
    return Counter({"texts of which the model reads only the beginning": cut} if cut else {})


def rater_signature(rater: Rater) -> str:
    """Return what a signature says of a model that rates texts."""
    return f"model:{rater.card.signed_name} weights:{rater.card.mark} by:rating"


def worth_of_each(rater: Rater, texts: Sequence[Sequence[str]], context: RunContext) -> list[list[float]]:
    """Return what each sentence is worth to its text: the rating with it less that without it."""
    without = [[*text[:at], *text[at + 1 :]] for text in texts for at in range(len(text))]
    ratings = iter(rate_texts(rater, [*texts, *without], context))
    whole = [next(ratings) for _ in texts]
    return [[value - next(ratings) for _ in text] for value, text in zip(whole, texts, strict=True)]
