"""The table of a ChapterBreak run, printed at 80 columns and read back."""

from __future__ import annotations

from ensue.runs.tables import metrics_tables
from tests.support.pages import printed


def chapterbreak_rows(split, prefix, **settings):
    values = {"accuracy": 0.25, "rank": 2.5, "margin": -0.05, "ties": 0.0, "word_perplexity": 45.67}
    where = {"boundary": "chapter", "negatives": "in-book", "prefix_tokens": prefix, "suffix_tokens": 128}
    return [
        {
            "task": split,
            "metric": metric,
            "value": value,
            "ci95": [0.2, 0.3],
            "n": 241,
            "clusters": 17,
            "settings": {**where, **settings},
        }
        for metric, value in values.items()
    ]


def test_it_has_a_row_per_split_and_prefix_beside_the_published_figures():
    rows = chapterbreak_rows("pg19", 128) + chapterbreak_rows("pg19", 8064)
    lines = printed(
        metrics_tables({"benchmark": "chapterbreak/pg19", "model": "m", "metrics": rows})[0].to_rich()
    )
    cells = [line.split() for line in lines]
    assert ["pg19", "8,064", "0.250", "0.200–0.300", "2.50", "−0.050", "45.7", "241", "17"] in cells
    assert "suffix" not in lines[2]
    text = " ".join(" ".join(lines).split())
    assert "GPT-2 0.23 (1K)" in text
    assert "GPT-3 0.36 (2K, a subset)" in text


def test_it_shows_only_settings_that_differ():
    rows = chapterbreak_rows("mine", 128) + chapterbreak_rows("mine", 128, negatives="same-split")
    rows = [row for row in rows if row["metric"] != "word_perplexity"]
    lines = printed(metrics_tables({"benchmark": "chapterbreak", "model": "m", "metrics": rows})[0].to_rich())
    cells = [line.split() for line in lines]
    assert ["mine", "same-split", "128", "0.250", "0.200–0.300", "2.50", "−0.050", "–", "241", "17"] in cells
    assert not any("Published" in line for line in lines)
