"""The intruder on documents of every kind: versions, thresholds, resuming, comparing, and what is refused."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import ensue
from ensue.backends.baselines import RandomModel
from ensue.benchmarks.intruder import task
from ensue.benchmarks.intruder.edits import KINDS
from ensue.benchmarks.intruder.rules import RULES
from ensue.errors import EnsueError
from ensue.models.request import Request
from ensue.scoring.engine import score
from ensue.scoring.following import POLICY, Pieces, follow, measure
from ensue.scoring.verdict import calibrate, judge
from tests.support import tiny
from tests.support.command import here, read_lines, refused, write_lines
from tests.support.corpus import document, write_corpus

SHORT = "documents of fewer than 6 sentences"


def run(output, model="random", **settings):
    return ensue.run("intruder", model=model, output=output, **{"encoder": "none", **settings})


def value(result, metric, **settings):
    (row,) = [
        row
        for row in result.results["metrics"]
        if (row["task"], row["metric"], row["settings"]) == ("intruder", metric, settings)
    ]
    return row["value"]


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    return tiny.save_llama(folder / "llama", max_length=512), tiny.save_encoder(folder / "encoder")


@pytest.fixture(scope="module")
def reader(tmp_path_factory):
    return tiny.save_reader(tmp_path_factory.mktemp("readers") / "reader")


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return write_corpus(tmp_path_factory.mktemp("data") / "corpus.jsonl", (6, 7, 5, 9, 24, 8, 6))


@pytest.fixture(scope="module")
def finished(models, reader, corpus, tmp_path_factory):
    llama, encoder = models
    output = tmp_path_factory.mktemp("run") / "run"
    return run(output, str(llama), data=corpus, encoder=str(encoder), reader=str(reader))


def test_each_document_has_a_control_and_a_version_of_each_kind_it_allows(finished, corpus):
    texts = {row["id"]: row["sentences"] for row in read_lines(corpus)}
    by_document: dict[str, dict[str, Any]] = {}
    for item in finished.items:
        by_document.setdefault(item["cluster"], {})[item["settings"]["kind"]] = item
    assert list(by_document) == ["d0", "d1", "d3", "d4", "d5", "d6"]
    assert finished.results["skipped"][SHORT] == 1
    assert finished.results["notes"]["documents cut to 20 sentences"] == 1
    for name, versions in by_document.items():
        assert list(versions)[:4] == ["untouched", "random", "hard", "swapped"]
        count = min(20, len(texts[name]))
        for kind, item in versions.items():
            outputs = item["outputs"]
            assert set(outputs["values"]) == set(RULES)
            assert all(
                len(v) == count and v[0] is None and None not in v[1:] for v in outputs["values"].values()
            )
            assert len(outputs["places"]) == {"untouched": 0, "swapped": 2}.get(kind, 1)
        # Kinds that put another sentence in its place do so at the same one.
        assert versions["random"]["outputs"]["places"] == versions["hard"]["outputs"]["places"]
        (intruder,) = versions["random"]["outputs"]["sentences"]
        assert intruder in [s for other, text in texts.items() if other != name for s in text[:20]]
    assert len({item["content"] for item in finished.items}) == len(finished.items)


def test_the_values_are_those_of_the_text_measured_alone(finished, models, reader, corpus):
    llama, encoder = models
    scorer, vectors = ensue.load_model(str(llama)), ensue.load_model(str(encoder))
    texts = {row["id"]: row["sentences"][:20] for row in read_lines(corpus)}
    item = next(i for i in finished.items if i["id"] == "d3#swapped")
    a, b = item["outputs"]["places"]
    sentences = list(texts["d3"])
    sentences[a], sentences[b] = sentences[b], sentences[a]
    ((found,), _) = follow(scorer, [Pieces.joined(sentences)], encoder=vectors)
    (read,) = ensue.load_model(str(reader)).read([sentences])
    values = item["outputs"]["values"]
    for place in range(1, len(sentences)):
        one = found[place]
        assert values["received"][place] == pytest.approx(one.received, abs=1e-3)
        assert values["likeness"][place] == pytest.approx(one.likeness, abs=1e-5)
        assert values["belonging"][place] == pytest.approx(read[place], abs=1e-5)
        assert values["surprisal"][place] == pytest.approx(one.logprob / one.tokens, abs=1e-3)
        if one.given is not None:
            assert values["given"][place] == pytest.approx(one.given, abs=1e-3)


def test_the_scores_are_those_of_a_naive_loop(finished):
    controls = {i["cluster"]: i for i in finished.items if i["settings"]["kind"] == "untouched"}
    for item in finished.items:
        outputs = item["outputs"]
        for rule, values in outputs["values"].items():
            judged = dict(list(enumerate(values))[1:])
            first = min(judged, key=judged.get)
            below = judged[first] < outputs["thresholds"][rule]
            assert outputs["flagged"][rule] == (first if below else None)
            if not outputs["places"]:
                assert item["scores"][f"{rule}/false_alarms"] == float(below)
                continue
            hit = first in outputs["places"]
            assert item["scores"][f"{rule}/hit_rate"] == float(hit)
            assert item["scores"][f"{rule}/hit_rate_at"] == float(hit and below)
    for rule in RULES:
        for kind in ("random", "hard", "swapped"):
            chosen = [i for i in finished.items if i["settings"]["kind"] == kind]
            hits = [i["scores"][f"{rule}/hit_rate"] for i in chosen]
            assert value(finished, "hit_rate", kind=kind, rule=rule) == pytest.approx(np.mean(hits))
        alarms = [c["scores"][f"{rule}/false_alarms"] for c in controls.values()]
        assert value(finished, "false_alarms", kind="untouched", rule=rule) == pytest.approx(np.mean(alarms))
    # Six documents in six folds: the rate of a fifth is that of the 1.2-th least of five others.
    for name, control in controls.items():
        others = [min(c["outputs"]["values"]["gain"][1:]) for n, c in controls.items() if n != name]
        assert control["outputs"]["thresholds"]["gain"] == pytest.approx(min(others), abs=1e-6)
    assert finished.results["notes"]["documents judged by too few others for a false-alarm rate of 0.1"] == 6


def test_a_text_as_a_whole_is_as_good_as_what_follows_its_first_sentence(finished, models, corpus):
    scorer = ensue.load_model(str(models[0]))
    texts = {row["id"]: row["sentences"][:20] for row in read_lines(corpus)}
    controls = {i["cluster"]: i for i in finished.items if i["settings"]["kind"] == "untouched"}
    seen = set()
    for item in finished.items:
        sentences = list(texts[item["cluster"]])
        outputs = item["outputs"]
        if item["settings"]["kind"] == "swapped":
            a, b = outputs["places"]
            sentences[a], sentences[b] = sentences[b], sentences[a]
        elif outputs["places"]:
            sentences[outputs["places"][0]] = outputs["sentences"][0]
        if len(sentences) == 20:
            continue  # longer than the model: read in windows
        first, *rest = sentences
        (found,) = score(scorer, [Request(" " + " ".join(rest), first)], policy=POLICY).scores
        assert outputs["whole"] == pytest.approx(found.logprob_per_token, abs=1e-4)
        if outputs["places"]:
            better = controls[item["cluster"]]["outputs"]["whole"] > outputs["whole"] + 1e-4
            assert item["scores"]["whole/accuracy"] == float(better)
            seen.add(better)
    assert seen == {True, False}


def test_a_reader_is_judged_by_what_it_says_of_each_sentence(finished, reader, corpus, tmp_path):
    found = run(tmp_path / "run", str(reader), data=corpus)
    theirs = {item["id"]: item["outputs"]["values"]["belonging"] for item in finished.items}
    for item in found.items:
        values = item["outputs"]["values"]
        assert list(values) == ["belonging"]
        assert values["belonging"] == pytest.approx(theirs[item["id"]], abs=1e-5)
    with pytest.raises(EnsueError, match="one that reads is judged by belonging"):
        run(tmp_path / "other", str(reader), data=corpus, rules=["gain"])
    with pytest.raises(EnsueError, match="The rule belonging needs a reader"):
        run(tmp_path / "none", data=corpus, rules=["belonging"])


def test_random_finds_by_chance_and_raises_alarms_as_often_as_asked(tmp_path):
    data = write_corpus(tmp_path / "corpus.jsonl", (8,) * 240)
    found = run(tmp_path / "run", data=data, kinds=["random", "swapped"], false_alarms=0.25)
    rules = [rule for rule in RULES if rule not in ("likeness", "belonging")]
    for rule in rules:
        # Four sigmas of 240 documents.
        assert value(found, "hit_rate", kind="random", rule=rule) == pytest.approx(1 / 7, abs=0.091)
        assert value(found, "false_alarms", kind="untouched", rule=rule) == pytest.approx(0.25, abs=0.113)
        assert value(found, "auc", kind="random", rule=rule) == pytest.approx(0.5, abs=0.11)
        assert value(found, "rank", kind="random", rule=rule) == pytest.approx(4.0, abs=0.52)
        assert value(found, "hit_rate", kind="swapped", rule=rule) == pytest.approx(2 / 7, abs=0.12)
    assert value(found, "chance", kind="random") == pytest.approx(1 / 7)
    assert value(found, "chance", kind="swapped") == pytest.approx(2 / 7)


def test_unigram_receives_nothing_so_that_nothing_stands_out(tmp_path, corpus):
    found = run(tmp_path / "run", "unigram", data=corpus, kinds="random")
    for rule in ("received", "gain", "ratio", "given"):
        assert value(found, "hit_rate", kind="random", rule=rule) == 0.0
        assert value(found, "false_alarms", kind="untouched", rule=rule) == 0.0
        assert value(found, "auc", kind="random", rule=rule) == 0.5
    assert value(found, "auc", kind="random", rule="surprisal") != 0.5


def test_an_edit_depends_on_the_seed_and_not_on_the_model_or_the_other_kinds(tmp_path, corpus, finished):
    def edits(result):
        return {i["id"]: i["content"] for i in result.items}

    same = run(tmp_path / "same", data=corpus, kinds=["hard", "random"])
    assert edits(same).items() <= edits(finished).items()
    other = ensue.run(
        "intruder", model="random", data=corpus, output=tmp_path / "o", seed=1, encoder="none", kinds="random"
    )
    assert any(edits(other)[name] != edits(same)[name] for name in edits(other))
    assert "seed:1" in other.results["signature"]


def test_domains_and_positions_have_rows_of_their_own(tmp_path):
    rows = [{"domain": "law" if n % 2 else "news", "sentences": document(n, 9)} for n in range(8)]
    found = run(
        tmp_path / "run", data=write_lines(tmp_path / "c.jsonl", rows), kinds="random", rules="gain,given"
    )
    rates = [row for row in found.results["metrics"] if row["metric"] == "hit_rate"]
    whole = {row["task"]: row["n"] for row in rates if "position" not in row["settings"]}
    assert whole == {"intruder": 8, "intruder/law": 4, "intruder/news": 4}
    thirds = [row for row in rates if "position" in row["settings"] and row["settings"]["rule"] == "gain"]
    assert sum(row["n"] for row in thirds) == 8
    assert {row["task"] for row in thirds} == {"intruder"}
    assert {row["settings"]["rule"] for row in found.results["metrics"] if "rule" in row["settings"]} == {
        "gain",
        "given",
    }


def test_a_resumed_run_is_the_same_to_the_last_byte(tmp_path, models, corpus):
    llama, encoder = models
    settings = {"data": corpus, "encoder": str(encoder), "kinds": ["random", "swapped"]}
    whole = run(tmp_path / "whole", str(llama), **settings)

    def stop(done, total, unit):
        assert unit == "texts"
        if 0 < done < total:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "run", str(llama), progress=stop, **settings)
    assert not (tmp_path / "run" / "results.json").exists()
    resumed = run(tmp_path / "run", str(llama), resume=True, **settings)
    assert json.loads((resumed.folder / "run.json").read_text())["resumed_from"] > 0
    for name in ("items.jsonl", "examples.jsonl"):
        assert (resumed.folder / name).read_bytes() == (whole.folder / name).read_bytes()
    assert resumed.results["metrics"] == whole.results["metrics"]


def test_the_thresholds_of_the_models_card_are_shown_beside(tmp_path):
    data = write_corpus(tmp_path / "corpus.jsonl", (8,) * 30)
    texts = [row["sentences"] for row in read_lines(data)]
    model = RandomModel()
    measured, _ = measure(model, [Pieces.joined(text) for text in texts])
    calibration = calibrate(measured, model="random", encoder="none", data="corpus")
    known = {model.card.fingerprint: {"none": calibration.as_dict()}}
    model.card = replace(model.card, following=known)
    found = run(tmp_path / "run", model, data=data, kinds="random", false_alarms=0.2)
    alarms = [judge(one.sentences, calibration, 0.2).stands_out is not None for one in measured]
    assert value(found, "false_alarms", kind="untouched", rule="calibrated") == pytest.approx(np.mean(alarms))
    items = [i for i in found.items if i["settings"]["kind"] == "random"]
    hits = [i["outputs"]["flagged"]["calibrated"] in i["outputs"]["places"] for i in items]
    assert value(found, "hit_rate_at", kind="random", rule="calibrated") == pytest.approx(np.mean(hits))
    assert any(i["outputs"]["flagged"]["calibrated"] is not None for i in items)
    assert not any(
        r["metric"] == "auc" and r["settings"]["rule"] == "calibrated" for r in found.results["metrics"]
    )
    # A run from before the calibration is another run.
    with pytest.raises(EnsueError, match="a finished run with calibration"):
        run(tmp_path / "run", RandomModel(), data=data, kinds="random", false_alarms=0.2)
    # One that was made otherwise is told of.
    otherwise = replace(calibration, scored="dtype:bfloat16").as_dict()
    model.card = replace(model.card, following={model.card.fingerprint: {"none": otherwise}})
    noted = run(tmp_path / "otherwise", model, data=data, kinds="random")
    assert [n for n in noted.results["notes"] if "made otherwise (dtype:bfloat16 then" in n]
    # Fitted with another encoder, they say nothing here.
    known = {model.card.fingerprint: {"other": calibration.as_dict()}}
    model.card = replace(model.card, following=known)
    without = run(tmp_path / "other", model, data=data, kinds="random")
    assert not any(r["settings"].get("rule") == "calibrated" for r in without.results["metrics"])


def test_two_runs_are_compared_rule_by_rule(tmp_path, corpus, finished):
    other = run(tmp_path / "run", data=corpus, kinds=["random", "swapped"])
    comparison = ensue.compare(finished, other)
    rows = {(r.metric, r.settings["kind"], r.settings["rule"]): r for r in comparison.rows}
    assert ("rank", "random", "gain") in rows
    assert ("hit_rate", "random", "likeness") not in rows
    assert not any(kind == "hard" for _, kind, _ in rows)
    row = rows["rank", "random", "gain"]
    assert row.value_a == pytest.approx(value(finished, "rank", kind="random", rule="gain"))
    assert row.value_b == pytest.approx(value(other, "rank", kind="random", rule="gain"))
    assert row.test.difference == pytest.approx(row.value_a - row.value_b)
    assert here("compare", finished.folder, other.folder, "--shared").code == 0


def test_the_command_on_the_bundled_documents(tmp_path):
    output = tmp_path / "run"
    done = here(
        "run", "intruder", "--model", "random", "--set", "encoder=none", "--output", output, "--report"
    )
    assert done.code == 0, done.err
    assert "Intruder · random" in done.out
    for kind in KINDS:
        assert kind in done.out
    assert (output / "report.html").exists()
    again = here(
        "run", "intruder", "--model", "random", "--set", "encoder=none", "--output", output, "--format", "csv"
    )
    # A row a kind and rule, without likeness, and one for chance; two documents allow no entity edit.
    rows = [line.split(",") for line in again.out.splitlines()]
    assert len([row for row in rows if len(row) > 4]) == 1 + 5 * 7
    # Then which text is preferred as a whole, a row a kind.
    assert len([row for row in rows if len(row) == 4]) == 1 + 5
    assert {row[0]: row[-1] for row in rows if row[0] in KINDS} == dict.fromkeys(KINDS, "12") | {
        "entity": "10"
    }


@pytest.mark.parametrize(
    ("lengths", "settings", "words"),
    [
        ((6,), (), ("one document of 6 sentences or more", "at least two")),
        ((5, 5, 2), (), ("no document of 6 sentences or more",)),
        ((6, 6), ("encoder=none", "rules=likeness"), ("likeness needs an encoder",)),
        ((6, 6), ("kinds=strange",), ("Invalid kinds=strange", "random, hard")),
        ((6, 6), ("false_alarms=1",), ("a number between 0 and 1",)),
        ((6, 6), ("false_alarms=often",), ("a number",)),
        ((6, 6), ("max_sentences=5",), ("a whole number from 6",)),
        ((6, 6), ("encoder=random",), ("Likeness needs a model that can encode text", "random")),
        ((6, 6), ("encoder=none", "kinds=entity"), ("allows an edit of the kinds entity",)),
    ],
)
def test_what_is_refused_is_one_sentence(tmp_path, lengths, settings, words):
    rows = [
        {"id": f"d{n}", "sentences": [f"so it goes {'on ' * (n + 9 * place)}" for place in range(count)]}
        for n, count in enumerate(lengths)
    ]
    data = write_lines(tmp_path / "c.jsonl", rows)
    command = ["run", "intruder", "--model", "random", "--data", data, "--output", tmp_path / "run"]
    settings = settings or ("encoder=none",)
    refused(here(*command, *(word for one in settings for word in ("--set", one))), *words)
    assert not (tmp_path / "run").exists()


def test_a_task_and_a_model_that_cannot_score_are_refused(tmp_path, models, corpus):
    refused(here("run", "intruder/hard", "--model", "random"), "intruder has no tasks")
    command = ("run", "intruder", "--model", models[1], "--data", corpus, "--output", tmp_path / "r")
    refused(here(*command, "--set", "encoder=none"), "The intruder needs a model that can score text")


def test_what_is_measured_does_not_depend_on_how_much_is_scored_together(tmp_path, corpus, monkeypatch):
    def texts(result):
        return [(item["id"], item["outputs"], item["scores"]) for item in result.items]

    told = []
    whole = run(tmp_path / "whole", data=corpus)
    monkeypatch.setattr(task, "_ELSEWHERE", 3_000)
    divided = run(tmp_path / "divided", data=corpus, progress=lambda *now: told.append(now))
    assert texts(divided) == texts(whole)
    assert divided.results["tokens"] == whole.results["tokens"]
    done = [now[0] for now in told]
    assert done == sorted(done)
    assert len(set(done)) > 5
    assert told[-1] == (len(whole.items), len(whole.items), "texts")


def test_a_few_examples_are_kept_with_their_sentences(finished, corpus):
    texts = {row["id"]: row["sentences"][:20] for row in read_lines(corpus)}
    items = {item["id"]: item for item in finished.items}
    found = read_lines(finished.folder / "examples.jsonl")
    groups = Counter((row["kind"], row["right"]) for row in found)
    assert max(groups.values()) == 2
    assert ("untouched", True) not in groups
    for row in found:
        item, own = items[row["id"]], texts[row["document"]]
        assert row["values"] == item["outputs"]["values"]["following"]
        assert row["flagged"] == item["outputs"]["flagged"]["following"]
        differing = [n for n, (a, b) in enumerate(zip(own, row["sentences"], strict=True)) if a != b]
        assert differing == row["places"] == item["outputs"]["places"]
        assert row["before"] == [own[place] for place in differing]
        if row["kind"] != "untouched":
            assert row["right"] == bool(item["scores"]["following/hit_rate_at"])
    # All there are, where there are no more than two.
    for kind in ("random", "swapped"):
        right = [
            i["scores"]["following/hit_rate_at"] for i in items.values() if i["settings"]["kind"] == kind
        ]
        assert groups[kind, True] == min(2, right.count(1.0))
        assert groups[kind, False] == min(2, right.count(0.0))
    alarms = [i["scores"].get("following/false_alarms") for i in items.values()]
    assert groups["untouched", False] == min(2, alarms.count(1.0))
