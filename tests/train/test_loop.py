"""The loop: schedules, early stopping, and a resumed training that repeats itself to the last bit."""

import json
import math
import os

import pytest
import torch
import transformers
from torch import nn

from ensue.errors import EnsueError, RunFailed
from ensue.train.loop import LOG, Loop, LoopSettings, learning_rate, make_accelerator


class Line(nn.Module):
    """Fits a line with dropout, so that chance plays a part."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.layers = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.3), nn.Linear(8, 1))

    def forward(self, batch):
        x, y = batch
        return ((self.layers(x)[:, 0] - y) ** 2).mean()


class Squared(nn.Module):
    """The mean square of what an inner module says."""

    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, batch):
        return (self.inner(batch[0]) ** 2).mean()


def batches(epoch):
    for number in range(7):
        g = torch.Generator().manual_seed(epoch * 100 + number)
        x = torch.randn(16, 4, generator=g)
        yield x, x.sum(1)


def fit(folder, steps, resume=False, dev=None, **settings):
    folder.mkdir(exist_ok=True)
    module = Line()
    options = LoopSettings(
        steps=steps, warmup=3, learning_rate=1e-2, evaluate_every=5, log_every=2, device="cpu", **settings
    )
    saved = []
    loop = Loop(module, options, folder, make_accelerator(options), save_best=lambda: saved.append(1))
    held_out = next(batches(1000))
    evaluate = dev or (lambda: {"dev_loss": float(module(held_out))})
    fitted = loop.run(batches, evaluate, resume=resume)
    return fitted, {k: v.clone() for k, v in module.state_dict().items()}, saved


def rows(folder):
    return [json.loads(line) for line in (folder / LOG).read_text().splitlines()]


def test_it_learns_and_writes_a_log(tmp_path):
    fitted, _, saved = fit(tmp_path, 60)
    log = rows(tmp_path)
    losses = [row["loss"] for row in log if "loss" in row]
    assert losses[-1] < losses[0] / 3
    assert fitted.best_loss == min(row["dev_loss"] for row in log if "dev_loss" in row)
    assert saved
    assert fitted.steps == 60
    assert not fitted.stopped_early


def test_a_resumed_training_ends_in_the_same_weights(tmp_path):
    _, whole, _ = fit(tmp_path / "whole", 30)
    fit(tmp_path / "parts", 15)
    # Steps after the last checkpoint are lost with the process and trained again.
    (tmp_path / "parts" / LOG).open("a").write('{"step": 17, "loss": 1.0}\n')
    os.link(tmp_path / "parts" / LOG, tmp_path / "before")
    fitted, parts, _ = fit(tmp_path / "parts", 30, resume=True)
    # The log is replaced, never cut in place: a kill in between leaves a whole one.
    assert '{"step": 17, "loss": 1.0}' in (tmp_path / "before").read_text()
    assert fitted.steps == 30
    for name, value in whole.items():
        assert torch.equal(value, parts[name]), name
    plain = [{k: v for k, v in row.items() if k != "seconds"} for row in rows(tmp_path / "parts")]
    assert plain == [{k: v for k, v in row.items() if k != "seconds"} for row in rows(tmp_path / "whole")]


def test_accumulated_batches_count_as_one_step(tmp_path):
    fitted, _, _ = fit(tmp_path, 6, accumulate=3)
    # Seven batches an epoch make two steps of three.
    assert fitted.steps == 6
    assert rows(tmp_path)[-1]["epoch"] == 2


def test_it_stops_when_the_dev_loss_no_longer_falls(tmp_path):
    values = iter([3.0, 2.0, 2.5, 2.6, 2.7, 1.0])
    fitted, _, saved = fit(tmp_path, 100, dev=lambda: {"dev_loss": next(values)}, patience=3)
    assert (fitted.steps, fitted.best_step, fitted.best_loss, fitted.stopped_early) == (25, 10, 2.0, True)
    assert len(saved) == 2


def test_a_loss_that_is_no_number_ends_the_training(tmp_path):
    with pytest.raises(RunFailed, match="lower --learning-rate"):
        fit(tmp_path, 10, clip=math.inf, weight_decay=-1e30)


def test_a_held_out_loss_that_is_no_number_ends_the_training_too(tmp_path):
    """A training of fewer steps than are logged together says so, and not that it has no best step."""
    with pytest.raises(RunFailed, match="The loss is nan at step 2: lower --learning-rate"):
        fit(tmp_path, 2, dev=lambda: {"dev_loss": float("nan")})


def test_nothing_to_train_is_refused(tmp_path):
    module = Line().requires_grad_(False)
    options = LoopSettings(steps=1, device="cpu")
    with pytest.raises(EnsueError, match="frozen"):
        Loop(module, options, tmp_path, make_accelerator(options), save_best=lambda: None)


def test_a_checkpoint_of_another_training_is_refused(tmp_path):
    fit(tmp_path, 5)
    module = nn.Linear(3, 3)
    options = LoopSettings(steps=10, device="cpu")
    loop = Loop(module, options, tmp_path, make_accelerator(options), save_best=lambda: None)
    with pytest.raises(EnsueError, match="does not fit this training"):
        loop.run(batches, lambda: {"dev_loss": 0.0}, resume=True)


def test_a_checkpoint_is_one_file_so_that_no_step_is_paired_with_tensors_of_another(tmp_path):
    """Whatever of a later checkpoint came into place before a kill, training goes on from whole ones only."""
    _, whole, _ = fit(tmp_path / "whole", 30)
    fit(tmp_path / "parts", 10)
    kept = {path.name: path.read_bytes() for path in (tmp_path / "parts").glob("checkpoint*")}
    fit(tmp_path / "parts", 15, resume=True)
    assert list(kept) == ["checkpoint.safetensors"]
    for name, earlier in kept.items():
        (tmp_path / "parts" / name).write_bytes(earlier)
        fitted, parts, _ = fit(tmp_path / "parts", 30, resume=True)
        assert fitted.steps == 30
        assert all(torch.equal(value, parts[key]) for key, value in whole.items())


def test_a_checkpoint_with_a_parameter_of_another_shape_is_refused(tmp_path):
    """One number would fill a whole vector without a word."""
    module = nn.Linear(1, 1)
    options = LoopSettings(steps=5, device="cpu")
    data = [(torch.ones(2, 1), torch.ones(2))]
    loss = Squared(module)
    Loop(loss, options, tmp_path, make_accelerator(options), save_best=lambda: None).run(
        lambda epoch: iter(data), lambda: {"dev_loss": 0.0}, resume=False
    )
    wider = Squared(nn.Linear(1, 3))
    loop = Loop(wider, options, tmp_path, make_accelerator(options), save_best=lambda: None)
    before = wider.inner.weight.detach().clone()
    with pytest.raises(EnsueError, match="does not fit this training"):
        loop.run(lambda epoch: iter(data), lambda: {"dev_loss": 0.0}, resume=True)
    assert torch.equal(wider.inner.weight, before)


def test_a_checkpoint_of_other_data_is_refused(tmp_path):
    def loop(question):
        options = LoopSettings(steps=5, device="cpu")
        accelerator = make_accelerator(options)
        return Loop(Line(), options, tmp_path, accelerator, save_best=lambda: None, question=question)

    loop("novels").run(batches, lambda: {"dev_loss": 0.0}, resume=False)
    with pytest.raises(EnsueError, match="other data"):
        loop("plays").run(batches, lambda: {"dev_loss": 0.0}, resume=True)
    assert loop("novels").run(batches, lambda: {"dev_loss": 0.0}, resume=True).steps == 5


def test_schedules():
    settings = LoopSettings(steps=100, learning_rate=1.0, warmup=10)
    assert learning_rate(settings, 5) == pytest.approx(0.5)
    assert learning_rate(settings, 10) == pytest.approx(1.0)
    assert learning_rate(settings, 40) == pytest.approx(0.5)
    linear = LoopSettings(steps=110, learning_rate=1.0, warmup=10, schedule="linear")
    assert learning_rate(linear, 5) == pytest.approx(0.5)
    # After the warm-up as transformers has it, whose steps count from 0; its last step learns, as an only one does.
    optimiser = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
    expected = transformers.get_linear_schedule_with_warmup(optimiser, 10, 110).lr_lambdas[0]
    for step in (11, 12, 60, 109, 110):
        assert learning_rate(linear, step) == pytest.approx(expected(step - 1))
    assert learning_rate(LoopSettings(steps=1, learning_rate=1.0, warmup=0, schedule="linear"), 1) == 1.0
    constant = LoopSettings(steps=10, learning_rate=1.0, warmup=0, schedule="constant")
    assert [learning_rate(constant, step) for step in (1, 9)] == [1.0, 1.0]
