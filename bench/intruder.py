"""The documents on which "where does it stop following?" is fitted and judged, parted once and for all.

    python bench/intruder.py DATA OUT     # DATA: the unpacked data; OUT gets one JSON-lines file a set

The rule (which measures, and what each weighs) was chosen by cross-validation on the first 320, later 720 BBC
articles of a fixed draw. `calibrate.jsonl` holds these 720 and 150 of XSum: `ensue calibrate MODEL --data
calibrate.jsonl` fits the verdict on them. `bbc.jsonl` holds the 400 after them, `wsj.jsonl`, `blog.jsonl` and
`legal.jsonl` other collections: `ensue run intruder --model MODEL --data bbc.jsonl` judges.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from random import Random

from ensue.atomic import write_json_lines
from ensue.text.documents import Document, read_documents

FEWEST = 6
FITTED, JUDGED, XSUM, OTHERS = 720, 400, 150, 150


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("output", type=Path)
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    bbc = [one for one in bbc_articles(options.data / "news_bbc") if len(one[1].sentences) >= FEWEST]
    sets = {
        "calibrate": [*rows(bbc[:FITTED]), *xsum(options.data / "xsum_sample" / "test.jsonl")],
        "bbc": rows(bbc[FITTED : FITTED + JUDGED]),
        "wsj": others(options.data / "news_wsj", "latin-1"),
        "blog": others(options.data / "blog_paulgraham"),
        "legal": others(options.data / "multilexsum"),
    }
    for name, found in sets.items():
        print(f"{write_json_lines(options.output / f'{name}.jsonl', found)}: {len(found)} documents")


def bbc_articles(folder: Path) -> list[tuple[str, Document]]:
    """Draw all articles in a fixed order; the numbers of the files are taken anew in each domain."""
    generator = Random(14)
    found = []
    for domain in sorted(path.name for path in folder.iterdir()):
        documents = list(read_documents(folder / domain).items)
        generator.shuffle(documents)
        found += [(f"{domain}/{one.id}", one) for one in documents]
    generator.shuffle(found)
    return found


def rows(documents: list[tuple[str, Document]]) -> list[dict[str, str]]:
    return [{"id": name, "domain": name.split("/")[0], "text": one.text or ""} for name, one in documents]


def xsum(path: Path) -> list[dict[str, str]]:
    """Take the first articles that are long enough."""
    found = []
    for line in path.read_text("utf-8").splitlines():
        row = json.loads(line)
        text = row["document"]
        if len(text.split("\n")) >= FEWEST and len(found) < XSUM:
            found.append({"id": f"xsum/{row['id']}", "domain": "xsum", "text": text})
    return found


def others(source: Path, encoding: str = "utf-8") -> list[dict[str, str]]:
    documents = read_documents(source, encoding=encoding).items
    return [
        {"id": one.id, "domain": one.domain, "text": one.text or " ".join(one.sentences)} for one in documents
    ][:OTHERS]


if __name__ == "__main__":
    main()
