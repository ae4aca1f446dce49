"""spaCy's small English pipeline, fetched and loaded on first use."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from ensue.errors import EnsueError
from ensue.fetch.catalog import catalog
from ensue.fetch.store import pull
from ensue.lazy import from_extra, load

PIPELINE = "en_core_web_sm"
# Nothing here looks at lemmas, and they are a third of the time.
_UNUSED = ["lemmatizer"]


def pipeline_identity() -> str:
    """Return the name and version of the pipeline: two of one identity find the same."""
    return f"{PIPELINE}-{catalog()[PIPELINE].version}"


def load_spacy(what: str, extra: str, folder: Path | None = None) -> Any:
    """Load the spaCy pipeline of a folder, by default the small English one; `what` needs it, an extra brings it."""
    # First of all, so that nothing is fetched for someone who cannot use it.
    from_extra("spacy", what, "spaCy", extra)
    return _loaded(folder or pull(catalog()[PIPELINE]))


@cache
def _loaded(folder: Path) -> Any:
    try:
        return load("spacy").load(folder, exclude=_UNUSED)
    except (OSError, ValueError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise EnsueError(f"{folder} is not a spaCy pipeline that can be loaded: {reason}") from None
