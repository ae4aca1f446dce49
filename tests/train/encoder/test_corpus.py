"""The prepared corpus against the documents it was made from, and batches against single rows."""

import json

import numpy as np
import pytest

from ensue.backends.discourse.words import words_of
from ensue.errors import EnsueError
from ensue.text.structure.readers import read_structured
from ensue.train.encoder.corpus import Asked, prepare_corpus
from ensue.train.encoder.objective import batches_in, epoch_batches, fixed_batches, make_batch
from tests.support.places import sentence_places
from tests.train.encoder.articles import write_articles

ASKED = Asked(vocabulary=60, max_words=12, dev_share=0.2)


@pytest.fixture(scope="module")
def sources(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sources")
    return [str(path) for path in write_articles(folder)]


@pytest.fixture(scope="module")
def corpus(sources, tmp_path_factory):
    return prepare_corpus(sources, tmp_path_factory.mktemp("corpus"), ASKED)


def test_every_sentence_stands_there_with_its_place_and_titles(sources, corpus):
    """Against the flat records of the reader, one sentence at a time."""
    number = 0
    encode = corpus.vocabulary.encode
    batches = make_batch(corpus, np.arange(corpus.sentences))
    documents = [d for source in sources for d in read_structured(source)]
    assert corpus.documents == len(documents)
    for place, document in enumerate(documents):
        for record in sentence_places(document):
            expected = encode(record.text)[:12]
            assert corpus.words[corpus.offsets[number] : corpus.offsets[number + 1]].tolist() == expected
            assert corpus.label("document")[number] == place

            def row(name, number=number):
                bag = batches.words if name == "words" else batches.bags[name]
                return bag.table[number, : bag.lengths[number]].tolist()

            assert row("words") == expected
            assert row("before") == (encode(record.before)[:12] if record.before else [])
            assert row("after") == (encode(record.after)[:12] if record.after else [])
            assert row("section") == (encode(record.path[-1]) if record.path else [])
            assert row("document") == encode(record.document_title)
            places = batches.places
            assert places["level"][number] == record.level
            assert places["sentence"][number] == record.sentence
            assert places["sentences"][number] == record.sentences
            assert places["paragraph"][number] == record.document_paragraph
            assert places["paragraphs"][number] == record.document_paragraphs
            number += 1
    assert number == corpus.sentences


def test_documents_are_held_out_whole_and_their_words_are_not_counted(sources, corpus, tmp_path):
    train, dev = corpus.rows(dev=False), corpus.rows(dev=True)
    owners = corpus.label("document")
    assert not set(owners[train].tolist()) & set(owners[dev].tolist())
    assert sorted([*train, *dev]) == list(range(corpus.sentences))
    assert corpus.dev_documents == round(0.2 * corpus.documents)
    counts = {}
    held_out = set(owners[dev].tolist())
    for place, document in enumerate(d for source in sources for d in read_structured(source)):
        if place in held_out:
            continue
        records = sentence_places(document)
        titles = {record.path: record.path[-1] for record in records if record.path}
        texts = [*(" ".join(words_of(r.text)[:12]) for r in records), *titles.values(), document.title]
        for word in (word for text in texts for word in words_of(text)):
            counts[word] = counts.get(word, 0) + 1
    counts.pop("<unk>", None)
    ranked = sorted(counts, key=lambda word: (-counts[word], word))
    assert corpus.vocabulary.words == ("<unk>", *ranked[:59])


def test_the_same_documents_are_held_out_wherever_and_in_whatever_order_they_lie(sources, corpus, tmp_path):
    moved = write_articles(tmp_path / "elsewhere")
    again = prepare_corpus([str(path) for path in reversed(moved)], tmp_path / "corpus", ASKED, workers=2)

    def dev_sentences(made):
        words = made.vocabulary.words
        return sorted(
            " ".join(words[i] for i in made.words[made.offsets[row] : made.offsets[row + 1]])
            for row in made.rows(dev=True)
        )

    assert dev_sentences(again) == dev_sentences(corpus)


def test_a_corpus_is_found_again_and_made_anew_when_its_source_changed(sources, tmp_path):
    first = prepare_corpus(sources, tmp_path, ASKED)
    stamp = (tmp_path / "words.bin").stat().st_mtime_ns
    assert prepare_corpus(sources, tmp_path, ASKED) == first
    assert (tmp_path / "words.bin").stat().st_mtime_ns == stamp
    assert prepare_corpus([str(tmp_path)], tmp_path / "unused", ASKED) == first
    with pytest.raises(EnsueError, match="--vocabulary"):
        prepare_corpus([str(tmp_path)], tmp_path / "unused", ASKED._replace(vocabulary=7))
    other = prepare_corpus(sources[:1], tmp_path, ASKED)
    assert other.documents < first.documents
    assert not list(tmp_path.glob("spool*"))


def test_an_epoch_holds_each_sentence_once_in_batches_of_like_length(corpus):
    rows = corpus.rows(dev=False)
    lengths = np.diff(corpus.offsets)[rows]
    batches = list(epoch_batches(corpus, rows, 8, seed=0, epoch=0))
    assert len(batches) == batches_in(len(rows), 8) == len(rows) // 8
    seen = sorted(int(n) for b in batches for n in b.words.lengths)
    assert not [n for n in seen if seen.count(n) > (lengths == n).sum()]
    spread = np.mean([b.words.lengths.max() - b.words.lengths.min() for b in batches])
    assert spread < (lengths.max() - lengths.min()) / 4
    again = list(epoch_batches(corpus, rows, 8, seed=0, epoch=0))
    assert all(np.array_equal(a.words.table, b.words.table) for a, b in zip(batches, again, strict=True))
    other = list(epoch_batches(corpus, rows, 8, seed=0, epoch=1))
    assert any(a.words.table.tolist() != b.words.table.tolist() for a, b in zip(batches, other, strict=True))


def test_dev_batches_hold_every_row(corpus):
    rows = corpus.rows(dev=True)
    assert sum(len(batch.words.lengths) for batch in fixed_batches(corpus, rows, 7)) == len(rows)


def test_batches_in_counts_what_an_epoch_makes():
    for rows in (0, 7, 8, 399, 400, 401, 407, 408, 2000):
        pools = [min(8 * 50, rows - begin) for begin in range(0, rows, 8 * 50)]
        assert batches_in(rows, 8) == sum(pool // 8 for pool in pools)


def test_too_few_documents_are_refused(tmp_path):
    path = tmp_path / "one.md"
    path.write_text("# One\n\nA sentence.\n")
    with pytest.raises(EnsueError, match="Too few documents"):
        prepare_corpus([str(path)], tmp_path / "corpus", ASKED)
    assert not (tmp_path / "corpus" / "corpus.json").exists()


def test_what_was_left_out_is_counted(tmp_path):
    for number in range(3):
        (tmp_path / f"{number}.md").write_text("# T\n\nA sentence.\n")
    (tmp_path / "marks.md").write_text("# T\n\n__a__\n\n## H\n")
    (tmp_path / "notes.csv").write_text("x")
    (tmp_path / "empty.html").write_text("<h1>T</h1>")
    made = prepare_corpus([str(tmp_path)], tmp_path / ".corpus", ASKED)
    assert made.skipped == {"files ending in .csv": 1, "no text": 1}
    assert json.loads((tmp_path / ".corpus" / "corpus.json").read_text())["corpus"]["documents"] == 4
