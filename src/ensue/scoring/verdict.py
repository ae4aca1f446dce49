"""Does a sentence stand out? A verdict with a known rate of false alarms, fitted on texts that nobody touched."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from ensue.errors import EnsueError
from ensue.scoring.following import Following, Measured

# Chosen by cross-validation on BBC articles (bench/results/intruder.md), in nats of what a sentence gives: of what it
# receives a third, and so many for a share or a cosine of one and for a logit of one.
RECEIVED, SHARE, LIKENESS, BELONGING = 1 / 3, 50.0, 50.0, 5.0
# The version of all this. Calibrations fitted by another one say nothing here: change it with any number above.
RULE = 5
# Below so many sentences there is too little text to say what follows.
FEWEST = 4
# The share of untouched texts in which a sentence is said to stand out, unless another is asked for.
RATE = 0.1
# How sure a calibration is to be that no more sound texts raise an alarm than it says: nineteen times in twenty.
_SURE = 1.645
_LEVELS = (
    0.0,
    0.005,
    0.01,
    0.02,
    0.03,
    0.04,
    0.05,
    0.075,
    0.1,
    0.125,
    0.15,
    0.2,
    0.25,
    0.3,
    0.4,
    0.5,
    0.75,
    1.0,
)
_PERCENTILES = tuple(range(101))


@dataclass(frozen=True)
class Calibration:
    """What untouched texts look like to a model and an encoder.

    `rule` is the version of the rule it was fitted by. `given` stands in for what a last sentence gives. `quartile`
    is the mean over texts of the lower quartile of their standings, `slope` by how many nats the least of them falls
    when there are e times as many sentences. `least` holds quantiles of the least standing, made good for looseness
    and length, at fixed levels of false alarms, lower by what so few texts leave unsure; `percentiles` those of all
    sentences' standings. `scored` says how the texts were scored, as a signature has it; nothing where that is not
    known. `reader` is what said which sentences belong.
    """

    rule: int
    model: str
    encoder: str
    data: str
    documents: int
    sentences: int
    given: float
    quartile: float
    slope: float
    least: tuple[float, ...]
    percentiles: tuple[float, ...]
    scored: str = ""
    reader: str = "none"

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def of(cls, facts: Mapping[str, Any], place: str = "The model's calibration") -> Calibration:
        """Read a calibration as a model's card has it; `place` names it in messages."""
        refused = EnsueError(
            f"{place} is damaged or of another version of Ensue; run `ensue calibrate` again."
        )
        try:
            made = cls(
                **{**facts, "least": tuple(facts["least"]), "percentiles": tuple(facts["percentiles"])}
            )
        except (KeyError, TypeError):
            raise refused from None
        if made.rule != RULE or len(made.least) != len(_LEVELS) or len(made.percentiles) != len(_PERCENTILES):
            raise refused
        if not made._is_sound():
            raise refused
        return made

    def scored_otherwise(self, scored: str) -> str:
        """Return in words what of how texts are scored is not as it was; nothing where all is.

        >>> one = Calibration(1, "m", "none", "news", 20, 90, 0.0, 0.0, 0.0, (), (), "bos:1 dtype:float32")
        >>> one.scored_otherwise("bos:1 dtype:bfloat16")
        'dtype:float32 then, dtype:bfloat16 now'
        """
        then, now = self.scored.split(), scored.split()
        if not then or then == now:
            return ""
        gone, new = [one for one in then if one not in now], [one for one in now if one not in then]
        return f"{' '.join(gone)} then, {' '.join(new)} now"

    def _is_sound(self) -> bool:
        """Say whether names are names and numbers finite, and quantiles rise."""
        names = (self.model, self.encoder, self.reader, self.data, self.scored)
        numbers = (self.given, self.quartile, self.slope, *self.least, *self.percentiles)
        return (
            all(isinstance(one, str) for one in names)
            and all(type(one) in (int, float) and math.isfinite(one) for one in numbers)
            and all(a <= b for each in (self.least, self.percentiles) for a, b in pairwise(each))
        )


class Verdict(NamedTuple):
    """What is said of a text.

    `stands_out` is the sentence that does, None where none does; `least` the one that follows least, whatever is
    said. `false_alarm` is the share of untouched texts of this length with a sentence that follows as little. Where
    there is no telling, `why` says why.
    """

    stands_out: int | None
    least: int | None = None
    false_alarm: float | None = None
    why: str = ""


def standings(sentences: Sequence[Following], given: float) -> list[float | None]:
    """Return how firmly each sentence stands in its text, in nats; None for the first, which nothing precedes."""
    found: list[float | None] = []
    for one in sentences:
        if one.received is None:
            found.append(None)
            continue
        from_before = RECEIVED * one.received + SHARE * (one.share or 0.0)
        likeness = 0.0 if one.likeness is None else LIKENESS * one.likeness
        belonging = 0.0 if one.belonging is None else BELONGING * one.belonging
        found.append(from_before + (given if one.given is None else one.given) + likeness + belonging)
    return found


