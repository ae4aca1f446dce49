"""What share of small faults put into the code the tests notice: mutmut, room by room, over a drawn sample.

    make mutation                                     # every room, 250 faults each
    python bench/mutation.py --room stats --sample 0  # one room, all of its faults

mutmut changes one line at a time (a comparison, a constant, an argument left out) inside functions and runs the
tests that pass through it. Constants outside functions it leaves alone: tables, labels and rules are pinned
literally in the tests. What a raised error says is not changed either, only whether it is raised. A fault that
makes the tests run out of time counts as noticed, one that no test passes through as missed. Each room is worked
on in a copy under build/mutation; `mutmut show NAME` in there prints a fault that was missed.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import NamedTuple

TOP = Path(__file__).resolve().parent.parent
WORK = TOP / "build" / "mutation"
JUDGED = "src/ensue/benchmarks"
# They look at a process of their own, which mutmut's additions change.
APART = ("two_gigabytes", "without_spacy", "needs_no_torch")
# mutmut's exit codes of the tests: failed, failed inside pytest; killed for time; passed, not run.
NOTICED, TIMEOUT, MISSED = {1, 3}, {24, 36, 152, 255, -24}, {0, 5, 33}


class Room(NamedTuple):
    """Code to be changed and the tests that should notice."""

    code: tuple[str, ...]
    tests: tuple[str, ...]


def judging(folder: str, files: str, tests: str) -> Room:
    """A benchmark's judging: some files of its folder, and the tests of the folder that are about them."""
    code = tuple(f"{JUDGED}/{folder}/{file}.py" for file in files.split())
    own = (f"tests/benchmarks/{folder}/{test}.py" for test in tests.split())
    return Room(code, (*own, "tests/benchmarks/test_content.py"))


ROOMS = {
    "metrics": Room(("src/ensue/metrics/*",), ("tests/metrics",)),
    "stats": Room(("src/ensue/stats/*",), ("tests/stats",)),
    "scoring": Room(("src/ensue/scoring/*",), ("tests/scoring",)),
    "shuffle": judging("shuffle", "task permute", "test_task test_permute test_documents test_outcome"),
    "chapterbreak": judging(
        "chapterbreak", "ranking task data/words", "test_ranking test_task test_comparing data/test_words"
    ),
    "intruder": judging(
        "intruder", "edits rules judging task", "test_edits test_rules test_judging test_task"
    ),
    "discoeval": judging("discoeval", "judging probe", "test_judging test_probe test_task"),
    "senteval": judging(
        "senteval", "judging answering", "test_judging test_answering test_data test_task test_comparing"
    ),
    "nlu": judging(
        "nlu",
        "judging scores diagnostics submissions/grading submissions/people",
        "test_judging test_scores test_diagnostics test_pinned submissions/test_grading submissions/test_people",
    ),
    "qags": judging(
        "qags",
        "judging measures scoring questions",
        "test_judging test_measures test_scoring test_questions test_pipeline",
    ),
    "summaries": judging("summaries", "metaeval", "test_metaeval"),
    "squality": judging(
        "squality",
        "evaluation human_eval statistics",
        "test_evaluation test_human_eval test_statistics test_task",
    ),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--room", action="append", choices=ROOMS, help="only this room (may be repeated)")
    parser.add_argument("--sample", type=int, default=250, help="faults a room, drawn by --seed; 0 for all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 2)
    options = parser.parse_args()
    print("| room | faults | tried | noticed | of these by time | missed | share noticed |")
    print("|---|---|---|---|---|---|---|")
    totals: Counter[str] = Counter()
    for name in options.room or ROOMS:
        found = work_on(name, options.sample, options.seed, options.workers)
        print_row(name, found)
        totals += found
    print_row("all", totals)


def work_on(name: str, sample: int, seed: int, workers: int) -> Counter[str]:
    """Change the room's code, run its tests, and count what they noticed."""
    room, folder = ROOMS[name], WORK / name
    copy_tree(folder, room)
    # A name that no fault has: mutmut makes the faults, times the tests, and stops.
    mutmut(folder, workers, ["no-such-fault"])
    names = sorted(verdicts(folder))
    if not names:
        sys.exit(f"{name}: mutmut made no faults; see {folder / 'log'}.")
    drawn = names if sample == 0 else random.Random(seed).sample(names, min(sample, len(names)))
    mutmut(folder, workers, drawn)
    codes = {fault: verdicts(folder)[fault] for fault in drawn}
    missed = [fault for fault, code in codes.items() if code in MISSED]
    (folder / "missed").write_text("".join(f"{fault}\n" for fault in missed), "utf-8")
    return Counter(
        faults=len(names),
        tried=sum(code is not None for code in codes.values()),
        noticed=sum(code in NOTICED | TIMEOUT for code in codes.values()),
        timeout=sum(code in TIMEOUT for code in codes.values()),
        missed=len(missed),
    )


def copy_tree(folder: Path, room: Room) -> None:
    """The tracked files, with mutmut told what to change and which tests to run."""
    shutil.rmtree(folder, ignore_errors=True)
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=TOP, check=True, capture_output=True, text=True)
    for path in filter(None, listed.stdout.split("\0")):
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(TOP / path, target)
    settings = {
        "source_paths": ["src"],
        "only_mutate": list(room.code),
        "do_not_mutate_patterns": [r"^\s*raise "],
        "also_copy": ["README.md", "docs", "bench"],
        "pytest_add_cli_args": [
            *("-m", "not slow and not data", "-k", " and ".join(f"not {name}" for name in APART)),
            *("-p", "no:cacheprovider", "-x"),
        ],
        "pytest_add_cli_args_test_selection": [*room.tests, "tests/test_examples.py"],
    }
    lines = [f"{key} = {json.dumps(value)}" for key, value in settings.items()]
    with (folder / "pyproject.toml").open("a", encoding="utf-8") as file:
        file.write("\n".join(["", "[tool.mutmut]", *lines, ""]))


def mutmut(folder: Path, workers: int, names: list[str]) -> None:
    """Run mutmut in the copy; what it prints goes to the copy's log."""
    environment = {key: value for key, value in os.environ.items() if key not in ("ENSUE_DATA", "PYTHONPATH")}
    environment |= {"OMP_NUM_THREADS": "1", "PYTHONHASHSEED": "0"}
    program = [sys.executable, "-m", "mutmut", "run", "--max-children", str(workers), *names]
    with (folder / "log").open("ab") as log:
        subprocess.run(program, cwd=folder, env=environment, stdout=log, stderr=log, check=False)


def verdicts(folder: Path) -> dict[str, int | None]:
    """The exit code of the tests for every fault there is; None where it was not tried."""
    found: dict[str, int | None] = {}
    for path in (folder / "mutants").rglob("*.meta"):
        found |= json.loads(path.read_text("utf-8"))["exit_code_by_key"]
    return found


def print_row(name: str, found: Counter[str]) -> None:
    share = f"{found['noticed'] / found['tried']:.3f}" if found["tried"] else "–"
    columns = (found[key] for key in ("faults", "tried", "noticed", "timeout", "missed"))
    print(f"| {name} | {' | '.join(map(str, columns))} | {share} |", flush=True)


if __name__ == "__main__":
    main()
