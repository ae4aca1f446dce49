"""The Shuffle Test on documents of every kind: what is counted, left out, drawn and refused."""

from __future__ import annotations

import json

import pytest
from scipy import stats

import ensue
from ensue.backends.baselines import RandomModel
from ensue.models.card import write_card_facts
from tests.support import tiny
from tests.support.command import here, refused, write_lines
from tests.support.corpus import document, write_corpus


def test_one_document_has_a_value_and_no_interval(tmp_path):
    data = write_corpus(tmp_path / "one.jsonl", (6,))
    run = ensue.run("shuffle", model="random", data=data, output=tmp_path / "run")
    assert all(row["ci95"] == [None, None] for row in run.results["metrics"])
    assert here("report", run.folder).code == 0


def test_documents_too_short_are_counted_for_each_block_size(tmp_path):
    data = write_corpus(tmp_path / "corpus.jsonl", (1, 2, 3, 4, 7))
    run = ensue.run("shuffle", model="random", data=data, output=tmp_path / "run")
    assert run.results["skipped"] == {
        "too short for block size 1": 1,
        "too short for block size 2": 2,
        "too short for block size 3": 3,
        "too short for block size 4": 4,
        "too short for block size 5": 4,
    }
    pairs_of = [row for row in run.results["metrics"] if row["metric"] == "accuracy"]
    clusters = {row["settings"]["block_size"]: row["clusters"] for row in pairs_of}
    assert clusters == {1: 4, 2: 3, 3: 2, 4: 1, 5: 1}
    pairs = {r["settings"]["block_size"]: r["n"] for r in pairs_of}
    # 2 sentences: 1 order; 3: 5; 4 and 7: 20. Blocks of 2: 2, 2 and 4 of them, 1 + 1 + 20 orders; and so on.
    assert pairs == {1: 1 + 5 + 20 + 20, 2: 1 + 1 + 20, 3: 1 + 5, 4: 1, 5: 1}
    # The authors leave no document out.
    assert {row["n"] for row in run.results["metrics"] if row["metric"] == "accuracy_authors"} == {5}


def test_documents_that_read_alike_in_any_order_are_counted(tmp_path):
    rows = [{"sentences": ["No."] * 4}, {"sentences": ["No.", "No. No."]}, {"sentences": ["No.", "Yes."] * 2}]
    data = write_lines(tmp_path / "corpus.jsonl", rows)
    run = ensue.run("shuffle", model="random", data=data, output=tmp_path / "run", block_size=[1, 2])
    assert run.results["skipped"] == {
        "all orders read alike at block size 1": 2,
        "all orders read alike at block size 2": 2,
        "too short for block size 2": 1,
    }
    # No Yes No Yes has 4! / (2! 2!) = 6 texts, one of them the original.
    assert [item["cluster"] for item in run.items] == ["corpus:3"] * 5


def test_unigram_cannot_tell_any_order_from_another(tmp_path):
    run = ensue.run("shuffle", model="unigram", output=tmp_path / "run", shuffles=5)
    for row in run.results["metrics"]:
        tied = row["value"] == 1.0
        assert tied == ("ties" in row["metric"])
        # All documents say the same, with five pairs each: Wilson's interval of as many answers as documents.
        wilson = stats.binomtest(row["clusters"] * tied, row["clusters"]).proportion_ci(method="wilson")
        assert row["ci95"] == pytest.approx([wilson.low, wilson.high])


def test_random_is_right_half_of_the_time(tmp_path):
    # One shuffle a document: 400 independent pairs, whose share is within 0.1 of a half four sigmas out.
    data = write_corpus(tmp_path / "corpus.jsonl", (4,) * 400)
    run = ensue.run("shuffle", model="random", data=data, output=tmp_path / "run", shuffles=1, block_size=1)
    accuracy, _, ties, _ = run.results["metrics"][:4]
    assert accuracy["n"] == 400
    assert accuracy["value"] == pytest.approx(0.5, abs=0.1)
    assert ties["value"] == 0.0
    other = ensue.run(
        "shuffle", model=RandomModel(seed=1), data=data, output=tmp_path / "other", shuffles=1, block_size=1
    )
    assert [i["scores"] for i in other.items] != [i["scores"] for i in run.items]


