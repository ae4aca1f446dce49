"""Real novels: chapters where readers of the books count them, and examples that give nothing away."""

import json
import os
from pathlib import Path

import pytest

from ensue.benchmarks.chapterbreak.data.build import build
from ensue.text.works.headings import split_index
from ensue.text.works.readers import find_works, read_work

DATA = os.environ.get("ENSUE_DATA")
NOVELS = Path(DATA or "") / "novels"

pytestmark = [
    pytest.mark.data,
    pytest.mark.skipif(not DATA or not NOVELS.exists(), reason="ENSUE_DATA does not hold the novels"),
]


@pytest.mark.parametrize(
    ("name", "chapters"),
    [
        ("1023_bleak_house", 67),
        ("1342_pride_and_prejudice", 61),
        ("158_emma", 55),
        ("110_tess_of_the_durbervilles_a_pure_woman", 59),
        ("351_of_human_bondage", 122),
        ("4300_ulysses", 18),
        ("2489_moby_dick", 136),  # and the epilogue
    ],
)
def test_chapters_of_well_known_novels(name, chapters):
    (unread,) = find_works(NOVELS / "litbank_fulltext" / f"{name}.txt")
    assert len(read_work(unread).chapters) == chapters


def test_the_chapter_breaks_of_eltec(tmp_path):
    done = build(str(NOVELS / "eltec_chapters.jsonl"), tmp_path / "data", split="eltec")
    assert done.statistics["examples"]["chapter"]["eltec"]["works"] == 44
    assert done.statistics["examples"]["chapter"]["eltec"]["examples"] == 1086
    works = json.loads((tmp_path / "data" / "chapter.json").read_text("utf-8"))["eltec"]
    for rows in works.values():
        for row in rows:
            assert len(row["negs"]) == 5
            assert len({row["pos"], *row["negs"]}) == 6
            # All six begin with the same chapter index, so that counting does not help.
            assert len({split_index(text)[0] for text in (row["pos"], *row["negs"])}) == 1
            assert len(row["ctx"].split()) <= 8192
