"""A toy training lowers the loss of held-out documents, can be resumed, and leaves a folder that scores like any."""

from __future__ import annotations

import json
import shutil

import pytest
import torch
from safetensors.torch import load_file

import ensue
from ensue.backends.hf.language import CausalModel, MaskedModel
from ensue.backends.names import load_model
from ensue.errors import EnsueError
from ensue.models.card import write_card_facts
from tests.support import stories, tiny
from tests.support.command import here, refused

SETTINGS = {
    "epochs": 3, "batch": 2, "row_tokens": 200, "learning_rate": 1e-2, "dev_share": 0.2, "device": "cpu",
    "precision": "no",
}  # fmt: skip
TEXTS = ["At noon the captain read the map. In the evening she ran into the garden.", "The votes."]


def train(model, data, output, told=None, **more):
    options = {**SETTINGS, **more}
    return ensue.train("lm", model=str(model), data=[str(data)], output=output, progress=told, **options)


def record(folder):
    return json.loads((folder / "training.json").read_text())


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return stories.write(tmp_path_factory.mktemp("data") / "stories.jsonl")


@pytest.fixture(scope="module")
def llama(tmp_path_factory):
    folder = tiny.save_llama(tmp_path_factory.mktemp("models") / "llama", max_length=256)
    write_card_facts(folder, licence="MIT")
    return folder


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    return tiny.save_encoder(tmp_path_factory.mktemp("models") / "encoder", max_length=256)


@pytest.fixture(scope="module")
def in_domain(llama, data, tmp_path_factory):
    output = tmp_path_factory.mktemp("trained") / "lm"
    return output, train(llama, data, output)


@pytest.mark.parametrize("lora", [None, 4])
@pytest.mark.parametrize("kind", ["causal", "masked"])
def test_training_lowers_the_loss_and_what_is_saved_scores_as_the_record_says(
    llama, encoder, data, tmp_path, kind, lora
):
    base = llama if kind == "causal" else encoder
    fitted = train(base, data, tmp_path / "lm", lora=lora)
    facts = record(tmp_path / "lm")
    assert facts["objective"] == kind
    assert fitted.best["perplexity"] < facts["before"]["perplexity"] * 0.8
    model = load_model(str(tmp_path / "lm"), device="cpu")
    assert isinstance(model, CausalModel if kind == "causal" else MaskedModel)
    assert model.card.kind == kind
    assert not model.card.trained_on_shuffled_text
    assert f"{facts['tokens']['train']} tokens" in model.card.training
    assert f"{fitted.best['perplexity']:.3f}" in model.card.training
    assert model.card.max_length == 256
    size = sum(path.stat().st_size for path in (tmp_path / "lm").glob("[am]*.safetensors"))
    whole = sum(path.stat().st_size for path in base.glob("*.safetensors"))
    assert (size < whole / 2) == (lora is not None)
    if kind == "causal":
        # The held-out documents, scored by the engine, have the loss the training saw.
        held = set(facts["documents"]["dev_ids"])
        texts = [" ".join(one["sentences"]) for one in stories.stories(40) if one["id"] in held]
        scored = ensue.score(texts, model=model).scores
        loss = -sum(one.logprob for one in scored) / sum(one.tokens for one in scored)
        assert loss == pytest.approx(fitted.best_loss, rel=1e-5 if lora is None else 2e-3)


def test_the_folder_says_what_it_is(in_domain, llama):
    output, fitted = in_domain
    card = load_model(str(output), device="cpu").card
    assert card.licence == "MIT"
    assert card.source == f"trained by ensue from {llama}"
    readme = (output / "README.md").read_text()
    for words in (
        "do not see one another",
        f"{fitted.best['perplexity']:.3f}",
        "32 documents",
        "8 documents",
    ):
        assert words in readme


@pytest.mark.parametrize("lora", [None, 2])
def test_a_model_that_needs_bos_is_trained_with_it_and_goes_on_needing_it(data, tmp_path, lora):
    base = tiny.save_llama(tmp_path / "base", max_length=256)
    write_card_facts(base, needs_bos=True)
    texts = [" ".join(one["sentences"]) for one in stories.stories(40)]
    fitted = train(base, data, tmp_path / "lm", epochs=1, lora=lora, learning_rate=1e-3)
    facts, model = record(tmp_path / "lm"), load_model(str(tmp_path / "lm"), device="cpu")
    assert model.card.needs_bos
    held = {int(name.partition("-")[2]) for name in facts["documents"]["dev_ids"]}
    for scorer, loss in ((load_model(str(base)), facts["before"]["dev_loss"]), (model, fitted.best_loss)):
        found = ensue.score([texts[number] for number in sorted(held)], model=scorer).scores
        # The first token of each text is predicted, too.
        assert sum(one.tokens for one in found) == facts["tokens"]["dev"]
        mean = -sum(one.logprob for one in found) / facts["tokens"]["dev"]
        assert mean == pytest.approx(loss, rel=2e-3 if lora else 1e-5)


