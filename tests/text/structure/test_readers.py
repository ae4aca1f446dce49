"""Structured documents: each source to the same tree, every sentence's place, and what is wrong with a file."""

import bz2
import json
import tracemalloc
from collections import Counter
from xml.sax.saxutils import escape

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ensue.errors import EnsueError
from ensue.text.structure.pages import read_html, read_markdown
from ensue.text.structure.readers import read_structured
from ensue.text.structure.sections import Heading, Section, build_document
from ensue.text.structure.wiki import read_markup
from ensue.text.works.chapters import NotUsable
from tests.support.places import sentence_places

WIKITEXT = "".join(
    f" {line} \n"
    for line in (
        "",
        "= Harbour seal of Orr =",
        "",
        "The seal is a mark of the port @-@ town . It is 3 @.@ 5 cm wide .",
        'A second seal was lost ( in 1702 ) , and " found " again .',
        "",
        "= = History = =",
        "",
        "Smiths made it .",
        "",
        "= = = Early years = = =",
        "",
        "Nobody knows <unk> name . It was 1 = 1 = 1 then .",
        "",
        "= = Uses = =",
        "",
        "The town 's letters bear it .",
        "",
        "= Second article =",
        "",
        "Only a lead .",
    )
)

MARKUP = """{{Infobox town|name={{nowrap|Orr}}|map=}}
[[File:Orr.jpg|thumb|The [[harbour]] in ''spring'']]
'''Orr''' ({{IPA|o}}) is a [[port|port town]] in the [[north]].<ref name="a">A {{cite|x}}</ref> It is
old.<ref name="b" /> <!-- check -->

See [http://example.org the site] for more&nbsp;news.
{| class="wikitext"
| a || {{b|}}
|-
{| inner
|}
| c
|}
== History ==
It began<br/>in 1702.
* a list
# another
=== Early years ===
Nobody knows.
== References ==
{{reflist}}
[[Category:Towns]]
[[de:Orr]]
"""


def dump(*pages):
    body = "".join(
        f"<page><title>{title}</title><ns>{ns}</ns><id>{number}</id>{extra}"
        f"<revision><id>9{number}</id><text>{escape(text)}</text></revision></page>"
        for number, (title, ns, extra, text) in enumerate(pages, 1)
    )
    return f'<mediawiki xmlns="http://www.mediawiki.org/xml/export-0.11/">{body}</mediawiki>'


def one(path, **options):
    (document,) = read_structured(path, **options)
    return document


def test_wikitext_articles_are_trees_and_their_tokens_are_put_together(tmp_path):
    path = tmp_path / "wiki.valid.tokens"
    path.write_text(WIKITEXT)
    first, second = read_structured(path)
    assert (first.id, first.title) == ("wiki.valid.tokens:1", "Harbour seal of Orr")
    assert first.paragraphs == (
        "The seal is a mark of the port-town. It is 3.5 cm wide.",
        'A second seal was lost (in 1702), and "found" again.',
    )
    early = Section("Early years", ("Nobody knows <unk> name. It was 1 = 1 = 1 then.",))
    assert first.sections == (
        Section("History", ("Smiths made it.",), (early,)),
        Section("Uses", ("The town's letters bear it.",)),
    )
    assert (second.id, second.title, second.paragraphs) == (
        "wiki.valid.tokens:2",
        "Second article",
        ("Only a lead.",),
    )


def test_every_sentence_knows_its_place(tmp_path):
    path = tmp_path / "wiki.txt"
    path.write_text(WIKITEXT)
    places = sentence_places(next(iter(read_structured(path))))
    assert [(p.level, p.path, p.document_paragraph, p.paragraph, p.sentence) for p in places] == [
        (0, (), 0, 0, 0),
        (0, (), 0, 0, 1),
        (0, (), 1, 1, 0),
        (1, ("History",), 2, 0, 0),
        (2, ("History", "Early years"), 3, 0, 0),
        (2, ("History", "Early years"), 3, 0, 1),
        (1, ("Uses",), 4, 0, 0),
    ]
    assert [(p.sentences, p.paragraphs, p.document_paragraphs) for p in places] == [
        (2, 2, 5), (2, 2, 5), (1, 2, 5), (1, 1, 5), (2, 1, 5), (2, 1, 5), (1, 1, 5),
    ]  # fmt: skip
    texts = [p.text for p in places]
    assert [p.before for p in places] == [None, *texts[:-1]]
    assert [p.after for p in places] == [*texts[1:], None]
    assert {p.document_title for p in places} == {"Harbour seal of Orr"}


