"""DiscoEval runs with a tiny encoder on invented tasks, against the steps done one by one."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

import ensue
from ensue.benchmarks.discoeval.data import SPECS
from ensue.benchmarks.discoeval.probe import rules_for
from ensue.benchmarks.probing.converged import fit_converged
from ensue.benchmarks.probing.fitting import fit
from ensue.benchmarks.probing.rules import COHERENCE, DISCOEVAL, RELATIONS, SECTIONS, Data
from ensue.errors import EnsueError
from ensue.models.card import ModelCard
from tests.benchmarks.discoeval.folders import write_suite
from tests.support import tiny
from tests.support.command import here, refused
from tests.support.run_context import records_of

WHOLE = {"SP/rocstory", "BSO/wiki", "BSO/arxiv", "BSO/rocstory", "DC/chat", "SSP/abs", "RST"}
WHOLE |= {"PDTB/explicit", "PDTB/implicit"}
MISSING = {"SP/wiki", "SP/arxiv", "DC/wiki"}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with a model, a suite and a store of vectors of its own."""
    folder = tmp_path_factory.mktemp("discoeval")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ENSUE_HOME", str(folder / "home"))
        tiny.save_encoder(folder / "model")
        write_suite(folder / "data")
        yield folder


@pytest.fixture(scope="module")
def whole(place: Path) -> ensue.Run:
    return run(place, "whole")


def run(place: Path, output: str, task: str = "", **options: Any) -> ensue.Run:
    name = f"discoeval/{task}" if task else "discoeval"
    options.setdefault("classifier_device", "cpu")
    return ensue.run(
        name, model=str(place / "model"), data=place / "data", output=place / "runs" / output, **options
    )


def rows(found: ensue.Run, **settings: Any) -> dict[str, dict[str, Any]]:
    """The rows with these settings by task."""
    return {
        row["task"]: row for row in found.results["metrics"] if settings.items() <= row["settings"].items()
    }


class Naive:
    """The encoder as transformers loads it, one sentence at a time: the mean over positions of a layer."""

    def __init__(self, folder: Path, layer: int = -1) -> None:
        from transformers import AutoModel, AutoTokenizer

        self.tokenizer = AutoTokenizer.from_pretrained(folder)
        self.model = AutoModel.from_pretrained(folder, dtype=torch.float32).eval()
        self.layer = layer

    def __call__(self, sentence: str) -> NDArray[np.float32]:
        with torch.no_grad():
            states = self.model(**self.tokenizer(sentence, return_tensors="pt"), output_hidden_states=True)
        vector: NDArray[np.float32] = states.hidden_states[self.layer][0].mean(0).numpy()
        return vector


def text_rows(path: Path) -> list[list[str]]:
    return [line.split("\t") for line in path.read_text("utf-8").splitlines()]


def sp_data(place: Path, encode: Naive) -> list[Data]:
    out = []
    for name in ("train", "valid", "test"):
        lines = text_rows(place / f"data/SP/rocstory/{name}.txt")
        x = []
        for line in lines:
            first, *others = (encode(sentence) for sentence in line[1:])
            x.append(np.concatenate([first, *(first - other for other in others)]))
        out.append(Data(np.stack(x), np.asarray([int(line[0]) for line in lines])))
    return out


def predicted(found: ensue.Run, task: str, split: str, **settings: Any) -> list[str]:
    wanted = {"split": split, **settings}
    return [
        item["outputs"]["predicted"]
        for item in found.items
        if item["task"] == task and wanted.items() <= item["settings"].items()
    ]


def test_a_task_is_what_its_steps_make_one_by_one(place: Path, whole: ensue.Run) -> None:
    train, dev, test = sp_data(place, Naive(place / "model"))
    expected = fit(train, dev, test, 5, DISCOEVAL, seed=0, device="cpu")
    assert predicted(whole, "SP/rocstory", "dev") == list(map(str, expected.dev_predictions))
    assert predicted(whole, "SP/rocstory", "test") == list(map(str, expected.test_predictions))
    accuracy = float((expected.test_predictions == test.y).mean())
    assert rows(whole, split="test")["SP/rocstory"]["value"] == pytest.approx(accuracy)
    assert rows(whole, split="dev")["SP/rocstory"]["value"] == pytest.approx(expected.dev_accuracy)


