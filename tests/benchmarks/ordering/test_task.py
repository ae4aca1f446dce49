"""Ordering on documents: values against plain torch, what chance gives, encoders, reports and what is refused."""

from __future__ import annotations

import json
from itertools import pairwise, permutations

import numpy as np
import pytest

import ensue
from ensue.benchmarks.ordering.task import METRICS
from ensue.metrics.ordering import kendall_tau
from ensue.runs.tables import metrics_tables
from tests.support import tiny
from tests.support.command import here, read_lines, refused, write_lines
from tests.support.corpus import write_corpus
from tests.support.naive_texts import NaiveCausal
from tests.support.pages import printed


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    return tiny.save_llama(folder / "llama", max_length=512), tiny.save_encoder(folder / "encoder")


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return write_corpus(tmp_path_factory.mktemp("data") / "corpus.jsonl", (4, 5, 2, 12))


@pytest.fixture(scope="module")
def naive(models):
    return NaiveCausal(models[0])


def gain(naive, sentences):
    """What each sentence gains from all before it over what it is on its own."""
    return sum(
        naive.after(" " + sentences[at], " ".join(sentences[:at])) - naive.after(sentences[at], "\n\n")
        for at in range(1, len(sentences))
    )


@pytest.mark.parametrize("method", ["beam", "rescored"])
def test_values_are_what_each_sentence_gains(models, corpus, tmp_path, naive, method):
    run = ensue.run(
        "ordering", model=str(models[0]), data=corpus, output=tmp_path / "r", limit=2, method=method, beam=200
    )
    texts = {row["id"]: row["sentences"] for row in read_lines(corpus)}
    for item in run.items:
        sentences, outputs = texts[item["id"]], item["outputs"]
        assert sorted(outputs["order"]) == list(range(len(sentences)))
        assert outputs["value"] == pytest.approx(
            gain(naive, [sentences[i] for i in outputs["order"]]), abs=2e-3
        )
        assert outputs["value_written"] == pytest.approx(gain(naive, sentences), abs=2e-3)
        assert item["scores"]["kendall_tau"] == pytest.approx(kendall_tau(outputs["order"]))
        assert item["scores"]["accuracy_search"] == 1.0
        # So wide a beam holds every order of four: none is better.
        if len(sentences) == 4:
            best = max(gain(naive, [sentences[i] for i in order]) for order in permutations(range(4)))
            assert outputs["value"] == pytest.approx(best, abs=2e-3)


def test_by_default_the_best_orders_by_neighbours_are_read_whole(models, tmp_path, naive):
    """Of all orders the best few by pairs of sentences, and of these the best: with plain torch, and few enough that
    a search by neighbours would miss it."""
    data = write_corpus(tmp_path / "corpus.jsonl", (5, 5, 4), seed=3)
    texts = {row["id"]: row["sentences"] for row in read_lines(data)}
    found = ensue.run("ordering", model=str(models[0]), data=data, output=tmp_path / "a", beam=3)
    assert "method:rescored beam:3 " in found.results["signature"]
    for item in found.items:
        sentences, outputs = texts[item["id"]], item["outputs"]
        alone = [naive.after(one, "\n\n") for one in sentences]
        follows = {
            (a, b): naive.after(" " + sentences[b], sentences[a]) - alone[b]
            for a, b in permutations(range(len(sentences)), 2)
        }
        orders = sorted(
            permutations(range(len(sentences))), key=lambda order: -sum(map(follows.get, pairwise(order)))
        )
        best = max(gain(naive, [sentences[i] for i in order]) for order in orders[:3])
        assert outputs["value"] == pytest.approx(best, abs=2e-3)
    # What the search read counts, too, and what it did.
    how = {"model": str(models[0]), "data": data}
    neighbours = ensue.run("ordering", **how, output=tmp_path / "b", method="neighbours").results
    one = ensue.run("ordering", **how, output=tmp_path / "c", beam=1).results
    assert found.results["tokens"] > one["tokens"] > neighbours["tokens"] > 0


def test_more_orders_are_rescored_than_a_search_by_neighbours_keeps_otherwise(models, tmp_path):
    sentences = [f"{word}." for word in ("The", "sun", "was", "closed", "again", "early")]
    data = write_lines(tmp_path / "d.jsonl", [{"id": "d", "sentences": sentences}])
    tokens = [
        ensue.run(
            "ordering", model=str(models[0]), data=data, output=tmp_path / str(beam), beam=beam
        ).results["tokens"]
        for beam in (256, 720)
    ]
    assert tokens[1] > 1.5 * tokens[0]


