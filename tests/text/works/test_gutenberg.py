"""Gutenberg's plain texts: licences come off, headings are found, tables of contents are not chapters."""

from pathlib import Path

import pytest

from ensue.text.works.gutenberg import find_chapters, paper_chapters, read_gutenberg, without_licence
from ensue.text.works.readers import NotUsable, Work

PARAGRAPH = (
    "The rain came down on the mill all that night and\nnobody in the valley slept for the noise of it. " * 6
)


def body(number: int, paragraphs: int = 3) -> str:
    opening = f"Day {number} began with the miller at the window\nand his wife on the stairs."
    return "\n\n".join([opening, *([PARAGRAPH.strip()] * paragraphs)])


def book(*headings: str) -> str:
    return "\n\n\n".join(f"{heading}\n\n{body(number)}" for number, heading in enumerate(headings, 1))


def headings(text: str) -> list[str]:
    return [chapter.heading for chapter in find_chapters(text)]


def read(text: str, rule: str = "robust") -> Work:
    return read_gutenberg(text.encode(), "mill.txt", "mill", rule)  # type: ignore[arg-type]


MODERN = (
    "The Project Gutenberg eBook of The Mill\n\nTitle: The Mill\n\n"
    "*** START OF THE PROJECT GUTENBERG EBOOK THE MILL ***\n\nProduced by A. Helper and others\n\n"
    "[Transcriber's Note: spelling kept.]\n\n{}\n\n"
    "*** END OF THE PROJECT GUTENBERG EBOOK THE MILL ***\n\nUpdated editions will replace the previous one.\n"
)
OLD = (
    "This is an old etext.\n\n*END THE SMALL PRINT! FOR PUBLIC DOMAIN ETEXTS*Ver.04.29.93*END*\n\n{}\n\n"
    "End of the Project Gutenberg Etext of The Mill\n"
)


@pytest.mark.parametrize("frame", [MODERN, OLD])
def test_licence_and_credits_come_off(frame: str) -> None:
    story = book("CHAPTER I", "CHAPTER II", "CHAPTER III")
    assert without_licence(frame.format(story))[0].strip() == story


def test_the_title_is_taken_from_the_header() -> None:
    assert read(MODERN.format(book("CHAPTER I", "CHAPTER II"))).title == "The Mill"
    assert read(book("CHAPTER I", "CHAPTER II")).title == "mill"


def test_a_text_without_licence_is_left_alone() -> None:
    assert without_licence("Rain.\n\nWind.\n") == ("Rain.\n\nWind.\n", "")


STYLES = """
    CHAPTER {r}|Chapter {n}|CHAP. {r}.|{r}|{r}.|{n}|STAVE {r}|LETTER {r}|[ {n} ]|— {r} —|CHAPTER {w}|_{w}_
    |{r}. THE MILL|{r}  The Old Mill|0{n} The Old Mill|CHAPTER {r}--The Mill|Chapter the {o}|Book {o}
    |Phase the {o}: The Mill|ADVENTURE {r}. A MISSING SPOON
"""


@pytest.mark.parametrize("form", [style.strip() for style in STYLES.split("|")])
def test_every_style_of_heading(form: str) -> None:
    numbers = [(1, "I", "One", "First"), (2, "II", "Two", "Second"), (3, "III", "Three", "Third")]
    wanted = [form.format(n=n, r=r, w=w, o=o) for n, r, w, o in numbers]
    assert headings(book(*wanted)) == [" ".join(each.split()) for each in wanted]


def test_paragraphs_are_joined_and_front_matter_dropped() -> None:
    text = "THE MILL\n\nPREFACE\n\nI wrote this in winter.\n\n\n" + book("CHAPTER I", "CHAPTER II")
    first, second = find_chapters(text)
    assert first.text.startswith(
        "Day 1 began with the miller at the window and his wife on the stairs.\n\nThe rain"
    )
    assert "\n" not in first.text.replace("\n\n", "")
    assert " ".join(second.text.split()) == " ".join(body(2).split())


def test_titles_below_the_number_belong_to_the_heading() -> None:
    text = book("CHAPTER I\n\nIn the Mill\n", "CHAPTER II\n\nOn the Stairs\n", "CHAPTER III\n\nIN THE RAIN\n")
    assert headings(text) == [
        "CHAPTER I\nIn the Mill",
        "CHAPTER II\nOn the Stairs",
        "CHAPTER III\nIN THE RAIN",
    ]


def test_a_books_heading_joins_its_first_chapters() -> None:
    text = book("BOOK I\n\nTHE MILL\n\n\nCHAPTER I", "CHAPTER II", "BOOK II\n\n\nCHAPTER I", "CHAPTER II")
    assert headings(text) == ["BOOK I\nTHE MILL\nCHAPTER I", "CHAPTER II", "BOOK II\nCHAPTER I", "CHAPTER II"]


