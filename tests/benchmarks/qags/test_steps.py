"""Steps: the outcome of every request as a plain loop has it, each done once, whatever was finished before."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ensue.benchmarks.qags.steps import Steps, once

requests = st.lists(st.tuples(st.sampled_from(["a", "b", "é", '"', "\n"]), st.integers(0, 3)), max_size=30)


def outcome(request: tuple[str, int]) -> list[object]:
    return [request[0] * 2, request[1] / 3]


@given(requests, requests, st.integers(1, 7))
def test_each_distinct_request_is_done_once(first: list, second: list, chunk: int) -> None:
    done: Counter[tuple[str, int]] = Counter()

    def work(part: Sequence[tuple[str, int]]) -> list[list[object]]:
        assert len(part) <= chunk
        done.update(part)
        return [outcome(request) for request in part]

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "steps.jsonl"
        with Steps(path) as steps:
            assert once(steps, {"step": "x"}, first, work, chunk=chunk) == [outcome(one) for one in first]
            assert set(done.values()) <= {1}
        with Steps(path) as steps:
            assert len(steps) == len(set(first))
            before = done.copy()
            assert once(steps, {"step": "x"}, first, work, chunk=chunk) == [outcome(one) for one in first]
            assert done == before
            assert once(steps, {"step": "x"}, second, work, chunk=chunk) == [outcome(one) for one in second]
            # Another question shares nothing with the first.
            once(steps, {"step": "y"}, first, work, chunk=chunk)
            assert len(steps) == len(set(first) | set(second)) + len(set(first))


@given(st.integers(0, 400))
def test_a_torn_file_keeps_its_whole_lines(cut: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "steps.jsonl"
        with Steps(path) as steps:
            once(
                steps,
                {},
                [(number,) for number in range(8)],
                lambda part: [list(one) for one in part],
                chunk=3,
            )
        whole = path.read_bytes()
        path.write_bytes(whole[:cut])
        with Steps(path) as steps:
            assert len(steps) == whole[:cut].count(b"\n")
            found = once(
                steps,
                {},
                [(number,) for number in range(8)],
                lambda part: [list(one) for one in part],
                chunk=3,
            )
        assert found == [[number] for number in range(8)]
        with Steps(path) as steps:
            assert len(steps) == 8


def test_too_few_outcomes_are_noticed() -> None:
    with pytest.raises(ValueError, match="2 requests were given back 1"):
        once(Steps(), {}, [("a",), ("b",)], lambda part: [1], chunk=5)
