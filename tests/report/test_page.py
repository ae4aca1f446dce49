"""The HTML report: says what the run found, holds everything it needs, and trusts no text in it."""

from __future__ import annotations

import re

import pytest

from ensue.errors import EnsueError
from ensue.runs.report import write_report
from tests.report.synthetic import make_items, make_profile, make_results, write_run
from tests.support.pages import EVIL, Page


@pytest.fixture
def shuffle_run(tmp_path):
    items = make_items()
    return write_run(
        tmp_path / "run", items, make_results(items), [make_profile(f"doc {n}") for n in range(3)]
    )


def test_is_one_well_formed_file_that_fetches_nothing(shuffle_run):
    text = write_report(shuffle_run).read_text("utf-8")
    page = Page(text)
    assert (page.faults, page.open) == ([], [])
    assert not {"script", "link", "iframe", "object", "embed", "img"} & set(page.tags)
    for tag, name, value in page.attributes:
        if name in {"src", "href", "xlink:href", "data", "poster", "action"}:
            assert value.startswith("#"), (tag, name, value)
        assert not name.startswith("on"), (tag, name)
    assert set(re.findall(r"url\(([^)]{0,2})", text)) <= {"#a", "#p"}
    assert "@import" not in text


def test_names_inside_pictures_are_unique_and_resolve(shuffle_run):
    page = Page(write_report(shuffle_run).read_text("utf-8"))
    names = [value for _, name, value in page.attributes if name == "id"]
    assert len(names) == len(set(names))
    targets = {value[1:] for _, name, value in page.attributes if name == "xlink:href"}
    assert targets
    assert targets <= set(names)


def test_pictures_have_words_and_take_the_ink_of_the_page(shuffle_run):
    page = Page(write_report(shuffle_run).read_text("utf-8"))
    pictures = page.tags.count("svg")
    assert pictures == 2 + 2 * 3
    described = [value for tag, name, value in page.attributes if (tag, name) == ("svg", "aria-label")]
    assert len(described) == pictures
    assert all(re.search(r"\d", words) for words in described)
    assert any("currentColor" in value for tag, _, value in page.attributes if tag == "text")
    assert "#010203" not in " ".join(value for _, _, value in page.attributes)


def test_text_from_the_run_is_never_markup(tmp_path):
    items = make_items(domains=(EVIL, "news"))
    results = make_results(items, model=EVIL)
    results["skipped"] = {EVIL: 1}
    results["signature"] = EVIL
    profile = make_profile(EVIL, text=EVIL)
    profile["domain"] = EVIL
    profile["versions"][1]["name"] = EVIL
    folder = write_run(
        tmp_path / "run", items, results, [profile], run={"command": EVIL, EVIL: {EVIL: EVIL}, "list": [EVIL]}
    )
    text = write_report(folder).read_text("utf-8")
    page = Page(text)
    assert not {"script", "img"} & set(page.tags)
    assert (page.faults, page.open) == ([], [])
    assert page.text.count("alert('x')") > 15
    assert "<script" not in text


def test_other_benchmarks_get_the_general_sections(tmp_path):
    results = {
        "benchmark": "chapterbreak",
        "model": "m",
        "signature": "s",
        "metrics": [
            {
                "task": "ao3",
                "metric": "accuracy",
                "value": 0.25,
                "ci95": None,
                "n": 4,
                "settings": {"prefix_tokens": 256},
            }
        ],
    }
    folder = write_run(tmp_path / "run", [], results, run={"hardware": {"cores": 2}})
    page = Page(write_report(folder).read_text("utf-8"))
    assert (page.faults, page.open) == ([], [])
    for words in ["m on chapterbreak", "0.250", "prefix tokens 256", "Environment", "cores"]:
        assert words in page.text, words
    assert "svg" not in page.tags
    assert "published" not in page.text


def test_the_same_run_gives_the_same_report(shuffle_run, tmp_path):
    first = write_report(shuffle_run).read_bytes()
    elsewhere = write_report(shuffle_run, tmp_path / "other.html")
    assert elsewhere == tmp_path / "other.html"
    assert elsewhere.read_bytes() == first


def test_size_does_not_grow_with_items_or_profiles(tmp_path):
    few, many = make_items(documents=12), make_items(documents=400)
    texts = "A long sentence that goes on. " * 200
    small = write_run(tmp_path / "few", few, make_results(few), [make_profile(str(n)) for n in range(30)])
    large = write_run(
        tmp_path / "many",
        many,
        make_results(many),
        [make_profile(str(n), sentences=200, text=texts) for n in range(80)],
    )
    assert write_report(small).stat().st_size < 800_000
    assert write_report(large).stat().st_size < 4_000_000
    assert (
        "56 more documents are not shown; they are in profiles.jsonl"
        in Page((large / "report.html").read_text("utf-8")).text
    )


def test_an_unfinished_run_has_no_report(shuffle_run):
    (shuffle_run / "results.json").unlink()
    with pytest.raises(EnsueError, match="is an unfinished run; continue it with --resume"):
        write_report(shuffle_run)
    assert not (shuffle_run / "report.html").exists()


def test_a_report_that_cannot_be_written_leaves_nothing(shuffle_run, tmp_path):
    with pytest.raises(EnsueError, match=r"nowhere/report\.html cannot be written: No such file"):
        write_report(shuffle_run, tmp_path / "nowhere" / "report.html")
    write_report(shuffle_run)
    assert sorted(path.suffix for path in shuffle_run.iterdir()) == [
        ".html",
        ".json",
        ".json",
        ".jsonl",
        ".jsonl",
    ]


def test_notes_and_accuracy_of_a_document_are_told(tmp_path):
    items = make_items()
    results = {**make_results(items), "notes": {"documents cut to 20 sentences": 4}}
    profile = {**make_profile(), "accuracy": {"1": 0.95, "5": 0.6}}
    page = Page(write_report(write_run(tmp_path / "run", items, results, [profile])).read_text("utf-8"))
    assert "documents cut to 20 sentences 4" in page.text
    assert "accuracy 0.95 at block size 1, 0.60 at 5" in page.text
