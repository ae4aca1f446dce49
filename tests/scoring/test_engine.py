"""Repeats, the journal, and the promise that one model is never served another's scores."""

from __future__ import annotations

import json
import math
from collections.abc import Generator, Iterator, Sequence, Set
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ensue.backends.baselines import RandomModel, UnigramModel
from ensue.backends.names import load_model
from ensue.errors import RunFailed
from ensue.models.request import Part, PartScore, Policy, Prepared, Request, Score, TextPart, TokenCut
from ensue.scoring.engine import choices, identity, score, signature
from ensue.scoring.journal import Journal
from ensue.version import __version__
from tests.support import tiny

TEXTS = [
    f"The {a} {b} by the {c}." for a in ("old", "small") for b in ("dog", "boat") for c in ("sea", "road")
]


class _Watched(UnigramModel):
    """A scorer that remembers which parts it was asked to compute, and can fail on the way."""

    def __init__(self, fail_after: int | None = None) -> None:
        super().__init__(TEXTS, "test")
        self.computed: list[str] = []
        self.fail_after = fail_after

    def execute(self, parts: Sequence[Part], done: Set[int]) -> Iterator[list[tuple[int, PartScore]]]:
        for index, part in enumerate(parts):
            if index not in done:
                if self.fail_after is not None and len(self.computed) >= self.fail_after:
                    raise KeyboardInterrupt
                self.computed.append(part.text)  # type: ignore[attr-defined]
                yield [(index, self._score(part))]  # type: ignore[arg-type]


def test_each_distinct_request_is_computed_once() -> None:
    scorer = _Watched()
    result = score(scorer, [Request(t) for t in TEXTS * 3])
    assert sorted(scorer.computed) == sorted(TEXTS)
    assert (result.distinct, result.computed) == (len(TEXTS), len(TEXTS))
    assert result.scores[: len(TEXTS)] == result.scores[len(TEXTS) : 2 * len(TEXTS)]


