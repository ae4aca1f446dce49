"""Transfer against the benchmarks it is made of, paired differences against the test alone, resuming and refusals."""

from __future__ import annotations

import json
from dataclasses import replace
from shutil import copytree

import numpy as np
import pytest

import ensue
from ensue.backends.baselines import RandomModel
from ensue.benchmarks.settings import resolve
from ensue.benchmarks.transfer.judging import metric_rows
from ensue.benchmarks.transfer.report.page import PAGE
from ensue.benchmarks.transfer.report.table import Transferred, anchors, in_words, tables, verdict
from ensue.benchmarks.transfer.task import TASK
from ensue.errors import EnsueError
from ensue.report.figure import Figure
from ensue.stats.paired import paired_test
from tests.support import tiny
from tests.support.command import here, read_lines, refused, write_lines
from tests.support.corpus import document, write_corpus
from tests.support.pages import printed
from tests.support.raters import InversionRater
from tests.support.run_context import run_context

HOW = {"block_size": [1, 2], "shuffles": 4, "kinds": ["swapped"]}


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("transfer")
    write_corpus(folder / "own.jsonl", (8, 9, 7))
    # One of the tales is too short for anything.
    write_corpus(folder / "tales.jsonl", (6, 7, 1), seed=1)
    rows = [
        {
            "id": f"{group}{system}",
            "group": str(group),
            "system": system,
            "sentences": [document(group, 4)[one] for one in order],
            "coherence": rating,
        }
        for group in range(4)
        for system, order, rating in (
            ("a", (0, 1, 2, 3), 3),
            ("b", (1, 0, 2, 3), 2),
            # Shorter, so that likelier as a whole is not likelier by the token.
            ("c", (3, 2), 2 + group % 2),
        )
    ]
    write_lines(folder / "rated.jsonl", rows)
    return folder


def prepared(place, **settings):
    given = {
        **HOW,
        "domains": f"tales:{place / 'tales.jsonl'}",
        "ratings": str(place / "rated.jsonl"),
        **settings,
    }
    return TASK.prepare("", str(place / "own.jsonl"), None, 0, resolve("transfer", TASK.settings, given))


def outcome(place, models, **settings):
    """Several models that no name stands for; the first is the run's own."""
    first, *others = models
    named = {f"m{number}": one for number, one in enumerate(others)}
    found = prepared(place, **({"models": ",".join(named)} if named else {}), **settings)
    with run_context(None) as context:
        return found.evaluate(first, replace(context, load=named.__getitem__))


@pytest.fixture(scope="module")
def done(place):
    """One that saw shuffled text and looks at four sentences, one that did not and looks at two, and chance."""
    return outcome(place, [InversionRater(4, shuffled=True), InversionRater(2), RandomModel()])


def rows_of(found, metric="accuracy"):
    return {
        (
            row["task"],
            *(row["settings"].get(key) for key in ("set", "block_size", "kind", "model", "against")),
        ): row
        for row in found.metrics
        if row["metric"] == metric
    }


def test_every_figure_is_that_of_the_benchmark_itself(place, done, tmp_path):
    rows = rows_of(done)
    for model in (InversionRater(4, shuffled=True), InversionRater(2), RandomModel()):
        name = model.card.name
        for data in ("own", "tales"):
            shuffled = ensue.run(
                "shuffle",
                model=model,
                data=place / f"{data}.jsonl",
                output=tmp_path / f"{name}-{data}-s",
                block_size=[1, 2],
                shuffles=4,
                allow_shuffle_trained="yes",
            )
            for row in shuffled.results["metrics"]:
                if row["metric"] == "accuracy":
                    own = rows["transfer/shuffle", data, row["settings"]["block_size"], None, name, None]
                    assert [own[key] for key in ("value", "ci95", "n")] == [
                        row[key] for key in ("value", "ci95", "n")
                    ]
            intruded = ensue.run(
                "intruder",
                model=model,
                data=place / f"{data}.jsonl",
                output=tmp_path / f"{name}-{data}-i",
                kinds="swapped",
                encoder="none",
            )
            found = {
                (row["metric"], row["settings"].get("rule")): row["value"]
                for row in intruded.results["metrics"]
                if row["settings"]["kind"] == "swapped" and "position" not in row["settings"]
            }
            assert (
                rows["transfer/intruder", data, None, "swapped", name, None]["value"]
                == found["accuracy", None]
            )
            rule = "removal" if name != "random" else "following"
            hits = rows_of(done, "hit_rate")["transfer/intruder", data, None, "swapped", name, None]
            assert hits["value"] == found["hit_rate", rule]
        rated = ensue.run("ratings", model=model, data=place / "rated.jsonl", output=tmp_path / f"{name}-r")
        measure = "model_rating" if name != "random" else "per_token"
        (row,) = [
            row
            for row in rated.results["metrics"]
            if (row["metric"], row["settings"]["measure"]) == ("accuracy", measure)
        ]
        assert rows["transfer/ratings", "people", None, None, name, None]["value"] == row["value"]
    assert len(rows) == 3 * (2 * 2 + 2 + 1)
    # The rater that looks at four sentences is no worse than the one that looks at two, and both better than chance.
    assert rows["transfer/shuffle", "own", 1, None, "inversions-4", None]["value"] > 0.8


