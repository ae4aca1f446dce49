"""The published format: read whole, refused in one sentence, counted where an example cannot be used."""

from __future__ import annotations

import gzip
import hashlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ensue.benchmarks.chapterbreak.data.examples import DataWriter, Example, example_id, read_examples
from ensue.errors import EnsueError


def row(tag="a", **changes):
    made = {
        "ctx": f"The lamp went out in {tag}.",
        "pos": f"Morning came to {tag}.",
        "negs": [f"Year {n} came to {tag}." for n in range(5)],
    }
    return made | changes


def write(path, data):
    path.write_text(json.dumps(data), "utf-8")
    return str(path)


def test_every_split_and_work_is_read_in_file_order(tmp_path):
    data = {"pg19": {"12": [row("a"), row("b")]}, "ao3": {"7": [row("c")]}}
    found = read_examples(write(tmp_path / "chapterbreak_ctx_512.json", data))
    assert [e.id for e in found.items] == ["pg19/12/0", "pg19/12/1", "ao3/7/0"]
    first = found.items[0]
    assert (first.split, first.work, first.boundary) == ("pg19", "12", "chapter")
    assert (first.context, first.gold) == ("The lamp went out in a.", "Morning came to a.")
    assert first.negatives == tuple(row("a")["negs"])
    assert (found.skipped, found.notes) == ({}, {})


def test_a_split_and_a_limit_choose(tmp_path):
    data = {"pg19": {"12": [row(), row()], "13": [row()]}, "mine": {"7": [row(), row()]}}
    path = write(tmp_path / "x.json", data)
    assert [e.id for e in read_examples(path, split="mine").items] == ["mine/7/0", "mine/7/1"]
    assert [e.id for e in read_examples(path, limit=1).items] == ["pg19/12/0", "mine/7/0"]
    assert len(read_examples(path, limit=3).items) == 5
    with pytest.raises(EnsueError, match=r"no split 'ao3'; it has pg19, mine"):
        read_examples(path, split="ao3")
    with pytest.raises(EnsueError, match="at least 1"):
        read_examples(path, limit=0)


def test_a_folder_gives_all_boundaries_and_the_longest_contexts_alone(tmp_path):
    for name in ("chapterbreak_ctx_512", "chapterbreak_ctx_8192", "cause_ctx_256", "dialog"):
        write(tmp_path / f"{name}.json", {"pg19": {"1": [row(name)]}})
    write(tmp_path / "build.json", {"settings": {}})
    found = read_examples(str(tmp_path))
    assert [e.id for e in found.items] == ["cause:pg19/1/0", "pg19/1/0", "dialogue:pg19/1/0"]
    assert found.items[1].context == "The lamp went out in chapterbreak_ctx_8192."
    assert found.notes == {"files of shorter contexts not read": 1}
    assert len(read_examples(str(tmp_path), limit=1).items) == 3


def test_gzip_is_read_and_the_fingerprint_is_of_the_examples(tmp_path):
    data = {"pg19": {"1": [row()]}}
    plain = read_examples(write(tmp_path / "a.json", data))
    packed = tmp_path / "b.json.gz"
    packed.write_bytes(gzip.compress(json.dumps(data).encode()))
    assert read_examples(str(packed)).fingerprint == plain.fingerprint
    other = read_examples(write(tmp_path / "c.json", {"pg19": {"1": [row(pos="Night came.")]}}))
    assert other.fingerprint != plain.fingerprint


def test_what_cannot_be_used_is_counted_and_the_numbers_stay(tmp_path):
    rows = [
        row(ctx=" "),
        row(pos=""),
        row(negs=[]),
        row(negs=["a", "b", "", "c", "d"]),
        row(negs=["one", "two"]),
    ]
    found = read_examples(write(tmp_path / "x.json", {"pg19": {"1": rows}}))
    assert [e.id for e in found.items] == ["pg19/1/4"]
    assert found.skipped == {
        "examples with an empty context": 1,
        "examples with an empty gold suffix": 1,
        "examples without negatives": 1,
        "examples with an empty negative": 1,
    }
    assert found.notes == {"examples with fewer than five negatives": 1}


