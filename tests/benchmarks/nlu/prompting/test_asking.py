"""Shots come from the training set, the same for all, balanced over the answers."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ensue.benchmarks.nlu.examples import DEV, TRAIN, TaskData
from ensue.benchmarks.nlu.prompting.asking import draw, training_set
from ensue.errors import EnsueError
from tests.benchmarks.nlu.prompting_tasks import example, golds, spec, task_data


@given(st.sampled_from(["RTE", "CB", "COPA", "STS-B", "ReCoRD"]), st.integers(0, 12), st.integers(0, 99))
def test_shots_are_distinct_training_examples_balanced_and_repeatable(task, count, seed):
    data = task_data(task, train=12)
    chosen = draw(data.spec, data.splits[TRAIN], count, seed)
    assert chosen == draw(data.spec, list(reversed(data.splits[TRAIN]))[::-1], count, seed)
    assert len({one.id for one in chosen}) == len(chosen) == count
    assert all(one in data.splits[TRAIN] for one in chosen)
    if count:
        times = Counter(one.gold for one in chosen)
        often = [times[gold] for gold in golds(data.spec)]
        assert max(often) - min(often) <= 1


def test_a_rare_answer_is_shown_as_often_as_it_can_be():
    train = [example("pair", n, "entailment" if n else "not_entailment") for n in range(10)]
    chosen = draw(spec("RTE"), train, 4, 0)
    assert Counter(one.gold for one in chosen) == {"entailment": 3, "not_entailment": 1}


def test_the_seed_draws():
    data = task_data("RTE", train=40)
    assert len({tuple(o.id for o in draw(data.spec, data.splits[TRAIN], 4, seed)) for seed in range(8)}) > 4


def test_too_few_examples_are_said():
    with pytest.raises(EnsueError, match="RTE has 9 training examples"):
        draw(spec("RTE"), task_data("RTE").splits[TRAIN], 10, 0)


def test_an_entity_that_is_none_of_the_choices_is_never_shown():
    train = [example("entity", n, ("Bo",) if n % 2 else ("Cy",)) for n in range(8)]
    assert all(one.gold == ("Bo",) for one in draw(spec("ReCoRD"), train, 4, 0))


def test_a_diagnostic_set_borrows_the_training_set_of_its_classifier():
    rte, ax = task_data("RTE"), task_data("AX-b", train=0)
    assert training_set(ax, [ax, rte]) == rte.splits[TRAIN]
    assert training_set(ax, [ax]) == []
    only_dev = TaskData(rte.spec, {DEV: rte.splits[DEV]}, "made")
    assert training_set(only_dev, [only_dev]) == []
