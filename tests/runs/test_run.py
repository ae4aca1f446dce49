"""Run folders: the files and their contract, what may be run again, and who may work on a folder."""

from __future__ import annotations

import json
import sys
import time
from collections import defaultdict
from pathlib import Path

import pytest

import ensue
from ensue.backends.baselines import RandomModel
from ensue.errors import EnsueError
from ensue.stats.clustered import clustered_interval
from tests.support import tiny
from tests.support.command import here, in_process_of_its_own, read_lines, refused, start, write_lines
from tests.support.corpus import document, write_corpus

RESULT_KEYS = {"benchmark", "model", "signature", "metrics", "skipped", "notes", "seconds", "tokens"}
ROW_KEYS = {"task", "metric", "value", "ci95", "n", "clusters", "settings"}


@pytest.fixture(scope="module")
def llama(tmp_path_factory) -> Path:
    return tiny.save_llama(tmp_path_factory.mktemp("models") / "llama")


@pytest.fixture(scope="module")
def corpus(tmp_path_factory) -> Path:
    """Two domains, one document too short for some block sizes."""
    rows = [
        {"id": f"d{n}", "domain": "law" if n % 2 else "news", "sentences": document(n, count)}
        for n, count in enumerate((6, 6, 5, 7, 3))
    ]
    return write_lines(tmp_path_factory.mktemp("data") / "corpus.jsonl", rows)


@pytest.fixture(scope="module")
def finished(llama, corpus, tmp_path_factory) -> ensue.Run:
    output = tmp_path_factory.mktemp("runs") / "llama"
    return ensue.run(
        "shuffle", model=str(llama), data=corpus, output=output, shuffles=5, block_size=[1, 2, 4]
    )


def test_the_folder_holds_the_files_of_a_finished_run_and_no_journal(finished):
    names = {path.name for path in finished.folder.iterdir()}
    assert names == {"run.json", "items.jsonl", "results.json", "profiles.jsonl", ".lock"}


def test_results_follow_the_contract(finished):
    results = json.loads((finished.folder / "results.json").read_text("utf-8"))
    assert set(results) == RESULT_KEYS
    assert (results["benchmark"], results["model"]) == ("shuffle", "llama")
    assert results["skipped"] == {"too short for block size 4": 1}
    assert results["tokens"] > 0
    data = json.loads((finished.folder / "run.json").read_text("utf-8"))["data"]["fingerprint"][:12]
    start = f"ensue:{ensue.__version__} benchmark:shuffle data:{data} model:llama weights:"
    assert results["signature"].startswith(start)
    for row in results["metrics"]:
        assert set(row) == ROW_KEYS
        low, high = row["ci95"]
        assert 0.0 <= low <= row["value"] <= high <= 1.0
        assert set(row["settings"]) == {"block_size"}
    rows = [(r["task"], r["settings"]["block_size"], r["metric"]) for r in results["metrics"]]
    metrics: tuple[str, ...] = ("accuracy", "accuracy_per_token", "ties", "ties_per_token")
    metrics += tuple(f"{metric}_{how}" for metric in metrics[:2] for how in ("by_document", "authors"))
    tasks = ("shuffle", "shuffle/law", "shuffle/news")
    assert rows == [(task, size, metric) for task in tasks for size in (1, 2, 4) for metric in metrics]


