"""The page of a Shuffle Test run: what it found, by block size and domain, beside published figures."""

from __future__ import annotations

import json

import pytest

from ensue.benchmarks.shuffle.report.table import block_rows, domains_of, domains_table
from ensue.runs.report import write_report
from ensue.stats.clustered import clustered_interval
from tests.report.synthetic import make_items, make_profile, make_results, write_run
from tests.support.pages import Page


@pytest.fixture
def shuffle_run(tmp_path):
    items = make_items()
    return write_run(
        tmp_path / "run", items, make_results(items), [make_profile(f"doc {n}") for n in range(3)]
    )


def test_says_what_the_run_found(shuffle_run):
    path = write_report(shuffle_run)
    assert path == shuffle_run / "report.html"
    page = Page(path.read_text("utf-8"))
    first = block_rows(json.loads((shuffle_run / "results.json").read_text()))[0]
    assert "Does some-model notice shuffled text?" in page.text
    assert first.accuracy.text() in page.text
    assert first.accuracy.interval() in page.text
    assert first.accuracy.interval() in page.text
    for words in [
        "Each of 12 documents",
        "0.975",
        "Human, WSJ (published)",
        "GPT2-medium, Reddit (published)",
        "chance",
        "fewer than two sentences",
        "0 of 120 pairs were ties",
        "rules:1|bos:none",
        "ensue run shuffle --data 'my documents'",
        "most surprising, +1.60 over the mean",
        "1 min 15 s",
        "123,456 tokens",
    ]:
        assert words in page.text, words


def test_the_table_by_domain_is_of_the_items_of_each_domain(shuffle_run):
    items = make_items()
    results = make_results(items)
    assert domains_of(results) == ["legal", "news"]
    found = domains_table(results)
    assert [(_text(row.cells[0]), row.cells[1]) for row in found.rows] == [
        ("legal", "1"),
        ("legal", "3"),
        ("news", "1"),
        ("news", "3"),
    ]
    for domain in ("legal", "news"):
        for row in block_rows(results, domain):
            chosen = [
                item
                for item in items
                if (item["outputs"]["domain"], str(item["settings"]["block_size"])) == (domain, row.label)
            ]
            expected = clustered_interval(
                [i["scores"]["accuracy"] for i in chosen], [i["cluster"] for i in chosen], bounds=(0, 1)
            )
            assert row.accuracy == expected
            # The paper tested legal texts; it has no domain called news.
            assert row.gpt2 == ({"1": 0.987, "3": 0.969}[row.label] if domain == "legal" else None)
    page = Page(write_report(shuffle_run).read_text("utf-8"))
    assert "By domain" in page.text
    assert block_rows(results, "legal")[0].accuracy.interval() in page.text


def _text(cell):
    return getattr(cell, "text", cell)


def test_one_domain_needs_no_table(tmp_path):
    items = make_items(domains=("news",))
    folder = write_run(tmp_path / "run", items, make_results(items))
    page = Page(write_report(folder).read_text("utf-8"))
    assert "By domain" not in page.text
    assert "Where does the text stop following?" not in page.text


def test_a_single_document_has_a_value_without_interval(tmp_path):
    items = make_items(documents=1)
    folder = write_run(tmp_path / "run", items, make_results(items))
    page = Page(write_report(folder).read_text("utf-8"))
    assert "One document was put before the model" in page.text
    assert "nan" not in page.text.lower()
    assert "None" not in page.text
