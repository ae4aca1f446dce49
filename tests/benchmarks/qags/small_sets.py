"""All five sets of judgments, a few summaries each, and runs on them with parts that work by rule."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ensue.benchmarks.base import Outcome, RunContext
from ensue.benchmarks.qags.task import TASK, QagsRun
from ensue.benchmarks.settings import resolve
from ensue.models.card import ModelCard
from ensue.models.protocols import Model
from tests.benchmarks.qags.invented import write_json, write_lines
from tests.benchmarks.qags.toys import (
    FAITHFUL,
    NAMELESS,
    OTHER,
    SOURCE,
    WRONG,
    Letters,
    NameAfter,
    NameFinder,
)

MIXED = "The ferry steered by Ruth left for Lund."
TEXTS = [
    (SOURCE, FAITHFUL),
    (SOURCE, WRONG),
    (SOURCE, MIXED),
    (OTHER, WRONG),
    (OTHER, NAMELESS),
    (OTHER, MIXED),
]
VOTES = [("yes", "yes", "no"), ("no", "no", "yes"), ("yes", "no", "yes"), ("yes", "yes", "yes"), ("no",) * 3]
WROTE = {"first": FAITHFUL, "second": WRONG, "third": MIXED}


class Nothing:
    card = ModelCard(name="source-overlap", kind="untrained", source="test")


def judged_line(article: str, summary: str, votes: list[tuple[str, ...]]) -> dict[str, Any]:
    cut = [sentence + "." for sentence in summary.rstrip(".").split(". ")]
    return {
        "article": article,
        "summary_sentences": [
            {
                "sentence": sentence,
                "responses": [{"worker_id": worker, "response": vote} for worker, vote in enumerate(said)],
            }
            for sentence, said in zip(cut, votes, strict=False)
        ],
    }


def write_sets(root: Path) -> Path:
    """All five sets, small, in the folders they come in."""
    for name in ("qags", "falke2019", "summeval"):
        (root / name).mkdir(parents=True)
    lines = [judged_line(*one, VOTES[place % 4 :]) for place, one in enumerate(TEXTS)]
    write_lines(root / "qags" / "mturk_cnndm.jsonl", lines)
    write_lines(root / "qags" / "mturk_xsum.jsonl", lines[:4])
    triplets = [
        {
            "article_id": f"a{place}",
            "article_sent": source,
            "correct_sent": good,
            "correct_sent_id": "1",
            "incorrect_sent": bad,
            "incorrect_sent_id": "2",
        }
        for place, (source, good, bad) in enumerate(
            [
                (SOURCE, FAITHFUL, WRONG),
                (SOURCE, MIXED, WRONG),
                (OTHER, FAITHFUL, WRONG),
                (OTHER, MIXED, NAMELESS),
            ]
        )
    ]
    write_json(root / "falke2019" / "val_sentence_pairs.json", triplets)
    for name, keys in (
        ("summeval", ("coherence", "consistency", "fluency", "relevance")),
        ("realsumm", ("litepyramid_recall",)),
    ):
        articles = {
            f"art{number}": {
                "src": source,
                "ref_summs": [reference, FAITHFUL],
                "sys_summs": {
                    system: {"sys_summ": text, "scores": {key: float(place + number) for key in keys}}
                    for place, (system, text) in enumerate(WROTE.items())
                },
            }
            for number, (source, reference) in enumerate(
                [
                    (SOURCE, "Ruth went to Ellery."),
                    (OTHER, "A letter went to Brandt."),
                    (SOURCE, "A ferry left."),
                ]
            )
        }
        write_json(root / "summeval" / f"{name}.json", articles)
    return root


@dataclass(frozen=True)
class SmallRun(QagsRun):
    """A run whose further models are loaded by these names."""

    answers: NameAfter = field(default_factory=NameAfter)

    def evaluate(self, model: Model, context: RunContext) -> Outcome:
        models: dict[str, Model] = {"minilm-qa": self.answers, "letters": Letters()}
        return super().evaluate(model, replace(context, load=models.__getitem__))


def prepared(
    data: Path, *, limit: int | None = None, answers: NameAfter | None = None, **given: object
) -> QagsRun:
    settings = resolve("qags", TASK.settings, given)
    found = TASK.prepare("", str(data), limit, 0, settings)
    assert isinstance(found, QagsRun)
    return SmallRun(found.data, settings, found.preset, NameFinder, answers or NameAfter())
