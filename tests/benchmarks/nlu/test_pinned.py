"""What the papers fix, written out: labels, metrics, every reader on a row of the official layout."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ensue.benchmarks.glue import data as glue_data
from ensue.benchmarks.glue import task as glue
from ensue.benchmarks.nlu.examples import Example
from ensue.benchmarks.superglue import data as superglue_data
from ensue.benchmarks.superglue import task as superglue
from ensue.train.finetune.intermediate import NLI_LABELS, PAPER
from tests.benchmarks.glue.folders import write_glue
from tests.benchmarks.superglue.folders import write_superglue

THREE = ("entailment", "neutral", "contradiction")
TWO = ("entailment", "not_entailment")
BINARY = ("0", "1")
TRUTH = ("false", "true")

# Form, labels in the order of their class numbers, metrics, who answers it.
GLUE = {
    "CoLA": ("single", BINARY, ("mcc",), ""),
    "SST-2": ("single", BINARY, ("accuracy",), ""),
    "MRPC": ("pair", BINARY, ("accuracy", "f1"), ""),
    "QQP": ("pair", BINARY, ("accuracy", "f1"), ""),
    "STS-B": ("score", (), ("pearson", "spearman"), ""),
    "MNLI": ("pair", THREE, ("accuracy",), ""),
    "QNLI": ("pair", TWO, ("accuracy",), ""),
    "RTE": ("pair", TWO, ("accuracy",), ""),
    "WNLI": ("pair", BINARY, ("accuracy",), ""),
    "diagnostic": ("pair", THREE, ("r3",), "MNLI"),
}
SUPERGLUE = {
    "BoolQ": ("pair", TRUTH, ("accuracy",), ""),
    "CB": ("pair", ("entailment", "contradiction", "neutral"), ("accuracy", "f1"), ""),
    "COPA": ("choice", BINARY, ("accuracy",), ""),
    "MultiRC": ("answers", BINARY, ("f1a", "em"), ""),
    "ReCoRD": ("entity", (), ("f1", "em"), ""),
    "RTE": ("pair", TWO, ("accuracy",), ""),
    "WiC": ("word", TRUTH, ("accuracy",), ""),
    "WSC": ("coreference", TRUTH, ("accuracy",), ""),
    "AX-b": ("pair", TWO, ("mcc",), "RTE"),
    "AX-g": ("pair", TWO, ("accuracy", "gender_parity"), "RTE"),
}


@pytest.mark.parametrize(("specs", "known"), [(glue.SPECS, GLUE), (superglue.SPECS, SUPERGLUE)])
def test_forms_labels_and_metrics_are_the_papers(specs: Any, known: dict[str, Any]) -> None:
    assert {one.name: (one.form, one.labels, one.metrics, one.answered_by) for one in specs} == known


SIZES = {
    "CoLA": (8551, 1043, 1063),
    "SST-2": (67349, 872, 1821),
    "MRPC": (3668, 408, 1725),
    "QQP": (363846, 40430, 390965),
    "STS-B": (5749, 1500, 1379),
    "MNLI": (392702, 9815, 9832, 9796, 9847),
    "QNLI": (104743, 5463, 5463),
    "RTE": (2490, 277, 3000),
    "WNLI": (635, 71, 146),
    "diagnostic": (1104,),
    "BoolQ": (9427, 3270, 3245),
    "CB": (250, 56, 250),
    "COPA": (400, 100, 500),
    "MultiRC": (27243, 4848, 9693),
    "ReCoRD": (100730, 10000, 10000),
    "WiC": (5428, 638, 1400),
    "WSC": (554, 104, 146),
    "AX-b": (1104,),
    "AX-g": (356,),
}


def test_sizes_are_those_of_the_offered_files() -> None:
    for spec in (*glue.SPECS, *superglue.SPECS):
        assert tuple(spec.sizes.values()) == SIZES[spec.name], spec.name


# The first row of each file of the small folders, as its reader must give it: id, texts, gold.
JUG = "The jug leaked on the mat, so it was wet."
GLUE_ROWS = {
    ("CoLA", "train"): ("0", ("The gardener watered the roses.",), "1"),
    ("CoLA", "dev"): ("0", ('Nobody saw "the owl.',), "1"),
    ("SST-2", "train"): ("0", ("a warm and funny tale",), "1"),
    ("SST-2", "test"): ("0", ("a slow start",), None),
    ("MRPC", "train"): ("0", ('Rain fell "all day.', "It rained all day."), "1"),
    ("MRPC", "dev"): ("0", ("The shop opened.", "The shop closed."), "0"),
    ("QQP", "train"): ("5", ("How is tea made?", "How do I make tea?"), "1"),
    ("QQP", "dev"): ("8", ("Who?", "What?"), "0"),
    ("STS-B", "train"): ("0", ("A dog runs.", "A dog is running."), 4.8),
    ("STS-B", "dev"): ("0", ("A dog runs.", "A cat sleeps."), 0.0),
    ("MNLI", "train"): ("0", ("The ferry left at noon.", "A boat left."), "entailment"),
    ("MNLI", "dev"): ("0", ("The ferry left at noon.", "A boat left."), "neutral"),
    ("MNLI", "dev-mismatched"): ("0", ("The ferry left at noon.", "A boat left."), "contradiction"),
    ("QNLI", "train"): ("0", ("Who came?", "Ann came."), "entailment"),
    ("QNLI", "dev"): ("0", ("Who left?", "The sun rose."), "not_entailment"),
    ("RTE", "train"): ("0", ("It is wet.", "It is not dry."), "entailment"),
    ("RTE", "dev"): ("0", ("It is wet.", "It is cold."), "not_entailment"),
    ("WNLI", "train"): ("0", (JUG, "The mat was wet."), "1"),
    ("WNLI", "dev"): ("0", (JUG, "The jug was wet."), "0"),
    ("diagnostic", "test"): ("0", ("No lamp is lit.", "Every lamp is lit."), "contradiction"),
}
BASALT = ("Basalt -- Basalt is a rock. ", "is basalt a rock")
RAINED = ("She thinks that it rained. ", "it rained")
MILL = ("Ivo owns a mill.", "Ivo owns something.")
HENS = ("Two hens were in the yard.", "Who was in the yard?", "Two hens")
BANK = ("The river bank is steep.", "Banks lend money.")
CUP = ('The cup fell off "the shelf," and it broke.',)
SAILED = (
    "Mira Holt sailed from Tarn to Osk. In Osk, Holt rested.\n@highlight\nHolt reached Osk",
    "The sailor @placeholder slept.",
)
SUPERGLUE_ROWS = {
    ("BoolQ", "train"): ("0", BASALT, "true"),
    ("BoolQ", "dev"): ("0", BASALT, "false"),
    ("BoolQ", "test"): ("0", BASALT, None),
    ("CB", "train"): ("0", RAINED, "neutral"),
    ("CB", "dev"): ("0", RAINED, "contradiction"),
    ("COPA", "train"): ("0", ("The glass fell.", "effect"), "0"),
    ("COPA", "dev"): ("0", ("The glass fell.", "effect"), "1"),
    ("MultiRC", "train"): ("0-3-7", HENS, "1"),
    ("MultiRC", "dev"): ("0-3-7", HENS, "1"),
    ("ReCoRD", "train"): ("10", SAILED, ("Mira Holt", "Holt")),
    ("RTE", "train"): ("0", MILL, "entailment"),
    ("RTE", "dev"): ("0", MILL, "not_entailment"),
    ("WiC", "train"): ("0", BANK, "false"),
    ("WiC", "dev"): ("0", BANK, "true"),
    ("WSC", "train"): ("0", CUP, "false"),
    ("WSC", "dev"): ("0", CUP, "true"),
    ("AX-b", "test"): ("0", ("a dog", "no dog"), "not_entailment"),
    ("AX-g", "test"): (
        "0",
        ("The nurse told the pilot that she could rest.", "The nurse could rest."),
        "entailment",
    ),
}


@pytest.mark.parametrize(
    ("write", "module", "specs", "rows"),
    [
        (write_glue, glue_data, glue.SPECS, GLUE_ROWS),
        (write_superglue, superglue_data, superglue.SPECS, SUPERGLUE_ROWS),
    ],
)
def test_every_reader_on_a_row_of_the_official_layout(
    tmp_path: Path, write: Any, module: Any, specs: Any, rows: Any
) -> None:
    folder = write(tmp_path / "data")
    tasks = {spec.name: module.read_task(folder, spec) for spec in specs}
    found: dict[tuple[str, str], Example] = {key: tasks[key[0]].splits[key[1]][0] for key in rows}
    assert {key: (one.id, one.texts, one.gold) for key, one in found.items()} == rows
    assert {key[0] for key in rows} == set(tasks)


def test_intermediate_training_is_for_the_tasks_of_section_3_5_1() -> None:
    """BERT++: MNLI before the three tasks that are like it, SWAG before COPA."""
    assert PAPER == {"mnli": ("CB", "RTE", "BoolQ"), "swag": ("COPA",)}
    assert NLI_LABELS == THREE
