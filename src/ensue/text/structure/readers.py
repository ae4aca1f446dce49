"""Read structured documents from files and folders: WikiText, MediaWiki, Markdown, HTML, works with chapters."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from ensue.errors import EnsueError
from ensue.text.io.rows import files_below, printable, read_bytes
from ensue.text.structure.pages import read_html, read_markdown
from ensue.text.structure.sections import Event, Heading, StructuredDocument, build_document
from ensue.text.structure.wiki import is_dump, read_mediawiki, read_wikitext, wikitext_heading
from ensue.text.works.chapters import NotUsable, Work, decoded, unix_lines
from ensue.text.works.readers import find_works, read_work

_BY_ENDING = {
    ending: kind
    for kind, endings in {
        "wikitext": ".tokens .raw",
        "markdown": ".md .markdown",
        "html": ".html .htm .xhtml",
        "works": ".json .jsonl .ndjson .tei",
        "mediawiki": ".bz2",
    }.items()
    for ending in endings.split()
}
_NO_TEXTS = frozenset(
    {"authors", "changelog", "copying", "licence", "license", "notice", "readme", "makefile"}
)


def read_structured(source: str | Path, skipped: Counter[str] | None = None) -> Iterator[StructuredDocument]:
    """Read the documents of a file, or of a folder and those below it by name, one held at a time.

    What a file is says its ending and, for .txt and .xml, how it begins. In a folder, hidden files and those of no
    known ending are skipped. `skipped` counts what is left out, by reason.
    """
    path = Path(source).expanduser()
    if not str(source) or not os.path.exists(path):
        raise EnsueError(f"{source or 'The source of documents'} does not exist: give a file or a folder.")
    return _documents(path, Counter[str]() if skipped is None else skipped)


def _documents(path: Path, skipped: Counter[str]) -> Iterator[StructuredDocument]:
    found = False
    for file, label in _files(path):
        kind = _kind_of(file, alone=file == path)
        if kind is None:
            skipped[f"files ending in {file.suffix or 'nothing'}"] += 1
            continue
        for document in _in_file(file, label, kind, skipped):
            found = True
            yield document
    if not found:
        reasons = ", ".join(f"{reason}: {count}" for reason, count in skipped.items()) or "it is empty"
        raise EnsueError(f"{path} holds no document that could be read ({reasons}).")


def _files(path: Path) -> Iterator[tuple[Path, str]]:
    """Yield a file, or those below a folder, with a name for its documents that does not depend on the folder's."""
    if not path.is_dir():
        yield path, printable(path.name)
        return
    for file in files_below(path):
        yield file, printable(file.relative_to(path).as_posix())


def _kind_of(path: Path, alone: bool) -> str | None:
    """Return what a file is; None where it is skipped, which a file named on its own never is."""
    suffix = path.suffix.lower()
    if suffix == ".xml":
        return "mediawiki" if is_dump(path) else "works"
    if suffix in (".txt", ""):
        if not alone and path.stem.lower() in _NO_TEXTS:
            return None
        return "wikitext" if _begins_with_heading(path) else "works"
    if suffix not in _BY_ENDING and alone:
        known = ", ".join(sorted([*_BY_ENDING, ".txt", ".xml"]))
        raise EnsueError(f"{path} is not a kind of file that documents are read from: give {known}.")
    return _BY_ENDING.get(suffix)


def _begins_with_heading(path: Path) -> bool:
    head = read_bytes(path, 4096)
    heading = wikitext_heading(head.strip().partition(b"\n")[0].decode("utf-8", "replace").strip())
    return heading is not None and heading.rank == 1


def _in_file(path: Path, label: str, kind: str, skipped: Counter[str]) -> Iterator[StructuredDocument]:
    if kind == "works":
        yield from _works(path, label, skipped)
    elif kind == "wikitext":
        for number, (title, events) in enumerate(read_wikitext(path), 1):
            yield from _built(f"{label}:{number}", title, events, skipped)
    elif kind == "mediawiki":
        for page, title, events in read_mediawiki(path, skipped):
            yield from _built(f"{label}:{page}", title, events, skipped)
    else:
        text = unix_lines(decoded(read_bytes(path), str(path)))
        if not text.strip():
            raise EnsueError(f"{path} is empty: leave it out, or fetch it again.")
        title, events = read_markdown(text) if kind == "markdown" else read_html(text)
        yield from _built(label, title or path.stem, events, skipped)


def _built(id: str, title: str, events: list[Event], skipped: Counter[str]) -> Iterator[StructuredDocument]:
    try:
        yield build_document(id, title, events)
    except NotUsable as left_out:
        skipped[left_out.reason] += 1


def _works(path: Path, label: str, skipped: Counter[str]) -> Iterator[StructuredDocument]:
    """Read works as documents whose sections are their chapters."""
    for unread in find_works(path):
        try:
            work = read_work(unread)
        except NotUsable as left_out:
            skipped[left_out.reason] += 1
            continue
        yield from _built(f"{label}:{work.id}", work.title, list(_chapters(work)), skipped)


def _chapters(work: Work) -> Iterator[Event]:
    for chapter in work.chapters:
        yield Heading(1, chapter.heading)
        yield from chapter.text.split("\n\n")
