"""SQuAD files: what is read from either layout, what is taken once, how articles are split, and faults by name."""

import json
import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ensue.errors import EnsueError
from ensue.text.io.squad import Answer, Article, examples_of, merged, read_squad, read_squads, split_articles

DATA = os.environ.get("ENSUE_DATA")
TEXT = "The miller of Haddow kept two geese. The geese slept in the loft."


def official(*questions, title="Haddow", text=TEXT):
    return {
        "version": "v2.0",
        "data": [{"title": title, "paragraphs": [{"context": text, "qas": list(questions)}]}],
    }


def asked(name="q1", text="two geese", start=26, **more):
    return {
        "id": name,
        "question": "What did the miller keep?",
        "answers": [{"text": text, "answer_start": start}],
        **more,
    }


def write(path, value):
    path.write_text(json.dumps(value), "utf-8")
    return path


def test_the_official_layout_of_both_versions_is_read(tmp_path):
    none = {"id": "q2", "question": "Who slept?", "answers": [], "is_impossible": True}
    (article,) = read_squad(write(tmp_path / "a.json", official(asked(), none)))
    assert (article.id, article.paragraphs[0].context) == ("Haddow", TEXT)
    first, second = article.paragraphs[0].questions
    assert first.answers == (Answer("two geese", 26),)
    assert second.answers == ()


def test_lines_give_what_the_official_layout_gives(tmp_path):
    rows = [
        {"id": "q1", "title": "Haddow", "context": TEXT, "question": "What did the miller keep?",
         "answers": {"text": ["two geese"], "answer_start": [26]}},
        {"id": "q2", "title": "Haddow", "context": TEXT, "question": "Who sang?",
         "answers": {"text": [], "answer_start": []}},
    ]  # fmt: skip
    path = tmp_path / "a.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)) + "\n\n", "utf-8")
    none = {"id": "q2", "question": "Who sang?", "answers": [], "is_impossible": True}
    assert read_squad(path) == read_squad(write(tmp_path / "a.json", official(asked(), none)))


def test_what_two_files_share_is_taken_once(tmp_path):
    one = write(tmp_path / "one.json", official(asked()))
    two = write(tmp_path / "two.json", official(asked(), asked("q3", "loft", 60)))
    found = examples_of(read_squads([one, two]))
    assert [example.id for example in found] == ["q1", "q3"]
    assert {example.article for example in found} == {"Haddow"}


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"{", ["is not JSON"]),
        (b"\xff\xfe", ["is not UTF-8", "byte 0"]),
        (json.dumps({"rows": []}).encode(), ["no 'data'"]),
        (json.dumps({"data": [{"title": "x"}]}).encode(), ["article 1", "no 'paragraphs'"]),
        (json.dumps({"data": []}).encode(), ["asks no question"]),
        (json.dumps(official(asked(start=25))).encode(), ["question q1", "'two geese'", "character 25"]),
        (json.dumps(official(asked(start=-3))).encode(), ["question q1", "character -3"]),
        (json.dumps(official({"id": "q1", "answers": []})).encode(), ["paragraph 1", "no 'question'"]),
    ],
)
def test_faults_are_one_sentence_that_names_file_and_place(tmp_path, content, words):
    path = tmp_path / "broken.json"
    path.write_bytes(content)
    with pytest.raises(EnsueError) as caught:
        read_squad(path)
    for word in [str(path), *words]:
        assert word in str(caught.value)


def test_a_faulty_line_is_named_by_its_number(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps({"id": 1, "context": "x", "question": "?", "answers": []}) + "\n{\n", "utf-8")
    with pytest.raises(EnsueError, match="line 2 is not JSON"):
        read_squad(path)
    with pytest.raises(EnsueError, match="cannot be read"):
        read_squad(tmp_path / "missing.json")


@given(
    names=st.lists(st.text(min_size=1, max_size=5), min_size=6, max_size=60, unique=True),
    dev=st.floats(0.01, 0.4),
    test=st.sampled_from([0.0, 0.1, 0.3]),
    seed=st.integers(0, 5),
)
@settings(max_examples=50, deadline=None)
def test_a_split_puts_every_article_in_one_part_whatever_their_order(names, dev, test, seed):
    articles = [Article(name, ()) for name in names]
    parts = split_articles(articles, dev_share=dev, test_share=test, seed=seed)
    assert sorted(a.id for part in parts for a in part) == sorted(names)
    assert len(parts.dev) == max(round(len(names) * dev), 1)
    assert bool(parts.test) == bool(test)
    turned = split_articles(articles[::-1], dev_share=dev, test_share=test, seed=seed)
    assert [set(part) for part in turned] == [set(part) for part in parts]


def test_too_few_articles_or_odd_shares_are_refused():
    articles = [Article(name, ()) for name in "ab"]
    with pytest.raises(EnsueError, match="only 2 articles"):
        split_articles(articles)
    with pytest.raises(EnsueError, match="are invalid"):
        split_articles(articles, dev_share=0.6, test_share=0.5)


@pytest.mark.data
@pytest.mark.skipif(not DATA, reason="ENSUE_DATA does not name the folder of the real data")
def test_the_real_dev_sets_have_their_known_sizes():
    folder = Path(DATA or "") / "squad"
    one, two = read_squad(folder / "dev-v1.1.json"), read_squad(folder / "dev-v2.0.json")
    assert (len(one), len(examples_of(one))) == (48, 10_570)
    assert (len(two), len(examples_of(two))) == (35, 11_873)
    both = examples_of(merged([*one, *two]))
    # The answerable questions of 2.0 (5,928) are questions of 1.1.
    assert len(both) == 10_570 + 11_873 - 5_928
    assert sum(not example.answers for example in both) == 5_945
