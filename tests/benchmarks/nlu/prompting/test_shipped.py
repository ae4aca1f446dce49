"""Every template that comes with the package, before a scorer and a writer that know the right words."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from ensue.backends.baselines import RandomModel
from ensue.benchmarks.nlu.examples import DEV, TaskData
from ensue.benchmarks.nlu.prompting import answering
from ensue.benchmarks.nlu.prompting.templates import built_in
from ensue.models.card import ModelCard
from tests.benchmarks.nlu.prompting_tasks import SPECS, answers, example

YES_NO = (" no", " yes")
# By task and template the words of each label, in the order of the labels; CB's order is its own.
WORDS = {
    "BoolQ": [YES_NO, YES_NO, (" false", " true")],
    "CB": [
        (" yes", " no", " hard to say"),
        (" true", " false", " uncertain"),
        (" believes it", " denies it", " leaves it open"),
    ],
    "CoLA": [YES_NO, (" wrong", " right"), (" bad", " good")],
    "MNLI": [(" yes", " maybe", " no"), (" true", " uncertain", " false"), (" right", " unknown", " wrong")],
    "MRPC": [YES_NO, (" different", " equal"), (" false", " true")],
    "MultiRC": [YES_NO, (" false", " true"), (" wrong", " right")],
    "QNLI": [(" yes", " no"), (" answered", " ignored"), (" true", " false")],
    "QQP": [YES_NO, (" different", " identical"), (" false", " true")],
    "RTE": [(" yes", " no"), (" true", " false"), (" true", " false")],
    "SST-2": [YES_NO, (" bad", " good"), (" negative", " positive")],
    "WNLI": [YES_NO, (" false", " true"), (" wrong", " right")],
    "WSC": [YES_NO, (" false", " true"), (" wrong", " right")],
    "WiC": [YES_NO, (" different", " alike"), (" false", " true")],
}
WORDS |= {"diagnostic": WORDS["MNLI"], "AX-b": WORDS["RTE"], "AX-g": WORDS["RTE"]}
NAMES = ("question", "statement", "instruction")


class Knowing(RandomModel):
    """Finds a continuation likely that is these words, and any other unlikely."""

    def __init__(self, words: str) -> None:
        super().__init__()
        self.words = words

    def _values(self, part, words: Sequence[str]) -> list[float]:
        said = part.text[part.start :]
        return [(-1.0 if said == self.words else -50.0) / len(words)] * len(words)


class Writing:
    """Writes these words, whatever it is asked."""

    def __init__(self, words: str) -> None:
        self.card, self.words = ModelCard("writing", "toy", "here", {"of": "test"}), words

    def generate(self, prompts: Sequence[str], **options: object) -> list[str]:
        return [self.words] * len(prompts)


def test_every_task_with_labels_is_here() -> None:
    assert {name for name, spec in SPECS.items() if spec.labels and spec.form != "choice"} == set(WORDS)


@pytest.mark.parametrize("name", WORDS)
def test_each_label_is_answered_by_its_own_words(name: str) -> None:
    spec = SPECS[name]
    data = TaskData(spec, {DEV: [example(spec.form, 7, spec.labels[0])]}, "made")
    assert [template.name for template in built_in(spec)] == list(NAMES)
    for template, words in zip(NAMES, WORDS[name], strict=True):
        for label, said in zip(spec.labels, words, strict=True):
            for system, model in ((answering.prompt, Knowing(said)), (answering.generate, Writing(said))):
                (found,) = answers(system, model, [data], template=[template])
                assert found.predictions[DEV] == {"7": label}, (template, said)


@pytest.mark.parametrize(("template", "said"), [("question", " {}"), ("statement", " {}")])
@pytest.mark.parametrize("number", [7, 8])
def test_copas_choices_are_answered_by_their_own_sentences(template: str, said: str, number: int) -> None:
    data = TaskData(SPECS["COPA"], {DEV: [example("choice", number, "0")]}, "made")
    choices = (
        ("the wind blew.", "a fuse burned.")
        if template == "question"
        else ("The wind blew.", "A fuse burned.")
    )
    for label, choice in zip(("0", "1"), choices, strict=True):
        (found,) = answers(answering.prompt, Knowing(said.format(choice)), [data], template=[template])
        assert found.predictions[DEV] == {str(number): label}


def test_copas_choices_are_numbered_from_one() -> None:
    data = TaskData(SPECS["COPA"], {DEV: [example("choice", 7, "0")]}, "made")
    for label, said in (("0", " 1"), ("1", " 2")):
        (found,) = answers(answering.prompt, Knowing(said), [data], template=["instruction"])
        assert found.predictions[DEV] == {"7": label}


@pytest.mark.parametrize(
    ("template", "said"),
    [
        ("question", "The lamps now belong to {}."),
        ("statement", " {}."),
        ("instruction", " {}"),
    ],
)
def test_records_entities_are_answered_by_their_own_names(template: str, said: str) -> None:
    data = TaskData(SPECS["ReCoRD"], {DEV: [example("entity", 7, ("Bo",))]}, "made")
    for entity in ("Ada", "Bo"):
        (found,) = answers(answering.prompt, Knowing(said.format(entity)), [data], template=[template])
        assert found.predictions[DEV] == {"7": entity}


SCORES = {
    "question": (" zero", " one", " two", " three", " four", " five"),
    "statement": (" 0", " 1", " 2", " 3", " 4", " 5"),
    "instruction": (
        " unrelated",
        " far apart",
        " loosely related",
        " roughly alike",
        " nearly the same",
        " exactly the same",
    ),
}


@pytest.mark.parametrize("template", NAMES)
def test_a_likeness_is_answered_by_its_own_word(template: str) -> None:
    data = TaskData(SPECS["STS-B"], {DEV: [example("score", 7, 3.0)]}, "made")
    for score, said in enumerate(SCORES[template]):
        (found,) = answers(answering.prompt, Knowing(said), [data], template=[template])
        assert found.predictions[DEV]["7"] == pytest.approx(score, abs=1e-3)
