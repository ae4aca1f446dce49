"""The HTML report: says what the run found, holds everything it needs, and trusts no text in it."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser

import pytest

from ensue.benchmarks.shuffle.report.rows import block_rows, tally_domains
from ensue.errors import EnsueError
from ensue.report.page import write_profiles
from ensue.runs.report import write_report
from ensue.stats.clustered import clustered_interval
from tests.report.synthetic import make_items, make_profile, make_results, write_run

EVIL = "<script>alert('x')</script> & <img src=http://evil.example/x.png onerror=x> $5 \"quoted\""
VOID = {"meta", "br", "img", "link", "hr", "input"}


class Page(HTMLParser):
    """Reads a page strictly: collects tags, attributes and words, and notices what is not closed."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.attributes, self.words, self.open, self.faults = [], [], [], [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.faults.append(tag)

    def handle_data(self, data):
        if self.open[-1:] != ["style"]:
            self.words.append(data)

    @property
    def text(self):
        return re.sub(r"\s+", " ", " ".join(self.words))


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
    assert f"{first.accuracy:.3f}" in page.text
    assert f"{first.low:.3f} – {first.high:.3f}" in page.text
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
        "stops following here, +1.60 over the mean",
        "1 min 15 s",
        "123,456 tokens",
    ]:
        assert words in page.text, words


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


def test_the_table_by_domain_is_the_bootstrap_of_its_items(shuffle_run):
    items = make_items()
    rows = tally_domains(items).rows()
    assert [(row.domain, row.label) for row in rows] == [
        ("legal", "1"),
        ("legal", "3"),
        ("news", "1"),
        ("news", "3"),
    ]
    for row in rows:
        chosen = [
            item
            for item in items
            if (item["outputs"]["domain"], str(item["settings"]["block_size"])) == (row.domain, row.label)
        ]
        expected = clustered_interval(
            [i["scores"]["accuracy"] for i in chosen], [i["cluster"] for i in chosen], bounds=(0, 1)
        )
        assert row.accuracy == expected
        # The paper tested legal texts; it has no domain called news.
        assert row.gpt2 == ({"1": 0.987, "3": 0.969}[row.label] if row.domain == "legal" else None)
    page = Page(write_report(shuffle_run).read_text("utf-8"))
    assert "By domain" in page.text
    assert f"{rows[0].accuracy.low:.3f} – {rows[0].accuracy.high:.3f}" in page.text


def test_one_domain_needs_no_table(tmp_path):
    items = make_items(domains=("news",))
    folder = write_run(tmp_path / "run", items, make_results(items))
    page = Page(write_report(folder).read_text("utf-8"))
    assert "By domain" not in page.text
    assert "Where does the text stop following?" not in page.text


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


def test_a_single_document_has_a_value_without_interval(tmp_path):
    items = make_items(documents=1)
    folder = write_run(tmp_path / "run", items, make_results(items))
    page = Page(write_report(folder).read_text("utf-8"))
    assert "One document was put before the model" in page.text
    assert "nan" not in page.text.lower()
    assert "None" not in page.text


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


def test_profiles_of_texts_have_a_page_of_their_own(tmp_path):
    profile = make_profile("my text", text=EVIL)
    profile["versions"] = [{**profile["versions"][1], "name": "text", "order": [0, 1, 2, 3, 4]}]
    path = write_profiles([profile], tmp_path / "profiles.html", "rules:1")
    page = Page(path.read_text("utf-8"))
    assert (page.faults, page.open) == ([], [])
    assert not {"script", "img"} & set(page.tags)
    for words in ["my text", "stops following here, +1.60 over the mean", "rules:1"]:
        assert words in page.text, words
    # There is no original that a sentence could have come from.
    assert "was 1" not in page.text
    assert "shuffled" not in page.text


def test_notes_and_accuracy_of_a_document_are_told(tmp_path):
    items = make_items()
    results = {**make_results(items), "notes": {"documents cut to 20 sentences": 4}}
    profile = {**make_profile(), "accuracy": {"1": 0.95, "5": 0.6}}
    page = Page(write_report(write_run(tmp_path / "run", items, results, [profile])).read_text("utf-8"))
    assert "documents cut to 20 sentences 4" in page.text
    assert "accuracy 0.95 at block size 1, 0.60 at 5" in page.text
