"""A file is there whole, or as it was before."""

import os
from pathlib import Path

import pytest

from ensue.atomic import make_readable, write_atomic
from ensue.errors import EnsueError


def test_a_file_is_written_whole_or_left_as_it_was(tmp_path):
    path = tmp_path / "new" / "file.txt"
    write_atomic(path, ["one\n", "two\n"], make_folder=True)
    assert path.read_text("utf-8") == "one\ntwo\n"

    def breaking():
        yield "half"
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_atomic(path, breaking())
    assert path.read_text("utf-8") == "one\ntwo\n"
    assert [file.name for file in path.parent.iterdir()] == ["file.txt"]


def test_a_place_that_cannot_be_written_is_one_sentence(tmp_path):
    (tmp_path / "file").write_text("", "utf-8")
    with pytest.raises(EnsueError, match="cannot be written"):
        write_atomic(tmp_path / "file" / "inside.txt", ["x"], make_folder=True)
    with pytest.raises(EnsueError, match="cannot be written: No such file"):
        write_atomic(tmp_path / "nowhere" / "file.txt", ["x"])
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.parametrize(("umask", "mode"), [(0o022, 0o644), (0o027, 0o640), (0o077, 0o600)])
def test_weights_are_readable_by_whom_the_umask_lets(tmp_path: Path, umask: int, mode: int) -> None:
    import torch
    from safetensors.torch import save_file

    (tmp_path / "inner").mkdir()
    save_file({"a": torch.zeros(2)}, tmp_path / "inner" / "model.safetensors")
    (tmp_path / "config.json").write_text("{}")
    before = os.umask(umask)
    try:
        make_readable(tmp_path)
    finally:
        os.umask(before)
    found = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.rglob("*") if path.is_file()}
    assert found == {"model.safetensors": mode, "config.json": mode}
