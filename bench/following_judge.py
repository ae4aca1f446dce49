"""The verdict of the package on log-probabilities that a GPU wrote down (bench/following_harvest.py): rates by set.

    python bench/following_judge.py VERSIONS MODEL-PART.npz [MODEL]

The calibration is the one that the package has of the model; sentences are compared by `minilm`, here. Printed are,
of each set, the false alarms on untouched texts and how often the right sentence of each kind came first and was
found, with Wilson's intervals.
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
from ensue.fetch.following import encoder_mark, known_calibrations
from ensue.scoring.following import Following, like_those_around
from ensue.scoring.verdict import RULE, Calibration, judge, standings
from ensue.stats.clustered import wilson
from ensue.stats.student import normal_quantile


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("versions", type=Path)
    parser.add_argument("found", type=Path)
    parser.add_argument("model", nargs="?", default="smollm2")
    options = parser.parse_args()
    rows = [Row(*json.loads(line)) for line in options.versions.read_text("utf-8").splitlines()]
    with np.load(options.found) as file:
        scores = {kind: read(file, kind) for kind in ("context", "alone", "head")}
    known = sorted({row for row, _ in scores["context"]})
    encoder = load_model("minilm", device="cpu")
    facts = known_calibrations(load_model(options.model, device="cpu").card, RULE)
    calibration = Calibration.of(facts[encoder_mark(encoder.card)])
    likeness = likenesses(encoder, {number: rows[number] for number in known})
    counts: dict[tuple[str, str], list[tuple[bool, bool]]] = defaultdict(list)
    for number in known:
        row = rows[number]
        sentences = followings(scores, number, likeness[number])
        said = judge(sentences, calibration)
        firm = [np.inf if one is None else one for one in standings(sentences, calibration.given)]
        right = int(np.argmin(firm)) in row.places
        hit = said.stands_out is not None and (not row.places or said.stands_out in row.places)
        counts[row.set, row.kind].append((right, hit))
    sets = list(dict.fromkeys(row.set for row in rows))
    for name in sets:
        show(name, {kind: counts[name, kind] for kind in ("untouched", "random", "hard")})
    bbc = [name for name in sets if "bbc" in name]
    if len(bbc) > 1:
        together = {
            kind: [one for name in bbc for one in counts[name, kind]]
            for kind in ("untouched", "random", "hard")
        }
        show(" + ".join(bbc), together)


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


def followings(scores: dict[str, dict[tuple[int, int], Any]], number: int, likeness: Any) -> list[Following]:
    """Return the measures of a version's sentences, as the package makes them of its own scores."""
    found = [Following(0, None, None, float(likeness[0]))]
    for place in range(1, len(likeness)):
        logprob, tokens, _ = scores["context"][number, place]
        given = None
        if place + 1 < len(likeness):
            head, count, _ = scores["head"][number, place + 1]
            given = float(scores["context"][number, place + 1][2][:count].sum()) - head
        received = logprob - scores["alone"][number, place][0]
        found.append(Following(tokens, received, given, float(likeness[place]), logprob))
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
