"""Hub data sets as rows, streamed through the `datasets` library, which is imported only here."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import count
from pathlib import Path
from typing import Any, TypeVar

from ensue.errors import EnsueError
from ensue.text.rows import Row, row_from_columns

_NAME = re.compile(r"(?P<parts>\w[\w.-]*(?:/\w[\w.-]*){0,2})(?::(?P<split>[\w.-]+))?")
_FILE_ENDINGS = frozenset(
    {".csv", ".gz", ".html", ".json", ".jsonl", ".md", ".ndjson", ".parquet", ".pdf", ".tsv", ".txt", ".zip"}
)
# Seconds until the hub counts as out of reach.
_PATIENCE = 10.0
_PREFERRED_SPLITS = ("test", "validation", "train")

Given = TypeVar("Given")


def is_hub_name(name: str) -> bool:
    """Whether a name reads as `owner/name`, `name/config` or `owner/name/config`, or has a `:split`.

    >>> is_hub_name("allenai/multi_lexsum:test"), is_hub_name("corpus/news.jsonl"), is_hub_name("corpus")
    (True, False, False)
    """
    match = _NAME.fullmatch(name)
    if match is None or Path(match["parts"]).suffix.lower() in _FILE_ENDINGS:
        return False
    return "/" in match["parts"] or match["split"] is not None


def read_hub(name: str, *, text_column: str | None = None) -> Iterator[Row]:
    """The rows of a hub data set; those without text come as empty rows, for nobody here can mend them."""
    path, _, wanted = name.partition(":")
    parts = path.split("/")
    datasets = hub_library(path)
    split, rows = _from_hub(name, lambda: _open(datasets, parts, wanted))
    stream = iter(rows)
    domain = parts[1] if len(parts) == 3 else parts[-1]
    for number in count(1):
        columns = _from_hub(name, lambda: next(stream, None))
        if columns is None:
            return
        yield row_from_columns(
            columns,
            place=f"{name}, row {number}",
            id=f"{split}:{number}",
            domain=domain,
            text_column=text_column,
        )


def hub_library(name: str) -> Any:
    """The `datasets` library, quiet, once the hub has answered; one sentence where either is not to be had.

    Asked itself for a data set, the library tries six times within half a minute and says so each time.
    """
    try:
        import datasets
        import huggingface_hub
    except ImportError as error:
        raise EnsueError(
            f"{name} does not exist here; to read it as a hub data set, install `ensue[hub]`."
        ) from error
    logging.getLogger("huggingface_hub").setLevel(logging.ERROR)
    # A folder is to the library what a data set is.
    if Path(name).is_dir() or huggingface_hub.constants.is_offline_mode():
        return datasets
    try:
        huggingface_hub.HfApi().dataset_info(name, timeout=_PATIENCE)
    except huggingface_hub.errors.HfHubHTTPError:
        pass  # it has answered; what, the library will say
    except Exception as error:
        raise EnsueError(
            f"{name} does not exist here and the hub cannot be reached ({type(error).__name__}); give a file or a "
            f"folder, or set HF_HUB_OFFLINE=1 to use what was fetched before."
        ) from error
    return datasets


def _open(datasets: Any, parts: list[str], wanted: str) -> tuple[str, Iterable[Mapping[str, Any]]]:
    """The name and the stream of the split that is wanted, or else of the first usual one."""
    splits = _load(datasets, parts)
    if wanted and wanted not in splits:
        raise EnsueError(f"{'/'.join(parts)} has no split {wanted}, only {', '.join(splits)}.")
    split = wanted or next((usual for usual in _PREFERRED_SPLITS if usual in splits), next(iter(splits)))
    return split, splits[split]


def _load(datasets: Any, parts: list[str]) -> Any:
    """All splits of a data set; two parts are an owner and a name or, failing that, a name and a config."""
    if len(parts) == 3:
        return datasets.load_dataset("/".join(parts[:2]), parts[2], streaming=True)
    try:
        return datasets.load_dataset("/".join(parts), streaming=True)
    except datasets.exceptions.DatasetNotFoundError:
        if len(parts) == 1:
            raise
        return datasets.load_dataset(*parts, streaming=True)


def _from_hub(name: str, call: Callable[[], Given]) -> Given:
    """What a call to the library gives, or one sentence: it raises dozens of unrelated types."""
    try:
        return call()
    except EnsueError:
        raise
    except Exception as error:
        said = " ".join(str(error).split())[:300].rstrip(".")
        raise EnsueError(
            f"{name} does not exist here and could not be read from the hub ({type(error).__name__}: {said})."
        ) from error
