"""RST: the relations of all trees of the treebank in its official division, part of training kept as validation."""

from __future__ import annotations

import json
from pathlib import Path

from ensue.benchmarks.discoeval.builders.common import Made, Progress, Split, files_below, generator
from ensue.benchmarks.discoeval.builders.rst_trees import read_tree, relations
from ensue.errors import EnsueError
from ensue.text.io.rows import read_ids

# Of the 347 documents for training the paper keeps 35 for validation.
_TRAINING, _VALIDATION = 347, 35


def build_trees(
    source: str,
    encoding: str,
    seed: int,
    valid: int | None,
    valid_list: Path | None,
    made: Made,
    progress: Progress | None = None,
) -> None:
    """Lines of JSON, one a node, of the .dis files in the folders TRAINING and TEST somewhere below the source.

    Validation documents are `valid` of those for training, drawn by the seed, or those that a list names.
    """
    training, testing = _division(source, made)
    held_out = _named(valid_list, training) if valid_list else _drawn(source, training, valid, seed)
    done = 0
    for official, files in (("train", training), ("test", testing)):
        for name, path in files.items():
            split: Split = "test" if official == "test" else "valid" if name in held_out else "train"
            tree = read_tree(path, encoding)
            if len(tree.units) < 2:
                made.skipped["documents of a single unit"] += 1
            for relation in relations(tree):
                made.lines[split].add(
                    name, relation.label, json.dumps(relation._asdict(), ensure_ascii=False)
                )
            done += 1
            if progress:
                progress(done)
    for split, lines in made.lines.items():
        if not lines:
            raise EnsueError(f"{source} has no tree with a relation for {split}.")


def _division(source: str, made: Made) -> tuple[dict[str, Path], dict[str, Path]]:
    """The trees for training and for testing by the names of their documents."""
    folder = Path(source).expanduser()
    if not folder.is_dir():
        raise EnsueError(
            f"{source or 'The source of trees'} is no folder: name the one that holds TRAINING and TEST."
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


def _drawn(source: str, training: dict[str, Path], valid: int | None, seed: int) -> set[str]:
    count = valid if valid is not None else min(_VALIDATION, max(1, len(training) * _VALIDATION // _TRAINING))
    if not 1 <= count < len(training):
        raise EnsueError(
            f"{source} has {len(training)} trees for training, so {count} cannot be kept for validation."
        )
    names = sorted(training)
    drawn = generator(seed, "RST", "validation").choice(len(names), count, replace=False)
    return {names[int(place)] for place in drawn}


def _named(valid_list: Path, training: dict[str, Path]) -> set[str]:
    names = {name.partition(".")[0] for name in read_ids(valid_list)}
    unknown = sorted(names - set(training))
    if unknown:
        raise EnsueError(f"{valid_list} names {unknown[0]}, which is no tree for training.")
    return names
