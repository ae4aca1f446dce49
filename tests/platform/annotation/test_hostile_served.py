"""Hostile requests to a server that runs as people reach it, on each database: nobody gets at another's work."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx

from ensue.platform.service import Settings, opened
from tests.platform.annotation.working import item, make, said
from tests.platform.processes import serving

SCRIPT = "<script>alert(1)</script><img src=x onerror=alert(2)>"


class Somebody:
    """A browser of somebody's own, by HTTP."""

    def __init__(self, url: str, **entering: Any) -> None:
        self.client = httpx.Client(base_url=f"{url}/api/v1", timeout=60, trust_env=False)
        self.entered = self.client.post("/projects/rain/enter", json={"consent": True, **entering})
        if self.entered.status_code == 201:
            self.client.headers["x-csrf-token"] = self.entered.json()["csrf"]

    def take(self) -> str:
        return str(self.client.post("/projects/rain/assignments").json()["id"])

    def save(self, assignment: str, body: Any, key: str) -> httpx.Response:
        return self.client.put(
            f"/assignments/{assignment}/answer", json=body, headers={"Idempotency-Key": key}
        )


def test_nobody_gets_at_anothers_work_by_http(database_url: str, tmp_path: Path) -> None:
    home = tmp_path / "home"
    settings = Settings(home=home, database=database_url)
    with opened(settings) as platform:
        project = make(platform, [item("w0"), item("w1")], labels=2, control_rate=0.0)
    key = {"key": project.entry_key}
    with serving(home, "--database", database_url) as (_, url):
        ada = Somebody(url, **key, external_id="ada", session_id="a")
        bob = Somebody(url, **key, external_id="bob", session_id="b")
        hers, his = ada.take(), bob.take()

        # A made-up worker's id: with another session, with none, without the key; and a made-up cookie.
        assert Somebody(url, **key, external_id="ada", session_id="x").entered.status_code == 403
        assert Somebody(url, **key, external_id="ada").entered.status_code == 403
        assert Somebody(url, external_id="ada", session_id="a").entered.status_code == 404
        (name,) = [one for one in ada.client.cookies if one.startswith("ensue_participant_")]
        stranger = httpx.Client(base_url=f"{url}/api/v1", trust_env=False, cookies={name: "made-up"})
        assert stranger.get(f"/assignments/{hers}").status_code == 404

        # Others' assignments, read, saved, kept, given back, and by a key that was hers.
        first = ada.save(hers, said("yes"), "k1")
        assert first.status_code == 200
        assert bob.client.get(f"/assignments/{hers}").status_code == 404
        assert bob.save(hers, said("no", seq=9), "k1").status_code == 404
        for what in ("heartbeat", "release"):
            assert bob.client.post(f"/assignments/{hers}/{what}").status_code == 404

        # A key sent again is the same save; with something else it is refused; another person's key is their own.
        assert ada.save(hers, said("yes"), "k1").json() == first.json()
        assert ada.save(hers, said("no"), "k1").status_code == 422
        assert bob.save(his, said("no"), "k1").status_code == 200

        # Script is text, a megabyte is not taken, and neither changes what was said.
        second = ada.take()
        values = {"label": "yes", "why": SCRIPT}
        assert ada.save(second, said(values=values, final=False), "k2").status_code == 200
        for size, status in ((1_000_001, 413), (100_001, 422)):
            body = said(seq=5) | {"values": {"label": "yes", "why": "a" * size}}
            assert ada.save(second, body, f"large {size}").status_code == status
        kept = ada.client.get(f"/assignments/{second}")
        assert kept.json()["answer"]["values"] == values
        assert kept.headers["content-type"] == "application/json"
        assert ada.client.get(f"/assignments/{hers}").json()["answer"]["values"] == {"label": "yes"}
        # Without the token of our pages a cookie changes nothing.
        del ada.client.headers["x-csrf-token"]
        assert ada.save(second, said(seq=6), "k3").status_code == 403
