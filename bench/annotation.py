"""200 annotators save every 5 s for five minutes on SQLite: python bench/annotation.py [--people N] [--seconds S].

A server of its own; each annotator takes an item, saves drafts of a growing text every five seconds and a final
answer after some of them. Prints the times of entering, taking a first and a further item, and saving (median, p99,
most), every half minute on standard error and in the end as JSON, with the processor's time that the server and this
program took, which share the cores. All come within the first five seconds, so entering and first items wait for each
other; exits with 1 where p99 of saving or of taking a further item is above 250 ms or a save that was answered is not
found in the history afterwards.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from sqlalchemy import select

sys.path.insert(0, str(Path(__file__).parents[1]))

from bench.platform_faults import serving
from ensue.platform.database.schema import answer_history, assignments
from ensue.platform.service import Settings, opened
from tests.platform.annotation.working import item, make

GOAL_MS, EVERY, TOLD_EVERY = 250.0, 5.0, 30.0
SENTENCE = "The second text begins with a name that only the first introduces, so it cannot be the original. "


class Caller:
    """One person's connection, which is kept, with its cookies; a library would take as long as the server does."""

    def __init__(self, url: str) -> None:
        self.host, self.port = url.removeprefix("http://").rsplit(":", 1)
        self.cookies: dict[str, str] = {}
        self.headers = {"Host": f"{self.host}:{self.port}", "Content-Type": "application/json"}
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
        """Return the status of an answer and what it says."""
        data = b"" if body is None else json.dumps(body).encode()
        sent = {**self.headers, **headers, "Content-Length": str(len(data))}
        sent["Cookie"] = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        head = "".join(f"{name}: {value}\r\n" for name, value in sent.items())
        whole = f"{method} /api/v1{path} HTTP/1.1\r\n{head}\r\n".encode() + data
        try:
            return await self._answered(whole)
        except (ConnectionError, asyncio.IncompleteReadError):
            self._streams = None  # closed while nobody spoke; a browser opens another, too
            return await self._answered(whole)

    async def _answered(self, whole: bytes) -> tuple[int, Any]:
        if self._streams is None:
            self._streams = await asyncio.open_connection(self.host, int(self.port))
        reader, writer = self._streams
        writer.write(whole)
        first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        length = 0
        for line in lines:
            name, _, value = line.partition(": ")
            if name.lower() == "content-length":
                length = int(value)
            elif name.lower() == "set-cookie":
                key, _, given = value.partition(";")[0].partition("=")
                self.cookies[key] = given
        text = await reader.readexactly(length)
        return int(first.split()[1]), json.loads(text) if text else None

    def close(self) -> None:
        if self._streams is not None:
            self._streams[1].close()


class Measured:
    """Seconds of saves and takes, and what was acknowledged: the digest of each save by its key."""

    def __init__(self) -> None:
        self.enters: list[float] = []
        self.first_takes: list[float] = []
        self.takes: list[float] = []
        self.saves: list[float] = []
        self.kept: dict[str, str] = {}
        self.wrong: list[str] = []

    def times(self) -> dict[str, dict[str, float]]:
        """Return how many there were of each, and how long they took in milliseconds."""
        return {name: _times(getattr(self, name)) for name in ("enters", "first_takes", "takes", "saves")}


def _times(seconds: list[float]) -> dict[str, float]:
    found = 1000 * np.array(seconds or [0.0])
    quantiles = {"median_ms": np.median(found), "p99_ms": np.quantile(found, 0.99), "most_ms": found.max()}
    return {"count": len(seconds), **{name: round(float(value), 1) for name, value in quantiles.items()}}


async def annotate(url: str, number: int, key: str, begin: float, until: float, found: Measured) -> None:
    """Be one annotator: enter, then take, save and finish until the time is over."""
    chance = random.Random(number)
    # They come within the first five seconds, not all at once.
    await asyncio.sleep(max(0.0, begin - time.monotonic()) + chance.uniform(0, EVERY))
    caller = Caller(url)
    body = {"key": key, "external_id": f"worker-{number}", "session_id": "s", "consent": True}
    started = time.monotonic()
    status, entered = await caller.ask("POST", "/projects/rain/enter", body)
    found.enters.append(time.monotonic() - started)
    if status != 201:
        found.wrong.append(f"entering: {status} {entered}")
        return
    caller.headers["x-csrf-token"] = entered["csrf"]
    takes = found.first_takes
    while time.monotonic() < until:
        started = time.monotonic()
        status, taken = await caller.ask("POST", "/projects/rain/assignments")
        takes.append(time.monotonic() - started)
        takes = found.takes
        if status != 201:
            found.wrong.append(f"taking: {status} {taken}")
            return
        assignment, saves = taken["id"], chance.randint(3, 8)
        for seq in range(1, saves + 1):
            await asyncio.sleep(EVERY)
            if time.monotonic() >= until:
                caller.close()
                return
            await _save(caller, f"{number}-{assignment}-{seq}", assignment, seq, saves, found)
    caller.close()


async def _save(caller: Caller, key: str, assignment: str, seq: int, last: int, found: Measured) -> None:
    why = SENTENCE * seq * 4
    body: dict[str, Any] = {"values": {"label": "yes", "why": why}, "final": seq == last, "seq": seq}
    body |= {"active_ms": 5000 * seq, "elapsed_ms": 5000 * seq}
    started = time.monotonic()
    status, told = await caller.ask(
        "PUT", f"/assignments/{assignment}/answer", body, **{"Idempotency-Key": key}
    )
    found.saves.append(time.monotonic() - started)
    if status == 200:
        found.kept[key] = why
    else:
        found.wrong.append(f"saving: {status} {told}")


def processor_seconds(pid: int) -> float:
    """Return the processor's time that a process has taken."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


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
        with serving(settings, Path(folder) / "log") as (process, url):
            before, own = processor_seconds(process.pid), time.process_time()
            found = asyncio.run(measure(url, project.entry_key, given.people, given.seconds))
            taken = processor_seconds(process.pid) - before
            own = time.process_time() - own
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
        "processor_s": {"server": round(taken, 1), "annotators": round(own, 1)},
        "server_ms_a_request": round(1000 * taken / max(1, sum(times[name]["count"] for name in times)), 2),
        "saves not found": lost,
        "slots held twice": len(held) - len(set(held)),
        "wrong": found.wrong[:10],
    }
    print(json.dumps(told))
    slow = any(times[name]["p99_ms"] > GOAL_MS for name in ("takes", "saves"))
    sys.exit(1 if slow or lost or found.wrong or len(held) != len(set(held)) else 0)


if __name__ == "__main__":
    main()
