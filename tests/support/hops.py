"""Which modules a call goes through."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from inspect import CO_OPTIMIZED
from pathlib import Path
from types import FrameType
from typing import Any

import ensue

HOUSE = Path(ensue.__file__).parent


@contextmanager
def modules_called() -> Iterator[set[str]]:
    """Yield the modules of the package a function of which is called, as paths without their ending.

    What is called while a module is imported does not count.
    """
    found: set[str] = set()
    seen: set[str] = set()

    def importing(frame: FrameType | None) -> bool:
        while frame is not None:
            if frame.f_code.co_name == "<module>" and frame.f_code.co_filename.startswith(str(HOUSE)):
                return True
            frame = frame.f_back
        return False

    def notice(frame: FrameType, event: str, argument: Any) -> None:
        code = frame.f_code
        if event != "call" or code.co_filename in seen or not code.co_filename.startswith(str(HOUSE)):
            return
        if code.co_flags & CO_OPTIMIZED and not importing(frame):
            seen.add(code.co_filename)
            found.add(str(Path(code.co_filename).relative_to(HOUSE).with_suffix("")))

    before = sys.getprofile()
    sys.setprofile(notice)
    try:
        yield found
    finally:
        sys.setprofile(before)
