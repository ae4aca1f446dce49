"""Documents as their source states them: rows from JSON lines, text files, folders and hub data sets."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any, TypeVar

from ensue.errors import EnsueError, os_errors
from ensue.jsonl import JSON_LINES, in_words, read_lines, text_lines
from ensue.lazy import from_extra

TEXT_FILES = frozenset({".txt", ""})

_SENTENCES = "sentences"
_TEXT_COLUMNS = ("text", "document", "article", "documents", "story")
_SURROGATE = re.compile("[\ud800-\udfff]")
# In a folder, a .json file beside the data is most often a description of it.
_JSON_LINES_IN_FOLDERS = JSON_LINES - {".json"}
_NO_DOCUMENTS = frozenset(
    {"AUTHORS", "CHANGELOG", "CITATION", "CONTRIBUTING", "COPYING", "LICENCE", "LICENSE", "MAKEFILE"}
    | {"NOTICE", "README", "SHA256SUMS"}
)
_GENERIC_STEMS = frozenset({"data", "dev", "documents", "test", "train", "val", "valid", "validation"})
_PENN_START = ".START"
_HUB_NAME = re.compile(r"(?P<parts>\w[\w.-]*(?:/\w[\w.-]*){0,2})(?::(?P<split>[\w.-]+))?")
_FILE_ENDINGS = frozenset(
    {".csv", ".gz", ".html", ".json", ".jsonl", ".md", ".ndjson", ".parquet", ".pdf", ".tsv", ".txt", ".zip"}
)
# Seconds until the hub counts as out of reach.
_HUB_TIMEOUT = 10.0
_PREFERRED_SPLITS = ("test", "validation", "train")

Given = TypeVar("Given")


@dataclass(frozen=True, slots=True)
class SourceRow:
    """A document before its text is split; `place` names it in messages.

    A row with neither text nor sentences has nothing to read.
    """

    place: str
    id: str
    default_domain: str
    domain: str | None = None
    text: str | None = None
    sentences: tuple[str, ...] | None = None

    @property
    def is_empty(self) -> bool:
        return self.text is None and self.sentences is None


def row_from_columns(
    columns: Mapping[str, Any], *, place: str, id: str, domain: str, text_column: str | None
) -> SourceRow:
    """Make a row from the columns of a table: of its sentences if it has them, or else of its text.

    `id` and `domain` stand in where the columns state none.
    """
    text, sentences = None, None
    column = _content_column(columns, place, text_column)
    value = columns[column]
    if isinstance(value, list) and column in (_SENTENCES, text_column):
        sentences = tuple(_sentence(each, number, place) for number, each in enumerate(value, 1)) or None
    elif isinstance(value, str) and column != _SENTENCES:
        text = checked(value, place) if value.strip() else None
    elif value is not None:
        wanted = "a list of strings" if column == _SENTENCES else "a string"
        raise EnsueError(f"{place} has {in_words(value)} as {column!r}, where {wanted} is expected.")
    return SourceRow(
        place,
        _id(columns, place) or id,
        domain,
        _name(columns.get("domain"), place, "domain, where a name"),
        text,
        sentences,
    )


def checked(text: str, place: str) -> str:
    """Return a string, or refuse it where it holds a character that no text may."""
    if "\0" in text:
        raise EnsueError(f"{place} holds a NUL character.")
    if not text.isascii() and (found := _SURROGATE.search(text)):
        raise EnsueError(f"{place} holds half a character (\\u{ord(found.group()):x}), which no text may.")
    return text


def read_bytes(path: Path, most: int = -1) -> bytes:
    """Read the bytes of a file, or the first of them; refuse an empty file."""
    with os_errors(path), path.open("rb") as file:
        data = file.read(most)
    if not data:
        raise EnsueError(f"{path} is empty: leave it out, or fetch it again.")
    return data


def printable(name: str) -> str:
    """Return a file name as text that can be written as UTF-8, whatever bytes it is made of."""
    return os.fsencode(name).decode("utf-8", "backslashreplace")


def _content_column(columns: Mapping[str, Any], place: str, text_column: str | None) -> str:
    """Return the column to read: the one asked for, or the first of the usual ones, null only if all are."""
    usual = (text_column,) if text_column else (_SENTENCES, *_TEXT_COLUMNS)
    present = [name for name in usual if name in columns]
    if not present:
        names = ", ".join(map(repr, columns)) or "no column at all"
        raise EnsueError(f"{place} has no {text_column or 'text or sentences'}, only {names}.")
    return next((name for name in present if columns[name] is not None), present[0])


def _sentence(value: Any, number: int, place: str) -> str:
    if not isinstance(value, str):
        raise EnsueError(f"{place} has {in_words(value)} as sentence {number}, where a string is expected.")
    if not value.strip():
        raise EnsueError(f"{place} has an empty sentence (number {number}).")
    return checked(value, place)


def _id(columns: Mapping[str, Any], place: str) -> str | None:
    value = columns.get("id")
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return _name(value, place, "id, where a name or a whole number")


def _name(value: Any, place: str, wanted: str) -> str | None:
    if value is None:
        return None
    if isinstance(value, str) and value:
        return checked(value, place)
    raise EnsueError(f"{place} has {in_words(value)} as its {wanted} is expected.")


def read_json_lines(
    path: Path, *, label: str | None = None, text_column: str | None = None, encoding: str = "utf-8"
) -> Iterator[SourceRow]:
    """Read one row from each line of a JSON-lines file; skip blank lines."""
    label = label or printable(path.stem)
    domain = path.resolve().parent.name if path.stem.lower() in _GENERIC_STEMS else path.stem
    for place, columns in json_objects(path, encoding):
        row = row_from_columns(
            columns,
            place=place,
            id=f"{label}:{place.rpartition(' ')[2]}",
            domain=printable(domain or path.stem),
            text_column=text_column,
        )
        if row.is_empty:
            raise EnsueError(f"{place} is a document with no text.")
        yield row


def json_objects(path: Path, encoding: str = "utf-8") -> Iterator[tuple[str, dict[str, Any]]]:
    """Read the objects of a JSON-lines file, each with its place for messages; refuse a file without any."""
    empty = True
    for number, columns in read_lines(path, encoding):
        empty = False
        yield f"{path}, line {number}", columns
    if empty:
        raise EnsueError(f"{path} is empty.")


def read_text_file(
    path: Path, *, label: str | None = None, domain: str | None = None, encoding: str = "utf-8"
) -> SourceRow:
    """Read a text file as one row, without the `.START` lines of the Penn Treebank's raw files.

    The line breaks a file ends with are the file's, not the text's.
    """
    lines = [line for _, line in text_lines(path, encoding)]
    if not lines:
        raise EnsueError(f"{path} is empty.")
    if lines[0].strip() == _PENN_START:
        # Some of those files hold two articles, so a mark further on leaves a blank line.
        lines = ["\n" if line.strip() == _PENN_START else line for line in lines]
    text = "".join(lines).rstrip("\n")
    if not text.strip():
        raise EnsueError(f"{path} is a document with no text.")
    domain = domain or path.resolve().parent.name or path.stem
    return SourceRow(str(path), label or printable(path.name), printable(domain), text=text)


def read_folder(
    folder: Path, *, text_column: str | None = None, encoding: str = "utf-8"
) -> Iterator[SourceRow]:
    """Read the documents in a folder and its sub-folders, in the order of their relative paths."""
    relative = sorted((path.relative_to(folder) for path in files_below(folder)), key=Path.as_posix)
    paths = [path for path in relative if path.stem.upper() not in _NO_DOCUMENTS]
    texts = [path for path in paths if path.suffix.lower() in TEXT_FILES]
    tables = [path for path in paths if path.suffix.lower() in _JSON_LINES_IN_FOLDERS]
    if texts and tables:
        both = f"text ({texts[0]}) and JSON Lines files ({tables[0]})"
        raise EnsueError(f"{folder} holds both {both}, so name the file or folder to read.")
    if not texts and not tables:
        raise EnsueError(f"{folder} holds no .txt, extensionless or .jsonl file to read documents from.")
    for path in texts:
        label = printable(path.as_posix())
        yield read_text_file(folder / path, label=label, domain=folder.resolve().name, encoding=encoding)
    for path in tables:
        label = printable(path.with_suffix("").as_posix())
        yield from read_json_lines(folder / path, label=label, text_column=text_column, encoding=encoding)


def is_read_of(source: str | Path, file: Path) -> bool:
    """Say whether a file is what a source names, or would be read as one of the documents of a folder."""
    path = Path(source).expanduser()
    if path.is_dir():
        read = file.suffix.lower() in TEXT_FILES | _JSON_LINES_IN_FOLDERS
        return read and path.resolve() in file.resolve().parents
    return path.is_file() and file.is_file() and path.samefile(file)


def files_below(folder: Path) -> Iterator[Path]:
    """Yield the files below a folder, by name, those of sub-folders last; skip hidden ones."""

    def unreadable(error: OSError) -> None:
        raise EnsueError(f"{error.filename} cannot be read: {error.strerror}.") from error

    for where, folders, names in os.walk(folder, onerror=unreadable):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            if not name.startswith(".") and os.path.isfile(os.path.join(where, name)):
                yield Path(where, name)


def read_ids(path: Path) -> list[str]:
    """Read a file of ids, one a line; skip blank lines and those that begin with #."""
    try:
        with os_errors(path):
            lines = path.read_text("utf-8").splitlines()
    except UnicodeDecodeError as error:
        raise EnsueError(f"{path} is not a readable list of ids: {error}.") from error
    found = [line.strip() for line in lines if line.strip() and not line.startswith("#")]
    if not found:
        raise EnsueError(f"{path} has no id: write one a line.")
    return list(dict.fromkeys(found))


