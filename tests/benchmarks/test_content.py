"""Every benchmark writes into every item a digest of what was asked and of nothing else, worked out here by hand."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import ensue
from ensue.benchmarks.base import RunContext
from ensue.benchmarks.chapterbreak.ranking import Ranked, SuffixChoice
from ensue.benchmarks.chapterbreak.task import items_of
from ensue.benchmarks.discoeval.data import SPECS, read_task
from ensue.benchmarks.discoeval.judging import judge
from ensue.benchmarks.discoeval.probe import Choices, Probe
from ensue.benchmarks.nlu.examples import Example, TextSpan
from ensue.benchmarks.nlu.judging import items
from ensue.benchmarks.senteval.task import TASK as senteval
from ensue.benchmarks.settings import resolve
from ensue.benchmarks.squality.human_eval import PROPERTIES
from tests.benchmarks.chapterbreak.test_task import examples
from tests.benchmarks.discoeval.folders import write_suite
from tests.benchmarks.nlu.answered import answer, spec, task
from tests.benchmarks.qags.small_sets import Nothing, prepared, write_sets
from tests.benchmarks.senteval.folders import WordEncoder, write_downstream
from tests.benchmarks.squality.invented import ANSWERS, ASKED, STORY, evaluation_row, story_row, write_rows


def digest(*parts: object) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]


def contents(found: Any) -> dict[str, str]:
    return {item["id"]: item["content"] for item in found}


def corpus(path: Path, last: str) -> Path:
    rows = [{"id": "d", "sentences": ["It rained.", "We stayed in.", "Für Elise played.", last]}]
    path.write_text(json.dumps(rows[0]) + "\n")
    return path


def test_a_shuffled_document_is_its_sentences_in_their_own_order(tmp_path: Path) -> None:
    data = corpus(tmp_path / "a.jsonl", "Then it cleared.")
    runs = [
        ensue.run(
            "shuffle", model="random", data=data, output=tmp_path / f"run{seed}", seed=seed, block_size=1
        )
        for seed in (0, 1)
    ]
    expected = digest(["It rained.", "We stayed in.", "Für Elise played.", "Then it cleared."])
    assert runs[0].items[0]["outputs"]["order"] != runs[1].items[0]["outputs"]["order"]
    assert {item["content"] for run in runs for item in run.items} == {expected}
    other = ensue.run(
        "shuffle", model="random", data=corpus(tmp_path / "b.jsonl", "It poured."), output=tmp_path / "other"
    )
    assert expected not in contents(other.items).values()


def test_an_edited_document_is_its_sentences_and_the_edit(tmp_path: Path) -> None:
    texts = {name: [f"{name} {place}." for place in range(6)] for name in ("a", "b")}
    rows = [json.dumps({"id": name, "sentences": sentences}) for name, sentences in texts.items()]
    (tmp_path / "c.jsonl").write_text("\n".join(rows))
    run = ensue.run(
        "intruder",
        model="random",
        data=tmp_path / "c.jsonl",
        output=tmp_path / "run",
        encoder="none",
        kinds="random,swapped",
    )
    for item in run.items:
        outputs = item["outputs"]
        new = outputs.get("sentences", [])
        edit = (item["settings"]["kind"], outputs["places"], new)
        assert item["content"] == digest(texts[item["cluster"]], *edit)
        assert len(new) == len(outputs["places"])
    assert len(run.items) == 6


def test_a_chapter_break_is_its_context_and_its_suffixes() -> None:
    example = examples(1)[0]
    drawn = ("Another work.", "Yet another.")
    question = SuffixChoice(example, {"in-book": example.negatives, "same-split": drawn})
    scores = dict.fromkeys(question.suffixes, -1.0)
    found = [
        {
            item["settings"]["negatives"]: item["content"]
            for item in items_of(Ranked(question, n, 128, scores), False)
        }
        for n in (128, 256)
    ]
    assert found[0] == found[1]
    assert found[0] == {
        "in-book": digest(example.context, example.gold, example.negatives),
        "same-split": digest(example.context, example.gold, drawn),
    }


def test_a_probe_is_its_sentences_and_its_label(tmp_path: Path) -> None:
    write_suite(tmp_path)
    data = read_task(tmp_path, next(one for one in SPECS if one.name == "BSO/wiki"))
    wrong = {split: [[1 - example.label for example in rows]] for split, rows in data.splits.items()}
    probe = Probe.from_json({"layer": 3, "predictions": wrong, "fits": [{}]})
    judged = {
        one.split: contents(one.items())
        for one in judge(data, probe, Choices("paper", True, True, (0,), "cpu"))
    }
    first, second = (tmp_path / "BSO/wiki/valid.txt").read_text("utf-8").splitlines()[0].split("\t")
    assert judged["dev"]["BSO/wiki/dev/1#in-order#layer3"] == digest([[first], [second]], "1")
    assert judged["dev"]["BSO/wiki/dev/1#swapped#layer3"] == digest([[second], [first]], "0")


def test_a_row_of_senteval_is_its_sentences_and_its_gold(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ENSUE_HOME", str(tmp_path / "home"))
    write_downstream(tmp_path / "downstream")
    settings = resolve("senteval", senteval.settings, {"classifier_device": "cpu"})
    for name, gold in (("STSBenchmark", "gold"), ("SICKEntailment", "label")):
        suite = senteval.prepare(name, str(tmp_path), None, 0, settings)
        outcome = suite.evaluate(WordEncoder(), RunContext())
        (data,) = suite.data.tasks  # type: ignore[attr-defined]
        for item in outcome.items:
            part, _, _ = item["id"].removeprefix(f"{name}/").rpartition("/")
            rows = data.parts[part]
            place = rows.ids.index(item["id"].removeprefix(f"{name}/"))
            texts = [column[place] for column in rows.texts]
            assert item["content"] == digest(texts, item["outputs"][gold])


def test_an_example_is_its_texts_choices_spans_and_gold() -> None:
    example = Example("7", ("A cat sat.", "It purred."), "1", ("a", "b"), (TextSpan(0, 2, 5),), group="g")
    changes: list[Mapping[str, Any]] = [
        {"texts": ("A cat sat.", "It slept.")},
        {"gold": "0"},
        {"choices": ("a", "c")},
        {"spans": (TextSpan(0, 2, 4),)},
    ]
    found = []
    for one in [example, replace(example, group="h"), *(replace(example, **change) for change in changes)]:
        data = task(spec("CoLA"), [one])
        by_way = {
            contents(items(data, answer(data, [given], template=template), "dev"))["CoLA/dev/7"]
            for given, template in (("0", "first"), ("1", "second"))
        }
        found += by_way
    assert found[0] == found[1] == digest(["A cat sat.", "It purred."], ["a", "b"], [[0, 2, 5]], "1")
    assert len(found) == 6
    assert len(set(found)) == 5


def test_a_judged_summary_is_its_texts_and_what_people_said(tmp_path: Path) -> None:
    data = write_sets(tmp_path / "data")
    found = [
        contents(prepared(data, human=human).evaluate(Nothing(), RunContext()).items)
        for human in ("main", "all")
    ]
    assert found[0] == found[1]
    article = json.loads((data / "summeval" / "summeval.json").read_text())["art1"]
    second = article["sys_summs"]["second"]
    assert found[0]["summeval-art1-second"] == digest(
        article["src"], second["sys_summ"], article["ref_summs"], second["scores"]["consistency"]
    )
    (triplet,) = json.loads((data / "falke2019" / "val_sentence_pairs.json").read_text())[:1]
    ids = [name for name in found[0] if name.startswith("falke-0-")]
    assert [found[0][name] for name in ids] == [
        digest(triplet["article_sent"], triplet["correct_sent"], [], 1.0),
        digest(triplet["article_sent"], triplet["incorrect_sent"], [], 0.0),
    ]


def test_a_question_about_a_story_is_the_story_and_the_references(tmp_path: Path) -> None:
    write_rows(tmp_path / "v1" / "test.jsonl", story_row("1"), story_row("2"))
    write_rows(tmp_path / "human-eval" / "all-responses.jsonl", evaluation_row("1"))
    quick: dict[str, Any] = {"metrics": "rouge", "statistics": "no", "data": tmp_path}
    found = [
        contents(ensue.run("squality", model=model, output=tmp_path / model, **quick).items)
        for model in ("lead", "human")
    ]
    assert found[0] == found[1]
    assert found[0]["2/2"] == digest(STORY, ASKED[1], ANSWERS[1])
    rated = ensue.run("squality/human-eval", model="lead", output=tmp_path / "rated", **quick)
    # Three ratings of bart are 10, 20 and 33 throughout, and people's summary is the second reference.
    assert contents(rated.items)["1/1/bart"] == digest(
        "Ilse waits.", ANSWERS[0], dict.fromkeys(PROPERTIES, 21.0)
    )
    assert contents(rated.items)["1/1/human"] == digest(
        ANSWERS[0][1], [ANSWERS[0][0], *ANSWERS[0][2:]], dict.fromkeys(PROPERTIES, 95.0)
    )
