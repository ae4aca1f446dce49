"""One table for every place it is shown: the terminal, a page, Markdown, CSV and LaTeX."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, get_args

from ensue.errors import EnsueError
from ensue.report.figure import NONE, Figure, count, fraction
from ensue.text.visible import visible

if TYPE_CHECKING:
    from markupsafe import Markup
    from rich.table import Table as RichTable

FORMATS = ("table", "markdown", "csv", "latex")
Tone = Literal["", "strong", "quiet", "good", "bad", "mark", "published"]
_RICH = dict(zip(get_args(Tone), ("", "bold", "dim", "green", "red", "bold yellow", "dim"), strict=True))
_HTML = dict(zip(get_args(Tone), ("", "main", "soft", "good", "bad", "stop", "published"), strict=True))


@dataclass(frozen=True)
class Column:
    """A column: its heading, and what kind of words or numbers it holds.

    `wide` is the heading where there is room, `published` marks figures from a paper. A column that is not
    `in_terminal` is left out where 80 columns must do.
    """

    heading: str
    words: bool = False
    wide: str = ""
    published: bool = False
    in_terminal: bool = True
    fold: bool = False
    min_width: int | None = None

    @property
    def title(self) -> str:
        return self.wide or " ".join(self.heading.split())


@dataclass(frozen=True)
class Cell:
    """A cell with more to it than a value: `text` as shown, `below` in small beneath, `value` for files."""

    text: str
    tone: Tone = ""
    below: str = ""
    value: Any = None
    html: Markup | None = None


Content = Cell | Figure | str | int | float | None


@dataclass(frozen=True)
class TableRow:
    """A row; `section` asks for a line above it, and a `heading` spans the columns with its first cell.

    One that is not `in_terminal` is left out where a table must fit a screen.
    """

    cells: Sequence[Content]
    tone: Tone = ""
    section: bool = False
    heading: bool = False
    in_terminal: bool = True


@dataclass
class Table:
    """A title, columns, rows and a caption."""

    columns: Sequence[Column]
    rows: list[TableRow] = field(default_factory=list)
    title: str = ""
    caption: str = ""

    def add(self, *cells: Content, tone: Tone = "", section: bool = False, in_terminal: bool = True) -> None:
        """Add a row, a cell a column."""
        if len(cells) != len(self.columns):
            raise ValueError(f"{len(cells)} cells for {len(self.columns)} columns")
        self.rows.append(TableRow(cells, tone, section, in_terminal=in_terminal))

    def add_heading(self, words: str, *, tone: Tone = "quiet") -> None:
        """Begin a section with words that head its rows."""
        cells = [words, *[""] * (len(self.columns) - 1)]
        self.rows.append(TableRow(cells, tone, section=True, heading=True))

    def to_rich(self) -> RichTable:
        """Return the table for the terminal."""
        # rich takes a tenth of a second to import; those who only want JSON need not wait for it.
        from rich import box
        from rich.markup import escape
        from rich.table import Table as RichTable

        table = RichTable(
            title=escape(visible(self.title)) or None,
            caption=escape(visible(self.caption)) or None,
            box=box.SIMPLE_HEAD,
            padding=(0, 1, 0, 0),
            title_justify="left",
            caption_justify="left",
        )
        shown = [index for index, column in enumerate(self.columns) if column.in_terminal]
        for index in shown:
            column = self.columns[index]
            table.add_column(
                escape(column.heading),
                justify="left" if column.words else "right",
                no_wrap=not column.fold,
                overflow="fold" if column.fold else "ellipsis",
                min_width=column.min_width if column.words else self._widest(index),
            )
        for row in self.rows:
            if row.section:
                table.add_section()
            if not row.in_terminal:
                continue
            table.add_row(
                *(_rich_text(_cell(row.cells[index])) for index in shown), style=_RICH[row.tone] or None
            )
        return table

    def _widest(self, index: int) -> int:
        """Return how wide a column of numbers is: half a number is a wrong one, so none is ever cut."""
        column, cells = self.columns[index], [_cell(row.cells[index]) for row in self.rows if row.in_terminal]
        texts = [column.heading, *(text for cell in cells for text in (cell.text, cell.below))]
        widest = max(len(visible(line)) for text in texts for line in (text.splitlines() or [""]))
        return max(widest, column.min_width or 0)

    def to_html(self) -> Markup:
        """Return the table for a page, in a box that scrolls where it is too wide; the first column heads rows."""
        from markupsafe import Markup, escape

        heads = Markup("").join(
            Markup('<th scope="col"{}>{}</th>').format(_classes(column), column.title)
            for column in self.columns
        )
        caption = Markup("<caption>{}</caption>\n").format(self.title) if self.title else Markup("")
        below = Markup('<p class="soft">{}</p>\n').format(self.caption) if self.caption else Markup("")
        bodies = Markup("").join(
            Markup("<tbody>\n{}</tbody>\n").format(Markup("").join(map(self._html_row, rows)))
            for rows in _sections(self.rows)
        )
        return Markup(
            '<div class="scroll" tabindex="0"><table>\n{}<thead><tr>{}</tr></thead>\n{}</table></div>\n{}'
        ).format(caption, heads, bodies, escape(below))

    def _html_row(self, row: TableRow) -> Markup:
        from markupsafe import Markup

        if row.heading:
            form = '<tr><th scope="rowgroup" colspan="{}" class="words {}">{}</th></tr>\n'
            return Markup(form).format(len(self.columns), _HTML[row.tone], row.cells[0])
        cells = Markup("")
        for place, (column, content) in enumerate(zip(self.columns, row.cells, strict=True)):
            cell = _cell(content)
            text = cell.html if cell.html is not None else Markup("{}").format(_indented(cell.text))
            if cell.below:
                text += Markup('<br><span class="soft number">{}</span>').format(cell.below)
            form = '<th scope="row"{}>{}</th>' if place == 0 else "<td{}>{}</td>"
            cells += Markup(form).format(_classes(column, _HTML[cell.tone]), text)
        tone = Markup(' class="{}"').format(_HTML[row.tone]) if row.tone else Markup("")
        return Markup("<tr{}>{}</tr>\n").format(tone, cells)

    def to_markdown(self) -> str:
        """Return the table as Markdown, title and caption around it."""
        head = "| " + " | ".join(_markdown(column.title) for column in self.columns) + " |"
        rule = "|" + "|".join("---" if column.words else "--:" for column in self.columns) + "|"
        rows = ["| " + " | ".join(map(_markdown, row)) + " |" for row in self._texts()]
        parts = [f"**{_markdown(self.title)}**"] if self.title.strip() else []
        parts += ["\n".join([head, rule, *rows])]
        parts += [_markdown(self.caption)] if self.caption else []
        return "\n\n".join(parts) + "\n"

    def to_csv(self) -> str:
        """Return the table as CSV with numbers unrounded; title and caption are left out."""
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(column.title for column in self.columns)
        for row in self.rows:
            # A lone carriage return would not be quoted and would end the line.
            writer.writerow(
                "\n".join(raw.splitlines()) if isinstance(raw, str) and "\r" in raw else raw
                for raw in map(_raw, row.cells)
            )
        return out.getvalue()

    def to_latex(self) -> str:
        """Return the table as a LaTeX `table` with booktabs rules."""
        kinds = "".join("l" if column.words else "r" for column in self.columns)
        head = " & ".join(_latex(column.title) for column in self.columns)
        lines = ["\\begin{table}", "\\centering", f"\\begin{{tabular}}{{{kinds}}}", "\\toprule"]
        lines += [f"{head} \\\\", "\\midrule"]
        for place, (row, texts) in enumerate(zip(self.rows, self._texts(), strict=True)):
            lines += ["\\midrule"] if row.section and place else []
            lines.append(" & ".join(map(_latex, texts)) + " \\\\")
        lines += ["\\bottomrule", "\\end{tabular}"]
        words = " ".join(filter(None, (self.title and f"{self.title}.", self.caption)))
        lines += [f"\\caption{{{_latex(words)}}}"] if words else []
        return "\n".join([*lines, "\\end{table}", ""])

    def _texts(self) -> Iterator[list[str]]:
        for row in self.rows:
            cells = [_cell(content) for content in row.cells]
            yield [f"{cell.text} ({cell.below})" if cell.below else cell.text for cell in cells]


def render(tables: Sequence[Table], form: str) -> str:
    """Return tables as text in one of the formats that are files: markdown, csv or latex."""
    check_format(form)
    return "\n".join(getattr(table, f"to_{form}")() for table in tables)


def check_format(form: str) -> None:
    """Raise EnsueError where there is no such format."""
    if form not in FORMATS:
        raise EnsueError(f"Invalid format {form!r}: expected one of {', '.join(FORMATS)}.")


def figure_cell(
    figure: Figure | None, *, digits: int = 3, below_digits: int | None = None, strong: bool = False
) -> Cell:
    """Return a figure as a cell with its interval beneath, in as many digits where no other number is given."""
    if figure is None:
        return Cell(NONE)
    below = figure.interval(below_digits or digits) if figure.low is not None else ""
    return Cell(figure.text(digits), "strong" if strong else "", below, figure.value)


def blank_on_page(label: str | int) -> Cell:
    """Return a label that the row above has too: a page leaves it blank, all else repeats it."""
    from markupsafe import Markup

    return Cell(count(label) if isinstance(label, int) else label, value=label, html=Markup(""))


def _cell(content: Content) -> Cell:
    if isinstance(content, Cell):
        return content
    if isinstance(content, Figure):
        return Cell(content.text())
    if content is None:
        return Cell(NONE)
    if isinstance(content, float):
        return Cell(fraction(content))
    return Cell(count(content) if isinstance(content, int) else content)


def _raw(content: Content) -> Any:
    if isinstance(content, Figure):
        return content.value
    if isinstance(content, Cell):
        return content.text if content.value is None else content.value
    return "" if content is None else content


def _indented(text: str) -> str:
    """Return a text whose leading spaces a page keeps."""
    return "\u2003" * (len(text) - len(text.lstrip(" "))) + text.lstrip(" ")


def _rich_text(cell: Cell) -> str:
    from rich.markup import escape

    style, words, below = _RICH[cell.tone], escape(visible(cell.text)), escape(visible(cell.below))
    text = f"[{style}]{words}[/{style}]" if style and words else words
    return f"{text}\n[dim]{below}[/dim]" if below else text


def _classes(column: Column, tone: str = "") -> Markup:
    from markupsafe import Markup

    names = [*(["words"] if column.words else []), *(["published"] if column.published else [])]
    names += [tone] if tone else []
    return Markup(' class="{}"').format(" ".join(names)) if names else Markup("")


def _sections(rows: Sequence[TableRow]) -> Iterator[list[TableRow]]:
    """Divide rows where one asks for a line above it."""
    part: list[TableRow] = []
    for row in rows:
        if row.section and part:
            yield part
            part = []
        part.append(row)
    yield part


def _markdown(text: str) -> str:
    return re.sub(r"([\\|<])", r"\\\1", " ".join(text.split()))


_LATEX = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "−": "$-$",
    "–": "--",
    "±": r"$\pm$",
    "α": r"$\alpha$",
    "ρ": r"$\rho$",
    "τ": r"$\tau$",
    "†": r"\dag{}",
    "·": r"$\cdot$",
    "’": "'",
}


def _latex(text: str) -> str:
    return re.sub(r"\s+", " ", "".join(_LATEX.get(letter, letter) for letter in text))
