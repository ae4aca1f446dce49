"""Grading: the numbers are scikit-learn's and SciPy's, and everything that is wrong is listed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from scipy.stats import pearsonr, spearmanr
from sklearn.metrics import accuracy_score, f1_score, matthews_corrcoef

from ensue.benchmarks.grading import Graded, Refused, grade, open_board
from ensue.benchmarks.nlu.submissions.grading import NluBoard, guess_suite, read_labels
from ensue.benchmarks.nlu.submissions.submission import write_submission
from ensue.errors import EnsueError
from tests.benchmarks.nlu import folders
from tests.benchmarks.nlu.folders import SIZE, Predicted
from tests.support.command import here, refused, write_lines

GLUE_FILES = ("CoLA.tsv", "STS-B.tsv", "RTE.tsv")


@pytest.fixture(scope="module")
def glue(tmp_path_factory) -> Path:
    return folders.glue(tmp_path_factory.mktemp("data") / "glue")


@pytest.fixture(scope="module")
def superglue(tmp_path_factory) -> Path:
    return folders.superglue(tmp_path_factory.mktemp("data") / "superglue")


def submitted(path: Path, suite: str = "glue", predictions: Predicted | None = None) -> Path:
    write_submission(suite, predictions or folders.glue_predictions(), path, "dev")
    return path


def changed(path: Path, **files: str | bytes | None) -> Path:
    """A good submission in which those files (by the names of their tasks) have another content or are not there."""
    submitted(path)
    with zipfile.ZipFile(path) as archive:
        content: dict[str, str | bytes] = {name: archive.read(name) for name in archive.namelist()}
    for task, text in files.items():
        name = f"{task.replace('_', '-')}.tsv"
        content = {key: value for key, value in content.items() if key != name} | (
            {name: text} if text is not None else {}
        )
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in content.items():
            archive.writestr(name, text)
    return path


def values(graded: Graded) -> dict[tuple[str, str], float]:
    return {(row["task"], row["metric"]): row["value"] for row in graded.metrics}


def gold(folder: Path, suite: str, task: str, split: str) -> list[object]:
    return [example.gold for example in read_labels(folder, suite)[task].splits[split]]


def test_glue_is_scored_as_scikit_learn_and_scipy_score_it(tmp_path, glue):
    predictions = folders.glue_predictions()
    graded = grade(submitted(tmp_path / "s.zip"), glue, split="dev")
    found = values(graded)
    cola = matthews_corrcoef(gold(glue, "glue", "CoLA", "dev"), list(predictions["CoLA"]["dev"].values()))
    scores = gold(glue, "glue", "STS-B", "dev"), list(predictions["STS-B"]["dev"].values())
    rte = accuracy_score(gold(glue, "glue", "RTE", "dev"), list(predictions["RTE"]["dev"].values()))
    assert found["CoLA", "mcc"] == pytest.approx(cola)
    assert found["STS-B", "pearson"] == pytest.approx(pearsonr(*scores).statistic)
    assert found["STS-B", "spearman"] == pytest.approx(spearmanr(*scores).statistic)
    assert found["RTE", "accuracy"] == pytest.approx(rte)
    similar = (pearsonr(*scores).statistic + spearmanr(*scores).statistic) / 2
    assert graded.score == pytest.approx((cola + similar + rte) / 3)
    assert (graded.suite, graded.split) == ("glue", "dev")
    assert all(row["settings"]["split"] == "dev" for row in graded.metrics)
    assert graded.not_scored["QQP.tsv"] == "neither in the zip nor labelled"


def test_superglue_is_scored_with_its_diagnostics(tmp_path, superglue):
    predictions = folders.superglue_predictions()
    graded = grade(submitted(tmp_path / "s.zip", "superglue", predictions), superglue, split="dev")
    found = values(graded)
    for task, split in (("BoolQ", "dev"), ("COPA", "dev")):
        wanted = accuracy_score(
            gold(superglue, "superglue", task, split), list(predictions[task][split].values())
        )
        assert found[task, "accuracy"] == pytest.approx(wanted)
    truth, given = folders.multirc_gold(), predictions["MultiRC"]["dev"]
    assert found["MultiRC", "f1a"] == pytest.approx(
        f1_score(list(truth.values()), [int(given[id]) for id in truth])
    )
    questions = {id.rpartition("-")[0] for id in truth}
    exact = [
        all(int(given[id]) == truth[id] for id in truth if id.startswith(f"{one}-")) for one in questions
    ]
    assert found["MultiRC", "em"] == pytest.approx(sum(exact) / len(exact))
    ax = gold(superglue, "superglue", "AX-b", "test"), list(predictions["AX-b"]["test"].values())
    assert found["AX-b", "mcc"] == pytest.approx(matthews_corrcoef(*ax))
    tasks = (
        found["BoolQ", "accuracy"],
        found["COPA", "accuracy"],
        (found["MultiRC", "f1a"] + found["MultiRC", "em"]) / 2,
    )
    assert graded.score == pytest.approx(sum(tasks) / 3)


def test_a_board_is_read_once_and_says_what_is_wrong_or_what_it_is_worth(tmp_path, glue):
    board = open_board("glue", glue, "dev")
    assert [(column.task, column.metric, column.main) for column in board.columns] == [
        ("GLUE", "score", True),
        ("CoLA", "mcc", False),
        ("STS-B", "pearson", False),
        ("STS-B", "spearman", False),
        ("RTE", "accuracy", False),
    ]
    path = submitted(tmp_path / "s.zip")
    assert board.validate(path) == []
    graded = board.grade(path)
    assert graded == grade(path, glue, split="dev")
    cells = [column.find(graded.metrics) for column in board.columns]
    assert cells[0]["value"] == graded.score
    assert cells[4]["value"] == values(graded)["RTE", "accuracy"]
    assert graded.covers.startswith("0 of 9 tasks whole, CoLA in part (12 of 1,043 rows)")
    assert board.columns[1]._replace(settings={"split": "test"}).find(graded.metrics) is None
    bad = changed(tmp_path / "bad.zip", CoLA=None)
    assert [tuple(problem) for problem in board.validate(bad)] == [
        ("CoLA.tsv", 0, "is missing from the zip.")
    ]


def test_a_partial_zip_is_graded_where_it_is_taken_and_has_no_score(tmp_path, glue):
    board = open_board("glue", glue, "dev", partial=True)
    whole = board.grade(submitted(tmp_path / "s.zip"))
    graded = board.grade(changed(tmp_path / "part.zip", CoLA=None))
    assert (graded.score, graded.not_scored["CoLA.tsv"]) == (None, "not in the zip")
    assert graded.covers.startswith("0 of 9 tasks whole, STS-B in part")
    assert values(graded)["RTE", "accuracy"] == values(whole)["RTE", "accuracy"]
    nothing = board.validate(changed(tmp_path / "none.zip", CoLA=None, STS_B=None, RTE=None))
    assert [problem.problem for problem in nothing] == [
        "none of its files has labels here, so there is nothing to grade."
    ]


def test_the_suite_is_known_by_the_files(tmp_path):
    assert guess_suite(submitted(tmp_path / "g.zip")) == "glue"
    assert (
        guess_suite(submitted(tmp_path / "s.zip", "superglue", folders.superglue_predictions()))
        == "superglue"
    )
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        archive.writestr("readme.txt", "?")
    with pytest.raises(Refused, match="no file of glue or superglue is in it"):
        guess_suite(tmp_path / "x.zip")


def repacked(path: Path, folder: str, mark: bytes) -> Path:
    """The zip as a Mac makes it of a folder, its files with a byte order mark."""
    with zipfile.ZipFile(path) as archive:
        content = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(folder, "")
        for name, text in content.items():
            archive.writestr(f"{folder}{name}", mark + text)
            archive.writestr(f"__MACOSX/{folder}._{name}", b"\0\5")
        archive.writestr(f"{folder}.DS_Store", b"\0")
    return path


@pytest.mark.parametrize("suite", ["glue", "superglue"])
def test_a_zip_made_on_a_mac_with_byte_order_marks_is_graded_alike(tmp_path, glue, superglue, suite):
    labels, predictions = (
        (glue, folders.glue_predictions())
        if suite == "glue"
        else (superglue, folders.superglue_predictions())
    )
    path = submitted(tmp_path / "s.zip", suite, predictions)
    wanted = grade(path, labels, split="dev")
    found = grade(repacked(path, "My answers/", b"\xef\xbb\xbf"), labels, split="dev")
    assert found.as_dict() == wanted.as_dict()


def test_diagnostics_are_graded_by_phenomenon_and_parity(tmp_path):
    """Rows by category and tag, as a run has them, against scikit-learn on the rows picked by hand."""
    folder = tmp_path / "labels"
    entailed, not_entailed = "entailment", "not_entailment"
    tags = [{"logic": "Negation;Universal"}, {"logic": "Negation"}, {"knowledge": "Common sense"}]
    ax = [
        {
            "idx": n,
            "sentence1": f"Boat {n} left.",
            "sentence2": f"It {n} went.",
            "label": label,
            **tags[n % 3],
        }
        for n, label in enumerate([entailed, not_entailed, not_entailed] * 4)
    ]
    pairs = [("he", entailed), ("she", entailed), ("he", not_entailed), ("she", not_entailed)]
    gendered = [
        {
            "idx": n,
            "premise": f"The cook said {who} rests.",
            "hypothesis": f"One {n // 2} rests.",
            "label": label,
        }
        for n, (who, label) in enumerate(pairs)
    ]
    for name, rows in (("AX-b", ax), ("AX-g", gendered)):
        (folder / name).mkdir(parents=True)
        write_lines(folder / name / f"{name}.jsonl", rows)
    given = [entailed, not_entailed, entailed, entailed, entailed, not_entailed] * 2
    predictions = {
        "AX-b": {"test": {str(n): label for n, label in enumerate(given)}},
        # The first pair answered alike (and one of it wrong would not count), the second not.
        "AX-g": {"test": {"0": not_entailed, "1": not_entailed, "2": entailed, "3": not_entailed}},
    }
    path = tmp_path / "s.zip"
    write_submission("superglue", predictions, path)
    command = ("grade", path, "--labels", folder, "--suite", "superglue", "--tasks", "AX-b,AX-g")
    said = json.loads(here(*command, "--json").out)
    found = {
        (row["task"], row["metric"], row["settings"].get("category"), row["settings"].get("tag")): row
        for row in [*said["metrics"], *said["diagnostics"]]
    }
    # The table of tasks has each diagnostic as a whole; the parts of it are apart.
    assert not any("category" in row["settings"] for row in said["metrics"])
    parts = {
        (None, None): (0, 1, 2),
        ("Logic", None): (0, 1),
        ("Knowledge", None): (2,),
        ("Logic", "Negation"): (0, 1),
        ("Logic", "Universal"): (0,),
        ("Knowledge", "Common Sense"): (2,),
    }
    assert {place[2:] for place in found if place[0] == "AX-b"} == set(parts)
    for part, kinds in parts.items():
        rows = [n for n in range(12) if n % 3 in kinds]
        truth, answers = [ax[n]["label"] for n in rows], [given[n] for n in rows]
        assert found["AX-b", "mcc", *part]["value"] == pytest.approx(matthews_corrcoef(truth, answers))
        assert found["AX-b", "accuracy", *part]["value"] == pytest.approx(accuracy_score(truth, answers))
        assert found["AX-b", "mcc", *part]["n"] == len(rows)
    assert found["AX-g", "gender_parity", None, None]["value"] == 0.5
    assert found["AX-g", "gender_parity", None, None]["n"] == 2
    assert found["AX-g", "accuracy", None, None]["value"] == 0.25
    shown = here(*command).out
    value = matthews_corrcoef(
        [ax[n]["label"] for n in range(12) if n % 3 < 2], [given[n] for n in range(12) if n % 3 < 2]
    )
    (line,) = [line for line in shown.splitlines() if "Negation" in line]
    assert f"{value:.3f}" in line.replace("−", "-")
    assert (
        shown.index("Logic") < shown.index("Negation") < shown.index("Universal") < shown.index("Knowledge")
    )


def test_people_without_the_tasks_labels_or_the_suite_are_refused_in_a_sentence(tmp_path, superglue, glue):
    path = write_lines(tmp_path / "people.jsonl", [{"id": "0", "labels": ["1", "1"]}])
    for suite, task, folder, words in (
        ("superglue", "CB", superglue, (str(superglue), "no files of CB")),
        ("superglu", "CB", superglue, ("no benchmark 'superglu'", "superglue")),
        ("superglue", "CBB", superglue, ("no task 'CBB'",)),
        ("superglue", "CB", tmp_path / "none", ("none", "not a folder")),
        ("superglue", "CB", path, ("people.jsonl", "not a folder")),
        ("glue", "MRPC", glue, ("MRPC has no labels of test", "agreement")),
    ):
        done = here("grade", path, "--labels", folder, "--suite", suite, "--tasks", task)
        refused(done, *words)


def lines(*rows: str) -> str:
    return "".join(f"{row}\n" for row in ("index\tprediction", *rows))


ALL = [f"{n}\t0" for n in range(SIZE)]
BAD = {
    "a missing file": ({"CoLA": None}, ["CoLA.tsv: is missing from the zip."]),
    "an empty file": ({"CoLA": ""}, ["CoLA.tsv, line 1: the header is '', not index<TAB>prediction."]),
    "an index twice": (
        {"CoLA": lines(*ALL, "3\t1")},
        ["CoLA.tsv, line 14: the index 3 was there before, in line 5."],
    ),
    "an unknown index": (
        {"CoLA": lines(*ALL, "99\t1")},
        ["CoLA.tsv, line 14: there is no example with the index '99'."],
    ),
    "an unknown label": (
        {"CoLA": lines("0\tyes", *ALL[1:])},
        ["CoLA.tsv, line 2: the label 'yes' is none of 0, 1."],
    ),
    "a NaN": (
        {"STS_B": lines("0\tnan", *ALL[1:])},
        ["STS-B.tsv, line 2: the score 'nan' is not a finite number."],
    ),
    "indexes left out": (
        {"CoLA": lines(*ALL[:5])},
        ["CoLA.tsv: 7 of 12 examples have no prediction: 5, 6, 7, 8, 9, …."],
    ),
    "the wrong order": (
        {"CoLA": lines(*ALL[:3], ALL[4], ALL[3], *ALL[5:])},
        ["CoLA.tsv, line 5: the index 4 stands where 3 was expected; keep the order of the examples."],
    ),
    "no header": (
        {"CoLA": "\n".join(ALL)},
        ["CoLA.tsv, line 1: the header is '0\\\\t0', not index<TAB>prediction."],
    ),
    "not UTF-8": ({"CoLA": lines(*ALL[1:]).encode() + b"0\t\xff\n"}, ["CoLA.tsv, line 13: not UTF-8 text."]),
    "a file in a folder": (  # beside others at the top
        {"sub/CoLA": "x"},
        ["sub/CoLA.tsv: in a folder; put the files themselves at the top of the zip."],
    ),
    "a way out": (
        {"../CoLA": "x"},
        ["../CoLA.tsv: a path that leads out of the zip; put the files themselves at its top."],
    ),
    "one in each of two files": (
        {"CoLA": None, "RTE": lines("0\tmaybe", *(f"{n}\tentailment" for n in range(1, SIZE)))},
        [
            "CoLA.tsv: is missing from the zip.",
            "RTE.tsv, line 2: the label 'maybe' is none of entailment, not_entailment.",
        ],
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_what_is_wrong_is_listed(tmp_path, glue, case):
    files, expected = BAD[case]
    with pytest.raises(Refused) as caught:
        grade(changed(tmp_path / "s.zip", **files), glue, "glue", split="dev")
    assert [str(problem).replace("\\t", "\\\\t") for problem in caught.value.problems] == expected
    assert caught.value.count == len(expected)


def test_the_same_mistake_in_every_line_is_counted(tmp_path, glue):
    path = changed(tmp_path / "s.zip", CoLA=lines(*(f"{n}\tyes" for n in range(500))), RTE=None)
    with pytest.raises(Refused) as caught:
        grade(path, glue, split="dev")
    problems = caught.value.problems
    assert len(problems) == 20 + 1 + 1
    assert str(problems[20]) == "CoLA.tsv: and 480 more such lines."
    assert caught.value.count == 501
    assert f"{path} is refused for 501 problems" in str(caught.value)


def test_a_file_of_endless_lines_is_not_read_to_its_end(tmp_path, glue):
    with pytest.raises(Refused) as caught:
        grade(changed(tmp_path / "s.zip", CoLA=b"\n" * (20 << 20)), glue, split="dev")
    assert caught.value.count < 2_000


def test_chosen_tasks_need_only_their_files(tmp_path, glue):
    path = changed(tmp_path / "s.zip", CoLA=None)
    graded = grade(path, glue, split="dev", tasks=["rte"])
    assert {row["task"] for row in graded.metrics} == {"RTE", "GLUE"}
    with pytest.raises(EnsueError, match=r"GLUE has no task 'RET'; did you mean RTE\?"):
        grade(path, glue, split="dev", tasks=["RET"])
    table = here("grade", path, "--labels", glue, "--split", "dev", "--tasks", "rte")
    assert table.code == 0
    assert "RTE" in table.out
    assert "Without labels" not in table.out
    whole = here("grade", path, "--labels", glue, "--split", "dev")
    assert "1 problem; mend it and grade again.\n  CoLA.tsv: is missing" in whole.err


def test_labels_that_are_not_there_are_named_with_file_and_line(tmp_path, glue, superglue):
    with pytest.raises(
        EnsueError, match=r"has no labels for test \(.*MRPC/test\.tsv, line 2, for one, is a row without"
    ):
        grade(submitted(tmp_path / "s.zip"), glue, split="test")
    path = submitted(tmp_path / "s.zip", "superglue", folders.superglue_predictions())
    with pytest.raises(EnsueError, match="has no labels for test; give a folder with labels"):
        grade(path, superglue, split="test")
    assert grade(path, superglue, split="test", tasks=["AX-b"]).score is None


def test_only_what_is_judged_is_graded(tmp_path, glue):
    refused(
        here("grade", submitted(tmp_path / "s.zip"), "--labels", glue, "--split", "train"),
        "--split train",
        "test, dev",
    )


def test_unlabelled_examples_are_checked_but_not_scored(tmp_path, glue):
    data = read_labels(glue, "glue")
    data["CoLA"] = type(data["CoLA"])(data["CoLA"].spec, {"test": data["CoLA"].splits["dev"]}, "")
    path = tmp_path / "s.zip"
    good = {
        "CoLA": {"test": folders.glue_predictions()["CoLA"]["dev"]},
        "MRPC": {"test": {str(n): "1" for n in range(SIZE)}},
    }
    write_submission("glue", good, path)
    graded = NluBoard("glue", data, "test").grade(path)
    assert graded.not_scored["MRPC.tsv"] == "no labels of test"
    assert {row["task"] for row in graded.metrics} == {"CoLA", "GLUE"}
    write_submission("glue", {**good, "MRPC": {"test": {"0": "1"}}}, path)
    with pytest.raises(Refused, match=r"MRPC\.tsv: 11 of 12 examples have no prediction"):
        NluBoard("glue", data, "test").grade(path)


def test_the_command_prints_a_table_or_json(tmp_path, glue):
    path = submitted(tmp_path / "s.zip")
    done = here("grade", path, "--labels", glue, "--split", "dev")
    assert (done.code, done.err) == (0, "")
    assert "CoLA" in done.out
    assert "not scored: QQP.tsv" in done.out
    said = json.loads(here("grade", path, "--labels", glue, "--split", "dev", "--json").out)
    assert said["suite"] == "glue"
    assert said["score"] == pytest.approx(grade(path, glue, split="dev").score)
    assert {row["task"] for row in said["metrics"]} == {"CoLA", "STS-B", "RTE", "GLUE"}


def test_the_command_refuses_with_every_problem(tmp_path, glue):
    path = changed(tmp_path / "s.zip", CoLA=None, RTE=lines("0\tmaybe"))
    done = here("grade", path, "--labels", glue, "--split", "dev")
    assert (done.code, done.out) == (2, "")
    assert "CoLA.tsv: is missing from the zip." in done.err
    assert "RTE.tsv, line 2: the label 'maybe'" in done.err
    done = here("grade", path, "--labels", glue, "--split", "dev", "--json")
    assert done.code == 2
    files = [problem["file"] for problem in json.loads(done.out)["problems"]]
    # The label that is none, and the examples that have no prediction.
    assert files == ["CoLA.tsv", "RTE.tsv", "RTE.tsv"]
    refused(here("grade", submitted(path), "--labels", tmp_path / "none"), "none", "not a folder")


WATCHED = """
import sys

