"""SQuAD to QNLI: which sentence holds the answer, which questions are kept, which article goes where."""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ensue.benchmarks.nlu.builders.common import BuiltRows, divide
from ensue.benchmarks.nlu.builders.qnli import (
    QnliCandidate,
    QnliQuestion,
    build_qnli,
    cosine_similarity,
    holding,
    overlap,
    read_squad,
    select,
)
from ensue.errors import EnsueError
from ensue.text.sentences import split_sentences

CONTEXT = "The mill burned in May. Its owner, Ada Pell, rebuilt the mill by June.\n\nNobody asked how."


def squad(path: Path, articles: int = 12) -> Path:
    """Articles of two questions each: one that shared words answer, one that they answer wrongly."""

    def asked(question: str, answer: str) -> dict[str, object]:
        return {
            "question": question,
            "id": "q",
            "answers": [{"text": answer, "answer_start": CONTEXT.index(answer)}],
        }

    questions = [
        asked("Who rebuilt the mill by June?", "Ada Pell"),
        asked("When was the burned mill whole again?", "June"),
        {"question": "Who lived there?", "id": "x", "answers": [], "is_impossible": True},
    ]
    data = [
        {"title": f"Mill {n}", "paragraphs": [{"context": CONTEXT, "qas": questions}]}
        for n in range(articles)
    ]
    path.write_text(json.dumps({"version": "v2.0", "data": data}), "utf-8")
    return path


words = st.text("ab. \n", min_size=1, max_size=60)


@given(words, st.data())
def test_a_sentence_holds_a_span_if_it_has_all_its_characters(context, data):
    start = data.draw(st.integers(0, len(context) - 1))
    end = data.draw(st.integers(start + 1, len(context)))
    if context[start].isspace() or context[end - 1].isspace():
        return
    sentences = split_sentences(context)
    # The naive way: number every character that is no space, sentence by sentence.
    owner = [
        place for place, sentence in enumerate(sentences) for character in sentence if not character.isspace()
    ]
    inside = {
        owner[len("".join(context[:at].split()))] for at in range(start, end) if not context[at].isspace()
    }
    assert holding(context, sentences, [(start, end)]) == (inside if len(inside) == 1 else frozenset())


@given(st.lists(st.floats(-1, 1), max_size=40))
def test_selection_is_all_that_mislead_and_as_many_close_ones(margins):
    question = QnliQuestion("a", "q", ("s",), frozenset({0}))
    kept = select(
        [QnliCandidate(question, "r", str(n), margin) for n, margin in enumerate(margins)], BuiltRows()
    )
    misleading = {n for n, margin in enumerate(margins) if margin <= 0}
    close = {int(one.wrong) for one in kept} - misleading
    left = set(range(len(margins))) - misleading - close
    assert misleading <= {int(one.wrong) for one in kept}
    assert len(close) == min(len(misleading), len(margins) - len(misleading))
    assert all(margins[a] <= margins[b] for a in close for b in left)
    assert [int(one.wrong) for one in kept] == sorted(int(one.wrong) for one in kept)


def test_overlap_is_the_cosine_of_binary_bags():
    texts = ["Who rebuilt the mill?", *split_sentences(CONTEXT), "?"]
    vocabulary = sorted({word for text in texts for word in re.findall(r"\w+", text.lower())})
    bags = np.array(
        [[word in re.findall(r"\w+", text.lower()) for word in vocabulary] for text in texts], float
    )
    with np.errstate(invalid="ignore"):
        expected = np.nan_to_num(
            bags[1:] @ bags[0] / np.linalg.norm(bags[1:], axis=1) / np.linalg.norm(bags[0])
        )
    np.testing.assert_allclose(overlap(texts[0], texts[1:]), expected)