def test_a_mediawiki_dump_gives_articles_without_markup_and_counts_the_rest(tmp_path):
    text = dump(
        ("Orr", 0, "", MARKUP),
        ("Old Orr", 0, '<redirect title="Orr"/>', "#REDIRECT [[Orr]]"),
        ("Talk:Orr", 1, "", "Hello."),
        ("Empty", 0, "", "{{stub}}"),
    )
    path = tmp_path / "dump.xml"
    path.write_text(text)
    packed = tmp_path / "packed.xml.bz2"
    packed.write_bytes(bz2.compress(text.encode()))
    for source in (path, packed):
        skipped = Counter()
        document = one(source, skipped=skipped)
        assert skipped == {"redirects": 1, "pages that are no articles": 1, "no text": 1}
        assert (document.id, document.title) == (f"{source.name}:1", "Orr")
        assert document.paragraphs == (
            "Orr is a port town in the north. It is old.",
            "See the site for more news.",
        )
        early = Section("Early years", ("Nobody knows.",))
        assert document.sections == (Section("History", ("It began in 1702.",), (early,)),)


def test_markdown_headings_of_both_kinds(tmp_path):
    path = tmp_path / "guide.md"
    path.write_text(
        "---\nauthor: A\n---\n# The *guide*\n\nFirst [words](http://x) and `code`,\nstill the first.\n\n"
        "Using it\n--------\n\n- One thing.\n- Another\n  thing.\n\n```\n# no heading\n```\n\n"
        "#### Deep ####\n\n> Quoted text.\n\n| a | b |\n|---|---|\n\n## End\n\n![picture](p.png)\n\nLast.\n"
    )
    document = one(path)
    assert (document.id, document.title) == ("guide.md", "The guide")
    assert document.paragraphs == ("First words and code, still the first.",)
    assert document.sections == (
        Section("Using it", ("One thing.", "Another thing."), (Section("Deep", ("Quoted text.",)),)),
        Section("End", ("Last.",)),
    )


def test_html_headings_and_paragraphs(tmp_path):
    path = tmp_path / "page.html"
    path.write_text(
        "<html><head><title>Site: Tea</title><style>p{}</style></head><body><nav><p>Menu</p></nav>"
        "<h1>Tea</h1><p>Hot &amp; <b>green</b>.<p>Second.<h2>Leaves</h2><div><ul><li>Black.</ul></div>"
        "<table><tr><td><p>no</p></td></tr></table><h3>Fine</h3><p>Tips<br>only.</p>"
        "<script>if (a<b) {}</script><h2>Empty</h2></body>"
    )
    document = one(path)
    assert (document.title, document.paragraphs) == ("Tea", ("Hot & green.", "Second."))
    assert document.sections == (Section("Leaves", ("Black.",), (Section("Fine", ("Tips only.",)),)),)


def test_novels_have_their_chapters_as_sections(tmp_path):
    path = tmp_path / "works.jsonl"
    chapters = [
        {"head": "CHAPTER I.", "paragraphs": ["It rained. She slept.", "Then day came."]},
        {"head": "II", "paragraphs": ["End."]},
    ]
    path.write_text(json.dumps({"id": "w", "title": "A Novel", "chapters": chapters}) + "\n")
    document = one(path)
    assert (document.id, document.title) == ("works.jsonl:w", "A Novel")
    assert [s.title for s in document.sections] == ["CHAPTER I.", "II"]
    assert [p.level for p in sentence_places(document)] == [1, 1, 1, 1]


def test_a_folder_is_read_by_name_and_unknown_files_are_counted(tmp_path):
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "index.html").write_text("<h1>B</h1><p>Text.</p>")
    (tmp_path / "a.md").write_text("# A\n\nText.\n")
    (tmp_path / "table.csv").write_text("a,b\n")
    (tmp_path / ".hidden.md").write_text("# H\n\nText.\n")
    skipped = Counter()
    assert [d.id for d in read_structured(tmp_path, skipped=skipped)] == ["a.md", "b/index.html"]
    assert skipped == {"files ending in .csv": 1}


