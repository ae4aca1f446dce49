"""Records what commands print and store, and says whether another tree gives the same numbers.

PYTHONPATH=TREE/src python bench/recording.py record DIR [--only NAME …]   # the commands of bench/recording.txt
python bench/recording.py compare BEFORE AFTER [--only NAME …]             # exit code 1 where a number differs

`--only` takes beginnings of names. Each command runs in DIR/NAME and leaves its argv, exit code, standard output,
standard error and whatever it wrote; what it reads of another command is recorded first where DIR has it not.
Only the command line is used, so modules may be moved and renamed. Numbers, answers and built data must be the same
to the byte; other words are noted. Left out: times, hardware, versions, paths, and the coordinates of pictures.
"""

from __future__ import annotations

import argparse
import html
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterable, Iterator
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any

TABLE = Path(__file__).with_suffix(".txt")

# Keys of JSON that say when, where and with what something ran, not what came out.
UNSTABLE = re.compile(
    r"(.*_)?(seconds|started|finished|created|time|versions?|environment|hardware|device|(peak_)?memory"
    r"|command|output|folder|path(_a|_b)?|cache|per_second|report)$"
)
# What a command keeps for its own use: caches, the state of an optimiser, the page's copy in a folder of its own.
NOT_COMPARED = ("argv.json", "seconds", "journal.jsonl", "corpora", "*.lock", "*.pt")
EXACT = ("items.jsonl", "profiles.jsonl", "scores.jsonl", "built/*", "built/*/*", "built/*/*/*", "*.csv")
PROGRESS = re.compile(r"^.*\b\d+ %.*\b(of|left)\b.*\n?", re.M)
PASSING = re.compile(
    r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?\S*"  # a date with its time
    r"|\d+ (Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]* \d{4}(,? \d\d:\d\d)?"
    r"|[\d.,]+ ?(ms|s|min|h|seconds?(?! \d)|minutes?|hours?|CPU seconds|[KMG]i?B|/s|tokens/s|a second)(?!\w|\.\d)"
    r"|\b(\w*seconds|cpu_mib) [\d.,]+"  # a page's table of what a run took
    r"|(?<![\w.…)])/\w[\w.-]*(/[\w.-]+)+|Linux-\S+|\bensue[: ]\d+\.\d+\.\d+\S*"  # paths, platforms, versions
)
NUMBER = re.compile(r"[-−+]?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?|(?<![\w.])[-−]?\.\d+", re.I)


def read_table() -> dict[str, list[str]]:
    """Read the commands by name."""
    text = "".join(line for line in TABLE.read_text("utf-8").splitlines(True) if not line.startswith("#"))
    lines = re.sub(r"\n +", " ", text).splitlines()
    return {name: words for name, *words in (shlex.split(line) for line in lines if line)}


def choose(place: Path, only: list[str]) -> list[str]:
    """Return the commands whose names begin as asked and the missing ones they read, those that are read first."""
    table = read_table()
    chosen: list[str] = []

    def asked(name: str) -> bool:
        return not only or name.startswith(tuple(only))

    def add(name: str) -> None:
        for needed in {word.split("/")[1] for word in table[name] if word.startswith("../")}:
            if asked(needed) or not (place / needed / "code").exists():
                add(needed)
        if name not in chosen:
            chosen.append(name)

    for name in table:
        if asked(name):
            add(name)
    return chosen


