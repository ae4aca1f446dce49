"""Baselines that need no model: the most frequent label, and what the second text alone gives away.

Mode `majority` answers every example of a task alike. The rule, which gives the paper's row of table A.2 exactly: the
label that is most frequent in the dev set (COPA's 55.0 needs it; in every other task the training set has the
same), the commoner one of the training set where two tie, then the first of the task's labels. `majority_of=train`
counts in the training set first. Beyond that

- MultiRC: every answer is right, though most are not, since its F1 is that of the right ones;
- STS-B: the mean score;
- ReCoRD: of the passage's entities the one with the highest token F1 with all mentions of entities in the passage, as
  a footnote of section 3.5.1 has it; mentions are found in the text, the longest first;
- a diagnostic: the label of the task whose classifier answers it, or its own most frequent where that is not here.

Mode `hypothesis-only` is a linear bag-of-n-grams classifier. As the fastText classifiers of the paper's audit do, it
averages a weight vector a class over the words and pairs of neighbouring words of a text. The weights are at the
optimum (mean cross-entropy with an L2 penalty), so there is no draw and no seed; the penalty is chosen on every tenth
training example, held out.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ensue.benchmarks import settings as read
from ensue.benchmarks.base import RunContext, Setting
from ensue.benchmarks.nlu.examples import DEV, TRAIN, Example, Prediction, TaskData
from ensue.benchmarks.nlu.framing import PredictedAnswers, answered_as
from ensue.benchmarks.nlu.systems import Answered, Settings
from ensue.benchmarks.nlu.training import positive_class
from ensue.errors import EnsueError, RunFailed
from ensue.metrics.answers import token_f1
from ensue.models.protocols import Model


class Majority:
    """The system of mode `majority`."""

    settings: Mapping[str, Setting] = {
        "majority_of": Setting(
            DEV, "where labels are counted first: dev (as the paper's row) or train", read.one_of(DEV, TRAIN)
        )
    }

    def answer(
        self, model: Model, tasks: Sequence[TaskData], settings: Settings, seed: int, context: RunContext
    ) -> Iterator[Answered]:
        known = {data.spec.name: data for data in tasks}
        for data in tasks:
            source = known.get(data.spec.answered_by, data)
            answer = common_answer(source, settings["majority_of"])
            if answer is None and source is not data:
                source, answer = data, common_answer(data, settings["majority_of"])
            if answer is None and data.spec.form != "entity":
                continue
            yield Answered(
                data.spec.name,
                {split: _alike(data, data.splits[split], source, answer) for split in data.judged_splits},
            )

    def signature(self, model: Model, settings: Settings) -> str:
        return f"majority of:{settings['majority_of']} answers:true entity:f1-with-mentions score:mean"


def common_answer(data: TaskData, first: str) -> Prediction | None:
    """Return the most frequent label or the mean score, counted in `first`, train or dev; None without any labels.

    A set without either of them (a diagnostic) is counted itself.
    """
    order = [first, *(split for split in (DEV, TRAIN) if split != first)]
    if not any(data.labelled(split) for split in order):
        order = list(data.splits)
    golds = [[example.gold for example in data.splits[split]] for split in order if data.labelled(split)]
    if not golds or data.spec.form == "entity":
        return None
    if data.spec.form == "score":
        return fmean(float(gold) for gold in golds[0])  # type: ignore[arg-type]  # a score
    if data.spec.form == "answers":
        return data.spec.labels[positive_class(data.spec)]
    counts = [Counter(str(gold) for gold in split) for split in golds]
    return max(data.spec.labels, key=lambda label: [count[label] for count in counts])


def _alike(
    data: TaskData, examples: Sequence[Example], source: TaskData, answer: Prediction | None
) -> dict[str, Prediction]:
    if answer is None:
        return {example.id: common_entity(example) for example in examples}
    if source.spec.form == "score":
        return {example.id: answer for example in examples}
    said = PredictedAnswers({example.id: answer for example in examples}, {})
    return answered_as(said, source.spec, data.spec).predictions


def common_entity(example: Example) -> str:
    """Return the entity with the highest F1 with all mentions of the passage, the first of those that are equal."""
    options = sorted(set(example.choices), key=lambda entity: (-len(entity), entity))
    either = "|".join(map(re.escape, options))
    mentions = Counter(re.findall(rf"(?<!\w)(?:{either})(?!\w)", example.texts[0])) or Counter(options)

    def shared(entity: str) -> float:
        return sum(token_f1(entity, mention) * count for mention, count in mentions.items())

    return max(example.choices, key=shared)


majority = Majority()


L2 = (1e-2, 1e-3, 1e-4, 1e-5)
_HELD_OUT = 10
# An n-gram seen in one training text only says nothing of others.
_MIN_TEXTS = 2
_WORD = re.compile(r"\w+|[^\w\s]")
Ints = NDArray[np.int64]


class HypothesisOnly:
    """The system of mode `hypothesis-only`: the audit of the paper's diagnostic set, for any task of pairs.

    A set without training examples of its own is answered by the classifier of the task that answers it, which
    may learn from that task's dev set where there is no training set.
    """

    settings: Mapping[str, Setting] = {}

    def answer(
        self, model: Model, tasks: Sequence[TaskData], settings: Settings, seed: int, context: RunContext
    ) -> Iterator[Answered]:
        known = {data.spec.name: data for data in tasks}
        for data in tasks:
            source = known.get(data.spec.answered_by, data)
            split = TRAIN if source.labelled(TRAIN) or source is data else DEV
            if data.spec.form != "pair" or not source.labelled(split):
                continue
            labels = source.spec.labels
            examples = source.splits[split]
            gold = np.asarray([labels.index(str(example.gold)) for example in examples], dtype=np.int64)
            predict, l2 = classifier([example.texts[1] for example in examples], gold, len(labels))
            answers: dict[str, Mapping[str, Prediction]] = {}
            for each in data.judged_splits:
                found = predict([example.texts[1] for example in data.splits[each]])
                asked = zip(data.splits[each], found, strict=True)
                given = PredictedAnswers({one.id: labels[place] for one, place in asked}, {})
                answers[each] = answered_as(given, source.spec, data.spec).predictions
            yield Answered(
                data.spec.name,
                answers,
                fits=[{"learned_from": f"{source.spec.name} {split}", "examples": len(gold), "l2": l2}],
            )

    def signature(self, model: Model, settings: Settings) -> str:
        return "features:1-2-grams-of-second-text"


class Bags(NamedTuple):
    """Texts as runs of n-gram numbers: those of text i are `grams[starts[i]:starts[i + 1]]`."""

    grams: Ints
    starts: Ints


def classifier(
    texts: Sequence[str], gold: Ints, classes: int, l2: Sequence[float] = L2
) -> tuple[Callable[[Sequence[str]], Ints], float]:
    """Return a classifier of texts trained on these, and the L2 strength that was best on those held out."""
    held = np.arange(len(texts)) % _HELD_OUT == _HELD_OUT - 1
    best = l2[0] if len(l2) == 1 else _best_strength(texts, gold, held, classes, l2)
    return fit(texts, gold, classes, best), best


def grams_of(text: str) -> Iterator[str]:
    """Return lower-cased words and marks, and pairs of neighbours.

    >>> list(grams_of("It rained."))
    ['it', 'rained', '.', 'it rained', 'rained .']
    """
    words = _WORD.findall(text.lower())
    yield from words
    yield from (f"{first} {second}" for first, second in pairwise(words))


def vocabulary(texts: Sequence[str]) -> dict[str, int]:
    """Return a number from 1 for every n-gram of several texts; 0 stands in for a text that has none of them."""
    counts = Counter(gram for text in texts for gram in set(grams_of(text)))
    return {
        gram: 1 + place for place, gram in enumerate(sorted(g for g, n in counts.items() if n >= _MIN_TEXTS))
    }


def bags(texts: Sequence[str], known: dict[str, int]) -> Bags:
    """Return the known n-grams of each text; memory grows with the words, not with texts times n-grams."""
    found = [[known[gram] for gram in grams_of(text) if gram in known] or [0] for text in texts]
    starts = np.cumsum([0, *(len(one) for one in found)][:-1])
    return Bags(np.array([gram for one in found for gram in one], dtype=np.int64), starts.astype(np.int64))


def fit(texts: Sequence[str], gold: Ints, classes: int, l2: float) -> Callable[[Sequence[str]], Ints]:
    """Return a classifier at the minimum of mean cross-entropy + l2/2 · |weights|² (biases not penalised)."""
    known = vocabulary(texts)
    weights, bias = solve(bags(texts, known), gold, len(known) + 1, classes, l2)

    def predict(asked: Sequence[str]) -> Ints:
        import torch

        with torch.no_grad():
            return np.asarray(_logits(bags(asked, known), weights, bias).argmax(-1).numpy(), dtype=np.int64)

    return predict


def solve(
    data: Bags, gold: Ints, grams: int, classes: int, l2: float, tolerance: float = 1e-6
) -> tuple[Any, Any]:
    """Return weights [n-grams, classes] and biases at the optimum, found by L-BFGS in double precision."""
    import torch

    with torch.enable_grad():
        weights = torch.zeros(grams, classes, dtype=torch.float64, requires_grad=True)
        bias = torch.zeros(classes, dtype=torch.float64, requires_grad=True)
        targets = torch.from_numpy(gold)
        optimizer = torch.optim.LBFGS(
            [weights, bias],
            max_iter=2000,
            max_eval=4000,
            tolerance_grad=tolerance,
            tolerance_change=0.0,
            history_size=20,
            line_search_fn="strong_wolfe",
        )

        def loss() -> Any:
            optimizer.zero_grad()
            fitted = torch.nn.functional.cross_entropy(_logits(data, weights, bias), targets)
            value = fitted + 0.5 * l2 * weights.square().sum()
            value.backward()
            return value

        optimizer.step(loss)
        loss()
    left = max(float(part.grad.abs().max()) for part in (weights, bias))
    if not left <= tolerance:
        raise RunFailed(
            f"The hypothesis-only classifier is still at a gradient of {left:.1e}; give a larger L2."
        )
    return weights.detach(), bias.detach()


def _logits(data: Bags, weights: Any, bias: Any) -> Any:
    import torch

    grams, starts = torch.from_numpy(data.grams), torch.from_numpy(data.starts)
    return torch.nn.functional.embedding_bag(grams, weights, starts, mode="mean") + bias


def _best_strength(
    texts: Sequence[str], gold: Ints, held: NDArray[np.bool_], classes: int, l2: Sequence[float]
) -> float:
    """Return the strength that is best on what is held out, the strongest of equally good ones."""
    kept = [text for text, out in zip(texts, held, strict=True) if not out]
    asked = [text for text, out in zip(texts, held, strict=True) if out]
    if not asked:
        raise EnsueError(f"An audit needs at least {_HELD_OUT} training examples, not {len(texts)}.")
    scores = {
        strength: float(np.mean(fit(kept, gold[~held], classes, strength)(asked) == gold[held]))
        for strength in sorted(l2, reverse=True)
    }
    return max(scores, key=lambda strength: scores[strength])


hypothesis_only = HypothesisOnly()
