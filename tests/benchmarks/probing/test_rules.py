"""How the papers train their classifiers, written out rule by rule."""

from __future__ import annotations

import pytest

from ensue.benchmarks.discoeval.data import SPECS
from ensue.benchmarks.discoeval.probe import Choices, combine_for, rules_for
from ensue.benchmarks.probing.rules import Rules

# Weight decays, hidden units, epochs between checks, most epochs, failed checks that end it.
FOUR = (1e-5, 1e-4, 1e-3, 1e-2)
PAPER = {
    "SP": (FOUR, 0, 4, 200, 6),
    "BSO": (FOUR, 0, 4, 200, 6),
    "DC": ((1e-9,), 2000, 15, 210, 9),
    "SSP": ((1e-9,), 0, 4, 200, 6),
    "PDTB": ((1e-9,), 0, 1, 15, 6),
    "RST": ((1e-9,), 0, 1, 15, 6),
}


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.name)
def test_every_task_is_trained_by_its_rules(spec) -> None:
    decays, hidden, every, most, failures = PAPER[spec.group]
    wanted = Rules(decays, hidden, every, most, failures, batch=64, learning_rate=1e-3)
    assert rules_for(spec, hidden=True) == wanted
    without = rules_for(spec, hidden=False)
    assert (without.hidden, without.decays, without.check_every) == (0, decays, every)
    assert (without.max_epochs, without.failures) == (most, failures)


def test_shapes_of_the_tasks_are_the_papers() -> None:
    """Five sentences of which one moved, pairs, six sentences of which one may be foreign, a sentence alone."""
    assert {spec.name: (spec.sentences, spec.classes, spec.folder) for spec in SPECS} == {
        "SP/wiki": (5, 5, "SP/wiki"),
        "SP/arxiv": (5, 5, "SP/arxiv"),
        "SP/rocstory": (5, 5, "SP/rocstory"),
        "BSO/wiki": (2, 2, "BSO/wiki"),
        "BSO/arxiv": (2, 2, "BSO/arxiv"),
        "BSO/rocstory": (2, 2, "BSO/rocstory"),
        "DC/wiki": (6, 2, "DC/wiki"),
        "DC/chat": (6, 2, "DC/chat"),
        "SSP/abs": (1, 2, "SSP/abs"),
        "PDTB/explicit": (2, None, "PDTB/Explicit"),
        "PDTB/implicit": (2, None, "PDTB/Implicit"),
        "RST": (2, None, "RST"),
    }


def test_what_was_taken_away_is_told() -> None:
    def told(group: str, **more: object) -> dict[str, str]:
        usual = {"protocol": "paper", "context": True, "hidden": True, "seeds": (0,), "device": "cpu"}
        return Choices(**{**usual, **more}).ablation(group)  # type: ignore[arg-type]

    assert told("SP") == told("DC") == told("BSO", context=False, hidden=False) == {}
    assert told("SP", context=False) == {"context": "no"}
    assert told("DC", hidden=False) == told("DC", protocol="converged") == {"hidden": "no"}
    assert told("SP", hidden=False, protocol="converged") == told("DC", context=False) == {}


def test_positions_without_context_see_one_sentence() -> None:
    by_name = {spec.name: spec for spec in SPECS}
    position, order = by_name["SP/wiki"], by_name["BSO/wiki"]
    assert combine_for(position, context=False) is not combine_for(position, context=True)
    assert combine_for(order, context=False) is combine_for(order, context=True)
