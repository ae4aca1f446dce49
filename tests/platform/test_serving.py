"""`ensue serve` as a process: it starts, answers, takes commands from the command line, and stops in order."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import httpx

from ensue.platform.database.opening import REVISION
from tests.platform.processes import serving
from tests.support.command import here


def test_serve_answers_without_loading_torch_and_takes_commands_while_it_runs(tmp_path: Path) -> None:
    with serving(tmp_path) as (process, url):
        assert httpx.get(f"{url}/healthz").json() == {
            "status": "ok",
            "database": "sqlite",
            "schema": REVISION,
        }
        command = [
            sys.executable,
            "-m",
            "ensue",
            "user",
            "add",
            "ada@example.org",
            "--role",
            "admin",
            "--json",
        ]
        done = subprocess.run([*command, "--home", str(tmp_path)], capture_output=True, text=True, check=True)
        made = json.loads(done.stdout)
        me = httpx.get(f"{url}/api/v1/me", headers={"Authorization": f"Bearer {made['token']}"}).json()
        assert (me["id"], me["email"], me["role"]) == (made["id"], "ada@example.org", "admin")
        loaded = Path(f"/proc/{process.pid}/maps")
        if loaded.exists():
            assert "torch" not in loaded.read_text()
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
    assert not (tmp_path / "server.json").exists()


def test_commands_without_a_server_and_what_they_refuse(tmp_path: Path) -> None:
    home = ("--home", str(tmp_path / "home"))
    made = json.loads(here("user", "add", "ada@example.org", *home, "--json").out)
    assert sorted(made) == ["id", "token"]
    again = here("user", "add", "ada@example.org", *home)
    assert (again.code, again.err.count("\n")) == (2, 1)
    assert "There is an account with the address ada@example.org already" in again.err
    assert here("user", "add", "bob@example.org", "--role", "emperor", *home).code == 2
    changed = here("user", "change", "ada@example.org", "--role", "admin", *home, "--json")
    assert json.loads(changed.out) == {"id": made["id"], "role": "admin"}
    assert here("user", "change", "nobody@example.org", "--role", "admin", *home).code == 2
    invited = json.loads(here("user", "invite", "organiser", *home, "--json").out)
    assert invited["path"].startswith("/invitations/")

    assert here("serve", "--check", *home).code == 0
    backup = str(tmp_path / "all.tar")
    assert here("backup", backup, *home).code == 0
    new = ("--home", str(tmp_path / "new"))
    assert json.loads(here("restore", backup, *new, "--json").out)["rows"]["users"] == 1
    assert here("restore", backup, *new).code == 2
    (tmp_path / "new" / "key").chmod(0o644)
    checked = here("serve", "--check", *new)
    assert (checked.code, "can be read by others" in checked.err) == (1, True)
    mixed = here("user", "add", "eve@example.org", *new, "--database", "postgresql://127.0.0.1:1/ensue")
    assert mixed.code == 2
    assert "belongs to a sqlite database" in mixed.err


def test_a_port_that_is_taken_and_a_home_that_is_served_are_one_sentence(tmp_path: Path) -> None:
    with serving(tmp_path) as (_, url):
        port = url.rpartition(":")[2]
        second = here("serve", "--home", str(tmp_path), "--port", "0")
        assert (second.code, second.err.count("\n")) == (2, 1)
        assert "is in use by another process" in second.err
        other = here("serve", "--home", str(tmp_path / "other"), "--port", port)
        assert (other.code, other.err.count("\n")) == (2, 1)
        assert f"Port {port} of 127.0.0.1 cannot be used" in other.err
        assert here("serve", "--check", "--home", str(tmp_path)).code == 0
        assert here("backup", str(tmp_path / "all.tar.gz"), "--home", str(tmp_path)).code == 0


def test_importing_the_application_does_not_import_torch_or_numpy() -> None:
    code = (
        "import sys; import ensue.platform.web.server, ensue.platform.service, ensue.platform.commands\n"
        "from ensue.platform.web.app import PARTS\n"
        "import importlib\n"
        "[importlib.import_module(part) for part in PARTS]\n"
        "print(sorted(set(sys.modules) & {'torch', 'transformers', 'numpy', 'scipy', 'matplotlib', 'alembic'}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
