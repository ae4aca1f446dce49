"""Submission files: what is written is the official format, what is read back is what was written."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ensue.benchmarks.grading.problems import Problems
from ensue.benchmarks.nlu.examples import TaskSpec
from ensue.benchmarks.nlu.submissions.formats import files_of, parse, render
from ensue.errors import EnsueError
from tests.benchmarks.nlu.tasks import AX_B, BOOLQ, COLA, COPA, EVERY, MNLI, MULTIRC, RECORD, STS_B


def read(spec: TaskSpec, text: str | bytes) -> tuple[dict[str, object], list[str]]:
    raw = text.encode() if isinstance(text, str) else text
    problems = Problems()
    rows = list(parse(spec, spec.submission, enumerate(raw.splitlines(keepends=True), 1), problems))
    good = {row.id: row.prediction for row in rows if row.prediction is not None}
    return good, [str(problem) for problem in problems.listed()]


def test_what_each_task_writes():
    assert "".join(render(COLA, {"0": "1", "1": "0"})) == "index\tprediction\n0\t1\n1\t0\n"
    assert "".join(render(STS_B, {"0": 2.5, "1": 0.1})) == "index\tprediction\n0\t2.5\n1\t0.1\n"
    assert "".join(render(MNLI, {"0": "neutral"})) == "index\tprediction\n0\tneutral\n"
    assert "".join(render(BOOLQ, {"0": "true"})) == '{"idx": 0, "label": "true"}\n'
    assert "".join(render(COPA, {"500": "1"})) == '{"idx": 500, "label": 1}\n'
    assert "".join(render(RECORD, {"7": "42"})) == '{"idx": 7, "label": "42"}\n'
    assert "".join(render(AX_B, {"3": "entailment"})) == '{"idx": 3, "label": "entailment"}\n'
    nested = "".join(render(MULTIRC, {"0-0-0": "1", "0-0-1": "0", "0-1-2": "1", "4-2-3": "0"}))
    assert [json.loads(line) for line in nested.splitlines()] == [
        {
            "idx": 0,
            "passage": {
                "questions": [
                    {"idx": 0, "answers": [{"idx": 0, "label": 1}, {"idx": 1, "label": 0}]},
                    {"idx": 1, "answers": [{"idx": 2, "label": 1}]},
                ]
            },
        },
        {"idx": 4, "passage": {"questions": [{"idx": 2, "answers": [{"idx": 3, "label": 0}]}]}},
    ]


def test_mnli_has_two_files_and_all_others_one():
    assert files_of(MNLI, "dev") == {"MNLI-m.tsv": "dev", "MNLI-mm.tsv": "dev-mismatched"}
    assert files_of(AX_B, "test") == {"AX-b.jsonl": "test"}


numbers = st.integers(0, 10**6).map(str)
texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1).filter(str.strip)


@st.composite
def answered(draw: st.DrawFn) -> tuple[TaskSpec, dict[str, object]]:
    spec = draw(st.sampled_from(EVERY))
    ids = numbers if spec is not MULTIRC else st.tuples(numbers, numbers, numbers).map("-".join)
    if spec.labels:
        values: st.SearchStrategy[object] = st.sampled_from(spec.labels)
    else:
        values = st.floats(-1e100, 1e100) if spec is STS_B else texts
    return spec, draw(st.dictionaries(ids, values, max_size=20))


@given(answered())
def test_reading_undoes_writing(case):
    spec, predictions = case
    found, problems = read(spec, "".join(render(spec, predictions)))
    assert problems == []
    assert found == predictions


@given(st.sampled_from(EVERY), st.binary(max_size=200))
def test_no_bytes_are_an_exception_or_a_label_of_another_task(spec, raw):
    found, _ = read(spec, raw)
    for prediction in found.values():
        assert prediction in spec.labels if spec.labels else math.isfinite(prediction) or prediction


@pytest.mark.parametrize("spelled", ['"true"', '"True"', "true", '"TRUE"'])
def test_truth_may_be_spelled_in_any_way(spelled):
    assert read(BOOLQ, f'{{"idx": 3, "label": {spelled}}}\n') == ({"3": "true"}, [])


def test_indexes_may_be_text_and_lines_may_end_as_on_windows():
    assert read(AX_B, '{"idx": "3", "label": "entailment"}\r\n') == ({"3": "entailment"}, [])
    assert read(COLA, "index\tprediction\r\n0\t1\r\n") == ({"0": "1"}, [])


BAD_LINES = {
    "a label of another task": (COLA, "0\tentailment", "the label 'entailment' is none of 0, 1"),
    "another spelling": (MNLI, "0\tNeutral", "the label 'Neutral' is none of"),
    "one column": (COLA, "0 1", "1 columns"),
    "three columns": (COLA, "0\t1\t1", "3 columns"),
    "no index": (COLA, "\t1", "there is no index"),
    "NaN": (STS_B, "0\tnan", "'nan' is not a finite number"),
    "infinity": (STS_B, "0\t-inf", "not a finite number"),
    "no number": (STS_B, "0\tlots", "'lots' is not a finite number"),
    "underscores": (STS_B, "0\t1_0", "not a finite number"),
    "not UTF-8": (COLA, b"0\t\xff", "not UTF-8"),
    "not JSON": (BOOLQ, "{oops", "not JSON"),
    "a JSON NaN": (BOOLQ, '{"idx": 0, "label": NaN}', "NaN is not a JSON value"),
    "no object": (BOOLQ, "[0]", "not a JSON object"),
    "no idx": (BOOLQ, '{"label": "true"}', "no 'idx'"),
    "no label": (BOOLQ, '{"idx": 0}', "no 'label'"),
    "an idx that is a fraction": (BOOLQ, '{"idx": 0.5, "label": "true"}', "the idx 0.5"),
    "an idx that is true": (BOOLQ, '{"idx": true, "label": "true"}', "the idx true"),
    "a number for a word": (BOOLQ, '{"idx": 0, "label": 1}', "the label 1 is none of false, true"),
    "a key twice": (BOOLQ, '{"idx": 0, "idx": 1, "label": "true"}', "same key twice"),
    "too deep": (BOOLQ, "[" * 100_000, "nested too deep"),
    "a number without end": (BOOLQ, '{"idx": ' + "9" * 5000 + "}", "not JSON"),
    "no entity": (RECORD, '{"idx": 0, "label": " "}', "not the text of an entity"),
    "an entity that is a number": (RECORD, '{"idx": 0, "label": 4}', "not the text of an entity"),
    "no questions": (MULTIRC, '{"idx": 0, "passage": {}}', "no 'questions'"),
    "questions that are none": (
        MULTIRC,
        '{"idx": 0, "passage": {"questions": 5}}',
        "'questions' is not a JSON list",
    ),
    "a flat line": (MULTIRC, '{"idx": 0, "label": 1}', "no 'passage'"),
    "a blank line": (BOOLQ, " ", "blank"),
}


@pytest.mark.parametrize("case", BAD_LINES)
def test_a_bad_line_is_named_and_the_next_is_read(case):
    spec, line, words = BAD_LINES[case]
    good = "".join(
        render(spec, {"9-9-9" if spec is MULTIRC else "9": spec.labels[0] if spec.labels else "1"})
    )
    head, _, last = good.rpartition("\n")[0].rpartition("\n")
    raw = line if isinstance(line, bytes) else line.encode()
    found, problems = read(spec, head.encode() + b"\n" * bool(head) + raw + b"\n" + last.encode() + b"\n")
    (problem,) = problems
    assert problem.startswith(f"{spec.submission}, line {2 if head else 1}: ")
    assert words in problem
    assert len(found) == 1


@pytest.mark.parametrize("text", ["", "0\t1\n", "index,prediction\n", "\ufeffindex\tprediction\n"])
def test_a_wrong_header_is_named(text):
    _, problems = read(COLA, text)
    assert problems[0].startswith("CoLA.tsv, line 1: the header is ")


def test_predictions_that_are_none_are_not_written():
    with pytest.raises(EnsueError, match=r"CoLA: the label 'yes' is none of 0, 1\."):
        list(render(COLA, {"0": "yes"}))
    with pytest.raises(EnsueError, match="passage-question-answer"):
        list(render(MULTIRC, {"0-1": "1"}))
