"""One table in every form: words of a user never break the form, numbers of files are unrounded."""

from __future__ import annotations

import csv
import io
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ensue.console import print_tables
from ensue.errors import EnsueError
from ensue.report.figure import Figure
from ensue.report.table import Cell, Column, Table, blank_on_page, figure_cell, render
from tests.support.pages import EVIL, Page, printed

words = st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\0"), max_size=30)
LATEX = r"50 % of {a_b} & #1 costs $5 \ ~ ^ −1 – ±α"


def two_columns(*cells: str, title: str = "", caption: str = "") -> Table:
    """A table of words with so many rows, each with a number."""
    table = Table([Column("system", words=True), Column("score")], title=title, caption=caption)
    for cell in cells:
        table.add(cell, 0.5)
    return table


def rich_table() -> Table:
    """A table with every kind of content."""
    table = Table(
        [
            Column("model", words=True),
            Column("acc.", wide="accuracy"),
            Column("n"),
            Column("paper", published=True, in_terminal=False),
        ],
        title="Scores",
        caption="chance is 0.5",
    )
    table.add("one", figure_cell(Figure(0.123456, 0.1, 0.2), strong=True), 12345, None)
    table.add(blank_on_page("one"), Cell("−0.50", value=-0.4999), 7, 0.25, section=True, tone="quiet")
    return table


def test_html_heads_rows_marks_tones_and_has_a_body_for_each_section() -> None:
    page = Page(rich_table().to_html())
    assert (page.faults, page.open) == ([], [])
    assert page.tags.count("tbody") == 2
    assert (page.tags.count("th"), page.tags.count("td")) == (4 + 2, 2 * 3)
    assert {value for _, name, value in page.attributes if name == "class"} >= {"main", "published", "soft"}
    for said in ("Scores", "accuracy", "0.123 0.100–0.200", "12,345", "–", "0.250", "chance is 0.5"):
        assert said in page.text, said
    # What repeats the row above is blank on a page and nowhere else.
    assert page.text.count("one") == 1
    assert rich_table().to_markdown().count("one") == 2


@given(words, words, words, words)
def test_html_never_takes_words_for_markup(title: str, heading: str, cell: str, below: str) -> None:
    table = Table([Column(heading)], title=title, caption=below)
    table.add(Cell(cell, below=below))
    page = Page(table.to_html())
    assert (page.faults, page.open) == ([], [])
    assert set(page.tags) <= {"div", "table", "caption", "thead", "tbody", "tr", "th", "br", "span", "p"}
    evil = Page(two_columns(EVIL, title=EVIL, caption=EVIL).to_html())
    assert evil.text.count("alert('x')") == 3
    assert not {"script", "img"} & set(evil.tags)


def test_a_heading_spans_the_columns_of_a_page_and_keeps_its_words_elsewhere() -> None:
    table = Table([Column("system", words=True), Column("score")])
    table.add_heading("published (table 2)", tone="published")
    table.add("  CBoW", 0.5, tone="published")
    assert (
        '<th scope="rowgroup" colspan="2" class="words published">published (table 2)</th>' in table.to_html()
    )
    assert "\u2003\u2003CBoW" in table.to_html()
    assert "| published (table 2) |  |" in table.to_markdown()


def test_markdown_has_all_columns_with_title_and_caption() -> None:
    assert rich_table().to_markdown() == (
        "**Scores**\n\n"
        "| model | accuracy | n | paper |\n"
        "|---|--:|--:|--:|\n"
        "| one | 0.123 (0.100–0.200) | 12,345 | – |\n"
        "| one | −0.50 | 7 | 0.250 |\n\n"
        "chance is 0.5\n"
    )


@given(st.lists(words, min_size=1, max_size=4), words)
def test_markdown_keeps_its_rows_and_columns_whatever_the_words(cells: list[str], title: str) -> None:
    lines = two_columns(*cells, title=title).to_markdown().splitlines()
    rows = lines[2 if title.strip() else 0 :]
    assert len(rows) == 2 + len(cells)
    for row in rows:
        # Taken from the left, an escape and what it escapes are no border and no tag.
        bare = re.sub(r"\\.", "", row)
        assert bare.count("|") == 3
        assert "<" not in bare


