"""How long grading a full SuperGLUE zip takes, and how much memory: python bench/grading.py DATA [--train].

DATA is the suite's folder. The rows of its labelled sets, repeated up to the published sizes of the test sets, stand
in for the test labels, which nobody has. With --train training sets as large as published lie beside them.
"""

from __future__ import annotations

import json
import random
import re
import subprocess
import sys
import tempfile
from itertools import cycle, islice
from pathlib import Path
from typing import Any

from ensue.benchmarks.nlu.examples import TEST, TRAIN
from ensue.benchmarks.nlu.submissions.grading import read_labels
from ensue.benchmarks.nlu.submissions.submission import write_submission
from ensue.benchmarks.nlu.suites import specs_of

SUITE = "superglue"
_GRADE = """
import re, sys, time
from pathlib import Path
begin, cpu = time.perf_counter(), time.process_time()
from ensue.benchmarks.grading import open_board
board = open_board("superglue", Path(sys.argv[1]))
opened = time.perf_counter()
assert board.validate(Path(sys.argv[2])) == []
checked = time.perf_counter()
graded = board.grade(Path(sys.argv[2]))
done = time.perf_counter()
peak = re.search(r"VmHWM:\\s*(\\d+)", Path("/proc/self/status").read_text()).group(1)
cpu = time.process_time() - cpu
print(f"open {opened - begin:.2f} s, validate {checked - opened:.2f} s, grade {done - checked:.2f} s,"
      f" all {done - begin:.2f} s ({cpu:.2f} s of CPU time), {int(peak) / 1024:.0f} MB; {len(graded.metrics)} rows,"
      f" {len(graded.diagnostics)} of diagnostics, covers {graded.covers}")
assert not {"torch", "transformers"} & set(sys.modules)
"""


def labelled_rows(home: Path) -> list[dict[str, Any]]:
    """The rows of a task with labels, dev first."""
    names = ("val.jsonl", "train.jsonl", "fewglue_dev32.jsonl", "fewglue_train32.jsonl", f"{home.name}.jsonl")
    paths = [home / name for name in names if (home / name).is_file()]
    return [json.loads(line) for path in paths for line in path.read_text("utf-8").splitlines()]


def sized(name: str, rows: list[dict[str, Any]], size: int) -> list[dict[str, Any]]:
    """Rows repeated, under new ids, until they hold so many examples."""
    found, examples = [], 0
    for number, row in enumerate(cycle(rows)):
        if examples >= size:
            return found
        copy: dict[str, Any] = json.loads(json.dumps(row))
        copy["idx"] = number
        examples += 1
        if name == "MultiRC":
            examples -= 1
            for place, question in enumerate(copy["passage"]["questions"]):
                question["idx"] = 1000 * number + place
                for last, answer in enumerate(question["answers"]):
                    answer["idx"] = 100_000 * number + 100 * place + last
                examples += len(question["answers"])
        if name == "ReCoRD":
            examples += len(copy["qas"]) - 1
            for place, query in enumerate(copy["qas"]):
                query["idx"] = 1000 * number + place
        found.append(copy)
    return found


def write(path: Path, rows: list[dict[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")


def make(data: Path, folder: Path, with_train: bool = False) -> tuple[Path, Path, str]:
    """Write labels as large as published and a zip that answers them; return both, and how many of what there are."""
    labels = folder / SUITE
    for spec in specs_of(SUITE):
        rows = labelled_rows(data / spec.name)
        file = f"{spec.name}.jsonl" if spec.answered_by else "test.jsonl"
        write(labels / spec.name / file, sized(spec.name, rows, spec.sizes[TEST]))
        if with_train and TRAIN in spec.sizes:
            write(labels / spec.name / "train.jsonl", sized(spec.name, rows, spec.sizes[TRAIN]))
    draw = random.Random(0)
    predictions: Any = {}
    for name, task in read_labels(labels, SUITE).items():
        found = {}
        for example in islice(task.splits[TEST], None):
            gold = example.gold[0] if isinstance(example.gold, tuple) else str(example.gold)
            other = draw.choice(task.spec.labels or example.choices)
            found[example.id] = gold if draw.random() < 0.7 else other
        predictions[name] = {TEST: found}
    archive = folder / "submission.zip"
    write_submission(SUITE, predictions, archive)
    counts = ", ".join(f"{name} {len(found[TEST]):,}" for name, found in predictions.items())
    size = sum(path.stat().st_size for path in labels.rglob("*.jsonl")) / 2**20
    return labels, archive, f"labels {size:.0f} MB{' with training sets' if with_train else ''}; {counts}"


def grade(labels: Path, archive: Path) -> str:
    """Grade a zip in a process of its own and return what it took, in words."""
    command = [sys.executable, "-c", _GRADE, labels, archive]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return re.sub(r"\s+", " ", done.stdout) or done.stderr


def main(data: Path, with_train: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        labels, archive, words = make(data, Path(folder), with_train)
        print(words)
        print(grade(labels, archive))


if __name__ == "__main__":
    main(Path(sys.argv[1]), "--train" in sys.argv)