def orders(run: ensue.Run, name: str) -> list[tuple[int, list[int]]]:
    return [
        (item["settings"]["block_size"], item["outputs"]["order"])
        for item in run.items
        if item["cluster"] == name
    ]


def test_a_documents_orders_do_not_depend_on_the_limit_or_its_neighbours(tmp_path):
    rows = [{"id": f"d{n}", "sentences": document(n, 9)} for n in range(6)]
    data = write_lines(tmp_path / "corpus.jsonl", rows)
    turned = write_lines(tmp_path / "turned.jsonl", rows[::-1])
    every = ensue.run("shuffle", model="random", data=data, output=tmp_path / "every")
    first = ensue.run("shuffle", model="random", data=data, output=tmp_path / "first", limit=2)
    other = ensue.run("shuffle", model="random", data=turned, output=tmp_path / "other", block_size=[3, 1])
    for name in ("d0", "d1"):
        assert orders(first, name) == orders(every, name)
        assert sorted(orders(other, name)) == sorted(o for o in orders(every, name) if o[0] in (1, 3))
    assert {item["cluster"] for item in first.items} == {"d0", "d1"}
    seeded = ensue.run("shuffle", model="random", data=data, output=tmp_path / "seeded", seed=1)
    assert orders(seeded, "d0") != orders(every, "d0")
    assert seeded.results["signature"].endswith("seed:1")


def test_a_model_trained_on_shuffled_text_is_refused_until_it_is_allowed(tmp_path):
    folder = tiny.save_llama(tmp_path / "llama")
    data = write_corpus(tmp_path / "corpus.jsonl", (4, 4))
    write_card_facts(folder, trained_on_shuffled_text=True, training="suffix model, shuffled negatives")
    output = tmp_path / "run"
    command = ("run", "shuffle", "--model", folder, "--data", data, "--output", output, "--set", "shuffles=1")
    refused(here(*command), "llama was trained on shuffled text", "zero-shot", "allow_shuffle_trained=yes")
    assert not (output / "results.json").exists()
    allowed = here(*command, "--set", "allow_shuffle_trained=yes", "--json")
    assert allowed.code == 0
    assert json.loads(allowed.out)["signature"].endswith("zero-shot:unchecked")
    shown = json.loads(here("models", "show", folder, "--json").out)
    assert shown["trained_on_shuffled_text"] is True
    assert shown["training"] == "suffix model, shuffled negatives"


def test_domains_get_rows_of_their_own(tmp_path):
    rows = [
        {"domain": name, "sentences": document(n, 5)} for n, name in enumerate(["law", "news", "law", "blog"])
    ]
    data = write_lines(tmp_path / "corpus.jsonl", rows)
    run = ensue.run("shuffle", model="random", data=data, output=tmp_path / "run", block_size=1)
    found = {r["task"]: r["clusters"] for r in run.results["metrics"]}
    assert found == {"shuffle": 4, "shuffle/blog": 1, "shuffle/law": 2, "shuffle/news": 1}


def test_plain_text_is_split_into_sentences_or_lines(tmp_path):
    folder = tmp_path / "stories"
    folder.mkdir()
    (folder / "a.txt").write_text("Mr. Orr ran. He fell.\nThen it rained.\n")
    by_sentence = ensue.run("shuffle", model="random", data=folder, output=tmp_path / "s", block_size=1)
    by_line = ensue.run(
        "shuffle", model="random", data=folder, output=tmp_path / "l", block_size=1, split="lines"
    )
    assert len(by_sentence.items) == 5
    assert len(by_line.items) == 1
