"""A toy training lowers perplexity, can be resumed, and leaves a folder that asks and says what it is."""

from __future__ import annotations

import json
import math
import shutil
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from ensue.backends.names import load_model
from ensue.backends.names import load_model as load
from ensue.backends.qg.questioner import plain_prompt
from ensue.errors import EnsueError
from ensue.models.protocols import AnswerSpan, Questioner
from ensue.text.io.squad import read_squad, split_articles
from ensue.train.qg.options import QuestionerOptions
from ensue.train.qg.rows import QuestionObjective, dev_figures, make_batch, make_rows, question_examples
from ensue.train.qg.train import evaluate_questioner, train_questioner
from tests.support import tiny
from tests.support.command import here
from tests.train.qg import invented

SETTINGS = {
    "steps": 40, "rank": 4, "alpha": 8.0, "dropout": 0.0, "batch_tokens": 2048, "max_tokens": 256, "dev_share": 0.2,
    "test_share": 0.2, "learning_rate": 2e-2, "warmup": 5, "evaluate_every": 10, "precision": "no", "device": "cpu",
}  # fmt: skip


def train(base: Path, data: Path, output: Path, told=None, **more):
    options = QuestionerOptions(model=str(base), data=[str(data)], output=output, **{**SETTINGS, **more})
    return train_questioner(options, told)


@pytest.fixture(scope="module")
def base(tmp_path_factory) -> Path:
    return tiny.save_llama(tmp_path_factory.mktemp("models") / "base", max_length=512)


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> Path:
    return invented.write(tmp_path_factory.mktemp("data") / "squad.json")


@pytest.fixture(scope="module")
def trained(base, data, tmp_path_factory):
    output = tmp_path_factory.mktemp("trained") / "qg"
    return output, train(base, data, output, statement="Invented.")


def naive_perplexity(network, tokenizer, examples) -> float:
    """One question at a time, one token at a time."""
    total, count = 0.0, 0
    for example in examples:
        prompt = plain_prompt(example.context, example.answer)
        ids = tokenizer(prompt.shared)["input_ids"] + tokenizer(prompt.own)["input_ids"]
        for token in [*tokenizer(" " + example.question)["input_ids"], tokenizer.eos_token_id]:
            with torch.inference_mode():
                table = torch.log_softmax(network(torch.tensor([ids])).logits[0, -1], -1)
            total += float(table[token])
            count += 1
            ids.append(token)
    return math.exp(-total / count)


def test_training_lowers_the_perplexity_of_held_out_articles(trained):
    output, fitted = trained
    record = json.loads((output / "training.json").read_text())
    assert fitted.best["perplexity"] < record["base"]["perplexity"] / 4
    assert fitted.best["perplexity"] == pytest.approx(math.exp(fitted.best["dev_loss"]))
    assert record["examples"] == {
        "train": {"articles": 4, "questions": 72},
        "dev": {"articles": 1, "questions": 18},
        "test": {"articles": 1, "questions": 18},
        "left_out": {"unanswerable": 36, "too long": 0},
    }
    assert record["held_out"]["questions"] == 18
    assert record["held_out"]["perplexity"] < record["base"]["perplexity"] / 4


def test_the_perplexity_of_a_saved_generator_is_that_of_a_plain_loop(trained, data):
    model = load_model(str(trained[0]))
    articles = split_articles(read_squad(data), dev_share=0.2, test_share=0.2).test
    dev = question_examples(articles)[0][:5]
    found = evaluate_questioner(model, dev)
    assert found["questions"] == 5
    assert found["perplexity"] == pytest.approx(
        naive_perplexity(model.model.network, model.model.tokenizer, dev), rel=1e-4
    )


def test_loss_and_perplexity_of_the_base_are_those_of_a_plain_loop(base, data):
    network, tokenizer = (
        AutoModelForCausalLM.from_pretrained(base).eval(),
        AutoTokenizer.from_pretrained(base),
    )
    examples = question_examples(read_squad(data))[0][:4]
    rows = make_rows(tokenizer, None, examples, 500)[0]
    expected = naive_perplexity(network, tokenizer, examples)
    objective = QuestionObjective(network)
    figures = dev_figures(objective, [make_batch(rows[:1]), make_batch(rows[1:])])
    assert figures["perplexity"] == pytest.approx(expected, rel=1e-4)
    with torch.inference_mode():
        assert math.exp(float(objective(make_batch(rows)))) == pytest.approx(expected, rel=1e-4)