def test_what_a_trained_model_is_ahead_by_is_the_paired_test(done):
    ahead = rows_of(done, "ahead")
    assert {key[-2:] for key in ahead} == {("inversions-4", "inversions-2"), ("inversions-4", "random")}
    for (task, data, size, kind, model, against), row in ahead.items():
        sides = []
        for name in (model, against):
            chosen = [
                item
                for item in done.items
                if item["task"] == task
                and item["settings"]["model"] == name
                and item["settings"]["set"] == data
                and (item["settings"].get("block_size"), item["settings"].get("kind")) == (size, kind)
            ]
            sides.append(
                {item["outputs"]["pair"]: (item["scores"]["accuracy"], item["cluster"]) for item in chosen}
            )
        a = [sides[0][pair][0] for pair in sides[0]]
        b = [sides[1][pair][0] for pair in sides[0]]
        assert row["value"] == pytest.approx(np.mean(a) - np.mean(b))
        test = paired_test(a, b, [cluster for _, cluster in sides[0].values()], bounds=(0, 1))
        assert row["ci95"] == [test.low, test.high]


def test_models_are_compared_on_the_pairs_that_both_answered():
    def item(model, pair, accuracy):
        return {
            "task": "transfer",
            "cluster": pair,
            "settings": {"k": 1, "model": model},
            "scores": {"accuracy": accuracy},
            "outputs": {"pair": pair},
        }

    items = [item("trained", f"p{n}", float(n < 2)) for n in range(6)]
    items += [item("plain", f"p{n}", float(n == 5)) for n in (5, 4, 3, 1)]
    rows = metric_rows(items, {"trained": True, "plain": False})
    (ahead,) = [row for row in rows if row["metric"] == "ahead"]
    # On p1, p3, p4 and p5 the first is right once, and so is the other.
    assert (ahead["value"], ahead["n"]) == (0.0, 4)
    items[-1]["scores"]["accuracy"] = 0.0
    items[6]["scores"]["accuracy"] = 0.0
    rows = metric_rows(items, {"trained": True, "plain": False})
    assert [row["value"] for row in rows if row["metric"] == "ahead"] == [0.25]
    # Of two that were trained, neither is held against the other.
    items += [item("another", f"p{n}", 1.0) for n in range(6)]
    rows = metric_rows(items, {"trained": True, "plain": False, "another": True})
    ahead = [row["settings"] for row in rows if row["metric"] == "ahead"]
    assert [(one["model"], one["against"]) for one in ahead] == [("trained", "plain"), ("another", "plain")]


def test_of_a_scorer_rated_texts_ask_for_the_likelihood_a_token(place):
    def item(name, rating, total, per_token):
        outputs = {"rating": rating, "total": total, "per_token": per_token}
        return {"id": name, "cluster": "g", "outputs": outputs, "scores": {}, "settings": {}}

    answers = prepared(place).tests[-1].answers_in([item("a", 1, -10.0, -2.0), item("b", 2, -20.0, -1.0)])
    assert [one["scores"] for one in answers] == [{"accuracy": 1.0}]


def test_the_table_the_words_and_the_picture(done, tmp_path):
    results = {"benchmark": "transfer", "model": "x", "signature": "", "metrics": done.metrics, "skipped": {}}
    accuracy, ahead = tables(results)
    for table in (accuracy, ahead):
        lines = printed(table.to_rich())
        assert max(map(len, lines)) <= 80
        assert not any("…" in line for line in lines)
    # Those that saw shuffled text come first and are marked.
    header = accuracy.to_csv().splitlines()[0].split(",")
    assert header[1::2][:3] == ["inversions-4*", "inversions-2", "random"]
    run = Transferred(results)
    assert (run.home.set, run.home.question["block_size"]) == ("own", 1)
    assert [anchors(run, test) for test in run.tests if test.set != "tales"] == [
        [0.978, 0.986],
        [],
        [0.72],
        [0.67],
    ]
    assert not any(anchors(run, test) for test in run.tests if test.set == "tales")
    words = in_words(run)
    assert len(words) == 2
    assert "inversions-4 against random" in words[1]
    assert "of 6 tests" in words[1]
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "results.json").write_text(json.dumps(results), "utf-8")
    (tmp_path / "run" / "run.json").write_text("{}", "utf-8")
    facts = PAGE.facts([tmp_path / "run"], None)
    picture = facts["sections"][0].picture.wide
    for name in ("inversions-4 (trained on shuffled text)", "inversions-2", "supervised (published)"):
        assert name in picture


