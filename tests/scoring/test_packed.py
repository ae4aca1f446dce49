"""Rows of whole trees give the numbers of one plain pass a text, whatever the model and however rows are cut."""

from __future__ import annotations

import logging
from copy import deepcopy
from dataclasses import replace
from functools import cache, wraps
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from ensue.models.request import PartScore, TokenPart
from ensue.scoring.attention import attention
from ensue.scoring.causal import NO_SHARING, CausalExecutor, Finished
from ensue.scoring.forest import grow_forest
from ensue.scoring.network import Network
from ensue.scoring.packed import PackedExecutor
from ensue.scoring.plan import Budget
from ensue.scoring.probe import CausalWay, find_causal_way, find_tree_way
from ensue.scoring.rows import make_rows
from ensue.scoring.runners import Launched, TextRunner, TreeRunner, _Place
from tests.scoring.networks import VOCABULARY, network

# The last two have layers that look back over eight tokens alone.
FAMILIES = ("llama", "gpt2", "granite", "gemma3", "gemma2")


def plain(model: Any, part: TokenPart) -> Any:
    """Score one text in one call of the model, by the definition."""
    ids = torch.from_numpy(part.ids.astype(np.int64))[None]
    with torch.inference_mode():
        table = torch.log_softmax(model(input_ids=ids).logits[0].double(), -1)
    places = range(part.start, len(part.ids))
    return np.asarray([float(table[place - 1, part.ids[place]]) for place in places])


def drawn(seed: int, count: int, longest: int = 40) -> list[TokenPart]:
    """Draw texts that go on from beginnings of each other."""
    generator = np.random.default_rng(seed)
    texts: list[Any] = [generator.integers(0, VOCABULARY, 12)]
    for _ in range(count - 1):
        above = texts[generator.integers(len(texts))]
        kept = above[: generator.integers(0, len(above) + 1)]
        texts.append(
            np.concatenate([kept, generator.integers(0, VOCABULARY, generator.integers(1, 9))])[:longest]
        )
    texts = [text for text in texts if len(text) > 1]
    return [TokenPart(text.astype(np.int32), int(generator.integers(1, len(text)))) for text in texts]


def executor(model: Any, room: int, way: CausalWay = CausalWay(True, True, True)) -> PackedExecutor:
    budget = Budget(batch=room, full=room, cache=400, attended=4000)
    plainly = way.plain(model, budget)
    return PackedExecutor(
        plainly.network, budget, plainly, texts=False, runs_trees=lambda _: True, compile="always"
    )


@pytest.mark.parametrize("family", FAMILIES)
@given(seed=st.integers(0, 10**6), count=st.integers(1, 8), room=st.sampled_from([40, 64, 300]))
@settings(max_examples=5)
def test_rows_of_trees_have_the_numbers_of_plain_passes(
    family: str, seed: int, count: int, room: int
) -> None:
    model = network(family)
    parts = drawn(seed, count)
    done = {0} if len(parts) > 2 else set()
    packed = executor(model, room)
    found = dict(one for batch in packed.run(parts, done) for one in batch)
    assert not packed._failed  # nothing was left to the plain way
    assert sorted(found) == [i for i in range(len(parts)) if i not in done]
    for i, score in found.items():
        np.testing.assert_allclose(score.logprobs, plain(model, parts[i]), atol=2e-4)


def test_what_is_asked_after_one_prefix_needs_no_row_of_its_own() -> None:
    model = network("llama")
    prefix = np.arange(30, dtype=np.int32)
    parts = [TokenPart(np.append(prefix, token).astype(np.int32), 30) for token in range(20)]
    rows = list(make_rows(grow_forest(parts), 64))
    assert [len(row.ids) for row in rows] == [30]  # no choice is fed, each is read off the same state
    found = dict(TreeRunner(Network(model), 64).launch(rows[0], None).scores())
    for i, part in enumerate(parts):
        np.testing.assert_allclose(found[i].logprobs, plain(model, part), atol=2e-4)


