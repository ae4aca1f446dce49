"""Sentences: nothing lost, paragraphs kept apart, and sentencex's known slips put right."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ensue.text.documents import read_documents
from ensue.text.sentences import split_lines, split_sentences

DATA = os.environ.get("ENSUE_DATA")


# Marks, capitals and breaks often enough that borders, quotations and abbreviations really occur.
texts = st.text(
    st.one_of(
        st.sampled_from("abV S.?!\"'()“”«»…\n\r\t 12§。，\u00a0\u2028é"),
        st.characters(exclude_categories=["Cs"]),
    ),
    max_size=80,
) | st.lists(
    st.sampled_from(
        [
            "Ms.",
            "Orr",
            "said.",
            '"Go',
            'on."',
            "F.",
            "Supp.",
            "2d",
            "iPhone",
            "and",
            "1.",
            "\n\n",
            "v.",
            "!",
            ")",
        ]
    ),
    max_size=20,
).map(" ".join)


def visible(text: str) -> str:
    return "".join(text.split())


def borders(sentences: list[str]) -> Iterator[int]:
    """Where sentences end, counted in characters that are not white space."""
    end = 0
    for sentence in sentences:
        end += len(visible(sentence))
        yield end


@given(texts)
@pytest.mark.parametrize("split", [split_sentences, split_lines])
def test_no_character_is_lost_or_moved(split, text):
    assert visible("".join(split(text))) == visible(text)


@given(texts)
@pytest.mark.parametrize("split", [split_sentences, split_lines])
def test_sentences_are_normalised_and_never_empty(split, text):
    sentences = split(text)
    assert all(sentences)
    assert sentences == [" ".join(sentence.split()) for sentence in sentences]


@given(st.lists(texts.map(" ".join), min_size=1, max_size=4))
def test_a_blank_line_is_always_a_border(paragraphs):
    apart = [sentence for paragraph in paragraphs for sentence in split_sentences(paragraph)]
    assert split_sentences("\n \n".join(paragraphs)) == apart


@given(texts)
def test_splitting_again_keeps_every_border(text):
    once = split_sentences(text)
    assert set(borders(once)) <= set(borders(split_sentences("\n\n".join(once))))


@given(texts)
def test_every_language_code_is_taken(text):
    for language in ("de", "ja", "no-such-language"):
        assert visible("".join(split_sentences(text, language))) == visible(text)


@pytest.mark.parametrize(
    "sentences",
    [
        ["Rain fell.", "Then it stopped.", "Why?", "Nobody knew!"],
        ["Mr. Ames of Orr Inc. paid $3.50 at 5 p.m. on Friday.", "It was too much."],
        ["Doe v. Roe was decided in the U.S. Supreme Court.", "It is No. 5 on the list."],
        ['"Is it late?" she asked.', '"Very," he said.', "They ran."],
        # Reopened quotations, as newspapers print them.
        ['Mr Hale added: "Prices are uncertain.', '"They may yet fall."', "The bank was silent."],
        ['He said: "We wait.', '"We always wait."', 'He added: "So be it."', "Nobody stirred."],
        # Titles with a mark in them.
        ["She saw Mamma Mia! with her aunt.", "A report by Which? magazine agreed."],
        # Titles and citations that sentencex cuts.
        ["The court heard Ms. Orr first.", "Her case is 366 F. Supp. 3d 1110.", "It was cited often."],
        ["He sued under 42 U.S.C. § 1983 et seq. and lost.", "See Fla. Stat. § 97.0585 for more."],
        # Lists keep number and item together.
        ["1. Release early.", "2. Make users happy."],
        ["What did they buy?", "iPhone cases, mostly.", "Really?", "eBay says so."],
    ],
)
def test_sentences_come_apart_as_written(sentences):
    assert split_sentences(" ".join(sentences)) == sentences


def test_a_headline_stays_its_own_and_line_breaks_inside_a_paragraph_do_not_count():
    text = "Town waits for rain\n\nThe wells\nof Orley are dry. Carts\r\nbring water.\n \nThe end\n"
    assert split_sentences(text) == [
        "Town waits for rain",
        "The wells of Orley are dry.",
        "Carts bring water.",
        "The end",
    ]


def test_text_without_capitals_is_left_to_the_splitter():
    assert split_sentences("are you there? i am here! come in.") == [
        "are you there?",
        "i am here!",
        "come in.",
    ]


def test_lines_are_sentences_when_asked():
    assert split_lines("One. Two.\n\n  three\tfour \r\n") == ["One. Two.", "three four"]


@pytest.mark.parametrize("text", ["", " \n\t\n", "\u2028"])
def test_no_text_has_no_sentences(text):
    assert split_sentences(text) == split_lines(text) == []


@pytest.mark.parametrize("name", ["news_bbc", "multilexsum/test.jsonl", "blog_paulgraham"])
@pytest.mark.data
@pytest.mark.skipif(not DATA, reason="ENSUE_DATA does not name the folder of the real data")
def test_real_documents_lose_nothing_and_have_few_stray_marks(name):
    documents = read_documents(Path(str(DATA)) / name)
    sentences = [sentence for document in documents for sentence in document.sentences]
    for document in documents:
        assert visible("".join(document.sentences)) == visible(document.text or "")
    stray = [s for s in sentences if s.startswith(('" ', ") ")) or s.endswith((' "', " ("))]
    assert len(stray) <= 0.001 * len(sentences), stray[:10]
    assert not [s for s in sentences if s.endswith(("F. Supp.", " Ms."))]