def write_inputs(folder: Path) -> None:
    """Write the small data that commands read: the same in every recording."""
    people, things, places = (
        ("captain", "judge", "miller"),
        ("letter", "map", "lamp", "boat"),
        ("garden", "hill"),
    )
    reasons = ("because the rain had come", "and “nobody,” said Ida, “will look”")
    said = [
        f"The {person} left the {thing} in the {place}, {reason}."
        for place in places
        for person in people
        for thing in things
        for reason in reasons
    ]

    def write(name: str, rows: Iterable[Any]) -> None:
        (folder / name).write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")

    def chapter(work: int, number: int) -> dict[str, Any]:
        body = [f"Day {number} of {work}."]
        for step in range(16):
            at = 7 * work + 5 * number + step * (number + 1)
            body += [said[at % len(said)], f"“Well {step},” said the judge."]
        return {"heading": f"CHAPTER {number + 1}", "paragraphs": body}

    def question(article: int, part: int) -> dict[str, Any]:
        text = " ".join(said[(11 * article + 3 * part + step) % len(said)] for step in (0, 9, 20))
        thing = next(thing for thing in things if thing in text)
        asked = {"id": f"{article}-{part}", "question": f"What is left in the {places[part % 2]}, then?"}
        answers = [{"text": thing, "answer_start": text.index(thing)}]
        return {"context": text, "qas": [{**asked, "answers": answers, "is_impossible": False}]}

    (folder / "pages").mkdir(parents=True, exist_ok=True)
    texts = [" ".join(said[at : at + 4]) for at in (0, 13, 26)]
    write(
        "texts.jsonl", ({"id": f"t{n}", "text": text, "title": f"Text {n}"} for n, text in enumerate(texts))
    )
    novels = [{"id": f"w{n}", "chapters": [chapter(n, c) for c in range(9)]} for n in range(5)]
    write("novels.jsonl", novels[:3])
    write("novels-dev.jsonl", novels[3:])
    documents = [[f"In {n}, as told: {said[(n * 5 + p * 3) % 48]}" for p in range(9)] for n in range(40)]
    write("documents.jsonl", ({"id": f"d{n}", "sentences": found} for n, found in enumerate(documents)))
    squad = [{"title": f"A{n}", "paragraphs": [question(n, part) for part in range(4)]} for n in range(10)]
    write("squad.json", [{"version": "v2.0", "data": squad}])
    schema = {"pronoun": "it", "candidates": ["The kettle", "The lamp"], "answer": "The lamp"}
    text = "The kettle stood on the {}. The cook moved the lamp, because it smoked."
    write("schemas.jsonl", ({**schema, "text": text.format(thing)} for thing in things))
    kinds = ("entailment", "neutral", "contradiction")
    pairs = ((said[n], kind) for n in range(20) for kind in kinds)
    write(
        "inference.jsonl",
        ({"premise": p, "hypothesis": f"It is {kind}.", "label": kind} for p, kind in pairs),
    )
    write(
        "people.jsonl", ({"id": str(n), "labels": [n * vote % 2 for vote in range(1, 6)]} for n in range(12))
    )
    source, summary = "\n".join(texts), "The judge left the map in the garden. Ida left the boat in Rome."
    (folder / "source.txt").write_text(source, "utf-8")
    (folder / "summary.txt").write_text(summary, "utf-8")
    write(
        "pairs.jsonl",
        ({"id": n, "source": source, "summary": text} for n, text in (("a", summary), ("b", ""))),
    )
    for n in range(8):
        parts = (f"## Part {p}\n\n{' '.join(said[n + 4 * p : n + 4 * p + 4])}\n" for p in range(3))
        (folder / "pages" / f"{n}.md").write_text("\n".join((f"# Page {n}\n", *parts)), "utf-8")


def make_home(folder: Path) -> None:
    """Make an ENSUE_HOME with the models that are there and no vectors, which the tree has to compute itself."""
    real = Path(os.environ.get("ENSUE_HOME") or Path.home() / ".cache" / "ensue")
    shutil.rmtree(folder / "vectors", ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)
    for part in ("models", "converted", "probes"):
        if not (folder / part).is_symlink():
            (folder / part).symlink_to(real.resolve() / part)


def record(place: Path, only: list[str]) -> int:
    """Run the commands, each in a folder of its own."""
    place = place.resolve()
    data = os.environ.get("ENSUE_DATA") or sys.exit("recording needs ENSUE_DATA, the folder of the real data")
    write_inputs(place / "inputs")
    make_home(place / "home")
    # Models are named by a path that is the same in every recording: a trained model's configuration holds it.
    environment = {**os.environ, "ENSUE_HOME": "../home", "OMP_NUM_THREADS": "1"}
    environment |= {
        "COLUMNS": "160",
        "NO_COLOR": "1",
        "HF_HUB_OFFLINE": "1",
        "TOKENIZERS_PARALLELISM": "false",
    }
    table, nothing = read_table(), subprocess.DEVNULL
    for name in choose(place, only):
        folder = place / name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        argv = [word.format(data=data, inputs="../inputs") for word in table[name]]
        command = [sys.executable, "-m", "ensue", *argv]
        begun = time.monotonic()
        with (folder / "stdout").open("wb") as out, (folder / "stderr").open("wb") as err:
            code = subprocess.call(
                command, cwd=folder, env=environment, stdout=out, stderr=err, stdin=nothing
            )
        seconds = f"{time.monotonic() - begun:.1f}"
        for state in folder.rglob(
            "checkpoint.safetensors"
        ):  # has seconds, and counts among the model's weights
            state.unlink()
        for file, text in (("argv.json", json.dumps(argv)), ("seconds", seconds), ("code", str(code))):
            (folder / file).write_text(text, "utf-8")
        print(f"{name:24} exit {code} {seconds:>6} s", flush=True)
    return 0


Difference = tuple[
    bool, str
]  # whether a number (or an answer, or built data) differs, not only words; and where


def differ_texts(where: str, before: str, after: str) -> Iterator[Difference]:
    """Compare the numbers of two texts in order, or else their words."""
    # A minus is the same whether it is a hyphen or a true one.
    before, after = (" ".join(text.replace("−", "-").split()) for text in (before, after))
    before, after = (re.sub("…(,? …)+", "…", PASSING.sub("…", text)) for text in (before, after))
    numbers = [NUMBER.findall(text) for text in (before, after)]
    kind = numbers[0] != numbers[1]
    a, b = numbers if kind else (before.split(), after.split())
    if a != b:
        found = SequenceMatcher(None, a, b, autojunk=False).get_opcodes()
        for _, i, j, k, m in [change for change in found if change[0] != "equal"][:3]:
            yield kind, f"{where}: {' '.join(a[i:j])[:80]!r} → {' '.join(b[k:m])[:80]!r}"


