"""Profiles of texts: how well each sentence follows, and whether one stands out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from ensue.benchmarks.base import Setting
from ensue.benchmarks.settings import DOCUMENT_SETTINGS, number, one_of, optional, text
from ensue.errors import EnsueError
from ensue.fetch.following import encoder_mark, known_calibrations, marks_in, read_calibrations
from ensue.models.card import ModelCard
from ensue.models.profile import COLUMNS, Profile, ProfiledSentence
from ensue.models.protocols import Encoder, Model, Reader, Scorer, portion_of
from ensue.models.request import Policy
from ensue.progress import Progress
from ensue.records import digest_of
from ensue.runs.companions import AUTO, NO_ENCODER, calibrated_with, calibrating, load_encoder, load_reader
from ensue.runs.profile_file import ProfileFile
from ensue.runs.score import SETTINGS as SCORE_SETTINGS
from ensue.runs.score import load_scorer
from ensue.runs.texts import Text, given_texts
from ensue.scoring.engine import signature
from ensue.scoring.following import Measured, Pieces, measure
from ensue.scoring.journal import Journal
from ensue.scoring.surprisal import sentence_surprisal
from ensue.scoring.verdict import RATE, RULE, Calibration, Verdict, judge, shares_below, standings
from ensue.text.sentences import one_line
from ensue.text.units import split_units

# Characters of text that are measured at once: what is finished between two portions is kept.
_PORTION_ON_CPU, _PORTION_ELSEWHERE = 30_000, 300_000


def _rate(said: str) -> float:
    value = number(said)
    if not 0 < value < 1:
        raise ValueError("a share between 0 and 1")
    return value


# Every token is scored once: only so have sentences numbers of their own.
_WINDOWS = ("strided", "refuse")
CALIBRATION_SETTINGS: dict[str, Setting] = {
    **SCORE_SETTINGS,
    "window": Setting("strided", "texts longer than the model: strided or refuse", one_of(*_WINDOWS)),
    "overflow": replace(SCORE_SETTINGS["overflow"], default="truncate"),
    "language": DOCUMENT_SETTINGS["language"],
}
SETTINGS: dict[str, Setting] = {
    **CALIBRATION_SETTINGS,
    "encoder": Setting(
        AUTO,
        "compares sentences: auto (the one the model was calibrated with), a model's name, or none",
        text,
    ),
    "reader": Setting(
        AUTO,
        "says which sentences belong: auto (the one the model was calibrated with), a model's name, or none",
        text,
    ),
    "false_alarms": Setting(
        RATE, "the share of sound texts in which a sentence may be said to stand out", _rate
    ),
    "calibration": Setting(None, "a file that `ensue calibrate --output` wrote", optional(text)),
}


@dataclass(frozen=True)
class Profiler:
    """What profiles texts: a model, an encoder and a reader or none, what sound texts look like to them, and how to
    score.

    `command` is what makes a calibration, for where there is none; `others` are settings with which there is one.
    """

    scorer: Scorer
    encoder: Encoder | None
    calibration: Calibration | None
    policy: Policy
    rate: float
    command: str
    others: tuple[str, ...] = ()
    reader: Reader | None = None

    @property
    def signature(self) -> str:
        """Return the choices behind a profile in one line."""
        encoder, reader = (
            NO_ENCODER if one is None else one.card.marked_name for one in (self.encoder, self.reader)
        )
        fitted = "none" if self.calibration is None else "-".join(self.calibration.data.split())
        return (
            f"{signature(self.scorer, self.policy)} encoder:{encoder} reader:{reader} calibration:{fitted} "
            f"false_alarms:{self.rate:g}"
        )

    @property
    def _caution(self) -> str:
        """Say where texts are scored in another way than those of the calibration were."""
        scored = self.scorer.policy_signature(self.policy)
        otherwise = "" if self.calibration is None else self.calibration.scored_otherwise(scored)
        return f" (the calibration was made otherwise: {otherwise})" if otherwise else ""

    def key(self, one: Text, joiner: str) -> str:
        """Return a digest of everything that a text's profile depends on, what it is called included."""
        fitted = None if self.calibration is None else self.calibration.as_dict()
        said = [one.id, one.request.continuation, one.sentences, one.language, joiner]
        return digest_of(RULE, self.signature, asdict(self.policy), self.scorer.card.identity, fitted, said)

    def profiles(
        self,
        texts: Iterable[Text],
        joiner: str = " ",
        *,
        journal: Journal | None = None,
        progress: Progress | None = None,
    ) -> Iterator[tuple[Text, Profile]]:
        """Profile texts portion by portion, in order; each comes with its profile."""
        for portion in portions(self.scorer, texts):
            cuts = [cut(one, joiner) for one in portion]
            found, _ = measure(
                self.scorer,
                [pieces for pieces, _ in cuts],
                encoder=self.encoder,
                reader=self.reader,
                policy=self.policy,
                journal=journal,
                progress=progress,
            )
            for one, (pieces, sentences), measured in zip(portion, cuts, found, strict=True):
                yield one, self._profile(one.id, pieces, sentences, measured)

    def _profile(self, id: str, pieces: Pieces, sentences: Sequence[str], measured: Measured) -> Profile:
        whole = measured.whole
        surprisals = sentence_surprisal(pieces.ends, whole)
        if surprisals is None:
            raise EnsueError(
                f"{id} has no profile: its tokens were scored more than once (use --set window=strided) "
                f"or the model does not say where they lie."
            )
        fitted = self.calibration
        unknown: list[float | None] = [None] * len(sentences)
        firm = unknown if fitted is None else standings(measured.sentences, fitted.given)
        shares = unknown if fitted is None else shares_below(firm, fitted)
        rows = [
            ProfiledSentence(
                words,
                start,
                end,
                tokens=surprisal.tokens,
                surprisal=rounded(surprisal.surprisal),
                gain=rounded(following.gain),
                received=rounded(following.received),
                given=rounded(following.given),
                likeness=rounded(following.likeness),
                belonging=rounded(following.belonging),
                standing=rounded(standing),
                share_below=rounded(share),
            )
            for words, (start, end), surprisal, following, standing, share in zip(
                sentences, _spans(pieces), surprisals, measured.sentences, firm, shares, strict=True
            )
        ]
        judged = judge(measured.sentences, self.calibration, self.rate)
        verdict, why = words_of(judged, rows, self)
        why += self._caution
        return Profile(
            id,
            pieces.text,
            whole.tokens,
            whole.logprob,
            whole.logprob_per_token,
            tuple(rows),
            judged.stands_out,
            judged.least,
            rounded(judged.false_alarm),
            verdict,
            why,
        )


