"""Items and rows field by field, by a made-up metric whose values are plain to see."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from ensue.backends.names import load_model
from ensue.benchmarks.base import content_of
from ensue.benchmarks.squality.data import Question, Response, Story, StoryQuestion, examples
from ensue.benchmarks.squality.evaluation import (
    bertscore_by,
    human_items,
    judged_items,
    measures_of,
    rows_of,
)
from ensue.benchmarks.squality.systems import Summary, named
from ensue.benchmarks.summaries.bertscore import bertscore_of
from ensue.errors import EnsueError
from ensue.metrics.meteor import meteor_of
from ensue.metrics.overlap import rouge_of
from ensue.models.card import ModelCard
from ensue.stats.clustered import clustered_interval
from ensue.stats.ranges import range_of
from ensue.text.wordnet import load_wordnet
from tests.support import tiny
from tests.support.wordnet import write_wordnet

ABOUT = {"version": "v9", "split": "dev"}


def shared(candidates: Sequence[str], references: Sequence[Sequence[str]]) -> dict[str, list[list[float]]]:
    """How many letters candidate and reference both have, over ten."""
    return {
        "shared": [
            [len(set(text) & set(other)) / 10 for other in given]
            for text, given in zip(candidates, references, strict=True)
        ]
    }


def example(story: str, number: int, *texts: str) -> StoryQuestion:
    question = Question(number, f"What of {number}?", tuple(Response(f"w{t}", "", t) for t in texts))
    return next(iter(examples([Story(story, "", "", "A story.", (question,))])))


ASKED = [
    example("s1", 1, "abc", "abd", "xyz"),
    example("s1", 2, "aaa", "b"),
    example("s2", 1, "qq", "abcdef"),
]
WRITTEN = [Summary("ab c", {"words_cut": 3}), Summary("", {}), Summary("f a b", {"words_cut": 0})]


def test_every_field_of_an_item() -> None:
    first, second, third = judged_items(ASKED, WRITTEN, [shared], ABOUT)
    assert (first["id"], first["cluster"], first["task"], first["settings"]) == (
        "s1/1",
        "s1",
        "squality",
        ABOUT,
    )
    assert first["scores"] == pytest.approx(
        {
            "shared": 0.3,
            "shared_mean": (0.3 + 0.2 + 0.0) / 3,
            # The best of the two that are left, over which is left out.
            "shared_loo": (0.2 + 0.3 + 0.3) / 3,
            "words": 2.0,
        }
    )
    assert first["outputs"] == {
        "question": "What of 1?",
        "summary": "ab c",
        "words_cut": 3,
        "by_reference": {"shared": [0.3, 0.2, 0.0]},
    }
    assert (second["scores"]["shared"], second["scores"]["words"]) == (0.0, 0.0)
    assert (third["id"], third["cluster"], third["scores"]["shared"]) == ("s2/1", "s2", 0.3)


def test_people_are_held_against_one_another_question_by_question() -> None:
    first, second, third = human_items(ASKED, [shared], ABOUT)
    # abc: best of abd (2) and xyz (0); abd the same; xyz shares nothing.
    assert first["scores"]["shared"] == pytest.approx((0.2 + 0.2 + 0.0) / 3)
    assert first["scores"]["shared_mean"] == pytest.approx((0.1 + 0.1 + 0.0) / 3)
    assert first["scores"]["shared_loo"] == first["scores"]["shared"]
    assert first["scores"]["words"] == 1.0
    assert (first["id"], first["cluster"], first["task"], first["settings"]) == (
        "s1/1",
        "s1",
        "squality",
        ABOUT,
    )
    assert first["outputs"] == {
        "question": "What of 1?",
        "summaries": [
            {"writer": "wabc", "by_reference": {"shared": [0.2, 0.0]}},
            {"writer": "wabd", "by_reference": {"shared": [0.2, 0.0]}},
            {"writer": "wxyz", "by_reference": {"shared": [0.0, 0.0]}},
        ],
    }
    # Each question's own summaries, and no other's.
    assert [one["writer"] for one in second["outputs"]["summaries"]] == ["waaa", "wb"]
    assert [one["writer"] for one in third["outputs"]["summaries"]] == ["wqq", "wabcdef"]


def test_every_field_of_a_row() -> None:
    items = judged_items(ASKED, WRITTEN, [shared], ABOUT)
    del items[1]["scores"]["shared_loo"]
    rows = rows_of(items)
    assert [row["metric"] for row in rows] == ["shared", "shared_mean", "words"]
    for row in rows:
        values = [item["scores"][row["metric"]] for item in items]
        interval = clustered_interval(values, ["s1", "s1", "s2"], bounds=range_of(row["metric"]))
        assert row["value"] == pytest.approx(np.mean(values))
        assert row["ci95"] == [interval.low, interval.high]
        assert (row["task"], row["n"], row["clusters"], row["settings"]) == ("squality", 3, 2, ABOUT)
    with pytest.raises(EnsueError, match="no question is left"):
        rows_of([])


def test_one_reference_alone_and_more_metrics_than_one() -> None:
    """A question with a single summary has nothing to hold it against; two metrics are kept apart."""

    def both(candidates: Sequence[str], references: Sequence[Sequence[str]]) -> dict[str, list[list[float]]]:
        found = shared(candidates, references)["shared"]
        return {"shared": found, "twice": [[2 * value for value in row] for row in found]}

    (item,) = judged_items(ASKED[1:2], [Summary("ab", {})], [both, shared], ABOUT)
    assert item["scores"]["twice"] == 2 * item["scores"]["shared"]
    (people,) = human_items(ASKED[1:2], [both], ABOUT)
    assert people["scores"] == {
        **dict.fromkeys(("shared", "shared_mean", "shared_loo", "twice", "twice_mean", "twice_loo"), 0.0),
        "words": 1.0,
    }
    alone = example("s3", 1, "abc")
    (item,) = judged_items([alone], [Summary("a", {})], [shared], ABOUT)
    assert set(item["scores"]) == {"shared", "shared_mean", "words"}
    assert item["content"] == content_of("A story.", "What of 1?", ("abc",))
    assert item["asked"] == content_of("A story.", "What of 1?")
    with pytest.raises(EnsueError, match="without a reference"):
        human_items([alone], [shared], ABOUT)
    with pytest.raises(ValueError, match="zip"):
        judged_items(ASKED, WRITTEN[:2], [lambda texts, given: {}], ABOUT)


def test_measures_are_made_in_the_order_they_were_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ENSUE_WORDNET", str(write_wordnet(tmp_path / "wordnet")))
    encoder: Any = load_model(str(tiny.save_encoder(tmp_path / "encoder", max_length=32)))
    loaded: list[str] = []

    def load(name: str) -> Any:
        loaded.append(name)
        return encoder

    notes: Counter[str] = Counter()
    settings = {"metrics": ["meteor", "bertscore", "rouge"], "bertscore_model": "m", "bertscore_layer": 1}
    measures = measures_of(settings, load, notes)
    texts, references = ["The mill burned down in the night. " * 9], [["A factory burned.", "The mill."]]
    found = [measure(texts, references) for measure in measures]
    assert [list(one) for one in found] == [["meteor"], ["bertscore"], ["rouge1", "rouge2", "rougeL"]]
    rows = bertscore_of(encoder, texts, references, layer=1)
    assert found[1] == {"bertscore": [[one.f1 for one in row] for row in rows]}
    assert found[2]["rouge1"] == [[one.rouge1.f1 for one in row] for row in rouge_of(texts, references)]
    synonyms = load_wordnet(tmp_path / "wordnet").synonyms
    assert found[0] == {"meteor": meteor_of(texts, references, synonyms)}
    assert loaded == ["m"]
    # The long text is cut to what the encoder takes.
    assert notes == {f"texts of which {encoder.card.name} reads only the beginning for BERTScore": 1}
    with pytest.raises(EnsueError, match="BERTScore needs"):
        measures_of({**settings, "metrics": ["bertscore"]}, lambda name: named("human"), notes)


@pytest.mark.parametrize(
    ("name", "asked", "layer"), [("m", None, "last"), ("m", 3, "3"), ("roberta-large", None, "17")]
)
def test_bertscore_says_by_which_weights_and_layer(name: str, asked: int | None, layer: str) -> None:
    card = ModelCard(name=name, kind="encoder", source="-", identity={"weights": "0123456789abcdef"})
    settings = {"bertscore_model": "asked for", "bertscore_layer": asked}

    def load(given: str) -> Any:
        assert given == "asked for"
        return SimpleNamespace(card=card)

    assert bertscore_by(settings, load) == f"bertscore:{name}/0123456789ab/{layer}"
