"""The published figures against the paper's printed tables."""

from __future__ import annotations

import pytest

from ensue.benchmarks.chapterbreak.report.rows import CHANCE, PACKAGE, published_models
from ensue.benchmarks.published import citation, facts_of, published


@pytest.mark.parametrize(
    ("model", "millions", "thousands", "perplexity", "pg19", "ao3"),
    [
        ("LT", 516, 8, 76.8, 25, 24),
        ("RT", 490, 8, 72.3, 22, 24),
        ("Bigbird", 128, 4, 56.2, 27, 26),
        ("GPT-2", 1500, 1, 78.2, 23, 24),
        ("GPT-3", 175_000, 2, None, 36, 28),
        ("SuffixLM", 87, 10, None, 52, 41),
    ],
)
def test_table_2_holds_what_the_paper_prints(model, millions, thousands, perplexity, pg19, ao3):
    (row,) = [row for row in published_models() if row.name == model]
    assert row.parameters == millions * 10**6
    assert row.length == thousands * 1024
    assert row.value("word_perplexity", "pg19") == perplexity
    found = {split: row.value("accuracy", split) for split in ("pg19", "ao3")}
    assert found == {"pg19": pytest.approx(pg19 / 100), "ao3": pytest.approx(ao3 / 100)}
    assert row.partly == (model == "GPT-3")


def test_the_shares_of_every_aspect_add_up_as_printed():
    shares = facts_of(PACKAGE)["transitions"]["rows"]
    for aspect in ("events", "actors", "location", "continuity"):
        chosen = [share for share in shares if share["aspect"] == aspect]
        # The paper rounds; its continuity column adds up to 99 %.
        assert sum(share["all"] for share in chosen) == pytest.approx(1.0, abs=0.011)
        assert sum(share["missed"] for share in chosen) == pytest.approx(1.0, abs=1e-9)
    found = {(share["aspect"], share["category"]): (share["all"], share["missed"]) for share in shares}
    assert found["location", "change"] == (0.68, 0.64)
    assert found["continuity", "parallel"] == (0.06, 0.11)


def test_the_data_counts_are_those_of_tables_3_and_4():
    rows = facts_of(PACKAGE)["table_4"]["rows"]
    sizes = {(row["boundary"], row["split"]): (row["works"], row["examples"]) for row in rows}
    assert sizes["chapter", "ao3"] == (1202, 7355)
    assert sizes["chapter", "pg19"] == (17, 241)
    assert sizes["dialogue", "pg19"] == (46, 3165)
    assert len(sizes) == 6
    table_3 = facts_of(PACKAGE)["table_3"]
    assert list(table_3["chapters"].values()) == [21.5, 11, 589]
    assert list(table_3["words"].values()) == [41_513.2, 10_000, 636_468]


def test_the_suffix_model_gains_fifteen_points_on_ao3():
    points = [figure for figure in published(PACKAGE) if figure.system == "SuffixLM (AO3)"]
    assert {p.settings["prefix_tokens"]: p.value for p in points} == {256: 0.31, 8192: 0.46}


def test_the_rest():
    ratios = {row["model"]: row["ratio"] for row in facts_of(PACKAGE)["subwords_per_word"]["rows"]}
    assert ratios["GPT-2"] == 1.30
    assert pytest.approx(1 / 6) == CHANCE
    assert "ChapterBreak" in citation(PACKAGE)
    assert "2022" in citation(PACKAGE)
