"""Exact match and F1 of answers against a formula written out, and the threshold against every possible one."""

import collections
import re
import string

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ensue.errors import EnsueError
from ensue.models.card import ModelCard
from ensue.models.protocols import FoundAnswer
from ensue.text.io.squad import Answer, Example
from ensue.train.qa.quality import best_threshold, evaluate_answerer, figures_of, scores

_WORDS = st.sampled_from(["the", "a", "Haddow", "haddow", "mill-race", "two", "geese", ".", "two."])
_TEXTS = st.lists(_WORDS, min_size=0, max_size=4).map(" ".join)
_ANSWERS = st.lists(st.lists(_WORDS, min_size=1, max_size=3).map(" ".join), max_size=3)


def tokens(text):
    text = "".join(ch for ch in text.lower() if ch not in set(string.punctuation))
    return re.sub(r"\b(a|an|the)\b", " ", text).split()


def reference(given_, golds):
    """The evaluation of SQuAD 2.0 as its description has it: exact and F1 with the best of the answers."""
    golds = [gold for gold in golds if tokens(gold)] or [""]
    exact = max(int(tokens(gold) == tokens(given_)) for gold in golds)
    best = 0.0
    for gold in golds:
        want, got = tokens(gold), tokens(given_)
        same = sum((collections.Counter(want) & collections.Counter(got)).values())
        if not want or not got:
            best = max(best, float(want == got))
        elif same:
            precision, recall = same / len(got), same / len(want)
            best = max(best, 2 * precision * recall / (precision + recall))
    return exact, best


def example(number, golds):
    return Example(str(number), "a", "", "?", tuple(Answer(gold, 0) for gold in golds))


@given(_TEXTS, _ANSWERS)
@settings(max_examples=300, deadline=None)
def test_scores_are_those_of_the_formula(text, golds):
    assert scores(text, [Answer(gold, 0) for gold in golds]) == pytest.approx(reference(text, golds))


@given(st.lists(st.tuples(_TEXTS, _ANSWERS, st.integers(-3, 3)), min_size=1, max_size=12))
@settings(max_examples=60, deadline=None)
def test_means_and_the_best_threshold_are_those_of_plain_loops(rows):
    examples = [example(number, golds) for number, (_, golds, _) in enumerate(rows)]
    given_, odds = [text for text, _, _ in rows], [float(odd) for *_, odd in rows]
    found = figures_of(examples, given_)
    pairs = [reference(text, golds) for text, golds, _ in rows]
    assert found.exact == pytest.approx(sum(exact for exact, _ in pairs) / len(rows))
    assert found.f1 == pytest.approx(sum(f1 for _, f1 in pairs) / len(rows))
    has = [f1 for (_, f1), (_, golds, _) in zip(pairs, rows, strict=True) if golds]
    assert found.has_answer_f1 == (pytest.approx(sum(has) / len(has)) if has else None)
    assert (found.no_answer is None) == (len(has) == len(rows))

    def at(threshold):
        return sum(reference(text if odd > threshold else "", golds)[1] for text, golds, odd in rows) / len(
            rows
        )

    best = best_threshold(examples, given_, odds)
    assert at(best) == pytest.approx(max(at(half / 2) for half in range(-9, 10)))


class Searcher:
    """Answers with the word after "is", if there is one."""

    card = ModelCard("searcher", "toy", "here")

    def answer(self, questions, contexts):
        found = [re.search(r"\bis (\w+)", context) for context in contexts]
        return [
            FoundAnswer(m[1], m.start(1), m.end(1), 1.0) if m else FoundAnswer("", 0, 0, -1.0) for m in found
        ]


def test_any_answerer_can_be_measured():
    examples = [
        Example("1", "a", "The mill is old.", "How old?", (Answer("old", 12),)),
        Example("2", "a", "The mill stands.", "How old?", ()),
        Example("3", "b", "The race is dry.", "How wet?", ()),
    ]
    found = evaluate_answerer(Searcher(), examples)
    assert found.as_dict() == pytest.approx(
        {"exact": 2 / 3, "f1": 2 / 3, "has_answer_exact": 1.0, "has_answer_f1": 1.0, "no_answer": 0.5}
    )
    with pytest.raises(EnsueError, match="no question"):
        evaluate_answerer(Searcher(), [])
