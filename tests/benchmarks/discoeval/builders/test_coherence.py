"""Discourse Coherence: which sentence is replaced, by what, and from where."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ensue.benchmarks.discoeval.builders.build import build
from ensue.benchmarks.discoeval.builders.coherence import NOTHING_SHARED, Donors, overlap
from ensue.benchmarks.discoeval.builders.common import BuildOptions, generator
from ensue.benchmarks.discoeval.builders.corpus import SourceText
from ensue.errors import EnsueError
from tests.benchmarks.discoeval.builders.inputs import disjoint, documents, origin, read_rows, write_lines

SMALL = {"train": 80, "valid": 40, "test": 40}


def strange(sentences: list[str]) -> tuple[int, list[int]]:
    """The document most sentences are from, and the places of those that are not."""
    names = [origin(each)[0] for each in sentences]
    own = Counter(names).most_common(1)[0][0]
    return own, [place for place, name in enumerate(names) if name != own]


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10**6), unpaired=st.booleans(), per_document=st.integers(0, 3))
def test_broken_runs_have_one_sentence_of_another_document_of_their_split(
    tmp_path_factory, seed, unpaired, per_document
):
    folder = tmp_path_factory.mktemp("dc")
    source = write_lines(folder / "wiki.jsonl", documents(240, (9, 6, 13, 5)))
    options = BuildOptions(seed=seed, unpaired=unpaired or None, per_document=per_document, **SMALL)
    rows = read_rows(build("DC/wiki", source, folder / "out", options).folder)
    used = {}
    for split, found in rows.items():
        assert len(found) == SMALL[split]
        assert Counter(row[0] for row in found) == {"0": SMALL[split] // 2, "1": SMALL[split] // 2}
        replaced: Counter[int] = Counter()
        for label, *sentences in found:
            own, places = strange(sentences)
            assert len(places) == (label == "0")
            begin = origin(sentences[0])[1]
            expected = [(own, begin + step) for step in range(6)]
            assert all(
                origin(each) == right
                for place, (each, right) in enumerate(zip(sentences, expected, strict=True))
                if place not in places
            )
            replaced.update(places)
            assert len(set(sentences)) == 6
        assert set(replaced) <= {1, 2, 3, 4}
        if not unpaired:
            assert max(replaced.values()) - min(replaced.values()) <= 1
        used[split] = {origin(each)[0] for row in found for each in row[1:]}
    assert disjoint(list(used.values()))


def test_pairs_are_a_broken_run_and_the_whole_one(tmp_path):
    source = write_lines(tmp_path / "chat.jsonl", documents(60, (8, 12)))
    found = read_rows(build("DC/chat", source, tmp_path / "out", BuildOptions(**SMALL)).folder)["train"]
    for broken, whole in zip(found[::2], found[1::2], strict=True):
        assert (broken[0], whole[0]) == ("0", "1")
        assert [a == b for a, b in zip(broken[1:], whole[1:], strict=True)].count(False) == 1


def test_a_conversation_gives_all_its_runs_and_an_article_one(tmp_path):
    source = write_lines(tmp_path / "in.jsonl", documents(9, (8,)))
    chat = build("DC/chat", source, tmp_path / "a").statistics["examples"]
    wiki = build("DC/wiki", source, tmp_path / "b").statistics["examples"]
    assert sum(row["lines"] for row in wiki.values()) == 2 * 9
    assert 2 * 18 < sum(row["lines"] for row in chat.values()) <= 2 * 27


def test_replacements_come_from_documents_with_the_same_categories_where_there_are_any(tmp_path):
    """Groups of ten share a category, and all share a broad one."""
    rows = documents(200, (8,), categories=lambda n: ["everything", f"group {n // 10}"])
    source = write_lines(tmp_path / "wiki.jsonl", rows)
    done = build("DC/wiki", source, tmp_path / "out", BuildOptions(train=360, valid=20, test=20))
    near = Counter(
        strange(row[1:])[0] // 10 == origin(row[1 + strange(row[1:])[1][0]])[0] // 10
        for row in read_rows(done.folder)["train"]
        if row[0] == "0"
    )
    assert near[True] > 0.97 * near.total()
    assert NOTHING_SHARED not in done.notes


def test_replacements_without_a_shared_category_are_counted(tmp_path):
    rows = documents(12, (8,), categories=lambda n: [f"only {n}"])
    done = build("DC/wiki", write_lines(tmp_path / "wiki.jsonl", rows), tmp_path / "out")
    assert done.notes == {NOTHING_SHARED: 12}


NAMES = st.frozensets(st.sampled_from("abcdef"), max_size=4)


@given(st.lists(NAMES, min_size=2, max_size=12), st.integers(0, 50))
def test_the_donor_is_the_most_similar_of_all_where_the_sample_holds_all(categories, seed):
    texts = [SourceText(str(n), "", (str(n),), names) for n, names in enumerate(categories)]
    chosen = Donors(texts, Counter()).sentence(texts[0], ["0"], generator(seed, "t"))
    best = max(overlap(categories[0], other) for other in categories[1:])
    assert chosen != "0"
    assert overlap(categories[0], categories[int(chosen)]) == best


@given(NAMES, NAMES)
def test_overlap_is_a_share_and_the_same_both_ways(one, other):
    assert overlap(one, other) == overlap(other, one)
    assert (overlap(one, other) == 1) == (one == other != frozenset())
    assert (overlap(one, other) == 0) == (not one & other)


def test_sentences_that_are_in_the_run_already_are_never_put_in(tmp_path):
    """Chats in which all say the same but for one line."""
    rows = [
        {"id": n, "sentences": ["Thanks.", "Yes.", "No.", f"Try {n}.", "Hm.", "Bye.", "Ok."]}
        for n in range(12)
    ]
    done = build("DC/chat", write_lines(tmp_path / "chat.jsonl", rows), tmp_path / "out")
    for found in read_rows(done.folder).values():
        for broken, whole in zip(found[::2], found[1::2], strict=True):
            new = set(broken[1:]) - set(whole[1:])
            assert len(new) == 1


def test_what_cannot_be_built_is_refused(tmp_path):
    source = write_lines(tmp_path / "chat.jsonl", documents(2, (300,)))
    with pytest.raises(EnsueError, match="too few documents to keep the splits apart"):
        build("DC/chat", source, tmp_path / "out")
    source = write_lines(tmp_path / "few.jsonl", documents(3, (8,)))
    with pytest.raises(EnsueError, match="leaves one document for"):
        build("DC/wiki", source, tmp_path / "out")
    repeats = [{"id": n, "sentences": [*"abcdef", *"abcdef"[: n + 1]]} for n in range(6)]
    same = write_lines(tmp_path / "same.jsonl", repeats)
    with pytest.raises(EnsueError, match="No other document has a sentence to put into"):
        build("DC/wiki", same, tmp_path / "out")
    with pytest.raises(EnsueError, match="--train must be even"):
        build("DC/wiki", source, tmp_path / "out", BuildOptions(train=3))
    assert not (tmp_path / "out").exists()
