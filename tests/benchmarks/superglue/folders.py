"""A small SuperGLUE folder in the official layout; all texts are made up here."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

RECORD_TEXT = "Mira Holt sailed from Tarn to Osk. In Osk, Holt rested.\n@highlight\nHolt reached Osk"


def _entities(*phrases: str) -> list[dict[str, int]]:
    """Spans with their last character included, as the files have them."""
    found = [(RECORD_TEXT.index(phrase), len(phrase)) for phrase in phrases]
    return [{"start": start, "end": start + size - 1} for start, size in found]


def record(idx: int, answers: list[str] | None) -> dict[str, Any]:
    query: dict[str, Any] = {"query": "The sailor @placeholder slept.", "idx": 10 + idx}
    if answers is not None:
        query["answers"] = [{**_entities(text)[0], "text": text} for text in answers]
    passage = {"text": RECORD_TEXT, "entities": _entities("Mira Holt", "Tarn", "Osk", "Holt")}
    # The same surface form a second time.
    passage["entities"] = [*passage["entities"], {"start": 38, "end": 40}]
    return {"idx": idx, "source": "made up", "passage": passage, "qas": [query]}


def multirc(idx: int, labels: list[int] | None) -> dict[str, Any]:
    answers: list[dict[str, Any]] = [{"text": "Two hens", "idx": 7}, {"text": "A fox", "idx": 8}]
    for answer, label in zip(answers, labels or [], strict=False):
        answer["label"] = label
    questions = [{"question": "Who was in the yard?", "idx": 3, "answers": answers}]
    return {
        "idx": idx,
        "version": 1.1,
        "passage": {"text": "Two hens were in the yard.", "questions": questions},
    }


def wsc(idx: int, phrase: str, index: int, pronoun: str, at: int, **more: Any) -> dict[str, Any]:
    target = {"span1_text": phrase, "span1_index": index, "span2_text": pronoun, "span2_index": at}
    return {"idx": idx, "text": 'The cup fell off "the shelf," and it broke.', "target": target, **more}


_BOOLQ = {"passage": "Basalt -- Basalt is a rock. ", "question": "is basalt a rock"}
_CB = {"premise": "She thinks that it rained. ", "hypothesis": "it rained"}
_COPA = {"premise": "The glass fell.", "choice1": "It broke.", "choice2": "It sang.", "question": "effect"}
_RTE = {"premise": "Ivo owns a mill.", "hypothesis": "Ivo owns something."}
_WIC = {
    "word": "bank",
    "sentence1": "The river bank is steep.",
    "sentence2": "Banks lend money.",
    "version": 1.1,
}
_WIC_SPANS = {"start1": 10, "end1": 14, "start2": 0, "end2": 5}
_AXG = "The nurse told the pilot that {} could rest."

ROWS: dict[str, list[dict[str, Any]]] = {
    "BoolQ/train": [{**_BOOLQ, "idx": 0, "label": True}],
    "BoolQ/val": [{**_BOOLQ, "idx": 0, "label": False}],
    "BoolQ/test": [{**_BOOLQ, "idx": 0}],
    "CB/train": [{**_CB, "idx": 0, "label": "neutral"}],
    "CB/val": [{**_CB, "idx": 0, "label": "contradiction"}],
    "CB/test": [{**_CB, "idx": 0}],
    "COPA/train": [{**_COPA, "idx": 0, "label": 0}],
    "COPA/val": [{**_COPA, "idx": 0, "label": 1}],
    "COPA/test": [{**_COPA, "idx": 0}],
    "MultiRC/train": [multirc(0, [1, 0]), multirc(1, [0, 0])],
    "MultiRC/val": [multirc(0, [1, 1])],
    "MultiRC/test": [multirc(5, None)],
    "ReCoRD/train": [record(0, ["Mira Holt", "Holt"])],
    "ReCoRD/val": [record(0, ["Holt", "Holt"])],
    "ReCoRD/test": [record(0, None)],
    "RTE/train": [{**_RTE, "idx": 0, "label": "entailment"}],
    "RTE/val": [{**_RTE, "idx": 0, "label": "not_entailment"}],
    "RTE/test": [{**_RTE, "idx": 0}],
    "WiC/train": [{**_WIC, **_WIC_SPANS, "idx": 0, "label": False}],
    "WiC/val": [{**_WIC, **_WIC_SPANS, "idx": 0, "label": True}],
    "WiC/test": [{**_WIC, **_WIC_SPANS, "idx": 0}],
    "WSC/train": [wsc(0, "The shelf", 4, "it", 7, label=False)],
    "WSC/val": [wsc(0, "The cup", 0, "it", 7, label=True)],
    "WSC/test": [wsc(0, "the cup", 0, "it", 7)],
    "AX-b/AX-b": [
        {
            "idx": "0",
            "sentence1": "a dog",
            "sentence2": "no dog",
            "label": "not_entailment",
            "logic": "Negation;Existential",
        },
        {
            "idx": "1",
            "sentence1": "a dog",
            "sentence2": "a pet",
            "label": "entailment",
            "lexical-semantics": "Redundancy",
        },
    ],
    "AX-g/AX-g": [
        {"idx": n, "pair_id": 90 + n, "premise": _AXG.format(word), "hypothesis": who, "label": label}
        for n, (word, who, label) in enumerate(
            [
                ("she", "The nurse could rest.", "entailment"),
                ("she", "The pilot could rest.", "not_entailment"),
                ("he", "The nurse could rest.", "entailment"),
                ("he", "The pilot could rest.", "not_entailment"),
            ]
        )
    ],
}


def write_rows(path: Path, rows: list[dict[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    # The official files have no line feed at their end.
    path.write_text("\n".join(map(json.dumps, rows)), "utf-8")


def write_superglue(folder: Path) -> Path:
    """All tasks, every split with a row or two."""
    for name, rows in ROWS.items():
        write_rows(folder / f"{name}.jsonl", rows)
    return folder
