"""Requests under way at once: so many and no more, their results as they come."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from itertools import islice
from typing import Generic, TypeVar

T = TypeVar("T")


def in_flight(
    todo: Sequence[int], work: Callable[[int], T], concurrency: int, halt: threading.Event
) -> Iterator[list[tuple[int, T]]]:
    """Yield results of `work` as they come, with `concurrency` of them under way at a time.

    After a failure nothing more is begun, but what is under way is waited for and given first. `halt` is set while a
    caller that stops early waits for what is under way.
    """
    waiting = iter(todo)
    failure: BaseException | None = None
    pool = ThreadPoolExecutor(concurrency, thread_name_prefix="ensue-endpoint")
    try:
        flying: dict[Future[T], int] = {}
        while True:
            if failure is None:
                for index in islice(waiting, concurrency - len(flying)):
                    flying[pool.submit(work, index)] = index
            if not flying:
                break
            landed = [(flying.pop(future), future) for future in wait(flying, None, FIRST_COMPLETED).done]
            failure = failure or next((error for _, f in landed if (error := f.exception())), None)
            if batch := [(index, f.result()) for index, f in landed if f.exception() is None]:
                yield batch
    finally:
        # Only where the caller stops early is anything still under way; it is not tried again.
        halt.set()
        pool.shutdown(cancel_futures=True)
        halt.clear()
    if failure is not None:
        raise failure


class Once(Generic[T]):
    """What is found out once for each text, however many threads ask at the same time."""

    def __init__(self, find: Callable[[str], T]) -> None:
        self._find = find
        self._lock = threading.Lock()
        self._found: dict[str, Future[T]] = {}

    def __call__(self, text: str) -> T:
        with self._lock:
            found = self._found.get(text)
            mine = found is None
            if found is None:
                found = self._found[text] = Future()
        if mine:
            try:
                found.set_result(self._find(text))
            except BaseException as error:
                # Another time it may succeed.
                with self._lock:
                    del self._found[text]
                found.set_exception(error)
        return found.result()
