"""Sentence PaperSection Prediction: which sentences of a paper are asked about."""

from __future__ import annotations

import json
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ensue.benchmarks.discoeval.builders.build import build
from ensue.benchmarks.discoeval.builders.common import BuildOptions
from ensue.benchmarks.discoeval.builders.sections import Paper, PaperSection, choose, is_plain, middle
from ensue.errors import EnsueError
from tests.benchmarks.discoeval.builders.inputs import disjoint, read_rows, write_lines

ORDER = ("first", "second", "third", "fourth")


def said(paper: int, where: str) -> str:
    """Four sentences that say where they stand."""
    return " ".join(f"Paper {paper} says its {place} thing in the {where} section." for place in ORDER)


def paper(number: int) -> dict:
    headings = [
        "1 Introduction",
        "2 Our Method",
        "III. Results",
        "5. Conclusions and Future Work",
        "References",
    ]
    sections = [{"heading": name, "text": said(number, name.split()[-1].lower())} for name in headings]
    return {"id": number, "abstract": said(number, "abstract"), "sections": sections}


def number_of(sentence: str) -> int:
    return int(sentence.split()[1])


def test_half_the_lines_are_of_abstracts_and_none_of_introductions_or_conclusions(tmp_path):
    source = write_lines(tmp_path / "papers.jsonl", [paper(n) for n in range(60)])
    done = build("SSP/abs", source, tmp_path / "out", BuildOptions(train=40, valid=20, test=20))
    rows = read_rows(done.folder)
    for found in rows.values():
        assert Counter(label for label, _ in found) == {"0": len(found) // 2, "1": len(found) // 2}
        for label, sentence in found:
            where = sentence.split()[-2]
            assert (where == "abstract") == (label == "1")
            assert where in ("abstract", "method", "results")
        assert [label for label, _ in found] != sorted(label for label, _ in found)
    assert disjoint([{number_of(sentence) for _, sentence in found} for found in rows.values()])
    assert {len(found) for found in rows.values()} == {40, 20}


def test_a_paper_gives_as_many_sentences_as_asked(tmp_path):
    source = write_lines(tmp_path / "papers.jsonl", [paper(n) for n in range(12)])
    lines = [
        sum(
            split["lines"]
            for split in build("SSP/abs", source, tmp_path / str(n), BuildOptions(per_document=n))
            .statistics["examples"]
            .values()
        )
        for n in (1, 3, 0)
    ]
    # What the last paper of a split has beyond its share is lost: up to two pairs of two splits, or three.
    assert lines[0] == 24
    assert 72 - 2 * 2 * 2 <= lines[1] <= 72
    assert 96 - 2 * 2 * 3 <= lines[2] <= 96


def test_peerread_files_and_undivided_bodies_are_read(tmp_path):
    folder = tmp_path / "peerread"
    folder.mkdir()
    for number in range(6):
        content = paper(number)
        metadata = {
            "abstractText": content["abstract"],
            "sections": [{"heading": None, "text": "Front matter."}, *content["sections"]],
        }
        (folder / f"{number}.pdf.json").write_text(
            json.dumps({"name": f"{number}.pdf", "metadata": metadata})
        )
    assert build("SSP/abs", str(folder), tmp_path / "a").statistics["examples"]["train"]["documents"] == 4
    bodies = [
        {
            "abstract": said(n, "abstract"),
            "body": " ".join(said(n, f"{q} quarter") for q in ("1st", "2nd", "3rd", "4th")),
        }
        for n in range(6)
    ]
    rows = read_rows(build("SSP/abs", write_lines(tmp_path / "b.jsonl", bodies), tmp_path / "b").folder)
    for label, sentence in (row for found in rows.values() for row in found):
        assert label == "1" or "2nd" in sentence or "3rd" in sentence


def test_an_abstract_may_be_a_section():
    assert (
        choose(Paper("p", "here", "", (PaperSection("Method", said(1, "method")),)), "en", None, 0).reason
        == "papers without an abstract"
    )


def test_what_gives_nothing_is_counted_by_reason(tmp_path):
    rows = [
        *[paper(n) for n in range(6)],
        {"abstract": said(20, "abstract")},
        {"sections": [{"heading": "Method", "text": said(21, "method")}]},
        {"abstract": "x = 1.", "sections": [{"heading": "Method", "text": said(22, "method")}]},
        {
            "abstract": said(23, "abstract"),
            "sections": [{"heading": "Introduction", "text": said(23, "method")}],
        },
        {**paper(0), "id": "again"},
        {
            "id": "own",
            "sections": [
                {"heading": "ABSTRACT", "text": said(24, "abstract")},
                {"heading": "Data", "text": said(24, "data")},
            ],
        },
    ]
    done = build("SSP/abs", write_lines(tmp_path / "p.jsonl", rows), tmp_path / "out")
    assert done.skipped == {
        "papers with the abstract of an earlier one": 1,
        "papers without a plain sentence in their abstract": 1,
        "papers without a plain sentence in their middle": 1,
        "papers without an abstract": 1,
        "papers without sections": 1,
        "sentences that are formulas, pieces or too long": 1,
    }
    assert sum(split["documents"] for split in done.statistics["examples"].values()) == 7


@pytest.mark.parametrize(
    ("heading", "kept"),
    [
        ("1 Introduction", False),
        ("I. INTRODUCTION", False),
        ("A Appendix", False),
        ("7. Concluding remarks", False),
        ("Acknowledgements", False),
        ("2.1 Introducing noise", True),
        ("3 A Method", True),
        ("IV Results", True),
        ("Discussion", True),
    ],
)
def test_sections_at_the_edges_are_left_out(heading, kept):
    sections = (PaperSection(heading, said(1, "text")), PaperSection("", said(2, "front")))
    assert bool(middle(Paper("p", "here", "", sections), "en")) == kept


@given(st.text(max_size=80))
def test_whatever_is_called_plain_has_words_and_an_end(text):
    if is_plain(text):
        assert len(text.split()) >= 6
        assert "=" not in text
        assert any(mark in text for mark in ".!?")


@pytest.mark.parametrize(
    "text",
    [
        "Short one.",
        "(3) x 4 5 6 7 8 9 .",
        "where a = b for all of the other ones.",
        "no end here at all in this",
        "0.1 0.2 0.3 0.4 0.5 0.6 0.7.",
    ],
)
def test_formulas_and_pieces_are_not_plain(text):
    assert not is_plain(text)


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ({"abstract": 3, "sections": []}, r"line 1 has a number as 'abstract'"),
        ({"abstract": "A.", "sections": "none"}, r"line 1 has a string as 'sections'"),
        ({"abstract": "A.", "sections": ["x"]}, r"line 1 has a string as section 1"),
        (
            {"abstract": "A.", "sections": [{"heading": "M", "text": []}]},
            r"line 1, section 1 has a list as 'text'",
        ),
        ({"id": 1.5, "abstract": "A."}, "has a number as its id"),
    ],
)
def test_bad_papers_are_named_with_their_line(tmp_path, row, words):
    with pytest.raises(EnsueError, match=words):
        build("SSP/abs", write_lines(tmp_path / "p.jsonl", [row]), tmp_path / "out")


def test_bad_files_are_named(tmp_path):
    bad = tmp_path / "x.json"
    bad.write_text('{"abstract":\n ]')
    with pytest.raises(EnsueError, match=r"x\.json, line 2 is not JSON"):
        build("SSP/abs", str(bad), tmp_path / "out")
    bad.write_text("[]")
    with pytest.raises(EnsueError, match="is not a JSON object but a list"):
        build("SSP/abs", str(bad), tmp_path / "out")
    with pytest.raises(EnsueError, match="does not exist"):
        build("SSP/abs", str(tmp_path / "none"), tmp_path / "out")
