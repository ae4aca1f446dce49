"""Threads that work ahead: results in order, faults where they are due, and no further than asked."""

from __future__ import annotations

import threading
import time

import pytest

from ensue.parallel import ahead, side_by_side


def test_results_come_in_order():
    assert list(ahead(lambda number: number**2, range(20))) == [number**2 for number in range(20)]
    assert list(ahead(str, [])) == []


def test_it_works_in_another_thread_and_not_too_far_ahead():
    taken: list[int] = []

    def items():
        for number in range(10):
            taken.append(number)
            yield number

    made = ahead(lambda number: threading.get_ident(), items(), depth=2)
    assert next(made) != threading.get_ident()
    assert taken == [0, 1, 2]
    made.close()


def test_a_fault_is_raised_where_its_result_is_due():
    def inverse(number: int) -> float:
        return 1 / number

    made = ahead(inverse, [1, 2, 0, 4])
    assert [next(made), next(made)] == [1.0, 0.5]
    with pytest.raises(ZeroDivisionError):
        next(made)


def test_as_many_work_side_by_side_as_are_asked_for():
    both = threading.Barrier(2, timeout=60)

    def meet(number: int) -> int:
        both.wait()
        return -number

    assert list(side_by_side(meet, range(8), 2)) == [-number for number in range(8)]


def test_side_by_side_no_more_is_begun_than_some_calls_ahead():
    taken: list[int] = []

    def items():
        for number in range(50):
            taken.append(number)
            yield number

    made = side_by_side(str, items(), 2)
    assert next(made) == "0"
    assert taken == [0, 1, 2, 3, 4]
    made.close()


def test_after_a_fault_nobody_waits_for_what_is_under_way():
    ended = threading.Event()

    def work(number: int) -> int:
        if number:
            ended.wait(60)
        return 1 // number

    began = time.monotonic()
    with pytest.raises(ZeroDivisionError):
        list(side_by_side(work, range(4), 2))
    assert time.monotonic() - began < 30
    ended.set()
