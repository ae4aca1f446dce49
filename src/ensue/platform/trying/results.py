"""What a worker hands back, read as what it is: a profile or an inspection; as HTML for the page."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from markupsafe import Markup
from pydantic import TypeAdapter, ValidationError

from ensue.platform.refusals import Invalid

_WRONG = "The result is not of the form that this server reads; is the worker's Ensue of another version?"


@cache
def adapter(kind: str) -> TypeAdapter[Any]:
    """Return what reads and writes the results of a kind."""
    if kind == "profile":
        from ensue.models.profile import Profile  # with numpy, which a server at rest does without

        return TypeAdapter(Profile)
    from ensue.benchmarks.qags.inspecting import Inspection

    return TypeAdapter(Inspection)


def write(kind: str, result: Any) -> Any:
    """Return a result for JSON."""
    return adapter(kind).dump_python(result, mode="json")


def read(kind: str, result: Any, texts: Mapping[str, str]) -> Any:
    """Read a result; refuse one that is not of the texts it should be of."""
    try:
        found = adapter(kind).validate_python(result)
    except ValidationError:
        raise Invalid(_WRONG) from None
    if not _fits(found, texts):
        raise Invalid(_WRONG)
    return found


def _fits(found: Any, texts: Mapping[str, str]) -> bool:
    if "text" in texts:
        size, count = len(found.text), len(found.sentences)
        edges = [edge for one in found.sentences for edge in (one.start, one.end)]
        places = [place for place in (found.stands_out, found.least) if place is not None]
        inside = edges == sorted(edges) and all(0 <= edge <= size for edge in edges)
        return found.text == texts["text"] and inside and all(0 <= place < count for place in places)
    return "".join(piece.text for piece in found.pieces) == texts["summary"]


def html(kind: str, result: Any, texts: Mapping[str, str]) -> Markup:
    """Return a result as a part of a page."""
    if kind == "profile":
        from ensue.report.following import profile_html

        return profile_html(result)
    from ensue.benchmarks.qags.report.page import inspection_html

    return inspection_html(result, texts["source"])


def as_dict(found: Any) -> dict[str, Any]:
    """Return a result as `ensue score --profile --json` and `ensue qags --json` print it."""
    return dict(found.row() if hasattr(found, "row") else found.as_dict())
