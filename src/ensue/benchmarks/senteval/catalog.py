"""The tasks of SentEval by name: their files, how each is evaluated, and the groups the paper averages."""

from __future__ import annotations

from typing import Literal, NamedTuple

from ensue.benchmarks.probing.choices import select_tasks

# How a task is evaluated: cosine of two vectors; expected score of a softmax; a classifier on given splits;
# a classifier whose decay is chosen by folds of the training part; nested folds over everything.
Method = Literal["cosine", "relatedness", "split", "folds", "nested"]
Group = Literal["USS", "SSS", "SC", "Probing"]


class SentEvalSpec(NamedTuple):
    """One task: `files` are relative to the data folder, `metric` is the number that goes into averages."""

    name: str
    group: Group
    method: Method
    metric: str
    files: tuple[str, ...]
    # Names of the sets of an STS year.
    sets: tuple[str, ...] = ()


STS_SETS = {
    "STS12": ("MSRpar", "MSRvid", "SMTeuroparl", "surprise.OnWN", "surprise.SMTnews"),
    # The SMT set of 2013 is not distributed with SentEval for reasons of licence; its gold file lies there alone.
    "STS13": ("FNWN", "headlines", "OnWN"),
    "STS14": ("deft-forum", "deft-news", "headlines", "images", "OnWN", "tweet-news"),
    "STS15": ("answers-forums", "answers-students", "belief", "headlines", "images"),
    "STS16": ("answer-answer", "headlines", "plagiarism", "postediting", "question-question"),
}
_SICK = ("SICK/SICK_train.txt", "SICK/SICK_trial.txt", "SICK/SICK_test_annotated.txt")
PROBING_FILES = {
    "Length": "sentence_length.txt",
    "WordContent": "word_content.txt",
    "Depth": "tree_depth.txt",
    "TopConstituents": "top_constituents.txt",
    "BigramShift": "bigram_shift.txt",
    "Tense": "past_present.txt",
    "SubjNumber": "subj_number.txt",
    "ObjNumber": "obj_number.txt",
    "OddManOut": "odd_man_out.txt",
    "CoordinationInversion": "coordination_inversion.txt",
}


def _sts(name: str, sets: tuple[str, ...]) -> SentEvalSpec:
    files = tuple(f"STS/{name}-en-test/STS.{part}.{one}.txt" for one in sets for part in ("input", "gs"))
    return SentEvalSpec(name, "USS", "cosine", "pearson", files, sets)


def _splits(folder: str) -> tuple[str, ...]:
    return tuple(f"{folder}-{split}" for split in ("train", "dev", "test"))


_ALL = [
    *(_sts(name, sets) for name, sets in STS_SETS.items()),
    SentEvalSpec(
        "STSBenchmark",
        "SSS",
        "relatedness",
        "pearson",
        tuple(f"STS/STSBenchmark/sts-{split}.csv" for split in ("train", "dev", "test")),
    ),
    SentEvalSpec("SICKRelatedness", "SSS", "relatedness", "pearson", _SICK),
    SentEvalSpec("SICKEntailment", "SSS", "split", "accuracy", _SICK),
    # Of two files the first holds class 1, the second class 0, as SentEval orders them.
    SentEvalSpec("MR", "SC", "nested", "accuracy", ("MR/rt-polarity.pos", "MR/rt-polarity.neg")),
    SentEvalSpec("CR", "SC", "nested", "accuracy", ("CR/custrev.pos", "CR/custrev.neg")),
    SentEvalSpec("MPQA", "SC", "nested", "accuracy", ("MPQA/mpqa.pos", "MPQA/mpqa.neg")),
    SentEvalSpec("SUBJ", "SC", "nested", "accuracy", ("SUBJ/subj.objective", "SUBJ/subj.subjective")),
    SentEvalSpec("SST2", "SC", "split", "accuracy", _splits("SST/binary/sentiment")),
    SentEvalSpec("SST5", "SC", "split", "accuracy", _splits("SST/fine/sentiment")),
    SentEvalSpec("TREC", "SC", "folds", "accuracy", ("TREC/train_5500.label", "TREC/TREC_10.label")),
    SentEvalSpec(
        "MRPC", "SC", "folds", "accuracy", ("MRPC/msr_paraphrase_train.txt", "MRPC/msr_paraphrase_test.txt")
    ),
    *(SentEvalSpec(name, "Probing", "split", "accuracy", (file,)) for name, file in PROBING_FILES.items()),
]
TASKS: dict[str, SentEvalSpec] = {task.name: task for task in _ALL}
GROUPS: dict[Group, tuple[SentEvalSpec, ...]] = {
    group: tuple(task for task in _ALL if task.group == group) for group in ("USS", "SSS", "SC", "Probing")
}


def chosen(name: str) -> list[SentEvalSpec]:
    """Return the tasks a name stands for.

    >>> [task.name for task in chosen("SSS")]
    ['STSBenchmark', 'SICKRelatedness', 'SICKEntailment']
    """
    return select_tasks("senteval", name, _ALL)
