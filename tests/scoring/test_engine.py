"""Repeats, the journal, and the promise that one model is never served another's scores."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ensue.models.baselines import RandomModel, UnigramModel
from ensue.models.names import load_model
from ensue.scoring.engine import score
from ensue.scoring.journal import Journal
from ensue.scoring.request import Part, PartScore, Policy, Request, Score
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


def test_progress_ends_at_the_total() -> None:
    seen: list[tuple[int, int]] = []
    score(_Watched(), [Request(t) for t in TEXTS], progress=lambda done, total: seen.append((done, total)))
    assert seen[0][0] == 0
    assert seen[-1][0] == seen[-1][1]
    assert [d for d, _ in seen] == sorted(d for d, _ in seen)
