"""Splits of a hub data set as rows, through the `datasets` library, which is imported only when one is asked for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ensue.benchmarks.nlu.examples import TaskSpec
from ensue.benchmarks.nlu.files import Row
from ensue.errors import EnsueError
from ensue.text.io.rows import hub_library


def hub_splits(name: str, config: str) -> dict[str, Iterable[Mapping[str, object]]]:
    """The splits of one configuration of a data set, streamed."""
    datasets = hub_library(name)
    try:
        loaded: Any = datasets.load_dataset(name, config, streaming=True)
        return {str(split): _guarded(name, rows) for split, rows in loaded.items()}
    except Exception as error:  # the library raises dozens of unrelated types
        raise _unreadable(name, error) from error


def named_label(row: Row, spec: TaskSpec) -> Row:
    """The row with its class number spelled as a label; -1 stands for a hidden one, which is taken away."""
    fields = dict(row.fields)
    label = fields.get("label")
    if label == -1:
        del fields["label"]
    elif spec.labels:
        if isinstance(label, bool) or not isinstance(label, int) or not 0 <= label < len(spec.labels):
            row.refuse(f"the label {label!r} is no number from 0 to {len(spec.labels) - 1}, nor -1")
        fields["label"] = spec.labels[label]
    return row._replace(fields=fields)


def _guarded(name: str, rows: Iterable[Mapping[str, object]]) -> Iterator[Mapping[str, object]]:
    """The rows of a stream, which may break off anywhere."""
    stream = iter(rows)
    while True:
        try:
            row = next(stream)
        except StopIteration:
            return
        except Exception as error:
            raise _unreadable(name, error) from error
        yield row


def _unreadable(name: str, error: Exception) -> EnsueError:
    said = " ".join(str(error).split())[:300].rstrip(".")
    return EnsueError(
        f"{name} does not exist here and could not be read from the hub ({type(error).__name__}: {said})."
    )
