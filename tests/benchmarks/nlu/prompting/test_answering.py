"""Answers by log-likelihood: against a plain loop over transformers, with shots, cuts, and every form of task."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import softmax as scipy_softmax

from ensue.backends.names import load_model
from ensue.benchmarks.base import RunContext
from ensue.benchmarks.nlu.examples import DEV, TEST, TRAIN, Example, TaskData
from ensue.benchmarks.nlu.prompting.answering import generate, heard, prompt, softmax
from ensue.benchmarks.nlu.prompting.asking import asked_splits, draw, fits_of, sheets
from ensue.benchmarks.nlu.prompting.templates import Option, built_in, fill
from ensue.benchmarks.nlu.systems import find
from ensue.errors import EnsueError
from ensue.models.request import Policy
from ensue.scoring.journal import Journal
from tests.benchmarks.nlu.prompting_tasks import SPECS, answers, example, settings, spec, task_data
from tests.support import tiny
from tests.support.run_context import records_of, run_context


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return tiny.save_llama(tmp_path_factory.mktemp("models") / "model", max_length=1024)


@pytest.fixture(scope="module")
def model(folder):
    return load_model(str(folder))


class Plain:
    """One option at a time: the prompt and the option in one sequence, the whole vocabulary at every place."""

    def __init__(self, folder: Path) -> None:
        from transformers import AutoModelForCausalLM, AutoTokenizer

        self.tokenizer = AutoTokenizer.from_pretrained(folder)
        self.network = AutoModelForCausalLM.from_pretrained(folder).eval()

    def __call__(self, prompt: str, continuation: str) -> tuple[float, int]:
        before = self.tokenizer(prompt)["input_ids"]
        ids = self.tokenizer(prompt + continuation)["input_ids"]
        shared = 0
        while shared < len(before) and before[shared] == ids[shared]:
            shared += 1
        with torch.no_grad():
            table = torch.log_softmax(self.network(torch.tensor([ids])).logits[0].double(), -1)
        return sum(float(table[i - 1, ids[i]]) for i in range(shared, len(ids))), len(ids) - shared


@pytest.fixture(scope="module")
def plain(folder) -> Plain:
    return Plain(folder)


def naive(plain: Plain, template, context: str, options, neutral: str, rule: str) -> list[float]:
    values = []
    for option in options:
        total, tokens = plain(context, option.continuation)
        if rule == "per_token":
            total /= tokens
        elif rule == "per_character":
            total /= len(option.continuation.strip())
        elif rule == "unconditional":
            total -= plain(neutral, option.continuation)[0]
        values.append(total)
    return values


@pytest.mark.parametrize("rule", ["sum", "per_token", "per_character", "unconditional"])
@pytest.mark.parametrize("task", ["CB", "COPA", "ReCoRD", "STS-B"])
def test_scores_are_those_of_a_plain_loop(model, plain, task, rule):
    data = task_data(task, dev=2)
    found = answers(prompt, model, [data], normalise=rule)
    assert [one.settings for one in found] == [
        {"template": name, "shots": 0} for name in ("question", "statement", "instruction")
    ]
    for one, template in zip(found, built_in(data.spec), strict=True):
        for shown in data.splits[DEV]:
            filled = fill(template, data.spec, shown)
            values = naive(plain, template, filled.prompt, filled.options, filled.neutral, rule)
            chances = scipy_softmax(values)
            np.testing.assert_allclose(one.chances[DEV][shown.id], chances, atol=1e-4)
            if task == "STS-B":
                mean = float(np.dot(chances, range(6)))
                assert math.isclose(one.predictions[DEV][shown.id], mean, abs_tol=1e-3)
            else:
                assert one.predictions[DEV][shown.id] == filled.options[int(np.argmax(values))].prediction


def test_shots_stand_before_the_prompt_with_their_right_answers(model, plain):
    data = task_data("RTE", dev=2)
    (found,) = answers(prompt, model, [data], seed=3, shots=2, template=["question"])
    assert found.settings == {"template": "question", "shots": 2}
    template = built_in(data.spec)[0]
    before = ""
    for shot in draw(data.spec, data.splits[TRAIN], 2, 3):
        before += fill(template, data.spec, shot).prompt + template.labels[shot.gold] + "\n\n"
    for shown in data.splits[DEV]:
        filled = fill(template, data.spec, shown)
        values = [plain(before + filled.prompt, option.continuation)[0] for option in filled.options]
        np.testing.assert_allclose(found.chances[DEV][shown.id], scipy_softmax(values), atol=1e-4)


@pytest.mark.parametrize("task", sorted(set(SPECS) - {"diagnostic", "AX-b", "AX-g"}))
def test_every_prompt_of_a_task_begins_with_the_same_training_examples(task):
    data = task_data(task)
    chosen = {**settings(prompt), "shots": 3, "answer_test": "yes"}
    for sheet in sheets(data, [data], chosen, 5, None):
        again = sheets(data, [data], chosen, 5, None)
        assert [one.prompt for other in again for one in other.asked if other.template == sheet.template] == [
            one.prompt for one in sheet.asked
        ]
        heads = {one.prompt.rpartition(sheet.template.joiner)[0][:40] for one in sheet.asked}
        assert len(heads) == 1
        for one in sheet.asked:
            numbers = [
                int(n) for n in "".join(c if c.isdigit() else " " for c in one.prompt).split() if len(n) == 4
            ]
            in_order = list(dict.fromkeys(numbers))
            assert sum(1000 <= n < 2000 for n in in_order) == 3
            assert [n for n in in_order if n >= 2000] == [int(one.id)]


def test_another_shot_seed_draws_other_shots():
    data = task_data("RTE", train=60)
    prompts = {
        sheets(data, [data], {**settings(prompt), "shots": 3, "shot_seed": seed}, 5, None)[0].asked[0].prompt
        for seed in (None, 0, 1, 5)
    }
    assert len(prompts) == 3  # none is the run's seed, 5


def test_test_sets_are_answered_only_when_asked_for():
    model = load_model("random")
    data = task_data("CB")
    assert {split for one in answers(prompt, model, [data]) for split in one.predictions} == {DEV}
    found = answers(prompt, model, [data], answer_test="yes")
    assert all(set(one.predictions) == {DEV, TEST} for one in found)
    assert all(len(one.predictions[TEST]) == 2 for one in found)
    assert asked_splits(data, {"answer_test": "no"}) == [DEV]


@pytest.mark.parametrize("task", sorted(SPECS))
def test_every_task_is_answered_with_its_own_labels(task):
    data = task_data(task, train=0)
    found = answers(prompt, load_model("random"), [data])
    assert len(found) == 3
    for one in found:
        assert set(one.predictions[DEV]) == {example.id for example in data.splits[DEV]}
        for prediction, chances in zip(one.predictions[DEV].values(), one.chances[DEV].values(), strict=True):
            assert math.isclose(sum(chances), 1)
            if data.spec.form == "score":
                assert 0 <= prediction <= 5
            else:
                assert prediction in (data.spec.labels or ("Ada", "Bo"))


def test_a_task_without_training_set_is_left_out_of_few_shot():
    tasks = [task_data("RTE"), task_data("AX-b", train=0), task_data("diagnostic", train=0)]
    found = answers(prompt, load_model("random"), tasks, shots=2, template=["question"])
    assert [one.task for one in found] == ["RTE", "AX-b"]


def test_a_template_that_no_task_has_is_one_sentence(tmp_path):
    model = load_model("random")
    with pytest.raises(EnsueError, match="No template 'poem' for CB; there are question, statement"):
        answers(prompt, model, [task_data("CB")], template=["poem"])
    path = tmp_path / "own.toml"
    path.write_text('task = "COPA"\n[[template]]\nname = "a"\nprompt = "{premise}"\nchoice = " {choice}"\n')
    with pytest.raises(EnsueError, match=r"own\.toml has no template for CB"):
        answers(prompt, model, [task_data("CB")], template=[str(path)])
    (found,) = answers(prompt, model, [task_data("CB"), task_data("COPA")], template=[str(path)])
    assert (found.task, found.settings["template"]) == ("COPA", "a")


def test_what_is_journaled_is_not_computed_again(model, tmp_path):
    data = task_data("COPA")
    with Journal(tmp_path / "journal.jsonl") as journal:
        asked = (model, [data], settings(prompt), 0)
        first = list(prompt.answer(*asked, RunContext(journal=journal)))
        size = len(journal)
        assert size == 4 * 2 * 3
        assert list(prompt.answer(*asked, RunContext(journal=journal))) == first
        assert len(journal) == size


def long_data(words: int) -> TaskData:
    passage = " ".join(f"word{n}" for n in range(words))
    shown = Example("1", (passage, "is the last word there"), "true")
    short = example("pair", 1000, "true")
    return TaskData(spec("BoolQ"), {TRAIN: [short, example("pair", 1001, "false")], DEV: [shown]}, "made")


@pytest.mark.parametrize("save", [tiny.save_llama, tiny.save_bert])
def test_a_long_prompt_loses_its_shots_and_then_the_left_of_its_passage(tmp_path, save):
    model = load_model(str(save(tmp_path / "model", max_length=128)))
    fits = fits_of(model, Policy())
    data = long_data(400)
    for sheet in sheets(data, [data], {**settings(prompt), "shots": 2}, 0, fits):
        (one,) = sheet.asked
        assert sheet.notes == {"shots dropped from long prompts": 2, "passages cut from the left": 1}
        assert "word399" in one.prompt
        assert "is the last word there" in one.prompt
        assert "word0 " not in one.prompt
        first = one.prompt[one.prompt.index("word") :].split()[0]
        longer = one.prompt.replace(first, f"word{int(first[4:]) - 1} {first}", 1)
        continuations = [option.continuation for option in one.options]
        assert fits(one.prompt, continuations)
        assert not fits(longer, continuations)  # not a word more is cut than must be
    found = answers(prompt, model, [data], shots=2, template=["question"])
    assert found[0].notes["passages cut from the left"] == 1


def test_a_shot_that_fits_is_kept(model, tmp_path):
    data = long_data(2)
    asked = {**settings(prompt), "shots": 2, "template": ["question"]}
    (whole,) = sheets(data, [data], asked, 0, None)
    tokens = max(len(model.tokenizer(whole.asked[0].prompt + said)["input_ids"]) for said in (" yes", " no"))
    for length, dropped in ((tokens, 0), (tokens - 1, 1)):
        smaller = load_model(str(tiny.save_llama(tmp_path / str(length), max_length=length)))
        (sheet,) = sheets(data, [data], asked, 0, fits_of(smaller, Policy()))
        assert +sheet.notes == ({"shots dropped from long prompts": dropped} if dropped else {})
        assert sheet.asked[0].prompt.count("Answer:") == 3 - dropped


def test_a_question_that_is_too_long_by_itself_is_one_sentence(tmp_path):
    model = load_model(str(tiny.save_llama(tmp_path / "model", max_length=64)))
    shown = Example("1", ("A passage.", "what " * 200), "true", where="dev.jsonl, line 7")
    data = TaskData(spec("BoolQ"), {DEV: [shown]}, "made")
    with pytest.raises(EnsueError, match=r"dev\.jsonl, line 7: even without its first"):
        answers(prompt, model, [data])


def test_softmax_is_scipys():
    values = [-1000.0, -1001.5, -999.25]
    np.testing.assert_allclose(softmax(values), scipy_softmax(values))


def test_it_is_the_system_of_its_mode(model):
    assert find("prompt") is prompt
    assert "shots:0" in prompt.signature(model, settings(prompt))


def test_an_encoder_cannot_be_prompted(tmp_path):
    model = load_model(str(tiny.save_encoder(tmp_path / "model")))
    with pytest.raises(EnsueError, match="can score text"):
        answers(prompt, model, [task_data("CB")])


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
def model_of_generating(tmp_path_factory):
    return load_model(
        str(tiny.save_llama(tmp_path_factory.mktemp("models") / "model_of_generating", max_length=512))
    )


def test_texts_are_the_generators_own_and_unmatched_ones_are_marked_and_counted(model_of_generating):
    data = task_data("CB")
    found = answers(generate, model_of_generating, [data], answer_tokens=6)
    assert [one.settings["template"] for one in found] == ["question", "statement", "instruction"]
    for one, template in zip(found, built_in(data.spec), strict=True):
        unmatched = 0
        for shown in data.splits[DEV]:
            filled = fill(template, data.spec, shown)
            (text,) = model_of_generating.generate([filled.prompt], max_tokens=6, stop=["\n\n"])
            option = heard(text, filled.options)
            assert one.outputs[DEV][shown.id] == {"text": text, "matched": option is not None}
            assert one.predictions[DEV][shown.id] == (option or filled.options[0]).prediction
            unmatched += option is None
        assert unmatched > 0  # an untrained model_of_generating names no label
        assert one.notes["texts that name no label, answered with the first"] == unmatched


class Parrot:
    """A generator that says what is written in its prompt after `Answer:` of the last shot."""

    def __init__(self, card) -> None:
        self.card = card

    def generate(self, prompts, *, max_tokens=64, stop=(), **options):
        return [prompt.rpartition("\n\n")[0].rpartition("Answer:")[2] for prompt in prompts]


def test_shots_are_in_the_prompt_and_their_words_are_understood(model_of_generating):
    data = task_data("RTE", train=1)
    (found,) = answers(generate, Parrot(model_of_generating.card), [data], shots=1, template=["question"])
    assert set(found.predictions[DEV].values()) == {data.splits[TRAIN][0].gold}
    assert not found.notes


def test_room_is_kept_for_the_answer(tmp_path):
    model_of_generating = load_model(str(tiny.save_llama(tmp_path / "model_of_generating", max_length=128)))
    passage = " ".join(f"word{n}" for n in range(300))
    data = TaskData(spec("BoolQ"), {DEV: [Example("1", (passage, "is it there"), "true")]}, "made")
    (found,) = answers(generate, model_of_generating, [data], template=["question"], answer_tokens=20)
    assert found.notes["passages cut from the left"] == 1


def test_a_scorer_that_cannot_write_is_one_sentence():
    with pytest.raises(EnsueError, match="can generate text"):
        answers(generate, load_model("random"), [task_data("CB")])


def test_it_is_the_system_of_its_mode_of_generating(model_of_generating):
    assert find("generate") is generate
    assert "tokens:16" in generate.signature(model_of_generating, settings(generate))


def test_texts_that_were_written_are_not_written_again(model_of_generating, tmp_path):
    asked = ([task_data("RTE")], settings(generate, answer_tokens=3), 0)
    with run_context(tmp_path) as place:
        first = list(generate.answer(model_of_generating, *asked, place))
    kept = records_of(tmp_path).read_bytes()
    with run_context(tmp_path, lambda done, total, unit: None) as place:
        assert list(generate.answer(Silent(model_of_generating), *asked, place)) == first
    assert records_of(tmp_path).read_bytes() == kept
    longer = ([task_data("RTE")], settings(generate, answer_tokens=4), 0)
    with run_context(tmp_path) as place, pytest.raises(AssertionError, match="asked to write"):
        list(generate.answer(Silent(model_of_generating), *longer, place))


class Silent:
    """The model_of_generating, but that it must not be asked to write."""

    def __init__(self, model_of_generating):
        self._model = model_of_generating

    def __getattr__(self, name):
        return getattr(self._model, name)

    def generate(self, prompts, **options):
        raise AssertionError("asked to write")
