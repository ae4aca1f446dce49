"""Searches in lanes against transformers' own generation of one prompt at a time; they run on a CPU as well."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from ensue.backends.hf import lane_generate, lane_search
from ensue.backends.hf.beam import BeamRules, Hypothesis, NoNumber, SharingDecoder, TokenPrompt, search
from ensue.backends.hf.lane_generate import sharing
from ensue.backends.hf.lane_search import find_lane_way, lane_gap, search_lanes
from ensue.backends.names import load_model
from ensue.errors import RunFailed
from ensue.models.protocols import AnswerSpan
from ensue.scoring.network import Network
from tests.scoring.networks import VOCABULARY, network
from tests.support import tiny


def drawn(count: int, seed: int) -> tuple[int, ...]:
    draw = torch.Generator().manual_seed(seed)
    return tuple(torch.randint(5, VOCABULARY, (count,), generator=draw).tolist())


# Two texts with several answers, prompts that share nothing, short and long.
PROMPTS = [
    *(TokenPrompt(drawn(17, 1), drawn(size, 10 + size)) for size in (4, 2, 7)),
    *(TokenPrompt(drawn(6, 2), drawn(size, 20 + size)) for size in (3, 5)),
    *(TokenPrompt((), drawn(size, 30 + size)) for size in (5, 15, 1, 40)),
]
ROOM = {"room": 10**6, "batch": 40}


def flat(found: list[Hypothesis]) -> list[list[int]]:
    return [[*one.tokens, *([] if one.end is None else [one.end])] for one in found]


@cache
def by_transformers(family: str, prompt: TokenPrompt, rules: BeamRules) -> tuple[list[Any], Any]:
    """The hypotheses and scores of one prompt."""
    model = network(family)
    before = torch.tensor([prompt.shared + prompt.own])
    ends = sorted(rules.ends)
    made = model.generate(
        before,
        attention_mask=torch.ones_like(before),
        num_beams=rules.beams,
        num_return_sequences=rules.beams,
        min_new_tokens=rules.min_tokens,
        max_new_tokens=rules.max_tokens,
        length_penalty=rules.length_penalty,
        no_repeat_ngram_size=rules.block_ngrams,
        early_stopping=False,
        do_sample=False,
        eos_token_id=ends,
        pad_token_id=0,
        return_dict_in_generate=True,
        output_scores=True,
    )
    rows = [row[before.shape[1] :].tolist() for row in made.sequences]
    cut = [next((n + 1 for n, token in enumerate(row) if token in ends), len(row)) for row in rows]
    return [row[:size] for row, size in zip(rows, cut, strict=True)], made.sequences_scores.tolist()


@pytest.mark.parametrize("lanes", [2, 100])
@pytest.mark.parametrize(
    "rules",
    [
        BeamRules(5, frozenset({2}), 4, 12, 1.0, 0),
        BeamRules(4, frozenset({2, 9, 33}), 0, 9, 0.5, 2),
        BeamRules(3, frozenset({2, 7}), 3, 20, 2.0, 1),
    ],
    ids=["plain", "three ends", "long"],
)
@pytest.mark.parametrize("family", ["llama", "gpt2", "granite"])
def test_hypotheses_are_those_of_transformers(family: str, rules: BeamRules, lanes: int) -> None:
    """Also where prompts take the place of others, and where a prompt's n-grams count."""
    net = Network(network(family))
    found = dict(
        search_lanes(net, PROMPTS, rules, **ROOM, apart=True, history=True, rows=lanes * rules.beams)
    )
    assert sorted(found) == list(range(len(PROMPTS)))
    for place, prompt in enumerate(PROMPTS):
        rows, scores = by_transformers(family, prompt, rules)
        assert flat(found[place]) == rows
        assert [one.score for one in found[place]] == pytest.approx(scores, abs=1e-4)
        for one in found[place]:
            assert one.score == pytest.approx(one.logprob / one.length**rules.length_penalty)


@pytest.mark.parametrize("lanes", [2, 100])
@pytest.mark.parametrize(
    "rules",
    [
        BeamRules(4, frozenset({2, 7, 40, 41, 42, 43, 44}), 3, 9, 1.0, 3),
        BeamRules(3, frozenset(range(30, 50)), 0, 7, 0.5, 2),
        BeamRules(1, frozenset({2}), 8, 8, 1.0, 1),
    ],
)
def test_questions_are_those_of_the_search_without_lanes(rules: BeamRules, lanes: int) -> None:
    """Many tokens end a question, of which the likeliest counts, and only its own n-grams are barred."""
    net = Network(network("llama"))
    plain = search(SharingDecoder(net, PROMPTS, beams=rules.beams, max_tokens=rules.max_tokens), rules)
    found = dict(search_lanes(net, PROMPTS, rules, **ROOM, rows=lanes * rules.beams))
    assert [flat(found[place]) for place in range(len(PROMPTS))] == [flat(one) for one in plain]
    for place, expected in enumerate(plain):
        assert [one.logprob for one in found[place]] == pytest.approx([one.logprob for one in expected])