def test_every_row_is_the_mean_of_its_items(whole: ensue.Run) -> None:
    scores = defaultdict(list)
    for item in whole.items:
        scores[item["task"], json.dumps(item["settings"])].append(item["scores"]["accuracy"])
        assert item["scores"]["accuracy"] == (item["outputs"]["label"] == item["outputs"]["predicted"])
    assert len({item["id"] for item in whole.items}) == len(whole.items)
    for split in ("dev", "test"):
        found = {task: row for task, row in rows(whole, split=split).items() if task in WHOLE}
        assert found.keys() == WHOLE
        for task, row in found.items():
            mine = scores[task, json.dumps(row["settings"])]
            assert row["value"] == pytest.approx(np.mean(mine))
            assert row["n"] == len(mine)
            assert row["settings"] == {"split": split, "protocol": "paper"}
            assert row["ci95"][0] <= row["value"] <= row["ci95"][1]


def test_a_pair_counts_once_among_clusters(whole: ensue.Run) -> None:
    row = rows(whole, split="test")["BSO/wiki"]
    assert (row["n"], row["clusters"]) == (24, 12)


def test_averages_are_those_of_table_2_and_say_what_they_cover(whole: ensue.Run) -> None:
    for split in ("dev", "test"):
        found = rows(whole, split=split)
        value = {task: row["value"] for task, row in found.items()}
        bso = [value[f"BSO/{domain}"] for domain in ("wiki", "arxiv", "rocstory")]
        assert value["BSO"] == pytest.approx(sum(bso) / 3)
        assert value["SP"] == value["SP/rocstory"]
        assert value["PDTB"] == pytest.approx((value["PDTB/explicit"] + value["PDTB/implicit"]) / 2)
        columns = ["SP", "BSO", "DC", "SSP", "PDTB/explicit", "PDTB/implicit", "RST"]
        assert value["average"] == pytest.approx(sum(value[name] for name in columns) / 7)
        assert set(found["average"]["settings"]["tasks"].split(",")) == WHOLE
        assert set(found["average"]["settings"]["missing"].split(",")) == MISSING
        assert found["SP"]["settings"]["missing"] == "SP/wiki,SP/arxiv"
        assert found["average"]["settings"]["covers"] == f"{len(WHOLE)} of 12 tasks"
        assert found["SP"]["settings"]["covers"] == "1 of 3 tasks"
        assert "missing" not in found["BSO"]["settings"]
        low, high = found["average"]["ci95"]
        assert low < value["average"] < high
        widest = max(row["ci95"][1] - row["ci95"][0] for task, row in found.items() if task in WHOLE)
        assert high - low < widest


def test_missing_tasks_are_reported_and_have_no_rows(whole: ensue.Run) -> None:
    assert not MISSING & {row["task"] for row in whole.results["metrics"]}
    assert dict.fromkeys(whole.results["skipped"], 1) == whole.results["skipped"]
    for name in MISSING:
        assert f"task {name} left out, for want of {name}/train.txt" in whole.results["skipped"]


def test_the_run_folder_holds_the_fits_and_nothing_left_over(place: Path, whole: ensue.Run) -> None:
    fits = [json.loads(line) for line in (whole.folder / "fits.jsonl").read_text().splitlines()]
    assert {fit["task"] for fit in fits} == WHOLE
    assert not records_of(whole.folder).exists()
    assert {fit["decay"] for fit in fits if fit["task"] in ("RST", "PDTB/explicit")} == {1e-9}


def test_a_task_alone_scores_as_it_does_among_all(place: Path, whole: ensue.Run) -> None:
    """In the whole suite SSP comes after DC, whose hidden layer must stay with DC."""
    alone = run(place, "alone", "SSP/abs")
    assert {row["task"] for row in alone.results["metrics"]} == {"SSP/abs"}
    for split in ("dev", "test"):
        assert predicted(alone, "SSP/abs", split) == predicted(whole, "SSP/abs", split)


def test_each_group_has_its_own_rules() -> None:
    rules = {spec.group: rules_for(spec, True) for spec in SPECS}
    assert rules["DC"] == COHERENCE
    assert rules["SSP"] == SECTIONS
    assert rules["SP"] == rules["BSO"] == DISCOEVAL
    assert rules["PDTB"] == rules["RST"] == RELATIONS
    assert {rules_for(spec, False).hidden for spec in SPECS} == {0}