@pytest.mark.parametrize("gap", ["\n", "\n\n"])
def test_tables_of_contents_are_no_chapters(gap: str) -> None:
    chapters = ["CHAPTER I. The Mill", "CHAPTER II. The Stairs", "CHAPTER III. Rain", "CHAPTER IV. Wind"]
    contents = gap.join(f"{heading} ..... {page}" for page, heading in enumerate(chapters, 7))
    for front in ("", "PREFACE\n\n" + PARAGRAPH + "\n\n\n"):
        assert headings(f"CONTENTS\n\n{contents}\n\n\n{front}{book(*chapters)}") == chapters


@pytest.mark.parametrize("gap", ["\n", "\n\n"])
@pytest.mark.parametrize("words", [1, 12])
def test_contents_with_books_and_long_entries(gap: str, words: int) -> None:
    entries = [
        f"CHAPTER {number}. {'The Mill and the Rain Again ' * words}"
        for number in ("I", "II", "III", "IV", "V")
    ]
    contents = "\n\n".join(f"{name}\n\n{gap.join(entries)}" for name in ("BOOK I", "BOOK II"))
    chapters = [
        "BOOK I\n\nCHAPTER I",
        "CHAPTER II",
        "CHAPTER III",
        "BOOK II\n\nCHAPTER I",
        "CHAPTER II",
        "CHAPTER III",
    ]
    wanted = [heading.replace("\n\n", "\n") for heading in chapters]
    assert headings(f"THE MILL\n\nCONTENTS\n\n{contents}\n\n\n{book(*chapters)}") == wanted


def test_running_text_is_no_heading() -> None:
    line = "\n\nchapter about the weir, which is so short that it scarce deserves\nto be called one at all.\n\nI\n\n"
    assert headings(book("CHAPTER I", "CHAPTER II" + line + "He left.", "CHAPTER III")) == [
        "CHAPTER I",
        "CHAPTER II",
        "CHAPTER III",
    ]


def test_sections_within_chapters_are_no_chapters() -> None:
    inner = [f"CHAPTER {n}\n\nI\n\n{PARAGRAPH}\n\nII\n\n{PARAGRAPH}\n\nIII" for n in ("I", "II", "III")]
    assert headings(book(*inner)) == ["CHAPTER I\nI", "CHAPTER II\nI", "CHAPTER III\nI"]


def test_prologue_and_epilogue_are_chapters_and_what_follows_the_end_is_not() -> None:
    text = (
        book("PROLOGUE", "CHAPTER I", "CHAPTER II", "EPILOGUE")
        + "\n\nTHE END\n\n\nFOOTNOTES\n\nSee the mill."
    )
    chapters = find_chapters(text)
    assert [chapter.heading for chapter in chapters] == ["PROLOGUE", "CHAPTER I", "CHAPTER II", "EPILOGUE"]
    assert chapters[-1].text.endswith("the noise of it.")


def test_a_misprinted_number_still_begins_a_chapter() -> None:
    wanted = ["CHAPTER I", "CHAPTER II", "CHAPTER XIII", "CHAPTER IV", "CHAPTER V"]
    assert headings(book(*wanted)) == wanted


def test_numbered_stanzas_are_no_chapters() -> None:
    song = "\n\n".join(
        f"{number}.\n\nThe wheel goes round,\nthe rain comes down." for number in ("I", "II", "III")
    )
    assert headings(f"{PARAGRAPH}\n\n{song}\n\n{PARAGRAPH}") == []


def test_the_papers_rule_is_literal() -> None:
    text = "Preface\n\nCHAPTER I\n\nRain.\n\nIt rained all through the\nchapter of the day.\n\n Chapter II\n\nWind."
    assert [(each.heading, each.text) for each in paper_chapters(text)] == [
        ("CHAPTER I", "Rain.\n\nIt rained all through the"),
        ("chapter of the day.", "Chapter II\n\nWind."),
    ]


@pytest.mark.parametrize("rule", ["paper", "robust"])
def test_a_text_without_headings_is_not_usable(rule: str) -> None:
    with pytest.raises(NotUsable) as caught:
        read(PARAGRAPH, rule)
    assert caught.value.reason == "no chapter headings"


def test_latin_1_is_read_where_a_file_is_not_utf_8(tmp_path: Path) -> None:
    text = book("CHAPTER I", "CHAPTER II").replace("miller", "abbé")
    for encoding in ("utf-8", "utf-8-sig", "latin-1"):
        assert read_gutenberg(text.encode(encoding), "mill.txt", "mill", "robust") == read(text)
