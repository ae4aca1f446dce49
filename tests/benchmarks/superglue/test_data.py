"""SuperGLUE's official layout: every task is read, faults name file and line."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ensue.benchmarks.nlu.examples import DEV, TEST, TRAIN, Example, TaskData
from ensue.benchmarks.nlu.files import Row
from ensue.benchmarks.superglue.data import NEAR, find_word, given_word, mention, read_task
from ensue.benchmarks.superglue.task import SPECS, TASK
from ensue.errors import EnsueError
from tests.benchmarks.superglue.folders import ROWS, record, write_rows, write_superglue, wsc


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_superglue(tmp_path / "superglue")


def _read(folder: Path, task: str, limit: int | None = None) -> TaskData:
    found = read_task(folder, TASK.select(task)[0], limit)
    assert found is not None
    return found


def _first(folder: Path, task: str, split: str = TRAIN) -> Example:
    return _read(folder, task).splits[split][0]


def _marked(example: Example) -> list[str]:
    return [example.texts[span.text][span.start : span.end] for span in example.spans]


def test_every_split_of_every_task_is_read(folder: Path) -> None:
    for spec in SPECS:
        data = _read(folder, spec.name)
        assert list(data.splits) == list(spec.sizes)
        for split, found in data.splits.items():
            assert data.labelled(split) is (split != TEST or spec.name.startswith("AX"))
            assert data.notes[f"{split} rows, of {spec.sizes[split]:,} published"] == len(found)


def test_pairs_and_choices(folder: Path) -> None:
    boolq = _first(folder, "BoolQ")
    assert (boolq.id, boolq.gold) == ("0", "true")
    assert boolq.texts == ("Basalt -- Basalt is a rock. ", "is basalt a rock")  # as it stands, space and all
    assert _first(folder, "CB", DEV).gold == "contradiction"
    copa = _first(folder, "COPA")
    assert (copa.texts, copa.choices, copa.gold) == (
        ("The glass fell.", "effect"),
        ("It broke.", "It sang."),
        "0",
    )
    assert _first(folder, "RTE", DEV).gold == "not_entailment"


def test_answers_are_named_by_passage_question_and_answer(folder: Path) -> None:
    found = _read(folder, "MultiRC").splits[TRAIN]
    assert [(one.id, one.group, one.cluster, one.gold) for one in found] == [
        ("0-3-7", "0-3", "0", "1"),
        ("0-3-8", "0-3", "0", "0"),
        ("1-3-7", "1-3", "1", "0"),
        ("1-3-8", "1-3", "1", "0"),
    ]
    assert found[0].texts == ("Two hens were in the yard.", "Who was in the yard?", "Two hens")
    assert found[1].where == f"{folder / 'MultiRC/train.jsonl'}, line 1, passage, questions 1, answers 2"
    assert len(_read(folder, "MultiRC", limit=1).splits[TRAIN]) == 2


def test_entities_end_with_their_last_character(folder: Path) -> None:
    one = _first(folder, "ReCoRD")
    assert (one.id, one.cluster) == ("10", "0")
    assert one.choices == ("Mira Holt", "Tarn", "Osk", "Holt")
    assert one.gold == ("Mira Holt", "Holt")
    assert _first(folder, "ReCoRD", DEV).gold == ("Holt",)


def test_words_and_mentions_are_marked(folder: Path) -> None:
    assert _marked(_first(folder, "WiC")) == ["bank", "Banks"]
    assert [span.text for span in _first(folder, "WiC").spans] == [0, 1]
    assert _marked(_first(folder, "WSC")) == ["the shelf", "it"]
    assert _first(folder, "WSC", DEV).gold == "true"


def test_words_without_characters_are_found_and_wrong_indices_mended(folder: Path) -> None:
    rows = [{k: v for k, v in row.items() if not k.startswith(("start", "end"))} for row in ROWS["WiC/train"]]
    write_rows(folder / "WiC" / "train.jsonl", rows)
    data = _read(folder, "WiC")
    assert _marked(data.splits[TRAIN][0]) == ["bank", "Banks"]
    assert data.notes["spans found by their beginning"] == 1
    write_rows(folder / "WSC" / "val.jsonl", [wsc(0, "the cup", 1, "it", 6, label=True)])
    data = _read(folder, "WSC")
    assert _marked(data.splits[DEV][0]) == ["The cup", "it"]
    assert data.notes["spans moved to where the text has their words"] == 2


def test_tags_have_the_names_of_glues_diagnostic(folder: Path) -> None:
    first, second = _read(folder, "AX-b").splits[TEST]
    assert first.tags == {"Logic": ("Negation", "Existential")}
    assert second.tags == {"Lexical Semantics": ("Redundancy",)}


def test_texts_that_differ_in_gender_are_judged_together(folder: Path) -> None:
    found = _read(folder, "AX-g").splits[TEST]
    assert [(one.id, one.group) for one in found] == [
        ("0", "pair-0"),
        ("2", "pair-0"),
        ("1", "pair-1"),
        ("3", "pair-1"),
    ]
    assert len(_read(folder, "AX-g", limit=1).splits[TEST]) == 2
    write_rows(folder / "AX-g" / "AX-g.jsonl", ROWS["AX-g/AX-g"][:3])
    with pytest.raises(EnsueError, match=r"AX-g\.jsonl, line 2: there is not exactly one other row"):
        _read(folder, "AX-g")


def test_few_rows_stand_in_for_missing_files(folder: Path) -> None:
    home = folder / "ReCoRD"
    for name in ("train", "val", "test"):
        (home / f"{name}.jsonl").unlink()
    write_rows(home / "fewglue_train1.jsonl", [record(3, ["Osk"])])
    write_rows(home / "fewglue_dev2.jsonl", [record(4, ["Osk"]), record(5, ["Tarn"])])
    data = _read(home, "ReCoRD")
    assert {split: len(found) for split, found in data.splits.items()} == {TRAIN: 1, DEV: 2}
    assert data.notes == {
        "train rows in fewglue_train1.jsonl, of 100,730 published": 1,
        "dev rows in fewglue_dev2.jsonl, of 10,000 published": 2,
    }
    assert data.instead == {DEV: "of the training set"}
    write_rows(home / "fewglue_dev3.jsonl", [])
    with pytest.raises(EnsueError, match=r"fewglue_dev2\.jsonl and fewglue_dev3\.jsonl; leave one"):
        _read(home, "ReCoRD")


def test_an_answer_without_words_stays_and_is_counted(folder: Path) -> None:
    rows = deepcopy(ROWS["MultiRC/val"])
    rows[0]["passage"]["questions"][0]["answers"][1]["text"] = ""
    write_rows(folder / "MultiRC" / "val.jsonl", rows)
    data = _read(folder, "MultiRC")
    assert data.notes["answers that are empty"] == 1
    assert [one.texts[2] for one in data.splits[DEV]] == ["Two hens", ""]


def test_a_task_that_is_not_there_is_none(folder: Path) -> None:
    assert read_task(folder / "CB", TASK.select("BoolQ")[0]) is None
    (folder / "CB" / "train.jsonl").unlink()
    assert list(_read(folder, "CB").splits) == [DEV, TEST]


def _set(**fields: Any) -> Callable[[dict[str, Any]], None]:
    return lambda row: row.update(fields)


def _delete(name: str) -> Callable[[dict[str, Any]], None]:
    return lambda row: row.pop(name)


@pytest.mark.parametrize(
    ("name", "change", "words"),
    [
        ("BoolQ/val", _delete("question"), "there is no 'question', only passage, idx, label"),
        ("BoolQ/val", _set(label=1), "the label 1 is none of false, true"),
        ("BoolQ/val", _set(passage=["x"]), "'passage' is a list"),
        ("BoolQ/val", _set(passage=" "), "'passage' is empty"),
        ("BoolQ/val", _delete("label"), "there is no label, which only test rows of BoolQ may lack"),
        ("CB/val", _set(label=None), "the label None is none of entailment, contradiction, neutral"),
        ("CB/val", _set(idx=-1), "'idx' is a number"),
        ("COPA/val", _set(question="why"), "the question 'why' is neither cause nor effect"),
        ("COPA/val", _set(label=True), "the label True is none of 0, 1"),
        ("MultiRC/val", _set(passage={"text": "x"}), "passage: there is no 'questions', only text"),
        ("MultiRC/val", _set(passage={"text": "x", "questions": [1]}), "passage: 'questions' is a list"),
        ("ReCoRD/val", _set(passage={"text": "x", "entities": []}), "qas 1: the passage has no entities"),
        (
            "ReCoRD/val",
            _set(passage={"text": "x", "entities": [{"start": 0, "end": 1}]}),
            "passage, entities 1: the characters 0 to 1 are not within the passage of 1",
        ),
        ("ReCoRD/val", _set(qas=[{"query": "No gap.", "idx": 1}]), "qas 1: the query has no @placeholder"),
        (
            "ReCoRD/val",
            _set(qas=[{"query": "@placeholder", "idx": 1, "answers": []}]),
            "qas 1: the list of answers is empty",
        ),
        (
            "ReCoRD/val",
            _set(qas=[{"query": "@placeholder", "idx": 1, "answers": [{"text": "Nobody"}]}]),
            "qas 1: the answer 'Nobody' is none of the passage's entities",
        ),
        ("WiC/val", _set(end1=99), "the word's characters 10 to 99 are not within the text"),
        ("WSC/val", _set(target="x"), "'target' is a text"),
        ("WSC/val", _set(text="The cup."), "the index 7 of 'it' is beyond the 2 words of the text"),
    ],
)
def test_faults_name_file_and_line(
    folder: Path, name: str, change: Callable[[dict[str, Any]], None], words: str
) -> None:
    rows = deepcopy(ROWS[name])
    change(rows[0])
    write_rows(folder / f"{name}.jsonl", rows)
    with pytest.raises(EnsueError, match=rf"{name}\.jsonl, line 1(:|,) {words}"):
        _read(folder, name.partition("/")[0])


def test_an_id_twice_is_refused(folder: Path) -> None:
    write_rows(folder / "CB" / "val.jsonl", ROWS["CB/val"] * 2)
    with pytest.raises(EnsueError, match=r"val\.jsonl, line 2: the id '0' was there before"):
        _read(folder, "CB")


ROW = Row("x.jsonl, line 3", {})
TEXT = 'The mayor thanked "the old  baker," because he fed Ana and Bo. He smiled.'


def _said(phrase: str, index: int, text: str = TEXT) -> tuple[str, bool]:
    place = mention(ROW, text, phrase, index)
    return text[place.start : place.end], bool(place.remark)


@pytest.mark.parametrize(
    ("phrase", "index", "said"),
    [
        ("The mayor", 0, "The mayor"),
        ("The old baker", 3, "the old  baker"),
        ("the old\nbaker.", 3, "the old  baker"),
        ("he", 7, "he"),
        ("Bo", 11, "Bo"),
        ("He", 12, "He"),
    ],
)
def test_a_phrase_at_its_index_needs_no_remark(phrase: str, index: int, said: str) -> None:
    assert _said(phrase, index) == (said, False)


def test_a_phrase_near_its_index_is_moved_and_remarked() -> None:
    assert _said("he", 8) == ("he", True)
    assert _said("the mayor", 9) == ("The mayor", True)  # far, but its only place
    assert _said("Bo and Ana", 9) == ("Ana and Bo.", True)  # nowhere: the words at the index


def test_what_could_be_two_things_is_refused() -> None:
    with pytest.raises(EnsueError, match=r"line 3: 'x' is not at its index 1, but at 0, 2"):
        mention(ROW, "x y x", "x", 1)
    with pytest.raises(EnsueError, match="'x' is not at its index 6, but at 0, 1"):
        mention(ROW, "x x a b c d e", "x", 6)
    with pytest.raises(EnsueError, match="the index 9 of 'x' is beyond the 1 words"):
        mention(ROW, "x", "x", 9)


_words = st.lists(st.sampled_from(["a", "bee", "sea.", "dee,", "E"]), min_size=1, max_size=12)


@given(words=_words, data=st.data())
def test_every_run_of_words_is_found_at_its_index(words: list[str], data: st.DataObject) -> None:
    begin = data.draw(st.integers(0, len(words) - 1))
    end = data.draw(st.integers(begin + 1, len(words)))
    text, phrase = " ".join(words), " ".join(words[begin:end])
    place = mention(ROW, text, phrase, begin)
    start = sum(len(word) + 1 for word in words[:begin])
    assert (place.start, place.remark) == (start, "")
    assert text[place.start : place.end] == phrase.rstrip(".,")


@given(before=st.integers(0, 9), shift=st.integers(-NEAR, NEAR))
def test_a_lone_phrase_is_found_from_any_near_index(before: int, shift: int) -> None:
    text = " ".join(["word"] * before + ["it"] + ["word"] * 9)
    index = max(0, before + shift)
    assert text[: mention(ROW, text, "it", index).start].split() == ["word"] * before


def test_given_words_lie_within_the_text() -> None:
    assert given_word(ROW, "a bank", 2, 6)[:2] == (2, 6)
    for start, end in [(2, 2), (2, 7), (1, 2), (5, 3)]:
        with pytest.raises(EnsueError, match="are not within the text of 6"):
            given_word(ROW, "a bank", start, end)


@pytest.mark.parametrize(
    ("text", "word", "said", "remark"),
    [
        ("The riverbank is a bank.", "bank", "bank", ""),
        ("Bank on it.", "bank", "Bank", ""),
        ("He carries and cares.", "carry", "carries", "found by their beginning"),
        ("She went home.", "go", "She went home.", "not found, for which the whole sentence stands"),
    ],
)
def test_words_without_a_place_are_found(text: str, word: str, said: str, remark: str) -> None:
    place = find_word(text, word)
    assert (text[place.start : place.end], place.remark) == (said, remark)
