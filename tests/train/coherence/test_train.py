"""A coherence model learns to tell stories from shuffled ones, is saved as a rater, and is no zero-shot model."""

from __future__ import annotations

import json

import pytest
import torch
from safetensors.torch import load_file

import ensue
from ensue.backends.names import load_model
from ensue.errors import EnsueError
from ensue.models.protocols import Rater, Scorer, abilities
from ensue.text.documents import Document
from ensue.train.coherence.pairs import make_pairs, pair_loss
from ensue.train.shuffling import Shuffling
from tests.support import stories, tiny
from tests.support.command import here

SETTINGS = {
    "epochs": 4, "shuffles": 4, "batch": 8, "learning_rate": 3e-3, "dev_share": 0.2, "device": "cpu",
    "precision": "no", "dropout": 0.0,
}  # fmt: skip


def train(model, data, output, told=None, **more):
    options = {**SETTINGS, **more}
    return ensue.train(
        "coherence", model=str(model), data=[str(data)], output=output, progress=told, **options
    )


def record(folder):
    return json.loads((folder / "training.json").read_text())


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return stories.write(tmp_path_factory.mktemp("data") / "stories.jsonl", 60)


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    return tiny.save_encoder(tmp_path_factory.mktemp("models") / "encoder", max_length=256)


@pytest.fixture(scope="module")
def trained(encoder, data, tmp_path_factory):
    output = tmp_path_factory.mktemp("trained") / "rater"
    return output, train(encoder, data, output)


def held_out(folder, count=60):
    ids = set(record(folder)["documents"]["dev_ids"])
    return [one["sentences"] for one in stories.stories(count) if one["id"] in ids]


def accuracy(model, texts):
    good, bad = model.rate(texts), model.rate([text[::-1] for text in texts])
    return sum(a > b for a, b in zip(good, bad, strict=True)) / len(texts)


def test_it_rates_stories_it_has_not_seen_above_their_shuffled_versions(trained):
    output, fitted = trained
    assert fitted.best["dev_accuracy"] > 0.9
    model = load_model(str(output), device="cpu")
    assert isinstance(model, Rater)
    assert not isinstance(model, Scorer)
    assert abilities(model) == ["rate how coherent a text is"]
    assert accuracy(model, held_out(output)) > 0.9


@pytest.mark.parametrize(
    ("save", "more"),
    [
        (tiny.save_llama, {"loss": "ranking"}),
        (tiny.save_bert, {"lora": 4, "learning_rate": 1e-2}),
        (tiny.save_encoder, {"block_size": "1,2", "pool": "cls"}),
    ],
)
def test_any_model_can_be_trained_by_either_loss(data, tmp_path, save, more):
    base = save(tmp_path / "base", max_length=256)
    fitted = train(base, data, tmp_path / "rater", epochs=1, **{**more})
    model = load_model(str(tmp_path / "rater"), device="cpu")
    # What was saved rates the held-out pairs as the training saw them.
    facts = record(tmp_path / "rater")
    ids = set(facts["documents"]["dev_ids"])
    documents = [
        Document(one["id"], tuple(one["sentences"]), "") for one in stories.stories(60) if one["id"] in ids
    ]
    sizes = [int(size) for size in more.get("block_size", "1").split(",")]
    made = make_pairs(documents, Shuffling(sizes, 4))
    found = torch.tensor(model.rate([[text] for text in made.texts]))
    good, bad = (found[[pair[place] for pair in made.pairs]] for place in (0, 1))
    loss = float(pair_loss(good, bad, more.get("loss", "binary"), 1.0))
    assert loss == pytest.approx(fitted.best_loss, rel=2e-3, abs=2e-3)
    assert model.card.trained_on_shuffled_text
    assert model.card.kind == "rater"


def test_a_folder_that_says_nonsense_is_one_sentence(encoder, data, tmp_path):
    folder = tmp_path / "rater"
    train(encoder, data, folder, epochs=1, lora=2)
    config = json.loads((folder / "config.json").read_text())

    def load_with(**changed):
        (folder / "config.json").write_text(json.dumps({**config, **changed}))
        return load_model(str(folder), device="cpu")

    for changed in ({"joiner": 5}, {"max_length": 1.5}, {"max_length": 0}, {"pooling": "none"}):
        with pytest.raises(EnsueError, match="is no way to read a text"):
            load_with(rater={**config["rater"], **changed})
    with pytest.raises(EnsueError, match="which stands on rater itself"):
        load_with(base=str(folder))


def test_pairs_are_those_of_the_shuffle_test_and_each_has_the_original_first():
    document = Document("one", ("A b.", "C d.", "E f."), "")
    same = Document("two", ("A.", "A."), "")
    made = make_pairs([document, same], Shuffling([1, 2], 10))
    assert made.documents == 1
    assert made.texts[0] == "A b. C d. E f."
    # Five other orders of three sentences; that of two blocks is one of them.
    assert len(made.pairs) == 5
    assert {pair.original for pair in made.pairs} == {0}
    blocks = make_pairs([document], Shuffling([2], 10))
    assert blocks.texts == ["A b. C d. E f.", "E f. A b. C d."]
    short = make_pairs([document], Shuffling([1], 10, max_sentences=2, joiner="|"))
    assert short.texts == ["A b.|C d.", "C d.|A b."]


