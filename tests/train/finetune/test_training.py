"""Every form is learnt, the same seed gives the same outcome, and the best weights on dev are kept."""

import copy
import math

import pytest
import torch

from ensue.benchmarks.nlu.framing import frame
from ensue.benchmarks.nlu.training import metrics_of
from ensue.errors import RunFailed
from ensue.progress import ignore
from ensue.train.finetune import training
from ensue.train.finetune.inputs import Inputs
from ensue.train.finetune.steps import linear, optimiser_for
from ensue.train.finetune.training import answer, fit, lay_out, loss_of, steps_of
from tests.train.finetune import invented

FORMS = ("single", "pair", "score", "choice", "answers", "entity", "word", "coreference")
# Far above what the most frequent answer gets in any of them.
ENOUGH = 0.85


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return invented.encoder(tmp_path_factory.mktemp("encoder"))


def laid_out(model, data, recipe):
    inputs = Inputs(model.tokenizer, recipe.max_length)
    device = torch.device("cpu")
    return [
        lay_out(data.spec, data.splits[split], inputs, recipe, device, model.tokenizer.pad_token_id)
        for split in ("train", "dev")
    ]


def train(model, data, seed=0, told=ignore, **choices):
    recipe = invented.recipe(**choices)
    train_split, dev = laid_out(model, data, recipe)
    return fit(model.network.base_model, train_split, dev, recipe, seed, told)


def learnt(model, form, **choices):
    """Whether one of three seeds learns a task: a tiny random encoder, whose vocabulary changes, may fail once."""
    data = invented.task(form)
    return any(train(model, data, seed, **choices).record["dev_score"] > ENOUGH for seed in range(3))


@pytest.mark.parametrize("form", FORMS)
def test_every_form_is_learnt(model, form):
    assert learnt(model, form)


@pytest.mark.parametrize("pairs", ["apart", "both"])
@pytest.mark.parametrize("form", ["pair", "score"])
def test_texts_apart_are_learnt_from(model, form, pairs):
    assert learnt(model, form, pairs=pairs)


@pytest.mark.parametrize("pool", ["cls", "last"])
def test_other_poolings_learn(model, pool):
    assert learnt(model, "single", pool=pool)


def test_the_same_seed_gives_the_same_outcome_and_leaves_no_trace(model):
    data = invented.task("pair", train=32, dev=16)
    before = {name: value.clone() for name, value in model.network.state_dict().items()}
    torch.manual_seed(5)
    expected = torch.rand(1)
    torch.manual_seed(5)
    first, again, other = (train(model, data, seed, epochs=2) for seed in (1, 1, 2))
    assert torch.equal(torch.rand(1), expected)  # the caller's random numbers go on as if nothing happened
    assert first.dev_answers == again.dev_answers
    assert first.record["losses"] == again.record["losses"] != other.record["losses"]
    for name, value in model.network.state_dict().items():
        assert torch.equal(value, before[name])


def test_the_best_weights_on_dev_are_kept(model):
    data = invented.task("pair", train=48, dev=32)
    trained = train(model, data, epochs=6, learning_rate=1e-3)
    scores = trained.record["dev_scores"]
    assert len(scores) == 6
    assert trained.record["dev_score"] == pytest.approx(max(scores), abs=1e-6)
    assert trained.record["best_epoch"] == scores.index(max(scores)) + 1
    _, dev = laid_out(model, data, invented.recipe())
    again = answer(trained, dev)
    assert again.predictions == trained.dev_answers.predictions
    assert metrics_of(data.spec, data.splits["dev"], again.predictions) == trained.record["dev"]


def test_patience_ends_a_training_that_no_longer_gets_better(model):
    told = []
    trained = train(
        model, invented.task("single"), told=lambda *state: told.append(state), epochs=30, patience=2
    )
    looks = len(trained.record["dev_scores"])
    assert looks < 30
    assert looks == trained.record["best_epoch"] + 2
    assert told[-1][0] == looks * math.ceil(96 / 16)


