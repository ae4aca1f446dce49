"""Answers by generation: what is heard in a text, and what happens to one that names no label."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ensue.backends.names import load_model
from ensue.benchmarks.nlu.examples import DEV, TRAIN, Example, TaskData
from ensue.benchmarks.nlu.prompting.generating import heard, system
from ensue.benchmarks.nlu.prompting.templates import Option, built_in, fill
from ensue.benchmarks.nlu.systems import find
from ensue.errors import EnsueError
from tests.benchmarks.nlu.prompting_tasks import answers, settings, spec, task_data
from tests.support import tiny
from tests.support.run_context import records_of, run_context

WORDS = [Option("a", " true", "true"), Option("b", " not true", "not true"), Option("c", " false", "false")]


@pytest.mark.parametrize(
    ("text", "label"),
    [
        (" true", "a"),
        (" True.\nAnd more", "a"),
        ("NOT  true, I think", "b"),
        ("It is not true", "b"),
        ("I say false, not true", "c"),
        ("true or false", "a"),
        ("untrue", None),
        ("truely", None),
        ("", None),
        ("perhaps", None),
    ],
)
def test_what_is_heard(text, label):
    found = heard(text, WORDS)
    assert (found.prediction if found else None) == label


def test_a_sentence_is_heard_without_its_full_stop():
    options = [Option("0", "", "The wind blew."), Option("1", "", "A fuse burned.")]
    assert heard(" a fuse burned, they said", options) == options[1]


@given(
    st.sampled_from(WORDS),
    st.text(alphabet=" .,!\n", max_size=5),
    st.sampled_from([str.upper, str.title, str]),
)
def test_any_label_alone_is_heard_in_any_case(option, after, case):
    assert heard(case(f" {option.spoken}") + after, WORDS) == option


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return load_model(str(tiny.save_llama(tmp_path_factory.mktemp("models") / "model", max_length=512)))


def test_texts_are_the_generators_own_and_unmatched_ones_are_marked_and_counted(model):
    data = task_data("CB")
    found = answers(system, model, [data], answer_tokens=6)
    assert [one.settings["template"] for one in found] == ["question", "statement", "instruction"]
    for one, template in zip(found, built_in(data.spec), strict=True):
        unmatched = 0
        for shown in data.splits[DEV]:
            filled = fill(template, data.spec, shown)
            (text,) = model.generate([filled.prompt], max_tokens=6, stop=["\n\n"])
            option = heard(text, filled.options)
            assert one.outputs[DEV][shown.id] == {"text": text, "matched": option is not None}
            assert one.predictions[DEV][shown.id] == (option or filled.options[0]).prediction
            unmatched += option is None
        assert unmatched > 0  # an untrained model names no label
        assert one.notes["texts that name no label, answered with the first"] == unmatched


class Parrot:
    """A generator that says what is written in its prompt after `Answer:` of the last shot."""

    def __init__(self, card) -> None:
        self.card = card

    def generate(self, prompts, *, max_tokens=64, stop=(), **options):
        return [prompt.rpartition("\n\n")[0].rpartition("Answer:")[2] for prompt in prompts]


def test_shots_are_in_the_prompt_and_their_words_are_understood(model):
    data = task_data("RTE", train=1)
    (found,) = answers(system, Parrot(model.card), [data], shots=1, template=["question"])
    assert set(found.predictions[DEV].values()) == {data.splits[TRAIN][0].gold}
    assert not found.notes


def test_room_is_kept_for_the_answer(tmp_path):
    model = load_model(str(tiny.save_llama(tmp_path / "model", max_length=128)))
    passage = " ".join(f"word{n}" for n in range(300))
    data = TaskData(spec("BoolQ"), {DEV: [Example("1", (passage, "is it there"), "true")]}, "made")
    (found,) = answers(system, model, [data], template=["question"], answer_tokens=20)
    assert found.notes["passages cut from the left"] == 1


def test_a_scorer_that_cannot_write_is_one_sentence():
    with pytest.raises(EnsueError, match="can generate text"):
        answers(system, load_model("random"), [task_data("CB")])


def test_it_is_the_system_of_its_mode(model):
    assert find("generate") is system
    assert "tokens:16" in system.signature(model, settings(system))


def test_texts_that_were_written_are_not_written_again(model, tmp_path):
    asked = ([task_data("RTE")], settings(system, answer_tokens=3), 0)
    with run_context(tmp_path) as place:
        first = list(system.answer(model, *asked, place))
    kept = records_of(tmp_path).read_bytes()
    with run_context(tmp_path, lambda done, total, unit: None) as place:
        assert list(system.answer(Silent(model), *asked, place)) == first
    assert records_of(tmp_path).read_bytes() == kept
    longer = ([task_data("RTE")], settings(system, answer_tokens=4), 0)
    with run_context(tmp_path) as place, pytest.raises(AssertionError, match="asked to write"):
        list(system.answer(Silent(model), *longer, place))


class Silent:
    """The model, but that it must not be asked to write."""

    def __init__(self, model):
        self._model = model

    def __getattr__(self, name):
        return getattr(self._model, name)

    def generate(self, prompts, **options):
        raise AssertionError("asked to write")
