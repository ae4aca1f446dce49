"""What a reader of `ensue score --profile` learns from and is judged by, packed small for a machine with a GPU.

    python bench/following_prepare.py DATA OUT      # OUT/train.json.xz, OUT/versions.jsonl.xz

Training documents are BBC articles that no judgement is made on (the 720 of development and the 86 that rule 2 was
judged on), those of bench/following_reader.py, and for each sentence those of other documents of its pool that are
nearest in words, as `ensue run intruder` finds them. An article that shares two sentences with one that is judged is
left out. Development articles lie in two folds, and their versions have intruders of the same fold alone, so that
what is trained on one fold can be judged on the other as it will be on articles nobody has seen.
"""

from __future__ import annotations

import argparse
import json
import lzma
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from following_harvest import EACH, FRESH, Row, versions, wholes
from following_reader import documents, fiction, new, news, wikipedia
from intruder import FEWEST, FITTED, bbc_articles, others, rows, xsum

from ensue.benchmarks.intruder.edits import _NEAR_COPY, _POSITION, _Index, _shared, _words
from ensue.text.documents import read_documents
from ensue.text.units import split_units

FOLDS = 2
NEAREST, LONGEST, POOL, PASSAGES = 30, 32, 400, 396
HERE = Path(__file__).resolve().parent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("output", type=Path)
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    bbc = [one for one in bbc_articles(options.data / "news_bbc") if len(one[1].sentences) >= FEWEST]
    if not (options.output / "versions.jsonl.xz").is_file():
        write(options.output / "versions.jsonl.xz", all_versions(bbc, options.data, options.output))
    write(options.output / "train.jsonl.xz", training(bbc, options.data))


def write(path: Path, found: Sequence[Any]) -> None:
    with lzma.open(path, "wt", encoding="utf-8", preset=6) as file:
        file.writelines(json.dumps(one) + "\n" for one in found)
    print(f"{path}: {len(found)} lines, {path.stat().st_size / 1e6:.1f} MB", flush=True)


def unseen(bbc: Sequence[Any]) -> list[int]:
    """Return the articles that no rule since the first was judged on, those that are there twice left out."""
    numbers = {*range(FITTED, FITTED + EACH), *range(FRESH + 2 * EACH, len(bbc))}
    seen = {one[1].sentences for number, one in enumerate(bbc) if number not in numbers}
    kept = []
    for number in sorted(numbers):
        if bbc[number][1].sentences not in seen:
            seen.add(bbc[number][1].sentences)
            kept.append(number)
    return kept


def all_versions(bbc: Sequence[Any], data: Path, scratch: Path) -> list[Row]:
    """Return the versions of development and of judgement, and whole texts to calibrate with."""
    last = [bbc[number] for number in unseen(bbc)]
    sets = {
        **{f"dev-{fold}": rows(list(bbc[fold_of(fold)])) for fold in range(FOLDS)},
        "judged-bbc-c": rows(last),
        "judged-bbc-a": rows(bbc[FRESH : FRESH + EACH]),
        "judged-bbc-b": rows(bbc[FRESH + EACH : FRESH + 2 * EACH]),
        "judged-wsj": others(data / "news_wsj", "latin-1"),
        "judged-blog": others(data / "blog_paulgraham"),
        "judged-legal": others(data / "multilexsum"),
    }
    found: list[Row] = []
    for name, texts in sets.items():
        file = scratch / "set.jsonl"
        file.write_text("".join(json.dumps(one) + "\n" for one in texts), "utf-8")
        found += versions(read_documents(file), name, 0)
        if name.startswith("dev"):
            found += wholes(name, [(one["id"], one["text"]) for one in texts], split_units)
        file.unlink()
    sampled = xsum(data / "xsum_sample" / "test.jsonl")
    found += wholes("xsum", [(one["id"], one["text"]) for one in sampled], split_units)
    for name in ("forms_dev", "broken"):
        lines = (HERE / "following" / f"{name}.jsonl").read_text("utf-8").splitlines()
        texts = [json.loads(line) for line in lines]
        found += wholes(name, [(one["id"], one["text"]) for one in texts], split_units)
    # What is needed first stands first.
    rank = {"dev": 0, "xsum": 1, "forms_dev": 1, "broken": 1, "judged-bbc-c": 2}
    return sorted(found, key=lambda row: rank.get(row.set, rank.get(row.set.split("-")[0], 3)))


def fold_of(fold: int) -> slice:
    size = FITTED // FOLDS
    return slice(fold * size, (fold + 1) * size)


