"""The page of GLUE and SuperGLUE runs: well-formed, complete, and honest about which split is which."""

from __future__ import annotations

import re

import pytest

from ensue.benchmarks.nlu.report.scores import scores_of
from ensue.errors import EnsueError
from ensue.runs.report import write_report
from tests.benchmarks.nlu.report.synthetic import make_fits, make_nlu_results, write_nlu
from tests.report.synthetic import make_items, make_results, write_run
from tests.support.pages import EVIL, Page

TEMPLATES = [{"template": name, "shots": 0} for name in ("question", "statement")]


def page_of(path):
    page = Page(path.read_text("utf-8"))
    assert (page.faults, page.open) == ([], [])
    return page


def test_the_page_says_what_the_run_found(tmp_path):
    results = make_nlu_results(
        without=("QNLI",), skipped={"task QNLI left out, for want of files": 1}, notes={"odd lines": 3}
    )
    page = page_of(write_report(write_nlu(tmp_path / "run", results, make_fits())))
    for words in [
        "What does some-model understand? GLUE",
        "GLUE score on dev, the mean over 8 of 9 tasks",
        "Every system on every task: dev",
        "Published systems on test",
        "not judged on test",
        "published, test: single-task (table 2.3)",
        "GenSen",
        "diagnostic by phenomenon: R3, test",
        "Predicate-Argument",
        "How the trainings went",
        "6 epochs",
        "4.5 epochs",
        "0.0001",
        "Missing, for want of files: QNLI.",
        "odd lines",
        "ensue run glue --model some-model --data 'my data'",
        "mode:finetune",
    ]:
        assert words in page.text, words
    assert "How much the wording matters" not in page.text
    assert "tokens scored" not in page.text
    # The map of the diagnostic, for a desk and for a telephone.
    assert page.tags.count("svg") == 2


def test_the_heat_map_has_every_number(tmp_path):
    results = make_nlu_results("superglue")
    text = page_of(write_report(write_nlu(tmp_path / "run", results))).text
    [diagnosis] = scores_of(results).diagnoses
    for place, figure in diagnosis.figures.items():
        shown = f"{figure.value:.2f}".replace("-", "−").replace("0.", ".", 1)
        assert (place.tag or place.category.removesuffix(" Structure")) in text
        assert f"{figure.n}" in text
        assert figure.value == 0 or shown in text


def test_several_runs_stand_side_by_side(tmp_path):
    one = write_nlu(tmp_path / "one", make_nlu_results("superglue", model="first"))
    two = write_nlu(
        tmp_path / "two",
        make_nlu_results("superglue", ways=TEMPLATES, model="second", notes={"a note of the second": 1}),
    )
    text = write_report(one, beside=[two]).read_text("utf-8")
    assert write_report(one, beside=[two]).read_text("utf-8") == text
    page = Page(text)
    assert (page.faults, page.open) == ([], [])
    for words in [
        "Beside it: second",
        "Task by task: first",
        "Task by task: second",
        "second, question",
        "How much the wording matters",
        "measured here, dev",
        "published, dev: baseline (table A.2)",
        "a note of the second",
        "model:second",
    ]:
        assert words in page.text, words
    names = [value for _, name, value in page.attributes if name == "id"]
    assert len(names) == len(set(names))
    described = [value for tag, name, value in page.attributes if (tag, name) == ("svg", "aria-label")]
    assert len(described) == page.tags.count("svg") == 4
    assert all(re.search(r"\d\.\d{3}", words) for words in described)
    assert not re.search("#010203|#040506|#070809", text)
    assert not {"script", "link", "img"} & set(page.tags)


def test_one_task_alone_has_a_page(tmp_path):
    results = make_nlu_results()
    rows = [row for row in results["metrics"] if row["task"] == "CoLA"]
    folder = write_nlu(tmp_path / "run", {**results, "metrics": rows, "benchmark": "glue/CoLA"})
    page = page_of(write_report(folder))
    assert "CoLA, dev: Matthews" in page.text
    assert "Diagnostics" not in page.text
    assert "SST-2" not in page.text


def test_a_run_on_test_has_the_published_systems_beside_it(tmp_path):
    folder = write_nlu(tmp_path / "run", make_nlu_results("superglue", splits=("test",)))
    text = page_of(write_report(folder)).text
    assert "measured here, test" in text
    assert "published, test: human (table 3.3)" in text
    assert text.index("Every system on every task: test") < text.index("Published systems on dev")


def test_names_are_not_trusted(tmp_path):
    results = make_nlu_results(model=EVIL, ways=[{"template": EVIL}, {"template": "plain"}])
    page = page_of(write_report(write_nlu(tmp_path / "run", results, [{"task": EVIL, "seed": 0}])))
    assert "script" not in page.tags
    assert "img" not in page.tags
    assert EVIL in page.text


def test_what_has_no_place_beside_a_run_is_refused(tmp_path):
    glue = write_nlu(tmp_path / "glue", make_nlu_results())
    other = write_nlu(tmp_path / "superglue", make_nlu_results("superglue"))
    shuffle = write_run(tmp_path / "shuffle", make_items(), make_results(make_items()))
    for run in (other, shuffle):
        with pytest.raises(EnsueError, match=r"is a run of .*, not of glue"):
            write_report(glue, beside=[run])
    empty = write_nlu(tmp_path / "empty", {**make_nlu_results(), "metrics": []})
    with pytest.raises(EnsueError, match="has no dev or test figures"):
        write_report(glue, beside=[empty])
    assert "Metrics" in page_of(write_report(empty)).text
