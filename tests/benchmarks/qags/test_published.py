"""The printed figures hang together: what one table says of QAGS, every other says too."""

from __future__ import annotations

import pytest

from ensue.benchmarks.qags import data, falke
from ensue.benchmarks.qags.candidates import ANSWERS
from ensue.benchmarks.qags.published import (
    ABLATIONS,
    citation,
    crowd_settings,
    generation_settings,
    published_ablation,
    published_agreement,
    published_metrics,
    published_ranking,
    published_sizes,
    source_of,
    training_settings,
)


def test_table_4_1() -> None:
    rows = {row.metric: (row.cnndm, row.xsum) for row in published_metrics()}
    assert len(rows) == 10
    assert rows["ROUGE-1"] == (0.2874, 0.1322)
    assert rows["BERTScore"] == (0.2763, 0.0251)
    # QAGS leads both columns, and BLEU-1 is second on CNN/DM, as the text has it.
    assert max(rows, key=lambda name: rows[name][0]) == max(rows, key=lambda name: rows[name][1]) == "QAGS"
    assert sorted(rows, key=lambda name: -rows[name][0])[1] == "BLEU-1"


@pytest.mark.parametrize("varied", list(ABLATIONS))
def test_every_ablation_has_the_plain_qags(varied: str) -> None:
    plain = published_metrics()[-1]
    rows = published_ablation(varied)
    assert sum((row.cnndm, row.xsum) == (plain.cnndm, plain.xsum) for row in rows) == 1
    assert len({row.setting for row in rows}) == len(rows)
    assert source_of(ABLATIONS[varied]).startswith("Wang (2022)")


def test_ablations_are_ordered_by_quality() -> None:
    for varied in ("answering", "asking", "questions"):
        qualities = [row.quality for row in published_ablation(varied)]
        assert None not in qualities
        assert qualities == sorted(qualities, key=float)  # type: ignore[arg-type]
    with pytest.raises(KeyError, match="No ablation of 'weather'"):
        published_ablation("weather")


def test_table_4_5() -> None:
    rows = [(row.system, row.accuracy) for row in published_ranking()]
    assert rows[0] == ("Random", 0.5)
    assert rows[-1] == ("QAGS", 0.721)
    assert [value for _, value in rows] == sorted(value for _, value in rows)


def test_sizes_and_settings_are_those_of_the_readers() -> None:
    sizes = published_sizes()
    assert {name: sizes[name] for name in data.SIZES} == data.SIZES
    assert sizes["triplets"] == falke.TRIPLETS
    assert set(published_agreement()) == set(data.FILES)
    settings = generation_settings()
    assert settings.answers == ANSWERS
    assert (settings.beams, settings.questions, settings.least_tokens, settings.most_tokens) == (
        10,
        20,
        8,
        60,
    )
    assert training_settings()["answering"] == {"learning_rate": 5e-5, "epochs": 3, "warmup_ratio": 0.1}
    assert crowd_settings().base_reward + crowd_settings().bonus == pytest.approx(1.0)
    assert citation().startswith("Wang (2022)")
