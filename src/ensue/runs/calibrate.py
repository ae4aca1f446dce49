"""Calibrate a model: measure texts that are sound, and keep what they look like for `ensue score --profile`."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

from ensue.fetch.catalog import catalog
from ensue.fetch.following import encoder_mark, home_file, keep_in_card, keep_in_file, reader_beside
from ensue.fetch.store import entry_at, home
from ensue.models.protocols import Encoder, Reader, Scorer
from ensue.models.request import Policy, Score
from ensue.progress import Progress
from ensue.records import Codec, Records, digest_of
from ensue.runs.companions import AUTO, DEFAULT_ENCODER, NO_ENCODER, load_encoder, load_reader
from ensue.runs.profile import cut, portions, profile_policy
from ensue.runs.score import load_scorer
from ensue.runs.texts import Texts
from ensue.scoring.engine import signature
from ensue.scoring.following import Following, Measured, measure
from ensue.scoring.verdict import RULE, Calibration, calibrate

_MEASURES: Codec[list[Following]] = Codec(
    "following", lambda found: [list(one) for one in found], lambda rows: [Following(*row) for row in rows]
)
# Nothing of a whole text's score is needed to calibrate, and that of its tokens takes much memory.
_NO_SCORE = Score(0.0, 0, 0.0)


class Calibrated(NamedTuple):
    """A calibration, how many texts it was made from and passed over, and where it is kept."""

    calibration: Calibration
    texts: int
    signature: str
    place: Path


def calibrate_model(
    model: str,
    texts: Texts,
    *,
    about: str,
    encoder: str | None = DEFAULT_ENCODER,
    reader: str | None = AUTO,
    output: Path | None = None,
    journal: Path | None = None,
    joiner: str = " ",
    policy: Policy | None = None,
    model_options: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
) -> Calibrated:
    """Measure texts that are sound and keep what they look like: in `output`, the model's folder, or ENSUE_HOME.

    `about` says in words what the texts are; `reader` is `auto` for the one that goes with the encoder. What is
    measured is kept in the journal as it is done, without one in ENSUE_HOME until the end, so that the same command
    goes on after a kill.
    """
    policy = profile_policy(policy)
    scorer = load_scorer(model, model_options, "A calibration")
    compared = load_encoder(encoder, model_options, beside=scorer)
    reader = reader_beside(encoder) if reader == AUTO else reader
    read_by = load_reader(reader, model_options, beside=scorer)
    who = digest_of(
        RULE,
        signature(scorer, policy),
        asdict(policy),
        scorer.card.identity,
        None if compared is None else compared.card.identity,
        None if read_by is None else read_by.card.identity,
    )
    own = home() / "calibrating" / f"{who}.jsonl"
    with Records(journal or own) as records:
        found = list(_measured(scorer, compared, read_by, texts, joiner, policy, (records, who), progress))
    fitted = calibrate(
        found,
        model=scorer.card.name,
        encoder=NO_ENCODER if compared is None else _loadable(encoder or ""),
        reader=NO_ENCODER if read_by is None else _loadable(reader or ""),
        data=about,
        scored=scorer.policy_signature(policy),
    )
    mark = encoder_mark(
        None if compared is None else compared.card, None if read_by is None else read_by.card
    )
    place = _keep(model, scorer, mark, fitted, output)
    if journal is None:
        own.unlink(missing_ok=True)
    return Calibrated(fitted, len(found), signature(scorer, policy), place)


def _measured(
    scorer: Scorer,
    encoder: Encoder | None,
    reader: Reader | None,
    texts: Texts,
    joiner: str,
    policy: Policy,
    kept: tuple[Records, str],
    progress: Progress | None,
) -> Iterator[Measured]:
    """Measure texts portion by portion; what is kept of earlier ones is not measured again."""
    records, who = kept
    done = 0
    for portion in portions(scorer, texts):
        keys = [digest_of(who, one.request.continuation, one.sentences, one.language) for one in portion]
        missing = [
            (key, one) for key, one in zip(keys, portion, strict=True) if not records.has(_MEASURES, key)
        ]
        if missing:
            pieces = [cut(one, joiner)[0] for _, one in missing]
            found, _ = measure(scorer, pieces, encoder=encoder, reader=reader, policy=policy)
            measures = (one.sentences for one in found)
            records.add(_MEASURES, zip((key for key, _ in missing), measures, strict=True))
        for key in keys:
            yield Measured(_NO_SCORE, records.get(_MEASURES, key) or [])
        done += len(portion)
        if progress is not None:
            progress(done, texts.count or 0, "texts")


def _keep(model: str, scorer: Scorer, mark: str, fitted: Calibration, output: Path | None) -> Path:
    card = scorer.card
    if output is not None:
        return keep_in_file(output, card, mark, fitted.as_dict())
    folder = Path(model).expanduser()
    if model not in catalog() and (folder / "config.json").is_file() and os.access(folder, os.W_OK):
        return keep_in_card(folder, card, mark, fitted.as_dict())
    return keep_in_file(home_file(), card, mark, fitted.as_dict())


def _loadable(name: str) -> str:
    """Return a name by which an encoder or reader is found again from anywhere."""
    path = Path(name).expanduser()
    if name in catalog() or not path.is_dir():
        return name
    known = entry_at(path)
    return str(path.resolve()) if known is None else known.name