def test_rows_are_padded_to_few_sizes() -> None:
    runner = TreeRunner(Network(network("llama")), 4096)
    sizes = {runner._place(tokens).size for tokens in range(1, 4097, 7)}
    assert sizes == {256, 1024, 4096}


def test_small_rows_are_padded_to_what_is_compiled_until_there_are_many() -> None:
    runner = TreeRunner(Network(network("llama")), 4096)
    sizes = [runner._place(tokens).size for tokens in (4096, *[100] * 70)]
    assert sizes == [4096] * 65 + [256] * 6


@given(seed=st.integers(0, 10**6), cuts=st.lists(st.integers(1, 12), min_size=1, max_size=4))
@settings(max_examples=8)
def test_parts_that_wait_for_more_are_scored_with_them(seed: int, cuts: list[int]) -> None:
    model = network("llama")
    parts = drawn(seed, 14)
    portions = np.split(np.arange(len(parts)), np.cumsum(cuts))
    all_waited: list[list[list[int]]] = []
    for known in (set(), {0, len(parts) - 1}):
        packed = executor(model, 48)
        found: dict[int, Any] = {}
        left: list[int] = []
        waited = []
        for number, portion in enumerate(portions):
            names = [*left, *map(int, portion)]
            done = {j for j, i in enumerate(names) if i in known}
            chosen = [parts[i] for i in names]
            left = []
            if number == len(portions) - 1:
                batches = packed.run(chosen, done)
                found |= {names[j]: score for batch in batches for j, score in batch}
                continue
            under_way = packed.run_more(chosen, done, 0.5, False)
            while True:
                try:
                    found |= {names[j]: score for j, score in next(under_way)}
                except StopIteration as end:
                    left = [names[j] for j in sorted(end.value)]
                    break
            waited.append(left)
        assert sorted(found) == [i for i in range(len(parts)) if i not in known]
        for i, score in found.items():
            np.testing.assert_allclose(score.logprobs, plain(model, parts[i]), atol=2e-4)
        all_waited.append(waited)
    # What waits does not depend on what is known: a run that goes on lays the same rows.
    assert all_waited[0] == all_waited[1]


def test_the_model_is_left_as_it_was() -> None:
    model = network("llama")
    before = model.config._attn_implementation
    with attention(model):
        assert model.config._attn_implementation != before
    assert model.config._attn_implementation == before


def test_longer_texts_than_a_row_are_scored_all_the_same() -> None:
    model = network("llama")
    parts = drawn(3, 8, longest=60)
    longest = max(len(part.ids) for part in parts)
    found = dict(one for batch in executor(model, longest - 1).run(parts) for one in batch)
    assert len(found) == len(parts)
    for i, score in found.items():
        np.testing.assert_allclose(score.logprobs, plain(model, parts[i]), atol=2e-4)


@pytest.mark.parametrize("family", ["llama", "gemma3", "gemma2", "gpt2"])
def test_whether_trees_give_a_models_own_numbers_is_found_out(family: str) -> None:
    assert find_tree_way(Network(network(family))).trees