def test_every_value_can_be_computed_from_the_items_alone(finished):
    found: dict[tuple[str, int, str], list[tuple[float, str]]] = defaultdict(list)
    for item in read_lines(finished.folder / "items.jsonl"):
        size, outputs = item["settings"]["block_size"], item["outputs"]
        gain = outputs["original"]["logprob"] - outputs["shuffled"]["logprob"]
        scores = {"accuracy": gain > 1e-4, "ties": abs(gain) <= 1e-4}
        for task in (item["task"], f"{item['task']}/{outputs['domain']}"):
            for metric, value in {**item["scores"], **scores}.items():
                found[task, size, metric].append((float(value), item["cluster"]))
    rows = json.loads((finished.folder / "results.json").read_text("utf-8"))["metrics"]
    by_pairs = [row for row in rows if not row["metric"].endswith(("_by_document", "_authors"))]
    assert len(by_pairs) == len(found)
    for row in by_pairs:
        pairs = found[row["task"], row["settings"]["block_size"], row["metric"]]
        values, clusters = [value for value, _ in pairs], [cluster for _, cluster in pairs]
        assert row["value"] == pytest.approx(sum(values) / len(values), abs=1e-12)
        assert (row["n"], row["clusters"]) == (len(values), len(set(clusters)))
        interval = clustered_interval(values, clusters, bounds=(0, 1))
        assert row["ci95"] == [interval.low, interval.high]
    for row in rows:
        metric = row["metric"].removesuffix("_by_document").removesuffix("_authors")
        if row not in by_pairs:
            documents = defaultdict(list)
            for value, cluster in found[row["task"], row["settings"]["block_size"], metric]:
                documents[cluster].append(value)
            means = [sum(values) / len(values) for values in documents.values()]
            # The document of three sentences has a single block of four, which the authors count as wrong.
            single = row["settings"]["block_size"] == 4 and row["task"] in ("shuffle", "shuffle/news")
            counted = len(means) + (single and row["metric"].endswith("_authors"))
            assert (row["value"], row["n"]) == (pytest.approx(sum(means) / counted), counted)


def test_run_json_says_what_was_asked_of_what_and_where(finished, llama, corpus):
    about = json.loads((finished.folder / "run.json").read_text("utf-8"))
    assert about["asked"]["settings"]["block_size"] == [1, 2, 4]
    assert about["asked"]["seed"] == 0
    assert set(about["model"]["identity"]) == {"weights", "tokenizer", "dtype", "revision"}
    assert about["data"]["source"] == str(corpus)
    assert about["data"]["fingerprint"] == about["asked"]["data_fingerprint"]
    assert about["environment"]["packages"]["torch"]
    assert about["signature"] == finished.results["signature"]
    assert about["peak_memory"]["cpu_mib"] > 10


def test_profiles_are_kept_for_every_document_that_was_used(finished):
    rows = read_lines(finished.folder / "profiles.jsonl")
    assert [row["document"] for row in rows] == ["d0", "d1", "d2", "d3", "d4"]
    original, shuffled = rows[4]["versions"]
    assert original["sentences"] == document(4, 3)
    assert [document(4, 3)[i] for i in shuffled["order"]] == shuffled["sentences"]
    assert len(original["surprisal"]) == len(original["tokens"]) == 3
    assert sum(original["tokens"]) == sum(shuffled["tokens"])


def test_the_run_object_gives_results_items_and_a_data_frame(finished):
    assert finished.results["benchmark"] == "shuffle"
    assert len(finished.items) == sum(
        r["n"] for r in finished.results["metrics"] if (r["task"], r["metric"]) == ("shuffle", "accuracy")
    )
    frame = finished.to_pandas()
    assert {"task", "metric", "value", "ci95", "n", "clusters", "block_size"} == set(frame.columns)
    chosen = frame[(frame.task == "shuffle") & (frame.metric == "accuracy") & (frame.block_size == 2)]
    assert chosen.value.item() == next(
        r["value"]
        for r in finished.results["metrics"]
        if (r["task"], r["metric"], r["settings"]) == ("shuffle", "accuracy", {"block_size": 2})
    )


