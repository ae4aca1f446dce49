"""Entity grids of several forms, trained on some documents and tried on others: original against shuffled.

python bench/grid.py --split ENSUE_DATA --out DIR
python bench/grid.py --train DIR/bbc-train.jsonl --test DIR/bbc-test.jsonl [--test …] [--forms plain,neural]

Prints a line a form: the accuracy by cross-validation (linear) or on held-out training documents (neural), and on
each test file the mean over documents with its interval. Nothing is chosen by the test files. `--split` first divides
a folder of documents into such files.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import tempfile
from pathlib import Path
from typing import Any

import torch

from ensue import load_model, train
from ensue.jsonl import read_object
from ensue.stats.clustered import clustered_interval
from ensue.text.documents import read_documents
from ensue.train.grid.examples import Shuffling, drawn_orders

FORMS: dict[str, dict[str, Any]] = {
    "plain": {"roles": False, "salience": 0, "longest": 2},
    "roles": {"roles": True, "salience": 0, "longest": 2},
    "salience": {"roles": False, "salience": 2, "longest": 2},
    "heads": {"roles": True, "salience": 2, "longest": 2, "mentions": "heads"},
    "roles+salience": {"roles": True, "salience": 2, "longest": 2},
    "longer": {"roles": True, "salience": 2, "longest": 3},
    "longer+pronouns": {"roles": True, "salience": 2, "longest": 3, "mentions": "pronouns"},
    "properties": {"roles": True, "salience": 2, "longest": 2, "properties": True},
    "properties+pronouns": {"longest": 2, "properties": True, "mentions": "pronouns"},
    "neural": {"kind": "neural"},
    "neural+properties": {"kind": "neural", "properties": True},
    "neural+properties+pronouns": {"kind": "neural", "properties": True, "mentions": "pronouns"},
}


def divide(
    folder: Path, out: Path, name: str, counts: tuple[int, int], *, skip: int = 0, **reading: Any
) -> None:
    """Write files of documents to train on and to test on, none of them twice; WSJ's `.START` is no sentence.

    `skip` sentences are left out at the beginning: BBC's first is a headline, by which alone most shuffles are known.
    """
    kept = {}
    for document in read_documents(folder, **reading):
        sentences = tuple(each.strip() for each in document.sentences if each.strip() != ".START")[skip:]
        if len(sentences) > 1 and not document.id.endswith("README"):
            kept.setdefault(sentences[:20], (document.id, sentences))
    found = sorted(kept.values(), key=lambda each: hashlib.sha256(f"split{each[0]}".encode()).hexdigest())
    test, learned = found[: counts[1]], found[counts[1] : sum(counts)]
    for part, chosen in (("train", learned), ("test", test)):
        rows = [json.dumps({"id": each, "sentences": sentences}) + "\n" for each, sentences in chosen]
        (out / f"{name}-{part}.jsonl").write_text("".join(rows), "utf-8")


def measure(folder: Path, file: str) -> str:
    """Rate documents and twenty shuffles of each, and return the accuracy with its interval over documents."""
    model: Any = load_model(str(folder), device="cpu")
    values, clusters = [], []
    for document in read_documents(file):
        text = document.sentences[:20]
        orders = drawn_orders(text, document.id, Shuffling(seed=1))
        own, *others = model.rate([text, *([text[place] for place in order] for order in orders)])
        values += [1.0 if own > other else 0.5 if own == other else 0.0 for other in others]
        clusters += [document.id] * len(others)
    found = clustered_interval(values, clusters, bounds=(0, 1))
    return f"{found.value:.3f} [{found.low:.3f}, {found.high:.3f}]"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--split", type=Path)
    parser.add_argument("--train")
    parser.add_argument("--test", action="append", default=[])
    parser.add_argument("--forms", default=",".join(FORMS))
    parser.add_argument("--out", type=Path, default=Path(tempfile.mkdtemp()))
    options = parser.parse_args()
    torch.set_num_threads(1)
    if options.split:
        options.out.mkdir(parents=True, exist_ok=True)
        divide(options.split / "news_bbc", options.out, "bbc", (300, 100))
        divide(options.split / "news_bbc", options.out, "bbc_body", (300, 100), skip=1)
        divide(options.split / "news_wsj", options.out, "wsj", (115, 75), split="lines", encoding="latin-1")
        return
    print(f"| form | chosen by | {' | '.join(Path(each).stem for each in options.test)} |")
    print("|---|---|" + "---|" * len(options.test))
    for name in options.forms.split(","):
        folder = options.out / name
        done = train("grid", data=[options.train], output=folder, device="cpu", **FORMS[name])
        folds = read_object(folder / "training.json").get("cross_validation", {})
        inner = max(folds.values()) if folds else done.best["dev_accuracy"]
        tested = [measure(folder, each) for each in options.test]
        print(f"| {name} | {inner:.3f} | {' | '.join(tested)} |", flush=True)


if __name__ == "__main__":
    main()
