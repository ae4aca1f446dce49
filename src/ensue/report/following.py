"""Profiles of texts for a reader: tables for a terminal, and what a page of them shows."""

from __future__ import annotations

import heapq
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from markupsafe import Markup

from ensue.models.profile import Profile, ProfiledSentence
from ensue.report.figure import fraction, signed
from ensue.report.page import environment, write_page
from ensue.report.profiles import shortened
from ensue.report.table import Cell, Column, Table

_BAR_WIDTH = 10
# A terminal shows all sentences of a text of so many, else those that follow least.
_MOST_LINES, _LEAST_LINES = 200, 40
# So many texts a page holds, and of each so many sentences in a table; pictures have at most so many bars.
_MOST_TEXTS, _MOST_ROWS, _MOST_BARS = 50, 300, 100
# The share of sound sentences below which one is tinted, the lightest tint last.
_LOW = ((0.01, "low3"), (0.03, "low2"), (0.08, "low1"))
# Lines of verse are hardly ever longer.
_NARROW = 50
_BLANK_LINE = re.compile(r"\n[^\S\n]*\n")
_RANKED = 20


class Doubtful:
    """The texts that follow least of a stream of them; the others are only counted."""

    def __init__(self, most: int = _MOST_TEXTS) -> None:
        self.most = most
        self.count = self.found = 0
        self._kept: list[tuple[float, int, Profile]] = []

    def add(self, profile: Profile) -> None:
        self.count += 1
        self.found += profile.stands_out is not None
        # What cannot be told comes last; of equals the earlier first, which also keeps profiles from being compared.
        entry = (-2.0 if profile.false_alarm is None else -profile.false_alarm, -self.count, profile)
        if len(self._kept) < self.most:
            heapq.heappush(self._kept, entry)
        else:
            heapq.heappushpop(self._kept, entry)

    def profiles(self) -> list[Profile]:
        """Return them, the most doubtful first."""
        return [profile for *_, profile in sorted(self._kept, reverse=True)]


def profile_table(profile: Profile) -> Table:
    """Return a text as lines, each with a bar of how firmly it stands."""
    calibrated = any(one.share_below is not None for one in profile.sentences)
    table = Table(
        [
            Column("#"),
            Column("sentence", words=True, fold=True),
            Column("follows" if calibrated else "", words=True, min_width=_BAR_WIDTH),
            Column("gain"),
            Column("surprisal"),
        ],
        title=profile.id,
        caption="gain and surprisal in nats a token; the bar is "
        + ("the share of sentences in sound texts that follow less" if calibrated else "the gain"),
    )
    shares = _shares(profile, calibrated)
    for place in _shown(profile):
        one, share = profile.sentences[place], shares[place]
        out = place == profile.stands_out
        table.add(
            Cell(f"▶ {place + 1}" if out else str(place + 1), value=place + 1),
            one.text,
            Cell("█" * round((share or 0.0) * _BAR_WIDTH) or ("▏" if share is not None else ""), value=share),
            Cell(fraction(one.gain, 2), value=one.gain),
            Cell(fraction(one.surprisal, 2), value=one.surprisal),
            tone="mark" if out else "",
        )
    return table


def _shown(profile: Profile) -> Sequence[int]:
    count = len(profile.sentences)
    if count <= _MOST_LINES:
        return range(count)
    firm = [(_firmness(one), place) for place, one in enumerate(profile.sentences) if one.gain is not None]
    return sorted(place for _, place in heapq.nsmallest(_LEAST_LINES, firm))


def _shares(profile: Profile, calibrated: bool) -> list[float | None]:
    """Return how long each sentence's bar is, from 0 to 1; None for the first, of which nothing is known."""
    if calibrated:
        return [one.share_below for one in profile.sentences]
    most = max((one.gain or 0.0 for one in profile.sentences), default=0.0) or 1.0
    return [None if one.gain is None else max(0.0, one.gain) / most for one in profile.sentences]


def _firmness(one: ProfiledSentence) -> float:
    return one.standing if one.standing is not None else one.gain or 0.0


def ranking_table(doubtful: Doubtful) -> Table:
    """Return the most doubtful of many texts."""
    table = Table(
        [
            Column("text", words=True, fold=True),
            Column("#"),
            Column("sentence that follows least", words=True, fold=True),
            Column("sound texts\nwith such a one"),
        ],
        title="the most doubtful texts",
        caption=f"in {doubtful.found:,} of {doubtful.count:,} texts a sentence stands out (▶)",
    )
    for profile in doubtful.profiles()[:_RANKED]:
        if profile.least is None or profile.false_alarm is None:
            continue
        out = profile.stands_out is not None
        table.add(
            profile.id,
            Cell(f"▶ {profile.least + 1}" if out else str(profile.least + 1), value=profile.least + 1),
            shortened(profile.sentences[profile.least].text, 160),
            Cell(fraction(profile.false_alarm), value=profile.false_alarm),
            tone="mark" if out else "",
        )
    return table


def calibration_table(
    facts: Mapping[str, Any], lengths: Sequence[int], thresholds: Mapping[float, Sequence[float]]
) -> Table:
    """Return what a calibration found: how firmly a sentence must stand, by false alarms and length of the text."""
    table = Table(
        [Column("false alarms"), *(Column(f"{length}\nsentences") for length in lengths)],
        title=f"{facts['model']} with {facts['encoder']} on {facts['data']}",
        caption=f"{facts['documents']:,} texts, {facts['sentences']:,} sentences; a sentence stands out below so "
        f"many nats, by the length of its text",
    )
    for rate, row in thresholds.items():
        table.add(fraction(rate, 2), *(Cell(signed(one, 1), value=one) for one in row))
    return table