def differ_values(where: str, before: Any, after: Any, exact: bool) -> Iterator[Difference]:
    """Compare two values of JSON; where `exact`, words count as numbers do."""
    if isinstance(before, dict) and isinstance(after, dict):
        for key in sorted({*before, *after}):
            if UNSTABLE.match(key) and not exact:
                continue
            if key not in before or key not in after:
                yield True, f"{where}.{key}: {'new' if key in after else 'gone'}"
            else:
                inner = exact or key in ("metrics", "skipped", "tokens")
                yield from differ_values(f"{where}.{key}", before[key], after[key], inner)
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for place, pair in enumerate(zip(before, after, strict=True)):
            yield from differ_values(f"{where}[{place}]", *pair, exact)
    elif isinstance(before, str) and isinstance(after, str) and not exact:
        yield from differ_texts(where, before, after)
    elif repr(before) != repr(after):
        yield True, f"{where}: {str(before)[:80]} → {str(after)[:80]}"


def differ_files(name: str, before: Path, after: Path) -> Iterator[Difference]:
    """Compare two files by what they hold."""
    if before.read_bytes() == after.read_bytes():
        return
    path = Path(name)
    if path.suffix == ".zip":
        archives = [zipfile.ZipFile(file) for file in (before, after)]
        content = [{member: archive.read(member) for member in archive.namelist()} for archive in archives]
        if content[0] != content[1]:
            yield True, f"{name}: other files in it, or other content"
        return
    try:
        a, b = (file.read_text("utf-8") for file in (before, after))
    except UnicodeDecodeError:
        yield True, f"{name}: other bytes"
        return
    parsed = [parse(path, text) for text in (a, b)]
    exact = any(path.match(pattern) for pattern in EXACT) and path.name != "build.json"
    if None not in parsed:
        yield from differ_values(name, *parsed, exact)
    elif exact:
        yield True, f"{name}: other text"
    else:
        show = visible if path.suffix == ".html" else (lambda text: PROGRESS.sub("", text))
        yield from differ_texts(name, show(a), show(b))


def parse(name: Path, text: str) -> Any:
    """Return the content of JSON or JSON lines, or nothing where a file is neither."""
    try:
        return (
            [json.loads(line) for line in text.splitlines()] if name.suffix == ".jsonl" else json.loads(text)
        )
    except ValueError:
        return None


def visible(page: str) -> str:
    """Return what a reader of a page sees, less its pictures' coordinates."""
    page = re.sub(r"<(style|script)\b.*?</\1>", " ", page, flags=re.S)
    page = re.sub(r"<table\b.*?</table>", drop_seconds, page, flags=re.S)
    return html.unescape(re.sub(r"<[^>]*>", " ", page))


def drop_seconds(table: re.Match[str]) -> str:
    """Return a table of a page without its column of seconds."""
    before, *rows = table[0].split("<tr")
    cells = [re.findall(r"<t[hd]\b.*?</t[hd]>", row, re.S) for row in rows]
    dropped = {place for place, cell in enumerate(cells[0] if cells else ()) if ">seconds<" in cell}
    return before + " ".join(cell for row in cells for place, cell in enumerate(row) if place not in dropped)


def differ_folders(before: Path, after: Path) -> Iterator[Difference]:
    """Compare everything two commands left behind."""
    found: list[set[str]] = []
    for folder in (before, after):
        names = [path.relative_to(folder) for path in folder.rglob("*") if path.is_file()]
        left_out = {
            name for name in names for part in name.parts for p in NOT_COMPARED if Path(part).match(p)
        }
        found.append({str(name) for name in names if name not in left_out})
    for name in sorted(found[0] ^ found[1]):
        yield True, f"{name}: {'gone' if name in found[0] else 'new'}"
    for name in sorted(found[0] & found[1]):
        yield from differ_files(name, before / name, after / name)


def compare(before: Path, after: Path, only: list[str]) -> int:
    """Print a line a command and what differs below it; return 1 where a number does or a command is missing."""
    failed = False
    for name in read_table():
        if only and not name.startswith(tuple(only)):
            continue
        missing = [str(place) for place in (before, after) if not (place / name / "code").exists()]
        differences = [] if missing else list(differ_folders(before / name, after / name))
        numbers = any(number for number, _ in differences)
        failed |= numbers or bool(missing)
        verdict = "NUMBERS DIFFER" if numbers else "words differ" if differences else "same"
        print(f"{name:24} {'not recorded in ' + ', '.join(missing) if missing else verdict}")
        for number, where in sorted(differences, key=lambda found: not found[0])[:12]:
            print(f"    {'number' if number else 'words '}  {where}")
    return int(failed)


def main() -> int:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    actions = parser.add_subparsers(dest="action", required=True)
    for action, places in {"record": ("place",), "compare": ("before", "after")}.items():
        below = actions.add_parser(action)
        for given in places:
            below.add_argument(given, type=Path)
        below.add_argument("--only", nargs="+", default=[], metavar="NAME")
    asked = parser.parse_args()
    if asked.action == "record":
        return record(asked.place, asked.only)
    return compare(asked.before, asked.after, asked.only)


if __name__ == "__main__":
    sys.exit(main())
