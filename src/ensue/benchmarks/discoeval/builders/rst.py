"""RST: the relations of all trees of the treebank in its official division, part of training kept as validation."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from ensue.benchmarks.discoeval.builders.common import Building, Split, files_below, numbered_lines, one_line
from ensue.benchmarks.discoeval.rst import RstNode
from ensue.errors import EnsueError
from ensue.text.io.rows import read_ids

# The relations of the treebank in the 18 classes they form (Carlson and Marcu, 2001).
CLASSES: dict[str, tuple[str, ...]] = {
    "Attribution": ("attribution", "attribution-negative"),
    "Background": ("background", "circumstance"),
    "Cause": ("cause", "result", "cause-result", "consequence"),
    "Comparison": ("comparison", "preference", "analogy", "proportion"),
    "Condition": ("condition", "hypothetical", "contingency", "otherwise"),
    "Contrast": ("contrast", "concession", "antithesis"),
    "Elaboration": (
        "elaboration-additional",
        "elaboration-general-specific",
        "elaboration-object-attribute",
        "elaboration-part-whole",
        "elaboration-process-step",
        "elaboration-set-member",
        "example",
        "definition",
    ),
    "Enablement": ("purpose", "enablement"),
    "Evaluation": ("evaluation", "interpretation", "conclusion", "comment"),
    "Explanation": ("evidence", "explanation-argumentative", "reason"),
    "Joint": ("list", "disjunction"),
    "Manner-Means": ("manner", "means"),
    "Same-unit": ("same-unit",),
    "Summary": ("summary", "restatement"),
    "Temporal": (
        "temporal-before",
        "temporal-after",
        "temporal-same-time",
        "sequence",
        "inverted-sequence",
    ),
    "Textual-organization": ("textualorganization", "textual-organization"),
    "Topic-Change": ("topic-shift", "topic-drift"),
    "Topic-Comment": (
        "problem-solution",
        "question-answer",
        "statement-response",
        "topic-comment",
        "comment-topic",
        "rhetorical-question",
    ),
}
_CLASS_OF = {relation: name for name, relations in CLASSES.items() for relation in relations}
# An embedded unit; and, before that, whether the relation points at the nucleus or at the satellite.
_MARKS = (("-e",), ("-n", "-s"))
# Of the 347 documents for training the paper keeps 35 for validation.
_TRAINING, _VALIDATION = 347, 35
_TOKEN = re.compile(r"_!(?P<text>.*?)_!|(?P<mark>[()])|//[ \t]*TT_ERR|(?P<word>[^\s()]+)|\s+", re.DOTALL)
_PARAGRAPH = "<P>"
_SPAN = "span"
_NODES = ("Root", "Nucleus", "Satellite")


def build_trees(made: Building) -> None:
    """Make lines of JSON, one a node, of the .dis files in the folders TRAINING and TEST somewhere below the source.

    Validation documents are drawn from those for training by the seed, or those that a list names.
    """
    training, testing = _division(made)
    listed = made.options.valid_list
    held_out = _named(listed, training) if listed else _drawn(training, made)
    done = 0
    for official, files in (("train", training), ("test", testing)):
        for name, path in files.items():
            split: Split = "test" if official == "test" else "valid" if name in held_out else "train"
            tree = read_tree(path, made.options.encoding)
            if len(tree.units) < 2:
                made.skipped["documents of a single unit"] += 1
            for relation in relations(tree):
                made.lines[split].add(
                    name, relation.label, json.dumps(relation._asdict(), ensure_ascii=False)
                )
            done += 1
            made.count(done)
    for split, lines in made.lines.items():
        if not lines:
            raise EnsueError(f"{made.source} has no tree with a relation for {split}.")


def _division(made: Building) -> tuple[dict[str, Path], dict[str, Path]]:
    """Return the trees for training and for testing by the names of their documents."""
    source = made.source
    folder = Path(source).expanduser()
    if not folder.is_dir():
        raise EnsueError(
            f"{source or 'The source of trees'} is not a folder: name the one that holds TRAINING and TEST."
        )
    training: dict[str, Path] = {}
    testing: dict[str, Path] = {}
    for path in files_below(folder, ".dis"):
        parts = {part.upper() for part in path.relative_to(folder).parts[:-1]}
        if {"TRAINING", "TEST"} & parts:
            chosen = training if "TRAINING" in parts else testing
            name = path.name.partition(".")[0]
            if name in training or name in testing:
                raise EnsueError(f"{path} is the second tree of {name}.")
            chosen[name] = path
        else:
            made.skipped["trees in neither TRAINING nor TEST"] += 1
    if not training or not testing:
        raise EnsueError(f"{source} holds no {'TEST' if training else 'TRAINING'} folder with .dis files.")
    return training, testing


def _drawn(training: dict[str, Path], made: Building) -> set[str]:
    count = made.options.valid
    if count is None:
        count = min(_VALIDATION, max(1, len(training) * _VALIDATION // _TRAINING))
    if not 1 <= count < len(training):
        raise EnsueError(
            f"{made.source} has {len(training)} trees for training, so {count} cannot be kept for validation."
        )
    names = sorted(training)
    drawn = made.generator("validation").choice(len(names), count, replace=False)
    return {names[int(place)] for place in drawn}


def _named(valid_list: Path, training: dict[str, Path]) -> set[str]:
    names = {name.partition(".")[0] for name in read_ids(valid_list)}
    unknown = sorted(names - set(training))
    if unknown:
        raise EnsueError(f"{valid_list} names {unknown[0]}, which is not a tree for training.")
    return names


@dataclass
class TreeNode:
    """A node of a tree; `begin` and `end` count the units below it, and a leaf has its own text."""

    kind: str
    line: int
    relation: str = ""
    text: str | None = None
    leaf: int | None = None
    children: list[TreeNode] = field(default_factory=list)
    begin: int = 0
    end: int = 0


class Tree(NamedTuple):
    """A document's tree and its units in order."""

    path: Path
    root: TreeNode
    units: tuple[str, ...]


