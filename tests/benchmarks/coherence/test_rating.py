"""Models that rate texts in every task on coherence, against ratings taken one by one."""

from __future__ import annotations

import itertools
import zlib

import numpy as np
import pytest
from scipy.stats import spearmanr
from sklearn.metrics import roc_auc_score

import ensue
from ensue.benchmarks.coherence.rating import rate_texts
from ensue.errors import EnsueError
from tests.support import tiny
from tests.support.command import here, read_lines, refused, write_lines
from tests.support.corpus import document, write_corpus
from tests.support.naive_texts import NaiveCausal
from tests.support.raters import InversionRater, inversions
from tests.support.run_context import run_context

# A rater that sees so many sentences and errs about the rest.
SEES = 4


def rating(text):
    return -inversions(text, SEES)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return write_corpus(tmp_path_factory.mktemp("data") / "corpus.jsonl", (6, 7, 9, 8))


@pytest.fixture(scope="module")
def texts(corpus):
    return {row["id"]: row["sentences"] for row in read_lines(corpus)}


def run(benchmark, output, rater=None, **settings):
    return ensue.run(benchmark, model=rater or InversionRater(SEES), output=output, **settings)


def row_of(result, metric, **settings):
    (row,) = [
        r
        for r in result.results["metrics"]
        if (r["metric"], r["settings"]) == (metric, settings) and "/" not in r["task"]
    ]
    return row


def test_insertion_takes_the_position_whose_text_is_rated_best(corpus, texts, tmp_path):
    done = run("insertion", tmp_path / "run", data=corpus, removed="none")
    assert "by:rating method:text removed:all" in done.results["signature"]
    assert len(done.items) == 6 + 7 + 9 + 8
    right = []
    for item in done.items:
        text, place = texts[item["cluster"]], int(item["id"].partition("#")[2]) - 1
        rest = text[:place] + text[place + 1 :]
        values = [rating([*rest[:at], text[place], *rest[at:]]) for at in range(len(text))]
        assert item["outputs"]["values"] == values
        best = [at for at, value in enumerate(values) if value == max(values)]
        right.append((place in best) / len(best))
    assert row_of(done, "accuracy")["value"] == pytest.approx(np.mean(right))
    # It sees no further than four sentences, and does not always choose.
    assert 0.2 < np.mean(right) < 1


def test_insertion_between_neighbours(corpus, texts, tmp_path):
    done = run("insertion", tmp_path / "run", data=corpus, removed="none", method="neighbours")
    item = next(one for one in done.items if one["id"] == "d1#3")
    text = texts["d1"]
    rest = text[:2] + text[3:]
    expected = []
    for at in range(7):
        chain = [*rest[:at], text[2], *rest[at:]]
        pairs = sum(rating(pair) for pair in itertools.pairwise(chain))
        expected.append(pairs - sum(rating(pair) for pair in itertools.pairwise(rest)))
    assert item["outputs"]["values"] == expected


class Steps(InversionRater):
    """Likes each sentence right after the one that was written before it."""

    def rate(self, texts):
        self.lengths = {len(text) for text in texts} | getattr(self, "lengths", set())
        numbers = [[int(sentence.split()[-1][:-1]) for sentence in text] for text in texts]
        return [-float(sum(abs(b - a - 1) for a, b in itertools.pairwise(each))) for each in numbers]


def test_ordering_is_a_beam_search_over_ratings_of_beginnings(corpus, texts, tmp_path):
    done = run("ordering", tmp_path / "run", data=corpus, beam=3)
    for item in done.items:
        text = texts[item["cluster"]]
        assert item["outputs"]["value"] == rating([text[place] for place in item["outputs"]["order"]])
        assert item["outputs"]["value_written"] == 0
    rater = Steps()
    whole = run("ordering", tmp_path / "whole", rater, data=corpus, beam=8)
    assert row_of(whole, "perfect")["value"] == row_of(whole, "accuracy_search")["value"] == 1.0
    # A sentence alone is never rated.
    assert rater.lengths == set(range(2, 10))


class Peculiar(InversionRater):
    """Rates by a sum over pairs of places that no rule of order explains."""

    def rate(self, texts):
        return [peculiar(text) for text in texts]


def peculiar(text):
    pairs = enumerate(itertools.pairwise(text))
    return sum(zlib.crc32(f"{at} {a} {b}".encode()) % 10_007 for at, (a, b) in pairs) / 10_007


