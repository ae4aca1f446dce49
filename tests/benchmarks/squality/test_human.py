"""The human row against rouge-score's own numbers."""

from __future__ import annotations

import statistics
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as some

from ensue.benchmarks.squality.data import examples, read_stories
from ensue.benchmarks.squality.human import held_out, human_scores, leave_one_out_of, rouge_measure
from ensue.errors import EnsueError
from tests.benchmarks.squality.invented import ANSWERS, story_row, write_rows


def test_every_reference_is_held_out_once(tmp_path: Path) -> None:
    stories = read_stories(write_rows(tmp_path / "a.jsonl", story_row("1")))
    found = held_out(list(examples(stories)))
    assert [one.candidate for one in found] == [text for texts in ANSWERS for text in texts]
    assert all(
        sorted((*one.references, one.candidate)) == sorted(ANSWERS[n // 4]) for n, one in enumerate(found)
    )
    assert {one.writer for one in found} == {"1", "2", "3", "4"}


def test_the_row_is_the_best_of_the_others_by_rouge_score(tmp_path: Path) -> None:
    package = pytest.importorskip("rouge_score.rouge_scorer")
    names = ["rouge1", "rouge2", "rougeL"]
    scorer = package.RougeScorer(names, use_stemmer=True)
    found = held_out(list(examples(read_stories(write_rows(tmp_path / "a.jsonl", story_row("1"))))))
    scores = human_scores(found, [rouge_measure])
    assert list(scores) == names
    for name in names:
        rows = [[scorer.score(ref, one.candidate)[name].fmeasure for ref in one.references] for one in found]
        assert scores[name].best.tolist() == pytest.approx([max(row) for row in rows])
        assert scores[name].mean.tolist() == pytest.approx([statistics.fmean(row) for row in rows])


def test_any_function_of_candidates_and_references_is_a_measure(tmp_path: Path) -> None:
    found = held_out(list(examples(read_stories(write_rows(tmp_path / "a.jsonl", story_row("1"))))))

    def length_ratio(candidates, references):  # type: ignore[no-untyped-def]
        return {
            "ratio": [
                [len(one) / len(r) for r in own] for one, own in zip(candidates, references, strict=True)
            ]
        }

    scores = human_scores(found, [length_ratio, rouge_measure])
    assert list(scores) == ["ratio", "rouge1", "rouge2", "rougeL"]
    assert scores["ratio"].best[0] == max(len(ANSWERS[0][0]) / len(other) for other in ANSWERS[0][1:])


def test_a_single_reference_cannot_be_held_out(tmp_path: Path) -> None:
    row = story_row("1")
    del row["questions"][1]["responses"][1:]
    with pytest.raises(EnsueError, match="Question 2 of story 1 has one reference"):
        held_out(list(examples(read_stories(write_rows(tmp_path / "a.jsonl", row)))))
    with pytest.raises(EnsueError, match="no summaries to hold out"):
        human_scores([], [rouge_measure])
    with pytest.raises(EnsueError, match="at least two"):
        leave_one_out_of([[0.5]])


@given(some.lists(some.floats(0, 1), min_size=2, max_size=6))
def test_leaving_one_out_is_the_mean_of_all_ways_to_do_so(row: list[float]) -> None:
    ways = [max(row[:place] + row[place + 1 :]) for place in range(len(row))]
    assert leave_one_out_of([row]) == pytest.approx([statistics.fmean(ways)])
