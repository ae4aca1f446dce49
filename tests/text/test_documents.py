"""Documents from files, folders, the hub and the package; what is wrong is said in one sentence."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ensue.errors import EnsueError
from ensue.text.documents import Document, read_documents
from ensue.text.io.rows import is_hub_name, read_hub, row_from_columns
from ensue.text.sentences import split_sentences

DATA = os.environ.get("ENSUE_DATA")

words = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1).filter(
    str.strip
)


def write(path: Path, content: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def write_rows(path: Path, *rows: object) -> Path:
    return write(path, "".join(json.dumps(row) + "\n" for row in rows))


def refusal(source: object, **options: object) -> str:
    """The one sentence a source is refused with."""
    with pytest.raises(EnsueError) as caught:
        read_documents(source, **options)
    message = str(caught.value)
    assert message.endswith(".")
    assert "\n" not in message
    return message


def test_json_lines_with_text_or_sentences(tmp_path):
    path = write_rows(
        tmp_path / "mixed.jsonl",
        {"text": "It rained. We ran."},
        {"id": "b", "domain": "law", "sentences": ["One.", "Two. Still two."]},
        {"id": 7, "text": None, "article": "Only this.", "domain": None},
    )
    documents = read_documents(path)
    assert list(documents) == [
        Document("mixed:1", ("It rained.", "We ran."), "mixed", "It rained. We ran."),
        Document("b", ("One.", "Two. Still two."), "law"),
        Document("7", ("Only this.",), "mixed", "Only this."),
    ]
    assert (len(documents), documents.skipped, documents.source) == (3, {}, str(path))


@pytest.mark.parametrize("ending", ["jsonl", "ndjson", "json", "JSONL"])
def test_blank_lines_and_a_byte_order_mark_are_passed_over(tmp_path, ending):
    path = write(tmp_path / f"a.{ending}", '\ufeff\n{"text": "One."}\r\n  \n{"text": "Two."}')
    assert [document.id for document in read_documents(path)] == ["a:2", "a:4"]


@pytest.mark.parametrize("column", ["document", "article", "documents", "story"])
def test_the_usual_names_of_the_text_column(tmp_path, column):
    path = write_rows(tmp_path / "a.jsonl", {column: "One. Two.", "summary": "No."})
    assert read_documents(path).items[0].sentences == ("One.", "Two.")


def test_a_named_text_column_wins_and_may_hold_sentences(tmp_path):
    path = write_rows(tmp_path / "a.jsonl", {"text": "No.", "body": "Yes. Sure."}, {"body": ["Yes. Sure."]})
    assert [d.sentences for d in read_documents(path, text_column="body")] == [
        ("Yes.", "Sure."),
        ("Yes. Sure.",),
    ]
    assert "line 1 has no plot, only 'text', 'body'." in refusal(path, text_column="plot")


@pytest.mark.parametrize(
    ("name", "domain"), [("bbc", "bbc"), ("test", "legal"), ("Train", "legal"), ("data", "legal")]
)
def test_the_domain_is_the_name_of_the_file_or_of_its_folder_where_that_says_more(tmp_path, name, domain):
    path = write_rows(tmp_path / "legal" / f"{name}.jsonl", {"text": "One."})
    assert read_documents(path).items[0].domain == domain


def test_one_text_file_is_one_document(tmp_path):
    text = "Rain at last\n\nIt came\nat noon. We ran."
    document = read_documents(write(tmp_path / "blog" / "rain.txt", f"{text}\n")).items[0]
    assert document == Document("rain.txt", ("Rain at last", "It came at noon.", "We ran."), "blog", text)


def test_a_text_can_be_split_at_its_lines(tmp_path):
    path = write(tmp_path / "a.txt", "One. Two.\nThree.\n")
    assert read_documents(path, split="lines").items[0].sentences == ("One. Two.", "Three.")
    assert "not into 'words'" in refusal(path, split="words")


def test_a_folder_of_text_files(tmp_path):
    news = tmp_path / "news"
    for name in ("b.txt", "a/z.txt", "a.b/c", "wsj_0001", "D.TXT"):
        write(news / name, f"This is {name.replace('.', ' ')}.")
    for name in ("README", "README.txt", "LICENSE", ".hidden", ".git/config", "a/notes.md", "x.json"):
        write(news / name, b"\xff not for reading")
    documents = read_documents(news)
    assert [document.id for document in documents] == ["D.TXT", "a.b/c", "a/z.txt", "b.txt", "wsj_0001"]
    assert {document.domain for document in documents} == {"news"}


def test_a_folder_of_json_lines_files(tmp_path):
    write_rows(tmp_path / "news.jsonl", {"text": "One."}, {"id": "x", "text": "Two.", "domain": "law"})
    write_rows(tmp_path / "sub" / "blog.ndjson", {"text": "Three."})
    assert [(d.id, d.domain) for d in read_documents(tmp_path)] == [
        ("news:1", "news"),
        ("x", "law"),
        ("sub/blog:1", "blog"),
    ]


def test_the_start_marks_of_the_penn_treebank_are_dropped(tmp_path):
    path = write(tmp_path / "wsj_0001", ".START \n\nMr. Vinken came.\n.START \nHe left.\n")
    assert read_documents(path).items[0].sentences == ("Mr. Vinken came.", "He left.")
    other = write(tmp_path / "other.txt", "Penn files begin with\n.START\nas their mark.")
    assert read_documents(other, split="lines").items[0].sentences[1] == ".START"


def test_the_limit_stops_early_and_gives_the_same_first_documents(tmp_path):
    path = write(tmp_path / "a.jsonl", '{"text": "One."}\n{"text": "Two."}\nnot JSON\n')
    documents = read_documents(path, limit=2)
    assert [document.sentences for document in documents] == [("One.",), ("Two.",)]
    assert read_documents(path, limit=1).items == documents.items[:1]
    assert "is 0, but must be at least 1" in refusal(path, limit=0)


def test_the_fingerprint_knows_the_content_and_not_the_place(tmp_path):
    rows = [{"id": "a", "text": "One. Two."}, {"id": "b", "domain": "law", "sentences": ["Three."]}]
    here = write_rows(tmp_path / "here" / "test.jsonl", *rows)
    there = write_rows(tmp_path / "there" / "other.jsonl", *rows)
    fingerprint = read_documents(here).fingerprint
    assert len(fingerprint) == 64
    assert read_documents(there).fingerprint == fingerprint
    for changed in ({"id": "c"}, {"text": "One. Too."}, {"domain": "news"}):
        path = write_rows(tmp_path / "changed.jsonl", rows[0] | changed, rows[1])
        assert read_documents(path).fingerprint != fingerprint
    assert read_documents(here, limit=1).fingerprint != fingerprint
    assert read_documents(here, split="lines").fingerprint != fingerprint
    folder = tmp_path / "news"
    write(folder / "x" / "a.txt", "One.")
    shutil.copytree(folder, tmp_path / "copy")
    assert read_documents(folder).fingerprint == read_documents(tmp_path / "copy").fingerprint


@given(st.lists(st.lists(words, min_size=1, max_size=5), min_size=1, max_size=5))
def test_sentences_come_back_as_they_were_written(tmp_path_factory, documents):
    path = tmp_path_factory.mktemp("rows") / "a.jsonl"
    write_rows(path, *({"sentences": sentences} for sentences in documents))
    assert [list(document.sentences) for document in read_documents(path)] == documents


def test_a_very_long_line_is_read(tmp_path):
    path = write_rows(tmp_path / "a.jsonl", {"text": "It rained all day. " * 100_000})
    assert len(read_documents(path).items[0].sentences) == 100_000


@pytest.mark.parametrize(
    "source", ["no-such-file", "no/such/folder/at/all", "a/b.jsonl", "~/no.txt", "x\0y", "x" * 5000]
)
def test_what_does_not_exist(source):
    assert refusal(source) == f"{source} does not exist."


def test_no_source_at_all():
    assert "No documents are named" in refusal("")


def test_what_is_no_kind_of_document_file(tmp_path):
    assert "is not a kind of file that is read here" in refusal(write(tmp_path / "a.csv", "x,y\n"))
    os.mkfifo(tmp_path / "pipe")
    assert "is neither a file nor a folder" in refusal(tmp_path / "pipe")


@pytest.mark.parametrize("name", ["a.jsonl", "a.txt", "a"])
def test_an_empty_file(tmp_path, name):
    path = write(tmp_path / name, b"")
    assert refusal(path) == f"{path} is empty."


def test_a_folder_without_documents_or_with_two_kinds(tmp_path):
    write(tmp_path / "README.txt", "Nothing here.")
    assert "holds no .txt, extensionless or .jsonl file" in refusal(tmp_path)
    write(tmp_path / "a.txt", "One.")
    write_rows(tmp_path / "b.jsonl", {"text": "Two."})
    assert "holds both text (a.txt) and JSON Lines files (b.jsonl)" in refusal(tmp_path)


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("{'text': 'x'}", "is not JSON (Expecting property name enclosed in double quotes at column 2)."),
        ('{"text": "cut off', "is not JSON"),
        ("[", "write one object a line"),
        ("[" * 100_000, "is not JSON that can be read"),
        ('["One."]', "is not a JSON object but a list."),
        ('"One."', "is not a JSON object but a string."),
        ("null", "is not a JSON object but null."),
        ("{}", "has no text or sentences, only no column at all."),
        ('{"title": "x", "body": "y"}', "has no text or sentences, only 'title', 'body'."),
        ('{"text": ""}', "is a document with no text."),
        ('{"text": " \\n\\t"}', "is a document with no text."),
        ('{"text": null}', "is a document with no text."),
        ('{"sentences": []}', "is a document with no text."),
        ('{"text": 5}', "has a number as 'text', where a string is expected."),
        ('{"text": ["One."]}', "has a list as 'text', where a string is expected."),
        ('{"sentences": "One."}', "has a string as 'sentences', where a list of strings is expected."),
        ('{"sentences": ["One.", 2]}', "has a number as sentence 2, where a string is expected."),
        ('{"sentences": ["One.", " "]}', "has an empty sentence (number 2)."),
        ('{"text": "a\\u0000b"}', "holds a NUL character."),
        ('{"text": "a\\ud800b"}', "holds half a character (\\ud800), which no text may."),
        ('{"sentences": ["a\\udfff"]}', "holds half a character"),
        ('{"id": "\\ud800", "text": "One."}', "holds half a character"),
        ('{"id": "", "text": "One."}', "has an empty string as its id"),
        ('{"id": true, "text": "One."}', "has true or false as its id"),
        ('{"domain": 3, "text": "One."}', "has a number as its domain"),
        ('{"text": "a\0b"}', "holds a NUL byte, so it is UTF-16 or no text."),
    ],
)
def test_a_bad_line_is_named(tmp_path, line, complaint):
    path = write(tmp_path / "a.jsonl", '{"text": "Good."}\n\n' + line + '\n{"text": "Good."}\n')
    message = refusal(path)
    assert message.startswith(f"{path}, line 3 ")
    assert complaint in message


def test_the_same_id_twice(tmp_path):
    path = write_rows(tmp_path / "a.jsonl", {"id": 1, "text": "One."}, {"id": "1", "text": "Two."})
    assert refusal(path) == f"{path}, line 2 has the id '1', which {path}, line 1 has already."


@pytest.mark.parametrize("name", ["a.jsonl", "a.txt"])
def test_a_wrong_encoding_is_located(tmp_path, name):
    content = '{"text": "Good."}\n{"text": "Caf\u00e9."}\n'
    latin = write(tmp_path / name, content.encode("latin-1"))
    expected = f"{latin} is not UTF-8 (line 2, byte 31): convert it to UTF-8, or name its encoding."
    assert refusal(latin) == expected
    assert "Caf\u00e9." in str(read_documents(latin, encoding="latin-1").items[-1].sentences)
    utf16 = write(tmp_path / name, content.encode("utf-16"))
    assert "is UTF-16 (line 1, byte 0 is its byte-order mark): convert it" in refusal(utf16)
    assert "Caf\u00e9." in str(read_documents(utf16, encoding="utf-16").items[-1].sentences)
    no_mark = write(tmp_path / name, content.encode("utf-16-le"))
    assert "line 1 holds a NUL byte, so it is UTF-16 or no text." in refusal(no_mark)
    assert "klingon is not a text encoding" in refusal(no_mark, encoding="klingon")


def test_a_text_file_with_nothing_to_read(tmp_path):
    assert "a.txt is a document with no text." in refusal(write(tmp_path / "a.txt", " \n\n"))
    assert "b.txt, line 2 holds a NUL byte" in refusal(write(tmp_path / "b.txt", "a\nb\0\n"))
    write(tmp_path / "folder" / "good.txt", "One.")
    write(tmp_path / "folder" / "void", ".START \n\n")
    assert "void is a document with no text." in refusal(tmp_path / "folder")


def test_a_file_name_of_strange_bytes_gives_an_id_that_can_be_written(tmp_path):
    try:
        write(tmp_path / os.fsdecode(b"caf\xe9.txt"), "One.")
    except OSError:
        pytest.skip("the file system takes UTF-8 names only")
    assert read_documents(tmp_path).items[0].id == "caf\\xe9.txt"


@pytest.mark.parametrize(
    ("name", "hub"),
    [
        ("owner/name", True),
        ("owner/name:test", True),
        ("owner/name/config:validation", True),
        ("wikitext/wikitext-2-v1:test", True),
        ("imdb:test", True),
        ("imdb", False),
        ("folder/file.jsonl", False),
        ("/owner/name", False),
        ("./owner/name", False),
        ("a/b/c/d", False),
        ("owner/name:", False),
    ],
)
def test_what_reads_as_a_hub_name(name, hub):
    assert is_hub_name(name) == hub


def test_an_existing_path_comes_before_the_hub(tmp_path, monkeypatch):
    write(tmp_path / "owner" / "name" / "a.txt", "One.")
    monkeypatch.chdir(tmp_path)
    assert read_documents("owner/name").items[0].id == "a.txt"


def test_the_hub_without_its_library(monkeypatch):
    monkeypatch.setitem(sys.modules, "datasets", None)
    assert "pip install 'ensue[hub]'" in refusal("owner/name")


def test_hub_rows_without_text_are_marked_and_not_refused():
    columns = {"text": " ", "label": 1}
    row = row_from_columns(columns, place="owner/name, row 1", id="test:1", domain="name", text_column=None)
    assert row.is_empty


def test_the_hub_library_reads_splits_and_columns(tmp_path, monkeypatch):
    # A folder is to `datasets` what a hub repository is; read_documents would take it as a folder.
    pytest.importorskip("datasets", reason="the extra `hub` is not installed")
    for split in ("train", "test"):
        write_rows(tmp_path / "owner" / "name" / f"{split}.jsonl", {"document": f"A {split} row.", "n": 1})
    monkeypatch.chdir(tmp_path)
    rows = [list(read_hub(name)) for name in ("owner/name", "owner/name:train")]
    assert [[(row.id, row.default_domain, row.text) for row in each] for each in rows] == [
        [("test:1", "name", "A test row.")],
        [("train:1", "name", "A train row.")],
    ]
    with pytest.raises(EnsueError, match="owner/name has no split dev, only"):
        list(read_hub("owner/name:dev"))
    with pytest.raises(EnsueError, match="row 1 has no plot, only 'document', 'n'"):
        list(read_hub("owner/name", text_column="plot"))


@pytest.mark.parametrize(
    ("name", "domain", "number", "encoding"),
    [
        ("news_bbc", "news_bbc", 2075, "utf-8"),
        ("news_wsj", "news_wsj", 199, "latin-1"),
        ("multilexsum/test.jsonl", "multilexsum", 868, "utf-8"),
        ("blog_paulgraham", "blog_paulgraham", 49, "utf-8"),
    ],
)
@pytest.mark.data
@pytest.mark.skipif(not DATA, reason="ENSUE_DATA does not name the folder of the real data")
def test_real_corpora_are_read_whole(name, domain, number, encoding):
    documents = read_documents(Path(str(DATA)) / name, encoding=encoding)
    assert len(documents) == number
    assert {document.domain for document in documents} == {domain}
    assert not any(document.sentences[0].startswith(".START") for document in documents)


DOCUMENTS = read_documents()


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