def test_vectors_are_compared_by_cosine(tmp_path, monkeypatch):
    from ensue.backends.names import load_model

    monkeypatch.setenv("ENSUE_HOME", str(tmp_path / "home"))
    vectors = {"mill": (1.0, 0.0), "fire": (0.8, 0.6), "tax": (0.0, 1.0)}
    (tmp_path / "v.txt").write_text("".join(f"{word} {a} {b}\n" for word, (a, b) in vectors.items()))
    similarity = cosine_similarity(load_model(f"cbow:{tmp_path / 'v.txt'}"))  # type: ignore[arg-type]
    found = similarity("mill?", ["A fire!", "tax", "mill tax", "unknown words"])
    np.testing.assert_allclose(found, [0.8, 0.0, 1 / np.sqrt(2), 0.0], atol=1e-6)


def test_the_files_are_official_balanced_and_share_no_article(tmp_path):
    done = build_qnli(str(squad(tmp_path / "squad.json")), tmp_path / "out", dev=0.25, test=0.25, seed=3)
    assert done.skipped["questions marked as without answer"] == 12
    rows = {}
    for split, articles in (("train", 6), ("dev", 3), ("test", 3)):
        lines = (tmp_path / "out" / "QNLI" / f"{split}.tsv").read_text("utf-8").splitlines()
        assert lines[0] == "index\tquestion\tsentence\tlabel"
        rows[split] = [line.split("\t") for line in lines[1:]]
        assert [row[0] for row in rows[split]] == [str(n) for n in range(4 * articles)]
        assert Counter(row[3] for row in rows[split]) == {
            "entailment": 2 * articles,
            "not_entailment": 2 * articles,
        }
    pairs = {(row[1], row[2], row[3]) for row in rows["train"]}
    second = "Its owner, Ada Pell, rebuilt the mill by June."
    assert pairs == {
        ("Who rebuilt the mill by June?", second, "entailment"),
        ("Who rebuilt the mill by June?", "The mill burned in May.", "not_entailment"),
        ("When was the burned mill whole again?", second, "entailment"),
        ("When was the burned mill whole again?", "The mill burned in May.", "not_entailment"),
    }


def test_what_is_built_is_what_glue_reads(tmp_path):
    from ensue.benchmarks.glue.data import read_task
    from ensue.benchmarks.glue.task import TASK

    build_qnli(str(squad(tmp_path / "squad.json")), tmp_path / "out")
    data = read_task(tmp_path / "out", TASK.select("QNLI")[0])
    assert data is not None
    assert {split: len(examples) for split, examples in data.splits.items()} == {
        "train": 40,
        "dev": 4,
        "test": 4,
    }
    assert data.splits["dev"][0].gold == "entailment"


@given(
    st.sets(st.text(max_size=5), min_size=4, max_size=30),
    st.floats(0, 0.3),
    st.floats(0, 0.3),
    st.integers(0, 99),
)
def test_groups_are_divided_by_share(groups, dev, test, seed):
    found = divide(groups, dev, test, seed)
    counts = Counter(found.values())
    assert set(found) == groups
    assert counts["dev"] == (max(1, round(dev * len(groups))) if dev else 0)
    assert counts["test"] == (max(1, round(test * len(groups))) if test else 0)
    assert found == divide(sorted(groups, reverse=True), dev, test, seed)


BAD = {
    "not there": (None, "cannot be read"),
    "not JSON": ("{", "is not JSON"),
    "no SQuAD": ('{"rows": []}', "no list of articles"),
    "no paragraphs": ('{"data": [{"title": "T"}]}', "T: there is no list called 'paragraphs'"),
    "no context": (
        '{"data": [{"title": "T", "paragraphs": [{"qas": []}]}]}',
        "T, paragraph 1: there is no context",
    ),
    "nothing": ('{"data": []}', "gave no example of QNLI"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_files_are_one_sentence(tmp_path, case):
    content, words = BAD[case]
    if content is not None:
        (tmp_path / "squad.json").write_text(content)
    with pytest.raises(EnsueError, match=words):
        build_qnli(str(tmp_path / "squad.json"), tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.data
@pytest.mark.skipif(
    not os.environ.get("ENSUE_DATA"), reason="ENSUE_DATA does not name the folder of the real data"
)
def test_real_answers_lie_in_sentences():
    made = BuiltRows()
    found = list(read_squad(Path(os.environ["ENSUE_DATA"]) / "squad" / "dev-v1.1.json", made))
    assert len(found) == 10_570
    assert sum(not question.answers for question in found) <= 5
