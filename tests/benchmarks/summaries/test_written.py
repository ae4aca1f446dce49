"""Texts written so far: kept, read back, and good for one question only."""

from __future__ import annotations

from pathlib import Path

from ensue.benchmarks.summaries.written import WrittenTexts
from ensue.records import Records


def test_texts_are_read_back_and_are_good_for_one_question(tmp_path: Path) -> None:
    path = tmp_path / "kept.jsonl"
    with Records(path) as records:
        first = WrittenTexts(records, {"model": "a"})
        first.add([("1/1", "It rained.\nAll day\u2028long."), ("1/2", "")])
        first.add([("1/3", "A ferry.")])
    path.write_bytes(path.read_bytes()[:-4])
    with Records(path) as records:
        again = WrittenTexts(records, {"model": "a"})
        found = (again.get("1/1"), again.get("1/2"), again.get("1/3"))
        assert found == ("It rained.\nAll day\u2028long.", "", None)
        again.add([("1/3", "A boat.")])
        assert WrittenTexts(records, {"model": "b"}).get("1/3") is None
    with Records(path) as records:
        assert WrittenTexts(records, {"model": "a"}).get("1/3") == "A boat."