def test_a_data_frame_without_pandas_is_one_sentence(finished, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(EnsueError, match=r"pip install 'ensue\[pandas\]'"):
        finished.to_pandas()


def test_a_model_that_is_already_loaded_can_be_run(tmp_path, corpus):
    run = ensue.run("shuffle", model=RandomModel(seed=3), data=corpus, output=tmp_path / "run", shuffles=2)
    assert run.results["model"] == "random"


def test_json_on_standard_output_is_one_document_and_words_go_to_standard_error(tmp_path, corpus):
    output = tmp_path / "run"
    finished = in_process_of_its_own(
        "run", "shuffle", "--model", "random", "--data", corpus, "--output", output, "--report", "--json"
    )
    assert finished.code == 0
    printed = json.loads(finished.out)
    assert finished.out.count("\n") == 1
    assert printed.pop("folder") == str(output)
    assert printed.pop("report") == str(output / "report.html")
    assert (output / "report.html").is_file()
    assert printed == json.loads((output / "results.json").read_text("utf-8"))
    assert "100 %" in finished.err


def test_without_json_the_table_the_signature_and_the_folder_are_printed(tmp_path, corpus):
    output = tmp_path / "run"
    finished = in_process_of_its_own(
        "run", "shuffle", "--model", "random", "--data", corpus, "--output", output
    )
    results = json.loads((output / "results.json").read_text("utf-8"))
    assert finished.code == 0
    assert results["signature"] in finished.out
    assert f"run folder: {output}\n" in finished.out
    assert "too short for block size 3: 1" in finished.out
    assert f"{results['metrics'][0]['value']:.3f}" in finished.out


def test_the_default_folder_is_named_for_the_question(tmp_path, monkeypatch, corpus):
    monkeypatch.chdir(tmp_path)
    first = ensue.run("shuffle", model="random", data=corpus)
    other = ensue.run("shuffle", model="random", data=corpus, seed=1)
    assert first.folder.parent == other.folder.parent == Path("runs")
    assert first.folder != other.folder
    for run in (first, other):
        assert run.folder.name.startswith("shuffle-random-")
        assert (run.folder / "results.json").is_file()
    assert ensue.run("shuffle", model="random", data=corpus, resume=True).folder == first.folder


def test_a_finished_run_of_the_same_question_is_read_and_not_run_again(tmp_path, corpus):
    output = tmp_path / "run"
    command = ("run", "shuffle", "--model", "random", "--data", corpus, "--output", output)
    assert here(*command).code == 0
    before = {path.name: path.read_bytes() for path in output.iterdir()}
    for more in ([], ["--resume"]):
        again = here(*command, *more, "--json")
        assert again.code == 0
        assert json.loads(again.out)["seconds"] == json.loads(before["results.json"])["seconds"]
        assert {path.name: path.read_bytes() for path in output.iterdir()} == before
    reported = here(*command, "--report")
    assert reported.code == 0
    assert f"run folder: {output} (finished before: read, not run again)" in reported.out
    assert (output / "report.html").is_file()
    cell = {"model": "random", "data": corpus, "output": output}
    assert ensue.run("shuffle", **cell).results == ensue.run("shuffle", **cell).results
    with pytest.raises(EnsueError, match="holds a finished run with seed 0, not 3"):
        ensue.run("shuffle", **cell, seed=3)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["--seed", "1"], ["seed 0, not 1"]),
        (["--model", "unigram"], ['model "random", not "unigram"']),
        (["--set", "shuffles=3"], ["settings shuffles 20, not 3"]),
        (["--set", "joiner=\\n"], ["settings joiner"]),
        (["--set", "window=strided"], ['settings window "average", not "strided"']),
        (["--limit", "2"], ["limit null, not 2"]),
    ],
)
def test_another_question_is_refused_by_name(tmp_path, corpus, more, words):
    output = tmp_path / "run"
    command = ("run", "shuffle", "--model", "random", "--data", corpus, "--output", output)
    assert here(*command).code == 0
    before = (output / "results.json").read_bytes()
    refused(here(*command, *more), str(output), "a finished run", *words, "another --output")
    refused(here(*command, "--resume", *more), str(output), *words, "another --output")
    assert (output / "results.json").read_bytes() == before


