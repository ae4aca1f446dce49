"""Examples in a template's words, form by form, against prompts written out by hand."""

from __future__ import annotations

import pytest

from ensue.benchmarks.nlu.prompting.filling import fill, right_option
from ensue.benchmarks.nlu.prompting.templates import Template, built_in
from tests.benchmarks.nlu.prompting_tasks import SPECS, example, golds, spec


def question(task: str) -> Template:
    return built_in(spec(task))[0]


@pytest.mark.parametrize(
    ("task", "number", "prompt", "continuations"),
    [
        (
            "CoLA",
            7,
            "Sentence: The 7 boats came home late.\n"
            "Would a native speaker of English find this sentence well formed, yes or no?\nAnswer:",
            [" no", " yes"],
        ),
        (
            "RTE",
            7,
            "Ada sold 7 lamps.\nCan we conclude from this that the following is so? Somebody sold lamps.\n"
            "Yes or no?\nAnswer:",
            [" yes", " no"],
        ),
        ("COPA", 7, "The 7 lamps went out because", [" the wind blew.", " a fuse burned."]),
        ("COPA", 8, "The 8 lamps went out so", [" the wind blew.", " a fuse burned."]),
        (
            "MultiRC",
            7,
            'Ada sold 7 lamps to Bo.\nQuestion: Who bought lamps?\nIs "Bo" a right answer, yes or no?\nAnswer:',
            [" no", " yes"],
        ),
        (
            "ReCoRD",
            7,
            "Ada sold 7 lamps to Bo.\n- Bo paid.\n\n",
            ["The lamps now belong to Ada.", "The lamps now belong to Bo."],
        ),
        (
            "WiC",
            7,
            '7 bats hung from the roof.\nHe swung the bat.\nIs "bats" in the first sentence used in the same sense '
            'as "bat" in the second, yes or no?\nAnswer:',
            [" no", " yes"],
        ),
        (
            "WSC",
            7,
            "Ada asked 7 times, but Bo said that *she* was wrong.\n"
            'Does "she", set between asterisks, stand for "Ada", yes or no?\nAnswer:',
            [" no", " yes"],
        ),
    ],
)
def test_the_first_template_of_each_form(task, number, prompt, continuations):
    filled = fill(question(task), spec(task), example(spec(task).form, number, None))
    assert filled.prompt == prompt
    assert [option.continuation for option in filled.options] == continuations


def test_a_space_before_the_gap_goes_with_the_entity():
    filled = fill(built_in(spec("ReCoRD"))[1], spec("ReCoRD"), example("entity", 7, None))
    assert filled.prompt.endswith("\n\nThe lamps now belong to")
    assert [option.continuation for option in filled.options] == [" Ada.", " Bo."]
    assert [option.prediction for option in filled.options] == ["Ada", "Bo"]
    assert [option.spoken for option in filled.options] == ["Ada", "Bo"]


def test_choices_can_be_numbered_instead():
    filled = fill(built_in(spec("COPA"))[2], spec("COPA"), example("choice", 7, None))
    assert "1. The wind blew.\n2. A fuse burned.\nThe more likely cause is number" in filled.prompt
    assert [(option.prediction, option.continuation) for option in filled.options] == [
        ("0", " 1"),
        ("1", " 2"),
    ]


@pytest.mark.parametrize("task", sorted(SPECS))
def test_every_template_gives_different_continuations_and_finds_the_right_one(task):
    found = spec(task)
    for template in built_in(found):
        for gold in golds(found):
            one = example(found.form, 7, gold)
            filled = fill(template, found, one)
            assert len({option.continuation for option in filled.options}) == len(filled.options) > 1
            right = right_option(filled, found, one)
            if found.form == "score":
                assert right.prediction == min(range(6), key=lambda n: abs(n - gold))
            else:
                assert right.prediction in (gold if isinstance(gold, tuple) else (gold,))


def test_braces_in_an_example_are_left_alone():
    template = Template("CoLA", "mine", "{sentence} It is", {"0": " no", "1": " yes"}, cut="sentence")
    odd = type(example("single", 1, None))("1", ("A {sentence} of {braces}.",))
    assert fill(template, spec("CoLA"), odd).prompt == "A {sentence} of {braces}. It is"


def test_what_is_dropped_is_dropped_from_the_left_of_one_text():
    filled = fill(question("RTE"), spec("RTE"), example("pair", 7, None), dropped=9)
    assert filled.prompt.startswith("7 lamps.\nCan we conclude")
    assert "Somebody sold lamps." in filled.prompt
