"""Every built-in template is whole, and each fault in a user's file is one sentence that names the file."""

from __future__ import annotations

import string
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ensue.benchmarks.nlu.prompting import templates
from ensue.benchmarks.nlu.prompting.templates import (
    PLACEHOLDERS,
    Template,
    built_in,
    choose,
    fill,
    placeholders,
    read_templates,
    render,
    right_option,
)
from ensue.errors import EnsueError
from tests.benchmarks.nlu.prompting_tasks import SPECS, example, golds, spec

FOLDER = Path(templates.__file__).parent / "templates"


@pytest.mark.parametrize("task", sorted(SPECS))
def test_every_task_has_templates_of_its_own_or_of_its_classifier(task):
    found = built_in(SPECS[task])
    assert [template.name for template in found] == ["question", "statement", "instruction"]
    for template in found:
        assert (
            set(template.labels) == set(SPECS[task].labels) or template.choice or SPECS[task].form == "score"
        )
        assert template.cut in placeholders(template.prompt)
        assert all(said.startswith(" ") for said in template.labels.values())


def test_every_file_belongs_to_a_task():
    assert {path.stem for path in FOLDER.glob("*.toml")} <= set(SPECS)


def write(folder: Path, text: str) -> Path:
    path = folder / "own.toml"
    path.write_text(text, encoding="utf-8")
    return path


GOOD = """
[[template]]
task = "RTE"
name = "mine"
prompt = "{first} So: {second}"
labels = { ENTAILMENT = " yes", not_entailment = " no" }
"""


def test_a_file_of_ones_own_is_read_and_labels_are_spelled_as_the_task_spells_them(tmp_path):
    path = write(tmp_path, GOOD)
    (found,) = choose(spec("RTE"), [str(path)])
    assert (found.task, found.name, found.cut, found.combine) == ("RTE", "mine", "first", "sum")
    assert found.labels == {"entailment": " yes", "not_entailment": " no"}
    assert choose(spec("CB"), [str(path)]) == []
    (served,) = choose(spec("AX-b"), [str(path)])  # RTE's classifier answers it, and so do its templates
    assert served.task == "AX-b"


def test_names_choose_among_the_built_in(tmp_path):
    assert [t.name for t in choose(spec("CB"), ["statement", "question"])] == ["statement", "question"]
    assert choose(spec("CB"), ["no such"]) == []
    both = choose(spec("RTE"), ["all", str(write(tmp_path, GOOD))])
    assert [t.name for t in both] == ["question", "statement", "instruction", "mine"]
    with pytest.raises(EnsueError, match="rename one"):
        choose(spec("RTE"), ["all", str(write(tmp_path, GOOD.replace("mine", "question")))])


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ("{first} So", "{sentence} So", "sentence"),
        ("{first} So", "{first.upper} So", "braces"),
        ("{first} So", "{first!r} So", "braces"),
        ("{first} So", "{first So", "braces"),
        ("{first} So: {second}", "So it goes", "says nothing"),
        (", not_entailment = ' no'", "", "'not_entailment' is missing"),
        ("not_entailment", "neutral", "no label 'neutral'"),
        (' no"', ' Yes"', "told apart"),
        (' no"', ' "', "some text"),
        ('name = "mine"', 'name = "all"', "needs a name"),
        ('name = "mine"', 'name = "mine"\ncombine = "mean"', "combine is one of"),
        ('name = "mine"', 'name = "mine"\ncut = "passage"', "cut names 'passage'"),
        ('name = "mine"', 'name = "mine"\nneutral = ""', "may not be empty"),
        ('name = "mine"', 'name = "mine"\nchoice = " x"', "choice is for tasks"),
        ('name = "mine"', 'name = "mine"\nverbaliser = "x"', "'verbaliser'"),
        ('name = "mine"', 'name = "mine"\nunconditional = "yes"', "true or false"),
        ('name = "mine"', 'name = "mine"\nprompt = 3', "not TOML"),
        ('task = "RTE"', "", "which task"),
        ("[[template]]", "[template]", "no [[template]]"),
        ("[[template]]", "[[template", "not TOML"),
    ],
)
def test_a_fault_in_a_file_is_one_sentence_that_names_it(tmp_path, before, after, words):
    text = GOOD.replace("' no'", '" no"').replace(before.replace("'", '"'), after)
    assert text != GOOD
    with pytest.raises(EnsueError) as caught:
        read_templates(write(tmp_path, text), [spec("RTE")])
    assert words in str(caught.value)
    assert "own.toml" in str(caught.value)


def test_two_templates_of_one_name_are_refused(tmp_path):
    with pytest.raises(EnsueError, match="two templates 'mine'"):
        read_templates(write(tmp_path, GOOD + GOOD), [spec("RTE")])


def test_a_missing_file_is_named():
    with pytest.raises(EnsueError, match=r"nowhere\.toml"):
        read_templates(Path("nowhere.toml"), [spec("RTE")])


@pytest.mark.parametrize(
    ("task", "body", "words"),
    [
        ("ReCoRD", 'prompt = "{passage}"\nlabels = { a = " b" }', "no labels"),
        ("ReCoRD", 'prompt = "{passage}"\nchoice = " so"', "the same for all"),
        ("ReCoRD", 'prompt = "{passage}"', "labels or a choice"),
        ("COPA", 'prompt = "{premise}"\nchoice = " {entity}"', "{entity}"),
        (
            "COPA",
            'prompt = "{premise}"\nchoice = " {choice}"\nconnectives = { why = "x" }',
            "cause and effect",
        ),
        ("STS-B", 'prompt = "{first} {second}"\nlabels = { low = " x", 5 = " y" }', "a number"),
    ],
)
def test_faults_of_other_forms(tmp_path, task, body, words):
    path = write(tmp_path, f'task = "{task}"\n[[template]]\nname = "mine"\n{body}\n')
    with pytest.raises(EnsueError) as caught:
        read_templates(path, [spec(task)])
    assert words in str(caught.value)


@given(st.dictionaries(st.sampled_from(PLACEHOLDERS["word"]), st.text()), st.text())
def test_rendering_is_what_str_format_does_and_never_reads_what_is_filled_in(values, literal):
    escaped = literal.replace("{", "{{").replace("}", "}}")
    text = escaped + "".join(f"{{{name}}}|" for name in values)
    assert render(text, values) == string.Formatter().vformat(text, (), values)
    assert placeholders(text) == list(values)


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
