"""Predictions from strangers: whatever a file holds, every fault is named by line, in bounded memory."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ensue.benchmarks.grading import Column, Graded, Limits, Problem, Refused, open_board
from ensue.benchmarks.grading.predictions import PredictionsBoard, Question
from ensue.benchmarks.grading.values import label_of
from ensue.errors import EnsueError
from tests.benchmarks.discoeval.folders import write_text
from tests.support.command import environment

LABELS = ("no", "yes")


class Plain(PredictionsBoard):
    """A board of labels that hands back what it read."""

    def __init__(self, ids: int = 4, **more: Any) -> None:
        questions = {
            f"t/{n}": Question("t", f"{n:016}", lambda value: label_of(value, LABELS)) for n in range(ids)
        }
        super().__init__("plain", "test", questions, **more)
        self.judged: Mapping[str, Any] = {}

    @property
    def columns(self) -> list[Column]:
        return [Column("t", "accuracy", main=True)]

    def judge(self, answers: Mapping[str, Any], not_scored: Mapping[str, str]) -> Graded:
        self.judged = answers
        return self.graded([], not_scored)


GOOD = [json.dumps({"id": f"t/{n}", "prediction": "yes"}) for n in range(4)]
REST = "\n".join(GOOD[1:])
HOSTILE = {
    "NaN": ('{"id": "t/0", "prediction": NaN}', "NaN is not a JSON value."),
    "infinity": ('{"id": "t/0", "prediction": -Infinity}', "-Infinity is not a JSON value."),
    "a key twice": ('{"id": "t/0", "id": "t/1", "prediction": "no"}', "an object names the same key twice."),
    "an unknown key": (
        '{"id": "t/0", "prediction": "no", "gold": 1}',
        "the key 'gold' is none of id, content, prediction.",
    ),
    "no id": ('{"prediction": "no"}', "there is no 'id'."),
    "no prediction": ('{"id": "t/0"}', "there is no 'prediction'."),
    "an empty id": ('{"id": "", "prediction": "no"}', "the id '' is not a text."),
    "an id that is no text": ('{"id": [1], "prediction": "no"}', "the id [1] is not a text."),
    "a content that is no text": (
        '{"id": "t/0", "prediction": "no", "content": 7}',
        "the content 7 is not a text.",
    ),
    "a list": ('["t/0", "no"]', "the line is not a JSON object."),
    "no JSON": ("id: t/0", "not JSON (Expecting value at column 1)."),
    "a blank line": ("   ", "the line is blank."),
    "a deep list": (
        '{"id": "t/0", "prediction": ' + "[" * 60_000 + "}",
        "not a prediction but JSON nested too deep.",
    ),
    "a number of many digits": (
        '{"id": "t/0", "prediction": ' + "9" * 6_000 + "}",
        "not JSON (a number is too long).",
    ),
    "a label that is none": (
        '{"id": "t/0", "prediction": "' + "x" * 300 + '"}',
        "the label 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx… is none of no, yes.",
    ),
    "an object as a label": (
        '{"id": "t/0", "prediction": {"a": 1}}',
        'the label {"a": 1} is none of no, yes.',
    ),
    "an unknown id": ('{"id": "t/9", "prediction": "no"}', "there is no item with the id 't/9'."),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_what_is_wrong_with_a_line_is_named(tmp_path: Path, case: str) -> None:
    line, words = HOSTILE[case]
    path = tmp_path / "p.jsonl"
    path.write_text(f"{line}\n{REST}\n")
    assert Plain().validate(path) == [Problem("p.jsonl", 1, words)]
    with pytest.raises(Refused, match="refused for 1 problem; mend it"):
        Plain().grade(path)


def test_bytes_that_are_no_text_and_a_file_that_is_not_there(tmp_path: Path) -> None:
    path = tmp_path / "p.jsonl"
    path.write_bytes(b'{"id": "t/0", "prediction": "\xff"}\n' + REST.encode())
    assert Plain().validate(path) == [("p.jsonl", 1, "not UTF-8 text.")]
    path.write_bytes(b"\xef\xbb\xbf" + "\r\n".join(GOOD).encode())
    assert Plain().validate(path) == []
    path.unlink()
    (problem,) = Plain().validate(path)
    assert problem.problem == "the file cannot be read: No such file or directory."
    (problem,) = Plain().validate(tmp_path)
    assert problem.problem == "the file cannot be read: Is a directory."


def test_every_id_once(tmp_path: Path) -> None:
    path = tmp_path / "p.jsonl"
    path.write_text("\n".join([*GOOD, GOOD[2]]))
    assert Plain().validate(path) == [("p.jsonl", 5, "the id 't/2' was there before, in line 3.")]
    path.write_text("\n".join(GOOD[1:3]))
    assert Plain().validate(path) == [("p.jsonl", 0, "2 of 4 items have no prediction: t/0, t/3.")]
    path.write_text("")
    assert Plain(partial=True).validate(path) == [("p.jsonl", 0, "there is no prediction in it.")]


def test_limits_end_the_reading(tmp_path: Path) -> None:
    path = tmp_path / "p.jsonl"
    small = Limits(file_bytes=2_000, line_bytes=100)
    path.write_text("x" * 3_000)
    assert Plain(limits=small).validate(path) == [
        ("p.jsonl", 0, "the file has 3,000 bytes, more than 2,000; it was not read.")
    ]
    path.write_text(GOOD[0] + "\n" + "x" * 1_500)
    (problem,) = Plain(limits=small).validate(path)
    assert (problem.line, problem.problem) == (
        2,
        "the line is longer than 100 bytes; the file was not read further.",
    )
    path.write_text("\n" * 5_000)
    problems = Plain().validate(path)
    assert problems[0] == ("p.jsonl", 1, "the line is blank.")
    # The first twenty and a count: 1,004 blank lines, and the one that ends the reading.
    assert problems[-1] == ("p.jsonl", 0, "and 985 more such lines.")


def test_what_was_said_of_other_texts_is_one_problem(tmp_path: Path) -> None:
    path = tmp_path / "p.jsonl"
    rows = [{"id": f"t/{n}", "prediction": "no", "content": f"{n + (n > 1):016}"} for n in range(4)]
    path.write_text("\n".join(map(json.dumps, rows)))
    words = "2 of 4 items are of other texts than those of this board, t/2 for one; predict on its own data."
    assert Plain().validate(path) == [("p.jsonl", 3, words)]


@given(st.data())
@settings(max_examples=80, deadline=None)
def test_good_predictions_come_back_whatever_their_order(
    tmp_path_factory: pytest.TempPathFactory, data: Any
) -> None:
    count = data.draw(st.integers(1, 30))
    said = data.draw(st.lists(st.sampled_from(LABELS), min_size=count, max_size=count))
    named = data.draw(st.lists(st.booleans(), min_size=count, max_size=count))
    order = data.draw(st.permutations(range(count)))
    path = tmp_path_factory.mktemp("good") / "p.jsonl"
    lines = [
        json.dumps({"prediction": said[n], "id": f"t/{n}"} | ({"content": f"{n:016}"} if named[n] else {}))
        for n in order
    ]
    path.write_text(data.draw(st.sampled_from(("\n", "\r\n"))).join(lines))
    board = Plain(count)
    assert board.validate(path) == []
    board.grade(path)
    assert board.judged == {f"t/{n}": one for n, one in enumerate(said)}
    assert list(board.judged) == [f"t/{n}" for n in range(count)]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)
ROWS = st.fixed_dictionaries(
    {},
    optional={
        "id": st.sampled_from(["t/0", "t/1"]) | JSON,
        "prediction": st.sampled_from(LABELS) | JSON,
        "content": JSON,
    },
)
LINES = st.binary(max_size=60) | ROWS.map(lambda row: json.dumps(row).encode())


@given(st.lists(LINES, max_size=8))
@settings(max_examples=300, deadline=None)
def test_any_bytes_are_refused_or_read_and_never_fail(
    tmp_path_factory: pytest.TempPathFactory, lines: list[bytes]
) -> None:
    path = tmp_path_factory.mktemp("any") / "p.jsonl"
    content = b"\n".join(lines)
    path.write_bytes(content)
    board = Plain(2)
    problems = board.validate(path)
    for problem in problems:
        assert 0 <= problem.line <= content.count(b"\n") + 1
        assert problem.problem.endswith(".")
        assert len(problem.problem) < 300
        json.dumps(problem._asdict())
    if not problems:
        board.grade(path)
        assert set(board.judged) == {"t/0", "t/1"}
        assert set(board.judged.values()) <= set(LABELS)


PEAK = """
import re, sys
from pathlib import Path
from ensue.benchmarks.grading import open_board
board = open_board("discoeval", Path(sys.argv[1]), tasks=["SSP"])
found = board.validate(Path(sys.argv[2]))
print(len(found), found[0])
assert not {"torch", "transformers"} & set(sys.modules)
print(re.search("VmHWM:\\\\s*(\\\\d+)", Path("/proc/self/status").read_text()).group(1))
"""


def test_sixty_megabytes_without_a_line_break_are_refused_in_bounded_memory(tmp_path: Path) -> None:
    write_text(tmp_path / "data" / "SSP" / "abs", 2, 1)
    path = tmp_path / "p.jsonl"
    with path.open("wb") as file:
        for _ in range(60):
            file.write(random.Random(1).randbytes(1 << 16).replace(b"\n", b"x") * 16)
    done = subprocess.run(
        [sys.executable, "-c", PEAK, tmp_path / "data", path],
        capture_output=True,
        text=True,
        env=environment(),
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    first, peak = done.stdout.splitlines()
    assert (
        first == "1 p.jsonl, line 1: the line is longer than 1,048,576 bytes; the file was not read further."
    )
    assert int(peak) < 200_000  # kilobytes, numpy and the data among them


SUITES = (
    "chapterbreak",
    "discoeval",
    "glue",
    "intruder",
    "qags",
    "senteval",
    "shuffle",
    "squality",
    "superglue",
)


def test_graders_import_no_torch() -> None:
    code = (
        "import sys\n"
        "from ensue.benchmarks import registry\n"
        "from ensue.benchmarks.grading import grader_of\n"
        "print(*[one.name for one in registry.every() if one.grader and grader_of(one.name).suite == one.name])\n"
        "print(*sorted({'torch', 'transformers', 'spacy', 'sklearn'} & set(sys.modules)))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment(), timeout=60
    )
    assert done.stdout.splitlines() == [" ".join(SUITES), ""], done.stderr


def test_a_board_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(EnsueError, match=r"no benchmark 'discoevil'; did you mean discoeval\?"):
        open_board("discoevil", tmp_path)