def test_the_folder_is_small_and_asks(trained, base):
    output, _ = trained
    model = load_model(str(output))
    assert isinstance(model, Questioner)
    assert model.card.kind == "question-generator"
    assert "perplexity" in model.card.training
    config = json.loads((output / "config.json").read_text())
    assert config["architectures"] == ["QuestionGenerator"]
    assert config["base"] == str(base.resolve())
    context = "Clara had a mill by the river."
    (asked,) = model.ask([context], [AnswerSpan(0, 5)], count=3, beams=4, min_tokens=4, max_tokens=30)
    assert 1 <= len(asked) <= 3
    assert asked[0].question.startswith("W")
    assert [one.score for one in asked] == sorted((one.score for one in asked), reverse=True)


def test_the_card_says_recipe_data_perplexity_and_samples(trained):
    card = (trained[0] / "README.md").read_text()
    for words in (
        "rank 4",
        "Invented.",
        "72 questions of 4 articles",
        "Held-out perplexity",
        "Marta Lindqvist: *",
    ):
        assert words in card


def test_a_training_broken_off_goes_on_to_the_same_end(base, data, trained, tmp_path):
    output = tmp_path / "qg"

    class Enough(Exception):
        pass

    def told(done: int, total: int, unit: str) -> None:
        if done == 25:
            raise Enough

    with pytest.raises(Enough):
        train(base, data, output, told)
    fitted = train(base, data, output, resume=True)
    assert (fitted.best_loss, fitted.best_step) == (trained[1].best_loss, trained[1].best_step)
    assert (output / "adapter.safetensors").read_bytes() == (trained[0] / "adapter.safetensors").read_bytes()


def test_another_base_is_refused(trained, tmp_path):
    folder = shutil.copytree(trained[0], tmp_path / "qg")
    other = tiny.save_llama(tmp_path / "other", seed=1, max_length=512)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "base": str(other)}))
    with pytest.raises(EnsueError, match="its weights differ"):
        load(str(folder))


@pytest.mark.parametrize("change", ["prompt", "base", "adapter"])
def test_a_broken_folder_is_one_sentence(trained, tmp_path, change):
    folder = shutil.copytree(trained[0], tmp_path / "qg")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, change: None}))
    with pytest.raises(EnsueError, match="qg"):
        load(str(folder))


def test_a_folder_without_its_adapter_is_one_sentence(trained, tmp_path):
    folder = shutil.copytree(trained[0], tmp_path / "qg")
    (folder / "adapter.safetensors").unlink()
    with pytest.raises(EnsueError, match="is not a question generator that can be loaded"):
        load(str(folder))


def test_an_encoder_cannot_learn_to_ask(data, tmp_path):
    folder = tiny.save_encoder(tmp_path / "encoder")
    with pytest.raises(EnsueError, match="not a causal language model"):
        train(folder, data, tmp_path / "qg")


def test_steps_and_epochs_together_will_not_do(tmp_path):
    with pytest.raises(EnsueError, match="not both"):
        QuestionerOptions(data=["x"], output=tmp_path, steps=3, epochs=2)


def test_the_command_trains_and_says_how_it_ended(base, data, tmp_path):
    options = ("--model", base, "--rank", 2, "--steps", 2, "--evaluate-every", 1, "--device", "cpu")
    shares = ("--dev-share", 0.2, "--test-share", 0, "--batch-tokens", 512, "--max-tokens", 128, "--json")
    done = here("train", "qg", "--data", data, "--output", tmp_path / "qg", *options, *shares)
    assert done.code == 0, done.err
    said = json.loads(done.out)
    assert (said["steps"], said["folder"]) == (2, str(tmp_path / "qg"))
    card = (tmp_path / "qg" / "README.md").read_text()
    assert "These questions also decided which step was kept." in card
    again = here("train", "qg", "--data", data, "--output", tmp_path / "qg", *options, *shares)
    assert again.code == 2
    assert "--resume" in again.sentence


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--data", "nowhere.json"), "nowhere.json"),
        (("--dev-share", "0.7", "--test-share", "0.5"), "are invalid"),
        (("--batch-tokens", "64", "--max-tokens", "128"), "must fit a batch"),
        (("--schedule", "sudden"), "sudden"),
        (("--max-tokens", "16"), "raise --max-tokens"),
        (("--targets", "nothing_proj"), "nothing_proj"),
    ],
)
def test_bad_input_of_the_command_is_one_sentence(base, data, tmp_path, options, words):
    given = () if "--data" in options else ("--data", data)
    done = here(
        "train", "qg", *given, "--output", tmp_path / "qg", "--model", base, "--device", "cpu", *options
    )
    assert done.code == 2
    assert words in done.sentence
