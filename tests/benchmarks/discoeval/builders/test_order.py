"""Sentence Position and Binary Sentence Ordering: what is moved, where from, and for whom."""

from __future__ import annotations

import json
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ensue.benchmarks.discoeval.builders.build import build
from ensue.benchmarks.discoeval.builders.common import BuildOptions
from ensue.benchmarks.discoeval.builders.order import moved
from ensue.errors import EnsueError
from tests.benchmarks.discoeval.builders.inputs import disjoint, documents, origin, read_rows, write_lines

ORDER = ("one", "two", "three", "four", "five")
SMALL = BuildOptions(train=50, valid=20, test=20)


@given(st.lists(st.integers(), min_size=1, max_size=8, unique=True), st.data())
def test_moving_a_sentence_back_gives_the_original(items, data):
    place = data.draw(st.integers(0, len(items) - 1))
    first, *others = moved(items, place)
    others.insert(place, first)
    assert others == items


def test_positions_are_balanced_true_and_of_different_documents(tmp_path):
    source = write_lines(tmp_path / "wiki.jsonl", documents(120, (5, 7)))
    done = build("SP/wiki", source, tmp_path / "out", SMALL)
    rows = read_rows(done.folder)
    assert {split: len(found) for split, found in rows.items()} == {"train": 50, "valid": 20, "test": 20}
    for found in rows.values():
        assert set(Counter(row[0] for row in found).values()) == {len(found) // 5}
        for label, *sentences in found:
            places = [origin(each) for each in sentences]
            assert len({document for document, _ in places}) == 1
            assert places[0][1] == int(label)
            assert [place for _, place in places[1:]] == [n for n in range(5) if n != int(label)]
    assert disjoint([{origin(row[1])[0] for row in found} for found in rows.values()])
    assert done.statistics["examples"]["train"]["documents"] == 50


def test_the_others_can_be_shuffled(tmp_path):
    source = write_lines(tmp_path / "wiki.jsonl", documents(120))
    plain = read_rows(build("SP/wiki", source, tmp_path / "a", SMALL).folder)
    options = BuildOptions(train=50, valid=20, test=20, others="shuffled")
    mixed = read_rows(build("SP/wiki", source, tmp_path / "b", options).folder)
    assert [row[:2] for row in plain["test"]] != []
    orders = Counter()
    for label, *sentences in mixed["train"]:
        places = [origin(each)[1] for each in sentences]
        assert places[0] == int(label)
        assert sorted(places) == list(range(5))
        orders[places[1:] == sorted(places[1:])] += 1
    assert orders[False] > 40
    with pytest.raises(EnsueError, match="in-order or shuffled"):
        build("SP/wiki", source, tmp_path / "c", BuildOptions(others="sorted"))


def test_stories_have_exactly_five_sentences_and_shorter_documents_are_counted(tmp_path):
    source = write_lines(tmp_path / "s.jsonl", documents(30, (5, 6, 4)))
    done = build("SP/rocstory", source, tmp_path / "out")
    assert done.skipped == {
        "documents of fewer than five sentences": 10,
        "stories of more than five sentences": 10,
    }
    rows = read_rows(done.folder)
    assert sum(map(len, rows.values())) <= 10
    assert all(origin(row[1])[0] % 3 == 0 for found in rows.values() for row in found)


def test_roc_stories_are_read_from_their_csv(tmp_path):
    header = "storyid,storytitle,sentence1,sentence2,sentence3,sentence4,sentence5\n"
    lines = [
        f'id{n},A title,"Mia, {n}, ran.",She fell.,She {n} rose.,"She\nlaughed.",All did.\n' for n in range(9)
    ]
    path = tmp_path / "roc.csv"
    path.write_text(header + "".join(lines), "utf-8")
    rows = read_rows(build("SP/rocstory", str(path), tmp_path / "out").folder)
    for label, first, *others in rows["train"]:
        others.insert(int(label), first)
        assert others[0].startswith("Mia, ")
        assert others[3:] == ["She laughed.", "All did."]
    path.write_text(header + "a,b,One.,Two.,,Four.,Five.\n", "utf-8")
    with pytest.raises(EnsueError, match=r"roc\.csv, line 2 has no five sentences"):
        build("SP/rocstory", str(path), tmp_path / "bad")
    path.write_text("a,b\n1,2\n", "utf-8")
    with pytest.raises(EnsueError, match=r"line 1 names no column 'sentence1'"):
        build("SP/rocstory", str(path), tmp_path / "bad")


def test_pairs_are_neighbours_in_their_true_order(tmp_path):
    source = write_lines(tmp_path / "wiki.jsonl", documents(1200, (9, 2, 1)))
    done = build("BSO/arxiv", source, tmp_path / "out", BuildOptions(train=500, valid=150, test=150))
    rows = read_rows(done.folder)
    assert done.skipped == {"documents of fewer than two sentences": 400}
    firsts: Counter[int] = Counter()
    for found in rows.values():
        for one, other in found:
            (document, place), following = origin(one), origin(other)
            assert following == (document, place + 1)
            if document % 3 == 0:
                firsts[place] += 1
    # Four pairs among the first five sentences, each as likely: 100 of 400 with a deviation of 9.
    assert set(firsts) == {0, 1, 2, 3}
    assert all(60 < count < 140 for count in firsts.values())
    assert disjoint([{origin(row[0])[0] for row in found} for found in rows.values()])


def test_the_same_seed_gives_the_same_bytes_with_any_number_of_workers(tmp_path):
    texts = [
        {
            "id": n,
            "text": " ".join(f"The {word} came on day {n}." for word in ("fox", "hen", "owl", "elk", "bat")),
        }
        for n in range(200)
    ]
    source = write_lines(tmp_path / "wiki.jsonl", texts)
    one = build("SP/wiki", source, tmp_path / "a", SMALL).fingerprint
    two = build("SP/wiki", source, tmp_path / "b", SMALL, workers=2).fingerprint
    other = build(
        "SP/wiki", source, tmp_path / "c", BuildOptions(seed=1, train=50, valid=20, test=20)
    ).fingerprint
    assert one == two
    assert all(one[name] != other[name] for name in one)


def test_repeated_documents_are_left_out_and_repeated_ids_refused(tmp_path):
    rows = documents(30)
    copies = [{**row, "id": f"copy {row['id']}"} for row in rows]
    done = build("SP/wiki", write_lines(tmp_path / "a.jsonl", rows + copies), tmp_path / "out")
    assert done.skipped == {"documents with the text of an earlier one": 30}
    with pytest.raises(EnsueError, match=r"b\.jsonl, line 31 has the id 'd0'"):
        build("SP/wiki", write_lines(tmp_path / "b.jsonl", [*rows, rows[0]]), tmp_path / "bad")


def test_the_lead_of_a_structured_document_is_its_introduction(tmp_path):
    for number in range(6):
        lead = " ".join(f"Lead {number} has its sentence {word}." for word in ORDER)
        (tmp_path / f"{number}.md").write_text(
            f"# Title {number}\n\n{lead}\n\n## More\n\nThe rest is long.\n"
        )
    rows = read_rows(build("SP/wiki", str(tmp_path), tmp_path.parent / "out-of-markdown").folder)
    assert all(each.startswith("Lead ") for found in rows.values() for row in found for each in row[1:])


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "is empty"),
        ('{"sentences": ["One.", 2]}\n', "line 1 has a number as sentence 2"),
        ('{"text": "One."}\n{"title": "none"}\n', "line 2 has no text or sentences"),
        ("{\n", "line 1 is not JSON"),
        ('{"text": "One.", "categories": "rivers"}\n', "line 1 has a string as 'categories'"),
        ('{"text": "One. Two."}\n', r"gives 0 examples, but at least 3 are needed"),
    ],
)
def test_bad_sources_are_refused_in_a_sentence(tmp_path, content, words):
    path = tmp_path / "in.jsonl"
    path.write_text(content)
    with pytest.raises(EnsueError, match=words):
        build("SP/wiki", str(path), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_build_json_says_what_was_built(tmp_path):
    source = write_lines(tmp_path / "wiki.jsonl", documents(30))
    done = build("sp/wiki", source, tmp_path / "out", BuildOptions(seed=4, limit=20))
    said = json.loads((tmp_path / "out" / "SP" / "wiki" / "build.json").read_text("utf-8"))
    assert said == done.as_dict()
    assert said["settings"] == {
        "task": "SP/wiki",
        "source": source,
        "seed": 4,
        "encoding": "utf-8",
        "limit": 20,
    }
    assert sum(split["lines"] for split in said["statistics"]["examples"].values()) <= 20
