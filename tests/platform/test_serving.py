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


def test_importing_the_application_does_not_import_torch() -> None:
    code = (
        "import sys; import ensue.platform.web.server, ensue.platform.service, ensue.platform.commands\n"
        "from ensue.platform.web.app import PARTS\n"
        "import importlib\n"
        "[importlib.import_module(part) for part in PARTS]\n"
        "print(sorted(set(sys.modules) & {'torch', 'transformers', 'scipy', 'matplotlib', 'alembic'}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
