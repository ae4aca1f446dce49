"""How fast the platform is: python bench/platform_load.py DATA [--seconds 40], SQLite, DATA being SuperGLUE's folder.

Measured, each as a user meets it, by HTTP on loopback: from starting `ensue serve` to its first answer, the memory of
the server at rest, a board of 2,000 submissions, mixed reading at 50 requests a second while ten full SuperGLUE zips
are graded, and such a grading alone. The asker runs on the same cores and counts from the moment at which a request
was due, so that waiting for its turn counts, too.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import grading
import httpx

sys.path.insert(0, str(Path(__file__).parents[1]))

from ensue.platform.boards.board import Boards, Wanted
from ensue.platform.service import Settings, opened
from ensue.report.table import Column, Table
from tests.platform import filling

SYSTEMS, RATE, GRADINGS = 2_000, 50, 10
# What visitors ask for, and how often; NUMBER and SYSTEM stand for one of many.
MIX = {
    "/": 15,
    "/boards/full": 25,
    "/boards/full?page=NUMBER": 10,
    "/boards/full?sort=-WSC.accuracy": 8,
    "/boards/full?q=large+NUMBER": 10,
    "/boards/full/diagnostics": 5,
    "/boards/full?date=2026-0NUMBER-15": 3,
    "/submissions/SYSTEM": 15,
    "/boards/full.csv": 1,
    "/static/ensue.css": 8,
}


@contextmanager
def serving(home: Path) -> Iterator[tuple[subprocess.Popen[str], str, float]]:
    """Start a server; yield it, its address and the seconds until it answered."""
    command = [sys.executable, "-m", "ensue", "serve", "--home", str(home), "--port", "0", "--json"]
    begin = time.perf_counter()
    with (home.parent / "serve.log").open("ab") as log:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
    assert process.stdout is not None
    try:
        url = json.loads(process.stdout.readline())["url"]
        assert httpx.get(f"{url}/healthz").status_code == 200
        yield process, url, time.perf_counter() - begin
    finally:
        process.terminate()
        process.wait()


def memory(process: subprocess.Popen[str]) -> float:
    """The megabytes a process has now."""
    return int(Path(f"/proc/{process.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE") / 2**20


def fill(home: Path, labels: Path) -> list[str]:
    """Make a board of 2,000 submissions and one that grades; return some ids and a token."""
    with opened(Settings(home=home)) as platform:
        with platform.database.writing() as connection:
            board = filling.add_board(connection, "full", title="Full")
            filling.add_published(connection, board)
            filling.add_many(connection, board, SYSTEMS)
        wanted = Wanted("graded", suite="superglue", quota_day=100, quota_month=100)
        Boards(platform).create(wanted, labels)
        user = platform.accounts.add("bench@example.org", "participant")
        return [platform.accounts.add_token(user.id)]


def timed(client: httpx.Client, path: str, times: int) -> list[float]:
    """The milliseconds of each of several requests, one after the other."""
    found = []
    for _ in range(times):
        begin = time.perf_counter()
        assert client.get(path).status_code == 200
        found.append(1000 * (time.perf_counter() - begin))
    return found


async def read_mixed(url: str, ids: list[str], seconds: float) -> list[float]:
    """Ask at a fixed rate, whether answers come or not; return milliseconds from when each was due."""
    draw = random.Random(0)
    paths = draw.choices(list(MIX), list(MIX.values()), k=int(RATE * seconds))
    begin = time.perf_counter() + 0.5
    found: list[float] = []
    limits = httpx.Limits(max_connections=400, max_keepalive_connections=100)
    async with httpx.AsyncClient(base_url=url, timeout=120, limits=limits) as client:

        async def ask(number: int, path: str) -> None:
            due = begin + number / RATE
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            path = path.replace("NUMBER", str(draw.randint(1, 9))).replace("SYSTEM", draw.choice(ids))
            try:
                answer = await client.get(path)
            except httpx.TransportError:
                # A connection that the server closed as it was about to be used again; browsers ask once more, too.
                answer = await client.get(path)
            assert answer.status_code == 200, (path, answer.status_code)
            found.append(1000 * (time.perf_counter() - due))

        await asyncio.gather(*(ask(number, path) for number, path in enumerate(paths)))
    return found


def hand_in(url: str, token: str, archive: Path, times: int) -> list[str]:
    """Hand in the same file so many times, one after the other, and return the ids."""
    facts = {
        "system": "S",
        "description": "D",
        "parameters": "1",
        "data": "None",
        "link": "https://example.org",
    }
    ids = []
    for _ in range(times):
        answer = httpx.post(
            f"{url}/api/v1/boards/graded/submissions",
            data=facts,
            files={"file": ("a.zip", archive.read_bytes())},
            headers={"Authorization": f"Bearer {token}"},
            timeout=120,
        )
        assert answer.status_code == 201, answer.text
        ids.append(answer.json()["id"])
    return ids


def states(client: httpx.Client, token: str, ids: list[str]) -> list[str]:
    headers = {"Authorization": f"Bearer {token}"}
    return [client.get(f"/api/v1/submissions/{id}", headers=headers).json()["state"] for id in ids]


def served(folder: Path) -> list[float]:
    """The milliseconds of every page that the server answered, as its log has them."""
    told = (folder / "serve.log").read_text().splitlines()
    lines = (json.loads(line) for line in told if line.startswith("{"))
    pages = (line for line in lines if line["event"] == "request" and line["method"] == "GET")
    return [line["ms"] for line in pages]


def percentile(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def measure(data: Path, folder: Path, seconds: float) -> Table:
    table = Table(
        [Column("what", words=True), Column("measured"), Column("goal")], title="ensue serve, SQLite"
    )
    labels, archive, _ = grading.make(data, folder)
    bare, home = folder / "bare", folder / "home"
    starts = []
    for number in range(4):
        with serving(bare) as (process, url, took):
            starts.append(took)
            if number == 3:
                assert httpx.get(url).status_code == 200
                time.sleep(2)
                table.add("memory at rest, front page shown once", f"{memory(process):.0f} MB", "120 MB")
    table.add("first start (tables and bundled boards are made)", f"{starts[0]:.2f} s", "–")
    table.add("start to first answer, median of 3", f"{statistics.median(starts[1:]):.2f} s", "1.5 s")
    (token,) = fill(home, labels)
    with serving(home) as (process, url, _), httpx.Client(base_url=url, timeout=120) as client:
        first, *times = timed(client, "/boards/full", 41)
        table.add(f"board of {SYSTEMS:,}, first time", f"{first:.0f} ms", "–")
        table.add(f"board of {SYSTEMS:,}, median of 40", f"{statistics.median(times):.0f} ms", "100 ms")
        sorts = timed(client, "/boards/full?sort=-RTE.accuracy&q=large", 20)
        table.add("the same, sorted and searched", f"{statistics.median(sorts):.0f} ms", "100 ms")
        table.add("memory with that board read", f"{memory(process):.0f} MB", "–")
        ids = [row["id"] for row in client.get("/boards/full.json").json()["rows"]]
        cold = asyncio.run(read_mixed(url, ids, seconds))
        table.add(
            f"{RATE} requests a second, nothing kept yet: median", f"{statistics.median(cold):.0f} ms", "–"
        )
        table.add(f"{RATE} requests a second, nothing kept yet: p99", f"{percentile(cold, 0.99):.0f} ms", "–")
        before = len(served(folder))
        with ProcessPoolExecutor(1) as pool:
            # They are handed in, checked and graded while others read; by a process of its own, as by somebody else.
            handing = pool.submit(hand_in, url, token, archive, GRADINGS)
            busy = asyncio.run(read_mixed(url, ids, seconds))
            done = states(client, token, handing.result()).count("graded")
        meanwhile = f"{RATE} a second while {GRADINGS} are handed in and graded ({done} done by the end)"
        table.add(f"{meanwhile}: median", f"{statistics.median(busy):.0f} ms", "–")
        table.add(f"{meanwhile}: p99", f"{percentile(busy, 0.99):.0f} ms", "150 ms")
        inside = served(folder)[before:]
        table.add("… the same as the server's log has it: p99", f"{percentile(inside, 0.99):.0f} ms", "–")
    table.add("a full SuperGLUE zip", grading.grade(labels, archive).partition(";")[0].strip(), "5 s, 300 MB")
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--seconds", type=float, default=40)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        table = measure(asked.data, Path(folder), asked.seconds)
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    table.caption = f"{os.cpu_count()} cores, load over 1, 5 and 15 minutes {load} at the end"
    print(table.to_markdown())


if __name__ == "__main__":
    main()
