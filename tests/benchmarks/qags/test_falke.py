"""Falke's sentence pairs and summaries, read with every fault named by its line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ensue.benchmarks.qags.falke import read_choices, read_triplets
from ensue.errors import EnsueError
from tests.benchmarks.qags.invented import pair, write_json


def summary(*labels: str, label: str | None = None) -> dict[str, Any]:
    wrong = sum(one != "Correct" for one in labels)
    return {
        "incorrect_sentences": wrong,
        "label": label or ("Incorrect" if wrong else "Correct"),
        "sents": {str(n): {"label": one, "text": f"Sentence {n}."} for n, one in enumerate(labels)},
    }


def test_triplets_are_clustered_by_article(tmp_path: Path) -> None:
    write_json(
        tmp_path / "val_sentence_pairs.json", [pair("a1"), pair("a1", correct_sent_id="3-0"), pair("a2")]
    )
    found = read_triplets(tmp_path)
    assert [triplet.cluster for triplet in found] == ["a1", "a1", "a2"]
    assert [triplet.id for triplet in found] == ["a1-1-0-2-0", "a1-3-0-2-0", "a2-1-0-2-0"]
    assert found[0].consistent == "The captain blamed the fog."
    assert found[0].inconsistent == "The fog blamed the captain."


def test_a_summary_is_consistent_where_all_its_sentences_are(tmp_path: Path) -> None:
    held = {"a1": {"7": summary("Correct", "Correct"), "9": summary("Correct", "Incorrect")}}
    write_json(tmp_path / "val_reranking.json", held)
    (found,) = read_choices(tmp_path)
    assert [(one.id, one.consistent, one.text) for one in found.summaries] == [
        ("7", True, "Sentence 0. Sentence 1."),
        ("9", False, "Sentence 0. Sentence 1."),
    ]


@pytest.mark.parametrize(
    ("second", "what"),
    [
        ({"7": summary("Correct", label="Incorrect")}, "7: the summary's label is not that of its sentences"),
        ({"7": summary()}, "7: the summary has no sentences"),
        ({"7": summary("Perhaps")}, "sents, 0: the label 'Perhaps' is none of Correct, Incorrect"),
        ({"7": "words"}, "an object was expected"),
    ],
)
def test_faults_of_summaries_name_the_line(tmp_path: Path, second: dict[str, Any], what: str) -> None:
    path = write_json(tmp_path / "val_reranking.json", {"a1": {"7": summary("Correct")}, "a2": second})
    line = next(n for n, text in enumerate(path.read_text().split("\n"), 1) if text.startswith(' "a2"'))
    with pytest.raises(EnsueError, match=f"line {line}.*{what}"):
        read_choices(tmp_path)


def test_faults_of_pairs_name_the_line(tmp_path: Path) -> None:
    path = write_json(tmp_path / "val_sentence_pairs.json", [pair(), pair(correct_sent=" ")])
    with pytest.raises(EnsueError, match=rf"{path.name}, line 10: 'correct_sent' is empty"):
        read_triplets(tmp_path)
    with pytest.raises(EnsueError, match=r"has no val_reranking\.json; name the folder of Falke's data"):
        read_choices(tmp_path)
