"""Practice and qualification of SQuALITY's writers and raters: which of two responses is the better one?

What is known to be better comes from a file of the organiser, JSON lines with `text` (a short story), `question`,
`better` and `worse` (two responses) and, where wanted, `why` (what is said afterwards). The paper had no such phase.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ensue.benchmarks.people.aside import set_aside
from ensue.benchmarks.people.form import Field, Form, Panel, options
from ensue.benchmarks.people.kind import WorkItem
from ensue.errors import EnsueError
from ensue.jsonl import read_lines


class Pair(NamedTuple):
    """A question about a story, and two responses of which one is better."""

    number: int
    text: str
    question: str
    better: str
    worse: str
    why: str


def practice_items(settings: Mapping[str, Any], seed: int) -> list[WorkItem]:
    """Return what comes before the work: the file's pairs, the last `qualification` of them without feedback."""
    path, judging = settings["practice"], settings["qualification"]
    pairs = [] if path is None else _read(Path(path).expanduser())
    if judging > len(pairs):
        raise EnsueError(
            f"qualification={judging} wants as many pairs of responses, of which there are {len(pairs)}; name a file"
            " of them as practice, or more in it."
        )
    aside = set_aside(pairs, {"training": len(pairs) - judging, "qualification": judging, "controls": 0})
    return [
        WorkItem(
            _form(pair, seed),
            {"id": f"practice/{pair.number}"},
            phase,
            gold=_gold(pair, seed),
            words=pair.why,
        )
        for phase, pair in aside.taught()
    ]


def _read(path: Path) -> list[Pair]:
    found = []
    for number, row in read_lines(path):
        text, question, better, worse = (row.get(name) for name in ("text", "question", "better", "worse"))
        if not all(isinstance(one, str) and one.strip() for one in (text, question, better, worse)):
            raise EnsueError(f"{path}, line {number} has no text, question, better and worse.")
        why = str(row.get("why") or "")
        found.append(Pair(number, str(text), str(question), str(better), str(worse), why))
    return found


def _gold(pair: Pair, seed: int) -> dict[str, str]:
    return {"better": random.Random(f"{seed}/practice/{pair.number}").choice("ab")}


def _form(pair: Pair, seed: int) -> Form:
    first, second = (
        (pair.better, pair.worse) if _gold(pair, seed)["better"] == "a" else (pair.worse, pair.better)
    )
    panels = (
        Panel("story", "The story", pair.text),
        Panel("a", "Response A", first),
        Panel("b", "Response B", second),
    )
    asked = "Which response is better: correct, complete, drawing on all of the story?"
    choice = Field("better", "choice", asked, options(("a", "Response A"), ("b", "Response B")))
    return Form(panels, (choice,), pair.question)