def test_held_out_documents_are_a_share_and_never_trained_on(in_domain):
    facts = record(in_domain[0])
    assert (facts["documents"]["train"], facts["documents"]["dev"]) == (32, 8)
    assert len(facts["documents"]["dev_ids"]) == 8


def test_only_the_documents_of_a_list_are_used(llama, data, tmp_path):
    chosen = [f"story-{number}" for number in range(0, 40, 2)]
    (tmp_path / "even").write_text("\n".join(chosen))
    train(llama, data, tmp_path / "lm", only=tmp_path / "even", epochs=1)
    facts = record(tmp_path / "lm")
    assert facts["documents"]["train"] + facts["documents"]["dev"] == 20
    assert set(facts["documents"]["dev_ids"]) <= set(chosen)
    assert facts["documents"]["skipped"] == {"documents not asked for": 20}
    assert facts["asked"]["only"] == chosen


class Stop(Exception):
    pass


@pytest.mark.parametrize(("kind", "lora"), [("causal", None), ("masked", 4)])
def test_a_stopped_training_goes_on_to_the_same_weights(llama, encoder, data, tmp_path, kind, lora):
    base = llama if kind == "causal" else encoder
    settings = {"evaluate_every": 3, "epochs": 2, "lora": lora}
    whole = train(base, data, tmp_path / "whole", **settings)

    def stop(done, total, unit):
        if done == 7:
            raise Stop

    with pytest.raises(Stop):
        train(base, data, tmp_path / "parts", stop, **settings)
    resumed = train(base, data, tmp_path / "parts", resume=True, **settings)
    assert resumed.best == whole.best
    names = [path.name for path in (tmp_path / "whole").glob("*.safetensors")]
    assert len(names) == 2
    for name in names:
        one, other = (load_file(tmp_path / folder / name) for folder in ("whole", "parts"))
        assert all(torch.equal(one[key], other[key]) for key in one)


def test_a_checkpoint_is_no_part_of_what_a_model_is(in_domain, tmp_path):
    output, _ = in_domain
    copied = shutil.copytree(output, tmp_path / "copied")
    (copied / "checkpoint.safetensors").unlink()
    assert load_model(str(copied)).card.identity == load_model(str(output)).card.identity


def test_an_adapter_on_other_weights_is_refused(data, tmp_path):
    base = tiny.save_llama(tmp_path / "base", max_length=256)
    train(base, data, tmp_path / "lm", lora=2, epochs=1)
    tiny.save_llama(base, seed=1, max_length=256)
    with pytest.raises(EnsueError, match="its weights differ"):
        load_model(str(tmp_path / "lm"))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--data", "nowhere.jsonl"), "nowhere.jsonl"),
        (("--objective", "masked"), "needs a masked language model or an encoder"),
        (("--objective", "sideways"), "sideways"),
        (("--full", "--lora", "4"), "not both"),
        (("--row-tokens", "1000"), "takes 256 tokens"),
        (("--dev-share", "1.5"), "between 0 and 1"),
        (("--dev-share", "0.999"), "too few to hold out"),
        (("--model", "random"), "is not an encoder"),
    ],
)
def test_bad_input_of_the_command_is_one_sentence(llama, data, tmp_path, options, words):
    given = () if "--data" in options else ("--data", data)
    named = () if "--model" in options else ("--model", llama)
    done = here("train", "lm", *given, *named, "--output", tmp_path / "lm", "--device", "cpu", *options)
    assert done.code == 2
    assert words in done.sentence
    assert not (tmp_path / "lm").exists()


def test_an_empty_folder_that_was_there_stays(llama, data, tmp_path):
    (tmp_path / "lm").mkdir()
    given = ("--data", data, "--model", llama, "--output", tmp_path / "lm", "--dev-share", "0.999")
    refused(here("train", "lm", *given, "--device", "cpu"), "too few to hold out")
    assert (tmp_path / "lm").is_dir()


def test_an_adapter_on_layers_that_are_not_linear_is_refused(data, tmp_path):
    base = tiny.save_gpt2(tmp_path / "gpt2", max_length=256)
    with pytest.raises(EnsueError, match="no linear layers"):
        train(base, data, tmp_path / "lm", lora=2)
