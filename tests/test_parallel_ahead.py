"""A thread that works ahead: results in order, faults where they are due, and no further than asked."""

from __future__ import annotations

import threading

import pytest

from ensue.parallel import ahead


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