@given(st.lists(st.tuples(words, st.floats(allow_nan=False, allow_infinity=False)), max_size=5))
def test_csv_is_read_back_unrounded(rows: list[tuple[str, float]]) -> None:
    table = Table([Column("system, long", words=True), Column("a", wide='the "score"')])
    for name, value in rows:
        table.add(name, Cell(f"{value:.1f}", value=value))
    head, *found = csv.reader(io.StringIO(table.to_csv(), newline=""))
    assert head == ["system, long", 'the "score"']
    # A carriage return of a text is any other line break.
    expected = [("\n".join(name.splitlines()) if "\r" in name else name, value) for name, value in rows]
    assert [(name, float(value)) for name, value in found] == expected


def test_csv_has_numbers_for_figures_and_nothing_for_what_is_missing() -> None:
    _, *found = csv.reader(io.StringIO(rich_table().to_csv()))
    assert found == [["one", "0.123456", "12345", ""], ["one", "-0.4999", "7", "0.25"]]


def test_latex_is_a_table_with_rules() -> None:
    text = rich_table().to_latex()
    assert text.startswith("\\begin{table}\n\\centering\n\\begin{tabular}{lrrr}\n\\toprule\n")
    assert text.endswith("\\bottomrule\n\\end{tabular}\n\\caption{Scores. chance is 0.5}\n\\end{table}\n")
    assert "one & 0.123 (0.100--0.200) & 12,345 & -- \\\\" in text
    assert text.count("\\midrule") == 2


def test_latex_has_one_rule_below_the_head_where_the_first_row_begins_a_section() -> None:
    table = Table([Column("a"), Column("b")])
    for section in (True, False, True):
        table.add("1", "2", section=section)
    lines = table.to_latex().splitlines()
    rules = [place for place, line in enumerate(lines) if line == "\\midrule"]
    assert [lines[place - 1] for place in rules] == ["a & b \\\\", "1 & 2 \\\\"]


def test_latex_escapes_what_it_would_read_itself() -> None:
    escaped = (
        r"50 \% of \{a\_b\} \& \#1 costs \$5 \textbackslash{} \textasciitilde{} \textasciicircum{} $-$1 -- "
        r"$\pm$$\alpha$"
    )
    assert f"{escaped} & 0.500 \\\\" in two_columns(LATEX).to_latex()


@given(st.lists(words, min_size=1, max_size=4))
def test_latex_keeps_its_rows_and_columns_whatever_the_words(cells: list[str]) -> None:
    body = two_columns(*cells).to_latex().split("\\midrule\n")[1].split("\\bottomrule")[0]
    rows = body.splitlines()
    assert len(rows) == len(cells)
    for row in rows:
        assert row.endswith(" \\\\")
        assert len(re.findall(r"(?<!\\)&", row)) == 1
        assert not re.search(r"(?<!\\)[%#_]", row)


def test_the_terminal_leaves_out_what_does_not_fit_and_shows_marks_as_they_are() -> None:
    assert "paper" not in " ".join(printed(rich_table().to_rich()))
    assert any("[red]x[/red]" in line for line in printed(two_columns("[red]x[/red]").to_rich()))


@pytest.mark.parametrize("width", ["40", "80", "200"])
def test_no_number_is_cut_however_narrow_the_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], width: str
) -> None:
    monkeypatch.setenv("COLUMNS", width)
    columns = [Column("annotator", words=True), *(Column(f"number\n{n}") for n in range(8))]
    table = Table(columns, title="Many")
    numbers = [[f"{row}.{place}23456" for place in range(8)] for row in range(3)]
    for row in numbers:
        table.add("somebody with a long name", *row)
    print_tables([table])
    shown = capsys.readouterr().out
    for row in numbers:
        assert any(all(number in line for number in row) for line in shown.splitlines()), shown
    assert shown.count("number") == 8


def test_a_row_has_a_cell_for_each_column() -> None:
    with pytest.raises(ValueError, match="1 cells for 2 columns"):
        two_columns().add("one")


def test_several_tables_are_rendered_one_after_another_in_a_known_form() -> None:
    assert (
        render([two_columns("a"), two_columns("b")], "csv") == "system,score\na,0.5\n\nsystem,score\nb,0.5\n"
    )
    with pytest.raises(EnsueError, match="Invalid format 'pdf': expected one of table, markdown, csv, latex"):
        render([], "pdf")
