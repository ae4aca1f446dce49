"""Chat logs with annotated links: who belongs to which conversation."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from ensue.benchmarks.discoeval.builders.build import build
from ensue.benchmarks.discoeval.builders.corpus import read_conversations
from ensue.errors import EnsueError
from tests.benchmarks.discoeval.builders.inputs import read_rows

LOG = """[10:00] <ann> my fan is loud
=== bob [~bob@host] has joined #x
[10:01] <bob> Ann: which one
[10:01] <cid> any news, ann
[10:02] <ann> bob, the old one
[10:02] <dee> http://x: is down
"""


def write_log(folder: Path, log: str, links: str, stem: str = "2001-01-01") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{stem}.raw.txt").write_text(log, "utf-8")
    (folder / f"{stem}.annotation.txt").write_text(links, "utf-8")
    return folder


def test_links_make_conversations_and_names_are_hidden(tmp_path):
    folder = write_log(tmp_path / "chat", LOG, "0 0 -\n1 1 -\n0 2 -\n3 3 -\n2 4 -\n5 5 -\n")
    rows = list(read_conversations(folder, "utf-8"))
    assert [row.sentences for row in rows] == [
        ("my fan is loud", "<user>: which one", "<user>, the old one"),
        ("any news, ann",),
        ("http://x: is down",),
    ]
    assert [row.id for row in rows] == ["2001-01-01:0", "2001-01-01:3", "2001-01-01:5"]


@given(st.lists(st.tuples(st.integers(0, 19), st.integers(0, 19)), min_size=1, max_size=30))
def test_groups_are_the_connected_components(tmp_path_factory, links):
    log = "".join(f"[10:00] <ann> message {number}\n" for number in range(20))
    text = "".join(f"{one} {other} -\n" for one, other in links)
    folder = write_log(tmp_path_factory.mktemp("chat"), log, text)
    found = {row.sentences for row in read_conversations(folder, "utf-8")}
    ends = ([one for one, _ in links], [other for _, other in links])
    _, names = connected_components(coo_array(([1] * len(links), ends), shape=(20, 20)), directed=False)
    touched = sorted({number for link in links for number in link})
    expected = {tuple(f"message {n}" for n in touched if names[n] == name) for name in set(names[touched])}
    assert found == expected


def test_a_folder_of_logs_builds_the_chat_task(tmp_path):
    for day in range(1, 13):
        log = "".join(f"[10:{n:02d}] <ann> day {day} message {n}\n" for n in range(9))
        write_log(tmp_path / "chat", log, "".join(f"{n} {n + 1} -\n" for n in range(8)), f"2001-01-{day:02d}")
    done = build("DC/chat", str(tmp_path / "chat"), tmp_path / "out")
    for found in read_rows(done.folder).values():
        for label, *utterances in found:
            assert len({each.split()[1] for each in utterances}) == 2 - int(label)


@pytest.mark.parametrize("line", ["0 9 -", "0 x -", "0 1", "-1 0 -"])
def test_links_to_nowhere_are_named(tmp_path, line):
    folder = write_log(tmp_path / "chat", LOG, f"0 0 -\n{line}\n")
    with pytest.raises(EnsueError, match=r"annotation\.txt, line 2 links no two of the log's 6 lines"):
        list(read_conversations(folder, "utf-8"))


def test_an_annotation_without_its_log_is_refused(tmp_path):
    (tmp_path / "a.annotation.txt").write_text("0 0 -\n")
    with pytest.raises(EnsueError, match=r"has no log a\.raw\.txt beside it"):
        list(read_conversations(tmp_path, "utf-8"))
