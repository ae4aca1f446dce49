"""Comparing runs of ChapterBreak: an example is the same whichever other lengths a run has."""

from __future__ import annotations

from pathlib import Path

from ensue.benchmarks.chapterbreak.ranking import Ranked, SuffixChoice
from ensue.benchmarks.chapterbreak.task import items_of
from ensue.report.results import Item
from ensue.runs.compare import compare_runs
from tests.benchmarks.chapterbreak.test_task import examples
from tests.support.run_folders import write_items


def items(lengths: tuple[int, ...], gold: float) -> list[Item]:
    return [
        item
        for example in examples(4)
        for length in lengths
        for item in items_of(
            Ranked(
                SuffixChoice(example, {"in-book": example.negatives}),
                256,
                length,
                {example.gold: gold, **dict.fromkeys(example.negatives, -2.0)},
            ),
            len(lengths) > 1,
        )
    ]


def test_a_length_that_both_runs_have_is_compared(tmp_path: Path) -> None:
    one = write_items(tmp_path / "a", "chapterbreak", items((128,), -1.0))
    other = write_items(tmp_path / "b", "chapterbreak", items((64, 128), -3.0))
    found = compare_runs(one, other, rounds=100)
    (accuracy,) = [row for row in found.rows if row.metric == "accuracy"]
    assert (accuracy.value_a, accuracy.value_b, accuracy.settings["suffix_tokens"]) == (1.0, 0.0, 128)
    assert (accuracy.test.n, accuracy.test.clusters) == (4, 2)
    assert any("only b has are left out" in note and "suffix tokens 64" in note for note in found.notes)
