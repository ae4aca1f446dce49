"""Works as fixed rows of segment tokens on disk: read once, mapped into memory, grown to any size."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from functools import cache, cached_property, partial
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from ensue.atomic import replacing, write_atomic
from ensue.backends.suffixlm.segments import Tokens, frame_of, pack, sentence_tokens
from ensue.errors import EnsueError
from ensue.parallel import ordered_map
from ensue.progress import Progress, ignore
from ensue.text.works.headings import split_index
from ensue.text.works.readers import Headings, NotUsable, Unread, Work, find_works, read_work
from ensue.train.corpora import INDEX, find_corpus, find_or_make, smallest_dtype, source_state

# A work's name and segments by chapter, or the reason why it is left out.
_Outcome = tuple[str, list[list[Tokens]]] | str


@dataclass(frozen=True)
class Span:
    """A work's rows in the corpus: `[begin, end)`, and the rows that open its chapters."""

    work: str
    begin: int
    end: int
    openings: tuple[int, ...]


@dataclass(frozen=True)
class SegmentCorpus:
    """Segments of many works: `width` token ids a row with special tokens, padded with `pad`.

    `digest` is that of the rows and what they belong to, wherever they came from.
    """

    folder: Path
    width: int
    pad: int
    dtype: str
    spans: tuple[Span, ...]
    skipped: dict[str, int]
    segments: str = "segments.bin"
    digest: str = ""

    @cached_property
    def rows(self) -> npt.NDArray[Any]:
        return np.memmap(
            self.folder / self.segments, dtype=self.dtype, mode="r", shape=(len(self), self.width)
        )

    @cached_property
    def openings(self) -> npt.NDArray[np.int64]:
        """The rows that open a chapter."""
        return np.asarray([start for span in self.spans for start in span.openings], dtype=np.int64)

    def __len__(self) -> int:
        return self.spans[-1].end if self.spans else 0


def prepare_corpus(
    source: str,
    folder: Path,
    tokenizer_folder: Path,
    *,
    segment_tokens: int,
    headings: Headings = "robust",
    exclude: Iterable[str] = (),
    only: Iterable[str] | None = None,
    workers: int = 1,
    progress: Progress = ignore,
) -> SegmentCorpus:
    """Return the corpus of a source, made or, where the same was made before, found in the folder.

    A source that is itself a folder with a prepared corpus is used as it is.
    """
    left_out, wanted = sorted(set(exclude)), None if only is None else sorted(set(only))
    tokenizer = _tokenizer(tokenizer_folder)
    asked = {
        "source": str(Path(source).resolve()),
        "state": source_state(Path(source)),
        "tokenizer": hashlib.sha256(repr(sorted(tokenizer.get_vocab().items())).encode()).hexdigest(),
        "segment_tokens": segment_tokens,
        "headings": headings,
        "exclude": left_out,
        "only": wanted,
    }
    if (Path(source) / INDEX).is_file():
        return _ready(Path(source), asked)
    segment = partial(
        _segment, tokenizer_folder=tokenizer_folder, segment_tokens=segment_tokens, headings=headings
    )

    def make() -> None:
        outcomes = _reported(ordered_map(segment, find_works(source), workers), progress)
        _make(folder, asked, outcomes, tokenizer)

    return find_or_make(folder, asked, _load, make)


def _make(folder: Path, asked: dict[str, Any], outcomes: Iterable[_Outcome], tokenizer: Any) -> None:
    """Write the rows aside, put them in place under a name of their own, then say so in the index.

    At every moment the index speaks of whole rows: those of before until it is replaced. Rows it no longer speaks of
    are removed; whoever reads them has them mapped.
    """
    pad = int(tokenizer.pad_token_id or 0)
    dtype = smallest_dtype(len(tokenizer))
    name = f"segments-{hashlib.sha256(json.dumps(asked).encode()).hexdigest()[:16]}.bin"
    with replacing(folder / name) as part:
        with part.open("wb") as file:
            spans, skipped = _write_rows(file, asked, outcomes, pad, dtype)
        with part.open("rb") as file:
            rows = hashlib.file_digest(file, "sha256").hexdigest()
    index = {
        **asked,
        "pad": pad,
        "dtype": dtype,
        "segments": name,
        "rows": rows,
        "spans": [asdict(span) for span in spans],
        "skipped": dict(skipped),
    }
    write_atomic(folder / INDEX, [json.dumps(index)])
    for other in folder.glob("segments*.bin"):
        if other.name != name:
            other.unlink()


