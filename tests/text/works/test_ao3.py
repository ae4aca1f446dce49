"""Stories of the Archive of Our Own: three forms of dump, one filter, and notes taken off."""

import json
from typing import Any

import pytest

from ensue.errors import EnsueError
from ensue.text.works.ao3 import read_ao3_html, read_ao3_json, read_ao3_text, without_notes
from ensue.text.works.readers import NotUsable, Work

PARAGRAPH = "The miller counted the sacks again and found one more than there had been. " * 70
CHAPTERS = [f"Morning {number} came.\n\n{PARAGRAPH.strip()}" for number in range(1, 12)]
STATED = {"Title": "The Mill", "Language": "English", "Rating": "General Audiences", "Words": "10,800"}


def story(**changes: Any) -> dict[str, Any]:
    return {"id": 7, **STATED, "chapters": CHAPTERS, **changes}


def read(columns: dict[str, Any]) -> Work:
    return read_ao3_json(json.dumps(columns).encode(), "dump.jsonl, line 1", "dump:1")


def check(work: Work, headings: list[str]) -> None:
    assert work.title == "The Mill"
    assert [chapter.heading for chapter in work.chapters] == headings
    assert [chapter.text for chapter in work.chapters] == CHAPTERS


def test_json_with_a_list_of_chapters() -> None:
    work = read(story())
    assert work.id == "7"
    check(work, [""] * 11)
    titled = [{"Title": f"Day {number}", "Text": text} for number, text in enumerate(CHAPTERS, 1)]
    check(read(story(chapters=titled)), [f"Day {number}" for number in range(1, 12)])


@pytest.mark.parametrize(
    "form", ["Chapter {}: Sacks", "## Chapter {}", "**Chapter {}**", "\tChapter {}. Sacks"]
)
def test_json_and_text_with_marks_for_chapters(form: str) -> None:
    text = "\n\n".join(f"{form.format(number)}\n\n{chapter}" for number, chapter in enumerate(CHAPTERS, 1))
    headings = [form.format(number).strip("\t #*") for number in range(1, 12)]
    check(read(story(chapters="11/11", body=text)), headings)
    header = "\n".join(f"{key}: {value}" for key, value in STATED.items())
    file = f"{header}\nChapters: 11/11\n\nSummary: a mill.\n\n{text}"
    check(read_ao3_text(file.encode(), "mill.txt", "mill"), headings)


def page(chapters: str, rating: str = "General Audiences") -> bytes:
    return f"""<!DOCTYPE html><html><head><title>x</title><style>p {{}}</style></head><body>
    <div id="preface"><p class="message"><b>The Mill</b></p><div class="meta"><dl class="tags">
    <dt>Rating:</dt><dd><a href="#">{rating}</a></dd><dt>Language:</dt><dd>English</dd></dl>
    <h1>The Mill</h1><p>Summary</p><blockquote class="userstuff"><p>A mill.</p></blockquote></div></div>
    <div id="chapters" class="userstuff">{chapters}</div>
    <div id="afterword"><p>Thanks!</p></div></body></html>""".encode()


def html_chapter(number: int, text: str) -> str:
    paragraphs = "".join(f"<p>{each}</p>\n" for each in text.split("\n\n"))
    return f"""<div class="meta group"><h2 class="heading">Chapter {number}: A &amp; B</h2>
    <p>Chapter Summary</p><blockquote class="userstuff"><p>Sacks.</p></blockquote></div>
    <p>Chapter Notes</p><blockquote class="userstuff"><p>Hello!</p><p>Again!</p></blockquote>
    <div class="userstuff">{paragraphs}</div>
    <div id="endnotes{number}" class="meta"><p>Chapter End Notes</p><blockquote><p>Bye!</p></blockquote></div>"""


def test_the_archives_own_pages() -> None:
    html = "".join(html_chapter(number, text) for number, text in enumerate(CHAPTERS, 1))
    check(
        read_ao3_html(page(html), "mill.html", "mill"),
        [f"Chapter {number}: A & B" for number in range(1, 12)],
    )
    with pytest.raises(NotUsable, match="not General Audiences"):
        read_ao3_html(page(html, "Mature"), "mill.html", "mill")


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"Language": "Deutsch"}, "not English"),
        ({"Language": None}, "no language stated"),
        ({"Rating": "Teen And Up Audiences"}, "not General Audiences"),
        ({"Rating": None}, "no rating stated"),
        ({"chapters": CHAPTERS[:10]}, "10 chapters or fewer"),
        ({"chapters": ["Rain."] * 11}, "fewer than 10,000 words"),
        ({"chapters": [" "] * 11}, "no text"),
    ],
)
def test_each_filter_has_its_reason(changes: dict[str, Any], reason: str) -> None:
    with pytest.raises(NotUsable) as caught:
        read(story(**changes))
    assert caught.value.reason == reason


def test_words_are_counted_here_and_not_believed() -> None:
    with pytest.raises(NotUsable, match="fewer than"):
        read(story(chapters=["Rain."] * 11, words=90_000))


@pytest.mark.parametrize(
    "mark",
    [
        "**Notes for the Chapter:**",
        "**Notes for the Chapter: **",
        "**Summary for the Chapter**:",
        "Author's Note:",
        "**AUTHOR’S NOTE:**",
        "**Author's Notes**",
    ],
)
def test_notes_are_removed_with_their_paragraph(mark: str) -> None:
    assert without_notes(f"{mark} Thanks\nto all.\n\nRain.\n\nWind.") == "Rain.\n\nWind."
    assert without_notes(f"{mark}\n\nThanks to all.\n\nRain.\n\nWind.") == "Rain.\n\nWind."
    assert without_notes(f"{mark}\n\n> Thanks.\n\n> Again.\n\nRain.\n\n> Wind.") == "Rain.\n\n> Wind."
    assert without_notes(f"Rain.\n{mark} Thanks.") == "Rain."


def test_other_comments_stay() -> None:
    text = "Rain. (A/N: sorry!)\n\nAuthor's note pads lay about.\n\nShe read the author's note: nothing."
    assert without_notes(text) == text


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"rating": "General"}, "has no text"),
        (story(chapters=[7]), "chapter 1 has a number"),
        (story(Rating=3), "rating"),
    ],
)
def test_broken_objects_name_their_line(columns: dict[str, Any], words: str) -> None:
    with pytest.raises(EnsueError, match=f"^dump.jsonl, line 1.*{words}"):
        read(columns)
