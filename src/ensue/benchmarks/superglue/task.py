"""The eight tasks of SuperGLUE and its two diagnostic sets: forms, labels, metrics, sizes and submission files.

Sizes are counted in examples of the files that the benchmark's site offers, an example being what one answer is
given to: MultiRC's are answer options (of 5,131, 953 and 1,820 questions, which the paper's table 3.2 gives as
5100/953/1800), ReCoRD's are queries. The table's other roundings (WiC 6000, RTE 300 test, CB 57 dev) are not kept.
"""

from __future__ import annotations

from functools import partial

from ensue.benchmarks.nlu.comparing import NluComparing
from ensue.benchmarks.nlu.examples import TEST, TaskSpec, make_spec
from ensue.benchmarks.nlu.task import NluTask
from ensue.benchmarks.superglue.data import hub_examples, read_task

_FALSE_TRUE = ("false", "true")  # in the order of class numbers, 0 and 1
_NO_YES = ("0", "1")
_ENTAILS = ("entailment", "not_entailment")
_ACCURACY = ("accuracy",)


_task = partial(make_spec, "superglue")


def _diagnostic(name: str, metrics: tuple[str, ...], size: int, about: str) -> TaskSpec:
    """Return a set without training data, which RTE's classifier answers."""
    sizes, file = {TEST: size}, f"{name}.jsonl"
    return TaskSpec(
        name, "superglue", "pair", _ENTAILS, metrics, sizes, file, about, answered_by="RTE", in_score=False
    )


SPECS: tuple[TaskSpec, ...] = (
    _task(
        "BoolQ",
        "pair",
        _FALSE_TRUE,
        _ACCURACY,
        (9_427, 3_270, 3_245),
        "is the answer to the question yes, by the passage",
    ),
    _task(
        "CB",
        "pair",
        ("entailment", "contradiction", "neutral"),
        ("accuracy", "f1"),
        (250, 56, 250),
        "is the writer committed to the embedded clause",
    ),
    _task("COPA", "choice", _NO_YES, _ACCURACY, (400, 100, 500), "which alternative is the cause or effect"),
    _task(
        "MultiRC",
        "answers",
        _NO_YES,
        ("f1a", "em"),
        (27_243, 4_848, 9_693),
        "which answers to a question about a passage are right",
    ),
    _task(
        "ReCoRD",
        "entity",
        (),
        ("f1", "em"),
        (100_730, 10_000, 10_000),
        "which entity of the article fills the gap",
    ),
    _task("RTE", "pair", _ENTAILS, _ACCURACY, (2_490, 277, 3_000), "does the premise entail the hypothesis"),
    _task(
        "WiC",
        "word",
        _FALSE_TRUE,
        _ACCURACY,
        (5_428, 638, 1_400),
        "does the word mean the same in two sentences",
    ),
    _task(
        "WSC",
        "coreference",
        _FALSE_TRUE,
        _ACCURACY,
        (554, 104, 146),
        "does the pronoun refer to the noun phrase",
    ),
    _diagnostic("AX-b", ("mcc",), 1_104, "inference by linguistic phenomenon"),
    _diagnostic("AX-g", ("accuracy", "gender_parity"), 356, "inference on texts that differ in gender only"),
)


TASK = NluTask("superglue", SPECS, read_task, hub_examples)
COMPARING = NluComparing(SPECS)
