"""RST's files: pickles that run nothing, JSON that says the same, and what is said of anything else."""

from __future__ import annotations

import json
import os
import pickle
from collections import OrderedDict
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from ensue.benchmarks.discoeval.rst import RstNode, convert_rst, find, read_nodes
from ensue.errors import EnsueError
from tests.benchmarks.discoeval.folders import nodes, write_pickles


class Malicious:
    """Pickled, it is a call that makes a folder."""

    def __init__(self, proof: Path) -> None:
        self.proof = proof

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.proof),)


def pickled(path: Path, value: Any, protocol: int = 2) -> Path:
    path.write_bytes(pickle.dumps(value, protocol=protocol))
    return path


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_plain_pickles_of_every_protocol_are_read(tmp_path: Path, protocol: int) -> None:
    given = nodes(5, 1)
    path = pickled(tmp_path / "RST_TRAIN.pkl", given, protocol)
    assert read_nodes(path)[1] == [RstNode(label, tuple(a), tuple(b)) for label, a, b in given]


def test_a_pickle_of_python_2_is_read(tmp_path: Path) -> None:
    path = tmp_path / "RST_TEST.pkl"
    # A list of one tuple: byte strings, as Python 2 writes them, with one letter outside ASCII.
    path.write_bytes(b"\x80\x02](U\x08NN-Joint]U\x05caf\xc3\xa9a]U\x01ba\x87e.")
    assert read_nodes(path)[1] == [RstNode("NN-Joint", ("café",), ("b",))]


@pytest.mark.parametrize("protocol", [0, 2, 4])
def test_a_malicious_pickle_is_refused_and_runs_nothing(tmp_path: Path, protocol: int) -> None:
    proof = tmp_path / "proof"
    path = pickled(tmp_path / "RST_TRAIN.pkl", [("NN-Joint", ["a"], [Malicious(proof)])], protocol)
    with pytest.raises(EnsueError, match=r"RST_TRAIN\.pkl holds more than lists and strings \(.*mkdir\)"):
        read_nodes(path)
    assert not proof.exists()
    # The test can fail: the same bytes do run where nothing refuses them.
    pickle.loads(path.read_bytes())
    assert proof.is_dir()


@pytest.mark.parametrize(
    "value", [OrderedDict(a=1), {"a", "b"}, complex(1, 2), Path("a"), b"bytes in Python 3"]
)
def test_other_classes_are_refused(tmp_path: Path, value: Any) -> None:
    with pytest.raises(EnsueError, match="holds more than lists and strings"):
        read_nodes(pickled(tmp_path / "RST_DEV.pkl", [value]))


def test_persistent_objects_are_refused(tmp_path: Path) -> None:
    class Keeper(pickle.Pickler):
        def persistent_id(self, obj: Any) -> Any:
            return "elsewhere" if obj == "kept" else None

    out = BytesIO()
    Keeper(out, protocol=2).dump([("NN-Joint", ["kept"], ["b"])])
    path = tmp_path / "RST_DEV.pkl"
    path.write_bytes(out.getvalue())
    with pytest.raises(EnsueError, match="holds more than lists and strings"):
        read_nodes(path)


@pytest.mark.parametrize(
    "raw", [b"", b"not a pickle", b"\x80\x02](X", b"\x80\x02]q\x00(h\x07e.", b"\xff" * 20]
)
def test_bytes_that_are_no_pickle_are_refused(tmp_path: Path, raw: bytes) -> None:
    path = tmp_path / "RST_DEV.pkl"
    path.write_bytes(raw)
    with pytest.raises(EnsueError, match=r"RST_DEV\.pkl is not a readable pickle"):
        read_nodes(path)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (("NN-Joint", ["a"]), "node 2: a node is a label"),
        ("three", "node 2: a node is a label"),
        ((7, ["a"], ["b"]), "node 2: the label is not a relation"),
        (("NN-Joint", [], ["b"]), "node 2: the left side is not a list of units"),
        (("NN-Joint", ["a"], "b"), "node 2: the right side is not a list of units"),
        (("NN-Joint", ["a", 3], ["b"]), "node 2: a unit of the left side is not text"),
        (("NN-Joint", ["a"], ["b", " "]), "node 2: a unit of the right side is empty"),
    ],
)
def test_what_is_no_node_is_named_by_its_place(tmp_path: Path, value: Any, words: str) -> None:
    path = pickled(tmp_path / "RST_DEV.pkl", [("NN-Joint", ["a"], ["b"]), value])
    with pytest.raises(EnsueError, match=words):
        read_nodes(path)


def test_pickles_become_json_lines_that_are_preferred(tmp_path: Path) -> None:
    write_pickles(tmp_path / "RST", TRAIN=[("NN-Joint", ["“wörtlich”\u2028 so"], ["b"])])
    written = convert_rst(tmp_path / "RST", tmp_path / "json")
    assert [path.name for path in written] == ["RST_TRAIN.jsonl", "RST_DEV.jsonl", "RST_TEST.jsonl"]
    for path in written:
        assert read_nodes(path)[1] == read_nodes(tmp_path / "RST" / f"{path.stem}.pkl")[1]
    assert json.loads(written[0].read_text("utf-8").split("\n")[0]).keys() == {"label", "left", "right"}
    convert_rst(tmp_path / "RST", tmp_path / "RST")
    assert find(tmp_path / "RST", "TRAIN") == tmp_path / "RST" / "RST_TRAIN.jsonl"


def test_a_json_list_is_read_too(tmp_path: Path) -> None:
    path = tmp_path / "RST_DEV.json"
    path.write_text(
        json.dumps([["NN-Joint", ["a"], ["b"]], {"label": "NS-Cause", "left": ["c"], "right": ["d"]}])
    )
    assert read_nodes(path)[1] == [RstNode("NN-Joint", ("a",), ("b",)), RstNode("NS-Cause", ("c",), ("d",))]


def test_bad_json_is_named_by_its_line(tmp_path: Path) -> None:
    path = tmp_path / "RST_DEV.jsonl"
    good = json.dumps({"label": "NN-Joint", "left": ["a"], "right": ["b"]})
    path.write_text(f"{good}\n{good}\n{{broken\n")
    with pytest.raises(EnsueError, match=r"RST_DEV\.jsonl, line 3: not readable JSON"):
        read_nodes(path)
    path.write_text(f'{good}\n{{"label": "NN-Joint"}}\n')
    with pytest.raises(EnsueError, match=r"RST_DEV\.jsonl, line 2: a node is"):
        read_nodes(path)


def test_converting_names_what_is_missing(tmp_path: Path) -> None:
    write_pickles(tmp_path / "RST")
    (tmp_path / "RST/RST_DEV.pkl").unlink()
    with pytest.raises(EnsueError, match=r"has no RST_DEV\.pkl"):
        convert_rst(tmp_path / "RST", tmp_path / "json")
    assert not (tmp_path / "json").exists()