def test_a_stopped_run_goes_on_where_it_was(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    requests = [Request(t) for t in TEXTS]
    stopped = _Watched(fail_after=3)
    with Journal(path) as journal, pytest.raises(KeyboardInterrupt):
        score(stopped, requests, journal=journal)
    assert len(path.read_text().splitlines()) == 3
    rest = _Watched()
    with Journal(path) as journal:
        resumed = score(rest, requests, journal=journal)
    assert sorted(stopped.computed + rest.computed) == sorted(TEXTS)
    assert resumed.scores == score(_Watched(), requests).scores


@given(st.integers(1, 400))
def test_a_torn_journal_loses_only_what_was_torn(tmp_path_factory: pytest.TempPathFactory, cut: int) -> None:
    path = tmp_path_factory.mktemp("torn") / "journal.jsonl"
    with Journal(path) as journal:
        journal.add([(f"key{i}", Score(-i / 3, i, -1 / 3)) for i in range(8)])
    whole = path.read_bytes()
    path.write_bytes(whole[:-cut])
    kept = whole[:-cut].count(b"\n")
    with Journal(path) as journal:
        assert len(journal) == kept
        journal.add([("new", Score(-0.1, 1, -0.1))])
    with Journal(path) as journal:
        assert len(journal) == kept + 1
        assert journal.get("new", detail=False) == Score(-0.1, 1, -0.1)


def test_what_the_journal_gives_back_is_exact(tmp_path: Path) -> None:
    values = (-0.1, -1 / 3, -1e-17)
    kept = Score(sum(values), 3, sum(values) / 3, values, ((0, 1), (1, 4), (4, 9)))
    with Journal(tmp_path / "j") as journal:
        journal.add([("k", kept), ("bare", kept._replace(token_logprobs=None, token_spans=None))])
    with Journal(tmp_path / "j") as journal:
        assert journal.get("k", detail=True) == kept
        assert journal.get("bare", detail=True) is None


def test_other_weights_tokenizer_dtype_or_policy_never_share_scores(tmp_path: Path) -> None:
    for name, seed in (("a", 0), ("b", 1)):
        (tmp_path / name).mkdir()
        tiny.save_llama(tmp_path / name, seed=seed, max_length=64)
    requests = [Request(t) for t in TEXTS]
    asked = [
        (load_model(str(tmp_path / "a")), Policy()),
        (load_model(str(tmp_path / "b")), Policy()),
        (load_model(str(tmp_path / "a"), dtype="bfloat16"), Policy()),
        (load_model(str(tmp_path / "a")), Policy(bos="always")),
        (load_model(str(tmp_path / "a")), Policy(window="strided")),
        (load_model(str(tmp_path / "a")), Policy(max_length=32)),
        (RandomModel(seed=1), Policy()),
        (RandomModel(seed=2), Policy()),
    ]
    with Journal(tmp_path / "journal") as journal:
        for model, policy in asked:
            assert score(model, requests, policy=policy, journal=journal).computed == len(TEXTS)  # type: ignore[arg-type]
        for model, policy in asked:
            again = score(model, requests, policy=policy, journal=journal)  # type: ignore[arg-type]
            assert again.computed == 0
            assert again.scores == score(model, requests, policy=policy).scores  # type: ignore[arg-type]


def test_a_copy_of_a_model_elsewhere_is_the_same_model(tmp_path: Path) -> None:
    for name in ("here", "there"):
        (tmp_path / name).mkdir()
        tiny.save_llama(tmp_path / name, seed=3)
    with Journal(tmp_path / "journal") as journal:
        score(load_model(str(tmp_path / "here")), [Request(TEXTS[0])], journal=journal)  # type: ignore[arg-type]
        again = score(load_model(str(tmp_path / "there")), [Request(TEXTS[0])], journal=journal)  # type: ignore[arg-type]
    assert again.computed == 0


def test_all_that_is_told_of_a_scoring_by_value(tmp_path: Path) -> None:
    """One text asked twice, one known already, one without words, one after two contexts that are cut."""
    scorer = _Watched()
    scorer.card = replace(scorer.card, identity={"weights": "0123456789abcdef"}, weights_name="Some words")
    asked = [
        Request("a dog"),
        Request("A small boat."),
        Request("a dog", detail=True),
        Request(" "),
        Request("by the sea", "The old dog", cut=TokenCut(2, 2)),
        Request("by the sea", "The dog", cut=TokenCut(9, 2)),
    ]
    seen: list[tuple[int, int, str]] = []
    with Journal(tmp_path / "j") as journal:
        score(scorer, asked[1:2], journal=journal)
        found = score(scorer, asked, journal=journal, progress=lambda *state: seen.append(state))
        again = score(scorer, asked, journal=journal)
    assert [one.tokens for one in found.scores] == [2, 4, 2, 0, 2, 2]
    assert (found.tokens, found.distinct, found.computed, again.computed) == (12, 5, 4, 0)
    assert found.context_tokens == [None, None, None, None, 2, 2]
    assert found.scores[0] == found.scores[2]._replace(token_logprobs=None, token_spans=None)
    assert found.scores[2].token_spans == ((0, 1), (2, 5))
    assert (again.scores, again.notes, again.context_tokens) == (
        found.scores,
        found.notes,
        found.context_tokens,
    )
    # A part is as large as its text in fours of letters; that of the boat is done before the others begin.
    assert seen == [(done, 15, "tokens") for done in (4, 6, 7, 11, 15)]
    told = "bos:none first:scored boundary:words window:none"
    assert choices(scorer, Policy()) == f"model:unigram(Some-words) weights:0123456789ab {told}"
    assert (
        signature(scorer, Policy()) == f"ensue:{__version__} {choices(scorer, Policy())}" == found.signature
    )
    assert choices(_Watched(), Policy()) == f"model:unigram weights:- {told}"


def test_notes_of_all_distinct_requests_are_counted(tmp_path: Path) -> None:
    model = load_model(str(tiny.save_llama(tmp_path / "model", max_length=16)))
    long = "She opened the old letter and read it twice before she spoke."
    asked = [Request("a"), Request("b"), Request("a"), Request(long), Request(f"{long} {long}")]
    assert score(model, asked).notes == {"nothing to score": 2, "windowed": 2}  # type: ignore[arg-type]


def test_what_is_asked_for_last_in_detail_is_kept_in_detail(tmp_path: Path) -> None:
    scorer = _Watched()
    with Journal(tmp_path / "j") as journal:
        score(scorer, [Request("a dog")], journal=journal)
        found = score(scorer, [Request("a dog"), Request("a dog", detail=True)], journal=journal)
        assert (found.computed, found.distinct) == (1, 1)
        again = score(scorer, [Request("a dog", detail=True)], journal=journal)
    assert again.computed == 0
    assert again.scores[0].token_logprobs is not None
    assert found.scores[0].token_logprobs is None


def test_kind_and_policy_are_part_of_what_a_score_is_of() -> None:
    scorer = _Watched()
    facts = [identity(scorer, policy) for policy in (Policy(), Policy(window="strided"), Policy(bos="never"))]
    scorer.card = replace(scorer.card, kind="other")
    facts.append(identity(scorer, Policy()))
    scorer.card = replace(scorer.card, identity={"counts": "others"})
    facts.append(identity(scorer, Policy()))
    assert len(set(facts)) == 5
    scorer.card = replace(scorer.card, identity={"b": "1", "a": "2"})
    turned = identity(scorer, Policy())
    scorer.card = replace(scorer.card, identity={"a": "2", "b": "1"}, name="elsewhere")
    assert identity(scorer, Policy()) == turned


def test_progress_ends_at_the_total() -> None:
    seen: list[tuple[int, int, str]] = []
    score(_Watched(), [Request(t) for t in TEXTS], progress=lambda *state: seen.append(state))
    assert seen[0][0] == 0
    assert seen[-1][0] == seen[-1][1]
    assert [d for d, *_ in seen] == sorted(d for d, *_ in seen)
    assert {unit for *_, unit in seen} == {"tokens"}


@pytest.mark.parametrize("kind", ["bert", "causal"])
def test_texts_with_the_same_tokens_have_their_own_spans(tmp_path: Path, kind: str) -> None:
    """A tokenizer that lowers case and drops spaces and accents gives these one row of tokens."""
    if kind == "bert":
        model = load_model(str(tiny.save_bert(tmp_path / "model")))
    else:
        model = load_model(str(tiny.save_lowering_llama(tmp_path / "model")))
    texts = [
        "The café was closed.",
        "the   cafe WAS   closed.",
        "  The CAFÉ was closed .",
        "THE cafe was closed.",
    ]
    alone = [score(model, [Request(t, detail=True)]).scores[0] for t in texts]  # type: ignore[arg-type]
    with Journal(tmp_path / "journal") as journal:
        first = score(model, [Request(texts[0], detail=True)], journal=journal)  # type: ignore[arg-type]
        requests = [Request(t, detail=t != texts[3]) for t in texts]
        together = score(model, requests, journal=journal)  # type: ignore[arg-type]
    assert (first.computed, together.computed) == (1, 0)
    assert len({one.logprob for one in alone}) == 1
    for text, one, other in zip(texts[:3], alone, together.scores, strict=False):
        encoded = model.tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)  # type: ignore[attr-defined]
        own = [tuple(span) for span in encoded["offset_mapping"]][kind == "causal" :]
        assert list(other.token_spans or ()) == own
        assert other == one
    assert together.scores[3] == (*alone[0][:3], None, None)