def profile(
    texts: Sequence[str | Sequence[str]],
    *,
    model: str | Model = "smollm2",
    encoder: str | Encoder | None = AUTO,
    reader: str | Reader | None = AUTO,
    false_alarms: float = RATE,
    calibration: str | Path | None = None,
    language: str = "en",
    policy: Policy | None = None,
    journal: str | Path | None = None,
    model_options: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
) -> list[Profile]:
    """Say how well each sentence of each text follows, and whether one stands out.

    A text is a string, or a list of its sentences. `encoder` compares sentences, `reader` says which belong: `auto`
    is the one the model was calibrated with, None is none. `false_alarms` is the share of sound texts in which a
    sentence may be said to stand out; `calibration` a file that `ensue calibrate --output` wrote; `language` is an
    ISO 639 code, by which texts are split into sentences. The rest is as in `score`.

    >>> import ensue
    >>> (found,) = ensue.profile(["Rain fell. It was cold. We went home."], model="unigram")
    >>> [sentence.text for sentence in found.sentences], found.stands_out
    (['Rain fell.', 'It was cold.', 'We went home.'], None)
    """
    given = given_texts(texts, language)
    profiler = open_profiler(
        model,
        encoder=encoder,
        reader=reader,
        rate=false_alarms,
        calibration=None if calibration is None else Path(calibration),
        policy=policy,
        model_options=model_options,
    )
    kept = None if journal is None else Path(journal)
    return list(profiles_of(profiler, given, " ", journal=kept, progress=progress))


