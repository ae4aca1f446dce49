"""Winograd schemas to WNLI and WSC: the pronoun found, replaced, and marked."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ensue.benchmarks.nlu.builders.winograd import build_winograd, find_candidate, read_schemas, wnli_rows
from ensue.errors import EnsueError
from tests.support.command import read_lines, write_lines

KETTLE = {
    "text": "The kettle stood on the stove. The cook moved the lamp, because it smoked.",
    "pronoun": "it",
    "candidates": ["The kettle", "The lamp"],
    "answer": "The lamp",
}


def rows(tmp_path: Path, **changes: object) -> list[tuple[str, str]]:
    path = write_lines(tmp_path / "one.jsonl", [{**KETTLE, **changes}])
    return [(row["sentence2"], row["label"]) for schema in read_schemas(path) for row in wnli_rows(schema)]


def test_the_sentence_of_the_pronoun_is_the_hypothesis(tmp_path):
    assert rows(tmp_path) == [
        ("The cook moved the lamp, because the kettle smoked.", "0"),
        ("The cook moved the lamp, because the lamp smoked.", "1"),
    ]


def test_a_quote_is_a_hypothesis_of_its_own(tmp_path):
    assert rows(tmp_path, quote="it smoked", answer=0) == [
        ("The kettle smoked.", "1"),
        ("The lamp smoked.", "0"),
    ]


CASES = {
    "at the beginning": ("Ida met Ruth. She waved!", "she", ["Ida", "Ruth"], ["Ida waved!", "Ruth waved!"]),
    "possessive": (
        "Ida met Ruth in her garden.",
        "her",
        ["Ida", "Miss Voss"],
        ["Ida met Ruth in Ida's garden.", "Ida met Ruth in Miss Voss' garden."],
    ),
    "an object": ("Ida saw Ruth and told her the news.", "her", ["Ida", "Ruth"], None),
    "with a mark": (
        "Ida saw Ruth, and she, smiling, waved.",
        "she",
        ["Ida", "Ruth"],
        ["Ida saw Ruth, and Ida, smiling, waved.", "Ida saw Ruth, and Ruth, smiling, waved."],
    ),
    "in quotation marks": (
        'The boys feared the dogs. "They bite," said Ida.',
        "they",
        ["the boys", "the dogs"],
        ['"the boys bite," said Ida.', '"the dogs bite," said Ida.'],
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_pronouns_are_replaced(tmp_path, case):
    text, pronoun, candidates, expected = CASES[case]
    expected = expected or ["Ida saw Ruth and told Ida the news.", "Ida saw Ruth and told Ruth the news."]
    found = rows(tmp_path, text=text, pronoun=pronoun, candidates=candidates, answer=1)
    assert found == [(expected[0], "0"), (expected[1], "1")]


def test_a_possessive_that_the_row_names(tmp_path):
    found = rows(
        tmp_path,
        text="Ida saw her laughing.",
        pronoun="her",
        candidates=["Ruth", "Eva"],
        answer=0,
        possessive=False,
    )
    assert found[0] == ("Ida saw Ruth laughing.", "1")


def test_the_pronoun_is_named_by_its_place_where_there_are_two(tmp_path):
    text = "It rained on the barn, and it leaked."
    found = rows(
        tmp_path, text=text, pronoun="it", pronoun_index=6, candidates=["the barn", "the sky"], answer=0
    )
    assert found[0] == ("It rained on the barn, and the barn leaked.", "1")


def test_candidates_are_found_as_the_text_has_them():
    words = ["Old", "Mr.", "Fenn's", "dog", "barked", "at", "the", "tall", "postman."]
    assert find_candidate(words, "Mr. Fenn") == ("Mr. Fenn", 1)
    assert find_candidate(words, "The tall postman") == ("the tall postman", 6)
    assert find_candidate(words, "the dog") == ("dog", 3)
    assert find_candidate(words, "the cat") is None


def collection(path: Path, count: int = 10) -> Path:
    names = ["Ida", "Ruth", "Eva", "Nell", "Hope"]
    return write_lines(
        path,
        [
            {
                "text": f"{names[n % 5]} thanked the clerk number {n}, for she was kind.",
                "pronoun": "she",
                "candidates": [names[n % 5], "the clerk", "the mayor"],
                "answer": 1,
            }
            for n in range(count)
        ],
    )


def test_wsc_marks_both_by_their_words_and_superglue_reads_it(tmp_path):
    from ensue.benchmarks.superglue.data import read_task
    from ensue.benchmarks.superglue.task import TASK

    done = build_winograd("WSC", str(collection(tmp_path / "s.jsonl")), tmp_path / "out")
    assert done.skipped == {"candidates that the text does not name": 10}
    seen = set()
    for name, count in (("train", 16), ("val", 2), ("test", 2)):
        lines = read_lines(tmp_path / "out" / "WSC" / f"{name}.jsonl")
        assert [line["idx"] for line in lines] == list(range(count))
        for line in lines:
            target, words = line["target"], line["text"].split()
            assert words[target["span2_index"]] == target["span2_text"] == "she"
            assert words[target["span1_index"]] == target["span1_text"].split()[0]
            assert line["label"] is (target["span1_text"] == "the clerk")
        assert not seen & {line["text"] for line in lines}
        seen |= {line["text"] for line in lines}
    data = read_task(tmp_path / "out", TASK.select("WSC")[0])
    assert data is not None
    example = data.splits["train"][0]
    assert [example.texts[0][span.start : span.end] for span in example.spans][1] == "she"


def test_wnli_from_wsc_and_back_share_no_text_between_splits(tmp_path):
    source = collection(tmp_path / "s.jsonl", 20)
    build_winograd("WSC", str(source), tmp_path / "wsc")
    done = build_winograd("WNLI", str(tmp_path / "wsc" / "WSC" / "train.jsonl"), tmp_path / "wnli")
    counts = {split: row["lines"] for split, row in done.statistics["examples"].items()}
    assert counts == {"train": 24, "dev": 4, "test": 4}
    lines = (tmp_path / "wnli" / "WNLI" / "dev.tsv").read_text("utf-8").splitlines()
    assert lines[0] == "index\tsentence1\tsentence2\tlabel"
    index, text, hypothesis, label = lines[1].split("\t")
    assert index == "0"
    assert hypothesis in (
        text.replace("for she", f"for {text.split()[0]}"),
        text.replace("for she", "for the clerk"),
    )
    assert label == str(int(hypothesis.endswith("the clerk was kind.")))


def test_twins_of_a_group_stay_together(tmp_path):
    twins = [
        {**KETTLE, "text": KETTLE["text"].replace("smoked", verb), "group": f"g{n}"}
        for n in range(6)
        for verb in (f"smoked {n} times", f"boiled {n} times")
    ]
    build_winograd("WNLI", str(write_lines(tmp_path / "s.jsonl", twins)), tmp_path / "out")
    lines = (tmp_path / "out" / "WNLI" / "dev.tsv").read_text("utf-8").splitlines()[1:]
    assert len(lines) == 4
    assert {word for line in lines for word in ("smoked", "boiled") if word in line} == {"smoked", "boiled"}


BAD = {
    "no pronoun": ({"pronoun": "she"}, "line 1: the text has 'she' 0 times"),
    "two pronouns": ({"text": "It smoked as it burned."}, "add 'pronoun_index' or 'quote'"),
    "another word": ({"pronoun_index": 2}, "word 2 of the text is not the pronoun 'it'"),
    "a quote from elsewhere": ({"quote": "it sang"}, "does not stand once in the text"),
    "one candidate": ({"candidates": ["The lamp"]}, "not a list of two texts or more"),
    "another answer": ({"answer": "The cat"}, "the answer 'The cat' is not one of the candidates"),
    "a number too high": ({"answer": 2}, "the answer '2' is not one of the candidates"),
    "possessive in words": ({"possessive": "yes"}, "neither true nor false"),
    "no text": ({"text": " "}, "'text' is empty"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_rows_are_one_sentence(tmp_path, case):
    changes, words = BAD[case]
    path = write_lines(tmp_path / "s.jsonl", [{**KETTLE, **changes}])
    with pytest.raises(EnsueError) as caught:
        build_winograd("WNLI", str(path), tmp_path / "out")
    assert words in str(caught.value)
    assert str(path) in str(caught.value)
    assert not (tmp_path / "out").exists()


def test_other_files_are_refused(tmp_path):
    (tmp_path / "s.xml").write_text("<schemas/>")
    with pytest.raises(EnsueError, match=r"s\.xml is not a \.jsonl file"):
        build_winograd("WSC", str(tmp_path / "s.xml"), tmp_path / "out")
    (tmp_path / "s.jsonl").write_text(json.dumps(KETTLE))
    with pytest.raises(EnsueError, match="too few to divide into three splits"):
        build_winograd("WSC", str(tmp_path / "s.jsonl"), tmp_path / "out")