NO_NEGS = {"ctx": "a", "pos": "b"}
FAULTS = {
    "no negs": ({"pg19": {"12": [row(), NO_NEGS]}}, "split 'pg19', work '12', number 1 has no 'negs'"),
    "no ctx": ({"pg19": {"12": [{"pos": "b", "negs": ["c"]}]}}, "number 0 has no 'ctx'"),
    "pos is null": ({"pg19": {"12": [row(pos=None)]}}, "has null as 'pos'"),
    "negs of numbers": ({"pg19": {"12": [row(negs=[1])]}}, "list of strings"),
    "negs is a string": ({"pg19": {"12": [row(negs="abc")]}}, "list of strings"),
    "an example is a list": ({"pg19": {"12": [[]]}}, "must be an object"),
    "a work is an object": ({"pg19": {"12": row()}}, "work '12' must be a list"),
    "a split is a list": ({"pg19": [row()]}, "split 'pg19' is not ChapterBreak data"),
    "a list": ([row()], "top level"),
    "no split": ({}, "has no example"),
    "no work": ({"pg19": {}}, "has no example"),
    "no row": ({"pg19": {"12": []}}, "has no example"),
    "nothing usable": ({"pg19": {"12": [row(ctx="")]}}, "empty context: 1"),
}


@pytest.mark.parametrize("case", FAULTS)
def test_a_fault_of_the_file_is_one_sentence(tmp_path, case):
    data, words = FAULTS[case]
    with pytest.raises(EnsueError) as error:
        read_examples(write(tmp_path / "x.json", data))
    assert words in str(error.value)
    assert "x.json" in str(error.value)


BYTES = {
    "x.json": [(b"", "is empty"), (b"{oops", "is not JSON"), ('{"é": 1}'.encode("latin-1"), "not UTF-8")],
    "y.json": [(b'{"pg19": {"1": [], "1": []}}', "'1' twice"), (b"[" * 100_000, "not JSON")],
    "z.json.gz": [
        (b"no gzip", "cannot be unpacked"),
        (gzip.compress(b"{}", mtime=0)[:-9], "cannot be unpacked"),
    ],
    "z.jsonl": [(b"{}", "give a .json")],
}


@pytest.mark.parametrize(
    ("name", "content", "words"), [(n, *case) for n, cases in BYTES.items() for case in cases]
)
def test_a_file_that_cannot_be_parsed_is_one_sentence(tmp_path, name, content, words):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(EnsueError) as error:
        read_examples(str(tmp_path / name))
    assert words in str(error.value)
    assert name in str(error.value)


def test_places_without_data_are_one_sentence(tmp_path):
    for source, words in [("", "No ChapterBreak data"), (str(tmp_path / "no.json"), "does not exist")]:
        with pytest.raises(EnsueError, match=words):
            read_examples(source)
    with pytest.raises(EnsueError, match="holds no ChapterBreak data"):
        read_examples(str(tmp_path))


def test_the_hub_that_cannot_be_reached_is_one_sentence(tmp_path, monkeypatch):
    huggingface_hub = pytest.importorskip("huggingface_hub")

    def unreachable(*_, **__):
        raise ConnectionError("no route.\nat all")

    monkeypatch.setattr(huggingface_hub, "snapshot_download", unreachable)
    with pytest.raises(
        EnsueError, match=r"simsun131/chapterbreak .*\(ConnectionError: no route. at all\)\.$"
    ):
        read_examples("simsun131/chapterbreak")
    write(tmp_path / "chapterbreak_ctx_512.json", {"pg19": {"1": [row()]}})
    monkeypatch.setattr(huggingface_hub, "snapshot_download", lambda *_, **__: str(tmp_path))
    assert len(read_examples("simsun131/chapterbreak").items) == 1


def test_two_files_with_the_same_examples_are_refused(tmp_path):
    write(tmp_path / "a.json", {"pg19": {"1": [row()]}})
    write(tmp_path / "b.json", {"pg19": {"1": [row()]}})
    with pytest.raises(EnsueError, match=r"b\.json has the example pg19/1/0, which .*a\.json"):
        read_examples(str(tmp_path))


texts = st.text(st.characters(), min_size=1).filter(lambda text: text.strip())


@given(
    st.text(max_size=3),
    st.dictionaries(
        st.text(max_size=3),
        st.lists(st.tuples(texts, texts, st.lists(texts, min_size=5, max_size=5)), min_size=1, max_size=2),
        min_size=1,
        max_size=3,
    ),
)
def test_what_is_written_is_read_again(tmp_path_factory, split, works):
    folder = tmp_path_factory.mktemp("written")
    examples = [
        Example(example_id("cause", split, work, number), split, work, "cause", ctx, pos, tuple(negs))
        for work, rows in works.items()
        for number, (ctx, pos, negs) in enumerate(rows)
    ]
    writer = DataWriter(folder / "cause.json", split)
    for work in works:
        writer.add(work, [e for e in examples if e.work == work])
    assert writer.finish() == hashlib.sha256((folder / "cause.json").read_bytes()).hexdigest()
    ids = [e.id for e in examples]
    if len(set(ids)) == len(ids):
        assert read_examples(str(folder / "cause.json")).items == examples
    assert [path.name for path in folder.iterdir()] == ["cause.json"]