def read_tree(path: Path, encoding: str = "utf-8") -> Tree:
    """Read the tree in a .dis file."""
    root = _parse(path, "\n".join(line for _, line in numbered_lines(path, encoding)))
    return Tree(path, root, tuple(_number_units(root, path)))


def relations(tree: Tree) -> Iterator[RstNode]:
    """Yield the relation of every node of the tree made binary, a node before those below it, left before right.

    Of more than two children the first is divided from all others, which is right-branching; but where all
    others are satellites of the first the last is divided off, so that every node has a nucleus.
    """
    waiting: list[Sequence[TreeNode]] = [[tree.root]]
    while waiting:
        run = waiting.pop()
        while len(run) == 1:
            run = run[0].children
        if not run:
            continue
        left, right = _divided(run, tree.path)
        yield RstNode(
            _label(left, right, tree.path),
            tree.units[left[0].begin : left[-1].end],
            tree.units[right[0].begin : right[-1].end],
        )
        waiting += [right, left]


def _divided(run: Sequence[TreeNode], path: Path) -> tuple[Sequence[TreeNode], Sequence[TreeNode]]:
    if not _has_nucleus(run):
        raise EnsueError(f"{path}, line {run[0].line}: no node beside this one is a nucleus.")
    return (run[:1], run[1:]) if _has_nucleus(run[1:]) else (run[:-1], run[-1:])


def _has_nucleus(run: Sequence[TreeNode]) -> bool:
    return any(node.kind == "Nucleus" for node in run)


def _label(left: Sequence[TreeNode], right: Sequence[TreeNode], path: Path) -> str:
    """Return which sides are nuclei, and the class of the relation, which the satellite or the nuclei state."""
    sides = "".join("N" if _has_nucleus(run) else "S" for run in (left, right))
    if sides == "NN":
        nuclei = [node for node in (*right, *left) if node.kind == "Nucleus"]
        # A nucleus that also has a satellite here may be said to span it, and another one names the relation.
        holder = next((node for node in nuclei if node.relation.lower() != _SPAN), nuclei[0])
    else:
        holder = (left if sides == "SN" else right)[0]
    name = class_of(holder.relation)
    if name is None:
        raise EnsueError(
            f"{path}, line {holder.line}: {holder.relation or 'nothing'!r} is not a relation of the treebank."
        )
    return f"{sides}-{name}"