def is_hub_name(name: str) -> bool:
    """Return whether a name reads as `owner/name`, `name/config` or `owner/name/config`, or has a `:split`.

    >>> is_hub_name("allenai/multi_lexsum:test"), is_hub_name("corpus/news.jsonl"), is_hub_name("corpus")
    (True, False, False)
    """
    match = _HUB_NAME.fullmatch(name)
    if match is None or Path(match["parts"]).suffix.lower() in _FILE_ENDINGS:
        return False
    return "/" in match["parts"] or match["split"] is not None


def path_of(source: str | Path, what: str) -> Path | None:
    """Return where a source of `what` lies, a file or a folder; None where it is a hub data set."""
    if not str(source):
        raise EnsueError(f"No {what} named: give a file, a folder or a hub data set.")
    path = Path(source).expanduser()
    # Not Path.exists, which raises on a name that is too long or holds a NUL.
    if not os.path.exists(path):
        if isinstance(source, str) and is_hub_name(source):
            return None
        raise EnsueError(f"{source} does not exist.")
    if not path.is_dir() and not path.is_file():
        raise EnsueError(f"{source} is neither a file nor a folder.")
    return path


def read_hub(name: str, *, text_column: str | None = None) -> Iterator[SourceRow]:
    """Read the rows of a hub data set; those without text come as empty rows, since the user cannot mend them."""
    path, _, wanted = name.partition(":")
    parts = path.split("/")
    datasets = hub_library(path)
    split, rows = from_hub(name, lambda: _open(datasets, parts, wanted))
    stream = iter(rows)
    domain = parts[1] if len(parts) == 3 else parts[-1]
    for number in count(1):
        columns = from_hub(name, lambda: next(stream, None))
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
    """Import the `datasets` library, quiet, and check that the hub answers; one sentence where either fails.

    Asked itself for a data set, the library tries six times within half a minute and says so each time.
    """
    what = f"{name} does not exist here; reading it as a hub data set"
    datasets, huggingface_hub = (
        from_extra(each, what, each, "hub") for each in ("datasets", "huggingface_hub")
    )
    logging.getLogger("huggingface_hub").setLevel(logging.ERROR)
    # A folder is to the library what a data set is.
    if Path(name).is_dir() or huggingface_hub.constants.is_offline_mode():
        return datasets
    try:
        huggingface_hub.HfApi().dataset_info(name, timeout=_HUB_TIMEOUT)
    except huggingface_hub.errors.HfHubHTTPError:
        pass  # it has answered; what, the library will say
    except Exception as error:
        raise EnsueError(
            f"{name} does not exist here and the hub cannot be reached ({type(error).__name__}); give a file or a "
            f"folder, or set HF_HUB_OFFLINE=1 to use what was fetched before."
        ) from error
    return datasets


