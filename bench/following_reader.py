"""The documents that the reader of `ensue score --profile` learns from, of collections that nothing is judged on.

    python bench/following_reader.py DATA OUT      # OUT/news.jsonl, wikipedia.jsonl, fiction.jsonl
    ensue train reader --model minilm --data OUT/news.jsonl --data OUT/wikipedia.jsonl --data OUT/fiction.jsonl …

News: XSum, but for the articles that the calibration has (bench/intruder.py), and the articles of QAGS, REALSumm and
SummEval. Wikipedia: wikitext-2, SQuAD's articles and BoolQ's passages. Fiction: passages of SQuALITY's stories and of
LitBank's novels. Nothing of news_bbc, news_wsj, blog_paulgraham or multilexsum is read. A text that is there twice,
in whatever form, is taken once.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterator
from pathlib import Path

from intruder import xsum

from ensue.atomic import write_json_lines
from ensue.text.sentences import split_sentences

FEWEST, LONGEST = 5, 240
_SPACED = ((r" ([.,;:!?%)\]])", r"\1"), (r"([(\[]) ", r"\1"), (r" (n't|'(?:s|re|ve|ll|d|m))\b", r"\1"))
_WIKI = ((" @-@ ", "-"), (" @,@ ", ","), (" @.@ ", "."))
_PAGE = re.compile(r"^ = [^=].* = $", re.M)
_GUTENBERG = re.compile(r"\*\*\* ?(?:START|END) OF .*?\*\*\*", re.S)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("output", type=Path)
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    seen: set[str] = set()
    for name, texts in (("news", news), ("wikipedia", wikipedia), ("fiction", fiction)):
        found = [one for one in documents(name, texts(options.data)) if new(one["sentences"], seen)]
        file = write_json_lines(options.output / f"{name}.jsonl", found)
        print(f"{file}: {len(found)} documents, {sum(len(one['sentences']) for one in found)} sentences")


def documents(name: str, texts: Iterator[tuple[str, str]]) -> Iterator[dict[str, object]]:
    for id, text in texts:
        sentences = [one for part in text.split("\n") for one in split_sentences(part) if worded(one)]
        if len(sentences) >= FEWEST:
            yield {"id": f"{name}/{id}", "domain": name, "sentences": sentences[:LONGEST]}


def worded(sentence: str) -> bool:
    """Say whether a line has a sentence in it, and no heading, byline or number alone."""
    return len(re.findall(r"[A-Za-z]{2,}", sentence)) >= 3


def new(sentences: list[str], seen: set[str]) -> bool:
    """Say whether none of the first sentences was there before; whatever stands between the letters."""
    keys = {re.sub(r"\W+", "", one).lower() for one in sentences[:4] if len(one) > 40}
    fresh = not keys & seen
    seen |= keys
    return fresh


def news(data: Path) -> Iterator[tuple[str, str]]:
    path = data / "xsum_sample" / "test.jsonl"
    calibrated = {one["id"] for one in xsum(path)}
    for row in lines(path):
        if f"xsum/{row['id']}" not in calibrated:
            yield f"xsum/{row['id']}", row["document"]
    used = {re.sub(r"\W+", "", one["text"])[:80].lower() for one in xsum(path)}
    for name in ("cnndm", "xsum"):
        for number, row in enumerate(lines(data / "qags" / f"mturk_{name}.jsonl")):
            if re.sub(r"\W+", "", row["article"])[:80].lower() not in used:
                yield f"qags-{name}/{number}", row["article"]
    for name in ("summeval", "realsumm"):
        for number, row in json.loads((data / "summeval" / f"{name}.json").read_text("utf-8")).items():
            yield f"{name}/{number}", unspaced(row["src"])


def wikipedia(data: Path) -> Iterator[tuple[str, str]]:
    text = (data / "wikitext-2" / "wiki.test.raw").read_text("utf-8")  # of the other part names are left out
    for number, page in enumerate(_PAGE.split(text)[1:]):
        for marked, plain in _WIKI:
            page = page.replace(marked, plain)
        kept = [line.strip() for line in page.splitlines() if line.strip() and not line.startswith(" =")]
        yield f"wikitext/{number}", unspaced("\n".join(kept))
    for file in ("dev-v1.1.json", "dev-v2.0.json"):
        for article in json.loads((data / "squad" / file).read_text("utf-8"))["data"]:
            yield (
                f"{file}/{article['title']}",
                "\n".join(one["context"] for one in article["paragraphs"]),
            )
    for part in ("train", "val", "test"):
        for row in lines(data / "superglue" / "BoolQ" / f"{part}.jsonl"):
            yield f"boolq-{part}/{row['idx']}", row["passage"].partition(" -- ")[2] or row["passage"]


def fiction(data: Path) -> Iterator[tuple[str, str]]:
    for part in ("train", "dev", "test"):
        for row in lines(data / "squality" / "v1-3" / "txt" / f"{part}.jsonl"):
            yield f"squality/{row['metadata']['passage_id']}", middle(row["document"])
    for path in sorted((data / "novels" / "litbank_fulltext").glob("*.txt")):
        text = path.read_text("utf-8", errors="replace")
        parts = _GUTENBERG.split(text)
        yield f"litbank/{path.stem}", middle(max(parts, key=len))


def middle(text: str, size: int = 16_000) -> str:
    """Return whole paragraphs of the middle of a work, each on a line."""
    paragraphs = [" ".join(one.split()) for one in re.split(r"\n\s*\n", text)]
    at, begin = 0, len(text) // 3
    kept = []
    for one in paragraphs:
        at += len(one) + 2
        if begin <= at <= begin + size:
            kept.append(one)
    return "\n".join(kept)


def lines(path: Path) -> Iterator[dict[str, object]]:
    for line in path.read_text("utf-8").splitlines():
        yield json.loads(line)


def unspaced(text: str) -> str:
    """Undo what a tokenizer did to punctuation."""
    for pattern, into in _SPACED:
        text = re.sub(pattern, into, text)
    return text.replace("`` ", '"').replace(" ''", '"')


if __name__ == "__main__":
    main()
