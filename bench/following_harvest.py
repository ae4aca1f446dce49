"""Log-probabilities of every token, from which "does it follow?" is studied, written down once by a GPU.

    python bench/following_harvest.py prepare DATA OUT     # here: OUT/versions.jsonl, a line a version
    python bench/following_harvest.py fresh DATA OUT       # here: OUT/fresh.jsonl, what rule 3 was judged on
    python bench/following_harvest.py last DATA OUT        # here: OUT/last.jsonl, what is left for a rule after it
    python bench/following_harvest.py run VERSIONS MODEL OUT   # there: MODEL a folder; OUT/NAME-PART.npz
    python bench/following_harvest.py read VERSIONS READER OUT.npz   # there: what a reader says of each sentence

Development only: the first 720 BBC articles of the draw (bench/intruder.py), 150 of XSum, 100 passages of novels, and
the texts of bench/following but for `forms_test.jsonl`. Versions are those of `ensue run intruder`; `whole` is a text
as `ensue calibrate` reads it. A part is written when it is done, the most needed first: a run that is cut off leaves
those. Everything is scored by the package's engine in float32.

`fresh` has what nobody had looked at before rule 3: two times 400 BBC articles of the draw, from 1,206 on (in sets,
for the more articles intruders are drawn from, the nearer is the nearest), and WSJ, essays and legal summaries whole.
`last` has what no rule since the first was judged on: BBC articles 720 to 1,119 and from 2,006 on, but for those that
are there twice; the other collections again; and the 800 of `fresh` as `ensue calibrate` reads them.

An .npz holds for each kind of request (below) `NAME_row` (the version's line), `NAME_place` (the sentence), for
`places` and `pairs` also `NAME_other`, and `NAME_sum` (float32); for those with all tokens `NAME_count` and
`NAME_tokens` (float16), one after the other.

- `context`: the sentence after the text before it (all tokens); `alone`: on its own (all tokens)
- `without`: the sentence without the one before it (all tokens), `head`: its first words, as the package asks
- `after1`: after the sentence before it alone
- `places`: after the first `other` of the other sentences; `pairs`: after the sentence `other` alone
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import types
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "src"), str(HERE)]
if find_spec("sentencex") is None:  # texts come cut already, and a machine for one run has no such package
    sys.modules["sentencex"] = types.ModuleType("sentencex")

DETAILED = ("context", "alone", "without")
BASE = ("context", "alone", "without", "head", "after1")
LEAN = ("context", "alone", "head")
PLACES = ("places", "pairs")
NOVELS, PASSAGE, PLACED = 100, 24, 80
# Articles from 1,120 on are fresh but for the first 86 of them.
FRESH, EACH = 1206, 400


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("prepare", "fresh", "last"):
        prepared = commands.add_parser(name)
        prepared.add_argument("data", type=Path)
        prepared.add_argument("output", type=Path)
    run = commands.add_parser("run")
    run.add_argument("versions", type=Path)
    run.add_argument("model", type=Path)
    run.add_argument("output", type=Path)
    run.add_argument("--device", default="auto")
    run.add_argument("--compile", default="auto")
    run.add_argument("--chunk", type=int, default=240, help="versions scored at once")
    run.add_argument("--limit", type=int, help="of each part only so many versions, to try it")
    run.add_argument("--parts", default="all", help="only these, by name: " + ", ".join(PARTS))
    run.add_argument("--seconds", type=float, default=1e9, help="begin nothing after so many")
    reading = commands.add_parser("read")
    reading.add_argument("versions", type=Path)
    reading.add_argument("reader")
    reading.add_argument("output", type=Path)
    reading.add_argument("--encoder", default="none")
    reading.add_argument("--limit", type=int)
    options = parser.parse_args()
    {"prepare": prepare, "fresh": fresh, "last": last, "run": harvest, "read": read}[options.command](options)


class Row(NamedTuple):
    """A version of a text: where it is from, what was done to it at which places, and where its sentences end."""

    id: str
    set: str
    kind: str
    places: list[int]
    text: str
    ends: list[int]


def sentences_of(row: Row) -> list[str]:
    """Return the sentences of a version, without what stands between them."""
    return [row.text[begin:end].strip() for begin, end in pairwise([0, *row.ends])]


# What is asked of which versions, in order.
PARTS: dict[str, tuple[tuple[str, ...], Any]] = {
    "bbc": (BASE, lambda row: row.set == "bbc" and row.kind in ("untouched", "random", "hard")),
    "whole": (LEAN, lambda row: row.kind == "whole"),
    "places": (PLACES, lambda row: row.set == "placed"),
    "others": (BASE, lambda row: row.set in ("xsum", "novels") and row.kind != "whole"),
    "more": (BASE[:4], lambda row: row.set == "bbc1"),
    # Of another file.
    "judged": (LEAN, lambda row: row.set.startswith("judged-")),
}


def prepare(options: argparse.Namespace) -> None:
    """Write all versions of all texts, a line each."""
    from intruder import FEWEST, FITTED, bbc_articles, rows, xsum

    from ensue.text.documents import read_documents
    from ensue.text.units import split_units

    options.output.mkdir(parents=True, exist_ok=True)
    bbc = [one for one in bbc_articles(options.data / "news_bbc") if len(one[1].sentences) >= FEWEST]
    sets = {
        "bbc": rows(bbc[:FITTED]),
        "xsum": xsum(options.data / "xsum_sample" / "test.jsonl"),
        "novels": passages(options.data / "novels" / "eltec_chapters.jsonl"),
    }
    found: list[Row] = []
    for name, texts in sets.items():
        file = options.output / f"{name}.jsonl"
        file.write_text("".join(json.dumps(one) + "\n" for one in texts), "utf-8")
        documents = read_documents(file)
        found += versions(documents, name, 0)
        found += wholes(name, [(one["id"], one["text"]) for one in texts], split_units)
        if name == "bbc":
            found += [row for row in versions(documents, "bbc1", 1) if row.kind != "untouched"]
            first = {one.id for one in documents.items[:PLACED]}
            found += [row._replace(set="placed") for row in versions(documents, name, 0) if row.id in first]
    for name in ("forms_dev", "broken"):
        lines = (HERE / "following" / f"{name}.jsonl").read_text("utf-8").splitlines()
        texts = [json.loads(line) for line in lines]
        found += wholes(name, [(one["id"], one["text"]) for one in texts], split_units)
    file = options.output / "versions.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in found), "utf-8")
    print(f"{file}: {len(found)} versions, {file.stat().st_size / 1e6:.1f} MB")


def fresh(options: argparse.Namespace) -> None:
    """Write the versions of what is judged once."""
    from intruder import FEWEST, bbc_articles, others, rows

    from ensue.text.documents import read_documents

    options.output.mkdir(parents=True, exist_ok=True)
    bbc = [one for one in bbc_articles(options.data / "news_bbc") if len(one[1].sentences) >= FEWEST]
    sets = {
        "bbc-a": rows(bbc[FRESH : FRESH + EACH]),
        "bbc-b": rows(bbc[FRESH + EACH : FRESH + 2 * EACH]),
        "wsj": others(options.data / "news_wsj", "latin-1"),
        "blog": others(options.data / "blog_paulgraham"),
        "legal": others(options.data / "multilexsum"),
    }
    found: list[Row] = []
    for name, texts in sets.items():
        file = options.output / f"judged-{name}.jsonl"
        file.write_text("".join(json.dumps(one) + "\n" for one in texts), "utf-8")
        found += versions(read_documents(file), f"judged-{name}", 0)
    file = options.output / "fresh.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in found), "utf-8")
    print(f"{file}: {len(found)} versions, {file.stat().st_size / 1e6:.1f} MB")


def last(options: argparse.Namespace) -> None:
    """Write the versions of what no rule since the first was judged on, and whole the texts of `fresh`."""
    from intruder import FEWEST, FITTED, bbc_articles, others, rows

    from ensue.text.documents import read_documents
    from ensue.text.units import split_units

    options.output.mkdir(parents=True, exist_ok=True)
    bbc = [one for one in bbc_articles(options.data / "news_bbc") if len(one[1].sentences) >= FEWEST]
    unseen = {*range(FITTED, FITTED + EACH), *range(FRESH + 2 * EACH, len(bbc))}
    seen = {one[1].sentences for number, one in enumerate(bbc) if number not in unseen}
    fresh = []
    for number in sorted(unseen):
        if bbc[number][1].sentences not in seen:
            seen.add(bbc[number][1].sentences)
            fresh.append(bbc[number])
    sets = {
        "bbc-c": rows(fresh),
        "wsj": others(options.data / "news_wsj", "latin-1"),
        "blog": others(options.data / "blog_paulgraham"),
        "legal": others(options.data / "multilexsum"),
    }
    found: list[Row] = []
    for name, texts in sets.items():
        file = options.output / f"last-{name}.jsonl"
        file.write_text("".join(json.dumps(one) + "\n" for one in texts), "utf-8")
        found += versions(read_documents(file), f"judged-{name}", 0)
    again = rows(bbc[FRESH : FRESH + 2 * EACH])
    found += wholes("bbc-ab", [(one["id"], one["text"]) for one in again], split_units)
    file = options.output / "last.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in found), "utf-8")
    print(f"{file}: {len(found)} versions, {len(fresh)} of BBC, {file.stat().st_size / 1e6:.1f} MB")


def versions(documents: Any, name: str, seed: int) -> Iterator[Row]:
    """Yield the versions that `ensue run intruder` makes of documents."""
    from ensue.benchmarks.intruder.task import SETTINGS, IntruderRun
    from ensue.scoring.following import Pieces

    settings = {key: one.default for key, one in SETTINGS.items()} | {"kinds": ["random", "hard"]}
    for one in IntruderRun(documents, seed, settings).versions()[0]:
        pieces = Pieces.joined(one.edited.sentences)
        yield Row(one.document.id, name, one.kind, list(one.edited.places), pieces.text, list(pieces.ends))


def wholes(name: str, texts: Sequence[tuple[str, str]], split: Any) -> Iterator[Row]:
    """Yield texts as a profile reads them."""
    from ensue.scoring.following import Pieces

    for id, text in texts:
        yield Row(id, name, "whole", [], text, list(Pieces.of(text, split(text)).ends))


def passages(path: Path) -> list[dict[str, str]]:
    """Take a passage of some sentences from the middle of each novel."""
    from ensue.text.sentences import split_sentences

    generator = Random(14)
    found: list[dict[str, str]] = []
    for line in path.read_text("utf-8").splitlines():
        novel = json.loads(line)
        long = [one for one in novel["chapters"] if len(one["paragraphs"]) > 15 + PASSAGE]
        if not long or len(found) == NOVELS:
            continue
        chapter = generator.choice(long)
        begin = generator.randrange(5, 15)
        taken: list[str] = []
        while len(split_sentences("\n\n".join(taken))) < PASSAGE:
            taken.append(chapter["paragraphs"][begin + len(taken)])
        found.append({"id": novel["id"], "domain": "novels", "text": "\n\n".join(taken)})
    return found


def requests(row: Row, kind: str) -> Iterator[tuple[int, int, Any]]:
    """Yield what is asked of a version, with the sentence and what it is put after."""
    from ensue.models.request import Request
    from ensue.scoring.following import _NOTHING, Pieces, context_starts, head_of

    text = Pieces(row.text, tuple(row.ends))
    starts = context_starts(text.ends)
    count = len(text.ends)
    pieces = [text.piece(place) for place in range(count)]
    for place in range(1, count):
        own, begin = pieces[place], text.begin(place)
        if kind == "context":
            yield place, 0, Request(own, text.text[starts[place] : begin], detail=True)
        elif kind == "alone":
            yield place, 0, Request(own.lstrip(), _NOTHING, detail=True)
        elif kind in ("without", "head") and place > 1:
            words = own if kind == "without" else head_of(own)
            before = text.text[starts[place] : text.begin(place - 1)] or _NOTHING
            yield place, 0, Request(words, before, detail=kind == "without")
        elif kind == "after1":
            yield place, 0, Request(own, pieces[place - 1].lstrip())
        elif kind == "places":
            others = pieces[:place] + pieces[place + 1 :]
            for other in range(1, count):
                yield place, other, Request(own, "".join(others[:other]))
        elif kind == "pairs":
            for other in range(count):
                if other != place:
                    yield place, other, Request(own, pieces[other].lstrip())


def harvest(options: argparse.Namespace) -> None:
    """Score all that is asked of the versions, part by part."""
    import transformers  # noqa: F401 - first, which avoids a circular import in some versions

    from ensue.backends.names import load_model

    began = time.perf_counter()
    options.output.mkdir(parents=True, exist_ok=True)
    rows = [Row(*json.loads(line)) for line in options.versions.read_text("utf-8").splitlines()]
    scorer = load_model(str(options.model), dtype="float32", device=options.device, compile=options.compile)
    say(began, f"{scorer.card.name} {scorer.card.fingerprint[:12]} on {scorer.device_kind}")
    name = options.model.name.rsplit("-", 1)[0]
    for part, (kinds, chosen) in PARTS.items():
        if options.parts != "all" and part not in options.parts.split(","):
            continue
        numbers = [number for number, row in enumerate(rows) if chosen(row)][: options.limit]
        kept: dict[str, dict[str, list[Any]]] = {kind: {} for kind in kinds}
        size = max(1, options.chunk // (8 if part == "places" else 1))
        for at in range(0, len(numbers), size):
            if time.perf_counter() - began > options.seconds:
                say(began, f"{part}: time is over after {at} of {len(numbers)} versions")
                break
            one_chunk(scorer, rows, numbers[at : at + size], kept)
            say(began, f"{part}: {min(at + size, len(numbers))} of {len(numbers)} versions")
        write(options.output / f"{name}-{part}.npz", kept)
    say(began, "done")


def one_chunk(
    scorer: Any, rows: Sequence[Row], numbers: Sequence[int], kept: dict[str, dict[str, list[Any]]]
) -> None:
    """Score what is asked of some versions and keep it."""
    from ensue.scoring.engine import score
    from ensue.scoring.following import POLICY

    asked = [
        (kind, number, *one) for kind in kept for number in numbers for one in requests(rows[number], kind)
    ]
    scores = score(scorer, [one[-1] for one in asked], policy=POLICY).scores
    for (kind, number, place, other, request), found in zip(asked, scores, strict=True):
        of = kept[kind]
        for name, value in (("row", number), ("place", place), ("other", other), ("sum", found.logprob)):
            of.setdefault(name, []).append(value)
        if request.detail:
            of.setdefault("tokens", []).append(np.array(found.token_logprobs, np.float16))
        of.setdefault("count", []).append(found.tokens)


def read(options: argparse.Namespace) -> None:
    """Write down of each sentence what a reader says of it and how like it is to those around it, with its place."""
    from following_judge import likenesses

    from ensue.backends.names import load_model

    began = time.perf_counter()
    rows = [Row(*json.loads(line)) for line in options.versions.read_text("utf-8").splitlines()]
    numbers = [number for number, row in enumerate(rows) if row.set != "placed"][: options.limit]
    kept = {
        "row": np.repeat(np.array(numbers, np.int32), [len(rows[i].ends) for i in numbers]),
        "place": np.concatenate([np.arange(len(rows[i].ends), dtype=np.int16) for i in numbers]),
    }
    if options.reader != "none":
        reader: Any = load_model(options.reader, dtype="float32")
        found = reader.read([sentences_of(rows[i]) for i in numbers])
        kept["logit"] = np.concatenate([np.array(one, np.float32) for one in found])
        say(began, f"{len(numbers)} versions read by {reader.card.name}")
    if options.encoder != "none":
        alike = likenesses(load_model(options.encoder, dtype="float32"), {i: rows[i] for i in numbers})
        kept["likeness"] = np.concatenate([alike[i] for i in numbers])
        say(began, f"{len(numbers)} versions compared by {options.encoder}")
    np.savez_compressed(options.output, **kept)


def write(path: Path, kept: dict[str, dict[str, list[Any]]]) -> None:
    """Write what is kept, each in as few bytes as will do."""
    kinds = {"row": np.int32, "place": np.int16, "other": np.int16, "count": np.int16, "sum": np.float32}
    arrays = {}
    for kind, of in kept.items():
        for name, values in of.items():
            made = np.concatenate(values) if name == "tokens" else np.array(values, kinds[name])
            arrays[f"{kind}_{name}"] = made
    np.savez_compressed(path, **arrays)
    print(f"{path}: {path.stat().st_size / 1e6:.1f} MB", flush=True)


def say(began: float, what: str) -> None:
    print(f"{time.perf_counter() - began:7.1f} s  {what}", flush=True)


if __name__ == "__main__":
    main()
