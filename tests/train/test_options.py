"""The options of every trainer: what Python callers give is bounded as on the command line."""

import json
from pathlib import Path

import pytest

import ensue
from ensue import lazy
from ensue.errors import EnsueError
from ensue.train import TRAINERS
from ensue.train.encoder.options import EncoderOptions
from ensue.train.options import hints_of
from ensue.train.qa.options import AnswererOptions
from tests.support.command import here

REQUIRED = {"data": ["x"], "output": Path("out")}


@pytest.mark.parametrize("name", list(TRAINERS))
def test_every_option_is_on_the_command_line_with_its_help(name):
    shown = " ".join(here("train", name, "--help").out.split())
    options = lazy.load(TRAINERS[name])
    assert options.__doc__ in shown
    for option in hints_of(options):
        assert f"--{option.replace('_', '-')}" in shown.replace("--data-statement", "--statement")
    assert "--log-every" not in shown


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"batch": 0}, "--batch 0: expected at least 1"),
        ({"dropout": 0.95}, "--dropout 0.95: expected a number from 0 to 0.9"),
        ({"schedule": "zigzag"}, "--schedule zigzag: expected one of inverse-sqrt, linear, constant"),
        ({"steps": 1, "epochs": 1}, "not both"),
        ({"seed": -1}, "--seed -1: expected a number from 0 to 4294967295"),
        ({"seed": 10**23}, "expected a number from 0 to 4294967295"),
        ({"learning_rate": float("inf")}, "--learning-rate inf: expected a number"),
    ],
)
def test_what_lies_out_of_bounds_is_refused_from_python_too(given, words):
    with pytest.raises(EnsueError, match=words):
        EncoderOptions(**REQUIRED, **given)


def test_a_wrong_name_is_one_sentence():
    with pytest.raises(EnsueError, match="no trainer 'answerer'; there are suffixlm, encoder"):
        ensue.train("answerer")
    with pytest.raises(EnsueError, match="no trainer 'encodr'; did you mean encoder"):
        ensue.train("encodr")
    with pytest.raises(EnsueError, match="The qa trainer has no option 'epoch'; did you mean epochs"):
        ensue.train("qa", **REQUIRED, epoch=3)
    with pytest.raises(EnsueError, match="The qa trainer needs output and data"):
        ensue.train("qa")
    with pytest.raises(EnsueError, match="Invalid --steps many: expected a number"):
        ensue.train("encoder", **REQUIRED, steps="many")


def test_one_text_is_a_list_of_one_and_a_path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(EnsueError, match=r"^nowhere does not exist"):
        ensue.train("encoder", data="nowhere", output="model", steps=1, corpora="kept")


def test_what_was_left_out_is_recorded_as_it_was_chosen():
    asked = AnswererOptions(**REQUIRED, full=True).asked()
    assert json.loads(json.dumps(asked)) == asked
    assert asked["data"] == ["x"]
    assert asked["settings"]["adapter"] is None
    assert asked["settings"]["loop"]["learning_rate"] == 5e-5
    assert AnswererOptions(**REQUIRED, rank=4).asked()["settings"]["adapter"]["alpha"] == 8.0
