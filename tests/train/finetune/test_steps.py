"""Steps that are recorded and replayed end where plain ones do, and what cannot be recorded is done plainly."""

from __future__ import annotations

import logging
from functools import partial

import pytest
import torch

from ensue.progress import ignore
from ensue.train.finetune import steps as module
from ensue.train.finetune.inputs import Inputs
from ensue.train.finetune.steps import DeviceRates, RecordedSteps, Steps, linear, steps_for, widened
from ensue.train.finetune.training import fit, lay_out
from ensue.train.recording import Recorder
from tests.support.replaying import ReplayedKernels
from tests.train.finetune import invented

FORMS = ("single", "pair", "score", "choice", "answers", "entity", "word", "coreference")


@pytest.fixture(scope="module")
def still(tmp_path_factory):
    """A tiny encoder without dropout, whose steps depend on nothing but the data."""
    model = invented.encoder(tmp_path_factory.mktemp("encoder"))
    trunk = model.network.base_model
    for part in trunk.modules():
        if isinstance(part, torch.nn.Dropout):
            part.p = 0.0
    trunk.config.attention_probs_dropout_prob = 0.0
    return model


def trained(model, data, take_steps, **choices):
    recipe = invented.recipe(**{"dropout": 0.0, "epochs": 4, "learning_rate": 1e-3, "warmup": 0.5, **choices})
    inputs = Inputs(model.tokenizer, recipe.max_length)
    splits = [
        lay_out(data.spec, data.splits[name], inputs, recipe, torch.device("cpu"), 0)
        for name in ("train", "dev")
    ]
    return fit(model.network.base_model, *splits, recipe, 0, ignore, take_steps)


class Recorded(RecordedSteps):
    """Recorded steps with a stand-in for the GPU's graphs, that names all memory a step changes."""

    def __init__(self, network, recipe, total, losses):
        self.record = ReplayedKernels(self._memory)
        super().__init__(network, recipe, total, losses, self.record)
        self._network = network
        made.append(self)

    def _memory(self):
        states = [
            value
            for held in self._optimiser.state.values()
            for value in held.values()
            if torch.is_tensor(value)
        ]
        rates = [group["lr"] for group in self._optimiser.param_groups]
        parameters = list(self._network.parameters())
        return [*parameters, *states, *rates, self._schedule._done, self._sum]


made: list[Recorded] = []


# Biases that change nothing, of all keys, all weights of a span, or all choices alike: their gradients are rounding,
# which Adam blows up.
IDLE = {"coreference": "attention.bias", "choice": "classifier.bias"}


def same_weights(one, other):
    weights = other.network.state_dict()
    for name, value in one.network.state_dict().items():
        if name != IDLE.get(one.spec.form) and not name.endswith("key.bias"):
            torch.testing.assert_close(weights[name], value, rtol=2e-3, atol=1e-4, msg=name)


@pytest.mark.parametrize("form", FORMS)
def test_replayed_steps_end_where_plain_ones_do(still, form):
    data = invented.task(form, train=40, dev=8)
    plain = trained(still, data, Steps)
    made.clear()
    recorded = trained(still, data, Recorded)
    (taken,) = made
    # Entities come in batches of all counts of rows, so that fewer of their shapes come again.
    assert taken.record.recorded >= 1
    assert taken.record.replayed >= (2 if form == "entity" else 6)
    assert recorded.record["losses"] == pytest.approx(plain.record["losses"], rel=1e-3, abs=2e-4)
    assert recorded.record["losses"][0] > recorded.record["losses"][-1]
    same_weights(plain, recorded)


@pytest.mark.parametrize("pairs", ["apart", "both"])
def test_texts_apart_are_replayed_too(still, pairs):
    data = invented.task("score", train=40, dev=8)
    same_weights(trained(still, data, Steps, pairs=pairs), trained(still, data, Recorded, pairs=pairs))


