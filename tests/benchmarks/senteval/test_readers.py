"""Every file format of SentEval, read from invented files, and what is wrong with a file said by file and line."""

from __future__ import annotations

from pathlib import Path

import pytest

from ensue.benchmarks.senteval.data import (
    GROUPS,
    PROBING_FILES,
    TASKS,
    SentEvalData,
    SentEvalSuite,
    chosen,
    read_suite,
)
from ensue.errors import EnsueError
from tests.benchmarks.senteval.folders import pairs, write, write_probing


def _read(folder: Path, name: str, limit: int | None = None) -> SentEvalData:
    (data,) = read_suite(str(folder), chosen(name), limit).tasks
    return data


def _sizes(data: SentEvalData) -> dict[str, int]:
    return {name: len(rows) for name, rows in data.parts.items()}


def test_groups_are_those_of_the_paper() -> None:
    assert {group: len(tasks) for group, tasks in GROUPS.items()} == {
        "USS": 5,
        "SSS": 3,
        "SC": 8,
        "Probing": 10,
    }
    assert [task.name for task in chosen("sss")] == ["STSBenchmark", "SICKRelatedness", "SICKEntailment"]
    assert len(chosen("")) == len(TASKS) == 26
    with pytest.raises(EnsueError, match="no task 'STS17'; did you mean STS1"):
        chosen("STS17")


def test_sts_sets_are_aligned_and_pairs_without_gold_are_counted(folder: Path) -> None:
    data = _read(folder, "STS15")
    assert _sizes(data) == dict.fromkeys(TASKS["STS15"].sets, 22)
    assert data.skipped == {"STS15 pairs without a gold score": 10}
    rows = data.parts["belief"]
    assert rows.ids[2:5] == ["belief/3", "belief/5", "belief/6"]
    made = pairs(24)
    assert (rows.texts[0][3], rows.texts[1][3], rows.gold[3]) == made[4]


def test_pairs_with_scores_and_labels(folder: Path) -> None:
    made = pairs(60)
    bench = _read(folder, "STSBenchmark")
    assert _sizes(bench) == {"train": 60, "dev": 30, "test": 30}
    assert bench.parts["train"].gold == [score for *_, score in made]
    related = _read(folder, "SICKRelatedness")
    assert related.parts["test"].gold[:3] == [1.0, 1.0, 2.0]
    entailed = _read(folder, "SICKEntailment")
    assert entailed.classes == ("CONTRADICTION", "NEUTRAL", "ENTAILMENT")
    assert entailed.parts["test"].labels[:6].tolist() == [1, 1, 0, 0, 2, 2]
    paraphrases = _read(folder, "MRPC")
    assert _sizes(paraphrases) == {"train": 60, "test": 24}
    assert paraphrases.parts["train"].labels[:6].tolist() == [0, 0, 0, 1, 1, 1]
    assert paraphrases.parts["train"].ids[0] == "train/2"


def test_sentences_with_labels(folder: Path) -> None:
    movies = _read(folder, "MR")
    assert _sizes(movies) == {"all": 60}
    assert movies.parts["all"].labels.tolist() == [1] * 30 + [0] * 30
    assert movies.parts["all"].ids[30] == "rt-polarity.neg/1"
    assert movies.parts["all"].texts[0][0] == "the lamp of house 0 was lovely"
    assert _read(folder, "SST2").parts["dev"].labels[:4].tolist() == [1, 0, 1, 0]
    assert _read(folder, "SST5").parts["dev"].labels[:6].tolist() == [0, 1, 2, 3, 4, 0]
    questions = _read(folder, "TREC")
    assert questions.parts["train"].labels[:6].tolist() == [0, 1, 2, 3, 4, 5]
    assert questions.parts["train"].texts[0][1] == "what is a café river ?"
    assert questions.notes == {"files of TREC read as Latin-1": 1}


def test_an_empty_line_is_a_full_stop_in_cr_and_mpqa_only(folder: Path) -> None:
    for name in ("CR/custrev.pos", "MR/rt-polarity.pos"):
        write(folder / "downstream" / name, ["a kind word", "", "another"])
    reviews = _read(folder, "CR")
    assert reviews.parts["all"].texts[0][1] == "."
    assert reviews.notes == {"empty sentences of CR read as '.', as SentEval's encoders do": 1}
    with pytest.raises(EnsueError, match=r"rt-polarity\.pos, line 2: a sentence is empty"):
        _read(folder, "MR")