def test_windows_that_are_not_kept_to_are_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Texts of the probe are longer than any layer looks back."""
    found, seen = Network(network("gemma3")), _Place._seen
    monkeypatch.setattr("ensue.scoring.probe._causal_parts", lambda _: [])
    assert find_tree_way(found).trees
    monkeypatch.setattr(_Place, "_seen", lambda place, _, blocks: seen(place, None, blocks))
    assert not find_tree_way(found).trees


def test_a_window_that_a_row_knows_nothing_of_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    kinds = {"full_attention": None, "sliding_attention": 9}
    monkeypatch.setattr(Network, "windows", property(lambda _: kinds))
    runner = TreeRunner(Network(network("gemma3")), 64)
    (row,) = make_rows(grow_forest(drawn(4, 1)), 64)
    with pytest.raises(NotImplementedError, match="window"):
        runner.launch(row, None)


def by_borders(
    query: Any,
    key: Any,
    value: Any,
    borders: Any,
    _: Any,
    *__: Any,
    scale: float,
    window_size: tuple[int, int],
    enable_gqa: bool,
) -> Any:
    """What torch's attention over texts of different lengths is to do, for a CPU, by the definition."""
    assert enable_gqa
    assert window_size[1] == 0
    found = []
    for begin, end in pairwise(borders.tolist()):
        q, k, v = (one[begin:end].transpose(0, 1) for one in (query, key, value))
        k, v = (one.repeat_interleave(len(q) // len(k), 0) for one in (k, v))
        apart = torch.arange(end - begin)[:, None] - torch.arange(end - begin)
        seen = (apart >= 0) & ((apart <= window_size[0]) | (window_size[0] < 0))
        weights = (q @ k.transpose(1, 2) * scale).masked_fill(~seen, -torch.inf).softmax(-1)
        found.append((weights @ v).transpose(0, 1))
    return torch.cat(found)


@wraps(by_borders)
def without_windows(*given: Any, **more: Any) -> Any:
    return by_borders(*given, **{**more, "window_size": (-1, 0)})


@pytest.mark.parametrize(
    ("family", "attend", "texts"),
    [
        *((family, by_borders, True) for family in ("llama", "gpt2", "granite", "gemma3")),
        # One that caps its scores, one with attention of its own, and windows that are not kept to.
        ("gemma2", by_borders, False),
        ("bloom", by_borders, False),
        ("llama", without_windows, True),
        ("gemma3", without_windows, False),
    ],
)
def test_whether_texts_end_to_end_give_a_models_own_numbers_is_found_out(
    family: str, attend: Any, texts: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ensue.scoring.probe.takes_varlen", lambda _: True)
    monkeypatch.setattr("ensue.scoring.attention._varlen", lambda: attend)
    model = network(family)
    assert find_causal_way(model).texts == texts
    if texts and attend is by_borders:
        parts = drawn(8, 6)
        rows = make_rows(grow_forest(parts, min_run=NO_SHARING), 50)
        runner = TextRunner(Network(model))
        found = dict(one for row in rows for one in runner.launch(row, None).scores())
        for i, part in enumerate(parts):
            np.testing.assert_allclose(found[i].logprobs, plain(model, part), atol=2e-4)


def test_what_a_model_may_not_be_given_is_asked_and_told_once_and_not_given(
    caplog: pytest.LogCaptureFixture,
) -> None:
    model, asked = network("llama"), []
    packed = executor(model, 64)
    packed._runs_trees = cache(lambda: bool(asked.append(1)))
    parts = drawn(2, 5)
    for _ in range(2):
        found = dict(one for batch in packed.run(parts) for one in batch)
        for i, part in enumerate(parts):
            np.testing.assert_allclose(found[i].logprobs, plain(model, part), atol=2e-4)
    assert asked == [1]
    assert packed._kept is None
    assert caplog.messages == [
        "LlamaForCausalLM is not compiled: in compiled rows it does not give its own scores"
    ]


def test_a_model_that_cannot_have_rows_is_scored_in_batches_and_that_is_said(
    caplog: pytest.LogCaptureFixture,
) -> None:
    model = network("bloom")
    parts = drawn(5, 9)
    packed = executor(model, 300, find_causal_way(model))
    with caplog.at_level(logging.WARNING):
        found = dict(one for batch in packed.run(parts) for one in batch)
    assert "packed rows cannot be run" in caplog.text
    assert packed._failed
    assert not find_tree_way(Network(model)).trees
    for i, part in enumerate(parts):
        np.testing.assert_allclose(found[i].logprobs, plain(model, part), atol=2e-4)


def test_a_wrong_row_is_found_out(caplog: pytest.LogCaptureFixture) -> None:
    class Shifted(TreeRunner):
        """Reads every state one place late."""

        def launch(self, row: Any, length: int | None) -> Any:
            return super().launch(row._replace(states=np.maximum(row.states - 1, 0)), length)

    model = network("llama")
    parts = drawn(11, 6)
    packed = executor(model, 128)
    packed._kept = Shifted(packed.network, 128)
    with caplog.at_level(logging.WARNING):
        found = dict(one for batch in packed.run(parts) for one in batch)
    assert "nats a token away" in caplog.text
    for i, part in enumerate(parts):
        np.testing.assert_allclose(found[i].logprobs, plain(model, part), atol=2e-4)


class Moved(Launched):
    """Scores that all lie off by as much as `by` says."""

    by = 0.0

    def scores(self) -> Finished:
        return [(part, PartScore(score.logprobs + self.by)) for part, score in super().scores()]


def moved_executor(model: Any, *by: float) -> PackedExecutor:
    """Return what runs rows that lie off by so much, one after the other."""
    left = list(by)

    class Moving(TreeRunner):
        def launch(self, row: Any, length: int | None) -> Any:
            found = Moved(*super().launch(row, length))
            found.by = left.pop(0)
            return found

    packed = executor(model, 64)
    packed._kept = Moving(packed.network, 64)
    return packed


@pytest.mark.parametrize(("by", "is_wrong"), [(0.2, False), (0.3, True)])
def test_the_first_row_may_lie_off_by_a_quarter_of_a_nat(by: float, is_wrong: bool) -> None:
    packed = moved_executor(network("llama"), by)
    for _ in packed.run(drawn(3, 1)):
        pass
    assert packed._failed == is_wrong


def test_later_rows_are_not_checked_again() -> None:
    packed = moved_executor(network("llama"), 0, 9)
    for seed in (3, 4):
        for _ in packed.run(drawn(seed, 1)):
            pass
    assert not packed._failed


@pytest.mark.parametrize(
    ("dtype", "by", "is_wrong"),
    [(torch.bfloat16, 0.7, False), (torch.bfloat16, 1.5, True), (torch.float32, 0.7, True)],
)
def test_a_single_token_moves_by_more_in_bfloat16(dtype: torch.dtype, by: float, is_wrong: bool) -> None:
    packed = moved_executor(deepcopy(network("llama")).to(dtype), by)
    (part,) = drawn(3, 1)
    for _ in packed.run([TokenPart(part.ids, len(part.ids) - 1)]):
        pass
    assert packed._failed == is_wrong


def test_uncompiled_texts_lie_end_to_end_where_little_is_shared() -> None:
    packed = executor(network("llama"), 512)
    packed.texts, packed.compile = True, "never"
    texts = np.random.default_rng(0).integers(0, VOCABULARY, (2, 100), dtype=np.int32)
    for shared, runner in ((50, TextRunner), (70, type(None))):
        texts[1, :shared] = texts[0, :shared]
        parts = [TokenPart(one, 1) for one in texts]
        assert type(packed._runner(grow_forest(parts), parts)) is runner


@pytest.mark.parametrize(("tokens", "rows"), [(94, 0), (95, 1)])
def test_a_row_waits_for_more_unless_it_is_nearly_full(tokens: int, rows: int) -> None:
    packed = executor(network("llama"), 100)
    ids = np.random.default_rng(0).integers(0, VOCABULARY, tokens + 1, dtype=np.int32)
    for _ in packed.run_more([TokenPart(ids, 1)], set(), 0.5, False):
        pass
    assert len(packed._flying) == rows


def test_short_work_is_not_compiled() -> None:
    model = network("llama")
    budget = Budget(batch=64, full=64, cache=400, attended=4000)
    plainly = CausalExecutor(Network(model), budget)
    packed = PackedExecutor(
        Network(model), budget, plainly, texts=False, runs_trees=lambda _: True, compile="auto"
    )
    parts = drawn(1, 5)
    forest = grow_forest(parts)
    assert packed._runner(forest, parts) is None  # a CPU has no attention over texts of different lengths
    # A hundred picoseconds a token, layer and unit of width make up for eight seconds of compiling.
    tokens = int(7e10 / (model.config.num_hidden_layers * model.config.hidden_size))
    long = replace(forest, begins=np.asarray([0]), ends=np.asarray([tokens]))
    assert packed._runner(long, parts) is None
    packed._share = 0.5  # as much again is to come
    assert isinstance(packed._runner(long, parts), TreeRunner)
