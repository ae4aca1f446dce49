"""The question generator, the answerer and the masked model that come with the package: small, documented, of use."""

from __future__ import annotations

import json
import math
import os
import re
from pathlib import Path
from typing import Any

import pytest
import torch

from ensue.backends.names import SHIPPED, load_model, shipped_folder, ships
from ensue.benchmarks.qags.candidates import SpacyFinder
from ensue.benchmarks.qags.inspecting import inspect
from ensue.benchmarks.qags.pipeline import QagsModels
from ensue.benchmarks.qags.questions import FAST
from ensue.errors import EnsueError
from ensue.models.protocols import AnswerSpan
from ensue.models.request import Request
from ensue.scoring.engine import score
from ensue.text.io.squad import examples_of, read_squads, split_articles
from ensue.train.qa.quality import evaluate_answerer
from tests.support.command import here

SOURCE = (
    "The lighthouse at Varne was bought by Marta Lindqvist in 2011. She had sold her bakery in Ystad to pay for the "
    "repairs, which took three winters. Since then it has been open to visitors every summer, and a painter from "
    "Malmö lives in the keeper's house."
)
RIGHT = "Marta Lindqvist bought the lighthouse in 2011. The repairs took three winters."
HELD_OUT = {"1973_oil_crisis", "Amazon_rainforest", "Fresno,_California", "Imperialism", "Pharmacy"}
# Measured on a CPU in float32. Of all 1,423 questions the card says F1 .602, .716 and .478.
FIGURES = {
    "exact": 0.510,
    "f1": 0.560,
    "has_answer_exact": 0.607,
    "has_answer_f1": 0.699,
    "no_answer": 0.391,
}
WRONG = "Peter Holm bought the lighthouse in 1998. The repairs took seven weeks."


@pytest.fixture(scope="module")
def answerer() -> Any:
    return load_model("minilm-qa")


@pytest.fixture(scope="module")
def questioner() -> Any:
    return load_model("smollm2-qg")


def test_they_are_small_and_say_what_they_are() -> None:
    shipped = [name for name in SHIPPED if ships(name)]
    assert {"minilm-qa", "minilm-mlm", "smollm2-qg", "smollm2-reader"} <= set(shipped)
    folders = [shipped_folder(name) for name in shipped]
    files = [file for folder in folders for file in folder.iterdir()]
    assert sum(file.stat().st_size for file in files) < 18_000_000
    assert {file.name for file in files} == {
        "README.md",
        "adapter.safetensors",
        "config.json",
        "ensue-card.json",
    }
    for folder in folders:
        card = (folder / "README.md").read_text("utf-8")
        for words in ("## Recipe", "## Data", "CC BY-SA", "Held-out", "learning rate"):
            assert words in card
        assert not re.search(r"/tmp|/root|/home", card + (folder / "config.json").read_text("utf-8"))
    assert json.loads((shipped_folder("minilm-qa") / "config.json").read_text("utf-8"))["base"] == "minilm"


def test_an_installation_without_one_is_told_what_to_do(monkeypatch) -> None:
    monkeypatch.setitem(SHIPPED, "minilm-qa", SHIPPED["minilm-qa"]._replace(folder="nowhere"))
    with pytest.raises(EnsueError, match=r"no minilm-qa.*ensue train qa"):
        shipped_folder("minilm-qa")


def test_the_answerer_reads_as_its_card_says() -> None:
    folder = shipped_folder("minilm-qa")
    reading = json.loads((folder / "config.json").read_text("utf-8"))["reading"]
    assert f"threshold ({reading['threshold']:.3f})" in (folder / "README.md").read_text("utf-8")
    assert reading["threshold"] == pytest.approx(-2.408103, abs=1e-6)
    assert {name: value for name, value in reading.items() if name != "threshold"} == {
        "max_length": 384,
        "stride": 64,
        "max_question": 64,
        "max_answer": 30,
    }


