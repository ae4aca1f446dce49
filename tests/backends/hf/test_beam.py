"""Beam search against a plain one that runs every hypothesis from its start, and against transformers' own."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from ensue.backends.hf.beam import BeamRules, PlainDecoder, SharingDecoder, TokenPrompt, search
from ensue.errors import EnsueError
from ensue.scoring.network import Network
from tests.support import tiny


@pytest.fixture(scope="module", params=["llama", "gpt2"])
def model(request, tmp_path_factory):
    from transformers import AutoModelForCausalLM

    folder = getattr(tiny, f"save_{request.param}")(tmp_path_factory.mktemp("models") / "model")
    return AutoModelForCausalLM.from_pretrained(folder).eval()


def prompts_of(vocabulary: int) -> list[TokenPrompt]:
    """Two texts of different lengths with several answers each, one prompt that shares nothing."""
    draw = torch.Generator().manual_seed(3)

    def some(count: int) -> tuple[int, ...]:
        return tuple(torch.randint(5, vocabulary, (count,), generator=draw).tolist())

    one, two = some(17), some(6)
    return [
        TokenPrompt(one, some(4)),
        TokenPrompt(one, some(2)),
        TokenPrompt(one, some(4)),
        TokenPrompt(two, some(3)),
        TokenPrompt(two, some(7)),
        TokenPrompt((), some(5)),
    ]


def shared(model, prompts, rules):
    return search(
        SharingDecoder(Network(model), prompts, beams=rules.beams, max_tokens=rules.max_tokens), rules
    )


def barred(row: list[int], size: int) -> set[int]:
    """Tokens that would repeat an n-gram, found the slow way."""
    tail = row[len(row) - size + 1 :] if size > 1 else []
    return (
        {row[i + size - 1] for i in range(len(row) - size + 1) if size and row[i : i + size - 1] == tail}
        if size and len(row) >= size
        else set()
    )


def naive(logprobs, rules: BeamRules) -> list[tuple[tuple[int, ...], float]]:
    """One prompt, lists and sorting only: tokens with the end, and score."""
    running: list[tuple[list[int], float]] = [([], 0.0)]
    done: list[tuple[tuple[int, ...], float]] = []
    for length in range(1, rules.max_tokens + 1):
        grown = []
        for row, total in running:
            table = logprobs(row)
            ends = sorted(rules.ends, key=lambda end: -table[end])
            banned = set(ends[1:]) | barred(row, rules.block_ngrams)
            if len(row) < rules.min_tokens:
                banned |= set(ends)
            grown += [
                ([*row, token], total + table[token]) for token in range(len(table)) if token not in banned
            ]
        grown.sort(key=lambda pair: -pair[1])
        grown = grown[: 2 * rules.beams]
        for row, total in grown[: rules.beams]:
            if row[-1] in rules.ends or length == rules.max_tokens:
                done.append((tuple(row), total / length**rules.length_penalty))
        done = sorted(done, key=lambda pair: -pair[1])[: rules.beams]
        running = [pair for pair in grown if pair[0][-1] not in rules.ends][: rules.beams]
        if not running:
            break
        if len(done) == rules.beams and done[-1][1] >= running[0][1] / length**rules.length_penalty:
            break
    return done


def flat(found):
    return [(*one.tokens, *([] if one.end is None else [one.end])) for one in found]


@pytest.mark.parametrize(
    "rules",
    [
        BeamRules(4, frozenset({2}), 3, 9, 1.0, 3),
        BeamRules(3, frozenset({2, 7, 40, 41, 42, 43, 44}), 0, 7, 0.5, 2),
        BeamRules(1, frozenset({2}), 8, 8, 1.0, 1),
    ],
)
def test_hypotheses_are_those_of_a_plain_search(model, rules):
    prompts = prompts_of(model.config.vocab_size)
    for prompt, found in zip(prompts, shared(model, prompts, rules), strict=True):

        @torch.inference_mode()
        def logprobs(row, before=prompt.shared + prompt.own):
            return torch.log_softmax(model(torch.tensor([[*before, *row]])).logits[0, -1], -1).tolist()

        expected = naive(logprobs, rules)
        assert flat(found) == [row for row, _ in expected]
        for one, (_, score) in zip(found, expected, strict=True):
            assert one.score == pytest.approx(score, abs=1e-4)
            assert one.score == pytest.approx(one.logprob / one.length**rules.length_penalty)


def test_hypotheses_are_those_of_transformers(model):
    """Without n-grams: transformers would also bar those of the prompt."""
    prompts = prompts_of(model.config.vocab_size)
    rules = BeamRules(5, frozenset({2}), 4, 12, 1.0, 0)
    for prompt, found in zip(prompts, shared(model, prompts, rules), strict=True):
        before = torch.tensor([prompt.shared + prompt.own])
        other = model.generate(
            before,
            attention_mask=torch.ones_like(before),
            num_beams=5,
            num_return_sequences=5,
            min_new_tokens=4,
            max_new_tokens=12,
            length_penalty=1.0,
            early_stopping=False,
            do_sample=False,
            eos_token_id=2,
            pad_token_id=0,
            return_dict_in_generate=True,
            output_scores=True,
        )
        rows = [row[before.shape[1] :].tolist() for row in other.sequences]
        rows = [row[: row.index(2) + 1] if 2 in row else row for row in rows]
        assert [list(row) for row in flat(found)] == rows
        assert [one.score for one in found] == pytest.approx(other.sequences_scores.tolist(), abs=1e-4)


def test_running_every_hypothesis_again_gives_the_same(model):
    prompts = prompts_of(model.config.vocab_size)
    rules = BeamRules(3, frozenset({2}), 2, 6, 1.0, 3)
    plain = search(PlainDecoder(Network(model), prompts), rules)
    assert [flat(found) for found in plain] == [flat(found) for found in shared(model, prompts, rules)]


class Chain:
    """A decoder of a fixed table: what follows depends on the last token alone."""

    def __init__(self, table: torch.Tensor, prompts: int) -> None:
        self.table, self.prompts = torch.log_softmax(table, -1), prompts

    def start(self) -> torch.Tensor:
        return self.table[:1].expand(self.prompts, -1)

    def advance(self, parents: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
        return self.table[tokens]


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    beams=st.integers(1, 6),
    least=st.integers(0, 6),
    more=st.integers(1, 8),
    block=st.integers(0, 3),
    ends=st.sets(st.integers(0, 8), min_size=1, max_size=3),
)
def test_every_hypothesis_keeps_the_rules(seed, beams, least, more, block, ends):
    table = 3 * torch.randn(9, 9, generator=torch.Generator().manual_seed(seed))
    rules = BeamRules(beams, frozenset(ends), least, least + more, 1.0, block)
    found = search(Chain(table, 2), rules)
    assert found[0] == found[1]
    chain = Chain(table, 1)
    for one in found[0]:
        grams = [one.tokens[i : i + block] for i in range(len(one.tokens) - block + 1)] if block else []
        assert len(set(grams)) == len(grams)
        assert not set(one.tokens) & set(ends)
        assert len(one.tokens) >= least
        assert one.length == len(one.tokens) + (one.end is not None) <= least + more
        assert one.end is not None or one.length == least + more
        row = [*one.tokens, *([] if one.end is None else [one.end])]
        steps = [float(chain.table[before, after]) for before, after in zip([0, *row], row, strict=False)]
        assert one.logprob == pytest.approx(math.fsum(steps), abs=1e-4)
    assert [one.score for one in found[0]] == sorted((one.score for one in found[0]), reverse=True)
    assert len({flat([one])[0] for one in found[0]}) == len(found[0]) <= beams


@pytest.mark.parametrize(("beams", "least", "most"), [(0, 0, 5), (2, 6, 5), (2, 0, 0), (2, -1, 3)])
def test_rules_that_cannot_be_kept_are_one_sentence(beams, least, most):
    with pytest.raises(EnsueError, match="Invalid beams="):
        BeamRules(beams, frozenset({1}), least, most)


def test_a_shared_prefix_is_run_once(model, monkeypatch):
    """Tokens that go through the trunk: each text once, each answer's own tokens, then one a hypothesis."""
    network = Network(model)
    seen: list[int] = []
    plain = network.hidden

    def counted(ids, **more):
        seen.append(ids.numel())
        return plain(ids, **more)

    monkeypatch.setattr(network, "hidden", counted)
    shared_ids = tuple(range(5, 55))
    prompts = [TokenPrompt(shared_ids, (60 + n, 61)) for n in range(8)]
    search(SharingDecoder(network, prompts, beams=3, max_tokens=4), BeamRules(3, frozenset({2}), 4, 4))
    assert seen == [50, 8 * 2, 8 * 3, 8 * 3, 8 * 3]
