"""The page of profiled texts: every sentence once and in order, in paragraphs, with words where there is colour."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from ensue.models.profile import Profile, ProfiledSentence
from ensue.report.following import Doubtful, calibration_table, profile_table, ranking_table, write_profiles
from tests.support.pages import EVIL, Page, printed

TEXT = f"One rises.  Two\nsets.\n\n{EVIL} is three.\n\n- four\n- five\n\nسته هنا."
SENTENCES = ["One rises.", "Two sets.", f"{EVIL} is three.", "- four", "- five", "سته هنا."]
SHARES = [None, 0.5, 0.002, 0.02, 0.06, 0.9]


def made(id: str = "a text", *, stands_out: int | None = 2, false_alarm: float | None = 0.03) -> Profile:
    rows, at = [], 0
    for words, share in zip(SENTENCES, SHARES, strict=True):
        start = re.compile(r"\s+".join(map(re.escape, words.split()))).search(TEXT, at)
        assert start is not None
        at = start.end()
        gain = None if share is None else 2 * share
        known = share if false_alarm is not None else None
        rows.append(ProfiledSentence(words, start.start(), at, 4, 3.25, gain, gain, 1.0, 0.5, known, known))
    least = None if false_alarm is None else 2
    verdict = "Nothing stands out." if stands_out is None else "Sentence 3 stands out: “…”"
    return Profile(
        id, TEXT, 24, -78.0, -3.25, tuple(rows), stands_out, least, false_alarm, verdict, "so it is"
    )


def page_of(tmp_path, *profiles: Profile, signature: str = "") -> str:
    found = Doubtful()
    for one in profiles:
        found.add(one)
    return write_profiles(found, tmp_path / "page.html", signature).read_text("utf-8")


class Reader(HTMLParser):
    """Reads the sentences of a page: their words, hidden words, classes and paragraphs."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[tuple[str, dict]] = []
        self.sentences: list[dict] = []
        self.paragraphs = 0
        self.ids: list[str] = []
        self.links: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        known = dict(attrs)
        self.ids += [known["id"]] if "id" in known else []
        self.links += [known["href"][1:]] if tag == "a" else []
        if tag not in ("meta", "br"):
            self.open.append((tag, known))
        if "dir" in known and tag == "p":
            self.paragraphs += 1
        if "s" in known.get("class", "").split():
            facts = {"words": "", "hidden": "", "class": known["class"], "title": known["title"]}
            self.sentences.append({**facts, "tag": tag, "paragraph": self.paragraphs})

    def handle_endtag(self, tag):
        assert self.open.pop()[0] == tag

    def handle_data(self, data):
        inside = [known.get("class", "").split() for _, known in self.open]
        if any("s" in names for names in inside):
            self.sentences[-1]["hidden" if ["hidden"] in inside else "words"] += data


def test_every_sentence_stands_once_in_order_in_its_paragraph(tmp_path):
    text = page_of(tmp_path, made(), signature="rules:1")
    page, read = Page(text), Reader(text)
    assert (page.faults, page.open) == ([], [])
    assert not {"script", "img", "link"} & set(page.tags)
    assert [" ".join(one["words"].split()) for one in read.sentences] == SENTENCES
    assert [one["paragraph"] for one in read.sentences] == [1, 1, 2, 3, 3, 4]
    assert [tag for tag, name, value in page.attributes if (name, value) == ("class", "lined")] == ["p", "p"]
    assert "rules:1" in page.text
    assert len(set(read.ids)) == len(read.ids)
    assert set(read.links) <= set(read.ids)


def test_what_is_tinted_is_also_said(tmp_path):
    read = Reader(page_of(tmp_path, made()))
    assert [one["class"] for one in read.sentences] == ["s", "s", "s out", "s low2", "s low1", "s"]
    assert [bool(one["hidden"]) for one in read.sentences] == [False, False, True, True, True, False]
    out = read.sentences[2]
    assert (out["tag"], out["hidden"]) == (
        "mark",
        "[stands out:  sentence 3, follows more than 0 % of sentences, gain 0.00, surprisal 3.25]",
    )
    assert (
        read.sentences[1]["title"]
        == "sentence 2, follows more than 50 % of sentences, gain 1.00, surprisal 3.25"
    )
    assert read.sentences[0]["title"] == "sentence 1, surprisal 3.25"


def test_the_picture_has_a_bar_a_sentence_and_words(tmp_path):
    text = page_of(tmp_path, made())
    (svg,) = re.findall(r"<svg.*?</svg>", text, re.DOTALL)
    assert svg.count("<a ") == 6
    assert svg.count('class="track"') == 6
    bars = [
        (kind, float(width))
        for width, kind in re.findall(r'width="([\d.]+)" height="9" class="(\w+)"', svg)
        if kind != "track"
    ]
    assert bars == [("firm", 75.0), ("out", 2.0), ("low", 3.0), ("low", 9.0), ("firm", 135.0)]
    assert "Sentence 3 stands out" in re.search(r'aria-label="([^"]*)"', svg)[1]
    assert "▶ 3" in svg


