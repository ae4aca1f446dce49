"""Choice by generation: letters, replies, marks, and that it is never taken for choice by log-likelihood."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import ensue
from ensue.benchmarks.base import RunContext
from ensue.benchmarks.naming import LETTERS, Choice, choose, named_letter, order_of, prompt_of
from ensue.errors import EnsueError
from ensue.models.card import ModelCard
from tests.support.command import here, write_lines

FORMS = (
    "{0}",
    " {0}.",
    "({0})",
    "**{0}**",
    "{0}) because it begins well",
    "{0}: the first",
    "Answer: {0}",
    "The answer is {0}, since A dog is mentioned in it.",
    "The answer is text {0}.",
    "Text {0}",
    "I think that Text {0} follows best.",
    "<think>A? B? C?</think>\n{0}",
    "The correct choice would be **{0}**.",
    "Text {0}: “It rained.”",
)


@given(form=st.sampled_from(FORMS), count=st.integers(3, 8), data=st.data())
def test_a_letter_is_found_however_it_is_said(form: str, count: int, data: st.DataObject) -> None:
    place = data.draw(st.integers(0, count - 1))
    assert named_letter(form.format(LETTERS[place]), count) == place


@pytest.mark.parametrize(
    "reply",
    [
        "",
        "A dog ran.",
        "Text A and Text B",
        "I do not know.",
        "D",
        "<think>B",
        "Neither.",
        "b or c",
        "AB",
        "A/B",
    ],
)
def test_what_names_no_text_or_several_is_none(reply: str) -> None:
    assert named_letter(reply, 3) is None


def test_letters_are_drawn_and_balanced() -> None:
    choices = [Choice(f"d{n}", "Read.", ("right", "wrong"), "Which?") for n in range(400)]
    firsts = sum(order_of(one, seed=0)[0] == 0 for one in choices)
    assert 160 < firsts < 240
    assert [order_of(one, 0) for one in choices] != [order_of(one, 1) for one in choices]
    prompt = prompt_of(choices[0], (1, 0))
    assert prompt.index("Text A:\nwrong") < prompt.index("Text B:\nright") < prompt.index("Which?")


class Knowing:
    """A model that knows some texts and names the letter above one of them; counts what it is asked."""

    def __init__(self, known: Sequence[str], name: str = "knowing") -> None:
        self.card = ModelCard(name=name, kind="endpoint", source="-", identity={"weights": name})
        self.known = known
        self.asked: list[str] = []
        self.most = 10**9

    def generate(self, prompts: Sequence[str], **options: Any) -> list[str]:
        found = dict(pair for batch in self.generate_each(prompts, **options) for pair in batch)
        return [found[place] for place in range(len(prompts))]

    def generate_each(self, prompts: Sequence[str], **options: Any) -> Iterator[list[tuple[int, str]]]:
        for place, prompt in enumerate(prompts):
            if len(self.asked) >= self.most:
                raise EnsueError("The server went away.")
            self.asked.append(prompt)
            yield [(place, self._letter(prompt))]

    def _letter(self, prompt: str) -> str:
        texts = prompt.split("\n\nText ")[1:]
        right = [text[0] for text in texts if any(known in text for known in self.known)]
        return f"Text {right[0]}" if right else "None of them."

    def cut_texts(self, texts: Sequence[str], tokens: int, *, last: bool = False) -> list[str]:
        words = [text.split(" ") for text in texts]
        return [" ".join(one[-tokens:] if last else one[:tokens]) for one in words]


def test_what_was_told_is_not_asked_again() -> None:
    context = RunContext()
    choices = [Choice(f"d{n}", "Read.", (f"right {n}", "wrong"), "Which?") for n in range(6)]
    model = Knowing(["right"])
    model.most = 4
    with pytest.raises(EnsueError, match="went away"):
        choose(model, choices, 0, 16, context)
    model.most = 10**9
    chosen = choose(model, choices, 0, 16, context)
    assert [one.place for one in chosen] == [0] * 6
    assert len(model.asked) == len(set(model.asked)) == 6
    # Another number of tokens is another question, and so is another model.
    choose(model, choices, 0, 8, context)
    choose(Knowing(["right"], "other"), choices, 0, 16, context)
    assert len(model.asked) == 12


def documents(tmp_path: Path) -> Path:
    rows = [
        {"id": f"d{n}", "sentences": [f"Sentence {place} of {n} is here." for place in range(5)]}
        for n in range(4)
    ]
    return write_lines(tmp_path / "documents.jsonl", rows)


def shuffle(tmp_path: Path, model: Any, name: str, **settings: Any) -> ensue.Run:
    return ensue.run(
        "shuffle",
        model=model,
        data=documents(tmp_path),
        output=tmp_path / name,
        block_size=[1],
        shuffles=2,
        **settings,
    )


def test_the_shuffle_test_by_generation_is_marked(tmp_path: Path) -> None:
    originals = [" ".join(f"Sentence {place} of {n} is here." for place in range(5)) for n in range(3)]
    run = shuffle(tmp_path, Knowing(originals), "run", by="generation")
    rows = {row["metric"]: row for row in run.results["metrics"]}
    assert rows["accuracy"]["value"] == 0.75
    assert rows["ties"]["value"] == 0.25
    assert "accuracy_per_token" not in rows
    assert rows["accuracy"]["settings"] == {"block_size": 1, "by": "generation"}
    assert "by:generation" in run.results["signature"]
    assert json.loads((run.folder / "run.json").read_text())["asked"]["settings"]["by"] == "generation"
    assert run.results["notes"] == {"replies that name no text, counted as wrong": 2}
    assert {item["outputs"]["reply"] for item in run.items} == {"Text A", "Text B", "None of them."}
    assert ensue.report(run)


def test_it_is_not_compared_with_log_likelihoods(tmp_path: Path) -> None:
    named = shuffle(tmp_path, Knowing(["Sentence 0"]), "named", by="generation")
    again = shuffle(tmp_path, Knowing([], "other"), "again", by="generation")
    scored = shuffle(tmp_path, "random", "scored")
    assert ensue.compare(named, again).shared == 8
    for pair in ((named, scored), (scored, named)):
        with pytest.raises(
            EnsueError, match=r"named is by generation .* and .*scored by log-likelihood"
        ) as caught:
            ensue.compare(*pair)
        assert str(caught.value).count(".") - str(caught.value).count("./") >= 1


def test_models_that_do_not_write_are_refused(tmp_path: Path) -> None:
    with pytest.raises(EnsueError, match="Choice by generation needs a model that can generate text"):
        shuffle(tmp_path, "random", "run", by="generation")


def test_it_is_only_done_on_request(tmp_path: Path) -> None:
    with pytest.raises(
        EnsueError, match="needs a model that can score text, but knowing can only generate text"
    ):
        shuffle(tmp_path, Knowing([]), "run")


def test_chapterbreak_by_generation(tmp_path: Path) -> None:
    works = {
        f"w{n}": [
            {
                "ctx": " ".join(f"c{n}x{place}" for place in range(20)),
                "pos": " ".join(f"g{n}x{place}" for place in range(9)),
                "negs": [" ".join(f"n{n}x{k}x{place}" for place in range(9)) for k in range(5)],
            }
        ]
        for n in range(4)
    }
    data = tmp_path / "data.json"
    data.write_text(json.dumps({"pg19": works}))
    run = ensue.run(
        "chapterbreak",
        model=(model := Knowing(["g0x0", "g1x0", "g2x0"])),  # type: ignore[arg-type]
        data=data,
        output=tmp_path / "run",
        by="generation",
        prefix_tokens=[4, 8],
        suffix_tokens=[6],
    )
    rows = run.results["metrics"]
    assert [(row["metric"], row["value"]) for row in rows] == [("accuracy", 0.75)] * 2
    assert all(row["settings"]["by"] == "generation" for row in rows)
    assert "by:generation" in run.results["signature"]
    prompts = [prompt for prompt in model.asked if "g0x0" in prompt]
    assert ["c0x15" in prompt for prompt in prompts] == [False, True]
    assert all("c0x16" in prompt and "g0x5" in prompt and "g0x6" not in prompt for prompt in prompts)
    shown = here("report", str(run.folder), "--format", "markdown")
    assert "by generation" in shown.out, shown
