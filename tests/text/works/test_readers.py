"""Works: found in files and folders without reading them, told apart by kind, and read one by one."""

import json
import pickle
from pathlib import Path
from typing import Any

import pytest

from ensue.errors import EnsueError
from ensue.text.works.readers import Chapter, NotUsable, Unread, Work, find_works, read_work

PARAGRAPH = "The rain came down on the mill all that night and nobody slept for the noise. " * 10
NOVEL = "\n\n".join(f"CHAPTER {number}\n\n{PARAGRAPH}" for number in ("I", "II", "III"))
TEI = "<TEI><text><body><div type='chapter'><head>I</head><p>Rain.</p></div></body></text></TEI>"
OBJECT: dict[str, Any] = {
    "id": "mill",
    "title": "The Mill",
    "chapters": ["Rain.", {"head": "II", "text": "Wind."}],
}


def write(path: Path, content: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def only(source: Path) -> Unread:
    (found,) = find_works(source)
    return found


def test_a_folder_gives_its_works_in_order(tmp_path: Path) -> None:
    write(tmp_path / "b" / "mill.txt", NOVEL)
    write(tmp_path / "a.xml", TEI)
    write(tmp_path / "c.txt", "Title: The Mill\nRating: Mature\nLanguage: English\n\nChapter 1\n\nRain.")
    write(tmp_path / "d.html", "<p>Rain.</p>")
    write(tmp_path / "e.jsonl", json.dumps(OBJECT) + "\n\n" + json.dumps({**OBJECT, "Rating": "G"}) + "\n")
    write(tmp_path / "f.json", json.dumps(OBJECT, indent=1))
    write(tmp_path / "README.txt", "About.")
    write(tmp_path / ".hidden.txt", "No.")
    write(tmp_path / "cover.png", b"\x89PNG\0")
    found = list(find_works(tmp_path))
    places = [each.place.removeprefix(f"{tmp_path}/") for each in found]
    assert places == [
        "a.xml",
        "b/mill.txt",
        "c.txt",
        "d.html",
        "e.jsonl, line 1",
        "e.jsonl, line 3",
        "f.json",
    ]
    assert [each.kind for each in found] == ["tei", "gutenberg", "ao3", "ao3", "json", "ao3", "json"]
    assert pickle.loads(pickle.dumps(found)) == found
    assert [each.kind for each in find_works(tmp_path, "gutenberg")] == ["gutenberg", "gutenberg"]


def test_lines_are_handed_on_as_they_stand(tmp_path: Path) -> None:
    path = write(tmp_path / "works.jsonl", b'{"id": 1}\nnot json at all\n')
    assert [each.line for each in find_works(path)] == [b'{"id": 1}\n', b"not json at all\n"]


def test_works_are_found_one_at_a_time(tmp_path: Path) -> None:
    path = write(tmp_path / "works.jsonl", json.dumps(OBJECT) + "\n" + "\0\n")
    found = find_works(path)
    assert next(found).place.endswith("line 1")
    with pytest.raises(EnsueError, match="line 2 holds a NUL byte"):
        next(found)


@pytest.mark.parametrize("lines", [True, False])
def test_json_works(tmp_path: Path, lines: bool) -> None:
    second = {"head": " II\n The Wheel ", "paragraphs": ["Wind\nblew.", " ", "Sun."]}
    group = {"type": "group", "head": "BOOK II", "paragraphs": ["THE END"]}
    third = {"heading": "I", "text": "Rain\nfell.\n\n\nHail."}
    columns = {**OBJECT, "chapters": ["Rain.", second, group, third, {"title": "empty", "text": " "}]}
    path = write(tmp_path / ("works.jsonl" if lines else "works.json"), json.dumps(columns))
    assert read_work(only(path)) == Work(
        "mill",
        "The Mill",
        (
            Chapter("", "Rain."),
            Chapter("II\nThe Wheel", "Wind blew.\n\nSun."),
            Chapter("BOOK II\nI", "Rain fell.\n\nHail."),
        ),
        empty_chapters=1,
    )


def test_ids_fall_back_on_the_file(tmp_path: Path) -> None:
    line = json.dumps({"chapters": ["Rain."]})
    path = write(tmp_path / "works.jsonl", f"{line}\n{line}\n")
    assert [(work.id, work.title) for work in map(read_work, find_works(path))] == [
        ("works:1", "works:1"),
        ("works:2", "works:2"),
    ]
    assert read_work(only(write(tmp_path / "one.json", line))).id == "one"
    assert read_work(only(write(tmp_path / "mill.txt", NOVEL))).id == "mill"
    assert read_work(only(write(tmp_path / "tei.xml", TEI))).id == "tei"


def test_headings_are_found_either_way(tmp_path: Path) -> None:
    path = write(tmp_path / "mill.txt", NOVEL + "\n\nchapter and verse\n\nwere quoted.")
    assert len(read_work(only(path)).chapters) == 3
    assert len(read_work(only(path), headings="paper").chapters) == 4
    with pytest.raises(EnsueError, match="'paper' or the 'robust' way"):
        read_work(only(path), headings="guess")  # type: ignore[arg-type]


def test_not_usable_keeps_its_reason_across_processes() -> None:
    assert pickle.loads(pickle.dumps(NotUsable("no text"))).reason == "no text"


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("empty.txt", b"", "is empty"),
        ("empty.jsonl", b"\n \n", "is empty"),
        ("empty.xml", b"", "is empty"),
        ("binary.txt", b"MZ\0\1", "holds a NUL byte"),
        ("broken.xml", b"<TEI>", "is not well-formed XML"),
        ("broken.jsonl", b'{"id": 1,}', "line 1 is not JSON .* at column"),
        ("latin.jsonl", b'{"id": "caf\xe9"}', "line 1 is not UTF-8"),
        ("list.jsonl", b"[1]", "line 1 is not a JSON object but a list"),
        ("none.jsonl", b'{"id": 1}', "line 1 has no 'chapters', only 'id'"),
        ("number.jsonl", b'{"chapters": 3}', "line 1 has a number as 'chapters'"),
        ("item.jsonl", b'{"chapters": ["Rain.", 3]}', "line 1, chapter 2 is a number"),
        ("half.jsonl", b'{"chapters": ["\\ud800"]}', "half a character"),
        ("photo.png", b"\x89PNG", "is not a kind of file"),
    ],
)
def test_bad_input_is_told_in_one_sentence(tmp_path: Path, name: str, content: bytes, words: str) -> None:
    path = write(tmp_path / name, content)
    with pytest.raises(EnsueError, match=words) as caught:
        list(map(read_work, find_works(path)))
    message = str(caught.value)
    assert message.startswith(str(path))
    assert message.endswith(".")
    assert "\n" not in message


def test_bad_sources_are_told_in_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(EnsueError, match="does not exist"):
        list(find_works(tmp_path / "nowhere"))
    with pytest.raises(EnsueError, match="does not exist"):
        list(find_works(""))
    with pytest.raises(EnsueError, match="holds no file that works are read from"):
        list(find_works(tmp_path))
    with pytest.raises(EnsueError, match="not a kind of work"):
        list(find_works(tmp_path, "pdf"))  # type: ignore[arg-type]


def test_blank_works_are_not_usable(tmp_path: Path) -> None:
    for name, content in (
        ("a.txt", " \n"),
        ("b.jsonl", '{"chapters": []}'),
        ("c.jsonl", '{"chapters": [" "]}'),
    ):
        with pytest.raises(NotUsable, match="no text"):
            read_work(only(write(tmp_path / name, content)))