def _write_rows(
    file: BinaryIO, asked: dict[str, Any], outcomes: Iterable[_Outcome], pad: int, dtype: str
) -> tuple[list[Span], Counter[str]]:
    """Write the segments of the works asked for; return where each stands, and what was left out."""
    source, left_out, wanted = asked["source"], asked["exclude"], asked["only"]
    spans: list[Span] = []
    skipped: Counter[str] = Counter()
    seen: set[str] = set()
    total = 0
    for outcome in outcomes:
        if isinstance(outcome, str):
            skipped[outcome] += 1
            continue
        work, chapters = outcome
        if work in seen:
            raise EnsueError(f"{source} holds two works called {work}.")
        seen.add(work)
        if work in left_out or (wanted is not None and work not in wanted):
            skipped["excluded by name"] += 1
            continue
        rows = [row for chapter in chapters for row in chapter]
        if len(rows) < 2:
            skipped["works shorter than two segments"] += 1
            continue
        matrix = np.full((len(rows), asked["segment_tokens"]), pad, dtype=dtype)
        for place, row in enumerate(rows):
            matrix[place, : len(row)] = row
        file.write(matrix.tobytes())
        starts = np.cumsum([0, *(len(chapter) for chapter in chapters)])[:-1] + total
        openings = tuple(int(s) for s, chapter in zip(starts, chapters, strict=True) if chapter)
        spans.append(Span(work, total, total + len(rows), openings))
        total += len(rows)
    missing = [name for name in [*left_out, *(wanted or [])] if name not in seen]
    if missing:
        raise EnsueError(f"{source} has no work {missing[0]!r}; works are named by their id or file name.")
    if not spans:
        reasons = ", ".join(f"{reason}: {count}" for reason, count in skipped.items()) or "it is empty"
        raise EnsueError(f"{source} holds no work that could be used ({reasons}).")
    return spans, skipped


def _reported(outcomes: Iterable[_Outcome], progress: Progress) -> Iterator[_Outcome]:
    for done, outcome in enumerate(outcomes, 1):
        progress(done, 0, "works read")
        yield outcome


def work_segments(tokenizer: Any, work: Work, segment_tokens: int) -> list[list[Tokens]]:
    """Return the segments of each chapter, special tokens included; a chapter begins a new segment.

    Every heading carries the same index, as the examples of ChapterBreak do: counting chapters must not pay.
    """
    frame = frame_of(tokenizer, segment_tokens)
    index = next((found for c in work.chapters if (found := split_index(c.heading)[0])), "")
    chapters = []
    for chapter in work.chapters:
        text = f"{index}{split_index(chapter.heading)[1]}\n\n{chapter.text}"
        packed = pack(sentence_tokens(tokenizer, text), frame.room)
        chapters.append([frame.around(segment) for segment in packed])
    return chapters


def _segment(unread: Unread, tokenizer_folder: Path, segment_tokens: int, headings: Headings) -> _Outcome:
    """Return a work's name and segments, or the reason why it is left out."""
    try:
        work = read_work(unread, headings=headings)
    except NotUsable as left_out:
        return left_out.reason
    return work.id, work_segments(_tokenizer(tokenizer_folder), work, segment_tokens)


@cache
def _tokenizer(folder: Path) -> Any:
    import transformers

    return transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True)


def _load(folder: Path, index: dict[str, Any]) -> SegmentCorpus | None:
    """Return the corpus in the folder, if its rows are all there."""
    # Corpora of before 0.5 state no digest of their rows.
    rows = index["rows"] if "rows" in index else (folder / INDEX).read_text("utf-8")
    found = SegmentCorpus(
        folder,
        index["segment_tokens"],
        index["pad"],
        index["dtype"],
        tuple(Span(s["work"], s["begin"], s["end"], tuple(s["openings"])) for s in index["spans"]),
        index["skipped"],
        index.get("segments", "segments.bin"),
        hashlib.sha256(json.dumps([rows, index["spans"]]).encode()).hexdigest(),
    )
    # Mapped at once, for another process may put others in their place.
    return found if found.rows.nbytes == (folder / found.segments).stat().st_size else None


def _ready(folder: Path, asked: dict[str, Any]) -> SegmentCorpus:
    """Return a prepared corpus, which must have been made with this tokenizer and segment size, of all its works."""
    if asked["exclude"] or asked["only"]:
        raise EnsueError(f"{folder} is a prepared corpus; choose its works when it is made, not now.")
    found = find_corpus(folder, {key: asked[key] for key in ("tokenizer", "segment_tokens")}, _load)
    if found is None:
        raise EnsueError(f"{folder} was prepared with another tokenizer or --segment-tokens.")
    return found
