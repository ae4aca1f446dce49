"""The nine tasks of GLUE and its diagnostic set: forms, labels, metrics, published sizes and submission files.

Sizes are those of the files that the benchmark's site offers. Table 2.1 of the paper rounds them, and describes
an older QNLI (108k/5.7k/5.7k; its files are no longer offered). QQP's training set had 363,849 whole rows in the
first release and has 363,846 in the one that took its place; the latter is counted here.
"""

from __future__ import annotations

from functools import partial

from ensue.benchmarks.glue.data import hub_examples, read_task
from ensue.benchmarks.nlu.comparing import NluComparing
from ensue.benchmarks.nlu.examples import (
    DEV,
    DEV_MISMATCHED,
    TEST,
    TEST_MISMATCHED,
    TRAIN,
    TaskSpec,
    make_spec,
)
from ensue.benchmarks.nlu.task import NluTask

_NO_YES = ("0", "1")
_ENTAILS = ("entailment", "not_entailment")
_THREE_WAY = ("entailment", "neutral", "contradiction")
_ACCURACY = ("accuracy",)
_ACCURACY_F1 = ("accuracy", "f1")


_task = partial(make_spec, "glue")


MNLI = TaskSpec(
    "MNLI",
    "glue",
    "pair",
    _THREE_WAY,
    _ACCURACY,
    {TRAIN: 392_702, DEV: 9_815, DEV_MISMATCHED: 9_832, TEST: 9_796, TEST_MISMATCHED: 9_847},
    "MNLI-m.tsv",
    "does the premise entail or contradict the hypothesis, in genres seen in training and in others",
)
DIAGNOSTIC = TaskSpec(
    "diagnostic",
    "glue",
    "pair",
    _THREE_WAY,
    ("r3",),
    {TEST: 1_104},
    "AX.tsv",
    "inference by linguistic phenomenon, answered by MNLI's classifier",
    answered_by="MNLI",
    in_score=False,
)

SPECS: tuple[TaskSpec, ...] = (
    _task("CoLA", "single", _NO_YES, ("mcc",), (8_551, 1_043, 1_063), "is the sentence acceptable English"),
    _task("SST-2", "single", _NO_YES, _ACCURACY, (67_349, 872, 1_821), "does the review like the film"),
    _task(
        "MRPC", "pair", _NO_YES, _ACCURACY_F1, (3_668, 408, 1_725), "do two sentences of news say the same"
    ),
    _task("QQP", "pair", _NO_YES, _ACCURACY_F1, (363_846, 40_430, 390_965), "do two questions ask the same"),
    _task(
        "STS-B",
        "score",
        (),
        ("pearson", "spearman"),
        (5_749, 1_500, 1_379),
        "how similar are two sentences, from 0 to 5",
    ),
    MNLI,
    _task(
        "QNLI", "pair", _ENTAILS, _ACCURACY, (104_743, 5_463, 5_463), "does the sentence answer the question"
    ),
    _task("RTE", "pair", _ENTAILS, _ACCURACY, (2_490, 277, 3_000), "does the premise entail the hypothesis"),
    _task(
        "WNLI",
        "pair",
        _NO_YES,
        _ACCURACY,
        (635, 71, 146),
        "does the text entail itself with a pronoun resolved",
    ),
    DIAGNOSTIC,
)


TASK = NluTask("glue", SPECS, read_task, hub_examples)
COMPARING = NluComparing(SPECS)