def test_only_sure_differences_are_called_so():
    ends = ((0.01, 0.2), (0.0, 0.2), (-0.3, -0.1), (None, None))
    assert [verdict(Figure(0.1, *both)) for both in ends] == [1, 0, -1, 0]


def test_a_run_goes_on_with_what_every_model_has_rated(place):
    from ensue.records import Records

    whole = InversionRater(4, shuffled=True)
    outcome(place, [whole, InversionRater(2)])
    records = Records()
    found = prepared(place, models="other")

    def evaluate(first, second):
        with run_context(None) as context:
            lent = replace(context, records=records, load=lambda name: second)
            return found.evaluate(first, lent)

    stopped = InversionRater(2, most=70)
    with pytest.raises(KeyboardInterrupt):
        evaluate(InversionRater(4, shuffled=True), stopped)
    again, other = InversionRater(4, shuffled=True), InversionRater(2)
    resumed = evaluate(again, other)
    # The first had finished; of the second, what was not kept is rated.
    assert again.rated == 0 < other.rated < whole.rated
    assert resumed.metrics == outcome(place, [InversionRater(4, shuffled=True), InversionRater(2)]).metrics


def test_the_command_with_folders(place, tmp_path):
    first = tiny.save_llama(tmp_path / "first", max_length=512)
    second = tiny.save_llama(tmp_path / "second", max_length=512, seed=1)
    words = ["run", "transfer", "--model", first, "--data", place / "own.jsonl", "--output", tmp_path / "run"]
    words += ["--set", f"models={second},random", "--set", "block_size=1", "--set", "shuffles=2", "--report"]
    done = here(*words)
    assert done.code == 0, done.err
    results = json.loads((tmp_path / "run" / "results.json").read_text("utf-8"))
    assert {row["settings"]["model"] for row in results["metrics"]} == {"first", "second", "random"}
    assert "transfer?" in (tmp_path / "run" / "report.html").read_text("utf-8")
    assert here(*words).code == 0
    # A model that was trained anew is another, even under its name.
    tiny.save_llama(second, max_length=512, seed=2)
    refused(here(*words), str(tmp_path / "run"))


class ShortSighted(InversionRater):
    def count_cut(self, texts):
        return len(texts)


def test_what_models_beside_did_not_read_is_said(place, tmp_path):
    def run(name, model, **more):
        return ensue.run(
            "transfer", model=model, data=place / "own.jsonl", output=tmp_path / name, **HOW, **more
        )

    first = run("first", ShortSighted(4, shuffled=True)).results["notes"]
    assert any("reads only the beginning" in note for note in first)
    joined = run("joined", RandomModel(), beside=str(tmp_path / "first")).results["notes"]
    assert first.items() <= joined.items()


def spoilt(folder, place):
    """Copies of a run, each with one item or its results no longer as they were written."""
    items, results = read_lines(folder / "items.jsonl"), json.loads((folder / "results.json").read_text())
    first = items[0]
    scores = first["scores"]
    others = [
        items[:-1],
        [{**first, "scores": {**scores, "accuracy": 1.0 - scores["accuracy"]}}, *items[1:]],
        [{**first, "scores": {**scores, "accuracy": "1"}}, *items[1:]],
        [{**first, "scores": {}}, *items[1:]],
        [{**first, "outputs": {}}, *items[1:]],
        [{**first, "cluster": None}, *items[1:]],
        [{**first, "settings": {**first["settings"], "model": "another"}}, *items[1:]],
        items,
    ]
    for number, rows in enumerate(others):
        copy = place / str(number)
        copytree(folder, copy)
        write_lines(copy / "items.jsonl", rows)
        if rows is items:
            del results["skipped"]
            (copy / "results.json").write_text(json.dumps(results))
        yield copy