def test_without_a_calibration_nothing_is_tinted(tmp_path):
    text = page_of(tmp_path, made(stands_out=None, false_alarm=None))
    assert {one["class"] for one in Reader(text).sentences} == {"s"}
    assert text.count("What each sentence gains") == 2
    assert "How firmly" not in text
    # The first sentence has no bar: nobody knows what it gains. The most is drawn whole.
    widths = re.findall(r'width="([\d.]+)" height="9" class="(?!track)', text)
    assert [float(one) for one in widths] == pytest.approx([83.3, 2.0, 3.3, 10.0, 150.0])


def test_the_table_of_a_page_has_all_that_the_verdict_is_made_of(tmp_path):
    one = made()
    sentences = [row._replace(belonging=-1.25 if row.gain is not None else None) for row in one.sentences]
    page = Page(page_of(tmp_path, replace(one, sentences=tuple(sentences))))
    assert re.search(r"gives\s+likeness\s+belongs", page.text)
    assert page.text.count("−1.2") == 5
    assert "a reader, a small model trained for it" in page.text


def test_doubtful_texts_come_first_and_the_rest_is_counted(tmp_path):
    alarms = [0.5, None, 0.01, 0.2, 0.01]
    profiles = [
        made(f"t{n}", stands_out=2 if rate == 0.01 else None, false_alarm=rate)
        for n, rate in enumerate(alarms)
    ]
    page = Page(page_of(tmp_path, *profiles))
    listed = re.findall(r"\bt\d\b", page.text)[:5]
    assert listed == ["t2", "t4", "t3", "t0", "t1"]
    assert "In 2 of 5 texts a sentence stands out" in page.text
    many = Doubtful(most=2)
    for one in profiles:
        many.add(one)
    assert [one.id for one in many.profiles()] == ["t2", "t4"]
    text = Page(write_profiles(many, tmp_path / "many.html").read_text()).text
    assert "3 more texts" in text
    rows = ranking_table(many).rows
    assert [row.cells[0] for row in rows] == ["t2", "t4"]


def test_a_terminal_marks_the_sentence_with_more_than_colour():
    lines = printed(profile_table(made("[red]x[/red]")).to_rich())
    assert "[red]x[/red]" in lines[0]
    (marked,) = [line for line in lines if "▶ 3" in line]
    assert "alert" in marked
    assert [line.count("█") for line in lines if re.match(r" +(▶ )?\d ", line)] == [0, 5, 0, 0, 1, 9]
    lines = printed(profile_table(made(stands_out=None, false_alarm=None)).to_rich())
    assert [line.count("█") + line.count("▏") for line in lines if re.match(r" +\d ", line)] == [
        0,
        6,
        1,
        1,
        1,
        10,
    ]


@pytest.mark.parametrize("count", [100, 101, 1000])
def test_a_long_text_is_drawn_in_at_most_so_many_bars(tmp_path, count):
    words = "Word. " * count
    first = ProfiledSentence("Word.", 0, 5, 2, 1.0, None, None, None, None, None, None)
    rows = [
        first,
        *(
            ProfiledSentence(
                "Word.", 6 * n, 6 * n + 5, 2, 1.0, 1.0, 2.0, 1.0, None, 1.0, 0.0 if n == 77 else 0.5
            )
            for n in range(1, count)
        ),
    ]
    one = Profile("long", words, 2 * count, -1.0, -1.0, tuple(rows), 77, 77, 0.01, "Sentence 78", "so")
    text = page_of(tmp_path, one)
    (svg,) = re.findall(r"<svg.*?</svg>", text, re.DOTALL)
    assert svg.count("<a ") <= 100
    assert "▶ 78" in svg
    # Where the first sentence, of which nothing is known, shares a bar, that is another's.
    assert (svg.count('class="track"') - len(re.findall(r'class="(?:firm|low|out)"', svg))) == (count == 100)
    assert len(Reader(text).sentences) == count
    assert ("The table has the first 300" in text) == (count == 1000)


def test_a_calibration_is_told_in_thresholds():
    facts = {"model": "m", "encoder": "none", "data": "news", "documents": 1234, "sentences": 20000}
    lines = printed(calibration_table(facts, [10, 20], {0.1: [-5.26, -9.04]}).to_rich())
    assert any("0.10" in line and "−5.3" in line and "−9.0" in line for line in lines)
    assert "1,234 texts, 20,000 sentences" in " ".join(lines)
