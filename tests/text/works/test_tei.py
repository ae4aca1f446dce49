"""TEI: chapters below parts, without notes and page breaks, and nothing that XML could smuggle in."""

import pytest

from ensue.errors import EnsueError
from ensue.text.works.readers import Chapter, NotUsable
from ensue.text.works.tei import read_tei

DOCUMENT = """<?xml version="1.0" encoding="UTF-8"?>
<TEI{namespace}><teiHeader><fileDesc><titleStmt><title>The Mill</title></titleStmt></fileDesc></teiHeader>
<text><front><div type="chapter"><p>Preface.</p></div></front><body>
<div type="group"><head>BOOK I</head>
 <div type="chapter"><head>CHAPTER I.<lb/>Rain</head>
  <p>It rai<pb n="3"/>ned on
   the <hi>mill</hi>.<note>In 1846.</note> All day.</p>
  <quote><lg><l>The wheel goes round,</l><l>the rain comes down.</l></lg></quote>
  <!-- a comment --><p>He <choice><sic>slep</sic><corr>slept</corr></choice>.</p></div>
 <div type="chapter"><head>CHAPTER II.</head><p>Wind.</p>
  <div type="letter"><head>To Mary</head><p>Come.</p></div></div>
</div>
<div type="group"><head>BOOK II</head><div type="chapter"><head>CHAPTER I.</head><p>Sun.</p></div><p>THE END</p></div>
</body></text></TEI>"""


@pytest.mark.parametrize("namespace", ["", ' xmlns="http://www.tei-c.org/ns/1.0"'])
def test_chapters_with_the_headings_of_their_parts(namespace: str) -> None:
    work = read_tei(DOCUMENT.replace("{namespace}", namespace).encode(), "mill.xml", "mill")
    assert (work.id, work.title) == ("mill", "The Mill")
    assert work.chapters == (
        Chapter(
            "BOOK I\nCHAPTER I.\nRain",
            "It rained on the mill. All day.\n\nThe wheel goes round, the rain comes down.\n\nHe slept.",
        ),
        Chapter("CHAPTER II.", "Wind.\n\nTo Mary\n\nCome."),
        Chapter("BOOK II\nCHAPTER I.", "Sun."),
    )


def test_innermost_divisions_where_none_is_a_chapter() -> None:
    work = read_tei(
        b"<TEI><text><body><div1><head>I</head><div2><p>Rain.</p></div2></div1><div1><p>Wind.</p></div1></body></text></TEI>",
        "mill.xml",
        "mill",
    )
    assert work.chapters == (Chapter("I", "Rain."), Chapter("", "Wind."))


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"<TEI><text>", "not well-formed XML"),
        (b"no xml", "not well-formed XML"),
        (b"<TEI>&mdash;</TEI>", "not well-formed XML"),
        (b"\xff\xfe<\0T\0", "NUL byte"),
        (b'<!DOCTYPE t [<!ENTITY a "ha"><!ENTITY b "&a;&a;">]><t>&b;</t>', "declares entities"),
        (b'<!DOCTYPE t [<!ENTITY a SYSTEM "file:///etc/passwd">]><t>&a;</t>', "declares entities"),
    ],
)
def test_bad_documents_are_refused_in_one_sentence(data: bytes, words: str) -> None:
    with pytest.raises(EnsueError, match=f"^mill.xml .*{words}"):
        read_tei(data, "mill.xml", "mill")


def test_a_document_without_text_is_not_usable() -> None:
    with pytest.raises(NotUsable, match="no text"):
        read_tei(
            b"<TEI><text><body><div type='chapter'><head>I</head></div></body></text></TEI>",
            "mill.xml",
            "mill",
        )