@pytest.mark.parametrize("damaged", ["[]", '{"asked": 3}', '{"asked": ', "3"])
def test_a_run_json_that_is_something_else_is_one_sentence(tmp_path, corpus, damaged):
    output = tmp_path / "run"
    output.mkdir()
    (output / "run.json").write_text(damaged)
    (output / "items.jsonl").write_text("work\n")
    command = ("run", "shuffle", "--model", "random", "--data", corpus, "--output", output)
    refused(here(*command, "--resume"), str(output / "run.json"), "another --output")
    assert (output / "items.jsonl").read_text() == "work\n"


def test_other_weights_or_documents_under_the_same_name_are_refused_by_name(tmp_path):
    output, folder = tmp_path / "run", tmp_path / "model"
    data = write_corpus(tmp_path / "corpus.jsonl", (4, 4))
    command = ("run", "shuffle", "--model", folder, "--data", data, "--output", output, "--resume")
    tiny.save_llama(folder, seed=0)
    assert here(*command, "--set", "shuffles=1").code == 0
    refused(here(*command, "--set", "shuffles=1", "--dtype", "bfloat16"), 'dtype "float32", not "bfloat16"')
    tiny.save_llama(folder, seed=1)
    refused(here(*command, "--set", "shuffles=1"), "identity weights")
    tiny.save_llama(folder, seed=0)
    write_corpus(data, (4, 4), seed=1)
    refused(here(*command, "--set", "shuffles=1"), "data_fingerprint")
    write_corpus(data, (4, 4))
    assert here(*command, "--set", "shuffles=1").code == 0


def test_a_folder_is_worked_on_by_one_process_at_a_time(tmp_path, corpus):
    from ensue.runs.folder import RunFolder

    output = tmp_path / "run"
    held = RunFolder(output, {}, resume=False)
    command = ("run", "shuffle", "--model", "random", "--data", corpus, "--output", output, "--resume")
    try:
        refused(in_process_of_its_own(*command), "Another process", str(output))
        assert [path.name for path in output.iterdir()] == [".lock"]
    finally:
        held.close()
    assert here(*command).code == 0


@pytest.mark.slow
def test_two_processes_that_start_together_make_one_run(tmp_path, llama):
    data, output = write_corpus(tmp_path / "corpus.jsonl", (10,) * 6), tmp_path / "run"
    command = ("run", "shuffle", "--model", llama, "--data", data, "--output", output)
    ended = []
    for process in [start(*command), start(*command)]:
        _, said = process.communicate(timeout=120)
        ended.append((process.returncode, said))
    (best, _), (worst, said) = sorted(ended)
    assert (best, worst) == (0, 2)
    assert "Another process" in said or "--resume" in said
    assert (output / "results.json").is_file()


def test_a_run_stopped_before_its_first_file_leaves_a_folder_that_can_be_used(tmp_path, corpus):
    output = tmp_path / "run"
    output.mkdir()
    (output / ".lock").touch()
    (output / ".run.json.part").write_text('{"ask')
    assert here("run", "shuffle", "--model", "random", "--data", corpus, "--output", output).code == 0


def test_an_unfinished_run_that_lost_its_run_json_is_not_guessed_at(tmp_path, corpus):
    output = tmp_path / "run"
    output.mkdir()
    (output / "journal.jsonl").write_text("[]\n")
    command = ("run", "shuffle", "--model", "random", "--data", corpus, "--output", output, "--resume")
    refused(here(*command), "holds no run")
    (output / "run.json").write_text("{oops")
    refused(here(*command), "run.json", "not readable JSON")


@pytest.mark.parametrize("there", [False, True])
def test_a_refused_run_leaves_nothing_behind(tmp_path, corpus, there):
    output = tmp_path / "runs" / "today" / "run"
    if there:
        output.mkdir(parents=True)
    before = set(tmp_path.rglob("*"))
    refused(here("run", "discoeval", "--model", "random", "--data", corpus, "--output", output), "folder")
    asked = ("run", "senteval/MR", "--data", write_reviews(tmp_path.parent / f"reviews{there}"))
    refused(here(*asked, "--model", "random", "--output", output), "random", "encode")
    assert set(tmp_path.rglob("*")) == before