def test_of_two_with_the_same_tokens_only_the_one_that_asks_gets_detail(tmp_path: Path) -> None:
    model = load_model(str(tiny.save_bert(tmp_path / "model")))
    for order in ((False, True), (True, False)):
        requests = [Request(t, detail=d) for t, d in zip(("A dog.", "a  DOG."), order, strict=True)]
        scores = score(model, requests).scores  # type: ignore[arg-type]
        assert [one.token_logprobs is not None for one in scores] == list(order)
        spans = scores[order.index(True)].token_spans or ()
        assert (spans[0], spans[-1]) == (((0, 1), (5, 6)) if order[0] else ((0, 1), (6, 7)))


class _Faulty(UnigramModel):
    """A scorer with one batch for all, in which chosen texts have a token that is no number."""

    def __init__(self, bad: float, where: set[int]) -> None:
        super().__init__(TEXTS, "test")
        self.bad, self.where = bad, where

    def execute(self, parts: Sequence[Part], done: Set[int]) -> Iterator[list[tuple[int, PartScore]]]:
        batch = []
        for index, part in enumerate(parts):
            one = self._score(part)  # type: ignore[arg-type]
            if index in self.where:
                one.logprobs[1] = self.bad
            batch.append((index, one))
        yield batch[:2]
        yield batch[2:5]
        raise AssertionError("a refused run goes no further")


