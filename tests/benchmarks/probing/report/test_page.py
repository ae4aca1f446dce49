"""The page of DiscoEval and SentEval runs: well-formed, complete, and honest about what stands beside what."""

from __future__ import annotations

import re

import pytest

from ensue.benchmarks.probing.report.page import most_frequent
from ensue.errors import EnsueError
from ensue.runs.report import write_report
from tests.benchmarks.probing.report.synthetic import (
    make_discoeval_results,
    make_probing_items,
    make_senteval_results,
    write_probing,
)
from tests.benchmarks.probing.report.test_sheet import only, printed
from tests.report.synthetic import make_items, make_results, write_run
from tests.support.pages import EVIL, Page


def page_of(path):
    page = Page(path.read_text("utf-8"))
    assert (page.faults, page.open) == ([], [])
    return page


def test_the_page_says_what_the_run_found(tmp_path):
    folder = write_probing(tmp_path / "run", make_discoeval_results(layers=range(13)))
    page = page_of(write_report(folder))
    for words in [
        "What do some-model’s vectors know of discourse?",
        "average test accuracy over 9 of 12 tasks, layer 10",
        "mean number of the best layer over 9 tasks",
        "Beside the published systems",
        "mean of SP, BSO, DC, SSP",
        "BERT-Large (published)",
        "Human (table 5)",
        "Layer by layer",
        "Missing, for want of files: PDTB/explicit, PDTB/implicit, RST.",
        "task RST left out, for want of RST/test.txt",
        "Chen, Chu and Gimpel (2019)",
        "ensue run discoeval --model some-model --data 'my data'",
        "0.980",
    ]:
        assert words in page.text, words
    assert "tokens scored" not in page.text
    assert page.tags.count("svg") == 4
    assert (
        "Layer by layer"
        not in page_of(write_report(write_probing(tmp_path / "own", make_discoeval_results()))).text
    )


def test_pictures_have_words_and_unique_names_and_take_the_ink_of_the_page(tmp_path):
    one = write_probing(tmp_path / "one", make_discoeval_results(layers=range(5)))
    two = write_probing(tmp_path / "two", make_discoeval_results(layers=range(5), protocol="converged"))
    three = write_probing(tmp_path / "three", make_discoeval_results(layers=range(5)))
    text = write_report(one, beside=[two, three]).read_text("utf-8")
    assert write_report(one, beside=[two, three]).read_text("utf-8") == text
    page = Page(text)
    names = [value for _, name, value in page.attributes if name == "id"]
    assert len(names) == len(set(names))
    described = [value for tag, name, value in page.attributes if (tag, name) == ("svg", "aria-label")]
    # Three heat maps, and one plot of the protocol that the published systems were measured by.
    assert len(described) == page.tags.count("svg") == 2 * (3 + 1)
    assert all(re.search(r"\d\.\d{3}", words) for words in described)
    assert not re.search("#010203|#040506|#070809", text)
    assert not {"script", "link", "img"} & set(page.tags)


def test_the_heat_map_has_every_number(tmp_path):
    results = make_discoeval_results(layers=range(20))
    text = page_of(write_report(write_probing(tmp_path / "run", results))).text
    sheet = only(results)
    for layer in range(20):
        assert f"{sheet.at('DC/chat', 'test', layer).value:.3f}".removeprefix("0") in text


def test_senteval_has_a_page(tmp_path):
    page = page_of(write_report(write_probing(tmp_path / "run", make_senteval_results())))
    for words in [
        "Every set of STS",
        "surprise.OnWN",
        "weighted by size",
        "F1",
        "Spearman’s ρ",
        "0.634",
        "USS",
    ]:
        assert words in page.text, words
    assert "Human" not in page.text


def test_only_sts_needs_no_protocol(tmp_path):
    results = make_senteval_results(layers=range(3))
    rows = [row for row in results["metrics"] if row["task"].startswith(("STS1", "USS"))]
    results = {**results, "metrics": rows, "benchmark": "senteval/USS", "skipped": {}}
    assert only(results).protocol == ""
    page = page_of(write_report(write_probing(tmp_path / "run", results)))
    assert "Nothing was trained" in page.text
    assert "the last layer, for want of a dev split to choose by" in page.text


def test_one_task_alone_has_a_page(tmp_path):
    results = make_discoeval_results()
    rows = [row for row in results["metrics"] if row["task"] == "SSP/abs"]
    folder = write_probing(
        tmp_path / "run", {**results, "metrics": rows, "benchmark": "discoeval/SSP/abs", "skipped": {}}
    )
    page = page_of(write_report(folder))
    assert "accuracy on SSP/abs, test" in page.text
    assert "missing" not in page.text


def test_a_limit_is_said(tmp_path):
    results = make_discoeval_results()
    results["signature"] += " limit:50"
    assert "Only the first 50 lines" in " ".join(" ".join(printed(results)).split())
    assert "only the first 50 lines" in page_of(write_report(write_probing(tmp_path / "run", results))).text


def test_what_a_column_lacks_is_marked_in_picture_and_table(tmp_path):
    folder = write_probing(tmp_path / "run", make_discoeval_results(missing=("SP/wiki", "DC/wiki")))
    page = page_of(write_report(folder))
    assert "SP*" in page.text
    assert "The run’s figure is without DC/wiki, SP/wiki." in page.text
    assert "mean of BSO, SSP, PDTB-E, PDTB-I, RST-DT" in page.text


def test_names_are_not_trusted(tmp_path):
    folder = write_probing(tmp_path / "run", make_discoeval_results(layers=range(3)), model=EVIL)
    page = page_of(write_report(folder))
    assert "script" not in page.tags
    assert "img" not in page.tags
    assert EVIL in page.text
    assert "[red]x[/red]" in printed({**make_discoeval_results(), "model": "[red]x[/red]"})[0]


def test_the_most_frequent_label_is_that_of_the_test_split():
    items = make_probing_items(make_discoeval_results())
    assert most_frequent(items)["SP/wiki"] == 0.5
    assert most_frequent([{**item, "settings": {"split": "dev"}} for item in items]) == {}


def test_what_has_no_place_beside_a_run_is_refused(tmp_path):
    run = write_probing(tmp_path / "run", make_discoeval_results())
    other = write_probing(tmp_path / "other", make_senteval_results())
    items = make_items()
    shuffle = write_run(tmp_path / "shuffle", items, make_results(items))
    with pytest.raises(EnsueError, match="is a run of senteval, not of discoeval"):
        write_report(run, beside=[other])
    with pytest.raises(EnsueError, match="is a run of discoeval, which takes no annotations"):
        write_report(run, annotations=tmp_path / "a.csv")
    with pytest.raises(EnsueError, match="run is a run of discoeval, not of shuffle"):
        write_report(shuffle, beside=[run])
    bare = write_probing(tmp_path / "bare", {**make_discoeval_results(), "metrics": []})
    with pytest.raises(EnsueError, match="has no dev or test figures"):
        write_report(run, beside=[bare])
    assert "Metrics" in page_of(write_report(bare)).text
