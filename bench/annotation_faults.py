"""kill -9 while people annotate: python bench/annotation_faults.py [-n 200] [--database sqlite,postgresql].

Simulated annotators take items, save drafts and final answers by HTTP, each save with a key and sent again until it
is answered, as the page does; leases are short, so that abandoned work returns. The server is killed at a random
moment and started again, `-n` times on each database, for `--minutes` at most. Every `--check` kills and in the end
all is counted: every save that was answered must be in the history and the last final one be the answer, a key sent
again must give the same answer, no slot may be held twice, nobody have an item twice, and no item more answers than
it wants; otherwise exit code 1. What is counted is printed at once, a line of JSON each time.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import httpx
from sqlalchemy import select

sys.path.insert(0, str(Path(__file__).parents[1]))

from bench.platform_faults import databases, serving
from ensue.platform.database.schema import answer_history, answers, assignments, project_items
from ensue.platform.service import Settings, opened
from tests.platform.annotation.working import item, make

ITEMS, LABELS, PEOPLE = 3000, 2, 6
LEASE_SECONDS = 4.0


class Annotator:
    """Somebody who works on, whatever becomes of the server; knows what was answered and what was not."""

    def __init__(self, number: int, key: str, seed: int) -> None:
        self.name, self.key = f"worker-{number}", key
        self.chance = random.Random(f"{seed}/{number}")
        self.pending: tuple[str, str, dict[str, Any]] | None = None  # assignment, key, body
        self.current: str | None = None
        self.seq = 0
        self.acknowledged: dict[tuple[str, str], tuple[dict[str, Any], dict[str, Any]]] = {}
        self.wrong: list[str] = []
        self.count = Counter[str]()
        self.entered = threading.Event()

    def work(self, url: str, over: float) -> None:
        try:
            with httpx.Client(base_url=f"{url}/api/v1", timeout=10, trust_env=False) as client:
                body = {"key": self.key, "external_id": self.name, "session_id": self.name, "consent": True}
                entered = client.post("/projects/rain/enter", json=body)
                if entered.status_code != 201:
                    self.wrong.append(f"entering: {entered.status_code} {entered.text[:200]}")
                    return
                self.entered.set()
                client.headers["x-csrf-token"] = entered.json()["csrf"]
                while time.monotonic() < over:
                    self._step(client)
        except httpx.TransportError:
            self.count["cut off"] += 1

    def _step(self, client: httpx.Client) -> None:
        if self.pending is None and self.acknowledged and self.chance.random() < 0.1:
            self._again(client)
        if self.pending is None:
            if self.current is None:
                self._take(client)
                return
            self.seq += 1
            final = self.chance.random() < 0.4
            body = {
                "values": {"label": self.chance.choice(["yes", "no"]), "why": f"{self.chance.random()}"},
                "final": final,
                "seq": self.seq,
                "active_ms": 10,
                "elapsed_ms": 10,
            }
            self.pending = (self.current, f"{self.name}-{self.chance.random()}", body)
        assignment, key, body = self.pending
        headers = {"Idempotency-Key": key}
        answer = client.put(f"/assignments/{assignment}/answer", json=body, headers=headers)
        self.pending = None
        if answer.status_code == 200:
            self.acknowledged[assignment, key] = (body, answer.json())
            self.count["saved"] += 1
            if answer.json()["final"]:
                self.current = None
                self.count["final"] += 1
        elif answer.status_code == 409:
            self.current = None
            self.count["lease lost"] += 1
        elif answer.status_code == 503:
            self.pending = (assignment, key, body)
        else:
            self.wrong.append(f"saving: {answer.status_code} {answer.text[:200]}")
            self.current = None

    def _take(self, client: httpx.Client) -> None:
        answer = client.post("/projects/rain/assignments")
        if answer.status_code == 201:
            found = answer.json()
            self.current, self.seq = found["id"], (found["answer"] or {"seq": 0})["seq"]
        elif answer.status_code not in {204, 503}:
            self.wrong.append(f"taking: {answer.status_code} {answer.text[:200]}")
        if self.chance.random() < 0.1:
            self.current = None  # the browser is closed; what is held is given again or returns
            self.count["abandoned"] += 1

    def _again(self, client: httpx.Client) -> None:
        (assignment, key), (body, told) = self.chance.choice(list(self.acknowledged.items())[-50:])
        headers = {"Idempotency-Key": key}
        answer = client.put(f"/assignments/{assignment}/answer", json=body, headers=headers)
        self.count["sent again"] += 1
        if answer.status_code != 200 or answer.json() != told:
            self.wrong.append(f"sent again: {answer.status_code} {answer.text[:200]}")


def check(settings: Settings, people: list[Annotator]) -> list[str]:
    """Return what is not as it should be."""
    wrong = [words for one in people for words in one.wrong]
    with opened(settings) as platform, platform.database.reading() as connection:
        history = {
            (row.assignment_id, row.key): row for row in connection.execute(select(answer_history)).all()
        }
        saved = {row.assignment_id: row for row in connection.execute(select(answers)).all()}
        rows = connection.execute(select(assignments)).all()
        wanted = {row.id: row.wanted for row in connection.execute(select(project_items)).all()}
    last: dict[str, tuple[int, dict[str, Any]]] = {}
    for one in people:
        for (assignment, key), (body, told) in one.acknowledged.items():
            row = history.get((assignment, key))
            if row is None or row.given != body["values"] or row.seq != body["seq"]:
                wrong.append(f"lost: {assignment} {key}")
            if body["final"] and told["seq"] == body["seq"]:
                last[assignment] = max(
                    last.get(assignment, (-1, {})), (body["seq"], body), key=lambda p: p[0]
                )
    for assignment, (seq, body) in last.items():
        row = saved.get(assignment)
        if row is None or not row.is_final or (row.seq == seq and row.given != body["values"]):
            wrong.append(f"not the answer: {assignment}")
    held = Counter((row.item_id, row.slot) for row in rows if row.state in {"leased", "answered"})
    wrong += [f"slot held twice: {place}" for place, count in held.items() if count > 1]
    twice = Counter((row.item_id, row.participant_id) for row in rows)
    wrong += [f"item twice: {place}" for place, count in twice.items() if count > 1]
    answered = Counter(row.item_id for row in rows if row.state == "answered")
    wrong += [f"too many answers: {id}" for id, count in answered.items() if count > wanted[id]]
    return wrong


def tell(name: str, kills: int, begun: float, wrong: list[str], people: list[Annotator]) -> bool:
    """Print how it stands after so many kills; return whether something is not as it should be."""
    counts = sum((one.count for one in people), Counter[str]())
    seconds = round(time.monotonic() - begun)
    told = {"database": name, "kills": kills, **counts, "seconds": seconds, "wrong": wrong[:20]}
    print(json.dumps(told), flush=True)
    return bool(wrong)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-n", type=int, default=200, help="how often the server is killed on each database")
    parser.add_argument("--database", default="sqlite,postgresql")
    parser.add_argument(
        "--seconds", type=float, default=1.5, help="the longest a server lives after its start"
    )
    parser.add_argument(
        "--minutes", type=float, default=60.0, help="no further kill of a database after so long"
    )
    parser.add_argument("--check", type=int, default=25, help="count all after so many kills")
    parser.add_argument("--seed", type=int, default=16)
    given = parser.parse_args()
    failed = False
    with databases(given.database.split(",")) as found:
        for name, new_database in found.items():
            with tempfile.TemporaryDirectory(prefix="ensue-annotation-") as folder:
                home = Path(folder) / "home"
                settings = Settings(home=home, database=new_database(home))
                with opened(settings) as platform:
                    items = [item(f"w{number}") for number in range(ITEMS)]
                    project = make(
                        platform, items, labels=LABELS, control_rate=0.0, lease_minutes=LEASE_SECONDS / 60
                    )
                people = [Annotator(number, project.entry_key, given.seed) for number in range(PEOPLE)]
                chance, begun = random.Random(given.seed), time.monotonic()
                kills = 0
                while kills < given.n and time.monotonic() - begun < 60 * given.minutes:
                    with serving(settings, Path(folder) / "log") as (process, url):
                        # The killing comes while they work; whoever is cut off goes on with the next server.
                        lives = chance.uniform(0.05, given.seconds)
                        over = time.monotonic() + lives + 25
                        people[0].entered.clear()
                        threads = [threading.Thread(target=one.work, args=(url, over)) for one in people]
                        for thread in threads:
                            thread.start()
                        people[0].entered.wait(20)
                        time.sleep(lives)
                        process.kill()
                        for thread in threads:
                            thread.join()
                    kills += 1
                    if kills % given.check == 0 and kills < given.n:
                        failed = tell(name, kills, begun, check(settings, people), people) or failed
                failed = tell(name, kills, begun, check(settings, people), people) or failed
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
