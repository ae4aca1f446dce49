"""kill -9 during upload, grading, new labels, backup, restore: python bench/platform_faults.py [-n 200].

Users hand in more than their quota, each upload with a key and sent again until it is answered; now and then labels
are replaced, all is graded again, a backup is taken, a process that grades is killed. The server is killed at a
random moment and started again, `-n` times on each database; then commands that back up and restore, half as often.
In the end all is counted: nothing that was accepted may be lost, no job done twice, the quota must be exact, every
backup whole, every restore whole or not there; otherwise exit code 1.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
from sqlalchemy import create_engine, select, text
from sqlalchemy.engine import make_url

sys.path.insert(0, str(Path(__file__).parents[1]))

from ensue.errors import EnsueError
from ensue.platform.backup import check, restore, write_backup
from ensue.platform.boards.board import Boards, Wanted
from ensue.platform.boards.labels import digest_of
from ensue.platform.database.schema import boards, gradings, jobs, metadata, new_id, submissions, uploads
from ensue.platform.refusals import Conflict
from ensue.platform.service import Platform, Settings, opened, perform
from tests.platform.processes import children

SERVICES = Path(__file__).parents[1] / "scripts" / "services"
FACTS = {"system": "S", "description": "D", "parameters": "1", "data": "None", "link": "https://example.org"}
TOML = 'name = "Own"\n[tasks.t]\nlabels = "gold.jsonl"\nmetrics = ["accuracy"]\n'
ITEMS, DAY, TRIES, AT_ONCE = 20, 2, 4, 3
GOLD = {version: ["ab"[(n + version) % 3 % 2] for n in range(ITEMS)] for version in range(2)}


class Account:
    """What was asked of the server and what it answered."""

    def __init__(self, settings: Settings, folder: Path, seed: int, rounds: int) -> None:
        self.settings, self.folder, self.chance = settings, folder, random.Random(seed)
        self.rounds = rounds
        self.tokens: list[str] = []
        self.asked: dict[tuple[int, str], bytes] = {}  # by user and key
        self.answers: dict[tuple[int, str], tuple[int, Any]] = {}
        self.wrong: list[str] = []
        self.kills, self.killed_gradings, self.labels, self.lock = 0, 0, 0, threading.Lock()
        self.backups = folder / "backups"
        self.backups.mkdir()

    def prepare(self, users: int) -> None:
        with opened(self.settings) as platform:
            wanted = Wanted("own", toml=TOML, quota_day=DAY, quota_month=DAY)
            Boards(platform).create(wanted, self._gold(0))
            for number in range(users):
                made = platform.accounts.add(f"user{number}@example.org", "participant")
                self.tokens.append(platform.accounts.add_token(made.id))
        for user in range(users):
            for key in range(TRIES):
                lines = ({"id": f"{n}", "prediction": self.chance.choice("ab")} for n in range(ITEMS))
                content = "".join(json.dumps(line) + "\n" for line in lines).encode()
                self.asked[user, f"{key}"] = content

    def _gold(self, version: int) -> Path:
        folder = self.folder / f"gold{version}"
        folder.mkdir(exist_ok=True)
        rows = ({"id": f"{n}", "label": label} for n, label in enumerate(GOLD[version]))
        (folder / "gold.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        return folder

    def round(self, seconds: float) -> None:
        """Start the server, ask it for all sorts of things, and kill it after a while."""
        with serving(self.settings, self.folder / "log") as (process, url):
            over = time.monotonic() + seconds
            threads = [threading.Thread(target=self._upload, args=(url, over)) for _ in range(AT_ONCE)]
            if self.chance.random() < 0.3:
                threads.append(threading.Thread(target=self._replace))
            if self.chance.random() < 0.3:
                threads.append(
                    threading.Thread(target=self._command, args=("board.regrade", {"name": "own"}))
                )
            for thread in threads:
                thread.start()
            if self.chance.random() < 0.3:
                time.sleep(self.chance.uniform(0, seconds))
                self._kill_grading(process.pid)
            if self.chance.random() < 0.4:
                file = self.backups / f"{self.kills}.tar"
                threads.append(threading.Thread(target=self._command, args=("backup", {"path": str(file)})))
                time.sleep(max(0.0, over - time.monotonic()))
                threads[-1].start()
                over = time.monotonic() + self.chance.uniform(0, 0.3)
            time.sleep(max(0.0, over - time.monotonic()))
            process.kill()
            self.kills += 1
            for thread in threads:
                thread.join()

    def _command(self, name: str, arguments: dict[str, Any]) -> None:
        """Have the server perform a command; it may be killed before it answers."""
        with suppress(EnsueError):
            perform(self.settings, name, arguments)

    def _kill_grading(self, server: int) -> None:
        for child in children(server)[:1]:
            with suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
                self.killed_gradings += 1

    def _upload(self, url: str, over: float) -> None:
        while time.monotonic() < over:
            with self.lock:
                # Some users come with every round, so that there is something to hand in until the last.
                come = -(-len(self.tokens) * (self.kills + 1) // self.rounds)
                left = [one for one in self.asked if one[0] < come and one not in self.answers]
                if not left:
                    return
                user, key = self.chance.choice(left[: 3 * AT_ONCE])
            with suppress(httpx.TransportError):
                self._post(url, user, key)

    def _post(self, url: str, user: int, key: str) -> None:
        answer = httpx.post(
            f"{url}/api/v1/boards/own/submissions",
            data=FACTS,
            files={"file": ("p.jsonl", self.asked[user, key])},
            headers={"Authorization": f"Bearer {self.tokens[user]}", "Idempotency-Key": key},
            timeout=120,
            trust_env=False,
        )
        with self.lock:
            if answer.status_code in {201, 429}:
                found = (answer.status_code, answer.json())
                before = self.answers.setdefault((user, key), found)
                if before[0] == 201 and (found[0] != 201 or found[1]["id"] != before[1]["id"]):
                    self.wrong.append(f"user {user}, key {key}: {before} and then {found}")
            elif answer.status_code != 503:
                self.wrong.append(f"user {user}, key {key}: {answer.status_code} {answer.text[:200]}")

    def _replace(self) -> None:
        self.labels += 1
        with suppress(EnsueError):
            perform(
                self.settings, "board.labels", {"name": "own", "labels": str(self._gold(self.labels % 2))}
            )

    def kill_commands(self, times: int, new_database: Callable[[Path], str]) -> None:
        """Kill `ensue backup` and `ensue restore` as processes of their own; try again and compare."""
        whole = self.folder / "whole.tar"
        with opened(self.settings) as platform:
            write_backup(platform, whole)
            rows = self._rows(platform)
        longest = 3.0
        for number in range(times):
            half = self.backups / f"command{number}.tar"
            asked = ["backup", str(half), "--home", str(self.settings.home)]
            self._kill_command([*asked, "--database", str(self.settings.database)], longest)
            home = self.folder / f"restored{number}"
            given = Settings(home=home, database=new_database(home))
            begun = time.monotonic()
            asked = ["restore", str(whole), "--home", str(home), "--database", str(given.database)]
            if self._kill_command(asked, longest):
                longest = max(0.5, time.monotonic() - begun)
            with suppress(Conflict):  # it was whole when it was killed
                restore(given, whole)
            with opened(given) as again:
                self.wrong += [f"restored: {words}" for words in check(again)]
                self._expect(self._rows(again) == rows, f"restore {number} is not what was backed up")
            shutil.rmtree(home)

    def _kill_command(self, arguments: list[str], longest: float) -> bool:
        """Run a command and kill it at a random moment; return whether it had ended by then."""
        process = subprocess.Popen(
            [sys.executable, "-m", "ensue", *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        with suppress(subprocess.TimeoutExpired):
            process.wait(self.chance.uniform(0.3, longest))
            return True
        process.kill()
        process.wait()
        self.kills += 1
        return False

    def _rows(self, platform: Platform) -> dict[str, list[Any]]:
        with platform.database.reading() as connection:
            return {
                table.name: [
                    tuple(row) for row in connection.execute(select(table).order_by(*table.primary_key))
                ]
                for table in metadata.sorted_tables
            }

    def check_backups(self) -> int:
        """Restore every backup that is there; return how many there are."""
        files = [file for file in self.backups.iterdir() if not file.name.startswith(".")]
        for file in files:
            given = Settings(home=self.folder / f"home-{file.stem}")
            try:
                restore(given, file)
                with opened(given) as again:
                    self.wrong += [f"{file.name}: {words}" for words in check(again)]
            except EnsueError as error:
                self.wrong.append(f"{file.name}: {error}")
            shutil.rmtree(given.home, ignore_errors=True)
        return len(files)

    def finish(self) -> None:
        """Let the server come to rest: everything asked for is answered, the queue is empty."""
        with serving(self.settings, self.folder / "log") as (process, url):
            for user, key in [one for one in self.asked if one not in self.answers]:
                self._post(url, user, key)
            for _ in range(3000):
                # Asked again, what was accepted is the same submission still.
                states = httpx.get(f"{url}/metrics", trust_env=False, timeout=60).text
                busy = [line for line in states.splitlines() if line.startswith("ensue_jobs{")]
                if all(line.endswith(" 0") for line in busy if "queued" in line or "running" in line):
                    break
                time.sleep(0.2)
            for user, key in list(self.answers):
                if self.answers[user, key][0] == 201:
                    self._post(url, user, key)
            process.terminate()
            process.wait(60)

    def count(self) -> dict[str, Any]:
        """Compare what is there with what was asked for."""
        with opened(self.settings) as platform:
            self.wrong += check(platform)
            return self._compare(platform)

    def _compare(self, platform: Platform) -> dict[str, Any]:
        with platform.database.reading() as connection:
            board = connection.execute(select(boards).where(boards.c.name == "own")).one()
            query = select(submissions, uploads.c.digest).join(uploads)
            found = {
                row.id: row for row in connection.execute(query.where(submissions.c.board_id == board.id))
            }
            past: dict[str, list[Any]] = {}
            for row in connection.execute(select(gradings).order_by(gradings.c.number)):
                past.setdefault(row.submission_id, []).append(row)
            work = Counter(connection.execute(select(jobs.c.state)).scalars())
            over = select(jobs.c.subject, jobs.c.id).where(jobs.c.state == "graded")
            done: dict[str, set[str]] = {}
            for subject, job in connection.execute(over):
                done.setdefault(subject, set()).add(job)
        accepted = {answer["id"]: place for place, (code, answer) in self.answers.items() if code == 201}
        self._expect(set(accepted) <= set(found), "an accepted submission is lost")
        self._expect(len(found) == len(accepted), f"{len(found)} submissions for {len(accepted)} accepted")
        self._expect(set(work) <= {"graded", "failed"}, f"jobs are left: {dict(work)}")
        folders = [one.name for one in (platform.home.labels / board.id).iterdir()]
        self._expect(board.labels_digest in folders, "the labels are gone")
        version = 1 if _turned(platform, board) else 0
        gone = 0
        for id, row in found.items():
            self._expect(platform.home.upload(row.digest).exists(), f"the file of {id} is gone")
            mine = past.get(id, [])
            if row.state == "failed":  # begun ten times, killed ten times
                self._expect("begun 10 times" in (row.reason or ""), f"{id} failed: {row.reason}")
                gone += 1
                continue
            versions = [one.labels_version for one in mine]
            self._expect(row.state == "graded", f"{id} is {row.state}")
            self._expect(
                sorted(one.job_id for one in mine) == sorted(done.get(id, ())),
                f"{id}: a job was recorded twice",
            )
            self._expect(versions[-1:] == [board.labels_version], f"{id} stands with old labels {versions}")
            said = [json.loads(line)["prediction"] for line in self.asked[accepted[id]].splitlines()]
            right = sum(one == two for one, two in zip(said, GOLD[version], strict=True)) / ITEMS
            self._expect(abs(mine[-1].score - right) < 1e-9, f"{id} has {mine[-1].score} for {right}")
        per_user = Counter(row.user_id for row in found.values() if row.state == "graded")
        self._expect(max(per_user.values()) <= DAY, "a quota was overrun")
        # Whoever was refused had, at that time, used up what there is.
        self._expect(len(self.tokens) * DAY - sum(per_user.values()) <= gone, "a quota was not given back")
        return {
            "database": platform.database.url.get_backend_name(),
            "kills": self.kills,
            "uploads answered": len(self.answers),
            "accepted": len(accepted),
            "refused by quota": sum(code == 429 for code, _ in self.answers.values()),
            "users": len(self.tokens),
            "gradings": sum(len(past.get(one, [])) for one in found),
            "labels replaced": board.labels_version - 1,
            "gradings killed": self.killed_gradings,
            "failed, begun ten times": gone,
            "wrong": self.wrong,
        }

    def _expect(self, holds: bool, words: str) -> None:
        if not holds:
            self.wrong.append(words)


def _turned(platform: Platform, board: Any) -> bool:
    """Return whether the labels that a board has are those of version 1."""
    folder = platform.home.labels / board.id / board.labels_digest
    assert digest_of(folder) == board.labels_digest
    rows = (folder / "data" / "gold.jsonl").read_text().splitlines()
    return [json.loads(row)["label"] for row in rows] == GOLD[1]


@contextmanager
def serving(settings: Settings, log: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    command = [sys.executable, "-m", "ensue", "serve", "--home", str(settings.home), "--port", "0", "--json"]
    with log.open("ab") as errors:
        process = subprocess.Popen(
            [*command, "--database", str(settings.database)], stdout=subprocess.PIPE, stderr=errors, text=True
        )
    assert process.stdout is not None
    try:
        line = process.stdout.readline()
        if not line:
            raise SystemExit(f"The server did not start:\n{log.read_text()[-2000:]}")
        yield process, json.loads(line)["url"]
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


@contextmanager
def databases(names: list[str]) -> Iterator[dict[str, Callable[[Path], str]]]:
    """Give for each kind of database how a new one is made for a home; PostgreSQL is started for it."""
    folder = Path(tempfile.mkdtemp(prefix="ensue-postgresql-"))
    folder.chmod(0o755)
    found: dict[str, Callable[[Path], str]] = {}
    try:
        if "sqlite" in names:
            found["sqlite"] = lambda home: f"sqlite:///{home / 'database.sqlite3'}"
        if "postgresql" in names:
            address = subprocess.run(
                [SERVICES, "postgresql", folder], check=True, capture_output=True, text=True
            ).stdout
            found["postgresql"] = lambda _: _create(address.strip())
        yield found
    finally:
        subprocess.run([SERVICES, "stop", folder], check=False, capture_output=True)
        shutil.rmtree(folder, ignore_errors=True)


def _create(server: str) -> str:
    """Make a database on a PostgreSQL and return its address."""
    url, name = make_url(server), f"faults-{new_id()}"
    engine = create_engine(url.set(drivername="postgresql+psycopg"), isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(text(f'CREATE DATABASE "{name}"'))
    engine.dispose()
    return url.set(database=name).render_as_string(hide_password=False)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-n", type=int, default=200, help="how often the server is killed on each database")
    parser.add_argument("--database", default="sqlite,postgresql")
    parser.add_argument("--seconds", type=float, default=6.0, help="the longest a server lives")
    parser.add_argument("--seed", type=int, default=15)
    given = parser.parse_args()
    wrong = False
    with databases(given.database.split(",")) as found:
        for name, new_database in found.items():
            with tempfile.TemporaryDirectory(prefix="ensue-faults-") as folder:
                home = Path(folder) / "home"
                settings = Settings(home=home, database=new_database(home))
                account = Account(settings, Path(folder), given.seed, given.n)
                account.prepare(max(3, given.n))
                begun = time.monotonic()
                for number in range(given.n):
                    account.round(account.chance.uniform(0.2, given.seconds))
                    print(
                        f"{name}: {number + 1} kills, {len(account.answers)} answers",
                        end="\r",
                        file=sys.stderr,
                    )
                account.finish()
                told = account.count()
                account.kill_commands(given.n // 4, new_database)
                told |= {"kills of commands": account.kills - given.n, "backups": account.check_backups()}
                told |= {"seconds": round(time.monotonic() - begun)}
                print(json.dumps(told, ensure_ascii=False), flush=True)
                wrong = wrong or bool(told["wrong"])
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
