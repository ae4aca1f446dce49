"""Times ROUGE-1, 2 and L of this package against rouge-score on the same texts, in one process, one after the other.

python bench/rouge.py                              # 720 × 3 pairs of 240-word texts drawn with Zipf's law
python bench/rouge.py --data squality/v1/test.jsonl  # leave-one-out pairs of the real responses (720 × 3)
"""

from __future__ import annotations

import argparse
import json
import random
import time
from collections.abc import Sequence
from pathlib import Path

from rouge_score.rouge_scorer import RougeScorer

from ensue.metrics.overlap import rouge_of

Pairs = tuple[list[str], list[list[str]]]


def drawn(candidates: int, references: int, length: int, seed: int = 0) -> Pairs:
    """Texts of made-up words, as frequent as words are: the n-th in proportion to 1 / n."""
    generator = random.Random(seed)
    syllables = [first + second for first in "bdfgklmnprst" for second in "aeiou"]
    vocabulary = ["".join(generator.choices(syllables, k=generator.randint(1, 4))) for _ in range(8000)]
    endings = ["", "", "", "s", "ed", "ing", "ness"]
    weights = [1.0 / (rank + 1) for rank in range(len(vocabulary))]

    def text() -> str:
        words = generator.choices(vocabulary, weights, k=length)
        return " ".join(word + generator.choice(endings) for word in words) + "."

    return [text() for _ in range(candidates)], [
        [text() for _ in range(references)] for _ in range(candidates)
    ]


def left_out(path: Path) -> Pairs:
    """Each response of a SQuALITY file against the others to the same question."""
    candidates, references = [], []
    for line in path.read_text("utf-8").splitlines():
        for question in json.loads(line)["questions"]:
            texts = [response["response_text"] for response in question["responses"]]
            for i, text in enumerate(texts):
                candidates.append(text)
                references.append(texts[:i] + texts[i + 1 :])
    return candidates, references


def peer(candidates: Sequence[str], references: Sequence[Sequence[str]], stemming: bool) -> list[list[float]]:
    scorer = RougeScorer(["rouge1", "rouge2", "rougeL"], use_stemmer=stemming)
    scores = [
        scorer.score(reference, candidate)
        for candidate, own in zip(candidates, references, strict=True)
        for reference in own
    ]
    return [[value for kind in ("rouge1", "rouge2", "rougeL") for value in score[kind]] for score in scores]


def ours(candidates: Sequence[str], references: Sequence[Sequence[str]], stemming: bool) -> list[list[float]]:
    rows = rouge_of(candidates, references, stemming=stemming)
    return [[value for kind in one for value in kind] for row in rows for one in row]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="a SQuALITY v1 file")
    parser.add_argument("--candidates", type=int, default=720)
    parser.add_argument("--references", type=int, default=3)
    parser.add_argument("--words", type=int, default=240)
    args = parser.parse_args()
    texts = left_out(args.data) if args.data else drawn(args.candidates, args.references, args.words)
    ours(texts[0][:1], texts[1][:1], True)  # imports are not what is compared
    for stemming in (False, True):
        began = time.perf_counter()
        found = ours(*texts, stemming)
        middle = time.perf_counter()
        expected = peer(*texts, stemming)
        end = time.perf_counter()
        difference = max(
            abs(a - b)
            for one, two in zip(found, expected, strict=True)
            for a, b in zip(one, two, strict=True)
        )
        print(
            f"stemming {stemming!s:5}  {len(found)} pairs  ensue {middle - began:.2f} s  rouge-score "
            f"{end - middle:.2f} s  ratio {(end - middle) / (middle - began):.0f}×  largest difference "
            f"{difference:.1e}"
        )


if __name__ == "__main__":
    main()