def training(bbc: Sequence[Any], data: Path) -> list[dict[str, Any]]:
    """Return documents with the numbers of their sentences' nearest ones, by document and place of the same pool."""
    used = {*range(FITTED), *range(FITTED + EACH, FRESH)}
    judged = {
        sentence
        for number, one in enumerate(bbc)
        if number not in used
        for sentence in one[1].sentences
        if len(sentence) > 40
    }
    size = FITTED // FOLDS
    pools: dict[str, list[dict[str, Any]]] = {"bbc": []}
    folded: list[set[str]] = [set() for _ in range(FOLDS + 1)]
    for number in sorted(used):
        sentences = list(bbc[number][1].sentences)[:LONGEST]
        fold = number // size if number < FITTED else FOLDS
        if sum(one in judged for one in sentences) > 1:
            continue
        # An article that is in the other fold as well belongs to neither side of it.
        if any(sum(one in theirs for one in sentences) > 1 for at, theirs in enumerate(folded) if at != fold):
            continue
        folded[fold].update(one for one in sentences if len(one) > 40)
        pools["bbc"].append({"id": bbc[number][0], "domain": "bbc", "fold": fold, "sentences": sentences})
    seen: set[str] = set()
    for name, texts in (("news", news), ("wikipedia", wikipedia), ("fiction", fiction)):
        found = [one for one in documents(name, texts(data)) if new(one["sentences"], seen)]
        found = [one for one in found if sum(each in judged for each in one["sentences"]) < 2]
        if name == "fiction":
            found = [cut for one in found for cut in parts(one)][::4][:PASSAGES]
        if name == "wikipedia":
            found = [one for one in found if len(one["sentences"]) > 7 or "boolq" not in str(one["id"])]
        count = max(1, round(len(found) / POOL))
        for part in range(count):
            pools[f"{name}-{part}"] = [
                {**one, "fold": -1, "sentences": one["sentences"][:LONGEST]} for one in found[part::count]
            ]
    print(
        {name: (len(one), sum(len(d["sentences"]) for d in one)) for name, one in pools.items()}, flush=True
    )
    near = [neighbours([one["sentences"] for one in pool]) for pool in pools.values()]
    made = []
    for (name, pool), theirs in zip(pools.items(), near, strict=True):
        for one, nearest in zip(pool, theirs, strict=True):
            made.append({**one, "pool": name, "near": nearest})
    print(Counter((one["domain"], one["fold"]) for one in made), flush=True)
    return made


def parts(one: dict[str, Any], size: int = 24) -> list[dict[str, Any]]:
    """Cut a long document into passages."""
    sentences = one["sentences"]
    return [
        {**one, "id": f"{one['id']}/{begin}", "work": one["id"], "sentences": sentences[begin : begin + size]}
        for begin in range(0, len(sentences) - 5, size)
    ]


def neighbours(pool: Sequence[Sequence[str]]) -> list[list[list[tuple[int, int]]]]:
    """Return the nearest sentences of other documents for each place but the first, as document and place.

    They are those of `Pool.nearest`, many at once.
    """
    index = _Index(pool)
    words = [_words(one) for one in index._sentences]
    places = np.arange(len(words)) - index._starts[index._document]
    found: list[list[list[tuple[int, int]]]] = [[] for _ in pool]
    for begin in range(0, len(words), 256):
        alike: Any = index._vectors[begin : begin + 256] @ index._by_word
        for line in range(alike.shape[0]):
            row = begin + line
            number = int(index._document[row])
            own = pool[number]
            kept: list[tuple[int, int]] = []
            found[number].append(kept)
            if not places[row]:
                continue
            part = slice(alike.indptr[line], alike.indptr[line + 1])
            rows, values = alike.indices[part], alike.data[part]
            fit = (np.abs(index._position[rows] - index._position[row]) <= _POSITION) & (values > 0.0)
            fit &= index._document[rows] != number
            rows, values = rows[fit], values[fit]
            if len(rows) > 2 * NEAREST:
                top = np.argpartition(-values, 2 * NEAREST)[: 2 * NEAREST]
                rows, values = rows[top], values[top]
            for other in rows[np.argsort(-values, kind="stable")]:
                if _shared(words[row], words[other]) <= _NEAR_COPY and index._sentences[other] not in own:
                    kept.append((int(index._document[other]), int(places[other])))
                    if len(kept) == NEAREST:
                        break
    return found


if __name__ == "__main__":
    main()