def test_a_group_has_its_tasks_and_their_average(place: Path, whole: ensue.Run) -> None:
    found = run(place, "group", "pdtb")
    assert {row["task"] for row in found.results["metrics"]} == {"PDTB/explicit", "PDTB/implicit", "PDTB"}
    assert rows(found, split="test")["PDTB"] == rows(whole, split="test")["PDTB"]


def test_layers_are_rows_of_their_own(place: Path) -> None:
    found = run(place, "layers", "SP/rocstory", layer="all")
    assert [row["settings"]["layer"] for row in found.results["metrics"]] == [0, 0, 1, 1, 2, 2]
    train, dev, test = sp_data(place, Naive(place / "model", layer=1))
    expected = fit(train, dev, test, 5, DISCOEVAL, seed=0, device="cpu")
    assert predicted(found, "SP/rocstory", "test", layer=1) == list(map(str, expected.test_predictions))
    some = run(place, "some-layers", "SP/rocstory", layer="2,1")
    assert [row for row in found.results["metrics"] if row["settings"]["layer"]] == some.results["metrics"]
    assert len({item["id"] for item in found.items}) == len(found.items)


def test_an_absent_layer_is_refused(place: Path) -> None:
    with pytest.raises(EnsueError, match=r"layers 0 .* to 2, no layer 7"):
        run(place, "no-layer", "SSP", layer="7")


def test_seeds_are_averaged(place: Path) -> None:
    several = run(place, "seeds", "DC/chat", seeds=2, seed=3, limit=8)
    ones = [run(place, f"seed-{seed}", "DC/chat", seed=seed, limit=8) for seed in (3, 4)]
    for split in ("dev", "test"):
        pairs = list(zip(*(predicted(one, "DC/chat", split) for one in ones), strict=True))
        assert [tuple(x) for x in predicted(several, "DC/chat", split)] == pairs
        values = [rows(one, split=split)["DC/chat"]["value"] for one in ones]
        assert rows(several, split=split)["DC/chat"]["value"] == pytest.approx(sum(values) / 2)


def test_context_and_hidden_layer_can_be_taken_away(place: Path) -> None:
    found = run(place, "context", "SP/rocstory", context="no")
    full = sp_data(place, Naive(place / "model"))
    train, dev, test = (Data(np.ascontiguousarray(d.x[:, :32]), d.y) for d in full)
    expected = fit(train, dev, test, 5, DISCOEVAL, seed=0, device="cpu")
    assert predicted(found, "SP/rocstory", "test") == list(map(str, expected.test_predictions))
    assert {row["settings"]["context"] for row in found.results["metrics"]} == {"no"}
    found = run(place, "hidden", "DC", hidden="no")
    assert {row["settings"]["hidden"] for row in found.results["metrics"]} == {"no"}
    with pytest.raises(EnsueError, match="context=no is about SP"):
        run(place, "neither", "DC", context="no")


def test_converged_is_a_protocol_of_its_own(place: Path) -> None:
    found = run(place, "converged", protocol="converged", seed=4)
    assert {row["settings"]["protocol"] for row in found.results["metrics"]} == {"converged"}
    train, dev, test = sp_data(place, Naive(place / "model"))
    expected = fit_converged(train, dev, test, 5, device="cpu")
    assert predicted(found, "SP/rocstory", "test") == list(map(str, expected.test_predictions))
    # It has no hidden layer anywhere, so DC says that it lacks one.
    hidden = {row["task"]: row["settings"].get("hidden") for row in found.results["metrics"]}
    assert {task for task, value in hidden.items() if value == "no"} == {"DC/chat", "DC", "average"}
    with pytest.raises(EnsueError, match="draws nothing at random"):
        run(place, "alike", protocol="converged", seeds=2)


def test_a_task_that_cannot_be_learned_is_named(place: Path) -> None:
    with pytest.raises(EnsueError, match=r"The classifier of SSP/abs cannot be trained: .* same label"):
        run(place, "one", "SSP", limit=1)


class Stopped(Exception):
    """What the test throws in the middle of a run."""


def stop_after(count: int) -> Any:
    def progress(done: int, total: int, unit: str) -> None:
        if unit == "classifiers" and done == count:
            raise Stopped

    return progress