def test_a_token_is_run_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Texts that several prompts share, what is their own, and then as many as there are hypotheses at each step."""
    net = Network(network("llama"))
    seen: list[int] = []
    plain = net.hidden

    def counted(ids: torch.Tensor, **more: Any) -> torch.Tensor:
        seen.append(ids.numel())
        return plain(ids, **more)

    monkeypatch.setattr(net, "hidden", counted)
    prompts = [TokenPrompt(drawn(30, 1), (7, 8 + n)) for n in range(8)]
    # The fourth token comes of the third pass, after which the host looks.
    list(search_lanes(net, prompts, BeamRules(3, frozenset(), 0, 4), room=10**4, batch=512))
    assert seen[:2] == [30, 8 * 2]
    assert set(seen[2:]) == {8 * 3}


def test_fewer_are_searched_at_a_time_where_memory_runs_out(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    net, rules = Network(network("llama")), BeamRules(3, frozenset({2}), 0, 5)
    expected = dict(search_lanes(net, PROMPTS, rules, **ROOM))
    plain = lane_search.Lanes.begin

    def narrow(self: Any, prompts: Any, lanes: torch.Tensor, room: int) -> torch.Tensor:
        if len(lanes) > 3:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return plain(self, prompts, lanes, room)

    monkeypatch.setattr(lane_search.Lanes, "begin", narrow)
    found = dict(search_lanes(net, PROMPTS, rules, **ROOM))
    assert {place: flat(one) for place, one in found.items()} == {
        place: flat(one) for place, one in expected.items()
    }
    assert "out of memory" in caplog.text


def test_a_number_that_is_none_is_told_by_its_prompt(monkeypatch: pytest.MonkeyPatch) -> None:
    net = Network(network("llama"))
    plain = net.logits

    def broken(hidden: torch.Tensor) -> torch.Tensor:
        logits = plain(hidden).clone()
        if len(hidden) == 2 * 3:  # a step of two lanes
            logits[3:] = float("nan")
        return logits

    monkeypatch.setattr(net, "logits", broken)
    with pytest.raises(NoNumber) as told:
        list(search_lanes(net, PROMPTS[:2], BeamRules(3, frozenset(), 0, 4), **ROOM))
    # The longest is in the first lane.
    assert told.value.prompt == 1


def test_models_that_give_other_numbers_have_no_lanes() -> None:
    families = ("llama", "gpt2", "granite", "gemma2", "gemma3", "bloom")
    found = [family for family in families if find_lane_way(Network(network(family))).lanes]
    assert found == ["llama", "gpt2", "granite"]


def test_the_gap_shows_a_wrong_mask(monkeypatch: pytest.MonkeyPatch) -> None:
    net = Network(network("llama"))
    assert lane_gap(net) < 1e-4
    monkeypatch.setattr(lane_search.Lanes, "_mask", lambda self, seen: _all_seen(seen))
    assert lane_gap(net) > 0.01


def _all_seen(seen: torch.Tensor) -> torch.Tensor:
    return torch.zeros(seen.shape).repeat(1, 2, 1)[:, None]


TEXTS = ["The sun rose over", "She", *tiny.SENTENCES[3:6], "He wrote the answer on the board, and", "A dog."]


@pytest.fixture(scope="module", params=["llama", "gpt2"])
def folder(request: Any, tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(getattr(tiny, f"save_{request.param}")(tmp_path_factory.mktemp("model")))


@pytest.fixture(scope="module")
def model(folder: str) -> Any:
    return load_model(folder)


def alone(model: Any, text: str, stop: tuple[str, ...], count: int, settings: dict[str, Any]) -> str:
    """What transformers itself writes after one text."""
    given = model.tokenizer(text, return_tensors="pt").input_ids
    more = {"stop_strings": list(stop), "tokenizer": model.tokenizer} if stop else {}
    made = model.network.generate(
        given, max_new_tokens=count, do_sample=False, pad_token_id=0, **settings, **more
    )
    said = model.tokenizer.decode(made[0, given.shape[1] :], skip_special_tokens=True)
    return said[: min([len(said), *(said.find(word) for word in stop if word in said)])]


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ({}, {}),
        (
            {"beams": 4, "length_penalty": 0.5, "min_tokens": 3},
            {"num_beams": 4, "length_penalty": 0.5, "min_new_tokens": 3},
        ),
        ({"beams": 3, "block_ngrams": 2}, {"num_beams": 3, "no_repeat_ngram_size": 2}),
        ({"block_ngrams": 1}, {"no_repeat_ngram_size": 1}),
    ],
    ids=["greedy", "beams", "n-grams", "unigrams"],
)
@pytest.mark.parametrize("stop", [(), ("th", "e ")], ids=["", "stops"])
def test_texts_are_those_of_transformers(
    model: Any, monkeypatch: pytest.MonkeyPatch, ours: Any, theirs: Any, stop: tuple[str, ...]
) -> None:
    used: list[int] = []
    plain = lane_generate.search_lanes

    def noted(net: Any, prompts: Any, *args: Any, **more: Any) -> Any:
        used.append(len(prompts))
        return plain(net, prompts, *args, **more, rows=12)

    monkeypatch.setattr(lane_generate, "search_lanes", noted)
    found = model.generate(TEXTS, max_tokens=16, stop=stop, **ours)
    assert used == [len(TEXTS)]
    assert found == [alone(model, text, stop, 16, theirs) for text in TEXTS]
    assert len(set(found)) > 2


def test_what_lanes_cannot_do_is_left_to_transformers(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model: Any = load_model(folder)

    def never(*args: Any, **more: Any) -> Any:
        raise AssertionError

    monkeypatch.setattr(lane_generate, "search_lanes", never)
    for settings in ({"repetition_penalty": 1.5}, {"num_beams": 2, "early_stopping": True}):
        expected = [alone(model, text, (), 8, settings) for text in TEXTS]
        assert model.generate(TEXTS, max_tokens=8, **settings) == expected
    model.network.generation_config.suppress_tokens = [7, 8]
    assert len(model.generate(TEXTS, max_tokens=2)) == len(TEXTS)


def test_questions_are_the_same_in_lanes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    texts = [*tiny.SENTENCES[:3], *tiny.SENTENCES[:3]]
    spans = [AnswerSpan(4, 9)] * 3 + [AnswerSpan(0, 3)] * 3
    wanted = {"count": 3, "beams": 4, "min_tokens": 2, "max_tokens": 12}
    model: Any = load_model(str(tiny.save_llama(tmp_path / "long", max_length=1024)))
    found = model.ask(texts, spans, **wanted)
    monkeypatch.setattr(type(model), "in_lanes", lambda self, longest: None)
    expected = model.ask(texts, spans, **wanted)
    assert [[one.question for one in row] for row in found] == [
        [one.question for one in row] for row in expected
    ]
    for row, other in zip(found, expected, strict=True):
        assert [one.score for one in row] == pytest.approx([one.score for one in other], abs=1e-4)


def test_a_text_of_which_no_number_comes_is_named(folder: str) -> None:
    model: Any = load_model(folder)
    assert model.generate(TEXTS, max_tokens=2)
    head = model.network.get_output_embeddings()
    head.weight = torch.nn.Parameter(head.weight.clone(), requires_grad=False)
    (odd,) = set(model.tokenizer("ñ", add_special_tokens=False)["input_ids"][-1:])
    model.network.get_input_embeddings().weight.requires_grad_(False)[odd] = torch.inf
    with pytest.raises(RunFailed, match="begins 'Nobody ñ"):
        model.generate([*TEXTS, "Nobody ñ"], max_tokens=3)


@given(
    st.lists(
        st.tuples(st.integers(0, 2), st.integers(0, 90), st.lists(st.integers(0, 3), min_size=1, max_size=5)),
        min_size=1,
        max_size=12,
    )
)
def test_prompts_are_divided_into_shared_and_own(drawn_prompts: list[tuple[int, int, list[int]]]) -> None:
    prompts = [[10 + text] * size + own for text, size, own in drawn_prompts]
    divided = sharing(prompts)
    assert [[*one.shared, *one.own] for one in divided] == prompts
    assert all(one.own for one in divided)
    for one in divided:
        assert not one.shared or sum(one.shared == other.shared for other in divided) > 1
        assert not one.shared or len(one.shared) >= 32


def test_what_many_prompts_begin_with_is_found() -> None:
    shots = list(range(100))
    prompts = [[*shots, 200 + n] for n in range(5)] + [[300] * 80]
    divided = sharing(prompts)
    assert [one.shared for one in divided] == [tuple(shots)] * 5 + [()]


def test_smollm2_writes_what_it_writes_alone(smollm2_folder: Path) -> None:
    model: Any = load_model(str(smollm2_folder), dtype="float32")
    texts = ["When the rain stopped, the children", "Paris is"]
    for ours, theirs in (
        ({"block_ngrams": 2}, {"no_repeat_ngram_size": 2}),
        ({"beams": 3, "length_penalty": 0.7}, {"num_beams": 3, "length_penalty": 0.7}),
    ):
        found = model.generate(texts, max_tokens=6, stop=["\n"], **ours)
        assert found == [alone(model, text, ("\n",), 6, theirs) for text in texts]
        assert all(found)