def test_a_wide_beam_finds_the_order_that_is_rated_best_of_all(tmp_path):
    data = write_corpus(tmp_path / "corpus.jsonl", (5, 4))
    done = run("ordering", tmp_path / "run", Peculiar(), data=data, beam=200)
    for row, item in zip(read_lines(data), done.items, strict=True):
        every = {order: peculiar(order) for order in itertools.permutations(row["sentences"])}
        best = max(every, key=every.get)
        assert [row["sentences"][place] for place in item["outputs"]["order"]] == list(best)
        assert item["outputs"]["value"] == pytest.approx(every[best], abs=1e-4)
    narrow = run("ordering", tmp_path / "narrow", Peculiar(), data=data, beam=2)
    for row, item in zip(read_lines(data), narrow.items, strict=True):
        numbers = item["outputs"]["order"]
        assert item["outputs"]["value"] == pytest.approx(
            peculiar([row["sentences"][n] for n in numbers]), abs=1e-4
        )
    rescored = run("ordering", tmp_path / "rescored", Peculiar(), data=data, beam=120, method="rescored")
    assert [one["outputs"]["order"] for one in rescored.items] == [
        one["outputs"]["order"] for one in done.items
    ]


def test_ordering_by_neighbours_rates_pairs(corpus, texts, tmp_path):
    rater = Steps()
    done = run("ordering", tmp_path / "run", rater, data=corpus, method="neighbours")
    assert rater.lengths == {2}
    assert row_of(done, "perfect")["value"] == 1.0


def test_the_intruder_is_the_sentence_without_which_the_text_is_rated_better(corpus, tmp_path):
    done = run(
        "intruder", tmp_path / "run", data=corpus, kinds=["random", "swapped"], rules="removal,insertion"
    )
    documents = {row["id"]: row["sentences"] for row in read_lines(corpus)}
    versions = {}
    for item in done.items:
        outputs = item["outputs"]
        text = list(documents[item["cluster"]])
        for place, sentence in zip(outputs["places"], outputs.get("sentences", []), strict=True):
            text[place] = sentence
        versions[item["id"]] = text
        assert outputs["whole"] == rating(text)
        removal, insertion = [None], [None]
        for place in range(1, len(text)):
            rest = text[:place] + text[place + 1 :]
            removal.append(rating(text) - rating(rest))
            others = [[*rest[:at], text[place], *rest[at:]] for at in range(len(text)) if at != place]
            insertion.append(rating(text) - max(rating(one) for one in others if one != text))
        assert outputs["values"] == {"removal": removal, "insertion": insertion}
    preferred = [
        rating(documents[item["cluster"]]) > rating(versions[item["id"]])
        for item in done.items
        if item["settings"]["kind"] == "swapped"
    ]
    assert row_of(done, "accuracy", kind="swapped")["value"] == pytest.approx(np.mean(preferred))
    assert row_of(done, "hit_rate", kind="swapped", rule="removal")["n"] == 4
    usual = run("intruder", tmp_path / "usual", data=corpus, kinds="random")
    assert set(usual.items[0]["outputs"]["values"]) == {"removal"}
    assert ensue.compare(usual, done)
    assert here("report", tmp_path / "usual").code == 0


def test_the_insertion_finder_of_a_scorer(tmp_path):
    llama = tiny.save_llama(tmp_path / "llama", max_length=512)
    naive = NaiveCausal(llama)
    data = write_corpus(tmp_path / "corpus.jsonl", (6, 6))
    done = ensue.run(
        "intruder",
        model=str(llama),
        data=data,
        output=tmp_path / "run",
        encoder="none",
        kinds="random",
        rules="gain,insertion",
    )
    item = next(one for one in done.items if one["id"] == "d0#random")
    text = list(read_lines(data)[0]["sentences"])
    (place,), (sentence,) = item["outputs"]["places"], item["outputs"]["sentences"]
    text[place] = sentence
    for at in (1, 4):
        rest = text[:at] + text[at + 1 :]
        values = []
        for position in range(6):
            before, tail = " ".join(rest[:position]), rest[position : position + 2]
            space = " " if position else ""
            value = naive.after(space + " ".join([text[at], *tail]), before)
            values.append(value - (naive.after(space + " ".join(tail), before) if tail else 0.0))
        expected = values[at] - max(value for position, value in enumerate(values) if position != at)
        assert item["outputs"]["values"]["insertion"][at] == pytest.approx(expected, abs=2e-3)
    # The text as a whole: the mean a token after the first sentence.
    first = naive.logprobs(text[0])
    rest = naive.logprobs(" ".join(text))[len(first) :]
    assert item["outputs"]["whole"] == pytest.approx(np.mean(rest), abs=1e-3)
    control = next(one for one in done.items if one["id"] == "d0#untouched")
    assert item["scores"]["whole/accuracy"] == float(
        control["outputs"]["whole"] > item["outputs"]["whole"] + 1e-4
    )
    assert set(item["outputs"]["values"]) == {"gain", "insertion"}


