"""Small data folders in the official layouts, with labels, and predictions that fit them."""

from __future__ import annotations

import random
from pathlib import Path

from tests.support.command import write_lines

SIZE = 12
Predicted = dict[str, dict[str, dict[str, str | float]]]


def glue(folder: Path) -> Path:
    """CoLA, STS-B and RTE with labelled dev sets; MRPC with a test set that has no labels."""
    draw = random.Random(1)
    _tsv(
        folder / "CoLA" / "dev.tsv",
        None,
        [("src", str(n % 3 // 2), "", f"The gate {n} opened.") for n in range(SIZE)],
    )
    sts = [(str(n), f"Boat {n} left.", f"Boat {n} sailed.", f"{draw.uniform(0, 5):.2f}") for n in range(SIZE)]
    _tsv(folder / "STS-B" / "dev.tsv", ("index", "sentence1", "sentence2", "score"), sts)
    rte = [(str(n), f"Boat {n} left.", f"Boat {n} stayed.", _entailed(n % 2 == 0)) for n in range(SIZE)]
    _tsv(folder / "RTE" / "dev.tsv", ("index", "sentence1", "sentence2", "label"), rte)
    mrpc = [(str(n), "1", "2", f"Rain {n} fell.", f"It rained {n}.") for n in range(SIZE)]
    _tsv(folder / "MRPC" / "test.tsv", ("index", "#1 ID", "#2 ID", "#1 String", "#2 String"), mrpc)
    return folder


def superglue(folder: Path) -> Path:
    """BoolQ, COPA, MultiRC and AX-b, all labelled."""
    for name in ("BoolQ", "COPA", "MultiRC", "AX-b"):
        (folder / name).mkdir(parents=True)
    boolq = [
        {"passage": f"Mill {n} burned.", "question": "did it burn", "label": n % 3 > 0, "idx": n}
        for n in range(SIZE)
    ]
    write_lines(folder / "BoolQ" / "val.jsonl", boolq)
    copa = [
        {"premise": f"Lamp {n} fell.", "choice1": "It broke.", "choice2": "It flew.", "question": "effect"}
        | {"label": n % 2, "idx": n}
        for n in range(SIZE)
    ]
    write_lines(folder / "COPA" / "val.jsonl", copa)
    write_lines(folder / "MultiRC" / "val.jsonl", [_passage(n) for n in range(3)])
    ax = [
        {
            "sentence1": f"Boat {n} left.",
            "sentence2": "It went.",
            "label": _entailed(n % 4 == 0),
            "idx": n,
            "logic": "Negation",
        }
        for n in range(SIZE)
    ]
    write_lines(folder / "AX-b" / "AX-b.jsonl", ax)
    return folder


def glue_predictions(seed: int = 2) -> Predicted:
    draw = random.Random(seed)
    return {
        "CoLA": {"dev": {str(n): draw.choice("01") for n in range(SIZE)}},
        "STS-B": {"dev": {str(n): round(draw.uniform(0, 5), 3) for n in range(SIZE)}},
        "RTE": {"dev": {str(n): _entailed(draw.random() < 0.5) for n in range(SIZE)}},
    }


def superglue_predictions(seed: int = 2) -> Predicted:
    draw = random.Random(seed)
    answers = [f"{p}-{2 * p + q}-{4 * p + 2 * q + a}" for p in range(3) for q in range(2) for a in range(2)]
    return {
        "BoolQ": {"dev": {str(n): draw.choice(("false", "true")) for n in range(SIZE)}},
        "COPA": {"dev": {str(n): draw.choice("01") for n in range(SIZE)}},
        "MultiRC": {"dev": {id: draw.choice("01") for id in answers}},
        "AX-b": {"test": {str(n): _entailed(draw.random() < 0.5) for n in range(SIZE)}},
    }


def multirc_gold() -> dict[str, int]:
    return {
        f"{p['idx']}-{q['idx']}-{a['idx']}": a["label"]
        for p in map(_passage, range(3))
        for q in p["passage"]["questions"]  # type: ignore[index]
        for a in q["answers"]
    }


def _passage(number: int) -> dict[str, object]:
    questions = [
        {
            "question": f"Who rowed boat {question}?",
            "idx": 2 * number + question,
            "answers": [
                {
                    "text": f"Rower {option}",
                    "idx": 4 * number + 2 * question + option,
                    "label": (number + option) % 2,
                }
                for option in range(2)
            ],
        }
        for question in range(2)
    ]
    return {"idx": number, "passage": {"text": f"Crew {number} rowed out.", "questions": questions}}


def _entailed(right: bool) -> str:
    return "entailment" if right else "not_entailment"


def _tsv(path: Path, header: tuple[str, ...] | None, rows: list[tuple[str, ...]]) -> None:
    path.parent.mkdir(parents=True)
    lines = ["\t".join(row) for row in ([header] if header else []) + rows]
    path.write_text("\n".join(lines) + "\n", "utf-8")
