"""Documents to train on: chosen by id, none of them twice, some held out by their ids alone."""

from __future__ import annotations

import json

import pytest

from ensue.errors import EnsueError
from ensue.text.documents import Document
from ensue.train.coherence.options import CoherenceOptions
from ensue.train.documents import held_out, read_sides
from tests.support import stories


def asked(tmp_path, data, **more):
    return CoherenceOptions(
        model="minilm", data=[str(one) for one in data], output=tmp_path / "out", dev_share=0.25, **more
    )


def test_documents_named_to_be_left_out_are(tmp_path):
    data = stories.write(tmp_path / "a.jsonl", 12)
    (tmp_path / "some").write_text("# tests\nstory-1\nstory-2\n")
    sides = read_sides(asked(tmp_path, [data], exclude=tmp_path / "some"))
    ids = {one.id for one in (*sides.train, *sides.dev)}
    assert ids == {f"story-{number}" for number in range(12)} - {"story-1", "story-2"}
    assert len(sides.dev) == round(0.25 * 10)


def test_a_name_that_no_document_has_is_refused(tmp_path):
    data = stories.write(tmp_path / "a.jsonl", 12)
    (tmp_path / "some").write_text("story-99\n")
    with pytest.raises(EnsueError, match="story-99"):
        read_sides(asked(tmp_path, [data], only=tmp_path / "some"))


def test_the_same_text_is_taken_once_and_short_documents_are_counted(tmp_path):
    rows = stories.stories(8)
    rows += [{"id": "again", "sentences": rows[0]["sentences"]}, {"id": "short", "sentences": ["One."]}]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    sides = read_sides(asked(tmp_path, [tmp_path / "a.jsonl"]), fewest=2)
    ids = {one.id for one in (*sides.train, *sides.dev)}
    assert ids == {f"story-{number}" for number in range(8)}
    assert sides.skipped == {
        "documents that are there twice": 1,
        "documents of fewer than 2 sentences": 1,
    }


def test_two_sources_with_one_id_are_refused(tmp_path):
    one, other = (stories.write(tmp_path / f"{name}.jsonl", 4, seed=n) for n, name in enumerate("ab"))
    with pytest.raises(EnsueError, match="'story-0'"):
        read_sides(asked(tmp_path, [one, other]))


def test_what_is_held_out_depends_on_seed_and_id_alone():
    documents = [Document(f"d{number}", ("A.",), "") for number in range(40)]
    train, dev = held_out(documents, 0.2, seed=1)
    assert len(dev) == 8
    assert sorted([*train, *dev], key=documents.index) == documents
    assert held_out(documents[::-1], 0.2, seed=1)[1] == dev[::-1]
    assert held_out(documents, 0.2, seed=2)[1] != dev


def test_the_learning_rate_is_by_width_unless_one_is_given(tmp_path):
    def rate(width, **more):
        return asked(tmp_path, ["a"], **more).counted_for(width, 100, 1).learning_rate

    assert [rate(width) for width in (384, 768, 1024)] == [1e-4, 3e-5, 1e-5]
    assert rate(384, lora=8) == 5e-4
    assert rate(384, learning_rate=0.01) == 0.01
