"""A small SentEval folder of invented sentences, in the formats of the real one, and an encoder for it."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ensue.benchmarks.senteval.data import PROBING_FILES, STS_SETS
from ensue.models.card import ModelCard

WIDTH = 24
_THINGS = ("lamp", "river", "baker", "ladder", "violin", "meadow", "kettle", "tunnel", "parrot", "harbour")
_GOOD, _BAD = ("lovely", "splendid", "warm"), ("dreadful", "broken", "dull")


@dataclass
class WordEncoder:
    """A bag of words: every word has a fixed vector, a sentence the sum of its words'; layers scale the words."""

    card: ModelCard = field(
        default_factory=lambda: ModelCard("words", "encoder", "test", {"weights": "words-1"})
    )
    calls: int = 0
    layer_count: int = 2

    def encode(
        self, texts: Sequence[str], *, layers: Sequence[int] | None = None, pooling: str | None = None
    ) -> npt.NDArray[np.float32]:
        self.calls += len(texts)
        own = np.array([self._sum(text) for text in texts], dtype=np.float32).reshape(len(texts), WIDTH)
        if layers is None:
            return own
        # The embedding layer knows nothing; the others are like the output.
        return np.stack([own * layer for layer in layers], axis=1).astype(np.float32)

    def _sum(self, text: str) -> npt.NDArray[np.float64]:
        return np.sum([_word(word) for word in text.lower().split()], axis=0)


def _word(word: str) -> npt.NDArray[np.float64]:
    seed = int.from_bytes(hashlib.sha256(word.encode()).digest()[:4])
    return np.random.default_rng(seed).normal(size=WIDTH)


def opinion(number: int, good: bool) -> str:
    word = (_GOOD if good else _BAD)[number % 3]
    return f"the {_THINGS[number % 10]} of house {number} was {word}"


def pairs(count: int) -> list[tuple[str, str, float]]:
    """Pairs whose second sentence repeats 0 to 5 of five words of the first: that is their score."""
    made = []
    for number in range(count):
        first = [_THINGS[(number + step) % 10] for step in range(5)]
        kept = number % 6
        second = first[:kept] + [f"word{number}x{step}" for step in range(5 - kept)]
        made.append((" ".join(first), " ".join(second), float(kept)))
    return made


def write(path: Path, lines: Sequence[str], encoding: str = "utf-8") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes("".join(f"{line}\n" for line in lines).encode(encoding))
    return path


def write_downstream(home: Path, times: int = 1) -> None:
    """All tasks but the probing ones, with so many times as much to train on as the least."""
    for year, sets in STS_SETS.items():
        for name in sets:
            made = pairs(24)
            place = home / "STS" / f"{year}-en-test"
            write(place / f"STS.input.{name}.txt", [f"{a}\t{b}" for a, b, _ in made])
            golds = [f"{score:g}" for *_, score in made]
            if year in ("STS15", "STS16"):
                golds[3] = golds[7] = ""
            write(place / f"STS.gs.{name}.txt", golds)
    for split, count in (("train", 60 * times), ("dev", 30), ("test", 30)):
        rows = [f"g\tf\t2012\t{n:04}\t{s}\t{a}\t{b}" for n, (a, b, s) in enumerate(pairs(count))]
        rows[0] += "\thttp://one\thttp://two"
        write(home / "STS" / "STSBenchmark" / f"sts-{split}.csv", rows)
    for split, count in (("train", 60 * times), ("trial", 30), ("test_annotated", 30)):
        labels = ("NEUTRAL", "CONTRADICTION", "ENTAILMENT")
        rows = ["pair_ID\tsentence_A\tsentence_B\trelatedness_score\tentailment_judgment"]
        rows += [
            f"{n}\t{a}\t{b}\t{max(score, 1.0)}\t{labels[int(score) // 2]}"
            for n, (a, b, score) in enumerate(pairs(count))
        ]
        ending = "\r" if split == "test_annotated" else ""
        write(home / "SICK" / f"SICK_{split}.txt", [row + ending for row in rows])
    for split, count in (("train", 60 * times), ("test", 24)):
        rows = ["\ufeffQuality\t#1 ID\t#2 ID\t#1 String\t#2 String"]
        rows += [f"{int(s > 2)}\t{n}\t{n}\t{a}\t{b}" for n, (a, b, s) in enumerate(pairs(count))]
        write(home / "MRPC" / f"msr_paraphrase_{split}.txt", rows)
    for name in ("MR/rt-polarity", "CR/custrev", "MPQA/mpqa"):
        write(home / f"{name}.pos", [opinion(n, True) + " " for n in range(30 * times)])
        write(home / f"{name}.neg", [opinion(n, False) + " " for n in range(30 * times)])
    write(home / "SUBJ" / "subj.objective", [opinion(n, True) for n in range(30 * times)])
    write(home / "SUBJ" / "subj.subjective", [opinion(n, False) for n in range(30 * times)])
    for split, count in (("train", 60 * times), ("dev", 20), ("test", 20)):
        labelled = [(opinion(n, n % 2 == 0), int(n % 2 == 0)) for n in range(count)]
        write(home / "SST" / "binary" / f"sentiment-{split}", [f"{text} \t{one}" for text, one in labelled])
        write(
            home / "SST" / "fine" / f"sentiment-{split}",
            [f"{n % 5} {text}" for n, (text, _) in enumerate(labelled)],
        )
    kinds = ("ABBR:exp", "DESC:def", "ENTY:food", "HUM:ind", "LOC:city", "NUM:date")
    questions = [f"{kinds[n % 6]} which {_THINGS[n % 6]} is number {n} ?" for n in range(72 * times)]
    questions[1] = "DESC:def what is a café river ?"
    write(home / "TREC" / "train_5500.label", questions, "latin-1")
    write(home / "TREC" / "TREC_10.label", questions[2:20])


def write_probing(home: Path, names: Sequence[str] = tuple(PROBING_FILES)) -> None:
    for name in names:
        lines = [
            f"{split}\t{'PAST' if n % 2 else 'PRES'}\t{opinion(n, bool(n % 2))}"
            for split, count in (("tr", 40), ("va", 12), ("te", 12))
            for n in range(count)
        ]
        write(home / PROBING_FILES[name], lines)
