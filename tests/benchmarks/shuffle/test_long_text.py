"""Blocks of up to twenty sentences of long texts, and the curves of several models in one picture."""

from __future__ import annotations

import ensue
from ensue.runs.report import write_report
from tests.support import tiny
from tests.support.corpus import write_corpus


def test_blocks_of_twenty_and_the_curves_of_two_models(tmp_path):
    data = write_corpus(tmp_path / "corpus.jsonl", (61, 45))
    how = {"data": data, "block_size": [1, 5, 20], "shuffles": 3, "max_sentences": "none"}
    run = ensue.run("shuffle", model="random", output=tmp_path / "run", **how)
    llama = tiny.save_llama(tmp_path / "llama", max_length=256)
    ensue.run("shuffle", model=str(llama), output=tmp_path / "other", limit=1, **how)
    pairs = {
        row["settings"]["block_size"]: (row["n"], row["clusters"])
        for row in run.results["metrics"]
        if row["metric"] == "accuracy"
    }
    # 45 sentences make three blocks of twenty (the last of five), 61 four.
    assert pairs == {1: (6, 2), 5: (6, 2), 20: (6, 2)}
    assert {len(item["outputs"]["order"]) for item in run.items if item["settings"]["block_size"] == 20} == {
        3,
        4,
    }
    page = write_report(tmp_path / "run", tmp_path / "page.html", beside=[tmp_path / "other"]).read_text(
        "utf-8"
    )
    assert "at block size 20" in page
    # Its curve has a name in the picture.
    assert page.count("llama") > write_report(tmp_path / "run", tmp_path / "own.html").read_text(
        "utf-8"
    ).count("llama")
