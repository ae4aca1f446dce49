"""SQuALITY as a folder of invented stories, and tiny models to summarise them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.benchmarks.squality.invented import LONG, evaluation_row, story_row, write_rows
from tests.support.tiny import save_encoder, save_llama
from tests.support.tiny_seq2seq import save_bart


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("squality")
    write_rows(folder / "v1" / "test.jsonl", story_row("1"), story_row("2", LONG), story_row("3"))
    write_rows(folder / "v1" / "train.jsonl", story_row("4"))
    write_rows(folder / "human-eval" / "all-responses.jsonl", evaluation_row("1"), evaluation_row("3", 2.0))
    return folder


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("models")
    return {
        "llama": save_llama(folder / "llama", max_length=256),
        "bart": save_bart(folder / "bart"),
        "encoder": save_encoder(folder / "encoder"),
    }