def test_a_written_order_that_the_search_misses_is_said(models, tmp_path):
    """Documents are written as the model likes them best: only a search that is too narrow can fail."""
    how = {"model": str(models[0])}
    data = write_corpus(tmp_path / "corpus.jsonl", (4, 5, 5), seed=3)
    texts = {row["id"]: row["sentences"] for row in read_lines(data)}
    best = ensue.run("ordering", **how, data=data, output=tmp_path / "a", beam=120)
    orders = {one["id"]: one["outputs"]["order"] for one in best.items}
    rows = [{"id": name, "sentences": [texts[name][at] for at in order]} for name, order in orders.items()]
    liked = write_lines(tmp_path / "liked.jsonl", rows)
    for name, beam in (("wide", 120), ("narrow", 1)):
        for item in ensue.run("ordering", **how, data=liked, output=tmp_path / name, beam=beam).items:
            outputs = item["outputs"]
            missed = outputs["value"] < outputs["value_written"] - 1e-3
            assert item["scores"]["accuracy_search"] == float(not missed)
            assert missed == (name == "narrow")


@pytest.mark.parametrize("method", ["rescored", "beam", "neighbours"])
def test_progress_only_rises_and_ends_at_all_documents(models, corpus, tmp_path, method):
    told = []

    def progress(done, total, unit):
        assert (unit, total) == ("documents", 3)
        told.append(done)

    ensue.run(
        "ordering", model=str(models[0]), data=corpus, output=tmp_path / "r", method=method, progress=progress
    )
    assert told == sorted(told)
    assert told[-1] == 3


def test_neighbours_of_a_scorer_and_of_an_encoder(models, corpus, tmp_path, naive):
    run = ensue.run(
        "ordering", model=str(models[0]), data=corpus, output=tmp_path / "a", limit=1, method="neighbours"
    )
    (item,) = run.items
    sentences = read_lines(corpus)[0]["sentences"]

    def pairs(order):
        return sum(
            naive.after(" " + sentences[b], sentences[a]) - naive.after(sentences[b], "\n\n")
            for a, b in pairwise(order)
        )

    best = max(map(pairs, permutations(range(4))))
    assert item["outputs"]["value"] == pytest.approx(best, abs=2e-3)
    assert item["outputs"]["value_written"] == pytest.approx(pairs(range(4)), abs=2e-3)
    assert "method:neighbours sentences:10" in run.results["signature"]
    other = ensue.run("ordering", model=str(models[1]), data=corpus, output=tmp_path / "b")
    assert other.results["tokens"] == 0
    assert other.results["notes"] == {"documents cut to 10 sentences": 1}
    assert other.results["skipped"] == {"documents of fewer than 3 sentences": 1}
    assert [row["metric"] for row in other.results["metrics"]] == [*METRICS, "chance_positional"]
    chance = other.results["metrics"][-1]
    assert chance["value"] == pytest.approx((1 / 4 + 1 / 5 + 1 / 10) / 3)


def test_an_encoder_opens_with_what_is_most_like_all_others(models, corpus, tmp_path):
    run = ensue.run("ordering", model=str(models[1]), data=corpus, output=tmp_path / "run", limit=1)
    (item,) = run.items
    vectors = np.asarray(ensue.load_model(str(models[1])).encode(read_lines(corpus)[0]["sentences"]), float)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    cosines = vectors @ vectors.T

    def value(order):
        first = order[0]
        opens = sum(cosines[first, other] for other in order[1:]) / 3
        return opens + sum(cosines[a, b] for a, b in pairwise(order))

    assert item["outputs"]["value"] == pytest.approx(max(map(value, permutations(range(4)))), abs=1e-3)
    assert item["outputs"]["value_written"] == pytest.approx(value(range(4)), abs=1e-3)


