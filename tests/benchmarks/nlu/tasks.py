"""Small tasks of every form, for tests of what GLUE and SuperGLUE share."""

from __future__ import annotations

from ensue.benchmarks.nlu.examples import TaskSpec

BINARY = ("0", "1")
TRUTH = ("false", "true")
ENTAILED = ("entailment", "not_entailment")
THREE = ("entailment", "neutral", "contradiction")


def spec(name: str, suite: str, form: str, labels: tuple[str, ...], file: str, **more: object) -> TaskSpec:
    return TaskSpec(name, suite, form, labels, ("accuracy",), more.pop("sizes", {"test": 4}), file, **more)  # type: ignore[arg-type]


COLA = spec("CoLA", "glue", "single", BINARY, "CoLA.tsv")
STS_B = spec("STS-B", "glue", "score", (), "STS-B.tsv")
MNLI = spec("MNLI", "glue", "pair", THREE, "MNLI-m.tsv", sizes={"test": 4, "test-mismatched": 4})
BOOLQ = spec("BoolQ", "superglue", "pair", TRUTH, "BoolQ.jsonl")
COPA = spec("COPA", "superglue", "choice", BINARY, "COPA.jsonl")
MULTIRC = spec("MultiRC", "superglue", "answers", BINARY, "MultiRC.jsonl")
RECORD = spec("ReCoRD", "superglue", "entity", (), "ReCoRD.jsonl")
AX_B = spec("AX-b", "superglue", "pair", ENTAILED, "AX-b.jsonl", answered_by="RTE", in_score=False)
EVERY = (COLA, STS_B, MNLI, BOOLQ, COPA, MULTIRC, RECORD, AX_B)