def write_reviews(folder: Path) -> Path:
    """The two files of a task of SentEval."""
    for name in ("pos", "neg"):
        path = folder / "downstream" / "MR" / f"rt-polarity.{name}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(f"a {name} film, number {n}\n" for n in range(20)), "utf-8")
    return folder


def test_an_unfinished_run_needs_to_be_told_to_go_on_and_damage_is_noted(tmp_path, corpus, capfd):
    output = tmp_path / "run"
    asked = {"model": "random", "data": corpus, "output": output}

    class Stop(Exception): ...

    def stop(done, total, unit):
        if done > total / 2:
            raise Stop

    with pytest.raises(Stop):
        ensue.run("shuffle", **asked, progress=stop)
    journal = output / "journal.jsonl"
    kept = journal.read_bytes()
    with pytest.raises(
        EnsueError, match=r"an unfinished run of this; add --resume \(in Python: resume=True\)"
    ):
        ensue.run("shuffle", **asked)
    for resume in (False, True):
        with pytest.raises(EnsueError, match="holds an unfinished run with seed 0, not 1"):
            ensue.run("shuffle", **asked, seed=1, resume=resume)
    assert journal.read_bytes() == kept
    lines = kept.splitlines(keepends=True)
    lines[1] = lines[1].replace(b"e", b"f")
    journal.write_bytes(b"".join(lines))
    capfd.readouterr()
    found = ensue.run("shuffle", **asked, resume=True)
    assert f"{journal}: 1 line was damaged and dropped; {len(lines) - 1} are kept." in capfd.readouterr().err
    assert found.results["notes"] == {"damaged records of finished work, dropped and done again": 1}
    about = json.loads((output / "run.json").read_text("utf-8"))
    assert about["resumed_from"] == len(lines) - 1
    whole = ensue.run("shuffle", **{**asked, "output": tmp_path / "whole"})
    assert found.results["metrics"] == whole.results["metrics"]
    assert found.items == whole.items


def test_a_finished_run_killed_before_it_was_tidied_up_is_tidied_up(tmp_path, corpus):
    asked = {"model": "random", "data": corpus, "output": tmp_path / "run"}
    first = ensue.run("shuffle", **asked)
    for name in ("journal.jsonl", ".kept-weights", ".kept-weights.part"):
        (first.folder / name).write_text("left")
    ensue.run("shuffle", **asked)
    names = {path.name for path in first.folder.iterdir()}
    assert names == {"run.json", "items.jsonl", "results.json", "profiles.jsonl", ".lock"}


def test_a_signature_tells_data_and_limits_apart(tmp_path, corpus):
    other = write_corpus(tmp_path / "other.jsonl", (5, 5))

    def signature(name, **asked):
        run = ensue.run("shuffle", model="random", output=tmp_path / name, **asked)
        return run.results["signature"].split()

    whole, few, others = (
        signature("whole", data=corpus),
        signature("few", data=corpus, limit=2),
        signature("other", data=other),
    )
    assert [word for word in few if word.startswith("limit:")] == ["limit:2"]
    assert not [word for word in whole if word.startswith("limit:")]
    assert [a.partition(":")[0] for a, b in zip(whole, others, strict=True) if a != b] == ["data"]
    assert whole[1] == "benchmark:shuffle"


def test_a_bad_run_from_python_raises_the_same_sentence(tmp_path, corpus):
    with pytest.raises(EnsueError, match="did you mean block_size"):
        ensue.run("shuffle", model="random", data=corpus, output=tmp_path / "run", blocksize=3)
    with pytest.raises(EnsueError, match="at least 1"):
        ensue.run("shuffle", model="random", data=corpus, output=tmp_path / "run", limit=0)


def test_seconds_are_those_of_the_run(tmp_path, corpus):
    began = time.monotonic()
    run = ensue.run("shuffle", model="random", data=corpus, output=tmp_path / "run")
    assert 0 <= run.results["seconds"] <= time.monotonic() - began + 0.01
