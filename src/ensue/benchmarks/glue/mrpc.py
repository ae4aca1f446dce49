"""MRPC from its original two files, divided into training and development as GLUE's download script divides them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ensue.benchmarks.nlu.examples import DEV, TEST, TRAIN
from ensue.benchmarks.nlu.files import Found, Row, tsv_rows
from ensue.errors import EnsueError

_TRAIN_FILE, _TEST_FILE, _DEV_IDS = "msr_paraphrase_train.txt", "msr_paraphrase_test.txt", "dev_ids.tsv"
_IDS = ("#1 ID", "#2 ID")


def original_files(home: Path, split: str) -> list[Found]:
    """The original files a split can be made of; none where they are not there."""
    if split == TEST:
        return [Found(home / _TEST_FILE)] if (home / _TEST_FILE).is_file() else []
    if split not in (TRAIN, DEV) or not (home / _TRAIN_FILE).is_file():
        return []
    if not (home / _DEV_IDS).is_file():
        raise EnsueError(
            f"{home / _TRAIN_FILE} holds the training and the development set, which {_DEV_IDS} tells apart: "
            "put that file beside it, or train.tsv and dev.tsv."
        )
    return [Found(home / _TRAIN_FILE), Found(home / _DEV_IDS)]


def original_rows(files: list[Found], split: str) -> Iterator[Row]:
    """The rows of a split; the development set is those pairs whose ids `dev_ids.tsv` lists."""
    if split == TEST:
        yield from tsv_rows(files[0])
        return
    pairs, listed = files
    developed = {
        (row.text("first"), row.text("second")): row for row in tsv_rows(listed, ("first", "second"))
    }
    unseen = dict(developed)
    for row in tsv_rows(pairs):
        key = (row.text(_IDS[0]), row.text(_IDS[1]))
        unseen.pop(key, None)
        if (key in developed) == (split == DEV):
            yield row
    for row in unseen.values():
        row.refuse(f"no pair of {pairs.path.name} has these ids; take the list that belongs to it")
