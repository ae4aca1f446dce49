"""PDTB's pipe files: which relations become lines of which split, and under which label."""

from __future__ import annotations

from pathlib import Path

import pytest

from ensue.benchmarks.discoeval.builders.build import build
from ensue.benchmarks.discoeval.builders.common import BuildOptions
from ensue.benchmarks.discoeval.builders.pdtb import second_level, split_of
from ensue.errors import EnsueError
from tests.benchmarks.discoeval.builders.inputs import read_rows


def relation(
    kind: str, section: int, number: int, *senses: str, first="It rained", second="we stayed in"
) -> str:
    """A line of 48 columns, by the places that the PDTB 2.0 annotation manual gives them."""
    columns = [f"c{place}" for place in range(48)]
    columns[0], columns[1], columns[2] = kind, f"{section:02d}", f"{number:02d}"
    columns[11:15] = [*senses, *[""] * (4 - len(senses))]
    columns[24], columns[34] = first, second
    return "|".join(columns)


def write_sections(folder: Path, lines: dict[int, list[str]]) -> str:
    for section, content in lines.items():
        (folder / f"{section:02d}").mkdir(parents=True, exist_ok=True)
        path = folder / f"{section:02d}" / f"wsj_{section:02d}07.pipe"
        path.write_text("".join(line + "\n" for line in content), "utf-8")
    return str(folder)


CAUSE, LIST, RARE = "Contingency.Cause.Reason", "Expansion.List", "Expansion.Exception"


def treebank(folder: Path, kind: str = "Explicit") -> str:
    lines = {
        section: [relation(kind, section, 7, CAUSE, first=f"It rained {section}")] for section in range(25)
    }
    lines[2] += [relation(kind, 2, 7, CAUSE)] * 9 + [relation(kind, 2, 7, RARE)] * 9
    lines[14] += [relation(kind, 14, 7, LIST, CAUSE)] * 10
    lines[15] += [relation(kind, 15, 7, RARE), relation(kind, 15, 7, "Expansion")]
    lines[20] += [relation("EntRel", 20, 7), relation("NoRel", 20, 7)]
    return write_sections(folder, lines)


def test_sections_make_the_splits_and_second_levels_the_labels(tmp_path):
    done = build("PDTB/explicit", treebank(tmp_path / "pdtb"), tmp_path / "out")
    assert done.folder == tmp_path / "out" / "PDTB" / "Explicit"
    rows = read_rows(done.folder)
    assert (done.folder / "labelset.txt").read_text() == "Contingency.Cause\nExpansion.List\n"
    assert {split: len(found) for split, found in rows.items()} == {
        "train": 13 + 9 + 20,
        "valid": 4,
        "test": 5,
    }
    assert rows["valid"] == [["0", f"It rained {section}", "we stayed in"] for section in (15, 16, 17, 18)]
    assert [row[0] for row in rows["train"][-20:]] == ["1", "0"] * 10
    assert done.skipped == {
        "relations of a sense with fewer than 10 in training": 10,
        "relations of another type": 2,
        "relations of sections 0, 1 and 24": 3,
        "relations without a sense of the second level": 1,
    }
    assert done.statistics["examples"]["train"]["labels"] == {"Contingency.Cause": 32, "Expansion.List": 10}


def test_implicit_relations_are_another_task(tmp_path):
    source = treebank(tmp_path / "pdtb", "Implicit")
    assert build("PDTB/implicit", source, tmp_path / "out").folder.name == "Implicit"
    with pytest.raises(EnsueError, match="has 0 senses with 10 or more explicit relations"):
        build("PDTB/explicit", source, tmp_path / "out")


def test_two_senses_that_differ_in_the_third_level_are_one():
    assert second_level("Comparison.Contrast.Juxtaposition") == second_level("Comparison.Contrast.Opposition")


def test_every_section_but_three_has_a_split():
    assert [section for section in range(25) if split_of(section) is None] == [0, 1, 24]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("Explicit|02|07", r"wsj_0207\.pipe, line 2 has 3 columns, where the pipe format has 48"),
        (relation("Hidden", 2, 7, CAUSE), "line 2 is not a type of relation: 'Hidden'"),
        (relation("Explicit", 3, 7, CAUSE), "line 2 says section 3, but the file's name says 2"),
        (relation("Explicit", 2, 7, CAUSE).replace("|02|", "|xx|"), "line 2 has 'xx' as its section"),
        (relation("Explicit", 2, 7, "Cause.Reason"), "line 2 has 'Cause.Reason' as a sense"),
    ],
)
def test_bad_lines_are_named(tmp_path, line, words):
    source = write_sections(tmp_path / "pdtb", {2: [relation("Explicit", 2, 7, CAUSE), line]})
    with pytest.raises(EnsueError, match=words):
        build("PDTB/explicit", source, tmp_path / "out")


def test_a_missing_section_and_a_folder_without_files_are_refused(tmp_path):
    with pytest.raises(EnsueError, match=r"holds no \.pipe file"):
        build("PDTB/explicit", str(tmp_path), tmp_path.parent / "out")
    train = [relation("Explicit", 2, 7, sense) for sense in (CAUSE, LIST) for _ in range(10)]
    source = write_sections(tmp_path / "pdtb", {2: train})
    with pytest.raises(EnsueError, match="has no explicit relation for valid"):
        build("PDTB/explicit", source, tmp_path / "out")
    with pytest.raises(EnsueError, match="--train is for SP and BSO and DC and SSP, not for PDTB/explicit"):
        build("PDTB/explicit", source, tmp_path / "out", BuildOptions(train=5))