@pytest.mark.parametrize("form", ["single", "choice", "entity"])
def test_batches_in_parts_train_as_whole_ones_do(model, form, monkeypatch):
    """Without dropout, what is divided to save memory ends at the same weights."""
    data = invented.task(form, train=24, dev=4)
    start = copy.deepcopy(model.network.base_model)
    for module in start.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    start.config.attention_probs_dropout_prob = 0.0
    for name, module in start.named_modules():
        if name.endswith("attention.self"):
            module.dropout.p = 0.0
    ends = []
    for budget in (100_000, 40):
        monkeypatch.setitem(training._BUDGET, "cpu", budget)
        recipe = invented.recipe(epochs=1, dropout=0.0, learning_rate=1e-4)
        split, dev = laid_out(model, data, recipe)
        parts = [len(one) for one in training._in_parts(split, [list(range(12))])]
        assert (parts > [1]) == (budget == 40)
        ends.append(fit(start, split, dev, recipe, 0, ignore))
    assert ends[0].record["losses"] == pytest.approx(ends[1].record["losses"], rel=1e-3)
    whole, parted = (one.network.state_dict() for one in ends)
    for name, value in whole.items():
        if form == "choice" and name == "classifier.bias":
            continue  # it moves all choices alike, so its gradient is rounding alone, which Adam blows up
        torch.testing.assert_close(parted[name], value, rtol=1e-3, atol=1e-4, msg=name)


def test_without_dev_the_last_weights_stay(model):
    data = invented.task("single", train=16)
    recipe = invented.recipe(epochs=2)
    train_split, _ = laid_out(model, data, recipe)
    trained = fit(model.network.base_model, train_split, None, recipe, 0, ignore)
    assert trained.record["best_epoch"] == 2
    assert "dev_score" not in trained.record


def test_dev_may_be_looked_at_several_times_an_epoch(model):
    trained = train(model, invented.task("single", train=64), epochs=2, checks=2)
    assert len(trained.record["dev_scores"]) == 4


def test_a_loss_that_is_no_number_is_said(model):
    data = invented.task("score", train=16)
    data.splits["train"][3].__dict__["gold"] = float("nan")
    with pytest.raises(RunFailed, match=r"invented-score .* try a lower learning_rate"):
        train(model, data, epochs=1)


def test_scores_stay_within_those_of_the_training_set(model):
    data = invented.task("score")
    trained = train(model, data, epochs=2)
    assert all(0.0 <= value <= 2.0 for value in trained.dev_answers.predictions.values())


def test_the_learning_rate_rises_and_falls():
    factor = linear(100, 0.1)
    assert [factor(step) for step in (0, 4, 9)] == pytest.approx([0.1, 0.5, 1.0])
    assert [factor(step) for step in (10, 55, 100)] == pytest.approx([1.0, 0.5, 0.0])
    assert linear(10, 0.0)(0) == 1.0
    assert steps_of(invented.recipe(epochs=3, batch=8), 17) == 9


def test_only_matrices_decay_and_the_head_learns_faster(model):
    trained = train(model, invented.task("coreference", train=8, dev=8), epochs=1)
    network = trained.network.requires_grad_(True)
    optimiser = optimiser_for(network, invented.recipe(learning_rate=1e-3, weight_decay=0.3))
    found = {id(p): group for group in optimiser.param_groups for p in group["params"]}
    for name, parameter in network.named_parameters():
        group = found[id(parameter)]
        assert group["weight_decay"] == (0.3 if parameter.ndim > 1 else 0.0)
        assert group["lr"] == pytest.approx(1e-3 if name.startswith("trunk.") else 1e-2)


@pytest.mark.parametrize("form", FORMS)
def test_losses_are_those_of_a_plain_loop(model, form):
    data = invented.task(form, train=24, dev=2)
    split = laid_out(model, data, invented.recipe())[0]
    framed = frame(data.spec, data.splits["train"])
    targets = torch.tensor(framed.targets)
    targets = targets.float() if form in ("score", "choice", "entity") else targets.long()
    torch.manual_seed(0)
    outputs = torch.randn(len(framed.rows), 1 if form in ("score", "choice", "entity") else 2)
    chosen = [5, 2, 11]
    (batch,) = split.packs.batches([chosen])
    expected = []
    for number in chosen:
        rows = [row for row, owner in enumerate(framed.owners) if owner == number]
        if form == "score":
            expected.append((float(outputs[rows[0], 0]) - float(framed.targets[rows[0]])) ** 2)
        elif form == "choice":
            powers = [math.exp(outputs[row, 0]) for row in rows]
            expected.append(-math.log(powers[int(data.splits["train"][number].gold)] / sum(powers)))
        elif form == "entity":
            for row in rows:
                chance = 1 / (1 + math.exp(-outputs[row, 0]))
                expected.append(-math.log(chance if framed.targets[row] else 1 - chance))
        else:
            powers = [math.exp(value) for value in outputs[rows[0]]]
            expected.append(-math.log(powers[int(framed.targets[rows[0]])] / sum(powers)))
    got = loss_of(form, outputs[batch.rows], targets[batch.rows], batch)
    assert float(got) == pytest.approx(sum(expected) / len(expected), rel=1e-5)
