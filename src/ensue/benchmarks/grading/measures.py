"""The metrics an organiser can name in a board.toml: of labels, of numbers and of texts, each with an interval."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import numpy as np

from ensue.benchmarks.drawn import ROUNDS, Drawn
from ensue.errors import EnsueError, hint
from ensue.metrics.answers import best_over, exact_match, token_f1
from ensue.metrics.classification import accuracy, confusion_cells, f1, macro_f1, matthews
from ensue.metrics.correlation import kendall, pearson, spearman
from ensue.metrics.overlap import rouge_of
from ensue.stats.correlation import correlation_draws, kendall_draws
from ensue.stats.ranges import CORRELATION, SHARE
from ensue.stats.resampling import MadeUp, confusion_draws, sum_draws

Kind = Literal["label", "number", "text"]
_LABELS = ("accuracy", "f1", "macro_f1", "mcc")
_NUMBERS = ("pearson", "spearman", "kendall")
_ANSWERS: Mapping[str, Callable[[str, str], float]] = {"exact_match": exact_match, "token_f1": token_f1}
_ROUGE = ("rouge1", "rouge2", "rougeL")
METRICS: Mapping[str, Kind] = {
    **dict.fromkeys(_LABELS, "label"),
    **dict.fromkeys(_NUMBERS, "number"),
    **dict.fromkeys((*_ANSWERS, *_ROUGE), "text"),
}


def kind_of(metrics: Sequence[str]) -> Kind:
    """Return what predictions these metrics are of; they must agree in that."""
    for name in metrics:
        if name not in METRICS:
            raise EnsueError(f"there is no metric {name!r}; {hint(name, METRICS).rstrip('.')}")
    kinds = list(dict.fromkeys(METRICS[name] for name in metrics))
    if len(kinds) != 1:
        raise EnsueError(f"{', '.join(metrics)} are of {' and of '.join(kinds)}s; divide them into two tasks")
    return kinds[0]


def of_labels(
    metrics: Sequence[str],
    gold: Sequence[str],
    given: Sequence[str],
    clusters: Sequence[str],
    classes: Sequence[str],
    positive: str | None,
) -> dict[str, Drawn]:
    """Return metrics of classes; `f1` is that of the `positive` one."""
    codes = {label: code for code, label in enumerate(classes)}
    cells = confusion_cells([codes[one] for one in gold], [codes[one] for one in given], len(classes))
    whole = np.bincount(cells, minlength=len(classes) ** 2).reshape(len(classes), len(classes))
    units = len(set(clusters))
    draws = confusion_draws(cells, len(classes), clusters, rounds=ROUNDS) if units > 1 else None
    wanted = codes[positive] if positive is not None else 1
    of: dict[str, Callable[[Any], Any]] = {
        "accuracy": accuracy,
        "f1": lambda counts: f1(counts, wanted),
        "macro_f1": macro_f1,
        "mcc": matthews,
    }
    return {
        name: Drawn(
            float(of[name](whole)),
            None if draws is None else of[name](draws),
            len(cells),
            units,
            CORRELATION if name == "mcc" else SHARE,
        )
        for name in metrics
    }


def of_numbers(
    metrics: Sequence[str], gold: Sequence[float], given: Sequence[float], clusters: Sequence[str]
) -> dict[str, Drawn]:
    """Return correlations; one that does not exist, since all answers are the same, counts as 0."""
    units = len(set(clusters))
    both = correlation_draws(given, gold, clusters, rounds=ROUNDS)
    found = {}
    for name in metrics:
        if name == "kendall":
            value, draws = kendall(given, gold), kendall_draws(given, gold, clusters, rounds=ROUNDS)
        else:
            of = pearson if name == "pearson" else spearman
            value, draws = of(given, gold), getattr(both, name)
        spread = np.nan_to_num(draws) if units > 1 else None
        found[name] = Drawn(float(np.nan_to_num(value)), spread, len(gold), units, CORRELATION)
    return found


def of_texts(
    metrics: Sequence[str], gold: Sequence[Sequence[str]], given: Sequence[str], clusters: Sequence[str]
) -> dict[str, Drawn]:
    """Return means over items of metrics with the best of an item's references."""
    values = {
        name: [best_over(_ANSWERS[name], one, right) for one, right in zip(given, gold, strict=True)]
        for name in metrics
        if name in _ANSWERS
    }
    if any(name in _ROUGE for name in metrics):
        rows = rouge_of(given, gold)
        values |= {name: [max(getattr(one, name).f1 for one in row) for row in rows] for name in _ROUGE}
    units = len(set(clusters))
    # One made-up answer, as often right as wrong.
    made_up = MadeUp(np.array([[1.0, 1.0], [0.0, 1.0]]) * (len(given) / units), np.array([0.5, 0.5]))
    found = {}
    for name in metrics:
        draws = None
        if units > 1:
            table = np.column_stack([values[name], np.ones(len(given))])
            sums = sum_draws(table, clusters, made_up=made_up, rounds=ROUNDS)
            draws = sums[:, 0] / sums[:, 1]
        found[name] = Drawn(float(np.mean(values[name])), draws, len(given), units, SHARE)
    return found
