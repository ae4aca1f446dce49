"""Bad input: one sentence that names the thing, exit code 2, and nothing that looks like a result."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.command import here, in_process_of_its_own, refused, write_lines

GOOD = "The sun rose. The birds sang. Nobody spoke. The rain stopped. They ran out."


def data_file(folder: Path, name: str, content: bytes | None) -> Path:
    path = folder / name
    if content is not None:
        path.write_bytes(content)
    return path


LINE = f'{{"text": "{GOOD}"}}\n'
CAFE = '{"text": "Le café est clos. Le thé est froid. Il pleut."}\n'
BAD_FILES = {
    "missing": ("no-such-file.jsonl", None, ("no-such-file.jsonl", "does not exist")),
    "empty": ("empty.jsonl", b"", ("empty.jsonl", "is empty")),
    "only blank lines": ("blank.jsonl", b"\n  \n", ("blank.jsonl", "is empty")),
    "empty text file": ("empty.txt", b"", ("empty.txt", "is empty")),
    "not JSON": ("news.jsonl", (LINE + "{oops\n").encode(), ("news.jsonl, line 2", "not JSON")),
    "no text": ("news.jsonl", (LINE + '{"text": " "}\n').encode(), ("news.jsonl, line 2", "no text")),
    "no sentence": ("news.jsonl", b'{"sentences": []}\n', ("news.jsonl, line 1", "no text")),
    "no such column": ("news.jsonl", b'{"words": "a"}\n', ("news.jsonl, line 1", "'words'")),
    "a NUL byte": ("news.jsonl", (LINE + '{"text": "a\0b"}\n').encode(), ("news.jsonl, line 2", "NUL")),
    "an escaped NUL": ("news.jsonl", rb'{"text": "a\u0000b. c."}', ("news.jsonl, line 1", "NUL")),
    "NUL bytes in text": ("news.txt", b"One.\nTwo\0.\n", ("news.txt, line 2", "NUL")),
    "latin-1": ("news.jsonl", (LINE + CAFE).encode("latin-1"), ("news.jsonl", "not UTF-8", "line 2")),
    "UTF-16": ("news.jsonl", (LINE + CAFE).encode("utf-16"), ("news.jsonl", "UTF-16")),
    "UTF-16 without a mark": ("news.txt", CAFE.encode("utf-16-le"), ("news.txt", "UTF-16")),
    "an unknown kind of file": ("news.pdf", b"%PDF", ("news.pdf", ".jsonl")),
}


@pytest.mark.parametrize("case", BAD_FILES)
def test_bad_documents_are_one_sentence_for_run_and_score(tmp_path, case):
    name, content, words = BAD_FILES[case]
    path = data_file(tmp_path, name, content)
    output = tmp_path / "run"
    command = ("run", "shuffle", "--model", "random", "--data", path, "--output", output, "--json")
    refused(here(*command), *words)
    assert not output.exists()
    refused(here("score", path, "--model", "random", "--json"), *words)


def test_a_real_process_says_it_on_standard_error_and_leaves_standard_output_empty(tmp_path):
    path = data_file(tmp_path, "news.jsonl", LINE.encode() + b"{oops\n")
    finished = in_process_of_its_own("run", "shuffle", "--model", "random", "--data", path, cwd=tmp_path)
    assert refused(finished).startswith(f"{path}, line 2 is not JSON")
    assert not (tmp_path / "runs").exists()


def test_an_encoding_that_is_named_is_read(tmp_path):
    path = data_file(tmp_path, "news.jsonl", CAFE.encode("latin-1"))
    finished = here("score", path, "--model", "unigram", "--set", "encoding=latin-1", "--json")
    assert (finished.code, finished.out.count("\n")) == (0, 1)


def test_documents_too_short_to_shuffle_are_one_sentence(tmp_path):
    path = write_lines(tmp_path / "short.jsonl", [{"text": "Only one."}, {"sentences": ["No.", "No."]}])
    output = tmp_path / "run"
    command = ("run", "shuffle", "--model", "random", "--data", path, "--output", output)
    refused(here(*command), "short.jsonl", "long enough")
    assert not (output / "results.json").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["run", "shuffle", "--set", "seed=1"], ["seed is given with an option"]),
        (["run", "shuffle", "--set", "model-options=x"], ["model_options is given"]),
        (["plan", "shuffle", "--set", "seed=1"], ["seed is given with an option"]),
        (["run", "shuffle", "--mode", "lp", "--set", "mode=x"], ["leave out --set mode=x"]),
        (["run", "shufle"], ["'shufle'", "did you mean shuffle?"]),
        (["run", "zzz"], ["'zzz'", "shuffle"]),
        (["run", "shuffle/SP"], ["shuffle/SP"]),
        (["run", "shuffle", "--set", "shufles=3"], ["'shufles'", "did you mean shuffles?"]),
        (["run", "shuffle", "--set", "shuffles=0"], ["shuffles=0", "whole number from 1"]),
        (["run", "shuffle", "--set", "shuffles=--5"], ["shuffles=--5", "whole number from 1"]),
        (["run", "shuffle", "--set", "shuffles=²"], ["shuffles=²", "whole number from 1"]),
        (["run", "shuffle", "--set", f"shuffles={'9' * 5000}"], ["whole number from 1"]),
        (["run", "shuffle", "--set", "block_size="], ["block_size is empty"]),
        (["run", "shuffle", "--set", "block_size=,"], ["block_size is empty"]),
        (["run", "shuffle", "--set", "block_size=1,0"], ["block_size=1,0", "whole number from 1"]),
        (["run", "shuffle", "--set", "block_size"], ["--set block_size", "key=value"]),
        (["run", "shuffle", "--set", "=3"], ["--set =3", "key=value"]),
        (["run", "shuffle", "--set", "max_sentences=1"], ["max_sentences=1", "whole number from 2"]),
        (["run", "shuffle", "--set", "window=best"], ["window=best", "average, strided, released, refuse"]),
        (["run", "shuffle", "--set", "encoding=utf-99"], ["utf-99", "not a text encoding"]),
        (["run", "shuffle", "--set", "language=german"], ["'german'", "ISO 639 code"]),
        (["score", "--profile", "--set", "language=german"], ["'german'", "ISO 639 code"]),
        (["run", "shuffle", "--dtype", "float15"], ["dtype=float15", "float32, bfloat16, float16"]),
        (["score", "--set", "overflw=truncate"], ["score has no setting 'overflw'", "overflow"]),
    ],
)
def test_bad_settings_are_one_sentence(tmp_path, monkeypatch, arguments, words):
    monkeypatch.chdir(tmp_path)
    path = data_file(tmp_path, "news.jsonl", LINE.encode())
    where = [path] if arguments[0] == "score" else ["--data", path]
    refused(here(*arguments, "--model", "random", *where), *words)
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize("arguments", [["--limit", "0"], ["--seed", "x"], ["--batch-tokens", "1"], ["--wat"]])
def test_bad_options_name_the_option_and_the_help(tmp_path, monkeypatch, arguments):
    monkeypatch.chdir(tmp_path)
    finished = here("run", "shuffle", "--model", "random", *arguments)
    assert (finished.code, finished.out) == (2, "")
    assert "Traceback" not in finished.err
    assert arguments[0] in finished.err
    assert "ensue run --help" in finished.err
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize("words", ["rn/run", "train/encodr/encoder", "build/squadd/squad", "models/lst/list"])
def test_a_misspelt_command_names_the_nearest(words):
    *group, wrong, right = words.split("/")
    finished = here(*group, wrong)
    assert (finished.code, finished.out) == (2, "")
    assert f"No such command '{wrong}'. Did you mean '{right}'?" in finished.err


def test_predictions_of_another_benchmark_are_no_submission(tmp_path):
    run = tmp_path / "run"
    here("run", "shuffle", "--model", "random", "--limit", 1, "--set", "shuffles=1", "--output", run)
    for suite in ("superglue", "discoeval"):
        refused(here("submit", suite, run, "--split", "dev"), f"is a run of shuffle, not of {suite}")


def test_output_that_is_a_file_is_refused_and_kept(tmp_path):
    path = data_file(tmp_path, "news.jsonl", LINE.encode())
    finished = here("run", "shuffle", "--model", "random", "--data", path, "--output", path)
    refused(finished, str(path), "is a file")
    assert path.read_bytes() == LINE.encode()


def test_output_below_a_file_is_refused(tmp_path):
    path = data_file(tmp_path, "news.jsonl", LINE.encode())
    finished = here("run", "shuffle", "--model", "random", "--data", path, "--output", path / "run")
    refused(finished, str(path), "Not a directory")


def test_output_folder_with_other_things_is_refused_and_untouched(tmp_path):
    path = data_file(tmp_path, "news.jsonl", LINE.encode())
    output = tmp_path / "thesis"
    output.mkdir()
    (output / "chapter.tex").write_text("precious")
    finished = here("run", "shuffle", "--model", "random", "--data", path, "--output", output)
    refused(finished, str(output), "not empty")
    assert [p.name for p in output.iterdir()] == ["chapter.tex"]


def test_an_empty_output_folder_is_used(tmp_path):
    path = data_file(tmp_path, "news.jsonl", LINE.encode())
    output = tmp_path / "run"
    output.mkdir()
    finished = here("run", "shuffle", "--model", "random", "--data", path, "--output", output)
    assert finished.code == 0
    assert (output / "results.json").is_file()


@pytest.mark.slow
def test_a_server_that_refuses_connections_ends_the_run_with_code_1(tmp_path):
    path = data_file(tmp_path, "news.jsonl", LINE.encode())
    output = tmp_path / "run"
    # Port 9 (discard) is served by nothing; the model is named, so that the run gets as far as scoring.
    url = "http://127.0.0.1:9/v1#some-model"
    command = ("run", "shuffle", "--model", url, "--data", path, "--output", output)
    refused(in_process_of_its_own(*command), "127.0.0.1:9", "could not be reached", code=1)
    assert not (output / "results.json").exists()


@pytest.mark.parametrize("command", [["report"], ["compare", "run"]])
def test_a_folder_that_is_no_run(tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    path = data_file(tmp_path, "news.jsonl", LINE.encode())
    assert here("run", "shuffle", "--model", "random", "--data", path, "--output", "run").code == 0
    (tmp_path / "other").mkdir()
    refused(here(*command, "other"), "other", "no run.json")
    refused(here(*command, "nowhere"), "nowhere", "no such folder")
    (tmp_path / "run" / "results.json").unlink()
    (tmp_path / "run" / "items.jsonl").unlink()
    refused(here(*command[:1], *["run"] * len(command)), "run is an unfinished run")
