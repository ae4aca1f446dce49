"""200 annotators save every 5 s for five minutes on SQLite: python bench/annotation.py [--people N] [--seconds S].

A server of its own; each annotator takes an item, saves drafts of a growing text every five seconds and a final
answer after some of them. Prints the times of entering, taking and saving (median, p99, most), every half minute on
standard error and in the end as JSON, and exits with 1 where p99 of saving or taking is above 250 ms or a save that
was answered is not found in the history afterwards.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import httpx
import numpy as np
from sqlalchemy import select

sys.path.insert(0, str(Path(__file__).parents[1]))

from bench.platform_faults import serving
from ensue.platform.database.schema import answer_history, assignments
from ensue.platform.service import Settings, opened
from tests.platform.annotation.working import item, make

GOAL_MS, EVERY, TOLD_EVERY = 250.0, 5.0, 30.0
SENTENCE = "The second text begins with a name that only the first introduces, so it cannot be the original. "


class Measured:
    """Seconds of saves and takes, and what was acknowledged: the digest of each save by its key."""

    def __init__(self) -> None:
        self.enters: list[float] = []
        self.takes: list[float] = []
        self.saves: list[float] = []
        self.kept: dict[str, str] = {}
        self.wrong: list[str] = []

    def times(self) -> dict[str, dict[str, float]]:
        """Return how many there were of each, and how long they took in milliseconds."""
        return {name: _times(getattr(self, name)) for name in ("enters", "takes", "saves")}


def _times(seconds: list[float]) -> dict[str, float]:
    found = 1000 * np.array(seconds or [0.0])
    quantiles = {"median_ms": np.median(found), "p99_ms": np.quantile(found, 0.99), "most_ms": found.max()}
    return {"count": len(seconds), **{name: round(float(value), 1) for name, value in quantiles.items()}}


async def annotate(url: str, number: int, key: str, begin: float, until: float, found: Measured) -> None:
    """Be one annotator: enter, then take, save and finish until the time is over."""
    chance = random.Random(number)
    # They come within the first five seconds, not all at once.
    await asyncio.sleep(max(0.0, begin - time.monotonic()) + chance.uniform(0, EVERY))
    async with httpx.AsyncClient(
        base_url=f"{url}/api/v1", timeout=60, trust_env=False, verify=False
    ) as client:
        body = {"key": key, "external_id": f"worker-{number}", "session_id": "s", "consent": True}
        started = time.monotonic()
        entered = await client.post("/projects/rain/enter", json=body)
        found.enters.append(time.monotonic() - started)
        client.headers["x-csrf-token"] = entered.json()["csrf"]
        while time.monotonic() < until:
            started = time.monotonic()
            taken = await client.post("/projects/rain/assignments")
            found.takes.append(time.monotonic() - started)
            if taken.status_code != 201:
                found.wrong.append(f"taking: {taken.status_code} {taken.text[:100]}")
                return
            assignment, saves = taken.json()["id"], chance.randint(3, 8)
            for seq in range(1, saves + 1):
                await asyncio.sleep(EVERY)
                if time.monotonic() >= until:
                    return
                await _save(client, f"{number}-{assignment}-{seq}", assignment, seq, saves, found)


async def _save(
    client: httpx.AsyncClient,
    key: str,
    assignment: str,
    seq: int,
    last: int,
    found: Measured,
) -> None:
    why = SENTENCE * seq * 4
    body: dict[str, Any] = {"values": {"label": "yes", "why": why}, "final": seq == last, "seq": seq}
    body |= {"active_ms": 5000 * seq, "elapsed_ms": 5000 * seq}
    started = time.monotonic()
    answer = await client.put(
        f"/assignments/{assignment}/answer", json=body, headers={"Idempotency-Key": key}
    )
    found.saves.append(time.monotonic() - started)
    if answer.status_code == 200:
        found.kept[key] = why
    else:
        found.wrong.append(f"saving: {answer.status_code} {answer.text[:100]}")


async def measure(url: str, key: str, people: int, seconds: float) -> Measured:
    """Have everybody work for so long."""
    found, begin = Measured(), time.monotonic() + 1
    until = begin + seconds
    telling = asyncio.create_task(_tell(found, begin))
    await asyncio.gather(*(annotate(url, n, key, begin, until, found) for n in range(people)))
    telling.cancel()
    return found


async def _tell(found: Measured, begin: float) -> None:
    """Say every half minute how it goes."""
    while True:
        await asyncio.sleep(TOLD_EVERY)
        passed = round(time.monotonic() - begin)
        print(
            f"{passed} s: {json.dumps(found.times())}, {len(found.wrong)} wrong", file=sys.stderr, flush=True
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--people", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=300.0)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="ensue-annotation-") as folder:
        home = Path(folder) / "home"
        settings = Settings(home=home, database=f"sqlite:///{home / 'database.sqlite3'}")
        with opened(settings) as platform:
            project = make(platform, [item(f"w{n}") for n in range(2000)], labels=5, control_rate=0.0)
        with serving(settings, Path(folder) / "log") as (_, url):
            found = asyncio.run(measure(url, project.entry_key, given.people, given.seconds))
        with opened(settings) as platform, platform.database.reading() as connection:
            rows = connection.execute(select(answer_history.c.key, answer_history.c.given)).all()
            history = {row.key: row.given["why"] for row in rows}
            held = connection.execute(
                select(assignments.c.item_id, assignments.c.slot).where(
                    assignments.c.state.in_(("leased", "answered"))
                )
            ).all()
    lost = sum(history.get(key) != why for key, why in found.kept.items())
    times = found.times()
    told = {
        "people": given.people,
        "seconds": given.seconds,
        **times,
        "saves not found": lost,
        "slots held twice": len(held) - len(set(held)),
        "wrong": found.wrong[:10],
    }
    print(json.dumps(told))
    slow = any(times[name]["p99_ms"] > GOAL_MS for name in ("takes", "saves"))
    sys.exit(1 if slow or lost or found.wrong or len(held) != len(set(held)) else 0)


if __name__ == "__main__":
    main()