def test_a_stopped_run_goes_on_without_training_again(place: Path, whole: ensue.Run) -> None:
    with pytest.raises(Stopped):
        run(place, "stopped", progress=stop_after(4))
    folder = place / "runs" / "stopped"
    kept = [json.loads(line)[-1] for line in records_of(folder).read_text("utf-8").splitlines()]
    assert len(kept) == 4
    found = run(place, "stopped", resume=True)
    assert found.results["metrics"] == whole.results["metrics"]
    assert found.items == whole.items
    fits = [json.loads(line) for line in (folder / "fits.jsonl").read_text().splitlines()]
    # Seconds are measured, so equal ones were not measured again.
    assert all(fit in fits for one in kept for fit in one["fits"])
    assert json.loads((folder / "run.json").read_text("utf-8"))["resumed_from"] == 4
    assert not records_of(folder).exists()


def test_a_folder_with_another_questions_work_is_refused(place: Path) -> None:
    with pytest.raises(Stopped):
        run(place, "other", "SSP", seed=7, progress=stop_after(1))
    kept = records_of(place / "runs" / "other").read_bytes()
    for resume in (False, True):
        with pytest.raises(EnsueError, match="holds an unfinished run with seed 7, not 8"):
            run(place, "other", "SSP", seed=8, resume=resume)
    assert records_of(place / "runs" / "other").read_bytes() == kept


def test_two_runs_can_be_compared(place: Path, whole: ensue.Run) -> None:
    other = run(place, "compared", "BSO", seed=5)
    compared = ensue.compare(whole.folder, other.folder)
    assert {row.task for row in compared.rows} == {"BSO/wiki", "BSO/arxiv", "BSO/rocstory"}
    assert {one.task for one in compared.untested} == WHOLE - {"BSO/wiki", "BSO/arxiv", "BSO/rocstory"}


def test_layers_of_two_runs_can_be_compared(place: Path) -> None:
    own, first, both = (
        run(place, f"layers-{name}", "BSO/wiki", **layers)
        for name, layers in (("own", {}), ("first", {"layer": 1}), ("both", {"layer": [1, 2]}))
    )
    compared = ensue.compare(own, first)
    assert {row.settings["split"]: row.value_b for row in compared.rows} == {
        row["settings"]["split"]: row["value"]
        for row in first.results["metrics"]
        if row["task"] == "BSO/wiki"
    }
    assert "a is protocol paper, b is protocol paper, layer 1" in compared.notes[-1]
    # Of several layers the one that both have is compared, and none stands for the others.
    assert {row.settings["layer"] for row in ensue.compare(first, both).rows} == {1}
    with pytest.raises(EnsueError, match="in several ways"):
        ensue.compare(own, both)


class Broken:
    """An encoder that gives no numbers for one of its sentences."""

    def __init__(self, bad: str) -> None:
        self.bad = bad

    @property
    def card(self) -> ModelCard:
        return ModelCard("broken", "encoder", "here", {"weights": "none"})

    def encode(
        self, texts: Sequence[str], *, layers: Sequence[int] | None = None, pooling: str | None = None
    ) -> NDArray[np.float32]:
        out = np.ones((len(texts), 4), dtype=np.float32)
        out[[i for i, text in enumerate(texts) if text == self.bad]] = np.nan
        return out


def test_an_encoder_that_returns_nan_is_refused(place: Path) -> None:
    bad = text_rows(place / "data/SSP/abs/test.txt")[3][1]
    with pytest.raises(EnsueError, match="not all finite") as caught:
        ensue.run("discoeval/SSP", model=Broken(bad), data=place / "data", output=place / "runs" / "broken")
    assert bad in str(caught.value)
    assert f"{place / 'data/SSP/abs/test.txt'}, line 4: " in str(caught.value)


def test_bad_questions_are_one_sentence(place: Path) -> None:
    model, data = place / "model", place / "data"
    refused(here("run", "discoeval", "--model", model), "discoeval needs --data")
    refused(here("run", "discoeval", "--model", model, "--data", place / "none"), "is not a folder")
    refused(
        here("run", "discoeval/SP/wiki", "--model", model, "--data", data), "SP/wiki/train.txt is missing"
    )
    refused(here("run", "discoeval/XY", "--model", model, "--data", data), "no task 'XY'")
    refused(here("run", "discoeval", "--model", model, "--data", place / "home"), "no whole task")
    refused(
        here("run", "discoeval/SSP", "--model", "random", "--data", data), "DiscoEval needs a model that can"
    )
    refused(here("run", "discoeval", "--model", model, "--data", data, "--set", "layer=x"), "Invalid layer=x")