def test_batches_in_parts_are_replayed_as_they_are(still, monkeypatch):
    from ensue.train.finetune import training

    monkeypatch.setitem(training._BUDGET, "cpu", 60)
    data = invented.task("entity", train=24, dev=4)
    same_weights(trained(still, data, Steps), trained(still, data, Recorded))


def test_dropout_is_drawn_anew_by_every_replay(tmp_path):
    model = invented.encoder(tmp_path)
    data = invented.task("single", train=32, dev=8)
    made.clear()
    one = trained(model, data, Recorded, dropout=0.5, learning_rate=1e-6, epochs=6)
    assert made[0].record.replayed > 4
    # The weights hardly move, so that losses differ by what is dropped alone.
    assert len(set(one.record["losses"])) == 6


def test_what_cannot_be_recorded_is_done_plainly(still, caplog):
    def refuses(work):
        work_begun.append(work)
        raise RuntimeError("operation not permitted when stream is capturing\nmore")

    work_begun: list[object] = []
    data = invented.task("single", train=40, dev=8)
    with caplog.at_level(logging.WARNING):
        found = trained(still, data, partial(RecordedSteps, record=refuses))
    same_weights(trained(still, data, Steps), found)
    assert len(work_begun) == 1
    assert "not permitted when stream is capturing" in caplog.text
    assert "more" not in caplog.text


def test_a_recording_that_fails_half_way_leaves_no_gradients_behind(still):
    """Its backward pass may have been noted when it fails."""
    left: list[bool] = []

    def take(network, recipe, total, losses):
        def fails(work):
            optimiser = steps._optimiser
            optimiser.step = refused
            try:
                work()
            finally:
                left.append(any(p.grad is not None for p in network.parameters()))
                del optimiser.step

        def refused():
            raise RuntimeError("no")

        steps = RecordedSteps(network, recipe, total, losses, fails)
        return steps

    data = invented.task("single", train=40, dev=8)
    same_weights(trained(still, data, Steps), trained(still, data, take))
    assert left == [True]


def test_on_a_cpu_steps_are_plain(still):
    network = torch.nn.Linear(2, 2)
    assert type(steps_for(network, invented.recipe(), 3, lambda parts: iter(()))) is Steps


def test_a_shape_is_recorded_when_it_comes_again_and_not_beyond_a_number(monkeypatch):
    monkeypatch.setattr("ensue.train.recording._MOST", 1)
    total = torch.zeros(3)
    record = ReplayedKernels(lambda: [total])
    recorder = Recorder(lambda shape, given: total.add_(given[0] * shape), record, lambda: None)
    for number in range(1, 4):
        recorder(2, [torch.full((3,), float(number))])
    assert total.tolist() == [12.0] * 3
    assert (record.recorded, record.replayed) == (1, 2)
    for number in range(1, 4):
        recorder(3, [torch.full((3,), float(number))])
    assert total.tolist() == [30.0] * 3
    assert (record.recorded, record.replayed) == (1, 2)


def test_rates_follow_the_schedule_on_the_device():
    weight = torch.nn.Parameter(torch.zeros(2))
    groups = [{"params": [weight], "lr": torch.tensor(0.5)}]
    optimiser = torch.optim.AdamW(groups, fused=True, capturable=True)
    rates = DeviceRates(optimiser, linear(10, 0.3), 10, torch.device("cpu"))
    for step in range(10):
        assert float(optimiser.param_groups[0]["lr"]) == pytest.approx(0.5 * linear(10, 0.3)(step))
        rates.step()


def test_batches_are_widened_to_few_widths_and_never_beyond_what_a_model_takes(still):
    assert len({widened(width) for width in range(1, 513)}) == len(module._WIDTHS)
    assert all(widened(width) >= width for width in range(1, 2000))
    steps = RecordedSteps(
        torch.nn.Linear(2, 2), invented.recipe(max_length=40), 3, lambda parts: iter(()), lambda work: work
    )
    assert [steps._wide(width) for width in (0, 5, 33, 40)] == [0, 16, 40, 40]
