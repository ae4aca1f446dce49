"""The printed figures hang together: what one table says of QAGS, every other says too."""

from __future__ import annotations

from itertools import pairwise

import pytest

from ensue.benchmarks.published import citation, facts_of, published
from ensue.benchmarks.qags.candidates import ANSWERS
from ensue.benchmarks.qags.data.sets import PLACES

QAGS = "ensue.benchmarks.qags"
ABLATIONS = {
    "answering": "4.2",
    "asking": "4.3",
    "questions": "4.4",
    "domain": "section",
    "similarity": "section",
}


def rows(table: str) -> dict[str, tuple[float, ...]]:
    """The values of a table's lines by system."""
    found: dict[str, tuple[float, ...]] = {}
    for one in published(QAGS):
        if one.table == table:
            found[one.system] = (*found.get(one.system, ()), one.value)
    return found


def test_table_4_1() -> None:
    found = rows("4.1")
    assert len(found) == 10
    assert found["ROUGE-1"] == (0.2874, 0.1322)
    assert found["BERTScore"] == (0.2763, 0.0251)
    # QAGS leads both columns, and BLEU-1 is second on CNN/DM, as the text has it.
    assert (
        max(found, key=lambda name: found[name][0]) == max(found, key=lambda name: found[name][1]) == "QAGS"
    )
    assert sorted(found, key=lambda name: -found[name][0])[1] == "BLEU-1"


@pytest.mark.parametrize("varied", list(ABLATIONS))
def test_every_ablation_has_the_plain_qags(varied: str) -> None:
    (table,) = {one.table for one in published(QAGS) if one.settings.get("ablation") == varied}
    assert table.startswith(ABLATIONS[varied])
    assert list(rows(table).values()).count(rows("4.1")["QAGS"]) == 1
    assert all(len(values) == 2 for values in rows(table).values())


def test_ablations_are_ordered_by_quality() -> None:
    for varied in ("answering", "asking", "questions"):
        found = [one for one in published(QAGS) if one.settings.get("ablation") == varied]
        qualities = [one.facts["quality"] for one in found if one.task == "cnndm"]
        assert all(low < high for low, high in pairwise(qualities))


def test_table_4_5() -> None:
    found = list(rows("4.5").items())
    assert found[0] == ("Random", (0.5,))
    assert found[-1] == ("QAGS", (0.721,))
    assert [value for _, value in found] == sorted(value for _, value in found)


def test_figures_are_keyed_as_the_rows_of_a_run() -> None:
    assert {(one.task, one.metric) for one in published(QAGS)} == {
        ("cnndm", "pearson"),
        ("xsum", "pearson"),
        ("falke", "accuracy"),
        ("cnndm", "alpha"),
        ("xsum", "alpha"),
    }
    assert {one.task for one in published(QAGS)} <= set(PLACES)
    assert {one.settings.get("measure") for one in published(QAGS) if one.table == "4.4"} == {"qags"}
    assert rows("section 4.5.1") == {"workers": (0.51, 0.34)}


def test_settings_of_the_paper() -> None:
    facts = facts_of(QAGS)
    assert {name: facts["sizes"][name] for name in ("cnndm", "xsum", "triplets")} == {
        "cnndm": 235,
        "xsum": 239,
        "triplets": 373,
    }
    generation = facts["generation"]
    assert generation["answers"] == ANSWERS
    assert [generation[name] for name in ("beams", "questions", "least_tokens", "most_tokens")] == [
        10,
        20,
        8,
        60,
    ]
    assert facts["training"]["answering"] == {"learning_rate": 5e-5, "epochs": 3, "warmup_ratio": 0.1}
    assert facts["crowd"]["base_reward"] + facts["crowd"]["bonus"] == pytest.approx(1.0)
    assert citation(QAGS).startswith("Wang (2022)")