def test_a_rank_left_out_makes_no_empty_level_and_empty_sections_are_left_out():
    events = [Heading(2, "A"), Heading(5, "B"), "Text.", Heading(3, "C"), "More.", Heading(2, "D")]
    document = build_document("x", "X", events)
    assert document.sections == (Section("A", (), (Section("B", ("Text.",)), Section("C", ("More.",)))),)
    with pytest.raises(NotUsable):
        build_document("x", "X", [Heading(1, "A")])


@pytest.mark.parametrize(
    ("markup", "paragraphs"),
    [
        ("Before {{open and {{closed}} after.", ["Before open and after."]),
        ("One {{a|{{b}}|[[c]]}} two.", ["One two."]),
        ("{|\n| {{never closed\n|}\nText.", ["Text."]),
        ("A [[x|y]] and [[File:f.png|a [[b]] c]] z]].", ["A y and z."]),
        ("Stray }} marks ]] here.", ["Stray marks here."]),
        ("<ref>open is kept", ["open is kept"]),
        ("[[:Category:Towns|towns]] of [[w:Orr]].", ["towns of w:Orr."]),
    ],
)
def test_markup_that_is_nested_or_never_closed(markup, paragraphs):
    assert [" ".join(event.split()) for event in read_markup(markup)] == paragraphs


_WIKI = ["{{", "}}", "{|", "|}", "\n{|", "\n|}", "[[", "]]", "|", "File:", "''", "==", "<ref>", "</ref>", "-"]
_OTHER = ["<!--", "-->", "# ", "```", "> ", "**", "_", "[a](b)", "<p>", "</p>", "<h2>", "<table>", "&amp;"]
_PIECES = st.sampled_from([*_WIKI, *_OTHER, "word", " ", "\n", "\n\n"])


@given(st.lists(_PIECES, max_size=60).map("".join))
def test_no_markup_breaks_a_reader_and_nothing_is_made_up(text):
    letters = Counter(character for character in text if character.isalpha())
    for events in (read_markup(text), read_markdown(text)[1], read_html(text)[1]):
        shown = "".join(event.title if isinstance(event, Heading) else event for event in events)
        assert not Counter(character for character in shown if character.isalpha()) - letters


def test_a_dump_is_read_in_little_memory(tmp_path):
    path = tmp_path / "dump.xml"
    path.write_text(dump(*((f"T{n}", 0, "", "A sentence of some words. " * 200) for n in range(2000))))
    assert path.stat().st_size > 10_000_000
    tracemalloc.start()
    assert sum(1 for _ in read_structured(path)) == 2000
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2_000_000


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("a.tokens", b" = T = \n\nGood.\n\xff\xfe bad\n", ["a.tokens", "line 4", "UTF-8"]),
        ("a.tokens", b"a\0b\n", ["a.tokens, line 1", "NUL"]),
        ("a.tokens", b"", ["a.tokens", "empty"]),
        ("a.md", b"  \n", ["a.md", "empty"]),
        ("a.md", b"# T\0", ["a.md", "NUL"]),
        ("a.xml", dump(("T", 0, "", "x"))[:-20].encode(), ["a.xml, line 1", "XML"]),
        ("a.xml.bz2", bz2.compress(dump(("T", 0, "", "word " * 9)).encode())[:-8], ["a.xml.bz2", "cut off"]),
        ("a.xml.bz2", b"no bz2 at all", ["a.xml.bz2", "cannot be read"]),
        ("a.html", b"<h1>Only a title</h1>", ["a.html", "no text: 1"]),
        ("a.pdf", b"%PDF", ["a.pdf", "not a kind of file"]),
        ("a.jsonl", b"{broken\n", ["a.jsonl, line 1"]),
    ],
)
def test_bad_input_is_one_sentence_that_names_the_place(tmp_path, name, content, words):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(EnsueError) as caught:
        list(read_structured(path))
    for word in words:
        assert word in str(caught.value)
    assert "\n" not in str(caught.value)


def test_missing_and_empty_sources_are_refused(tmp_path):
    with pytest.raises(EnsueError, match="does not exist"):
        read_structured(tmp_path / "nowhere")
    with pytest.raises(EnsueError, match="it is empty"):
        list(read_structured(tmp_path))