class PageSentence(NamedTuple):
    """A sentence on a page: what stands before it, its classes and what is said of it."""

    place: int
    before: str
    text: str
    tint: str
    out: bool
    about: str
    numbers: ProfiledSentence


class PageText(NamedTuple):
    """A text on a page: paragraphs of sentences, and its profile drawn; `lined` ones keep their line breaks."""

    name: str
    anchor: str
    profile: Profile
    paragraphs: list[tuple[bool, list[PageSentence]]]
    calibrated: bool
    bars: Markup
    rows: list[PageSentence]


def write_profiles(doubtful: Doubtful, output: str | Path, signature: str = "") -> Path:
    """Write a page of the most doubtful of some texts, the others counted, and say where it is."""
    texts = [page_text(profile, f"t{place}") for place, profile in enumerate(doubtful.profiles(), start=1)]
    calibrated = any(one.profile.false_alarm is not None for one in texts)
    facts = {
        "texts": texts,
        "count": doubtful.count,
        "found": doubtful.found,
        "left_out": doubtful.count - len(texts),
        "calibrated": calibrated,
        "signature": signature,
    }
    return write_page("ensue.report", "following.html.j2", facts, output)


def profile_html(profile: Profile) -> Markup:
    """Return one text sentence by sentence and how to read it, for a page that has `following.css`."""
    macros = environment().get_template("following_text.html.j2").module
    text = page_text(profile, "t1")
    shown = macros.profiled(text)  # type: ignore[attr-defined]
    reading = macros.reading(profile.false_alarm is not None)  # type: ignore[attr-defined]
    return Markup("{}\n<details><summary>How to read it</summary>\n{}</details>").format(shown, reading)


def page_text(profile: Profile, anchor: str) -> PageText:
    """Return a text as a page shows it, each sentence in its paragraph."""
    paragraphs: list[tuple[bool, list[PageSentence]]] = []
    every: list[PageSentence] = []
    reached = 0
    for place, one in enumerate(profile.sentences):
        between = profile.text[reached : one.start]
        if place == 0 or _BLANK_LINE.search(between):
            paragraphs.append((False, []))
            between = between.rpartition("\n")[2]
        lined, sentences = paragraphs[-1]
        words = profile.text[one.start : one.end]
        # Verse keeps its lines too; running text that somebody broke at the edge of a page does not.
        narrow = "\n" in words and max(map(len, words.splitlines())) <= _NARROW
        paragraphs[-1] = (lined or narrow or ("\n" in between and bool(sentences)), sentences)
        shown = PageSentence(
            place=place + 1,
            before=between,
            text=words,
            tint=_tint(one) if profile.false_alarm is not None else "",
            out=place == profile.stands_out,
            about=_about(place, one),
            numbers=one,
        )
        sentences.append(shown)
        every.append(shown)
        reached = one.end
    calibrated = any(one.share_below is not None for one in profile.sentences)
    bars = _bars(profile, anchor, calibrated)
    return PageText(profile.id, anchor, profile, paragraphs, calibrated, bars, every[:_MOST_ROWS])


def _tint(one: ProfiledSentence) -> str:
    if one.share_below is None:
        return ""
    return next((tint for below, tint in _LOW if one.share_below < below), "")


def _about(place: int, one: ProfiledSentence) -> str:
    """Say the numbers of a sentence in a line."""
    said = [f"sentence {place + 1}"]
    if one.share_below is not None:
        said.append(f"follows more than {100 * one.share_below:.0f} % of sentences")
    if one.gain is not None:
        said.append(f"gain {fraction(one.gain, 2)}")
    if one.surprisal is not None:
        said.append(f"surprisal {fraction(one.surprisal, 2)}")
    return ", ".join(said)


def _bars(profile: Profile, anchor: str, calibrated: bool) -> Markup:
    """Draw how firmly the sentences stand, in reading order from above; of several in a bar the least firm."""
    shares = _shares(profile, calibrated)
    step = -(-len(profile.sentences) // _MOST_BARS)
    height, width = 13, 150
    bars = Markup("")
    count = 0
    for begin in range(0, len(profile.sentences), step):
        group = range(begin, min(begin + step, len(profile.sentences)))
        place = min(group, key=lambda one: _shown_first(profile, one))
        one, share = profile.sentences[place], shares[place]
        out = place == profile.stands_out
        kind = "out" if out else "low" if _tint(one) else "firm"
        y = count * height
        count += 1
        label = Markup('<text x="30" y="{}" class="{}">{}</text>').format(
            y + 10, "outlabel" if out else "label", f"▶ {place + 1}" if out else place + 1
        )
        drawn = Markup('<rect x="36" y="{}" width="{}" height="9" class="track"/>').format(y + 1, width)
        if share is not None:
            length = max(2.0, share * width)
            drawn += Markup('<rect x="36" y="{}" width="{:.1f}" height="9" class="{}"/>').format(
                y + 1, length, kind
            )
        shown = label if out or count == 1 or count % 5 == 0 else Markup("")
        bars += Markup('<a href="#{}-s{}" tabindex="-1"><title>{}</title>{}{}</a>\n').format(
            anchor, place + 1, _about(place, one), shown, drawn
        )
    what = (
        "How firmly each sentence stands" if calibrated else "What each sentence gains from the text before"
    )
    form = '<svg viewBox="0 0 190 {}" role="group" aria-label="{}">\n{}</svg>'
    return Markup(form).format(
        count * height + 2, f"{what}, from above in reading order. {profile.verdict}", bars
    )


def _shown_first(profile: Profile, place: int) -> tuple[bool, bool, float]:
    """Return what sorts the sentences of one bar: the one that stands out, then the least firm of those judged."""
    one = profile.sentences[place]
    return place != profile.stands_out, one.gain is None, _firmness(one)