def test_ratings_of_people_and_of_the_model(tmp_path):
    rows = []
    for number in range(5):
        for system, order in (("a", (0, 1, 2, 3)), ("b", (1, 0, 3, 2)), ("c", (3, 2, 1, 0))):
            sentences = document(number, 4)
            rows.append(
                {
                    "id": f"{number}{system}",
                    "group": str(number),
                    "system": system,
                    "sentences": [sentences[place] for place in order],
                    "rating": (number * 7 + 3 * len(rows)) % 5,
                    "marks": [place == order[0] for place in range(4)],
                }
            )
    data = write_lines(tmp_path / "rated.jsonl", rows)
    done = run("ratings", tmp_path / "run", InversionRater(), data=data)
    own = [-inversions(row["sentences"]) for row in rows]
    assert [item["outputs"]["model_rating"] for item in done.items] == own
    people = [row["rating"] for row in rows]
    found = row_of(done, "spearman", measure="model_rating", level="texts")
    assert found["value"] == pytest.approx(spearmanr(own, people).statistic)
    right = [
        0.5 if x == y else float((x > y) == (a > b))
        for (x, a, g), (y, b, h) in itertools.combinations(
            [(x, row["rating"], row["group"]) for x, row in zip(own, rows, strict=True)], 2
        )
        if g == h and a != b
    ]
    found = row_of(done, "accuracy", measure="model_rating", level="pairs")
    assert (found["value"], found["n"]) == (pytest.approx(np.mean(right)), len(right))
    worth, marks = [], []
    for row in rows:
        for place in range(4):
            rest = row["sentences"][:place] + row["sentences"][place + 1 :]
            worth.append(inversions(rest) - inversions(row["sentences"]))
            marks.append(row["marks"][place])
    auc = row_of(done, "auc", measure="gain of a sentence")
    assert auc["value"] == pytest.approx(roc_auc_score(marks, [-one for one in worth]))
    words = here("report", tmp_path / "run")
    assert words.code == 0, words.err


@pytest.mark.parametrize("benchmark", ["insertion", "ordering", "intruder"])
def test_ratings_are_kept_until_the_run_is_finished(benchmark, corpus, tmp_path):
    whole = InversionRater()
    straight = run(benchmark, tmp_path / "whole", whole, data=corpus)
    most = whole.rated - 10
    with pytest.raises(KeyboardInterrupt):
        run(benchmark, tmp_path / "run", InversionRater(most=most), data=corpus)
    again = InversionRater()
    resumed = run(benchmark, tmp_path / "run", again, data=corpus, resume=True)
    assert 0 < again.rated < 64 + 10
    assert resumed.results["metrics"] == straight.results["metrics"]


def test_texts_meet_in_the_same_portions_when_a_run_goes_on():
    asked = []

    class Watched(InversionRater):
        def rate(self, texts):
            asked.append([tuple(text) for text in texts])
            return super().rate(texts)

    texts = [[f"A {n}.", f"B {m}."] for n in range(12) for m in range(12)]
    with run_context(None) as context:
        found = rate_texts(Watched(), [*texts, *texts[:3]], context)
        assert found == [-float(n > m) for n in range(12) for m in range(12)] + [0.0] * 3
        assert [len(portion) for portion in asked] == [64, 64, 16]
        first = list(asked)
        # Of 100 other texts with 44 that are known, no portion leaves out what is known.
        more = [*texts[:44], *([f"C {n}.", f"D {n}."] for n in range(56))]
        rate_texts(Watched(), more, context)
        assert [len(portion) for portion in asked[3:]] == [64, 36]
        # All known: nobody is asked.
        rate_texts(Watched(), texts, context)
        assert len(asked) == len(first) + 2


def test_rules_that_a_model_does_not_allow(corpus, tmp_path):
    with pytest.raises(EnsueError, match="The rule gain needs a model that scores text"):
        run("intruder", tmp_path / "a", data=corpus, rules="gain")
    words = ("run", "intruder", "--model", "random", "--data", corpus, "--output", tmp_path / "b")
    refused(here(*words, "--set", "rules=removal"), "removal needs a model that rates texts")
    refused(here(*words, "--set", "by=rating"), "rate how coherent a text is")


class Shortsighted(InversionRater):
    """Takes no more than seven sentences, and says of which texts it does not."""

    def rate(self, texts):
        return super().rate([text[:7] for text in texts])

    def count_cut(self, texts):
        return sum(len(text) > 7 for text in texts)


@pytest.mark.parametrize(
    ("benchmark", "cut"), [("shuffle", 2), ("insertion", 2), ("ordering", 2), ("intruder", 6)]
)
def test_texts_too_long_for_a_rater_are_counted(benchmark, cut, corpus, tmp_path):
    more = {"kinds": ["random", "swapped"]} if benchmark == "intruder" else {}
    done = run(benchmark, tmp_path / "run", Shortsighted(), data=corpus, **more)
    assert done.results["notes"]["texts of which the model reads only the beginning"] == cut
    short = run(benchmark, tmp_path / "short", Shortsighted(), data=corpus, max_sentences=7, **more)
    assert not any("beginning" in words for words in short.results["notes"])


def test_rated_texts_too_long_for_a_rater_are_counted(tmp_path):
    rows = [{"sentences": document(n, 6 + n), "rating": n} for n in range(4)]
    done = run("ratings", tmp_path / "run", Shortsighted(), data=write_lines(tmp_path / "rated.jsonl", rows))
    assert done.results["notes"] == {"texts of which the model reads only the beginning": 2}
