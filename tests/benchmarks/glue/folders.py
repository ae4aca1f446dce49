"""A small GLUE folder in the official layout; all sentences are made up here."""

from __future__ import annotations

from pathlib import Path

_MNLI = (
    "index\tpromptID\tpairID\tgenre\tsentence1_binary_parse\tsentence2_binary_parse"
    "\tsentence1_parse\tsentence2_parse\tsentence1\tsentence2"
)
_STS = "index\tgenre\tfilename\tyear\told_index\tsource1\tsource2\tsentence1\tsentence2"

_QUALITY = "Quality\t#1 ID\t#2 ID\t#1 String\t#2 String"
_QUESTIONS = "id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate"
_PAIR = "index\tsentence1\tsentence2"
_JUG = "The jug leaked on the mat, so it was wet."
_FULL = (
    "Lexical Semantics\tPredicate-Argument Structure\tLogic\tKnowledge\tDomain\tPremise\tHypothesis\tLabel"
)


def _mnli(label: str | None) -> str:
    head = _MNLI + ("\tlabel1\tgold_label" if label else "")
    row = "0\t9\t9e\tletters\t\t\t\t\tThe ferry left at noon.\tA boat left." + (
        f"\t{label}\t{label}" if label else ""
    )
    return f"{head}\n{row}\n"


FILES = {
    "CoLA/train.tsv": "src1\t1\t\tThe gardener watered the roses.\nsrc1\t0\t*\tRoses the watered gardener.\n",
    "CoLA/dev.tsv": 'src2\t1\t\tNobody saw "the owl.\n',
    "CoLA/test.tsv": "index\tsentence\n0\tThe owl slept.\n",
    "SST-2/train.tsv": "sentence\tlabel\na warm and funny tale \t1\ndull from end to end \t0\n",
    "SST-2/dev.tsv": "sentence\tlabel\nnever boring \t1\n",
    "SST-2/test.tsv": "index\tsentence\n0\ta slow start\n",
    "MRPC/train.tsv": f'\ufeff{_QUALITY}\n1\t11\t12\tRain fell "all day.\tIt rained all day.\n',
    "MRPC/dev.tsv": f"\ufeff{_QUALITY}\n0\t13\t14\tThe shop opened.\tThe shop closed.\n",
    "MRPC/test.tsv": "index\t#1 ID\t#2 ID\t#1 String\t#2 String\n0\t15\t16\tOne bus came.\tA bus arrived.\n",
    "QQP/train.tsv": f"{_QUESTIONS}\n5\t1\t2\tHow is tea made?\tHow do I make tea?\t1\n"
    '6\t3\t4\tWhy is\n"\tthe sea salt?\t0\n7\t5\t6\tWhere is it?\t\t0\n',
    "QQP/dev.tsv": f"{_QUESTIONS}\n8\t1\t2\tWho?\tWhat?\t0\n",
    "QQP/test.tsv": "id\tquestion1\tquestion2\n0\tWhen?\tAt what time?\n",
    "STS-B/train.tsv": f"{_STS}\tscore\n0\tg\tf\t2012\t1\tnone\tnone\tA dog runs.\tA dog is running.\t4.800\n",
    "STS-B/dev.tsv": f"{_STS}\tscore\n0\tg\tf\t2012\t1\tnone\tnone\tA dog runs.\tA cat sleeps.\t0\n",
    "STS-B/test.tsv": f"{_STS}\n0\tg\tf\t2012\t1\tnone\tnone\tA dog runs.\tA fox runs.\n",
    "MNLI/train.tsv": _mnli("entailment"),
    "MNLI/dev_matched.tsv": _mnli("neutral"),
    "MNLI/dev_mismatched.tsv": _mnli("contradiction"),
    "MNLI/test_matched.tsv": _mnli(None),
    "MNLI/test_mismatched.tsv": _mnli(None),
    "QNLI/train.tsv": "index\tquestion\tsentence\tlabel\n0\tWho came?\tAnn came.\tentailment\n",
    "QNLI/dev.tsv": "index\tquestion\tsentence\tlabel\n0\tWho left?\tThe sun rose.\tnot_entailment\n",
    "QNLI/test.tsv": "index\tquestion\tsentence\n0\tWho sang?\tA bird sang.\n",
    "RTE/train.tsv": f"{_PAIR}\tlabel\n0\tIt is wet.\tIt is not dry.\tentailment\n",
    "RTE/dev.tsv": f"{_PAIR}\tlabel\n0\tIt is wet.\tIt is cold.\tnot_entailment\n",
    "RTE/test.tsv": f"{_PAIR}\n0\tIt is wet.\tIt rains.\n",
    "WNLI/train.tsv": f"{_PAIR}\tlabel\n0\t{_JUG}\tThe mat was wet.\t1\n",
    "WNLI/dev.tsv": f"{_PAIR}\tlabel\n0\t{_JUG}\tThe jug was wet.\t0\n",
    "WNLI/test.tsv": f"{_PAIR}\n0\tIda met Eve when she came.\tEve came.\n",
    "diagnostic/diagnostic-full.tsv": f"{_FULL}\r\n"
    "Quantifiers\t\tUniversal;Negation\t\tArtificial\tNo lamp is lit.\tEvery lamp is lit.\tcontradiction\r\n"
    "\t\t\tWorld knowledge\tNews\tOslo froze.\tNorway was cold.\tentailment\r\n",
    "diagnostic/diagnostic.tsv": f"{_PAIR}\n0\tNo lamp is lit.\tEvery lamp is lit.\n"
    "1\tOslo froze.\tNorway was cold.\n",
}


def write_glue(folder: Path) -> Path:
    """All tasks, every split with a row or two."""
    for name, content in FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode())
    return folder