class _List(NamedTuple):
    """A list that is open while it is read."""

    name: str
    line: int
    words: list[str]
    nodes: list[TreeNode]
    lists: list[_List]


def _parse(path: Path, text: str) -> TreeNode:
    """Return the one tree that a file's text writes in nested lists."""
    top = _List("", 1, [], [], [])
    open_lists = [top]
    line, named = 1, True
    for token in _tokens(text, path):
        content = token.group()
        if token["mark"] == "(":
            named = False
            open_lists.append(_List("", line, [], [], []))
        elif token["mark"] == ")":
            if len(open_lists) == 1:
                raise EnsueError(f"{path}, line {line}: a bracket is closed that was not opened.")
            _close(open_lists.pop(), open_lists[-1], path)
            named = True
        elif token["word"] and not named:
            open_lists[-1] = open_lists[-1]._replace(name=content)
            named = True
        elif token["word"] or token["text"] is not None:
            open_lists[-1].words.append(content if token["word"] else token["text"])
        line += content.count("\n")
    if len(open_lists) > 1:
        raise EnsueError(f"{path}, line {open_lists[-1].line}: this bracket is never closed.")
    if len(top.nodes) != 1 or top.nodes[0].kind != "Root" or top.words or top.lists:
        raise EnsueError(f"{path}, line 1: a .dis file holds one tree that begins with ( Root.")
    return top.nodes[0]


def _tokens(text: str, path: Path) -> Iterator[re.Match[str]]:
    place = 0
    while place < len(text):
        token = _TOKEN.match(text, place)
        assert token is not None, "every character begins a token"
        if token["word"] and token["word"].startswith("_!"):
            raise EnsueError(f"{path}, line {text.count(chr(10), 0, place) + 1}: this text is never closed.")
        yield token
        place = token.end()


def _close(done: _List, parent: _List, path: Path) -> None:
    """Give a finished list to the one around it, as a node or as something said of that one."""
    if done.name not in _NODES:
        parent.lists.append(done)
        return
    node = TreeNode(done.name, done.line, children=done.nodes)
    for said in done.lists:
        value = " ".join(said.words)
        if said.name == "rel2par":
            node.relation = value
        elif said.name == "text":
            node.text = one_line(value.replace(_PARAGRAPH, " "))
        elif said.name == "leaf":
            if not (value.isascii() and value.isdigit()):
                raise EnsueError(f"{path}, line {said.line}: {value[:40]!r} is not the number of a unit.")
            node.leaf = int(value)
        elif said.name != _SPAN:
            raise EnsueError(f"{path}, line {said.line}: {said.name or 'nothing'!r} is not said of a node.")
    if (node.text is None) == (not node.children):
        raise EnsueError(f"{path}, line {node.line}: a node has either a text or nodes below it.")
    if node.text == "":
        raise EnsueError(f"{path}, line {node.line}: the text of this unit is empty.")
    parent.nodes.append(node)


def _number_units(root: TreeNode, path: Path) -> Iterator[str]:
    """Yield the texts of the leaves, and note at every node which of them lie below it."""
    waiting, count = [(root, False)], 0
    while waiting:
        node, finished = waiting.pop()
        if finished:
            node.end = count
            continue
        node.begin = count
        if node.text is not None:
            count += 1
            if node.leaf is not None and node.leaf != count:
                raise EnsueError(f"{path}, line {node.line}: unit {node.leaf} stands where {count} is due.")
            yield node.text
        waiting.append((node, True))
        waiting += [(child, False) for child in reversed(node.children)]


def class_of(relation: str) -> str | None:
    """Return the class of a relation as the treebank's files name it, None where there is no such relation.

    >>> class_of("elaboration-object-attribute-e"), class_of("Consequence-s"), class_of("span")
    ('Elaboration', 'Cause', None)
    """
    name = relation.lower()
    for marks in _MARKS:
        if name in _CLASS_OF:
            break
        for mark in marks:
            name = name.removesuffix(mark)
    return _CLASS_OF.get(name)
