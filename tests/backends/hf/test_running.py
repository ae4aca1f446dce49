"""What a probe found out is kept: read back by the next process, told apart by all it depends on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ensue.backends.hf import running as verdicts
from ensue.backends.names import load_model
from ensue.scoring import probe
from ensue.scoring.probe import CausalWay
from tests.support import tiny


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ENSUE_HOME", str(tmp_path / "home"))
    return tmp_path / "home" / "probes"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny.save_llama(tmp_path_factory.mktemp("models") / "llama")


@pytest.fixture
def probed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The models that were probed, which still are."""
    names: list[str] = []
    for name in ("find_causal_way", "find_masked_way"):
        real = getattr(probe, name)

        def counting(*args: Any, real: Any = real, name: str = name) -> Any:
            names.append(name)
            return real(*args)

        monkeypatch.setattr(probe, name, counting)
    return names


def test_a_model_is_probed_once(folder: Path, kept: Path, probed: list[str], tmp_path: Path) -> None:
    first = load_model(str(folder)).executor  # type: ignore[attr-defined]
    again = load_model(str(folder)).executor  # type: ignore[attr-defined]
    assert probed == ["find_causal_way"]
    assert len(list(kept.iterdir())) == 1
    assert [(e.network.split, e.share, e.pack) for e in (first, again)] == [(True, True, True)] * 2
    bert = tiny.save_bert(tmp_path / "bert")
    pads = [load_model(str(bert)).executor.pad for _ in range(2)]  # type: ignore[attr-defined]
    assert (pads, probed) == ([True, True], ["find_causal_way", "find_masked_way"])


def test_a_verdict_is_obeyed(folder: Path, kept: Path, probed: list[str]) -> None:
    load_model(str(folder)).executor  # type: ignore[attr-defined]  # noqa: B018
    (path,) = kept.iterdir()
    path.write_text(json.dumps({"split": False, "share": True, "pack": False, "alone": False}))
    executor = load_model(str(folder)).executor  # type: ignore[attr-defined]
    assert (executor.network.split, executor.share, executor.pack) == (False, True, False)
    apart = load_model(str(folder), share_prefixes=False).executor  # type: ignore[attr-defined]
    assert (apart.share, apart.pack) == (False, False)


@pytest.mark.parametrize(
    "words",
    ["", "{", "[]", "null", "\x00\xff", '{"split": true}', '{"split": 1, "share": 1, "pack": 1, "alone": 0}'],
)
def test_a_verdict_that_cannot_be_read_is_as_good_as_none(
    folder: Path, kept: Path, probed: list[str], words: str
) -> None:
    load_model(str(folder)).executor  # type: ignore[attr-defined]  # noqa: B018
    (path,) = kept.iterdir()
    whole = path.read_bytes()
    path.write_bytes(words.encode("latin-1"))
    assert load_model(str(folder)).executor.share  # type: ignore[attr-defined]
    assert len(probed) == 2
    assert path.read_bytes() == whole


def test_other_weights_dtype_versions_or_code_are_probed_anew(
    folder: Path, kept: Path, probed: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def count() -> int:
        return len(list(kept.iterdir()))

    load_model(str(folder)).executor  # type: ignore[attr-defined]  # noqa: B018
    load_model(str(tiny.save_llama(tmp_path / "other", seed=9))).executor  # type: ignore[attr-defined]  # noqa: B018
    assert count() == 2
    load_model(str(folder), dtype="bfloat16").executor  # type: ignore[attr-defined]  # noqa: B018
    assert count() == 3
    with monkeypatch.context() as patch:
        patch.setattr(verdicts, "__version__", "9.9")
        load_model(str(folder)).executor  # type: ignore[attr-defined]  # noqa: B018
    assert count() == 4
    with monkeypatch.context() as patch:
        patch.setattr(verdicts.metadata, "version", lambda name: "9.9")
        load_model(str(folder)).executor  # type: ignore[attr-defined]  # noqa: B018
    assert count() == 5
    with monkeypatch.context() as patch:
        patch.setattr(verdicts, "_code", lambda: "other")
        load_model(str(folder)).executor  # type: ignore[attr-defined]  # noqa: B018
    assert count() == len(probed) == 6


def test_code_that_comes_with_a_model_is_probed_every_time(folder: Path, kept: Path) -> None:
    loaded = load_model(str(folder), trust_remote_code=True)._loaded  # type: ignore[attr-defined]
    asked = []

    def find() -> CausalWay:
        asked.append(1)
        return CausalWay(split=True, share=True, pack=True)

    for _ in range(2):
        verdicts.known_way(loaded, CausalWay, find)
    assert len(asked) == 2
    assert not kept.exists()


def test_a_home_that_cannot_be_written_costs_only_time(
    folder: Path, tmp_path: Path, probed: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("ENSUE_HOME", str(tmp_path / "file"))
    for _ in range(2):
        assert load_model(str(folder)).executor.share  # type: ignore[attr-defined]
    assert len(probed) == 2
