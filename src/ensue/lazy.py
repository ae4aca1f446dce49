"""Objects named as `module:object` and imported when they are asked for."""

from __future__ import annotations

import importlib
from typing import Any


def load(reference: str) -> Any:
    """Import the object that a reference names.

    >>> load("math:sqrt")(16.0)
    4.0
    """
    module, _, attribute = reference.partition(":")
    return getattr(importlib.import_module(module), attribute)
