"""The bundled documents: twelve of twenty sentences, which the splitter finds again."""

from __future__ import annotations

from collections import Counter

from ensue.text.bundled import bundled_documents
from ensue.text.documents import read_documents
from ensue.text.sentences import split_sentences

DOCUMENTS = bundled_documents()


def test_there_are_three_documents_in_each_of_four_domains():
    assert Counter(document.domain for document in DOCUMENTS) == {"news": 3, "law": 3, "blog": 3, "story": 3}
    assert len({document.id for document in DOCUMENTS}) == 12
    assert DOCUMENTS.skipped == {}


def test_the_first_four_show_every_domain():
    assert {document.domain for document in read_documents(limit=4)} == {"news", "law", "blog", "story"}


def test_each_has_twenty_sentences_of_nine_to_thirteen_words():
    for document in DOCUMENTS:
        assert len(document.sentences) == 20
        lengths = [len(sentence.split()) for sentence in document.sentences]
        assert min(lengths) >= 9, document.id
        assert max(lengths) <= 13, document.id
        assert 200 <= sum(lengths) <= 250, document.id


def test_no_sentence_and_no_opening_occurs_twice():
    sentences = [sentence for document in DOCUMENTS for sentence in document.sentences]
    assert len(set(sentences)) == 240
    openings = [document.sentences[0].split()[0] for document in DOCUMENTS]
    assert len(set(openings)) == 12


def test_the_splitter_finds_the_sentences_again():
    for document in DOCUMENTS:
        assert split_sentences(" ".join(document.sentences)) == list(document.sentences)


def test_they_are_the_default_source():
    assert read_documents() == read_documents("bundled") == DOCUMENTS