def test_first_words_after_the_last_sentences(models, corpus, tmp_path, naive):
    """Values against plain torch where less is read, and the best of all orders by them."""
    sentences = read_lines(corpus)[0]["sentences"]
    heads = [" ".join(sentence.split()[:2]) for sentence in sentences]
    assert heads != sentences

    def value(order, context):
        return sum(
            naive.after(
                " " + heads[order[at]], " ".join(sentences[i] for i in order[max(0, at - context) : at])
            )
            - naive.after(heads[order[at]], "\n\n")
            for at in range(1, len(order))
        )

    for name, context, how in (
        # What only the beam search knows of is a search by it.
        ("a", 2, {"beam": 200, "words": 2, "context": 2}),
        ("b", 9, {"method": "beam", "beam": 200, "words": 2}),
        ("c", 1, {"method": "neighbours", "words": 2}),
    ):
        run = ensue.run("ordering", model=str(models[0]), data=corpus, output=tmp_path / name, limit=1, **how)
        (item,) = run.items
        best = max(value(order, context) for order in permutations(range(4)))
        assert item["outputs"]["value"] == pytest.approx(best, abs=2e-3)
        assert item["outputs"]["value_written"] == pytest.approx(value(range(4), context), abs=2e-3)
        assert " words:2" in run.results["signature"]
    # Orders that are proposed by first words are judged by whole sentences.
    run = ensue.run(
        "ordering",
        model=str(models[0]),
        data=corpus,
        output=tmp_path / "d",
        limit=1,
        method="rescored",
        words=2,
    )
    (item,) = run.items
    assert item["outputs"]["value_written"] == pytest.approx(gain(naive, sentences), abs=2e-3)


def test_a_model_that_knows_nothing_finds_orders_like_any_other(tmp_path):
    data = write_corpus(tmp_path / "corpus.jsonl", (5,) * 150)
    run = ensue.run("ordering", model="random", data=data, output=tmp_path / "run", beam=2)
    found = {row["metric"]: row["value"] for row in run.results["metrics"]}
    # Tau of five has a spread of 0.41: four sigmas over 150 documents.
    assert abs(found["kendall_tau"]) < 0.14
    assert abs(found["positional_accuracy"] - 0.2) < 0.07


def test_equal_sentences_may_change_places(tmp_path, models):
    data = write_lines(tmp_path / "d.jsonl", [{"id": "d", "sentences": ["No.", "No.", "No."]}])
    run = ensue.run("ordering", model=str(models[0]), data=data, output=tmp_path / "run")
    (item,) = run.items
    assert (item["outputs"]["order"], item["scores"]["perfect"]) == ([0, 1, 2], 1.0)
    # No worse than the written order, as it is the written order.
    assert item["scores"]["accuracy_search"] == 1.0


def test_a_report(tmp_path):
    rows = [
        {"id": f"{domain}{n}", "domain": domain, "sentences": [f"{domain} {n} {m}." for m in range(3 + n)]}
        for domain in ("news", "entertainment")
        for n in range(2)
    ]
    data = write_lines(tmp_path / "data.jsonl", rows)
    done = here(
        "run", "ordering", "--model", "random", "--data", data, "--output", tmp_path / "run", "--report"
    )
    assert done.code == 0, done.err
    results = json.loads((tmp_path / "run" / "results.json").read_text())
    (table,) = metrics_tables(results)
    shown = "".join(printed(table.to_rich()))
    assert "…" not in shown
    assert all(word in shown for word in ("all", "news", "entertainment"))
    page = (tmp_path / "run" / "report.html").read_text("utf-8")
    assert "find the order of sentences" in page
    assert 'aria-label="Sentences in their own place. ' in page
    assert ensue.compare(tmp_path / "run", tmp_path / "run")


def test_what_is_refused(tmp_path, corpus, models):
    def run(*more, model="random", data=corpus):
        return here("run", "ordering", "--model", model, "--data", data, "--output", tmp_path / "no", *more)

    refused(run("--set", "beam=0"), "beam=0", "whole number from 1")
    refused(run("--set", "method=exact"), "method=exact", "rescored, beam, neighbours")
    for method in ("beam", "rescored"):
        refused(
            run("--set", f"method={method}", model=str(models[1])), "Ordering needs a model that can score"
        )
    refused(run("--set", "words=3", model=str(models[1])), "words= is of models that score text")
    refused(run("--set", "context=2", "--set", "method=rescored"), "context= is of method=beam")
    refused(run("--set", "max_sentences=2"), "max_sentences=2", "whole number from 3")
    refused(here("run", "ordering/x", "--model", "random", "--data", corpus), "ordering has no tasks")
    assert not (tmp_path / "no").exists()
