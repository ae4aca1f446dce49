"""A function over a stream, in several processes or threads, with its results in order and bounded look-ahead."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from typing import TypeVar

from ensue.errors import RunFailed

Given = TypeVar("Given")
Made = TypeVar("Made")

# Enough that a long work does not leave the other processes idle, few enough to hold in memory.
_AHEAD = 4


def cores() -> int:
    """Return how many processor cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def ordered_map(function: Callable[[Given], Made], items: Iterable[Given], workers: int) -> Generator[Made]:
    """`function` of every item in turn; with one worker in this process, where nothing must be pickled."""
    if workers == 1:
        yield from map(function, items)
        return
    pool = ProcessPoolExecutor(workers, multiprocessing.get_context("spawn"), _leave_interrupts_to_the_parent)
    waiting: deque[Future[Made]] = deque()
    try:
        for item in items:
            waiting.append(pool.submit(function, item))
            if len(waiting) >= _AHEAD * workers:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    except BrokenProcessPool as error:
        raise RunFailed(
            "A process that was reading works was killed from outside, perhaps because memory ran out; use "
            "fewer workers."
        ) from error
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def ahead(function: Callable[[Given], Made], items: Iterable[Given], depth: int = 2) -> Generator[Made]:
    """`function` of every item in turn, made in a thread while the results before it are used.

    For functions that leave the interpreter to others for most of their time, such as tokenizers.
    """
    waiting: deque[Future[Made]] = deque()
    with ThreadPoolExecutor(1) as pool:
        try:
            for item in items:
                waiting.append(pool.submit(function, item))
                if len(waiting) > depth:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()


def side_by_side(function: Callable[[Given], Made], items: Iterable[Given], at_once: int) -> Generator[Made]:
    """`function` of every item in turn, so many at once, each in a thread that waits for others to do the work."""
    waiting: deque[Future[Made]] = deque()
    with threads(at_once) as pool:
        for item in items:
            waiting.append(pool.submit(function, item))
            if len(waiting) > 2 * at_once:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


@contextmanager
def threads(count: int) -> Iterator[ThreadPoolExecutor]:
    """Have threads that wait for others. After an error or an interrupt nobody waits for what is still under way."""
    pool = ThreadPoolExecutor(count)
    try:
        yield pool
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        raise
    pool.shutdown()


def _leave_interrupts_to_the_parent() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
