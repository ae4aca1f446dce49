"""Requests in portions: the same scores, bounded memory, and a run that goes on where it was."""

from __future__ import annotations

import itertools
import json
import tracemalloc
from collections.abc import Generator, Iterator, Sequence, Set
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import ensue
from ensue.backends.baselines import UnigramModel
from ensue.backends.hf.language import CausalModel
from ensue.models.request import Part, PartScore, Policy, Prepared, Request, TokenCut
from ensue.report.results import read_items
from ensue.scoring.engine import Scoring, score
from ensue.scoring.portions import count_characters, divided
from tests.support import tiny
from tests.support.corpus import write_corpus

SIZE = "ensue.scoring.portions._ON_CPU"

requests = st.lists(
    st.builds(
        Request,
        st.text("ab ", min_size=1, max_size=12),
        st.sampled_from(["", "A context.", "Another one, longer."]),
        st.booleans(),
        st.sampled_from([None, None, TokenCut(2, 3)]),
    ),
    max_size=30,
)


@given(requests, st.integers(1, 60))
def test_portions_hold_every_request_in_order_and_each_question_once(asked: list[Request], most: int) -> None:
    portions = list(divided(enumerate(asked), most, most))
    wanted = [one for portion in portions for one in portion.wanted]
    assert [one.thing for one in wanted] == list(range(len(asked)))
    for portion in portions:
        questions = [(one.context, one.continuation, one.cut) for one in portion.requests]
        assert len(set(questions)) == len(questions)
        for thing, place, detail in portion.wanted:
            given_, found = asked[thing], portion.requests[place]
            assert (given_.context, given_.continuation, given_.cut) == questions[place]
            assert detail == given_.detail <= found.detail
    assert sum(portion.characters for portion in portions) >= count_characters(asked)
    for before, after in itertools.pairwise(portions):
        assert before.characters >= most
        same = asked[before.wanted[-1].thing].context == asked[after.wanted[0].thing].context != ""
        assert not same or before.characters >= 2 * most


@pytest.fixture(scope="module")
def llama(tmp_path_factory: pytest.TempPathFactory) -> CausalModel:
    model = ensue.load_model(str(tiny.save_llama(tmp_path_factory.mktemp("model") / "m", max_length=512)))
    assert isinstance(model, CausalModel)
    return model


WORDS = ("the", "old", "boat", "drifted", "by", "a", "small", "road.")


@given(
    st.lists(st.lists(st.sampled_from(WORDS), min_size=2, max_size=30).map(" ".join), min_size=1, max_size=8),
    st.integers(1, 400),
)
def test_portions_of_any_size_give_the_same_scores_but_for_rounding(
    llama: CausalModel, texts: list[str], most: int
) -> None:
    asked = [Request(text, detail=place % 2 == 0) for place, text in enumerate(texts)]
    whole = score(llama, asked)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SIZE, most)
        some, again = score(llama, asked), score(llama, asked)
    assert some.scores == again.scores  # the same portions, to the last bit
    assert (some.notes, some.tokens, some.distinct) == (whole.notes, whole.tokens, whole.distinct)
    for one, other in zip(some.scores, whole.scores, strict=True):
        assert one.logprob == pytest.approx(other.logprob, abs=2e-5 * max(one.tokens, 1))
        assert one.token_spans == other.token_spans


@pytest.mark.parametrize("policy", [Policy(window="refuse"), Policy(overflow="refuse")])
def test_what_may_be_refused_is_made_ready_before_any_work_and_run_in_portions(
    monkeypatch: pytest.MonkeyPatch, policy: Policy
) -> None:
    monkeypatch.setattr(SIZE, 30)
    seen: list[str] = []

    class Scorer(UnigramModel):
        def prepare(self, requests: Sequence[Request], policy: Policy) -> list[Prepared]:
            seen.append(f"ready {len(requests)}")
            return super().prepare(requests, policy)

        def execute(self, parts: Sequence[Part], done: Set[int]) -> Iterator[list[tuple[int, PartScore]]]:
            seen.append(f"run {len(parts)}")
            yield from super().execute(parts, done)

    asked = [Request(f"sentence {number}", context=f"context {number}") for number in range(6)]
    found = score(Scorer(["a sentence"], "test"), asked, policy=policy)
    assert seen == ["ready 6", "run 2", "run 2", "run 2"]
    assert found.scores == score(UnigramModel(["a sentence"], "test"), asked).scores


def _peak(count: int) -> int:
    """Return the most bytes that a stream of so many requests needs at once."""
    scoring = Scoring(UnigramModel(["one sentence of some words"], "test"))
    texts = ((number, Request(f"{number} " + "some words " * 30, detail=True)) for number in range(count))
    tracemalloc.start()
    try:
        tokens = sum(one.score.tokens for _, one in scoring.each(texts, 350 * count, refusing=False))
        assert tokens == count * 61
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_memory_does_not_grow_with_the_number_of_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    """A request in hand takes some 15,000 bytes; one that is done leaves the place of its line in the journal."""
    monkeypatch.setattr(SIZE, 20_000)
    _peak(300)
    few, many = _peak(300), _peak(1500)
    assert few > 50 * 5000
    assert (many - few) / 1200 < 250


def test_a_run_that_is_stopped_in_a_later_portion_goes_on_there(
    tmp_path: Path, llama: CausalModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SIZE, 2000)
    corpus = write_corpus(tmp_path / "corpus.jsonl", (6,) * 12)
    done: list[int] = []
    portions: list[int] = []
    original = CausalModel.execute_more
    stop_in = [0]

    def counted(
        self: CausalModel, parts: Sequence[Part], known: Set[int], **more: Any
    ) -> Generator[list[tuple[int, PartScore]], None, set[int]]:
        portions.append(len(parts))
        for batch in original(self, parts, known, **more):
            done.append(len(batch))
            yield batch
            if len(portions) == stop_in[0]:
                raise KeyboardInterrupt
        return set()

    def run(name: str, **options: Any) -> ensue.Run:
        return ensue.run(
            "shuffle",
            model=llama,
            data=corpus,
            output=tmp_path / name,
            block_size=[1, 2],
            shuffles=4,
            **options,
        )

    monkeypatch.setattr(CausalModel, "execute_more", counted)
    whole = run("whole")
    every = sum(done)
    assert len(portions) > 4
    done.clear()
    portions.clear()
    stop_in[0] = 3
    with pytest.raises(KeyboardInterrupt):
        run("stopped")
    stop_in[0] = 0
    found = run("stopped", resume=True)
    assert sum(done) <= every + 32  # no more than the batch in hand is done twice
    assert sorted(read_items(found.folder), key=json.dumps) == sorted(
        read_items(whole.folder), key=json.dumps
    )
    assert [row["value"] for row in found.results["metrics"]] == [
        row["value"] for row in whole.results["metrics"]
    ]