@pytest.mark.parametrize("bad", [float("nan"), float("-inf"), float("inf")])
def test_what_is_no_number_is_refused_by_name_and_the_rest_is_kept(tmp_path: Path, bad: float) -> None:
    requests = [Request(t) for t in TEXTS]
    path = tmp_path / "journal"
    with Journal(path) as journal, pytest.raises(RunFailed) as raised:
        score(_Faulty(bad, {3}), requests, journal=journal)
    assert f"{TEXTS[3][:40]!r}" in str(raised.value)
    assert str(bad) in str(raised.value)
    with Journal(path) as journal:
        assert len(journal) == 4
        again = score(_Watched(), requests, journal=journal)
    assert again.computed == len(TEXTS) - 4
    assert again.scores == score(_Watched(), requests).scores


def test_a_refusal_names_what_was_scored_after_which_context() -> None:
    class Faulty(_Watched):
        def _score(self, part: TextPart) -> PartScore:
            found = super()._score(part)
            if "sea" in part.text:
                found.logprobs[-2:] = -math.inf, math.nan
            return found

    scorer = Faulty()
    scorer.card = replace(scorer.card, identity={"dtype": "bfloat16"})
    after = "long words " * 5 + "by the sea"
    with pytest.raises(RunFailed) as raised:
        score(scorer, [Request("a dog"), Request(after, "The old boat. " * 4)])
    assert str(raised.value) == (
        f"unigram makes -inf of the text that begins {('The old boat. ' * 4)[:40]!r} (scored: {after[:40]!r}) "
        "in bfloat16, which cannot be compared with anything; use --dtype float32."
    )
    with pytest.raises(RunFailed, match=r"begins 'by the sea' in bfloat16"):
        score(scorer, [Request("by the sea")])


def test_a_journal_with_what_is_no_number_is_not_believed(tmp_path: Path) -> None:
    with Journal(tmp_path / "journal") as journal:
        good = score(_Watched(), [Request(TEXTS[0])], journal=journal).scores
    key = json.loads((tmp_path / "journal").read_text().splitlines()[-1])[1]
    (tmp_path / "journal").unlink()
    with Journal(tmp_path / "journal") as journal:
        journal.add([(key, Score(float("nan"), 5, float("nan")))])
        again = score(_Watched(), [Request(TEXTS[0])], journal=journal)
    assert (again.scores, again.computed) == (good, 1)


@pytest.mark.parametrize("save", [tiny.save_llama, tiny.save_bert])
def test_a_float16_overflow_names_text_dtype_and_a_way_out(tmp_path: Path, save) -> None:  # type: ignore[no-untyped-def]
    """Only the second text has the token whose vector overflows, so the probe passes."""
    import torch

    model = load_model(str(save(tmp_path / "model")), dtype="float16")
    texts = ["A small boat drifted.", "A dog."]
    ids = [set(model.tokenizer(t, add_special_tokens=False)["input_ids"]) for t in texts]  # type: ignore[attr-defined]
    model.executor  # type: ignore[attr-defined]  # noqa: B018 (probed before the fault is there)
    head = model.network.get_output_embeddings()  # type: ignore[attr-defined]
    head.weight = torch.nn.Parameter(head.weight.clone(), requires_grad=False)
    table = model.network.get_input_embeddings().weight  # type: ignore[attr-defined]
    table[sorted(ids[1] - ids[0])] = torch.inf
    with Journal(tmp_path / "journal") as journal:
        with pytest.raises(RunFailed, match=r"'A dog\.' in float16.*use --dtype bfloat16 or float32"):
            score(model, [Request(t) for t in texts], journal=journal)  # type: ignore[arg-type]
        assert len(journal) <= 1


class _Elsewhere(_Watched):
    """The same on a device of its own, so that texts are made ready while others are scored."""

    device_kind = "cuda"

    def __init__(self) -> None:
        super().__init__()
        self.portions: list[list[str]] = []

    def prepare(self, requests: Sequence[Request], policy: Policy) -> list[Prepared]:
        self.portions.append([request.continuation for request in requests])
        return super().prepare(requests, policy)

    def execute_more(
        self, parts: Sequence[Part], done: Set[int], *, share: float, last: bool
    ) -> Generator[list[tuple[int, PartScore]], None, set[int]]:
        yield from self.execute(parts, done)
        return set()


