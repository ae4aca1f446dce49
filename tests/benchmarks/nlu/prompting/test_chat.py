"""Prompts in a model's chat template: against a plain loop that writes the conversation out by hand."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.special import softmax

import ensue
from ensue.backends.names import load_model
from ensue.benchmarks.nlu.examples import DEV
from ensue.benchmarks.nlu.prompting import answering
from ensue.benchmarks.nlu.prompting.templates import built_in, fill
from ensue.errors import EnsueError
from tests.benchmarks.nlu import folders
from tests.benchmarks.nlu.prompting_tasks import answers, settings, task_data
from tests.support import tiny
from tests.support.command import here, refused

TEMPLATE = (
    "{{ bos_token }}{% for turn in messages %}[{{ turn.role }}] {{ turn.content }}\n{% endfor %}"
    "{% if add_generation_prompt %}[reply]\n{% endif %}"
)


def talking(folder: Path, *, bos: bool, max_length: int = 1024) -> Path:
    tiny.save_llama(folder, bos=bos, max_length=max_length)
    (folder / "chat_template.jinja").write_text(TEMPLATE, "utf-8")
    return folder


@pytest.fixture(
    scope="module", params=[True, False], ids=["bos by the tokenizer", "bos by the template alone"]
)
def folder(request, tmp_path_factory) -> Path:
    return talking(tmp_path_factory.mktemp("models") / "model", bos=request.param)


class Naive:
    """The conversation written out, BOS once at its beginning, one option at a time."""

    def __init__(self, folder: Path) -> None:
        from transformers import AutoModelForCausalLM, AutoTokenizer

        self.tokenizer = AutoTokenizer.from_pretrained(folder)
        self.network = AutoModelForCausalLM.from_pretrained(folder).eval()

    def ids(self, text: str) -> list[int]:
        return [self.tokenizer.bos_token_id, *self.tokenizer(text, add_special_tokens=False)["input_ids"]]

    def __call__(self, prompt: str, said: str) -> float:
        before = f"[user] {prompt}\n[reply]\n"
        start, ids = len(self.ids(before)), self.ids(before + said)
        with torch.no_grad():
            table = torch.log_softmax(self.network(torch.tensor([ids])).logits[0].double(), -1)
        return sum(float(table[place - 1, ids[place]]) for place in range(start, len(ids)))

    def writes(self, prompt: str, count: int) -> str:
        ids = self.ids(f"[user] {prompt}\n[reply]\n")
        begin = len(ids)
        for _ in range(count):
            with torch.no_grad():
                ids.append(int(self.network(torch.tensor([ids])).logits[0, -1].argmax()))
            if ids[-1] == self.tokenizer.eos_token_id:
                break
        return self.tokenizer.decode(ids[begin:], skip_special_tokens=True).split("\n\n")[0]


@pytest.mark.parametrize("task", ["BoolQ", "COPA"])
def test_scores_are_those_of_a_reply_to_a_user(folder, task):
    data, plain, model = task_data(task, dev=2), Naive(folder), load_model(str(folder))
    for rule in ("sum", "unconditional"):
        found = answers(answering.prompt, model, [data], chat="yes", normalise=rule)
        for one, template in zip(found, built_in(data.spec), strict=True):
            assert one.settings == {"template": template.name, "shots": 0, "chat": "yes"}
            for shown in data.splits[DEV]:
                filled = fill(template, data.spec, shown)
                said = [option.continuation.lstrip() for option in filled.options]
                values = [plain(filled.prompt, words) for words in said]
                if rule == "unconditional":
                    values = [v - plain(filled.neutral, w) for v, w in zip(values, said, strict=True)]
                np.testing.assert_allclose(one.chances[DEV][shown.id], softmax(values), atol=1e-4)


def test_what_is_generated_is_a_reply(folder):
    data, plain, model = task_data("BoolQ", dev=2), Naive(folder), load_model(str(folder))
    (found,) = answers(answering.generate, model, [data], chat="yes", template=["question"], answer_tokens=6)
    template = built_in(data.spec)[0]
    for shown in data.splits[DEV]:
        prompt = fill(template, data.spec, shown).prompt
        assert found.outputs[DEV][shown.id]["text"] == plain.writes(prompt, 6)
    assert found.settings["chat"] == "yes"


def test_a_prompt_is_cut_so_that_the_whole_conversation_fits(tmp_path):
    folder = talking(tmp_path / "model", bos=True, max_length=96)
    data, model = task_data("BoolQ", dev=1), load_model(str(folder))
    (example,) = data.splits[DEV]
    long = type(example)(
        example.id, ("The rain stopped. " * 40 + example.texts[0], example.texts[1]), example.gold
    )
    data.splits[DEV][:] = [long]
    (found,) = answers(answering.prompt, model, [data], chat="yes", template=["question"])
    assert found.notes == {"passages cut from the left": 1}


def test_a_model_without_a_template_is_refused_and_one_that_cannot_talk_too(tmp_path):
    data = task_data("BoolQ", dev=1)
    plain = load_model(str(tiny.save_llama(tmp_path / "plain")))
    with pytest.raises(EnsueError, match="plain has no chat template, so it was not trained to be talked to"):
        answers(answering.prompt, plain, [data], chat="yes")
    with pytest.raises(EnsueError, match="random has no chat template here"):
        answers(answering.prompt, load_model("random"), [data], chat="yes")
    (tmp_path / "broken").mkdir()
    broken = talking(tmp_path / "broken" / "model", bos=True)
    (broken / "chat_template.jinja").write_text("{{ raise_exception('no user') }}", "utf-8")
    with pytest.raises(EnsueError, match="The chat template of model cannot be used: no user"):
        answers(answering.prompt, load_model(str(broken)), [data], chat="yes")


def test_chat_is_part_of_the_command_the_question_and_the_signature(folder, tmp_path):
    data = folders.superglue(tmp_path / "superglue")
    asked = ("run", "superglue/COPA", "--model", folder, "--data", data, "--limit", "2", "--json")
    done = here(*asked, "--chat", "--output", tmp_path / "chat")
    assert done.code == 0, done.err
    said = json.loads(done.out)
    assert " chat:user-turn" in said["signature"]
    assert json.loads((tmp_path / "chat" / "run.json").read_text())["asked"]["settings"]["chat"] == "yes"
    again = ensue.run(
        "superglue/COPA", model=str(folder), data=data, limit=2, chat=True, output=tmp_path / "python"
    )
    plain = ensue.run("superglue/COPA", model=str(folder), data=data, limit=2, output=tmp_path / "plain")
    assert again.results["metrics"] == said["metrics"]
    assert " chat:" not in plain.results["signature"]
    assert [item["outputs"] for item in plain.items] != [item["outputs"] for item in again.items]
    refused(here(*asked, "--output", tmp_path / "chat", "--resume"), "chat")
    refused(
        here("run", "superglue/COPA", "--model", "most-frequent", "--data", data, "--chat"),
        "chat",
        "mode prompt",
    )
    assert settings(answering.prompt)["chat"] == "no"
