"""`ensue score --profile`: what is printed, exit codes, many texts at once, and going on after a kill."""

from __future__ import annotations

import json
import time

import pytest

from tests.support.command import here, read_lines, refused, start, write_lines
from tests.support.corpus import document
from tests.support.pages import Page

KEYS = {
    *("name", "order", "sentences", "surprisal", "tokens", "gain", "received", "given", "likeness"),
    *("belonging", "standing", "share_below", "stands_out", "least", "false_alarm", "verdict", "why"),
}


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """Where a calibration of `random` is kept."""
    return tmp_path_factory.mktemp("home")


@pytest.fixture(autouse=True)
def calibrated(home, monkeypatch):
    monkeypatch.setenv("ENSUE_HOME", str(home))
    if not (home / "following.json").exists():
        rows = [{"text": " ".join(document(n, 8))} for n in range(60)]
        sound = write_lines(home / "sound.jsonl", rows)
        done = here("calibrate", "random", "--data", sound, "--encoder", "none", "--about", "news")
        assert done.code == 0, done.err


@pytest.fixture
def texts(tmp_path):
    return write_lines(
        tmp_path / "texts.jsonl", [{"id": f"t{n}", "text": " ".join(document(100 + n, 8))} for n in range(30)]
    )


def profiles(out: str) -> list[dict]:
    return [json.loads(line)["profile"][0] for line in out.splitlines()]


def test_each_object_has_a_profile_of_equal_lists(texts):
    done = here("score", texts, "--model", "random", "--profile", "--json")
    assert done.code == 0
    rows = [json.loads(line) for line in done.out.splitlines()]
    assert [row["id"] for row in rows] == [f"t{n}" for n in range(30)]
    for row in rows:
        assert set(row) == {"id", "tokens", "logprob", "logprob_per_token", "profile"}
        (one,) = row["profile"]
        assert set(one) == KEYS
        lists = [value for value in one.values() if isinstance(value, list)]
        assert {len(value) for value in lists} == {8}
        assert one["gain"][0] is None
        assert all(isinstance(value, float) for value in one["gain"][1:])
        assert one["stands_out"] in (None, one["least"])
        assert sum(one["tokens"]) == row["tokens"]
    found = {one["stands_out"] is not None for one in profiles(done.out)}
    assert found == {True, False}


def test_false_alarms_are_as_many_as_are_asked_for(texts):
    command = ("score", texts, "--model", "random", "--profile", "--json")
    at = {}
    for rate in ("0.05", "0.3", "0.9"):
        rows = profiles(here(*command, "--set", f"false_alarms={rate}").out)
        at[rate] = sum(one["stands_out"] is not None for one in rows)
        assert all((one["stands_out"] is not None) == (one["false_alarm"] <= float(rate)) for one in rows)
    assert at["0.05"] < at["0.3"] < at["0.9"]
    for rate in ("0", "1", "x", "-0.1", "nan"):
        refused(here(*command, "--set", f"false_alarms={rate}"), "false_alarms")


def test_the_exit_code_says_whether_a_sentence_stands_out(texts, tmp_path):
    rows = profiles(here("score", texts, "--model", "random", "--profile", "--json").out)
    sound, broken = (
        next(n for n, one in enumerate(rows) if (one["stands_out"] is None) == wanted)
        for wanted in (True, False)
    )
    lines = texts.read_text().splitlines(keepends=True)
    for place, code in ((sound, 0), (broken, 1)):
        file = tmp_path / f"{place}.jsonl"
        file.write_text(lines[place])
        command = ("score", file, "--model", "random", "--profile")
        assert here(*command).code == 0
        done = here(*command, "--fail-on-break")
        assert done.code == code
        assert rows[place]["verdict"] in done.out.replace("\n", " ")
    assert "of the sentences in news" in done.out
    assert f"▶ {rows[broken]['stands_out'] + 1}" in done.out
    short = tmp_path / "short.txt"
    short.write_text("One. Two.")
    done = here("score", short, "--model", "random", "--profile", "--fail-on-break")
    assert (done.code, "too short to tell" in done.out) == (0, True)
    refused(here("score", texts, "--model", "random", "--fail-on-break"), "add --profile")


def test_many_texts_end_in_a_list_of_the_most_doubtful(texts):
    done = here("score", texts, "--model", "random", "--profile")
    rows = profiles(here("score", texts, "--model", "random", "--profile", "--json").out)
    order = sorted(range(30), key=lambda n: (rows[n]["false_alarm"], n))
    listed = [
        line.split()[0] for line in done.out.splitlines() if line.strip().startswith("t") and "0." in line
    ]
    assert listed == [f"t{n}" for n in order[:20]]
    found = sum(one["stands_out"] is not None for one in rows)
    assert f"in {found} of 30 texts a sentence stands out" in done.out
    assert "surprisal" not in done.out  # no table of each


def test_an_output_grows_and_is_gone_on_with(texts, tmp_path):
    whole, part = tmp_path / "whole.jsonl", tmp_path / "part.jsonl"
    command = ("score", texts, "--model", "random", "--profile", "--output")
    page = tmp_path / "page.html"
    first = here(*command, whole, "--html", page)
    assert [row["id"] for row in read_lines(whole)] == [f"t{n}" for n in range(30)]
    drawn = page.read_text()
    lines = whole.read_bytes().splitlines(keepends=True)
    part.write_bytes(b"".join(lines[:11]) + lines[11][:50])
    again = here(*command, part, "--html", page)
    assert (again.out, part.read_bytes(), page.read_text()) == (first.out, whole.read_bytes(), drawn)
    finished = here(*command, whole)
    assert (finished.out, whole.read_bytes()) == (first.out, part.read_bytes())


