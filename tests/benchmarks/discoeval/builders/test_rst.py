"""RST trees: parsed, made binary, labelled; checked against trees whose relations are known as they are made."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ensue.benchmarks.discoeval.builders.build import build
from ensue.benchmarks.discoeval.builders.common import BuildOptions
from ensue.benchmarks.discoeval.builders.rst import CLASSES, class_of, read_tree, relations
from ensue.benchmarks.discoeval.rst import RstNode
from ensue.errors import EnsueError

N, S = "Nucleus", "Satellite"


class Writer:
    """Writes trees given as (kind, relation, children or text) in the form of .dis files."""

    def __init__(self) -> None:
        self.units: list[str] = []

    def node(self, kind: str, relation: str, below: object, depth: int = 0) -> str:
        said = f"{'  ' * depth}( {kind} "
        relation = f"(rel2par {relation})" if relation else ""
        if isinstance(below, str):
            self.units.append(below)
            return f"{said}(leaf {len(self.units)}) {relation} (text _!{below}_!) )\n"
        first = len(self.units) + 1
        inside = "".join(self.node(*child, depth + 1) for child in below)  # type: ignore[attr-defined]
        return f"{said}(span {first} {len(self.units)}) {relation}\n{inside}{'  ' * depth})\n"


def written(path: Path, below: object) -> tuple[Path, list[str]]:
    writer = Writer()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(writer.node("Root", "", below), "utf-8")
    return path, writer.units


def found(path: Path, below: object) -> list[RstNode]:
    return list(relations(read_tree(written(path, below)[0])))


def test_the_tree_of_the_papers_first_figure(tmp_path):
    """A nucleus of two joined units and its attribution."""
    inner = [(N, "List", "Prices rose in May"), (N, "List", "and were up from a year ago,")]
    tree = [(N, "span", inner), (S, "attribution", "the agency (of the town) said.<P>")]
    assert found(tmp_path / "a.dis", tree) == [
        RstNode(
            "NS-Attribution",
            ("Prices rose in May", "and were up from a year ago,"),
            ("the agency (of the town) said.",),
        ),
        RstNode("NN-Joint", ("Prices rose in May",), ("and were up from a year ago,",)),
    ]


def test_many_nuclei_branch_to_the_right(tmp_path):
    tree = [(N, "Sequence", word) for word in "abcd"]
    assert found(tmp_path / "a.dis", tree) == [
        ("NN-Temporal", ("a",), ("b", "c", "d")),
        ("NN-Temporal", ("b",), ("c", "d")),
        ("NN-Temporal", ("c",), ("d",)),
    ]


@pytest.mark.parametrize(
    ("tree", "expected"),
    [
        (
            [(S, "background", "a"), (N, "span", "b"), (S, "elaboration-additional-e", "c")],
            [("SN-Background", "a", "bc"), ("NS-Elaboration", "b", "c")],
        ),
        (
            [(N, "span", "a"), (S, "example", "b"), (S, "purpose", "c")],
            [("NS-Enablement", "ab", "c"), ("NS-Elaboration", "a", "b")],
        ),
        (
            [(S, "condition", "a"), (S, "antithesis", "b"), (N, "span", "c")],
            [("SN-Condition", "a", "bc"), ("SN-Contrast", "b", "c")],
        ),
        (
            [(N, "Contrast", "a"), (N, "Contrast", "b"), (S, "reason", "c")],
            [("NN-Contrast", "a", "bc"), ("NS-Explanation", "b", "c")],
        ),
        (
            [(N, "Same-Unit", "a"), (S, "means", "b"), (N, "Same-Unit", "c")],
            [("NN-Same-unit", "a", "bc"), ("SN-Manner-Means", "b", "c")],
        ),
    ],
)
def test_mixed_children_keep_a_nucleus_on_every_node(tmp_path, tree, expected):
    got = [(label, "".join(left), "".join(right)) for label, left, right in found(tmp_path / "a.dis", tree)]
    assert got == expected


def tree_of(generator: random.Random, units: int, kind: str, relation: str) -> tuple[str, str, object]:
    if units == 1:
        return kind, relation, f"unit {generator.randrange(10**6)} ( of {generator.choice('abc')} )"
    parts = min(units, generator.choice([1, 2, 2, 3, 5]))
    cuts = sorted(generator.sample(range(1, units), parts - 1))
    sizes = [end - begin for begin, end in zip([0, *cuts], [*cuts, units], strict=True)]
    if parts == 1:
        return kind, relation, [tree_of(generator, units - 1, N, "span")]
    nuclei = {generator.randrange(parts), *generator.sample(range(parts), generator.randint(0, parts))}
    names = [name for relations in CLASSES.values() for name in relations]
    shared = generator.choice(names) if len(nuclei) > 1 else "span"
    children = [
        tree_of(generator, size, N, shared)
        if place in nuclei
        else tree_of(generator, size, S, generator.choice(names) + generator.choice(["", "-e", "-s", "-n"]))
        for place, size in enumerate(sizes)
    ]
    return kind, relation, children


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 40), st.integers(0, 10**6))
def test_a_binary_tree_has_one_node_less_than_units_and_keeps_their_order(tmp_path_factory, size, seed):
    generator = random.Random(seed)
    below = [tree_of(generator, size, N, "span")]
    path, units = written(tmp_path_factory.mktemp("rst") / "t.dis", below)
    tree = read_tree(path)
    nodes = list(relations(tree))
    assert tree.units == tuple(units)
    assert len(nodes) == len(units) - 1
    spans = {tuple(units)} if len(units) > 1 else set()
    for label, left, right in nodes:
        # Each node covers what its parent said it would: the first in order of what is still to be divided.
        assert left + right in spans
        spans |= {side for side in (left, right) if len(side) > 1}
        sides, _, name = label.partition("-")
        assert sides in ("NS", "SN", "NN")
        assert name in CLASSES


def test_a_deep_tree_is_no_trouble(tmp_path):
    nodes = found(tmp_path / "deep.dis", [(N, "List", f"u{n}") for n in range(3000)])
    assert len(nodes) == 2999
    path = tmp_path / "nested.dis"
    depth = 3000
    opening = "".join(f"( Nucleus (span 1 {n}) (rel2par span)\n" for n in range(depth))
    leaves = "".join(
        f"( Nucleus (leaf {n}) (rel2par List) (text _!{u}_!) )\n" for n, u in ((1, "a"), (2, "b"))
    )
    path.write_text(f"( Root (span 1 2)\n{opening}{leaves}{')' * depth} )\n")
    assert list(relations(read_tree(path))) == [("NN-Joint", ("a",), ("b",))]


def test_marks_of_errors_and_paragraphs_are_no_content(tmp_path):
    path = tmp_path / "a.dis"
    path.write_text(
        '( Root (span 1 2)\n( Nucleus (leaf 1) (rel2par span) (text _!It\'s "so" // here.<P>_!) ) //TT_ERR\n'
        "( Satellite (leaf 2) (rel2par comment) (text _!She said )(._!) ) // TT_ERR\n)\n"
    )
    assert list(relations(read_tree(path))) == [
        ("NS-Evaluation", ('It\'s "so" // here.',), ("She said )(.",))
    ]


def test_there_are_eighteen_classes_and_no_relation_is_in_two():
    assert len(CLASSES) == 18
    names = [name for relations in CLASSES.values() for name in relations]
    assert len(names) == len(set(names))
    for name in names:
        assert class_of(name) == class_of(name.upper()) == class_of(f"{name}-e") == class_of(f"{name}-n-e")
    assert class_of("span") is class_of("") is class_of("e") is None


GOOD = "( Nucleus (leaf 1) (rel2par span) (text _!a_!) )\n"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            f"( Root\n{GOOD}( Satellite (leaf 2) (rel2par gossip) (text _!b_!) )\n)",
            "line 3: 'gossip' is not a relation",
        ),
        (f"( Root\n{GOOD}( Satellite (leaf 2) (text _!b_!) )\n)", "line 3: 'nothing' is not a relation"),
        (
            f"( Root\n{GOOD}( Satellite (leaf 3) (rel2par list) (text _!b_!) )\n)",
            "line 3: unit 3 stands where 2 is due",
        ),
        (f"( Root\n{GOOD}", "line 1: this bracket is never closed"),
        (f"( Root\n{GOOD}) )", "line 3: a bracket is closed that was not opened"),
        ("( Root\n( Nucleus (leaf 1) (rel2par span) (text _!a\n) )", "line 2: this text is never closed"),
        ("( Root\n( Nucleus (leaf 1) (text _!<P>_!) ) )", "line 2: the text of this unit is empty"),
        ("( Root\n( Nucleus (leaf 1) ) )", "line 2: a node has either a text or nodes below it"),
        ("( Root\n( Nucleus (leaf x) (text _!a_!) ) )", "line 2: 'x' is not the number of a unit"),
        (f"( Root\n{GOOD}(colour blue) )", "line 3: 'colour' is not said of a node"),
        (GOOD, r"line 1: a \.dis file holds one tree"),
        ("", r"line 1: a \.dis file holds one tree"),
        (
            GOOD.replace("Nucleus", "Satellite").join(
                ["( Root\n", GOOD.replace("Nucleus", "Satellite").replace("1", "2") + ")"]
            ),
            "line 2: no node beside this one is a nucleus",
        ),
    ],
)
def test_bad_trees_are_named_with_their_line(tmp_path, text, words):
    path = tmp_path / "bad.dis"
    path.write_text(text)
    with pytest.raises(EnsueError, match=words):
        list(relations(read_tree(path)))


def treebank(folder: Path, training: int = 20, testing: int = 4) -> str:
    for place, count in (("TRAINING", training), ("TEST", testing)):
        for number in range(count):
            below = [(N, "List", f"{place} {number} says {word}") for word in ("this", "that", "more")]
            written(folder / "main" / place / f"wsj_{place[1]}{number:03d}.out.dis", below)
    written(folder / "double" / "wsj_9999.dis", [(N, "List", "a"), (N, "List", "b")])
    return str(folder)


def read_nodes(folder: Path, name: str) -> list[dict]:
    return [json.loads(line) for line in (folder / f"RST_{name}.jsonl").read_text("utf-8").splitlines()]


def test_the_official_division_holds_and_part_of_training_is_kept(tmp_path):
    done = build("RST", treebank(tmp_path / "rst"), tmp_path / "out", BuildOptions(valid=5))
    nodes = {name: read_nodes(tmp_path / "out" / "RST", name) for name in ("TRAIN", "DEV", "TEST")}
    assert {name: len(rows) for name, rows in nodes.items()} == {"TRAIN": 30, "DEV": 10, "TEST": 8}
    documents = {name: {" ".join(row["left"][0].split()[:2]) for row in rows} for name, rows in nodes.items()}
    assert all(name.startswith("TEST") for name in documents["TEST"])
    assert len(documents["TRAIN"] | documents["DEV"]) == 20
    assert not documents["TRAIN"] & documents["DEV"]
    assert done.skipped == {"trees in neither TRAINING nor TEST": 1}
    again = build("RST", str(tmp_path / "rst"), tmp_path / "again", BuildOptions(valid=5, seed=3))
    assert again.fingerprint["RST_TEST.jsonl"] == done.fingerprint["RST_TEST.jsonl"]
    assert again.fingerprint["RST_DEV.jsonl"] != done.fingerprint["RST_DEV.jsonl"]


def test_a_list_names_the_validation_documents(tmp_path):
    source = treebank(tmp_path / "rst")
    names = tmp_path / "dev.txt"
    names.write_text("wsj_R003\nwsj_R011.out.dis\n")
    build("RST", source, tmp_path / "out", BuildOptions(valid_list=names))
    rows = read_nodes(tmp_path / "out" / "RST", "DEV")
    assert {row["right"][-1] for row in rows} == {"TRAINING 3 says more", "TRAINING 11 says more"}
    names.write_text("wsj_E001\n")
    with pytest.raises(EnsueError, match="names wsj_E001, which is not a tree for training"):
        build("RST", source, tmp_path / "other", BuildOptions(valid_list=names))


def test_treebanks_that_cannot_be_divided_are_refused(tmp_path):
    source = treebank(tmp_path / "rst", training=3)
    with pytest.raises(EnsueError, match="has 3 trees for training, so 3 cannot be kept"):
        build("RST", source, tmp_path / "out", BuildOptions(valid=3))
    with pytest.raises(EnsueError, match="holds no TRAINING folder"):
        build("RST", str(Path(source) / "main" / "TEST"), tmp_path / "out")
    with pytest.raises(EnsueError, match="is not a folder"):
        build("RST", str(tmp_path / "none"), tmp_path / "out")
