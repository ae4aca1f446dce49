"""Discourse trees from .dis files, and the relations of their nodes once every node has two children."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from ensue.benchmarks.discoeval.builders.common import numbered_lines, one_line
from ensue.benchmarks.discoeval.builders.rst_relations import class_of
from ensue.errors import EnsueError

_TOKEN = re.compile(r"_!(?P<text>.*?)_!|(?P<mark>[()])|//[ \t]*TT_ERR|(?P<word>[^\s()]+)|\s+", re.DOTALL)
_PARAGRAPH = "<P>"
_SPAN = "span"
_NODES = ("Root", "Nucleus", "Satellite")


@dataclass
class Node:
    """A node of a tree; `begin` and `end` count the units below it, and a leaf has its own text."""

    kind: str
    line: int
    relation: str = ""
    text: str | None = None
    leaf: int | None = None
    children: list[Node] = field(default_factory=list)
    begin: int = 0
    end: int = 0


class Tree(NamedTuple):
    """A document's tree and its units in order."""

    path: Path
    root: Node
    units: tuple[str, ...]


class Relation(NamedTuple):
    """What holds between two neighbouring runs of units, such as NS-Elaboration."""

    label: str
    left: tuple[str, ...]
    right: tuple[str, ...]


def read_tree(path: Path, encoding: str = "utf-8") -> Tree:
    """The tree in a .dis file."""
    root = _parse(path, "\n".join(line for _, line in numbered_lines(path, encoding)))
    return Tree(path, root, tuple(_number_units(root, path)))


def relations(tree: Tree) -> Iterator[Relation]:
    """The relation of every node of the tree made binary, a node before those below it, left before right.

    Of more than two children the first is divided from all others, which is right-branching; but where all
    others are satellites of the first the last is divided off, so that every node has a nucleus.
    """
    waiting: list[Sequence[Node]] = [[tree.root]]
    while waiting:
        run = waiting.pop()
        while len(run) == 1:
            run = run[0].children
        if not run:
            continue
        left, right = _divided(run, tree.path)
        yield Relation(
            _label(left, right, tree.path),
            tree.units[left[0].begin : left[-1].end],
            tree.units[right[0].begin : right[-1].end],
        )
        waiting += [right, left]


def _divided(run: Sequence[Node], path: Path) -> tuple[Sequence[Node], Sequence[Node]]:
    if not _has_nucleus(run):
        raise EnsueError(f"{path}, line {run[0].line}: no node beside this one is a nucleus.")
    return (run[:1], run[1:]) if _has_nucleus(run[1:]) else (run[:-1], run[-1:])


def _has_nucleus(run: Sequence[Node]) -> bool:
    return any(node.kind == "Nucleus" for node in run)


def _label(left: Sequence[Node], right: Sequence[Node], path: Path) -> str:
    """Which sides are nuclei, and the class of the relation, which stands with the satellite or with the nuclei."""
    sides = "".join("N" if _has_nucleus(run) else "S" for run in (left, right))
    if sides == "SN":
        holders = [left[0]]
    elif sides == "NS":
        holders = [right[0]]
    else:
        nuclei = [node for node in (*right, *left) if node.kind == "Nucleus"]
        # A nucleus that also has a satellite here may be said to span it, and another one names the relation.
        holders = [node for node in nuclei if node.relation.lower() != _SPAN] or nuclei
    name = class_of(holders[0].relation)
    if name is None:
        raise EnsueError(
            f"{path}, line {holders[0].line}: {holders[0].relation or 'nothing'!r} is no relation of the treebank."
        )
    return f"{sides}-{name}"


class _List(NamedTuple):
    """A list that is open while it is read."""

    name: str
    line: int
    words: list[str]
    nodes: list[Node]
    lists: list[_List]


def _parse(path: Path, text: str) -> Node:
    """The one tree that a file's text writes in nested lists."""
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
    node = Node(done.name, done.line, children=done.nodes)
    for said in done.lists:
        value = " ".join(said.words)
        if said.name == "rel2par":
            node.relation = value
        elif said.name == "text":
            node.text = one_line(value.replace(_PARAGRAPH, " "))
        elif said.name == "leaf":
            node.leaf = _number(value, said.line, path)
        elif said.name != _SPAN:
            raise EnsueError(f"{path}, line {said.line}: {said.name or 'nothing'!r} is not said of a node.")
    if (node.text is None) == (not node.children):
        raise EnsueError(f"{path}, line {node.line}: a node has either a text or nodes below it.")
    if node.text == "":
        raise EnsueError(f"{path}, line {node.line}: the text of this unit is empty.")
    parent.nodes.append(node)


def _number(value: str, line: int, path: Path) -> int:
    if not (value.isascii() and value.isdigit()):
        raise EnsueError(f"{path}, line {line}: {value[:40]!r} is no number of a unit.")
    return int(value)


def _number_units(root: Node, path: Path) -> Iterator[str]:
    """The texts of the leaves, with every node told which of them lie below it."""
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
