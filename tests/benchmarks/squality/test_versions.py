"""Finding a version and split in a folder, whichever of the published layouts it has."""

from __future__ import annotations

from pathlib import Path

import pytest

from ensue.benchmarks.squality.versions import find_file, split_name, versions
from ensue.errors import EnsueError
from tests.benchmarks.squality.invented import story_row, write_rows


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    home = tmp_path / "squality"
    for place in ("v1", "v1-3/html", "v1-3/txt"):
        for split in ("train", "test"):
            write_rows(home / place / f"{split}.jsonl", story_row())
    (home / "human-eval").mkdir()
    return home


def test_all_versions_of_a_folder_are_found_oldest_first(folder: Path) -> None:
    assert [version.label for version in versions(folder)] == ["v1", "v1-3/txt", "v1-3/html"]


@pytest.mark.parametrize(
    ("asked", "label", "place"),
    [
        (None, "v1", "v1"),
        ("v1", "v1", "v1"),
        ("v1-3", "v1-3/txt", "v1-3/txt"),
        ("1.3", "v1-3/txt", "v1-3/txt"),
        ("V1.3/html", "v1-3/html", "v1-3/html"),
    ],
)
def test_a_version_is_found_by_any_of_its_names(
    folder: Path, asked: str | None, label: str, place: str
) -> None:
    assert find_file(folder, asked, "test") == (folder / place / "test.jsonl", label)


def test_the_folder_of_one_version_or_form_or_a_file_will_do(folder: Path) -> None:
    assert find_file(folder / "v1-3")[1] == "v1-3/txt"
    assert find_file(folder / "v1-3" / "html", split="train") == (
        folder / "v1-3" / "html" / "train.jsonl",
        "v1-3/html",
    )
    file = folder / "v1" / "train.jsonl"
    assert find_file(file) == (file, "v1")
    repository = folder.parent / "checkout"
    repository.mkdir()
    folder.rename(repository / "data")
    assert find_file(repository, "v1-3")[0] == repository / "data" / "v1-3" / "txt" / "test.jsonl"


def test_a_folder_without_a_version_is_read_under_no_name(tmp_path: Path) -> None:
    write_rows(tmp_path / "own" / "dev.jsonl", story_row())
    assert find_file(tmp_path / "own", split="validation")[1] == "unnamed"


def test_what_is_not_there_is_said_with_what_is(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(EnsueError, match=r"no version 'v2'; it has v1, v1-3/txt, v1-3/html"):
        find_file(folder, "v2")
    with pytest.raises(EnsueError, match=r"v1 in .* has no dev.jsonl; it has train, test"):
        find_file(folder, "v1", "dev")
    with pytest.raises(EnsueError, match="There is no split 'final'"):
        split_name("final")
    with pytest.raises(EnsueError, match="holds no SQuALITY"):
        find_file(folder / "human-eval")
    with pytest.raises(EnsueError, match="is not a folder"):
        find_file(tmp_path / "nowhere")