def _open(datasets: Any, parts: list[str], wanted: str) -> tuple[str, Iterable[Mapping[str, Any]]]:
    """Return the name and the stream of the split that is wanted, or else of the first usual one."""
    splits = _load(datasets, parts)
    if wanted and wanted not in splits:
        raise EnsueError(f"{'/'.join(parts)} has no split {wanted}, only {', '.join(splits)}.")
    split = wanted or next((usual for usual in _PREFERRED_SPLITS if usual in splits), next(iter(splits)))
    return split, splits[split]


def _load(datasets: Any, parts: list[str]) -> Any:
    """Load all splits; two parts are an owner and a name or, failing that, a name and a config."""
    if len(parts) == 3:
        return datasets.load_dataset("/".join(parts[:2]), parts[2], streaming=True)
    try:
        return datasets.load_dataset("/".join(parts), streaming=True)
    except datasets.exceptions.DatasetNotFoundError:
        if len(parts) == 1:
            raise
        return datasets.load_dataset(*parts, streaming=True)


def from_hub(name: str, call: Callable[[], Given]) -> Given:
    """Call the library; raise one sentence where it raises any of its dozens of types."""
    try:
        return call()
    except EnsueError:
        raise
    except Exception as error:
        message = " ".join(str(error).split())[:300].rstrip(".")
        raise EnsueError(
            f"{name} does not exist here and could not be read from the hub ({type(error).__name__}: {message})."
        ) from error