def test_models_asked_one_by_one_stand_beside_one_another(place, tmp_path):
    """Where each model has a run of its own, the last gives what one run of all would have."""

    def run(name, model, **more):
        how = {**HOW, "domains": f"tales:{place / 'tales.jsonl'}", **more}
        how = {key: value for key, value in how.items() if value is not None}
        return ensue.run("transfer", model=model, data=place / "own.jsonl", output=tmp_path / name, **how)

    rated = {"ratings": str(place / "rated.jsonl")}
    run("first", InversionRater(4, shuffled=True), **rated)
    run("second", InversionRater(2), **rated)
    beside = f"{tmp_path / 'first'},{tmp_path / 'second'}"
    joined = run("joined", RandomModel(), beside=beside, **rated)
    models = [RandomModel(), InversionRater(4, shuffled=True), InversionRater(2)]
    assert joined.results["metrics"] == outcome(place, models).metrics
    assert "models:random" in joined.results["signature"]
    assert "inversions-4/inversions-4,inversions-2/inversions-2 " in joined.results["signature"]
    # What only those beside were asked had texts left out, too.
    fewer = run("fewer", RandomModel(), domains=None, beside=beside)
    assert fewer.results["skipped"] == joined.results["skipped"] != {}
    assert all(", tales: " in what for what in fewer.results["skipped"])
    # A model that was not asked everything has no figure there, and the others have theirs.
    run("apart", InversionRater(3), domains=None)
    less = run("less", RandomModel(), beside=str(tmp_path / "apart"), **rated).results["metrics"]
    asked = {
        (row["task"], row["settings"]["set"]) for row in less if row["settings"]["model"] == "inversions-3"
    }
    assert asked == {("transfer/shuffle", "own"), ("transfer/intruder", "own")}
    for name, wrong in {
        "random is among the models twice": {"beside": str(tmp_path / "joined"), **rated},
        "was run with shuffles 4, not 3": {"beside": beside, "shuffles": 3},
        "was run with seed 0, not 1": {"beside": beside, "seed": 1},
        r"asked about other texts \(shuffle tales\)": {
            "beside": beside,
            "domains": f"tales:{place / 'own.jsonl'}",
        },
        "there is no such folder": {"beside": str(tmp_path / "none")},
    }.items():
        with pytest.raises(EnsueError, match=name):
            run("wrong", RandomModel(), **wrong)
    # Nothing can be put side by side where no test is the same, nor of a run whose items are not all there.
    with pytest.raises(EnsueError, match=r"none of these tests but shuffle own, .*names of their files"):
        ensue.run(
            "transfer",
            model=RandomModel(),
            data=place / "tales.jsonl",
            output=tmp_path / "wrong",
            **HOW,
            beside=str(tmp_path / "apart"),
        )
    for spoiled in spoilt(tmp_path / "apart", tmp_path / "spoilt"):
        with pytest.raises(EnsueError, match="not those of its results; run it again"):
            run("wrong", RandomModel(), beside=str(spoiled), **rated)
    other = ensue.run("shuffle", model=RandomModel(), data=place / "own.jsonl", output=tmp_path / "other")
    with pytest.raises(EnsueError, match="is a run of shuffle, not of transfer"):
        run("wrong", RandomModel(), beside=str(other.folder))
    assert not (tmp_path / "wrong").exists()


def test_what_is_refused(place, tmp_path):
    words = (
        "run",
        "transfer",
        "--model",
        "random",
        "--data",
        place / "own.jsonl",
        "--output",
        tmp_path / "no",
    )
    refused(here(*words, "--set", "domains=tales"), "sets as NAME:PATH")
    refused(here(*words, "--set", "domains=own:x.jsonl"), "Two sets are called own")
    refused(here(*words, "--set", "models=random"), "random is among the models twice")
    refused(here(*words, "--set", f"ratings={tmp_path / 'none.jsonl'}"), "is not there")
    alone = [{"text": "A b. C d.", "rating": n, "group": group} for n, group in ((1, "a"), (2, "b"))]
    apart = write_lines(tmp_path / "apart.jsonl", [*alone, {"text": "E f. G h.", "rating": 1, "group": "a"}])
    refused(
        here(*words, "--set", f"ratings={apart}"), "no two texts of one `group` that people rate differently"
    )
    few = write_lines(tmp_path / "few.jsonl", [{"sentences": [f"A {n}." for n in range(8)]}])
    refused(here(*words, "--set", f"domains=few:{few}"), "intruders come from other documents")
    one = write_lines(tmp_path / "one.jsonl", [{"sentences": ["A."]}, {"sentences": ["B."]}])
    refused(here(*words, "--set", f"domains=one:{one}"), "long enough to shuffle")
    # All before any model was asked anything.
    assert not (tmp_path / "no").exists()
    refused(here("run", "transfer/x", "--model", "random"), "transfer has no tasks")
    encoder = tiny.save_encoder(tmp_path / "encoder")
    refused(
        here(*words, "--set", f"models={encoder}"), "Transfer needs a model that can score text", "encoder"
    )
    with pytest.raises(EnsueError, match="Invalid max_sentences=5"):
        prepared(place, max_sentences=5)
