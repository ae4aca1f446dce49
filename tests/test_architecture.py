"""docs/architecture.md is true to the tree, and the tree says nothing twice."""

from __future__ import annotations

import re
from pathlib import Path

import ensue

HOUSE = Path(ensue.__file__).parent
ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "architecture.md").read_text("utf-8")


def test_every_file_and_folder_it_names_is_there() -> None:
    there = {
        path.relative_to(HOUSE).as_posix() for path in HOUSE.rglob("*") if "__pycache__" not in path.parts
    }
    there |= {f"bench/{path.name}" for path in (ROOT / "bench").iterdir()}
    # Names in a benchmark's folder, wherever that is.
    written = re.findall(r"`((?:[\w.]+/)*[\w.]+(?:\.py|\.toml|\.json|/))`", PAGE)
    own = {"board.toml", "config.json", "results.json", "templates/"}
    missing = [
        name
        for name in set(written) - own
        if not any(f"/{path}".endswith(f"/{name.rstrip('/')}") for path in there)
    ]
    assert len(written) > 60
    assert missing == []


def test_every_room_has_a_row() -> None:
    rooms = {path.name for path in HOUSE.iterdir() if path.is_dir() and (path / "__init__.py").exists()}
    rows = set(re.findall(r"^\| `(\w+)/` \|", PAGE, re.MULTILINE))
    assert rows == rooms


def _lines(path: Path) -> list[tuple[int, str]]:
    """The lines of a file that say something: no blanks, comments, imports or lone punctuation."""
    found = [(number, line.strip()) for number, line in enumerate(path.read_text("utf-8").splitlines(), 1)]
    return [
        (number, line)
        for number, line in found
        if re.search(r"\w", line) and not line.startswith(("#", "from ", "import "))
    ]


def test_no_two_places_share_twelve_lines() -> None:
    seen: dict[tuple[str, ...], str] = {}
    shared = []
    for path in sorted(HOUSE.rglob("*.py")):
        # What a migration did is not changed again.
        lines = [] if "migrations" in path.parts else _lines(path)
        for at in range(len(lines) - 11):
            run = tuple(line for _, line in lines[at : at + 12])
            place = f"{path.relative_to(HOUSE)}:{lines[at][0]}"
            if seen.setdefault(run, place) != place:
                shared.append(f"{seen[run]} ~ {place}")
    assert shared == []
