"""Models that rate texts in the Shuffle Test, against the ratings of each pair taken one by one."""

from __future__ import annotations

from collections import defaultdict

import pytest

import ensue
from ensue.errors import EnsueError
from ensue.runs.report import write_report
from ensue.runs.tables import metrics_tables
from tests.benchmarks.grading.agreement import agree, graded, submitted
from tests.support import tiny
from tests.support.command import here, read_lines, refused
from tests.support.corpus import write_corpus
from tests.support.raters import InversionRater, inversions

SETTINGS = ("--set", "block_size=1,3", "--set", "shuffles=8")


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return write_corpus(tmp_path_factory.mktemp("data") / "corpus.jsonl", (9, 6, 4, 12))


@pytest.fixture(scope="module")
def run(corpus, tmp_path_factory):
    return ensue.run(
        "shuffle",
        model=InversionRater(sees=4),
        data=corpus,
        output=tmp_path_factory.mktemp("r") / "run",
        block_size=[1, 3],
        shuffles=8,
    )


def expected(corpus, items):
    """Who wins each pair, from the order each item states, and the share by block size."""
    texts = {row["id"]: row["sentences"] for row in read_lines(corpus)}
    won = defaultdict(list)
    for item in items:
        text, size = texts[item["cluster"]], item["settings"]["block_size"]
        blocks = [text[begin : begin + size] for begin in range(0, len(text), size)]
        mixed = [one for block in item["outputs"]["order"] for one in blocks[block]]
        won[size].append((inversions(text, 4) < inversions(mixed, 4), inversions(mixed, 4) == 0))
    return won


def test_the_original_wins_where_it_is_rated_higher(run, corpus):
    won = expected(corpus, run.items)
    rows = {(row["metric"], row["settings"]["block_size"]): row for row in run.results["metrics"]}
    for size, pairs in won.items():
        assert rows["accuracy", size]["value"] == pytest.approx(sum(a for a, _ in pairs) / len(pairs))
        assert rows["ties", size]["value"] == pytest.approx(sum(b for _, b in pairs) / len(pairs))
        assert [
            item["scores"]["accuracy"] for item in run.items if item["settings"]["block_size"] == size
        ] == [float(a) for a, _ in pairs]
    assert 0 < rows["ties", 3]["value"] < 1
    # Nothing is said per token, of tokens or of surprisal.
    assert {metric for metric, _ in rows} == {"accuracy", "ties", "accuracy_by_document", "accuracy_authors"}
    assert run.results["tokens"] == 0
    assert "model:inversions-4 weights:inversions-4 by:rating" in run.results["signature"]
    assert not (run.folder / "profiles.jsonl").exists()


def test_each_text_is_rated_once(corpus, tmp_path):
    rater = InversionRater()
    done = ensue.run("shuffle", model=rater, data=corpus, output=tmp_path / "run", block_size=1, shuffles=3)
    assert rater.rated == 4 + len(done.items)


def test_ratings_survive_a_kill(corpus, tmp_path):
    how = {"data": corpus, "output": tmp_path / "run", "block_size": [1, 3], "shuffles": 20}
    whole = InversionRater(sees=4)
    straight = ensue.run("shuffle", model=whole, **{**how, "output": tmp_path / "whole"})
    with pytest.raises(KeyboardInterrupt):
        # One portion of 64 texts is rated and kept, the next is not.
        ensue.run("shuffle", model=InversionRater(sees=4, most=66), **how)
    again = InversionRater(sees=4)
    resumed = ensue.run("shuffle", model=again, resume=True, **how)
    assert again.rated == whole.rated - 64 > 0
    assert resumed.results["metrics"] == straight.results["metrics"]


def test_one_trained_on_shuffled_text_is_refused_unless_it_is_wanted(corpus, tmp_path):
    rater = InversionRater(shuffled=True)
    with pytest.raises(EnsueError, match="trained on shuffled text"):
        ensue.run("shuffle", model=rater, data=corpus, output=tmp_path / "run")
    done = ensue.run(
        "shuffle", model=rater, data=corpus, output=tmp_path / "run", allow_shuffle_trained="yes", shuffles=2
    )
    assert {row["value"] for row in done.results["metrics"] if row["metric"] == "accuracy"} == {1.0}


def test_tables_page_comparison_and_submission(run, corpus, tmp_path):
    other = ensue.run(
        "shuffle", model="random", data=corpus, output=tmp_path / "random", block_size=[1, 3], shuffles=8
    )
    (table,) = metrics_tables(run.results, run.folder)
    assert "perplexity" not in table.caption
    page = write_report(run.folder, tmp_path / "page.html", beside=[other.folder]).read_text("utf-8")
    assert "prefers the original to" in page
    assert "perplexity" not in page
    compared = ensue.compare(run, other)
    assert compared
    said = graded("shuffle", submitted("shuffle", run.folder), corpus, *SETTINGS)
    assert agree(run, said) == {}


def test_a_model_that_does_both_is_asked_for_what_is_said(corpus, tmp_path):
    from ensue.backends.baselines import RandomModel

    class Rating(RandomModel):
        def rate(self, texts):
            return InversionRater().rate(texts)

    how = {"data": corpus, "block_size": 1, "shuffles": 2}
    by_rating = ensue.run("shuffle", model=Rating(), output=tmp_path / "a", by="rating", **how)
    assert by_rating.results["metrics"][0]["value"] == 1.0
    assert "rating" in by_rating.items[0]["outputs"]["original"]
    scored = ensue.run("shuffle", model=Rating(), output=tmp_path / "b", **how)
    assert "logprob" in scored.items[0]["outputs"]["original"]


def test_what_cannot_be_is_refused(corpus, tmp_path):
    with pytest.raises(EnsueError, match="can only rate how coherent a text is"):
        ensue.run("shuffle", model=InversionRater(), data=corpus, output=tmp_path / "a", by="likelihood")
    llama = tiny.save_llama(tmp_path / "llama")
    done = here(
        "run", "shuffle", "--model", llama, "--data", corpus, "--output", tmp_path / "b", "--set", "by=rating"
    )
    refused(done, "rate how coherent a text is", "llama")


class Nan(InversionRater):
    def rate(self, texts):
        return [float("nan") for _ in texts]


class Few(InversionRater):
    def rate(self, texts):
        return [0.0]


def test_ratings_that_are_none_are_not_compared(corpus, tmp_path):
    with pytest.raises(EnsueError, match="makes nan of the text that begins"):
        ensue.run("shuffle", model=Nan(), data=corpus, output=tmp_path / "a")
    with pytest.raises(EnsueError, match="gave 1 ratings of 64 texts"):
        ensue.run("shuffle", model=Few(), data=corpus, output=tmp_path / "b")
