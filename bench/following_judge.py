"""The package's verdict on log-probabilities that a GPU wrote down (bench/following_harvest.py): fitted, and judged.

    python bench/following_judge.py fit MODEL OUT.json VERSIONS SCORES.npz READ.npz [VERSIONS SCORES.npz READ.npz …]
    python bench/following_judge.py judge MODEL VERSIONS SCORES.npz READ.npz [--calibration FILE] [--reader none]

SCORES are those of `following_harvest.py run`, READ is what its `read` wrote of the same versions: what the reader
says and how alike sentences are by the encoder (`minilm`). `fit` takes the news among the versions that are whole
texts, as `ensue calibrate` reads them, and adds two calibrations to OUT, with the reader and without, as `ensue
calibrate MODEL --data …` would make. `judge` prints of each set the false alarms on untouched texts and how often the
right sentence of each kind came first and was found, with Wilson's intervals; the calibration is the package's unless
one is named.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
from following_harvest import Row, sentences_of  # also puts the package on the path

from ensue.backends.names import load_model
from ensue.fetch.following import (
    encoder_mark,
    keep_in_file,
    known_calibrations,
    read_calibrations,
    reader_beside,
)
from ensue.models.request import Score
from ensue.scoring.following import POLICY, Following, Measured, like_those_around
from ensue.scoring.verdict import RULE, Calibration, calibrate, judge, standings
from ensue.stats.clustered import wilson
from ensue.stats.student import normal_quantile

ENCODER = "minilm"
KINDS = ("untouched", "random", "hard")
NEWS = ("bbc", "xsum")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    fitting = commands.add_parser("fit")
    fitting.add_argument("model")
    fitting.add_argument("output", type=Path)
    fitting.add_argument("files", type=Path, nargs="+")
    judging = commands.add_parser("judge")
    judging.add_argument("model")
    judging.add_argument("files", type=Path, nargs=3)
    judging.add_argument("--calibration", type=Path)
    judging.add_argument("--reader", default=reader_beside(ENCODER))
    options = parser.parse_args()
    (fit if options.command == "fit" else judged)(options)


def fit(options: argparse.Namespace) -> None:
    """Fit the verdict on whole texts, with the reader and without."""
    scorer: Any = load_model(options.model, device="cpu")
    encoder, reader = (
        load_model(name, device="cpu").card for name in (ENCODER, reader_beside(ENCODER) or "")
    )
    parts = [measured(*options.files[at : at + 3]) for at in range(0, len(options.files), 3)]
    texts = [
        found for part in parts for row, found in part.values() if row.kind == "whole" and row.set in NEWS
    ]
    for read_by in (reader, None):
        own = [without_reader(one) if read_by is None else one for one in texts]
        made = calibrate(
            [Measured(Score(0.0, 0, 0.0), one) for one in own],
            model=scorer.card.name,
            encoder=ENCODER,
            reader="none" if read_by is None else read_by.name,
            data="news",
            scored=scorer.policy_signature(POLICY),
        )
        keep_in_file(options.output, scorer.card, encoder_mark(encoder, read_by), made.as_dict())
        print(f"{options.output}: {made.documents} texts, {made.sentences} sentences, reader {made.reader}")


def judged(options: argparse.Namespace) -> None:
    """Judge all versions by the calibration of the package, or of a file."""
    card = load_model(options.model, device="cpu").card
    known = (
        known_calibrations(card, RULE)
        if options.calibration is None
        else read_calibrations(options.calibration, card)
    )
    without = options.reader == "none"
    mark = encoder_mark(
        load_model(ENCODER, device="cpu").card,
        None if without else load_model(options.reader, device="cpu").card,
    )
    calibration = Calibration.of(known[mark])
    counts: dict[tuple[str, str], list[tuple[bool, bool]]] = defaultdict(list)
    for row, found in measured(*options.files).values():
        sentences = without_reader(found) if without else found
        said = judge(sentences, calibration)
        firm = [np.inf if one is None else one for one in standings(sentences, calibration.given)]
        right = int(np.argmin(firm)) in row.places
        hit = said.stands_out is not None and (not row.places or said.stands_out in row.places)
        counts[row.set, row.kind].append((right, hit))
    sets = [name for name in dict.fromkeys(name for name, _ in counts) if counts[name, "untouched"]]
    for name in sets:
        show(name, {kind: counts[name, kind] for kind in KINDS})
    bbc = [name for name in sets if "bbc" in name]
    if len(bbc) > 1:
        together = {kind: [one for name in bbc for one in counts[name, kind]] for kind in KINDS}
        show(" + ".join(bbc), together)


def measured(versions: Path, scored: Path, read_file: Path) -> dict[int, tuple[Row, list[Following]]]:
    """Return versions with the measures of their sentences, as the package makes them of its own scores."""
    rows = [Row(*json.loads(line)) for line in versions.read_text("utf-8").splitlines()]
    with np.load(scored) as file:
        scores = {kind: read(file, kind) for kind in ("context", "alone", "head")}
    with np.load(read_file) as file:
        where, logits, alike = (file[name] for name in ("row", "logit", "likeness"))
    begins = dict(zip(*np.unique(where, return_index=True), strict=True))
    found = {}
    for number in sorted({row for row, _ in scores["context"]} & begins.keys()):
        own = slice(begins[number], begins[number] + len(rows[number].ends))
        try:
            found[number] = rows[number], followings(scores, number, alike[own], logits[own])
        except KeyError:  # a harvest that was cut off has the beginning of some
            print(f"version {number} is not whole and left out")
    return found


def without_reader(sentences: list[Following]) -> list[Following]:
    return [one._replace(belonging=None) for one in sentences]


def read(file: Any, kind: str) -> dict[tuple[int, int], Any]:
    """Return the sum, the count and the tokens of each request, by version and sentence."""
    row, place, total, count = (file[f"{kind}_{name}"] for name in ("row", "place", "sum", "count"))
    ends = np.cumsum(count, dtype=np.int64)
    tokens = file[f"{kind}_tokens"].astype(np.float64) if f"{kind}_tokens" in file else None
    return {
        (int(row[i]), int(place[i])): (
            float(total[i]),
            int(count[i]),
            None if tokens is None else tokens[ends[i] - count[i] : ends[i]],
        )
        for i in range(len(row))
    }


def likenesses(encoder: Any, rows: dict[int, Row]) -> dict[int, Any]:
    pieces = {number: sentences_of(row) for number, row in rows.items()}
    each = list(dict.fromkeys(piece for some in pieces.values() for piece in some))
    vectors = np.asarray(encoder.encode(each), dtype=np.float64)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True).clip(1e-12)
    where = {piece: at for at, piece in enumerate(each)}
    return {
        number: like_those_around(vectors[[where[one] for one in some]]) for number, some in pieces.items()
    }


def followings(
    scores: dict[str, dict[tuple[int, int], Any]], number: int, likeness: Any, logits: Any
) -> list[Following]:
    """Return the measures of a version's sentences."""
    found = [Following(0, None, None, float(likeness[0]), None, float(logits[0]))]
    for place in range(1, len(likeness)):
        logprob, tokens, _ = scores["context"][number, place]
        given = None
        if place + 1 < len(likeness):
            head, count, _ = scores["head"][number, place + 1]
            given = float(scores["context"][number, place + 1][2][:count].sum()) - head
        received = logprob - scores["alone"][number, place][0]
        found.append(
            Following(tokens, received, given, float(likeness[place]), logprob, float(logits[place]))
        )
    return found


def show(name: str, kinds: dict[str, list[tuple[bool, bool]]]) -> None:
    words = []
    for kind, found in kinds.items():
        if found:
            first, rate = (float(np.mean([one[at] for one in found])) for at in (0, 1))
            low, high = wilson(rate, len(found), normal_quantile(0.95))
            came = "" if kind == "untouched" else f"{first:.3f} / "
            words.append(f"{kind} {came}{rate:.3f} [{low:.2f}, {high:.2f}]")
    print(f"{name}, {len(kinds['untouched'])}: {'; '.join(words)}", flush=True)


if __name__ == "__main__":
    main()