def test_probing_files(folder: Path) -> None:
    write_probing(folder / "probing")
    for name in PROBING_FILES:
        data = _read(folder, name)
        assert _sizes(data) == {"train": 40, "dev": 12, "test": 12}
        assert data.classes == ("PAST", "PRES")
        assert data.parts["test"].labels[:3].tolist() == [1, 0, 1]


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (["tr\tO\tone thing", "tr\tO"], "line 2: there are 2 columns where 3 were expected"),
        (["tr\tO\tone thing", "xx\tO\tone"], "line 2: the split 'xx' is none of tr, va, te"),
        (["tr\tO\tone thing", "te\tP\tone"], "line 2: the label 'P' does not occur in the training part"),
        (["tr\tO\t "], "line 1: a sentence is empty"),
        (["tr\tO\tone thing"], "Tense has no dev examples"),
    ],
)
def test_bad_probing_files(folder: Path, lines: list[str], words: str) -> None:
    write(folder / "probing" / "past_present.txt", lines)
    with pytest.raises(EnsueError, match=words):
        _read(folder, "Tense")


@pytest.mark.parametrize(
    ("task", "file", "line", "words"),
    [
        (
            "STS12",
            "STS/STS12-en-test/STS.input.MSRpar.txt",
            "only one",
            "line 1: there are 1 columns where 2",
        ),
        ("STS12", "STS/STS12-en-test/STS.gs.MSRpar.txt", "six", "line 1: 'six' is not a score"),
        (
            "STSBenchmark",
            "STS/STSBenchmark/sts-dev.csv",
            "a\tb\tc",
            "line 1: there are 3 columns where 7 or 9",
        ),
        (
            "SICKRelatedness",
            "SICK/SICK_trial.txt",
            "1\ta\tb\t3\tNEUTRAL",
            "line 1: this should be the heading",
        ),
        ("SST2", "SST/binary/sentiment-dev", "fine\t2", "line 1: the label '2' is none of 0, 1"),
        ("SST5", "SST/fine/sentiment-test", "5 fine", "line 1: the label '5' is none of 0, 1, 2, 3, 4"),
        ("TREC", "TREC/TREC_10.label", "NUM how many ?", "line 1: a question begins with its class"),
        ("TREC", "TREC/TREC_10.label", "ODD:one how many ?", "line 1: the label 'ODD' is none of"),
    ],
)
def test_bad_lines_are_named(folder: Path, task: str, file: str, line: str, words: str) -> None:
    path = folder / "downstream" / file
    rest = path.read_text("utf-8").splitlines()[1:]
    write(path, [line, *rest])
    with pytest.raises(EnsueError, match=words) as raised:
        _read(folder, task)
    assert str(path) in str(raised.value)


def test_files_of_different_length_are_refused(folder: Path) -> None:
    path = folder / "downstream/STS/STS12-en-test/STS.gs.MSRvid.txt"
    write(path, ["1", "2"])
    with pytest.raises(EnsueError, match=r"MSRvid\.txt has 24 lines, but .* has 2"):
        _read(folder, "STS12")


def test_limits_missing_tasks_and_digests(folder: Path) -> None:
    assert _sizes(_read(folder, "MR", 4)) == {"all": 8}
    assert _sizes(_read(folder, "STS16", 4)) == dict.fromkeys(TASKS["STS16"].sets, 4)
    whole = read_suite(str(folder), chosen(""))
    assert list(whole.missing) == list(PROBING_FILES)
    assert len(whole.tasks) == 16
    assert _again(folder).fingerprint == whole.fingerprint
    (folder / "downstream/STS/STS13-en-test/STS.input.FNWN.txt").unlink()
    less = _again(folder)
    assert less.missing["STS13"] == "STS.input.FNWN.txt"
    assert less.fingerprint != whole.fingerprint
    with pytest.raises(EnsueError, match=r"missing: STS13 \(STS\.input\.FNWN\.txt\)"):
        read_suite(str(folder), chosen("STS13"))
    with pytest.raises(EnsueError, match="is not a folder"):
        read_suite(str(folder / "nowhere"), chosen(""))
    with pytest.raises(EnsueError, match="must be at least 1"):
        read_suite(str(folder), chosen(""), 0)


def test_the_folder_may_be_named_at_either_level(folder: Path) -> None:
    write_probing(folder / "probing", ["Tense"])
    for place in (folder, folder / "downstream"):
        assert "Tense" not in read_suite(str(place), chosen("")).missing
    assert _sizes(_read(folder / "probing", "Tense"))["train"] == 40


def _again(folder: Path) -> SentEvalSuite:
    return read_suite(str(folder), chosen(""))