@pytest.mark.slow
@pytest.mark.data
def test_the_answerer_is_as_good_as_its_card_says_on_articles_it_never_saw(answerer: Any) -> None:
    """A fourteenth of the questions of the test articles; with a threshold of 6 most answers would not be given."""
    root = os.environ.get("ENSUE_DATA")
    if not root or not (Path(root) / "squad").is_dir():
        pytest.skip("set ENSUE_DATA to the folder that holds squad")
    files = [Path(root) / "squad" / name for name in ("dev-v1.1.json", "dev-v2.0.json")]
    test = split_articles(read_squads(files)).test
    assert {one.id for one in test} == HELD_OUT
    examples = examples_of(test)
    assert (len(examples), sum(bool(one.answers) for one in examples)) == (1_423, 741)
    found = evaluate_answerer(answerer, examples[::14])
    assert found.as_dict() == pytest.approx(FIGURES, abs=0.02)


@pytest.mark.slow
def test_the_answerer_answers_and_refuses(answerer: Any) -> None:
    asked = ["Who bought the lighthouse at Varne?", "When was the lighthouse at Varne bought?"]
    found = answerer.answer(asked, [SOURCE] * 2)
    assert [one.text for one in found] == ["Marta Lindqvist", "2011"]
    assert [SOURCE[one.start : one.end] for one in found] == [one.text for one in found]
    long = answerer.answer(asked[:1], ["Nothing of it was known there. " * 200 + SOURCE])[0]
    assert long.text == "Marta Lindqvist"
    (nothing,) = answerer.answer(["What is the capital of Peru?"], [SOURCE])
    assert nothing.text == ""


@pytest.mark.slow
def test_the_generator_asks_for_the_answer(questioner: Any) -> None:
    start = SOURCE.index("2011")
    (asked,) = questioner.ask([SOURCE], [AnswerSpan(start, start + 4)], count=3, beams=3)
    assert asked[0].question.startswith(("When", "What year", "In what year"))
    assert "2011" not in asked[0].question


@pytest.mark.slow
def test_the_generator_knows_where_a_question_ends(questioner: Any) -> None:
    """With another end token every question runs on, and a beam of ten holds two or three questions."""
    start = SOURCE.index("2011")
    answer = AnswerSpan(start, start + 4)
    (asked,) = questioner.ask([SOURCE], [answer], count=6, beams=6)
    assert len({one.question for one in asked}) == 6
    (steps,) = questioner.question_logprobs([SOURCE], [answer], [asked[0].question])
    assert steps[-1] > math.log(0.5)
    assert steps.mean() == pytest.approx(asked[0].score, abs=1e-4)


@pytest.mark.slow
def test_a_wrong_summary_scores_less_than_a_right_one(questioner: Any, answerer: Any) -> None:
    parts = QagsModels(SpacyFinder(), questioner, answerer)
    right, wrong = (inspect(SOURCE, summary, parts, FAST) for summary in (RIGHT, WRONG))
    assert right.score > wrong.score + 0.2
    marked = " ".join(piece.text for piece in wrong.pieces if piece.inconsistent)
    assert "Holm" in marked


@pytest.mark.slow
def test_the_masked_model_scores_as_a_plain_loop_does_and_knows_english() -> None:
    model = load_model("minilm-mlm", device="cpu")
    turned = " ".join(reversed(RIGHT.split()))
    found = [one.logprob for one in score(model, [Request(RIGHT), Request(turned)]).scores]
    for text, value in zip((RIGHT, turned), found, strict=True):
        ids = torch.tensor(model.tokenizer(text)["input_ids"])
        total = 0.0
        for place in range(1, len(ids) - 1):
            copy = ids.clone()
            copy[place] = model.tokenizer.mask_token_id
            with torch.inference_mode():
                logits = model.network(copy[None]).logits[0, place]
            total += float(logits.log_softmax(-1)[ids[place]])
        assert value == pytest.approx(total, abs=1e-3)
    assert found[0] > found[1] + 20


@pytest.mark.slow
def test_the_command_needs_no_model_to_be_named(tmp_path) -> None:
    for name, text in (("source", SOURCE), ("summary", RIGHT)):
        (tmp_path / name).write_text(text, "utf-8")
    done = here(
        "qags", "--source", tmp_path / "source", "--summary", tmp_path / "summary",
        "--set", "preset=fast", "--html", tmp_path / "page.html",
    )  # fmt: skip
    assert done.code == 0
    assert "smollm2-qg asks, minilm-qa answers" in done.out
    assert "Marta Lindqvist" in (tmp_path / "page.html").read_text("utf-8")
