"""The package's verdict on what a GPU wrote down (bench/following_gpu.py): fitted, and judged.

    python bench/following_judge.py fit MODEL OUT.json VERSIONS SCORES.npz ALIKE.npz READ.npz [READ.npz …]
    python bench/following_judge.py judge MODEL VERSIONS SCORES.npz ALIKE.npz READ.npz [READ.npz …] [--sets NAMES]
        [--calibration FILE] [--reader none]

VERSIONS are those of bench/following_prepare.py, SCORES its harvest of a model, ALIKE that of the encoder, READ what
readers say; where several have read a version, the last one counts. `fit` takes the whole texts of news, as `ensue
calibrate` reads them, and adds two calibrations to OUT, with the reader and without, as `ensue calibrate MODEL
--data …` would make; development articles must have been read by what did not learn from them. `judge` prints of each
set the false alarms on untouched texts and how often the right sentence of each kind came first and was found, with
Wilson's intervals; the calibration is the package's unless one is named.
"""

from __future__ import annotations

import argparse
import json
import lzma
from collections import defaultdict
from collections.abc import Iterator, Sequence
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
NEWS = ("dev-0", "dev-1", "xsum")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    fitting, judging = (commands.add_parser(name) for name in ("fit", "judge"))
    fitting.add_argument("model")
    fitting.add_argument("output", type=Path)
    judging.add_argument("model")
    for one in (fitting, judging):
        one.add_argument("files", type=Path, nargs="+")
    judging.add_argument("--sets", default="", help="by comma, only these, by the beginnings of their names")
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
    texts = [found for row, found in measured(options.files) if row.kind == "whole" and row.set in NEWS]
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
    for row, found in measured(options.files):
        if not row.set.startswith(tuple(options.sets.split(","))) or row.kind == "whole":
            continue
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


def measured(files: Sequence[Path]) -> Iterator[tuple[Row, list[Following]]]:
    """Yield versions with the measures of their sentences, as the package makes them of its own scores."""
    versions, scored, compared, *read_files = files
    with lzma.open(versions, "rt", encoding="utf-8") as lines:
        rows = [Row(*json.loads(line)) for line in lines]
    with np.load(scored) as file:
        scores = by_version(file["where"][:, 0], np.hstack([file["where"][:, 1:], file["sums"]]))
    alike = of_file(compared, "likeness")
    logits: dict[int, Any] = {}
    for path in read_files:
        logits |= of_file(path, "logit")
    for number in sorted(scores.keys() & alike.keys() & logits.keys()):
        yield rows[number], followings(scores[number], alike[number], logits[number])


def of_file(path: Path, name: str) -> dict[int, Any]:
    with np.load(path) as file:
        return by_version(file["row"], file[name])


def by_version(numbers: Any, values: Any) -> dict[int, Any]:
    """Return the values of each version, which stand together."""
    found, begins, counts = np.unique(numbers, return_index=True, return_counts=True)
    return {int(one): values[a : a + n] for one, a, n in zip(found, begins, counts, strict=True)}


def without_reader(sentences: list[Following]) -> list[Following]:
    return [one._replace(belonging=None) for one in sentences]


def likenesses(encoder: Any, rows: dict[int, Row]) -> dict[int, Any]:
    pieces = {number: sentences_of(row) for number, row in rows.items()}
    each = list(dict.fromkeys(piece for some in pieces.values() for piece in some))
    vectors = np.asarray(encoder.encode(each), dtype=np.float64)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True).clip(1e-12)
    where = {piece: at for at, piece in enumerate(each)}
    return {
        number: like_those_around(vectors[[where[one] for one in some]]) for number, some in pieces.items()
    }


def followings(scores: Any, likeness: Any, logits: Any) -> list[Following]:
    """Return the measures of a version's sentences.

    A row of scores has the place, the tokens, and log-likelihoods: in context, alone, and of the first words in
    context and without the sentence before.
    """
    found = [Following(0, None, None, float(likeness[0]), None, float(logits[0]))]
    for at, (place, tokens, in_context, alone, _, _) in enumerate(scores):
        given = float(scores[at + 1][4] - scores[at + 1][5]) if at + 1 < len(scores) else None
        like, logit = float(likeness[int(place)]), float(logits[int(place)])
        found.append(Following(int(tokens), float(in_context - alone), given, like, float(in_context), logit))
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
