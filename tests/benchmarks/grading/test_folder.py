"""An organiser's own board: the example of docs/boards.md, what is wrong with a board.toml, and with predictions."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest
from sklearn.metrics import accuracy_score, f1_score

from ensue.benchmarks.grading import open_board
from ensue.errors import EnsueError
from tests.support.command import here, refused

PAGE = Path(__file__).resolve().parents[3] / "docs" / "boards.md"
# The example of the documentation itself.
BOARD = PAGE.read_text("utf-8").partition("```toml\n")[2].partition("```")[0]
FATES = ["sank", "left", "left", "stayed", "left", "sank"]
METRES = [0.5, 2.25, 1.0, 4.0, 3.0, 0.75]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "board.toml").write_text(BOARD)
    folder = tmp_path / "labels" / "test"
    folder.mkdir(parents=True)
    fates = [f"{n}\tBoat {n} was seen.\t{fate}\tday {n // 2}\n" for n, fate in enumerate(FATES)]
    (folder / "fate.tsv").write_text("id\ttext\tlabel\tday\n" + "".join(fates))
    swell = [json.dumps({"number": n, "metres": one}) + "\n" for n, one in enumerate(METRES)]
    (folder / "swell.jsonl").write_text("".join(swell))
    log = [json.dumps({"id": n, "label": ["calm sea", "no wind"]}) + "\n" for n in range(3)]
    (folder / "log.jsonl").write_text("".join(log))
    return tmp_path


def predictions() -> dict[str, object]:
    given = ["sank", "left", "stayed", "stayed", "left", "left"]
    found: dict[str, object] = {f"fate/{n}": one for n, one in enumerate(given)}
    found |= {f"swell/{n}": 2 * one for n, one in enumerate(METRES)}
    return found | {f"log/{n}": "a calm day" for n in range(3)}


def jsonl(path: Path, given: dict[str, object]) -> Path:
    rows = [json.dumps({"id": id, "prediction": one}) + "\n" for id, one in given.items()]
    path.write_text("".join(rows))
    return path


def csv(path: Path, given: dict[str, object], divider: str = ",") -> Path:
    rows = [f"{one}{divider}{id}\n" for id, one in given.items()]
    path.write_text(f"prediction{divider}id\n" + "".join(rows))
    return path


def test_the_command_grades_a_board_from_json_lines_csv_or_tsv(place: Path) -> None:
    command = ("--suite", place / "board.toml", "--labels", place / "labels", "--json")
    files = [
        jsonl(place / "p.jsonl", predictions()),
        csv(place / "p.csv", predictions()),
        csv(place / "p.tsv", predictions(), "\t"),
        # What it is called says nothing.
        csv(place / "upload", predictions()),
    ]
    said = [json.loads(here("grade", file, *command).out) for file in files]
    for one in said:
        one.pop("file")
    assert said[0] == said[1] == said[2] == said[3]
    given = [predictions()[f"fate/{n}"] for n in range(6)]
    found = {(row["task"], row["metric"]): row for row in said[0]["metrics"]}
    accuracy, macro = accuracy_score(FATES, given), f1_score(FATES, given, average="macro")
    assert found["fate", "accuracy"]["value"] == pytest.approx(accuracy)
    assert found["fate", "macro_f1"]["value"] == pytest.approx(macro)
    assert (found["fate", "accuracy"]["n"], found["fate", "accuracy"]["clusters"]) == (6, 3)
    assert found["swell", "spearman"]["value"] == pytest.approx(1.0)
    assert found["log", "token_f1"]["value"] == 0.5
    # Of the two tasks that count; the mean of a task's metrics is its score.
    assert said[0]["score"] == pytest.approx(((accuracy + macro) / 2 + 1) / 2)
    assert (said[0]["suite"], said[0]["split"], said[0]["covers"]) == ("Harbour", "test", "2 of 2 tasks")
    assert "Harbour" in here("grade", files[0], *command[:-1]).out
    board = open_board(place / "board.toml", place / "labels")
    assert [(one.task, one.metric) for one in board.columns] == list(found)


def test_a_board_of_one_task_has_plain_ids_and_parts_are_taken_where_they_may_be(place: Path) -> None:
    board = open_board(place / "board.toml", place / "labels", tasks=["swell"])
    path = jsonl(place / "p.jsonl", {str(n): -one for n, one in enumerate(METRES)})
    assert board.grade(path).score == pytest.approx(-1.0)
    part = {id: one for id, one in predictions().items() if not id.startswith("swell")}
    found = open_board(place / "board.toml", place / "labels", partial=True).grade(jsonl(path, part))
    assert (found.score, found.not_scored) == (None, {"swell": "no predictions"})
    assert found.covers == "1 of 2 tasks"


def test_predictions_of_other_texts_are_refused_by_their_content(place: Path) -> None:
    asked = hashlib.sha256(json.dumps(["Boat 0 was seen."]).encode()).hexdigest()[:16]
    rows = [{"id": id, "prediction": one} for id, one in predictions().items()]
    board = open_board(place / "board.toml", place / "labels")
    path = place / "p.jsonl"
    rows[0]["content"] = asked
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert board.validate(path) == []
    rows[0]["content"] = asked[::-1]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    (problem,) = board.validate(path)
    assert problem.problem.startswith("1 of 15 items are of other texts than those of this board, fate/0")


BAD_FILES = {
    "a class that is none": (
        "id,prediction\nfate/0,flew\n",
        (2, "the label 'flew' is none of left, sank, stayed."),
    ),
    "no such column": (
        "id,answer\nfate/0,left\n",
        (2, "the key 'answer' is none of id, content, prediction."),
    ),
    "a column too many": (
        "id,prediction\nfate/0,left,right\n",
        (2, "3 columns, where the header 'id,prediction' has 2."),
    ),
    "a column twice": ("id,id\nfate/0,left\n", (1, "a column is named twice.")),
    "an open quotation mark": (
        'id,prediction\nfate/0,"left\n',
        (2, "not a row of columns divided by commas (unexpected end of data)."),
    ),
    "a number that is none": (
        "id\tprediction\nswell/0\tNaN\n",
        (2, "the prediction 'NaN' is not a finite number."),
    ),
    "an id twice": (
        "id,prediction\nswell/0,1\nswell/0,1\n",
        (3, "the id 'swell/0' was there before, in line 2."),
    ),
    "an unknown id": ("id,prediction\nboat/0,1\n", (2, "there is no item with the id 'boat/0'.")),
    "a list of JSON": (
        "[1]\n",
        (0, "15 of 15 items have no prediction: fate/0, fate/1, fate/2, fate/3, fate/4, …."),
    ),
    "a list below an object": (
        '{"id": "fate/0", "prediction": "left"}\n[1]\n',
        (2, "the line is not a JSON object."),
    ),
    "nothing": ("", (0, "15 of 15 items have no prediction: fate/0, fate/1, fate/2, fate/3, fate/4, ….")),
}


@pytest.mark.parametrize("case", BAD_FILES)
def test_what_is_wrong_with_predictions_is_named_by_line(place: Path, case: str) -> None:
    text, expected = BAD_FILES[case]
    path = place / "p.csv"
    path.write_text(text)
    problems = open_board(place / "board.toml", place / "labels").validate(path)
    assert [(one.line, one.problem) for one in problems] == [expected]


BAD_BOARDS = {
    "no TOML": (
        "name = 'B'\ntasks = =",
        "is not TOML that can be read (Invalid value (at line 2, column 9))",
    ),
    "no name": ("[tasks.a]\nlabels = 'a'\nmetrics = ['f1']", "has no name; add it."),
    "no task": ("name = 'B'\n[tasks]", "names no task that counts"),
    "a key that is none": (
        "name = 'B'\ncolour = 1\n[tasks]",
        "there is no key 'colour'; there are name, about",
    ),
    "a key of the wrong kind": (
        "name = 'B'\n[tasks.a]\nlabels = 1\nmetrics = ['f1']",
        "task 'a': labels is not a text.",
    ),
    "an empty list": ("name = 'B'\n[tasks.a]\nlabels = 'a'\nmetrics = []", "metrics is not a list of texts."),
    "a list of numbers": (
        "name = 'B'\n[tasks.a]\nlabels = 'a'\nmetrics = [1]",
        "metrics is not a list of texts.",
    ),
    "no metrics": ("name = 'B'\n[tasks.a]\nlabels = 'a'", "task 'a' has no metrics; add it."),
    "an unknown metric": (
        "name = 'B'\n[tasks.a]\nlabels = 'a'\nmetrics = ['wer']",
        "task 'a': there is no metric 'wer'; there are accuracy",
    ),
    "classes of numbers": (
        "name = 'B'\n[tasks.a]\nlabels = 'a'\nmetrics = ['kendall']\nclasses = ['x']",
        "its metrics are of numbers",
    ),
    "a positive class that is none": (
        "name = 'B'\n[tasks.a]\nlabels = 'a'\nmetrics = ['f1']\nclasses = ['x', 'y']\npositive = 'z'",
        "positive = 'z' is none of its classes.",
    ),
    "a label that is given away": (
        "name = 'B'\n[tasks.a]\nlabels = 'a'\nmetrics = ['f1']\nasked = ['text', 'label']",
        "asked names the label 'label', so that answers could be tried out.",
    ),
    "a task that is no table": ("name = 'B'\n[tasks]\na = 1", "task 'a' is not a table"),
    "a way out": (
        "name = 'B'\n[tasks.a]\nlabels = '../board.toml'\nmetrics = ['f1']",
        "../board.toml leads out of",
    ),
}


@pytest.mark.parametrize("case", BAD_BOARDS)
def test_what_is_wrong_with_a_board_is_one_sentence(place: Path, case: str) -> None:
    text, words = BAD_BOARDS[case]
    (place / "board.toml").write_text(text)
    done = here("grade", place / "p", "--suite", place / "board.toml", "--labels", place / "labels")
    refused(done, str(place / "board.toml"), words)


BAD_LABELS = {
    "fate.tsv": (
        "id\ttext\tlabel\tday\n0\tA.\tsank\t1\n0\tB.\tleft\t1\n1\tC.\t\t1\n2\tD.\tleft\n",
        [
            (3, "the id '0' was there before."),
            (4, "the label '' is not a label."),
            (5, "3 columns, where the header 'id,text,label,day' has 4."),
        ],
    ),
    "swell.jsonl": (
        '{"number": 1, "metres": "deep"}\n{"metres": 1}\n{"number": true, "metres": 1}\n',
        [
            (1, "the metres 'deep' is not a finite number."),
            (2, "there is no 'number'."),
            (3, "the number true is not a text."),
        ],
    ),
    "log.jsonl": (
        '{"id": 1, "label": []}\n{"id": 2, "label": ["x", 3]}\n',
        [(1, "the label [] is empty."), (2, "the label 3 is not a text.")],
    ),
}


@pytest.mark.parametrize("name", BAD_LABELS)
def test_what_is_wrong_with_labels_is_named_by_line(place: Path, name: str) -> None:
    text, expected = BAD_LABELS[name]
    (place / "labels" / "test" / name).write_text(text)
    done = here("grade", place / "p", "--suite", place / "board.toml", "--labels", place / "labels")
    assert done.code == 2
    assert done.err.splitlines()[1:] == [f"  test/{name}, line {line}: {words}" for line, words in expected]


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("fate.tsv", "id\ttext\tlabel\tday\n0\tA.\tsank\t1\n", "1 items, where a board needs two."),
        (
            "fate.tsv",
            "id\ttext\tlabel\tday\n0\tA.\tx\t1\n1\tB.\tx\t1\n",
            "1 classes, where a task has 2 to 1,000.",
        ),
    ],
    ids=["one item", "one class"],
)
def test_labels_must_leave_something_to_tell_apart(place: Path, name: str, text: str, words: str) -> None:
    (place / "labels" / "test" / name).write_text(text)
    with pytest.raises(EnsueError, match="1 problem") as raised:
        open_board(place / "board.toml", place / "labels")
    assert f"test/{name}: {words}" in str(raised.value)


def test_f1_names_its_class_where_there_are_more_than_two(place: Path) -> None:
    path = place / "board.toml"
    path.write_text(BOARD.replace('"macro_f1"', '"f1"'))
    with pytest.raises(EnsueError, match="name it as positive, one of left, sank, stayed"):
        open_board(path, place / "labels")
    path.write_text(BOARD.replace('"macro_f1"]', '"f1"]\npositive = "drowned"'))
    with pytest.raises(EnsueError, match="f1 is of one class; name it as positive"):
        open_board(path, place / "labels")
    path.write_text(BOARD.replace('"macro_f1"]', '"f1"]\npositive = "left"'))
    found = open_board(path, place / "labels").grade(jsonl(place / "p.jsonl", predictions()))
    (row,) = [row for row in found.metrics if row["metric"] == "f1"]
    # Left three times, of which two were found and one was given wrongly.
    assert row["value"] == pytest.approx(2 / 3)


def test_kendall_is_for_as_many_items_as_its_pairs_fit_the_memory(place: Path) -> None:
    (place / "board.toml").write_text(BOARD.replace('"spearman"', '"kendall"'))
    rows = [json.dumps({"number": n, "metres": n % 7}) + "\n" for n in range(2_001)]
    (place / "labels" / "test" / "swell.jsonl").write_text("".join(rows))
    with pytest.raises(EnsueError, match="kendall is for 2,000 items at most; name spearman instead"):
        open_board(place / "board.toml", place / "labels")


def test_other_refusals(place: Path) -> None:
    path = jsonl(place / "p.jsonl", predictions())
    grade = ("grade", path, "--suite", place / "board.toml", "--labels")
    refused(here(*grade, place / "none"), "not a folder")
    refused(here(*grade, place / "labels", "--tasks", "tide"), "no task 'tide'; it has fate, swell, log")
    refused(here(*grade, place / "labels", "--set", "a=1"), "without settings")
    missing = here(*grade, place / "labels", "--split", "dev")
    assert missing.code == 2
    assert "dev/fate.tsv: the file cannot be read: No such file" in missing.err
    refused(here("grade", path, "--suite", place / "no.toml", "--labels", place), "no.toml cannot be read")


EXTREMES = [0.0, -0.0, 1e100, -1e100, 5e-324, 1e-160, 1.0]


@pytest.mark.parametrize("pool", [EXTREMES, [5e-324, 0.0], [1e100, -1e100], [1e-160, 0.0], [1.0]], ids=str)
def test_numbers_of_any_size_have_figures_and_larger_ones_are_refused(place: Path, pool: list[float]) -> None:
    path = place / "board.toml"
    path.write_text(BOARD.replace('"spearman"', '"spearman", "pearson", "kendall"'))
    board = open_board(path, place / "labels", tasks=["swell"])
    given: dict[str, object] = {str(n): pool[n % len(pool)] for n in range(6)}
    found = board.grade(jsonl(place / "p.jsonl", given))
    json.dumps(found.as_dict(), allow_nan=False)
    assert all(-1.0 - 1e-9 <= row["value"] <= 1.0 + 1e-9 for row in found.metrics)
    (problem,) = board.validate(jsonl(place / "p.jsonl", given | {"2": -1e101}))
    assert (problem.line, problem.problem) == (3, "the prediction -1e+101 is larger than 1e+100.")