def open_profiler(
    model: str | Model,
    *,
    encoder: str | Encoder | None = AUTO,
    reader: str | Reader | None = AUTO,
    rate: float = RATE,
    calibration: Path | None = None,
    policy: Policy | None = None,
    model_options: Mapping[str, Any] | None = None,
) -> Profiler:
    """Load a model, its encoder and its reader, and find out what sound texts look like to them."""
    if not isinstance(rate, (int, float)) or not 0 < rate < 1:
        raise EnsueError(f"false_alarms is a share between 0 and 1, not {rate!r}.")
    policy = profile_policy(policy)
    scorer = load_scorer(model, model_options, "A profile")
    card = scorer.card
    known = known_calibrations(card, RULE) if calibration is None else read_calibrations(calibration, card)
    place = f"The calibration of {card.name}" if calibration is None else str(calibration)
    command = calibrating(model if isinstance(model, str) else card.name, encoder, reader)
    loaded = None if encoder == AUTO else load_encoder(encoder, model_options, beside=scorer)
    reading = None if reader == AUTO else load_reader(reader, model_options, beside=scorer)
    asked = (
        None if encoder == AUTO else encoder_mark(_card(loaded)),
        None if reader == AUTO else marks_in(encoder_mark(None, _card(reading)))[1],
    )
    named = calibrated_with(known, place, asked)
    try:
        loaded = load_encoder(named[0], model_options, beside=scorer) if encoder == AUTO else loaded
        reading = load_reader(named[1], model_options, beside=scorer) if reader == AUTO else reading
    except EnsueError as error:
        made = " and ".join(one for one in named if one != NO_ENCODER)
        raise EnsueError(
            f"{place} was made with {made}, which cannot be had here ({str(error).rstrip('.')}): say where it is "
            f"with --set encoder=… or reader=…, or run `{command}` again."
        ) from error
    facts = known.get(encoder_mark(_card(loaded), _card(reading)))
    fitted = None if facts is None else Calibration.of(facts, place)
    others = () if fitted else tuple(sorted({_settings_of(one) for one in known.values()}))
    return Profiler(scorer, loaded, fitted, policy, rate, command, others, reading)


def _card(model: Model | None) -> ModelCard | None:
    return None if model is None else model.card


def _settings_of(facts: Mapping[str, Any]) -> str:
    """Return the settings that a calibration goes with."""
    return f"encoder={facts.get('encoder')} and reader={facts.get('reader', NO_ENCODER)}"


def profile_policy(policy: Policy | None) -> Policy:
    """Return how texts are scored for a profile; refuse what scores tokens more than once, before any work."""
    policy = policy or Policy(window="strided", overflow="truncate")
    if policy.window not in _WINDOWS:
        raise EnsueError(
            f"A profile scores every token once, so window is {' or '.join(_WINDOWS)}, not {policy.window}."
        )
    return policy


def portions(model: Model, texts: Iterable[Text]) -> Iterator[list[Text]]:
    """Divide texts into portions of so many characters; they depend on the kind of device and on nothing else."""
    most = portion_of(model, on_cpu=_PORTION_ON_CPU, elsewhere=_PORTION_ELSEWHERE)
    portion: list[Text] = []
    size = 0
    for one in texts:
        portion.append(one)
        size += len(one.request.continuation)
        if size >= most:
            yield portion
            portion, size = [], 0
    if portion:
        yield portion


def cut(one: Text, joiner: str) -> tuple[Pieces, list[str]]:
    """Cut a text into the sentences its source states, or into those it is made of."""
    if one.sentences:
        return Pieces.joined(one.sentences, joiner), list(one.sentences)
    whole = one.request.continuation
    units = split_units(whole, one.language)
    return Pieces.of(whole, units), units


