"""The documents that coherence models are trained and tested on, as JSON lines; nothing of it is committed.

    python bench/coherence_sets.py DATA OUT      # DATA: the unpacked data (~/ensue-data)

OUT/train: of BBC and WSJ the even documents in the order of their files, so that the odd ones stay for testing; XSum
whole; the even novels of ELTeC and LitBank by chapter; Wikipedia (SQuAD's paragraphs, WikiText-2's valid and test
texts); the stories of SQuALITY's training split. OUT/dev: documents of the even half, for choices made with models
that were not trained on them. OUT/test: odd documents of which most sentences are in none of the even ones (BBC has
articles twice). Articles of BBC come without their headlines. Documents of dev and test have eight sentences or more,
so that there are two blocks at k = 5 but for a few, and are cut at twenty; `ten` files have those of ten or more.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

from ensue.atomic import write_json_lines
from ensue.text.documents import read_documents
from ensue.text.io.squad import read_squads
from ensue.text.sentences import split_sentences
from ensue.text.works.readers import NotUsable, find_works, read_work

NOVELS = ("eltec_chapters.jsonl", "litbank_fulltext")
SHORTEST, LONGEST, TEN = 8, 20, 10
DEV, TEST = {"bbc": 200, "wsj": 60}, {"bbc": 200, "wsj": None}
# ` = Title = ` of WikiText, and the signs it has within numbers and words.
TITLE, INNER = re.compile(r"^ = [^=].* = $", re.MULTILINE), re.compile(r" @(.)@ ")

Texts = list[tuple[str, list[str]]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("output", type=Path)
    options = parser.parse_args()
    data, output = options.data.expanduser(), options.output
    for name in ("bbc", "wsj"):
        found = news(data / f"news_{name}", headline=name == "bbc")
        learned, odd = found[::2], found[1::2]
        known = {sentence for _, sentences in learned for sentence in sentences}
        fresh = [(id, text) for id, text in odd if sum(one in known for one in text) <= len(text) / 2]
        write(output / "train", name, learned)
        write(output / "dev", name, sample(learned, DEV[name]))
        chosen = sample(fresh, TEST[name])
        write(output / "test", name, chosen)
        write(output / "test", f"{name}-ten", [one for one in chosen if len(one[1]) >= TEN])
    with (data / "xsum_sample" / "test.jsonl").open(encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    write(
        output / "train", "xsum", [(str(row["id"]), split_sentences(row["document"] or "")) for row in rows]
    )
    write(output / "train", "novels", [one for name in NOVELS for one in chapters(data / "novels" / name)])
    write(output / "train", "wiki", [*paragraphs(data), *pages(data)])
    write(output / "train", "stories", list(stories(data / "squality" / "v1-3" / "txt" / "train.jsonl")))
    shutil.copy(data / "summeval" / "summeval.json", output / "test" / "summeval.json")


def news(source: Path, *, headline: bool) -> Texts:
    # Two of the Journal's files are not UTF-8.
    encoding = "utf-8" if headline else "latin-1"
    found = read_documents(source, encoding=encoding).items
    return [(one.id, list(one.sentences)[1 if headline else 0 :]) for one in found]


def sample(texts: Sequence[tuple[str, list[str]]], count: int | None) -> Texts:
    """Draw so many of the documents that are long enough, cut."""
    usable = [(id, text[:LONGEST]) for id, text in texts if len(text) >= SHORTEST]
    random.Random(17).shuffle(usable)
    return usable[:count]


def chapters(source: Path) -> Iterator[tuple[str, list[str]]]:
    """Yield the chapters of every other work that has any."""
    for number, unread in enumerate(find_works(source)):
        if number % 2:
            continue
        try:
            work = read_work(unread)
        except NotUsable:
            continue
        for place, chapter in enumerate(work.chapters):
            yield f"{work.id}:{place}", split_sentences(chapter.text)


def paragraphs(data: Path) -> Iterator[tuple[str, list[str]]]:
    for article in read_squads([str(data / "squad" / "dev-v1.1.json")]):
        yield article.id, [one for each in article.paragraphs for one in split_sentences(each.context)]


def pages(data: Path) -> Iterator[tuple[str, list[str]]]:
    """Yield WikiText's articles without their headings."""
    for name in ("wiki.test.raw", "wiki.valid.tokens"):
        text = INNER.sub(r"\1", (data / "wikitext-2" / name).read_text("utf-8"))
        for number, page in enumerate(TITLE.split(text)[1:]):
            lines = [line.strip() for line in page.splitlines() if not line.startswith(" = ")]
            yield f"{name}:{number}", [one for line in lines if line for one in split_sentences(line)]


def stories(path: Path) -> Iterator[tuple[str, list[str]]]:
    for line in path.read_text("utf-8").splitlines():
        row = json.loads(line)
        yield str(row["metadata"]["passage_id"]), split_sentences(row["document"])


def write(folder: Path, name: str, texts: Texts) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    rows = [{"id": f"{name}/{id}", "sentences": sentences} for id, sentences in texts if sentences]
    path = write_json_lines(folder / f"{name}.jsonl", rows)
    print(f"{path}: {len(rows)} documents, {path.stat().st_size / 1e6:.1f} MB", flush=True)


if __name__ == "__main__":
    main()