class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {"torch", "transformers", "sklearn"}:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Blocker())
import ensue.benchmarks.grading, ensue.benchmarks.nlu.submissions.grading, ensue.benchmarks.nlu.submissions.submission
assert not {"numpy", "scipy"} & set(sys.modules)
sys.argv = ["ensue", *sys.argv[1:]]
from ensue.cli.main import main
main()
"""


def watched(*arguments: object, before: str = "") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", before + WATCHED, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


def test_grading_needs_no_torch(tmp_path, glue):
    done = watched("grade", submitted(tmp_path / "s.zip"), "--labels", glue, "--split", "dev", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["score"] is not None


# Not ru_maxrss, which begins with that of the process that started this one.
PEAK = """
import atexit, re, sys
from pathlib import Path

def tell():
    print(re.search("VmHWM.*", Path("/proc/self/status").read_text()).group(), file=sys.stderr)

atexit.register(tell)
"""


def test_two_gigabytes_of_zeros_are_refused_in_bounded_memory(zeros, glue):
    done = watched("grade", zeros, "--labels", glue, "--split", "dev", before=PEAK)
    assert done.returncode == 2
    assert "CoLA.tsv: the file has 2,146,435,072 bytes, more than 67,108,864; it was not read." in done.stderr
    assert "RTE.tsv: is missing from the zip." in done.stderr
    assert int(done.stderr.split("VmHWM:")[1].split()[0]) < 300_000, "kB"


@pytest.mark.data
@pytest.mark.skipif(
    not os.environ.get("ENSUE_DATA"), reason="ENSUE_DATA does not name the folder of the real data"
)
@pytest.mark.parametrize("suite", ["glue", "superglue"])
def test_gold_answers_of_the_real_data_get_every_point(tmp_path, suite):
    folder = Path(os.environ["ENSUE_DATA"]) / suite
    data = read_labels(folder, suite)
    gold: Predicted = {}
    for name, task in data.items():
        for split in task.judged_splits:
            if task.labelled(split):
                answers = {
                    one.id: one.gold[0] if isinstance(one.gold, tuple) else one.gold
                    for one in task.splits[split]
                }
                gold.setdefault(name, {})[split] = answers  # type: ignore[assignment]
    write_submission(suite, gold, tmp_path / "s.zip", "dev")
    graded = NluBoard(suite, data, "dev").grade(tmp_path / "s.zip")
    assert graded.score == pytest.approx(1.0)
    assert all(row["value"] == pytest.approx(1.0) for row in graded.metrics)


def test_an_id_counts_though_its_label_will_not_do(tmp_path, glue):
    rows = [f"{n}\t{'no' if n == 3 else 'entailment'}" for n in range(SIZE)]
    path = changed(tmp_path / "s.zip", RTE=lines(*rows, "3\tentailment"))
    with pytest.raises(Refused) as caught:
        grade(path, glue, "glue", split="dev")
    assert [str(problem) for problem in caught.value.problems] == [
        "RTE.tsv, line 5: the label 'no' is none of entailment, not_entailment.",
        f"RTE.tsv, line {SIZE + 2}: the index 3 was there before, in line 5.",
    ]


def test_a_board_says_which_tasks_have_a_part_of_their_published_rows(tmp_path, superglue):
    parts = open_board("superglue", superglue, "dev").parts()
    assert parts["BoolQ"] == f"{SIZE} of 3,270 rows"
    assert parts["SuperGLUE"] == "3 of 8 tasks, without CB, ReCoRD, RTE, WiC and WSC"
    assert set(parts) == {"SuperGLUE", "BoolQ", "COPA", "MultiRC", "AX-b"}
