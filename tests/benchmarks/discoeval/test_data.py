"""The readers on invented files: what a line means, and what is said of a bad one."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ensue.benchmarks.discoeval.data import SPECS, DiscoEvalData, Spec, missing_files, read_task, select
from ensue.errors import EnsueError
from tests.benchmarks.discoeval.folders import write_pickles, write_suite, write_text

BY_NAME = {spec.name: spec for spec in SPECS}


def replace_line(path: Path, number: int, line: bytes) -> None:
    lines = path.read_bytes().split(b"\n")
    lines[number - 1] = line
    path.write_bytes(b"\n".join(lines))


def read(folder: Path, name: str, limit: int | None = None) -> DiscoEvalData:
    return read_task(folder, BY_NAME[name], limit)


def test_a_name_selects_a_task_a_group_or_all() -> None:
    assert [spec.name for spec in select("")] == [spec.name for spec in SPECS]
    assert [spec.name for spec in select("sp")] == ["SP/wiki", "SP/arxiv", "SP/rocstory"]
    assert [spec.name for spec in select("PDTB/Explicit")] == ["PDTB/explicit"]
    assert [spec.name for spec in select("RST")] == ["RST"]
    with pytest.raises(EnsueError, match="did you mean SP/rocstory"):
        select("SP/rocstories")


def test_table_2_has_seven_columns_of_twelve_tasks() -> None:
    assert len(SPECS) == 12
    assert list(dict.fromkeys(spec.column for spec in SPECS)) == [
        "SP",
        "BSO",
        "DC",
        "SSP",
        "PDTB/explicit",
        "PDTB/implicit",
        "RST",
    ]


def test_a_labelled_line_is_one_example(tmp_path: Path) -> None:
    write_text(tmp_path / "SP/wiki", 5, 5)
    replace_line(tmp_path / "SP/wiki/test.txt", 2, b"3\tthe  moved one \tone\ttwo\tthree\tf\xc3\xbcnf\r")
    task = read(tmp_path, "SP/wiki")
    assert [len(task.splits[split]) for split in ("train", "dev", "test")] == [24, 10, 12]
    example = task.splits["test"][1]
    assert example.id == example.cluster == "SP/wiki/test/2"
    assert example.label == 3
    assert example.parts == (("the moved one",), ("one",), ("two",), ("three",), ("fünf",))
    assert task.labels == ("0", "1", "2", "3", "4")


def test_a_pair_is_two_examples_of_one_cluster(tmp_path: Path) -> None:
    write_text(tmp_path / "BSO/wiki", 2, 2, labelled=False)
    replace_line(tmp_path / "BSO/wiki/train.txt", 3, b"first\tsecond")
    found = [e for e in read(tmp_path, "BSO/wiki").splits["train"] if e.cluster == "BSO/wiki/train/3"]
    assert [(e.id, e.label, e.parts) for e in found] == [
        ("BSO/wiki/train/3#in-order", 1, (("first",), ("second",))),
        ("BSO/wiki/train/3#swapped", 0, (("second",), ("first",))),
    ]
    assert len(read(tmp_path, "BSO/wiki").splits["dev"]) == 20


def test_a_limit_takes_the_first_lines_of_each_file(tmp_path: Path) -> None:
    write_text(tmp_path / "BSO/wiki", 2, 2, labelled=False)
    whole, some = read(tmp_path, "BSO/wiki"), read(tmp_path, "BSO/wiki", 4)
    assert some.splits["test"] == whole.splits["test"][:8]
    assert some.fingerprint == whole.fingerprint


def test_the_fingerprint_is_of_the_files(tmp_path: Path) -> None:
    write_text(tmp_path / "SSP/abs", 2, 1)
    before = read(tmp_path, "SSP/abs").fingerprint
    assert read(tmp_path, "SSP/abs").fingerprint == before
    replace_line(tmp_path / "SSP/abs/valid.txt", 1, b"0\tanother sentence")
    assert read(tmp_path, "SSP/abs").fingerprint != before


def test_lost_characters_are_counted(tmp_path: Path) -> None:
    write_text(tmp_path / "SSP/abs", 2, 1)
    replace_line(tmp_path / "SSP/abs/train.txt", 1, "0\tshe did\ufffdnt".encode())
    assert sum(read(tmp_path, "SSP/abs").notes.values()) == 1


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (b"1\tonly\ttwo", "3 columns where DC/chat has 7"),
        (b"", "1 columns where DC/chat has 7"),
        (b"2\ta\tb\tc\td\te\tf", "the label '2' is not one of 0 to 1"),
        (b"-1\ta\tb\tc\td\te\tf", "the label '-1' is not one of 0 to 1"),
        ("١\ta\tb\tc\td\te\tf".encode(), "is not one of 0 to 1"),
        (b"1\ta\tb\t \xc2\xa0\td\te\tf", "sentence 3 is empty"),
        (b"1\ta\tb\tcaf\xe9\td\te\tf", "this is not UTF-8; convert the file first"),
    ],
)
def test_a_bad_line_is_named(tmp_path: Path, line: bytes, words: str) -> None:
    write_text(tmp_path / "DC/chat", 2, 6)
    path = tmp_path / "DC/chat/valid.txt"
    replace_line(path, 7, line)
    with pytest.raises(EnsueError) as caught:
        read(tmp_path, "DC/chat")
    assert f"{path}, line 7: " in str(caught.value)
    assert words in str(caught.value)


def test_an_empty_file_is_named(tmp_path: Path) -> None:
    write_text(tmp_path / "SSP/abs", 2, 1)
    (tmp_path / "SSP/abs/test.txt").write_bytes(b"")
    with pytest.raises(EnsueError, match=r"test\.txt is empty"):
        read(tmp_path, "SSP/abs")


def test_pdtb_labels_are_those_of_the_label_set(tmp_path: Path) -> None:
    write_text(tmp_path / "PDTB/Implicit", 3, 2)
    labels = tmp_path / "PDTB/Implicit/labelset.txt"
    labels.write_text("Cause\nContrast\nList\n")
    assert read(tmp_path, "PDTB/implicit").labels == ("Cause", "Contrast", "List")
    labels.write_text("Cause\nContrast\n")
    with pytest.raises(EnsueError, match=r"train\.txt, line 3: the label '2' is not one of 0 to 1"):
        read(tmp_path, "PDTB/implicit")
    labels.write_text("Cause\nCause\n")
    with pytest.raises(EnsueError, match=r"labelset\.txt, line 2: .* before"):
        read(tmp_path, "PDTB/implicit")


def test_missing_files_are_named(tmp_path: Path) -> None:
    write_suite(tmp_path)
    (tmp_path / "SP/wiki/train.early567.txt").write_text("0\ta\tb\tc\td\te\n")
    (tmp_path / "PDTB/Explicit/labelset.txt").unlink()
    (tmp_path / "RST/RST_DEV.pkl").unlink()
    assert {spec.name: files for spec in SPECS if (files := missing_files(tmp_path, spec))} == {
        "SP/wiki": ["SP/wiki/train.txt"],
        "SP/arxiv": ["SP/arxiv/train.txt"],
        "DC/wiki": ["DC/wiki/train.txt"],
        "PDTB/explicit": ["PDTB/Explicit/labelset.txt"],
        "RST": ["RST/RST_DEV.pkl"],
    }


def test_rst_labels_are_the_training_ones_and_others_after_them(tmp_path: Path) -> None:
    write_pickles(tmp_path / "RST", TEST=[("NN-Never-seen", ["a"], ["b", "c"])] * 2)
    task = read(tmp_path, "RST")
    assert task.labels == ("NN-Joint", "NS-Elaboration", "SN-Attribution", "NN-Never-seen")
    assert task.splits["test"][-1].label == 3
    assert task.splits["test"][-1].parts == (("a",), ("b", "c"))
    assert task.notes == {"test nodes of RST with a label that no training node has": 2}


DATA = os.environ.get("ENSUE_DATA")
REAL = Path(DATA or ".") / "discoeval"
SIZES = {
    **{f"BSO/{domain}": (20_000, 8000, 8000, 2) for domain in ("wiki", "arxiv", "rocstory")},
    "SP/rocstory": (10_000, 4000, 4000, 5),
    "SSP/abs": (10_000, 4000, 4000, 2),
    "PDTB/explicit": (9383, 3613, 3758, 12),
    "PDTB/implicit": (8693, 2972, 3024, 11),
    "RST": (17_051, 2045, 2308, 41),
    "DC/chat": (5816, 1834, 2418, 2),
}


@pytest.mark.data
@pytest.mark.skipif(not REAL.is_dir() or not DATA, reason="ENSUE_DATA does not hold discoeval")
@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.name)
def test_the_published_files_have_the_published_sizes(spec: Spec) -> None:
    if spec.name not in SIZES:
        assert missing_files(REAL, spec) == [f"{spec.folder}/train.txt"]
        return
    task = read_task(REAL, spec)
    sizes = tuple(len(task.splits[split]) for split in ("train", "dev", "test"))
    assert (*sizes, len(task.labels)) == SIZES[spec.name]