def test_texts_are_made_ready_in_growing_portions_where_a_device_works_meanwhile(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("ensue.scoring.portions._FIRST", 40)
    monkeypatch.setattr("ensue.scoring.portions._LARGEST", 100)
    scorer, seen = _Elsewhere(), []
    requests = [Request(text, detail=number % 3 == 0) for number, text in enumerate(TEXTS)] * 2
    found = score(scorer, requests, progress=lambda done, total, _: seen.append((done, total)))
    assert found.scores == score(_Watched(), requests).scores
    assert (found.distinct, found.computed) == (len(TEXTS), len(TEXTS))
    assert sorted(scorer.computed) == sorted(TEXTS)
    assert [text for portion in scorer.portions for text in portion] == TEXTS * 2
    sizes = [sum(map(len, portion)) for portion in scorer.portions]
    assert len(sizes) > 3
    assert all(size >= 40 for size in sizes[:-1])
    assert sizes[1] >= 64  # 1.6 times the first
    assert all(size >= 100 for size in sizes[2:-1])  # no more than the largest and what reaches beyond it
    done, total = seen[-1]
    assert done == total
    assert [one for one, _ in seen] == sorted(one for one, _ in seen)


def test_detail_that_a_later_portion_asks_for_is_had(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ensue.scoring.portions._FIRST", 1)
    # The scorer drops case, so both have the same tokens and one key.
    requests = [Request("The old dog."), Request("the OLD dog.", detail=True)]
    alone = [score(_Watched(), [request]).scores[0] for request in requests]
    assert alone[0].logprob == alone[1].logprob
    assert score(_Elsewhere(), requests).scores == alone


def test_what_may_be_refused_is_made_ready_before_any_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ensue.scoring.portions._FIRST", 1)
    scorer = _Elsewhere()
    score(scorer, [Request(text) for text in TEXTS], policy=Policy(window="refuse"))
    assert len(scorer.portions) == 1
    score(scorer, [Request(text, context="So.") for text in TEXTS])
    assert len(scorer.portions) == 2
    score(scorer, [Request(text, context="So.") for text in TEXTS], policy=Policy(overflow="truncate"))
    assert len(scorer.portions) > 4


class _Leaving(_Elsewhere):
    """One that leaves the last part of every portion but the last, whatever is known of it."""

    def __init__(self) -> None:
        super().__init__()
        self.given: list[list[str]] = []
        self.shares: list[float] = []

    def execute_more(
        self, parts: Sequence[Part], done: Set[int], *, share: float, last: bool
    ) -> Generator[list[tuple[int, PartScore]], None, set[int]]:
        self.given.append([part.text for part in parts])  # type: ignore[attr-defined]
        self.shares.append(share)
        left = set() if last else {len(parts) - 1}
        yield from self.execute(parts, {*done, *left})
        return left


def test_what_a_scorer_leaves_of_a_portion_it_is_given_with_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ensue.scoring.portions._FIRST", 40)
    monkeypatch.setattr("ensue.scoring.portions._LARGEST", 60)
    requests = [Request(text) for text in TEXTS]
    expected = score(_Watched(), requests).scores
    seen: list[tuple[int, int]] = []
    with Journal(tmp_path / "journal.jsonl") as journal:
        scorer = _Leaving()
        first = score(
            scorer, requests, journal=journal, progress=lambda done, total, _: seen.append((done, total))
        )
        assert first.scores == expected
        assert first.computed == len(TEXTS)
        assert sorted(scorer.computed) == sorted(TEXTS)
        assert len(scorer.given) > 2
        assert all(after[0] == before[-1] for before, after in pairwise(scorer.given))
        assert sum(scorer.shares) == pytest.approx(1)
        assert seen[-1][0] == seen[-1][1]
        # A run that goes on is divided as it was, and computes nothing again.
        again = _Leaving()
        assert score(again, requests, journal=journal).scores == expected
        assert (again.given, again.computed) == (scorer.given, [])