def test_an_output_of_something_else_is_refused_and_kept(texts, tmp_path):
    done = tmp_path / "done.jsonl"
    command = ("score", texts, "--profile", "--output", done, "--model")
    assert here(*command, "random").code == 0
    kept = done.read_bytes()
    refused(here(*command, "unigram"), "done.jsonl holds profiles of other texts, of another model")
    assert "of 3 texts" in here(*command, "random", "--limit", 3).out
    refused(here(*command, "random", "--set", "false_alarms=0.2"), "done.jsonl holds profiles")
    before = texts.read_bytes()
    refused(here("score", texts, "--profile", "--model", "random", "--output", texts), "name another file")
    notes = tmp_path / "notes.txt"
    notes.write_text("Mine.")  # without a line break at its end, as what a kill has left of a row
    refused(here("score", texts, "--profile", "--model", "random", "--output", notes), "notes.txt holds")
    assert notes.read_text() == "Mine."
    assert (done.read_bytes(), texts.read_bytes()) == (kept, before)
    refused(here("score", texts, "--profile", "--model", "random", "--output", tmp_path), "is not a file")
    refused(here("score", texts, "--model", "random", "--output", done), "add --profile")
    page = tmp_path / "nowhere" / "page.html"
    refused(here("score", texts, "--profile", "--model", "random", "--html", page), "nowhere/page.html")


def test_nothing_is_written_over_the_texts_or_where_nothing_can_be(tmp_path):
    folder, inner = tmp_path / "drafts", tmp_path / "drafts" / "more"
    inner.mkdir(parents=True)
    text = folder / "a.txt"
    text.write_text(" ".join(document(1, 6)))
    before = text.read_bytes()
    command = ("score", "--model", "random", "--profile")
    for option in ("--html", "--output", "--journal"):
        refused(here(*command, text, option, text), "one of the texts themselves")
        refused(here(*command, folder, option, inner / "new.jsonl"), "one of the texts themselves")
        refused(here(*command, folder, option, inner / "new"), "one of the texts themselves")
    both = tmp_path / "both"
    refused(
        here(*command, text, "--output", both, "--html", tmp_path / "drafts" / ".." / "both"), "two files"
    )
    refused(here(*command, text, "--html", tmp_path / "nowhere" / "page.html"), "not there")
    refused(here(*command, text, "--html", folder), "not a file")
    assert sorted(tmp_path.rglob("*")) == [folder, text, inner]
    assert text.read_bytes() == before
    assert here(*command, folder, "--html", folder / "page.html").code == 0
    assert here(*command, folder, "--html", folder / "page.html").code == 0


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ('{"continuation": "Half \\ud83d."}', "half a character"),
        ('{"id": "\\ud83d", "continuation": "One."}', "half a character"),
        ('{"continuation": "One\\u0000."}', "NUL"),
        ('{"continuation": " \\n"}', "no text"),
    ],
)
def test_a_continuation_is_a_text_like_any_other(tmp_path, row, said):
    file = tmp_path / "texts.jsonl"
    file.write_text(row)
    refused(here("score", file, "--model", "random", "--profile", "--html", tmp_path / "p.html"), said)


def test_a_bad_row_is_told_of_before_any_work(texts, tmp_path):
    with texts.open("a") as file:
        file.write('{"id": "t3", "text": "Again."}\n')
    output = tmp_path / "out.jsonl"
    refused(here("score", texts, "--model", "random", "--profile", "--output", output), "line 31", "'t3'")
    assert not output.exists()


def test_thousands_of_texts_killed_and_gone_on_with(tmp_path, home):
    rows = [{"id": f"t{n}", "sentences": document(n, 5)} for n in range(3000)]
    texts = write_lines(tmp_path / "texts.jsonl", rows)
    output = tmp_path / "out.jsonl"
    command = ("score", texts, "--model", "random", "--profile", "--output", output)
    running = start(*command)
    while not output.exists() or output.stat().st_size < 200_000:
        assert running.poll() is None, running.communicate()
        time.sleep(0.02)
    running.kill()
    running.communicate()
    kept = output.read_bytes()
    assert 0 < kept.count(b"\n") < 3000
    done = here(*command)
    assert done.code == 0, done.err
    assert output.read_bytes().startswith(kept[: kept.rindex(b"\n") + 1])
    assert [row["id"] for row in read_lines(output)] == [row["id"] for row in rows]
    assert "of 3,000 texts" in done.out


def test_a_long_text_has_all_its_sentences(tmp_path):
    text = tmp_path / "long.txt"
    text.write_text("\n\n".join(" ".join(document(n, 10)) for n in range(60)))
    page = tmp_path / "page.html"
    done = here("score", text, "--model", "random", "--profile", "--html", page, "--json")
    (one,) = profiles(done.out)
    assert len(one["sentences"]) == 600
    read = Page(page.read_text())
    assert (read.faults, read.open) == ([], [])
    table = here("score", text, "--model", "random", "--profile").out
    assert len(table.splitlines()) < 150


def test_what_steers_a_terminal_is_shown_and_not_sent(tmp_path):
    sentences = document(3, 6)
    sentences[2] = "Then \x1b[2J\x1b]0;title\x07 it \x9b31m rained\u202e."
    rows = [{"id": f"t{n}\x1b[31m", "text": " ".join(sentences)} for n in range(2)]
    shown = here("score", write_lines(tmp_path / "t.jsonl", rows), "--model", "random", "--profile")
    assert shown.code == 0
    assert not [letter for letter in shown.out + shown.err if letter in "\x1b\x07\x9b\u202e"]
    assert "␛[2J" in shown.out
    assert "t0␛[31m" in shown.out


def test_windows_that_overlap_are_refused_at_once(texts):
    refused(here("score", texts, "--model", "no-model", "--profile", "--set", "window=average"), "window")
