"""Invented DiscoEval folders: sentences of a few words, enough of them to train on."""

from __future__ import annotations

import pickle
import random
from pathlib import Path

from tests.support.tiny import SENTENCES

SPLITS = {"train.txt": 24, "valid.txt": 10, "test.txt": 12}
_WORDS = " ".join(SENTENCES).lower().replace(",", "").replace(".", "").split()


def sentence(generator: random.Random) -> str:
    return " ".join(generator.choices(_WORDS, k=generator.randint(3, 7)))


def write_text(folder: Path, classes: int, sentences: int, *, labelled: bool = True, seed: int = 0) -> None:
    """The three files of a task; labels come in turn, so that every class is in every file."""
    generator = random.Random(seed)
    folder.mkdir(parents=True)
    for name, count in SPLITS.items():
        lines = []
        for number in range(count):
            columns = [sentence(generator) for _ in range(sentences)]
            lines.append("\t".join([str(number % classes), *columns] if labelled else columns))
        (folder / name).write_text("\n".join(lines) + "\n", "utf-8")


RstNode = tuple[str, list[str], list[str]]


def nodes(count: int, seed: int) -> list[RstNode]:
    generator = random.Random(seed)
    labels = ("NS-Elaboration", "NN-Joint", "SN-Attribution")
    return [
        (
            labels[number % 3],
            [sentence(generator) for _ in range(generator.randint(1, 4))],
            [sentence(generator) for _ in range(generator.randint(1, 3))],
        )
        for number in range(count)
    ]


def write_pickles(folder: Path, **more: list[RstNode]) -> None:
    """The three pickles, written as the published ones are."""
    folder.mkdir(parents=True)
    for seed, (name, count) in enumerate({"TRAIN": 24, "DEV": 10, "TEST": 12}.items()):
        value = nodes(count, seed) + more.get(name, [])
        (folder / f"RST_{name}.pkl").write_bytes(pickle.dumps(value, protocol=2))


def write_suite(folder: Path) -> Path:
    """A whole suite but for the training files that the published data lacks."""
    for number, domain in enumerate(("wiki", "arxiv", "rocstory")):
        write_text(folder / "SP" / domain, 5, 5, seed=number)
        write_text(folder / "BSO" / domain, 2, 2, labelled=False, seed=10 + number)
    for number, domain in enumerate(("wiki", "chat")):
        write_text(folder / "DC" / domain, 2, 6, seed=20 + number)
    write_text(folder / "SSP" / "abs", 2, 1, seed=30)
    for number, kind in enumerate(("Explicit", "Implicit")):
        write_text(folder / "PDTB" / kind, 3, 2, seed=40 + number)
        (folder / "PDTB" / kind / "labelset.txt").write_text("Cause\nContrast\nList\n", "utf-8")
    write_pickles(folder / "RST")
    for absent in ("SP/wiki", "SP/arxiv", "DC/wiki"):
        (folder / absent / "train.txt").unlink()
    return folder
