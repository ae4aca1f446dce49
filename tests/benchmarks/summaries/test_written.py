"""Texts written so far: kept, read back, and good for one question only."""

from __future__ import annotations

from pathlib import Path

from ensue.benchmarks.summaries.written import WrittenTexts


def test_texts_are_read_back_and_a_torn_line_is_dropped(tmp_path: Path) -> None:
    first = WrittenTexts(tmp_path, {"model": "a"}, "summaries")
    first.add([("1/1", "It rained.\nAll day\u2028long."), ("1/2", "")])
    first.add([("1/3", "A ferry.")])
    [path] = tmp_path.iterdir()
    path.write_bytes(path.read_bytes()[:-4])
    again = WrittenTexts(tmp_path, {"model": "a"}, "summaries")
    assert (again.get("1/1"), again.get("1/2"), again.get("1/3")) == (
        "It rained.\nAll day\u2028long.",
        "",
        None,
    )
    again.add([("1/3", "A boat.")])
    assert WrittenTexts(tmp_path, {"model": "a"}, "summaries").get("1/3") == "A boat."
    assert len(WrittenTexts(tmp_path, {"model": "b"}, "summaries")) == 0
    again.clear()
    assert list(tmp_path.iterdir()) == []


def test_without_a_folder_texts_are_kept_in_memory() -> None:
    texts = WrittenTexts(None, {}, "summaries")
    texts.add([("a", "b")])
    assert (texts.get("a"), len(texts)) == ("b", 1)