def test_the_losses_are_cross_entropy_and_hinge():
    good, bad = torch.tensor([2.0, -1.0]), torch.tensor([0.5, 1.0])
    expected = torch.nn.functional.binary_cross_entropy_with_logits(
        torch.cat([good, bad]), torch.tensor([1.0, 1.0, 0.0, 0.0])
    )
    assert float(pair_loss(good, bad, "binary", 1.0)) == pytest.approx(float(expected))
    assert float(pair_loss(good, bad, "ranking", 2.0)) == pytest.approx((0.5 + 4.0) / 2)


def test_long_texts_are_cut_and_counted(encoder, data, tmp_path):
    train(encoder, data, tmp_path / "rater", epochs=1, max_length=20)
    facts = record(tmp_path / "rater")
    model = load_model(str(tmp_path / "rater"), device="cpu")
    assert model.card.max_length == 20
    assert facts["cut"]["train"] > 0
    texts = [one["sentences"] for one in stories.stories(60)]
    assert model.count_cut(texts) > 0
    longer = [[*text, "The votes."] for text in texts[:3]]
    assert model.rate(longer) == pytest.approx(model.rate(texts[:3]))


def test_the_zero_shot_shuffle_test_refuses_it(trained, data):
    done = here("run", "shuffle", "--model", trained[0], "--data", data, "--device", "cpu")
    assert done.code == 2
    assert "trained on shuffled text" in done.sentence
    card = json.loads((trained[0] / "ensue-card.json").read_text())
    assert card["trained_on_shuffled_text"] is True


def test_told_to_the_shuffle_test_takes_its_ratings(trained, tmp_path):
    rows = [one for one in stories.stories(60) if one["id"] in record(trained[0])["documents"]["dev_ids"]]
    (tmp_path / "held.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    run = ensue.run(
        "shuffle",
        model=str(trained[0]),
        data=tmp_path / "held.jsonl",
        output=tmp_path / "run",
        allow_shuffle_trained="yes",
        block_size=[1],
        shuffles=4,
    )
    found = {row["metric"]: row["value"] for row in run.results["metrics"] if row["task"] == "shuffle"}
    assert found["accuracy"] > 0.9


def test_a_language_model_trained_from_one_that_saw_shuffled_text_keeps_the_mark(data, tmp_path):
    from ensue.models.card import write_card_facts

    base = tiny.save_llama(tmp_path / "base", max_length=256)
    write_card_facts(base, trained_on_shuffled_text=True)
    for lora in (None, 2):
        output = tmp_path / f"lm-{lora}"
        options = {"epochs": 1, "batch": 4, "device": "cpu", "lora": lora}
        ensue.train("lm", model=str(base), data=[str(data)], output=output, **options)
        done = here("run", "shuffle", "--model", output, "--data", data, "--device", "cpu")
        assert done.code == 2
        assert "trained on shuffled text" in done.sentence


class Stop(Exception):
    pass


def test_a_stopped_training_goes_on_to_the_same_weights(encoder, data, tmp_path):
    settings = {"evaluate_every": 4, "epochs": 1, "shuffles": 2}
    whole = train(encoder, data, tmp_path / "whole", **settings)

    def stop(done, total, unit):
        if done == 10:
            raise Stop

    with pytest.raises(Stop):
        train(encoder, data, tmp_path / "parts", stop, **settings)
    # Step 8 is kept there, which could be loaded and is not what was asked for.
    assert (tmp_path / "parts" / "model.safetensors").is_file()
    with pytest.raises(EnsueError, match=r"has not come to its end; go on .*--resume"):
        load_model(str(tmp_path / "parts"))
    resumed = train(encoder, data, tmp_path / "parts", resume=True, **settings)
    assert resumed.best == whole.best
    names = {path.name for path in (tmp_path / "whole").glob("*.safetensors")}
    assert names == {"model.safetensors", "head.safetensors", "checkpoint.safetensors"}
    for name in names:
        one, other = (load_file(tmp_path / folder / name) for folder in ("whole", "parts"))
        assert all(torch.equal(one[key], other[key]) for key in one)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--batch", "3"), "even number"),
        (("--block-size", "one"), "Invalid --block-size"),
        (("--block-size", "9"), "long enough to shuffle"),
        (("--max-length", "1000"), "takes 256 tokens"),
        (("--loss", "regret"), "regret"),
        (("--model", "random"), "not a Hugging Face"),
    ],
)
def test_bad_input_of_the_command_is_one_sentence(encoder, data, tmp_path, options, words):
    named = () if "--model" in options else ("--model", encoder)
    output = tmp_path / "rater"
    done = here("train", "coherence", "--data", data, *named, "--output", output, "--device", "cpu", *options)
    assert done.code == 2
    assert words in done.sentence
