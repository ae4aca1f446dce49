"""The page of ChapterBreak runs: figures of the run beside published ones, alone and beside other runs."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from ensue.benchmarks.chapterbreak.annotation import run_examples
from ensue.benchmarks.chapterbreak.report.rows import (
    MOST_HARD,
    boundary_panels,
    item_facts,
    length_words,
    longest,
    measured,
    measured_model,
    negatives_panels,
    published_models,
    run_rows,
    splits,
    suffix_panels,
)
from ensue.benchmarks.chapterbreak.report.table import has_other_data, models_table
from ensue.cli.main import app
from ensue.errors import EnsueError
from ensue.runs.report import write_report
from tests.benchmarks.chapterbreak.report.synthetic import (
    make_chapterbreak_items,
    make_chapterbreak_results,
    write_chapterbreak,
)
from tests.report.synthetic import make_items, make_results, write_run
from tests.support.pages import EVIL, Page

ALL = {
    "splits": ("ao3", "pg19"),
    "boundaries": ("chapter", "cause", "dialogue"),
    "negatives": ("in-book", "same-split"),
    "suffixes": (64, 128),
}


def facts(*folders):
    return run_rows(folders, [json.loads((folder / "results.json").read_text()) for folder in folders])


def page_of(path):
    page = Page(path.read_text("utf-8"))
    assert (page.faults, page.open) == ([], [])
    return page


def write_annotations(path, examples):
    rows = [
        f"{name},new event,change,change,{('continuous', 'parallel')[i % 2]}"
        for i, name in enumerate(examples)
    ]
    path.write_text("\n".join(["example,events,actors,location,continuity", *rows]) + "\n")
    return path


def test_says_what_the_run_found(tmp_path):
    folder = write_chapterbreak(tmp_path / "run", **ALL)
    page = page_of(write_report(folder))
    [run] = facts(folder)
    end = longest(run, "pg19")
    assert (end.boundary, end.negatives, end.prefix, end.suffix) == ("chapter", "in-book", 8192, 128)
    for words in [
        "Does some-model know the next chapter?",
        "guessing gives 0.167",
        end.accuracy.text(),
        end.accuracy.interval(),
        "accuracy on PG-19, prefix of 8,192 tokens",
        "SuffixLM (published)",
        "chapter breaks",
        "dialogue",
        "By where the negatives come from",
        "By how much of the suffix is read",
        "Accuracy against perplexity",
        "GPT-2, PG-19 (published)",
        "The hardest examples",
        "Sun, Thai and Iyyer (2022)",
        "175B",
        "Every metric of this run",
        "ensue run",
    ]:
        assert words in page.text, words
    assert "other data" not in page.text
    assert "Kinds of transition" not in page.text
    # Two splits with three pictures each, and the scatter, all drawn twice.
    assert page.tags.count("svg") == 2 * (2 * 3 + 1)


def test_pictures_have_words_and_unique_names_and_take_the_ink_of_the_page(tmp_path):
    folder = write_chapterbreak(tmp_path / "run", **ALL)
    text = write_report(folder).read_text("utf-8")
    assert write_report(folder).read_text("utf-8") == text
    page = Page(text)
    names = [value for _, name, value in page.attributes if name == "id"]
    assert len(names) == len(set(names))
    described = [value for tag, name, value in page.attributes if (tag, name) == ("svg", "aria-label")]
    assert len(described) == page.tags.count("svg")
    assert all(re.search(r"\d\.\d{3} at ", words) for words in described)
    assert not {"script", "link", "img"} & set(page.tags)
    assert not re.search("#010203|#040506|#070809", text)
    for tag, name, value in page.attributes:
        if name in {"src", "href", "xlink:href"}:
            assert value.startswith("#"), (tag, name, value)


def test_own_data_is_told_apart_from_the_published(tmp_path):
    folder = write_chapterbreak(tmp_path / "run", splits=("my books",), prefixes=(0, 128, 896), tokens=False)
    page = page_of(write_report(folder))
    assert page.text.count("published, other data") == len(published_models())
    assert "SuffixLM (published)" not in page.text
    assert "accuracy on my books, prefix of 896 tokens" in page.text
    assert "none" in page.text
    assert "Accuracy against perplexity" not in page.text


def test_text_from_the_run_is_never_markup(tmp_path):
    items = make_chapterbreak_items(splits=(EVIL,), boundaries=(EVIL, "chapter"), negatives=(EVIL, "in-book"))
    results = make_chapterbreak_results(items, model=EVIL)
    annotations = tmp_path / "a.jsonl"
    row = {"events": "new event", "actors": "change", "location": "change", "continuity": "parallel"}
    annotations.write_text(json.dumps({"example": run_examples(items)[0], **row}))
    folder = write_run(tmp_path / "run", items, results)
    page = page_of(write_report(folder, annotations=annotations))
    assert not {"script", "img"} & set(page.tags)
    assert page.text.count("alert('x')") > 10


def test_runs_are_drawn_beside_one_another(tmp_path):
    one = write_chapterbreak(tmp_path / "one", "model one", boundaries=("chapter", "cause"))
    two = write_chapterbreak(tmp_path / "two", "model two", 80.0, prefixes=(256, 896), seed=1)
    page = page_of(write_report(one, tmp_path / "both.html", beside=[two]))
    for words in ["Does model one know", "Beside it: model two", "LT, PG-19 (published)", "896"]:
        assert words in page.text, words
    panels = boundary_panels(facts(one, two), "pg19")
    assert [(panel.title, [line.name for line in panel.lines]) for panel in panels] == [
        ("chapter breaks", ["model one", "model two"]),
        ("cause", ["model one"]),
    ]
    assert [panel.with_published for panel in panels] == [True, False]


def test_models_of_one_name_are_told_apart_by_folder(tmp_path):
    (tmp_path / "b").mkdir()
    folders = [write_chapterbreak(tmp_path / name) for name in ("one", "two", "b/two")]
    names = [run.name for run in facts(*folders)]
    assert names[:2] == ["some-model (one)", "some-model (two)"]
    assert len(set(names)) == 3


def test_what_has_no_place_beside_a_run_is_refused(tmp_path):
    run = write_chapterbreak(tmp_path / "run")
    items = make_items()
    shuffle = write_run(tmp_path / "shuffle", items, make_results(items))
    with pytest.raises(EnsueError, match="shuffle is a run of shuffle, not of chapterbreak"):
        write_report(run, beside=[shuffle])
    with pytest.raises(EnsueError, match="run is a run of chapterbreak, not of shuffle"):
        write_report(shuffle, beside=[run])
    with pytest.raises(EnsueError, match="is a run of shuffle, which takes no annotations"):
        write_report(shuffle, annotations=tmp_path / "a.csv")
    with pytest.raises(EnsueError, match="is given twice"):
        write_report(run, beside=[run])
    with pytest.raises(EnsueError, match="is not a run folder"):
        write_report(run, beside=[tmp_path / "nowhere"])
    bare = write_run(tmp_path / "bare", [], {**make_chapterbreak_results([]), "metrics": []})
    with pytest.raises(EnsueError, match="has no ChapterBreak accuracies"):
        write_report(run, beside=[bare])


def test_annotations_show_shares_and_failures(tmp_path):
    run = write_chapterbreak(tmp_path / "run", splits=("ao3",))
    examples = run_examples(make_chapterbreak_items(splits=("ao3",)))[:20]
    annotations = write_annotations(tmp_path / "a.csv", [*examples, "ao3/unknown/0"])
    page = page_of(write_report(run, annotations=annotations))
    for words in [
        "Kinds of transition",
        "21 annotated examples; 20 of them are in this run",
        "a flashback: something earlier is told",
        "0.76",
        "0.74",
        "(−0.02)",
        "Where the run fails",
    ]:
        assert words in page.text, words
    with pytest.raises(EnsueError, match="the annotations must be of the same data"):
        write_report(run, annotations=write_annotations(tmp_path / "b.csv", ["elsewhere/0"]))


def test_rows_of_another_form_are_passed_over():
    row = {"task": "ao3", "metric": "accuracy", "value": 0.5, "n": 1, "settings": {"prefix_tokens": 256}}
    assert measured({"metrics": [row]}) == []


def test_rows_are_those_of_results_in_reading_order():
    items = make_chapterbreak_items(**ALL)
    results = make_chapterbreak_results(items[::-1], perplexity=61.5)
    [run] = run_rows([Path("run")], [results])
    found = run.rows
    assert len(found) == len({json.dumps([i["task"], i["settings"]]) for i in items})
    first = found[0]
    assert first[:5] == ("pg19", "chapter", "in-book", 256, 64)
    chosen = [i["scores"] for i in items if (i["task"], *i["settings"].values()) == first[:5]]
    assert first.accuracy.value == pytest.approx(sum(s["accuracy"] for s in chosen) / len(chosen))
    assert first.margin == pytest.approx(sum(s["margin"] for s in chosen) / len(chosen))
    assert (first.perplexity, first.subwords) == (61.5, 1.3)
    assert (first.accuracy.n, first.accuracy.clusters) == (30, 6)
    boundaries = list(dict.fromkeys(cell.boundary for cell in found))
    assert boundaries == ["chapter", "cause", "dialogue"]


def test_panels_hold_only_what_is_comparable(tmp_path):
    [run] = facts(write_chapterbreak(tmp_path / "run", **ALL))
    [panel] = boundary_panels([run], "ao3")
    assert [line.name for line in panel.lines] == ["chapter breaks", "cause", "dialogue"]
    assert {(c.negatives, c.suffix) for line in panel.lines for c in line.rows} == {("in-book", 128)}
    [panel] = negatives_panels([run], "ao3")
    assert [line.name for line in panel.lines] == ["in-book", "same-split"]
    assert {(c.boundary, c.suffix) for line in panel.lines for c in line.rows} == {("chapter", 128)}
    [panel] = suffix_panels([run], "ao3")
    assert [[c.suffix for c in line.rows] for line in panel.lines] == [[64, 128]]
    assert {(c.negatives, c.prefix) for line in panel.lines for c in line.rows} == {("in-book", 8192)}
    [plain] = facts(write_chapterbreak(tmp_path / "plain"))
    assert negatives_panels([plain], "pg19") == suffix_panels([plain], "pg19") == []


def test_table_2_has_published_and_measured_rows(tmp_path):
    runs = facts(write_chapterbreak(tmp_path / "run", splits=("pg19", "mine")))
    assert not has_other_data(runs)
    table = models_table(runs)
    assert [column.title for column in table.columns][4:] == [
        "word perplexity, PG-19",
        "accuracy, PG-19",
        "accuracy, AO3",
        "word perplexity, mine",
        "accuracy, mine",
    ]
    assert [row.cells[0] for row in table.rows] == [*(m.name for m in published_models()), "some-model"]
    by_name = {row.name: row for row in published_models()}
    assert by_name["GPT-3"].partly
    assert by_name["GPT-3"].value("word_perplexity", "pg19") is None
    assert by_name["SuffixLM"].value("accuracy", "ao3") == 0.41
    own = measured_model(runs[0])
    assert own.figures["accuracy", "mine"] == longest(runs[0], "mine").accuracy
    assert own.length == 8192
    assert splits(runs) == ["pg19", "mine"]


def test_the_hardest_are_the_most_negative_margins_at_the_longest_prefix(tmp_path):
    items = make_chapterbreak_items(negatives=("in-book", "same-split"), skill=-1.0)
    [run] = facts(write_run(tmp_path / "run", items, make_chapterbreak_results(items)))
    chance, hardest = item_facts(items, [longest(run, "pg19")])
    margins = sorted(
        item["scores"]["margin"]
        for item in items
        if (item["settings"]["prefix_tokens"], item["settings"]["negatives"]) == (8192, "in-book")
    )
    assert [item.margin for item in hardest] == margins[:MOST_HARD]
    assert chance == pytest.approx(1 / 6)
    for item in items:
        item["outputs"]["scores"] = item["outputs"]["scores"][:4]
        item["scores"]["margin"] = 0.5
    assert item_facts(items, [longest(run, "pg19")]) == (0.25, [])


def test_one_work_has_a_value_without_interval(tmp_path):
    page = page_of(write_report(write_chapterbreak(tmp_path / "run", works=1, prefixes=(256,))))
    assert "nan" not in page.text.lower()
    assert "None" not in page.text


def test_lengths_are_short_words():
    assert [length_words(n) for n in (0, 128, 1000, 1024, 10_240)] == ["0", "128", "1000", "1K", "10K"]


def test_the_command_takes_several_runs(tmp_path):
    one, two = write_chapterbreak(tmp_path / "one", "a"), write_chapterbreak(tmp_path / "two", "b")
    annotations = write_annotations(tmp_path / "a.csv", run_examples(make_chapterbreak_items()))
    page = str(tmp_path / "r.html")
    options = ["--annotations", str(annotations), "--output", page, "--json"]
    done = CliRunner().invoke(app, ["report", str(one), str(two), *options])
    assert (done.exit_code, json.loads(done.stdout)) == (0, {"report": page})
    assert "Where every run fails" in page_of(tmp_path / "r.html").text
    assert CliRunner().invoke(app, ["report", str(one)]).stdout.strip() == str(one / "report.html")


def test_the_command_writes_an_empty_annotation_sheet(tmp_path):
    folder = write_chapterbreak(tmp_path / "run", **ALL)
    sheet = tmp_path / "sheet.csv"
    done = CliRunner().invoke(app, ["report", str(folder), "--annotation-sheet", str(sheet), "--json"])
    rows = sheet.read_text("utf-8").splitlines()
    assert json.loads(done.stdout) == {"sheet": str(sheet), "rows": len(rows) - 1}
    assert rows[0] == "example,events,actors,location,continuity"
    assert len(rows) > 1
    assert not (folder / "report.html").exists()