def profiles_of(
    profiler: Profiler,
    texts: Iterable[Text],
    joiner: str,
    *,
    output: Path | None = None,
    journal: Path | None = None,
    progress: Progress | None = None,
) -> Iterator[Profile]:
    """Profile texts, in order; what is in the file `output` already is taken from there, the rest is added to it."""
    with ExitStack() as open_files:
        kept = None if journal is None else open_files.enter_context(Journal(journal))
        file = None if output is None else open_files.enter_context(ProfileFile(output))
        source = iter(texts)
        if file is not None:
            for row in file.rows():
                one = next(source, None)
                if one is None:
                    return  # fewer are asked for than are there
                if row.get("key") != profiler.key(one, joiner):
                    raise file.refuse()
                yield profile_of_row(one, joiner, row)
        for one, found in profiler.profiles(source, joiner, journal=kept, progress=progress):
            if file is not None:
                file.add(found.row() | {"key": profiler.key(one, joiner)})
            yield found


def profile_of_row(one: Text, joiner: str, row: Mapping[str, Any]) -> Profile:
    """Make a profile again of its text and its row."""
    pieces, sentences = cut(one, joiner)
    (version,) = row["profile"]
    numbers = zip(*(version[name] for name in COLUMNS), strict=True)
    made = [
        ProfiledSentence(words, start, end, **dict(zip(COLUMNS, values, strict=True)))
        for words, (start, end), values in zip(sentences, _spans(pieces), numbers, strict=True)
    ]
    facts = {name: row[name] for name in ("id", "tokens", "logprob", "logprob_per_token")}
    judged = {name: version[name] for name in ("stands_out", "least", "false_alarm", "verdict", "why")}
    return Profile(text=pieces.text, sentences=tuple(made), **facts, **judged)


def _spans(pieces: Pieces) -> list[tuple[int, int]]:
    """Return where the sentences lie, what stands between them left out."""
    spans = []
    for place, end in enumerate(pieces.ends):
        piece = pieces.piece(place)
        spans.append((end - len(piece.lstrip()), end))
    return spans


def rounded(value: float | None) -> float | None:
    """Round to what is worth keeping."""
    return None if value is None else round(value, 4)


def words_of(judged: Verdict, rows: Sequence[ProfiledSentence], profiler: Profiler) -> tuple[str, str]:
    """Say the verdict in a sentence, and why."""
    fitted = profiler.calibration
    if fitted is None:
        return "No telling.", _uncalibrated(judged.why, profiler)
    if judged.least is None or judged.false_alarm is None:
        return "No telling.", judged.why
    least = rows[judged.least]
    share = least.share_below or 0.0
    often = in_hundred(judged.false_alarm)
    if judged.stands_out is None:
        number = judged.least + 1
        why = (
            f"{often} sound texts of this length have a sentence that follows as little as sentence {number}"
        )
        return "Nothing stands out.", why
    verdict = f"Sentence {judged.stands_out + 1} stands out: “{shortened(least.text)}”"
    helped = min(99, int(100 * (1 - share)))
    why = (
        f"the text around it helps this sentence less than {helped} % of the sentences in {fitted.data}; "
        f"{often} sound texts of this length have such a sentence"
    )
    return verdict, why


def _uncalibrated(why: str, profiler: Profiler) -> str:
    """Say that there is no calibration, with which encoder there would be one, and how one is made."""
    if profiler.others:
        used = [
            f"{name}={NO_ENCODER if one is None else one.card.name}"
            for name, one in (("encoder", profiler.encoder), ("reader", profiler.reader))
        ]
        why += f" with {' and '.join(used)}, but there is one with {', or with '.join(profiler.others)}"
    return f"{why}; `{profiler.command}` makes one from texts that are sound"


def in_hundred(share: float) -> str:
    """Write a share as one in a hundred does.

    >>> in_hundred(0.031), in_hundred(0.002)
    ('3 in 100', 'fewer than 1 in 100')
    """
    return f"{round(100 * share)} in 100" if share >= 0.005 else "fewer than 1 in 100"


def shortened(words: str) -> str:
    """Cut a long sentence at a word."""
    words = one_line(words)
    if len(words) <= 120:
        return words
    return words[:120].rsplit(" ", 1)[0].rstrip(" ,;:") + " …"
