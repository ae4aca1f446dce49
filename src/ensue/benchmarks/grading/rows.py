"""Rows of a stranger's table, one a line: JSON objects, or columns divided by commas or tabs under a header."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from typing import Any

from ensue.benchmarks.grading.values import Wrong, decode, object_of, parse_json, shown

Row = dict[str, Any]


def table_rows(numbered: Iterator[tuple[int, bytes]]) -> Iterator[tuple[int, Row | Wrong]]:
    """Return each line as a row, or what is wrong with it; the first line says which kind of table it is.

    >>> list(table_rows(enumerate([b"id,prediction", b"7,yes"], 1)))
    [(2, {'id': '7', 'prediction': 'yes'})]
    """
    names: list[str] | None = None
    divider = ""
    for number, line in numbered:
        try:
            if number == 1 and not line.lstrip().startswith(b"{"):
                divider = "\t" if b"\t" in line else ","
                names = _fields(line, divider)
                if len(set(names)) != len(names):
                    raise Wrong("a column is named twice")
                continue
            yield (
                number,
                object_of(parse_json(line), "the line")
                if names is None
                else _row(names, _fields(line, divider)),
            )
        except Wrong as wrong:
            yield number, wrong
            if number == 1:
                # Without its header nothing can be said of the rows.
                return


def _fields(line: bytes, divider: str) -> list[str]:
    text = decode(line)
    if not text.strip():
        raise Wrong("the line is blank")
    if divider == "\t":
        return text.split("\t")
    try:
        return next(csv.reader([text], strict=True))
    except csv.Error as error:
        raise Wrong(f"not a row of columns divided by commas ({error})") from None


def _row(names: list[str], fields: list[str]) -> Row:
    if len(fields) != len(names):
        raise Wrong(f"{len(fields)} columns, where the header {shown(','.join(names))} has {len(names)}")
    return dict(zip(names, fields, strict=True))
