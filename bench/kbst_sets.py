"""The document sets of bench/results/kbst.md, and long ones for blocks of up to twenty sentences, as JSON lines.

python bench/kbst_sets.py DATA OUT      # DATA: the unpacked data (~/ensue-data); OUT gets one file a set

bbc.jsonl: 40 articles of each of five sections, by file name; wsj.jsonl, blog.jsonl: all; legal.jsonl: the first 200.
chapters.jsonl: of every novel the first chapter of 100 to 300 sentences; stories.jsonl: the stories of SQuALITY's
test split; both without texts of more words than fit 8,192 tokens. Nothing of it is committed.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ensue.atomic import write_json_lines
from ensue.text.documents import read_documents
from ensue.text.sentences import split_sentences
from ensue.text.works.readers import find_works, read_work

SECTIONS, LEGAL = 40, 200
# A token is about three quarters of a word; a novel's words are no longer.
MOST_WORDS = 5_400
SENTENCES = range(100, 301)

Row = dict[str, Any]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("output", type=Path)
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    data: Path = options.data
    sets = {
        "bbc": [
            row for section in sorted((data / "news_bbc").iterdir()) for row in documents(section, SECTIONS)
        ],
        "wsj": documents(data / "news_wsj"),
        "blog": documents(data / "blog_paulgraham"),
        "legal": documents(data / "multilexsum", LEGAL),
        "chapters": list(chapters(data / "novels" / "eltec_chapters.jsonl")),
        "stories": list(stories(data / "squality" / "v1-3" / "txt" / "test.jsonl")),
    }
    for name, rows in sets.items():
        counts = sorted(len(row["sentences"]) for row in rows)
        words = sum(len(sentence.split()) for row in rows for sentence in row["sentences"])
        path = write_json_lines(options.output / f"{name}.jsonl", rows)
        print(f"{path}: {len(rows)} documents of {counts[0]} to {counts[-1]} sentences, {words:,} words")


def documents(source: Path, count: int | None = None) -> list[Row]:
    found = read_documents(source, limit=count, encoding="latin-1").items
    folder = source.name
    return [
        {"id": f"{folder}/{one.id}", "domain": one.domain, "sentences": list(one.sentences)} for one in found
    ]


def chapters(path: Path) -> Iterator[Row]:
    """Yield one chapter of each work, so that works weigh alike."""
    for unread in find_works(path):
        work = read_work(unread)
        for number, chapter in enumerate(work.chapters, start=1):
            sentences = split_sentences(chapter.text)
            if len(sentences) in SENTENCES and fits(sentences):
                yield {"id": f"{work.id}/{number}", "domain": "novels", "sentences": sentences}
                break


def stories(path: Path) -> Iterator[Row]:
    for line in path.read_text("utf-8").splitlines():
        row = json.loads(line)
        sentences = split_sentences(row["document"])
        if fits(sentences):
            yield {"id": str(row["metadata"]["passage_id"]), "domain": "stories", "sentences": sentences}


def fits(sentences: list[str]) -> bool:
    return sum(len(sentence.split()) for sentence in sentences) <= MOST_WORDS


if __name__ == "__main__":
    main()
