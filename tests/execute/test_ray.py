"""Runs on a Ray cluster of several nodes, with faults and without: the numbers of one process, or a sentence."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import ensue
from ensue.backends.names import load_model
from ensue.backends.qa.answerer import Reading
from ensue.benchmarks.chapterbreak.data.examples import Example
from ensue.benchmarks.chapterbreak.ranking import SegmentRanker, SuffixChoice
from ensue.benchmarks.qags.pipeline import Pair, QagsModels, examine
from ensue.benchmarks.qags.questions import Asking, Keeping
from ensue.errors import EnsueError, RunFailed
from ensue.execute.crew import reason
from ensue.models.protocols import (
    Encoder,
    Layered,
    Model,
    Rater,
    Scorer,
    Together,
    TokenEncoder,
    TokensTogether,
)
from ensue.models.request import Request
from ensue.progress import ignore
from ensue.records import Records
from ensue.scoring.engine import score
from ensue.scoring.journal import Journal
from tests.benchmarks.qags.toys import NameAfter, NameFinder, WordsBefore
from tests.benchmarks.squality.invented import story_row, write_rows
from tests.benchmarks.superglue.folders import write_superglue
from tests.execute import toys
from tests.execute.cluster import PATIENT, SMALL, Cluster, await_workers, ray
from tests.support import tiny
from tests.support.command import here, refused, write_lines
from tests.support.effort import LONG
from tests.support.tiny_seq2seq import save_bart


def assert_same_run(found: Path, expected: Path) -> None:
    """All but the time it took is the same, and nothing is left of the work."""
    assert (found / "items.jsonl").read_bytes() == (expected / "items.jsonl").read_bytes()
    results = [json.loads((folder / "results.json").read_text("utf-8")) for folder in (found, expected)]
    for each in results:
        del each["seconds"]
    assert results[0] == results[1]
    assert not list(found.glob("journal*"))


def run_shuffle(llama: str, corpus: Path, output: Path, executor: Any, **options: Any) -> Path:
    return ensue.run(
        "shuffle",
        model=llama,
        data=corpus,
        output=output,
        model_options=SMALL,
        block_size="1,2",
        executor=executor,
        **options,
    ).folder


@pytest.mark.skipif(not LONG, reason="one more worker that loads a model is started by make long")
def test_the_command_scores_the_same(cluster: Cluster, llama: str, tmp_path: Path) -> None:
    texts = write_lines(tmp_path / "texts.jsonl", [{"text": sentence} for sentence in tiny.SENTENCES])
    command = ["score", texts, "--model", llama, "--json"]
    found = here(*command, "--executor", "ray", "--workers", "1")
    assert found.code == 0, found.err
    assert found.out == here(*command).out


def test_what_is_wrong_with_options_is_said(llama: str, tmp_path: Path) -> None:
    texts = write_lines(tmp_path / "texts.jsonl", [{"text": "One day."}])
    command = ["score", texts, "--model", llama, "--json"]
    refused(here(*command, "--executor", "slurm"), "no executor 'slurm'; choose local or ray")
    refused(here(*command, "--worker-gpus", "1"), "add --executor ray or leave out --worker-gpus")
    refused(here(*command, "--executor", "ray", "--profile"), "Profiles are made in this process")


def test_a_driver_that_is_killed_is_gone_on_with(
    cluster: Cluster,
    llama: str,
    corpus: Path,
    expected: Path,
    tmp_path: Path,
    request: pytest.FixtureRequest,
) -> None:
    output = tmp_path / "run"
    said = (
        "import ensue, sys; model, data, output, address = sys.argv[1:];"
        "ensue.run('shuffle', model=model, data=data, output=output, block_size='1,2',"
        f"          model_options={SMALL!r}, executor=ensue.RayExecutor(1, address=address, patience={PATIENT}))"
    )
    command = [sys.executable, "-c", said, llama, str(corpus), str(output), cluster.address]
    driver = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    journal = output / "journal.jsonl"
    until = time.monotonic() + PATIENT
    while not (journal.is_file() and len(journal.read_bytes().splitlines()) > 3):
        assert driver.poll() is None, driver.communicate()
        assert time.monotonic() < until
        time.sleep(0.02)
    driver.kill()
    driver.communicate()
    assert not (output / "results.json").exists()
    kept = len(journal.read_bytes().splitlines())
    # Its worker goes with it.
    while ray.available_resources().get("CPU") != 2:
        assert time.monotonic() < until
        time.sleep(0.1)
    executor = request.getfixturevalue("executor")
    with pytest.raises(EnsueError, match="--resume"):
        run_shuffle(llama, corpus, output, executor)
    assert_same_run(run_shuffle(llama, corpus, output, executor, resume=True), expected)
    about = json.loads((output / "run.json").read_text("utf-8"))
    assert about["resumed_from"] >= kept - 2
    assert sum(about["workers"].values()) == 2


def test_a_run_of_two_workers_is_that_of_one_process_and_each_loads_the_model_once(
    executor: ensue.RayExecutor, llama: str, corpus: Path, expected: Path, tmp_path: Path
) -> None:
    assert_same_run(run_shuffle(llama, corpus, tmp_path / "run", executor), expected)
    about = json.loads((tmp_path / "run" / "run.json").read_text("utf-8"))
    assert about["executor"].startswith("ray ")
    assert sum(about["workers"].values()) == 2
    # A second run finds it loaded.
    assert_same_run(run_shuffle(llama, corpus, tmp_path / "again", executor), expected)
    loads = executor.loads()
    assert len(loads) == 2
    assert all(Counter(names) == {"llama": 1} for names in loads.values()), loads


def test_portions_are_those_of_one_process(
    executor: ensue.RayExecutor, llama: str, corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ensue.scoring.portions._ON_CPU", 5000)
    local = run_shuffle(llama, corpus, tmp_path / "local", None)
    assert_same_run(run_shuffle(llama, corpus, tmp_path / "run", executor), local)


def test_masked_models_encoders_and_raters_give_the_same_bits(
    executor: ensue.RayExecutor, place: Path
) -> None:
    texts = [
        " ".join(tiny.SENTENCES[i % len(tiny.SENTENCES)] for i in range(k, k + k % 5 + 1)) for k in range(70)
    ]
    load = partial(load_model, str(tiny.save_bert(place / "bert")), **SMALL)
    here, there = load(), executor.load(load)
    assert isinstance(here, Scorer)
    assert isinstance(there, Scorer)
    assert isinstance(there, Layered)
    assert not isinstance(there, Rater)
    requests = [Request(text, detail=True) for text in texts[:12]]
    assert score(there, requests).scores == score(here, requests).scores
    assert isinstance(here, Encoder)
    for options in ({}, {"layers": [0, 2], "pooling": "cls"}):
        assert there.encode(texts, **options).tobytes() == here.encode(texts, **options).tobytes()
    assert there.encode([]).shape == here.encode([]).shape
    with pytest.raises(EnsueError, match="no layer 9"):
        there.encode(texts, layers=[9])


def test_batches_of_tokens_and_of_readers_are_divided_and_give_the_same_bits(
    executor: ensue.RayExecutor, place: Path
) -> None:
    sentences = [" ".join(tiny.SENTENCES[k % 7 : k % 7 + 1 + k % 3]) for k in range(150)]
    load = partial(load_model, str(tiny.save_encoder(place / "encoder")))
    here, there = load(), executor.load(load)
    assert isinstance(here, TokensTogether)
    assert isinstance(there, TokenEncoder)
    assert len(here.tokens_together(sentences)) > 1
    for layer in (None, 1):
        pairs = zip(there.encode_tokens(sentences, layer), here.encode_tokens(sentences, layer), strict=True)
        assert all(one.tobytes() == other.tobytes() for one, other in pairs)
    texts = [[*tiny.SENTENCES[k % 5 : k % 5 + 2], tiny.SENTENCES[k % 3]] for k in range(40)]
    load = partial(load_model, str(tiny.save_reader(place / "reader")))
    reader, other = load(), executor.load(load)
    assert isinstance(reader, Together)
    assert len(reader.together(texts)) > 1
    assert other.read(texts) == reader.read(texts)  # type: ignore[attr-defined]
    long = [tiny.SENTENCES * 3, *texts]
    assert reader.together(long) == [list(range(len(long)))]
    assert other.read(long) == reader.read(long)  # type: ignore[attr-defined]
    assert all({"encoder", "reader"} <= set(names) for names in executor.loads().values()), executor.loads()


def test_qags_asks_and_answers_on_all_workers_what_one_process_does(
    executor: ensue.RayExecutor, place: Path, tmp_path: Path
) -> None:
    from ensue.backends.qa.network import SpanNetwork, save_full_answerer

    base = load_model(str(tiny.save_encoder(place / "base", max_length=64)))
    reading = Reading(max_length=48, stride=12, max_question=20, max_answer=5)
    save_full_answerer(place / "answerer", SpanNetwork(base.network), reading, base.tokenizer)  # type: ignore[attr-defined]
    asks = partial(load_model, str(save_bart(place / "bart")))
    answers = partial(load_model, str(place / "answerer"))
    pairs = [
        Pair(f"{' '.join(tiny.SENTENCES)} {text}", text)
        for number in range(40)
        for text in [f"The boat of Captain Al{chr(97 + number % 26) * 3} left {'for ' * (number // 26)}Lund."]
    ]
    asking = Asking(
        answers=3, count=2, beams=10, min_tokens=2, max_tokens=6, length_penalty=1.0, block_ngrams=3
    )

    def records_of(name: str, load: Callable[[Callable[[], Model]], Any]) -> bytes:
        # By rule on one side: what a random model asks is no question, and none would be answered.
        for kind, models in {
            "asked": QagsModels(NameFinder(), load(asks), NameAfter()),
            "answered": QagsModels(NameFinder(), WordsBefore(), load(answers)),
        }.items():
            with Records(tmp_path / f"{name}-{kind}") as records:
                examine(pairs, models, asking, [Keeping(3, agree="any")], records=records)
        return b"".join((tmp_path / f"{name}-{kind}").read_bytes() for kind in ("asked", "answered"))

    expected = records_of("here", lambda load: load())
    assert expected.count(b"\n") > 300
    assert records_of("there", executor.load) == expected
    # No worker did all of it.
    assert all({"bart", "answerer"} <= set(names) for names in executor.loads().values()), executor.loads()


def test_summaries_are_written_by_all_workers_as_by_one_process(
    executor: ensue.RayExecutor, llama: str, place: Path
) -> None:
    write_rows(place / "squality" / "v1" / "test.jsonl", *(story_row(str(number)) for number in range(3)))
    asked = {"data": place / "squality", "version": "v1", "metrics": "rouge", "max_tokens": 8}
    here, there = (
        ensue.run("squality", model=llama, output=place / name, executor=given, **asked).folder
        for name, given in (("here", None), ("there", executor))
    )
    assert_same_run(there, here)


def test_suffixes_are_ranked_on_all_workers(executor: ensue.RayExecutor, tmp_path: Path) -> None:
    questions = [
        SuffixChoice(
            Example(f"test/{number}/0", "test", str(number), "chapter", f"Part {number}.", "It rained.", ()),
            {"within": ("He left.", f"She won {number}.")},
        )
        for number in range(8)
    ]
    ranked: list[Any] = []
    for name, model in (("here", toys.load_suffixes()), ("there", executor.load(toys.load_suffixes))):
        with Records(tmp_path / name) as records:
            ranker = SegmentRanker(model=model, asked=[128, 256], suffixes=[64, 128], records=records)
            ranked.append(list(ranker.rank(questions, ignore)))
    assert ranked[1] == ranked[0]
    assert len(ranked[0]) == 32
    assert (tmp_path / "there").read_bytes() == (tmp_path / "here").read_bytes()
    assert all("suffixes" in names for names in executor.loads().values())


def test_a_sweep_has_the_runs_of_one_process_and_loads_no_model_again(
    executor: ensue.RayExecutor, llama: str, corpus: Path, tmp_path: Path
) -> None:
    asked = {"model": llama, "data": corpus, "limit": 4, "model_options": SMALL, "shuffles": 3}
    before = executor.loads()
    there = ensue.sweep("shuffle", seed=[1, 2, 3], output=tmp_path / "there", executor=executor, **asked)
    here = ensue.sweep("shuffle", seed=[1, 2, 3], output=tmp_path / "here", **asked)
    for found, expected in zip(there, here, strict=True):
        assert_same_run(found.folder, expected.folder)
    for worker, names in executor.loads().items():
        assert sum((Counter(names) - Counter(before[worker])).values()) <= 1


def test_machines_with_different_models_are_refused(executor: ensue.RayExecutor) -> None:
    scorer = executor.load(toys.load_varying)
    assert isinstance(scorer, Scorer)
    with (
        ThreadPoolExecutor(8) as threads,
        pytest.raises(RunFailed, match="loads another random than the first worker did \\(seed "),
    ):
        list(threads.map(lambda number: score(scorer, [Request(str(number))]), range(8)))


def test_functions_are_mapped_in_order_by_several_processes(executor: ensue.RayExecutor) -> None:
    assert list(executor.map(abs, range(-5, 1))) == [5, 4, 3, 2, 1, 0]
    assert len(set(executor.map(toys.wait, [0.2] * 6))) == 2


def once(action: Callable[[], object]) -> Callable[..., None]:
    """Progress that does something when the first scores are in."""
    done: list[bool] = []

    def progress(finished: int, total: int, unit: str = "tokens") -> None:
        if 0 < finished < total and not done:
            done.append(True)
            action()

    return progress


def assert_same_scores(found: Any, requests: list[Request], journal: Path) -> None:
    """They are those of one process, and none was journalled twice."""
    assert found.scores == score(toys.Slow(), requests).scores
    keys = [json.loads(line)[3] for line in journal.read_text("utf-8").splitlines()]
    assert len(keys) == len(set(keys)) == len(requests)


def score_slowly(executor: ensue.RayExecutor, journal: Path, action: Callable[[], object]) -> None:
    """Score many texts, and do something when some of them are scored."""
    requests = [Request(f"{one} {other}") for one in tiny.SENTENCES for other in tiny.SENTENCES]
    scorer = executor.load(toys.load_slow)
    assert isinstance(scorer, Scorer)
    with Journal(journal) as held:
        found = score(scorer, requests, journal=held, progress=once(action))
    assert_same_scores(found, requests, journal)


def test_workers_that_are_killed_are_replaced_and_nothing_is_scored_twice(
    executor: ensue.RayExecutor, tmp_path: Path
) -> None:
    await_workers(executor, 2)
    victims = sorted(executor.loads())
    score_slowly(
        executor, tmp_path / "journal", lambda: [os.kill(victim, signal.SIGKILL) for victim in victims]
    )
    assert "its process ended" in " ".join(executor.about()["lost"])
    assert not set(victims) & set(executor.loads())


def test_what_ends_every_worker_is_given_up_in_a_sentence(executor: ensue.RayExecutor) -> None:
    scorer = executor.load(toys.load_harmful)
    assert isinstance(scorer, Scorer)
    assert len(score(scorer, [Request("a word"), Request("another")]).scores) == 2
    with pytest.raises(RunFailed, match="ran out of memory; what is finished is kept: use fewer workers"):
        score(scorer, [Request("memory")])
    with pytest.raises(RunFailed, match="3 workers were lost over it, the last because its process ended"):
        score(scorer, [Request("kill")])
    # And the others go on.
    assert len(score(scorer, [Request("a word")]).scores) == 1


def test_what_cannot_be_is_refused_in_a_sentence(
    cluster: Cluster, executor: ensue.RayExecutor, llama: str, corpus: Path, tmp_path: Path
) -> None:
    tasks = write_superglue(tmp_path / "superglue")
    for model, mode, said in ((llama, "finetune", "mode=finetune"), ("bilstm", None, "bilstm")):
        with pytest.raises(EnsueError, match=f"{said} trains a network, which is done in one process; leave"):
            ensue.run("superglue/COPA", model=model, data=tasks, mode=mode, executor=executor)
    with pytest.raises(EnsueError, match="no machine of the cluster has more than 1 and 0; ask for less"):
        ensue.RayExecutor(1, cpus=64)
    with pytest.raises(EnsueError, match="Workers load models by their names; give that of random"):
        ensue.run("shuffle", model=load_model("random"), data=corpus, executor=executor)
    with pytest.raises(EnsueError, match="runs on machines of its own; leave --executor out"):
        ensue.run("shuffle", model="http://127.0.0.1:9", data=corpus, executor=executor)
    with pytest.raises(EnsueError, match="is not a model"):
        ensue.run("shuffle", model="./nowhere", data=corpus, executor=executor)


def test_workers_that_do_not_come_are_not_waited_for_forever(
    cluster: Cluster, executor: ensue.RayExecutor
) -> None:
    with (
        ensue.RayExecutor(1, patience=0.5) as crowded,
        pytest.raises(RunFailed, match="no machine had room"),
    ):
        crowded.load(partial(load_model, "random"))


def test_a_machine_that_is_gone_leaves_its_work_to_the_others(
    cluster: Cluster, executor: ensue.RayExecutor, tmp_path: Path
) -> None:
    # One on each machine.
    await_workers(executor, 2)
    lost = len(executor.about()["lost"])
    score_slowly(executor, tmp_path / "journal", cluster.lose_second)
    assert len(executor.about()["lost"]) > lost
    assert len(set(executor.map(toys.wait, [0.1] * 4))) == 1


def test_why_a_worker_was_lost_is_told_in_a_few_words() -> None:
    from ray.exceptions import ActorUnavailableError, NodeDiedError, OutOfMemoryError, WorkerCrashedError

    assert reason(OutOfMemoryError("Task was killed due to the node running low on memory.")).startswith(
        "its machine ran out of memory"
    )
    assert reason(ActorUnavailableError("Socket closed", None)) == "it cannot be reached"
    assert reason(NodeDiedError("gone")) == "its machine is gone"
    assert reason(WorkerCrashedError()).startswith("its process ended (The worker died")
    assert reason(ImportError("No module named 'ensue'")).startswith("ensue is not installed there")
