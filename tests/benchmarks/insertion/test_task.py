"""Insertion on documents: what is taken out, rows, encoders, resuming, reports and what is refused."""

from __future__ import annotations

import json

import pytest

import ensue
from ensue.runs.tables import metrics_tables
from tests.support import tiny
from tests.support.command import here, read_lines, refused, write_lines
from tests.support.corpus import write_corpus
from tests.support.pages import printed


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    return tiny.save_llama(folder / "llama", max_length=512), tiny.save_encoder(folder / "encoder")


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return write_corpus(tmp_path_factory.mktemp("data") / "corpus.jsonl", (4, 7, 2, 5))


@pytest.fixture(scope="module")
def finished(models, corpus, tmp_path_factory):
    return ensue.run(
        "insertion", model=str(models[0]), data=corpus, output=tmp_path_factory.mktemp("r") / "run", removed=3
    )


def figures(run, task="insertion"):
    return {row["metric"]: row for row in run.results["metrics"] if row["task"] == task}


def test_rows_are_means_of_items_and_chance_is_that_of_the_lengths(finished):
    found = figures(finished)
    assert finished.results["skipped"] == {"documents of fewer than 3 sentences": 1}
    items = list(finished.items)
    assert [item["cluster"] for item in items] == ["d0"] * 3 + ["d1"] * 3 + ["d3"] * 3
    for metric in ("accuracy", "distance"):
        values = [item["scores"][metric] for item in items]
        assert found[metric]["value"] == pytest.approx(sum(values) / 9)
        assert (found[metric]["n"], found[metric]["clusters"]) == (9, 3)
    assert found["chance"]["value"] == pytest.approx((1 / 4 + 1 / 7 + 1 / 5) / 3)
    assert found["chance"]["ci95"] == [None, None]
    far = []
    for item in items:
        place = int(item["id"].partition("#")[2]) - 1
        assert item["outputs"]["right"] == [place]
        count = len(item["outputs"]["values"])
        far.append(sum(abs(at - place) for at in range(count)) / count)
        best = max(range(count), key=item["outputs"]["values"].__getitem__)
        assert item["scores"] == {"accuracy": float(best == place), "distance": abs(best - place)}
    assert found["chance_distance"]["value"] == pytest.approx(sum(far) / 9)


def test_which_sentences_are_taken_out_depends_on_the_document_and_the_seed_alone(models, corpus, tmp_path):
    def taken(**settings):
        run = ensue.run("insertion", model="random", data=corpus, output=tmp_path / str(settings), **settings)
        return [item["id"] for item in run.items]

    three = taken(removed=3)
    assert [one for one in three if one.startswith("d0")] == taken(removed=3, limit=1)
    assert set(three) < set(taken(removed=4))
    assert three != taken(removed=3, seed=1)
    every = taken(removed="none")
    assert every == [f"d{n}#{place + 1}" for n, count in ((0, 4), (1, 7), (3, 5)) for place in range(count)]


def test_an_encoder_puts_sentences_beside_what_is_like_them(models, corpus, tmp_path):
    run = ensue.run("insertion", model=str(models[1]), data=corpus, output=tmp_path / "run")
    assert "method:neighbours removed:5" in run.results["signature"]
    assert (run.results["tokens"], len(list(run.items))) == (0, 14)
    other = ensue.run(
        "insertion", model=str(models[0]), data=corpus, output=tmp_path / "pairs", method="neighbours"
    )
    assert "method:neighbours" in other.results["signature"]
    assert other.results["tokens"] > 0
    assert ensue.compare(run, other)


def test_chance_counts_every_place_where_the_sentence_reads_alike(tmp_path):
    rows = [{"id": "d", "sentences": ["One.", "No.", "No.", "Two.", "Three."]}]
    data = write_lines(tmp_path / "data.jsonl", rows)
    found = ensue.run("insertion", model="random", data=data, output=tmp_path / "run", removed="none")
    outputs = {item["id"]: item["outputs"] for item in found.items}
    assert [outputs[f"d#{n}"]["right"] for n in range(1, 6)] == [[0], [1, 2], [1, 2], [3], [4]]
    assert [outputs[f"d#{n}"]["chance"] for n in range(1, 6)] == [0.2, 0.4, 0.4, 0.2, 0.2]
    # Of positions 0 to 4, those off 1 and 2 by so many: 1, 0, 0, 1, 2.
    far = [outputs[f"d#{n}"]["chance_distance"] for n in range(1, 6)]
    assert far == pytest.approx([2.0, 0.8, 0.8, 1.4, 2.0])


def test_two_domains_have_rows_of_their_own_and_a_report(tmp_path, models):
    rows = [
        {"id": f"{domain}{n}", "domain": domain, "sentences": [f"{domain} {n} {m}." for m in range(4)]}
        for domain in ("news", "tales")
        for n in range(2)
    ]
    data = write_lines(tmp_path / "data.jsonl", rows)
    done = here(
        "run", "insertion", "--model", "random", "--data", data, "--output", tmp_path / "run", "--report"
    )
    assert done.code == 0, done.err
    assert all(word in done.out for word in ("all", "news", "tales", "chance"))
    (table,) = metrics_tables(json.loads((tmp_path / "run" / "results.json").read_text()))
    assert "…" not in "".join(printed(table.to_rich()))
    page = (tmp_path / "run" / "report.html").read_text("utf-8")
    assert "put a sentence back into its place" in page
    assert 'aria-label="Sentences put back. ' in page
    assert {
        row["task"] for row in json.loads((tmp_path / "run" / "results.json").read_text())["metrics"]
    } == {
        "insertion",
        "insertion/news",
        "insertion/tales",
    }


def test_a_run_goes_on_from_its_journal(models, corpus, tmp_path, finished):
    """What is finished is taken; the figures are the same."""
    folder = tmp_path / "run"
    again = ensue.run("insertion", model=str(models[0]), data=corpus, output=folder, removed=3)
    assert again.results["metrics"] == finished.results["metrics"]
    assert read_lines(folder / "items.jsonl") == read_lines(finished.folder / "items.jsonl")


def test_what_is_refused(tmp_path, corpus, models):
    def run(*more, model="random", data=corpus):
        return here("run", "insertion", "--model", model, "--data", data, "--output", tmp_path / "no", *more)

    refused(run("--set", "removed=0"), "removed=0", "whole number from 1")
    refused(run("--set", "method=best"), "method=best", "text, neighbours")
    refused(run("--set", "after=-1"), "after=-1")
    refused(run("--set", "method=text", model=str(models[1])), "Insertion needs a model that can score text")
    short = write_corpus(tmp_path / "short.jsonl", (1, 2))
    refused(run(data=short), "No document of", "has 3 sentences or more")
    refused(here("run", "insertion/x", "--model", "random", "--data", corpus), "insertion has no tasks")
    assert not (tmp_path / "no").exists()