def judge(sentences: Sequence[Following], calibration: Calibration | None, rate: float = RATE) -> Verdict:
    """Say whether a sentence stands out, with false alarms in at most a share `rate` of untouched texts."""
    if calibration is None:
        return Verdict(None, why="no calibration is known for this model")
    firm = [
        (one, place) for place, one in enumerate(standings(sentences, calibration.given)) if one is not None
    ]
    if len(sentences) < FEWEST or not firm:
        return Verdict(None, why=f"a text of fewer than {FEWEST} sentences is too short to tell")
    _, place = min(firm)
    least = _least([one for one, _ in firm], calibration.quartile, calibration.slope)
    false_alarm = float(np.interp(least, calibration.least, _LEVELS))
    return Verdict(place if false_alarm <= rate else None, place, false_alarm)


def share_below(standing: float, calibration: Calibration) -> float:
    """Return the share of untouched sentences that follow less than this."""
    return float(np.interp(standing, calibration.percentiles, np.linspace(0, 1, len(_PERCENTILES))))


def shares_below(firm: Sequence[float | None], calibration: Calibration) -> list[float | None]:
    """Return the share of untouched sentences that follow less than each of a text's, its looseness made good."""
    known = [one for one in firm if one is not None]
    lacking = _lacking(known, calibration.quartile) if known else 0.0
    return [None if one is None else share_below(one + lacking, calibration) for one in firm]


def threshold(calibration: Calibration, sentences: int, rate: float = RATE) -> float:
    """Return below which standing a sentence of a text of so many stands out, if the text is not loose."""
    return float(np.interp(rate, _LEVELS, calibration.least)) - calibration.slope * math.log(sentences - 1)


def calibrate(
    measured: Sequence[Measured],
    *,
    model: str,
    encoder: str,
    data: str,
    scored: str = "",
    reader: str = "none",
) -> Calibration:
    """Fit the verdict on untouched texts."""
    texts = [one.sentences for one in measured if len(one.sentences) >= FEWEST]
    if len(texts) < 20:
        raise EnsueError(
            f"{len(texts)} of the texts have {FEWEST} sentences or more; a calibration needs at least 20, better 200."
        )
    passed = [one.given for text in texts for one in text[1:] if one.given is not None]
    given = math.fsum(passed) / len(passed)
    firm = [[one for one in standings(text, given) if one is not None] for text in texts]
    quartile = float(np.mean([np.quantile(one, 0.25) for one in firm]))
    slope = _slope(firm)
    least = [_least(one, quartile, slope) for one in firm]
    every = [one for text in firm for one in text]
    cautious = [_cautious(level, len(texts)) for level in _LEVELS]
    return Calibration(
        rule=RULE,
        model=model,
        encoder=encoder,
        data=data,
        documents=len(texts),
        sentences=len(every),
        given=round(given, 4),
        quartile=round(quartile, 4),
        slope=round(slope, 4),
        least=tuple(round(float(one), 4) for one in np.quantile(least, cautious, method="weibull")),
        percentiles=tuple(round(float(one), 4) for one in np.percentile(every, _PERCENTILES)),
        scored=scored,
        reader=reader,
    )


def _cautious(level: float, texts: int) -> float:
    """Return the share of so many texts that may raise an alarm, for that of all sound texts to be at most `level`.

    It is the lower end of Wilson's interval: the share from which `level` is _SURE standard errors away.
    """
    spread = _SURE**2 / texts
    middle = level + spread / 2
    return (middle - math.sqrt(spread * (level * (1 - level) + spread / 4))) / (1 + spread)


def _least(standings: Sequence[float], quartile: float, slope: float) -> float:
    """Return the least of a text's standings, made good for how loose and how long the text is."""
    return min(standings) + _lacking(standings, quartile) + slope * math.log(len(standings))


def _lacking(standings: Sequence[float], quartile: float) -> float:
    """Return how many nats a text's standings are made good for: what its lower quartile lacks to untouched ones'.

    Stories and lists hang together less than news throughout, and no sentence of theirs stands out by that.
    """
    return max(0.0, quartile - float(np.quantile(standings, 0.25)))


def _slope(texts: Sequence[Sequence[float]]) -> float:
    """Return how the least standing falls with the number of sentences, from the texts and their beginnings."""
    steps = []
    for text in texts:
        lengths = [count for count in (3, 6, 12, 24, 48) if count <= len(text)]
        steps += [(min(text[:a]) - min(text[:b])) / math.log(b / a) for a, b in pairwise(lengths)]
    return math.fsum(steps) / len(steps) if steps else 0.0
