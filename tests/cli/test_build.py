"""`ensue build`: tables for people, JSON for programs, and refusals that leave nothing behind."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.support.command import here, in_process_of_its_own, refused, start, write_lines
from tests.support.tiny import SENTENCES

CUES = ["It was so because the rain had come.", "“Well,” said the miller."]


def works(path: Path, count: int = 3, chapters: int = 8, sentences: int = 60) -> Path:
    """Works of sentences that the tiny tokenizers know, with causes and dialogue among them."""
    generator = random.Random(count)
    rows = [
        {
            "id": f"w{n}",
            "title": f"Work {n}",
            "chapters": [
                {
                    "heading": f"CHAPTER {c + 1}",
                    "paragraphs": [f"Day {n} {c}.", *generator.choices([*SENTENCES, *CUES], k=sentences)],
                }
                for c in range(chapters)
            ],
        }
        for n in range(count)
    ]
    return write_lines(path, rows)


def build(source: object, output: object, *more: object):
    return here("build", "chapterbreak", source, "--output", output, *more)


def test_it_builds_and_prints_what_there_is(tmp_path):
    source = works(tmp_path / "novels.jsonl")
    done = build(source, tmp_path / "out", "--boundary", "chapter,dialogue")
    assert (done.code, done.err) == (0, "")
    for words in (
        "3 works",
        "chapter ",
        "dialogue",
        "novels",
        "breaks with fewer than five later chapters: 15",
    ):
        assert words in done.out
    assert done.out.splitlines()[-1] == f"data: {tmp_path / 'out'}"
    names = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert names == ["build.json", "chapter.json", "dialogue.json"]


def test_json_is_the_content_of_build_json(tmp_path):
    source = works(tmp_path / "novels.jsonl")
    done = build(source, tmp_path / "out", "--split", "mine", "--seed", 7, "--json")
    said = json.loads(done.out)
    assert said.pop("folder") == str(tmp_path / "out")
    assert said == json.loads((tmp_path / "out" / "build.json").read_text("utf-8"))
    assert said["settings"]["seed"] == 7
    assert said["statistics"]["examples"]["chapter"]["mine"]["examples"] == 6
    assert set(said) == {"settings", "statistics", "skipped", "notes", "fingerprint", "version"}


def test_what_is_built_is_what_is_read(tmp_path):
    from ensue.benchmarks.chapterbreak.data.examples import read_examples

    source = works(tmp_path / "novels.jsonl")
    build(source, tmp_path / "out", "--prefix-words", 50, "--suffix-words", 20, "--per-work", 1)
    found = read_examples(str(tmp_path / "out")).items
    assert [e.id for e in found] == ["novels/w0/0", "novels/w1/0", "novels/w2/0"]
    assert all(len(e.context.split()) == 50 and len(e.gold.split()) == 20 for e in found)


def test_an_existing_folder_is_replaced_only_when_asked(tmp_path):
    source, output = works(tmp_path / "novels.jsonl"), tmp_path / "out"
    assert build(source, output).code == 0
    before = (output / "chapter.json").read_bytes()
    refused(build(source, output, "--seed", 1), "out", "--overwrite")
    assert (output / "chapter.json").read_bytes() == before
    assert build(source, output, "--seed", 1, "--overwrite").code == 0
    assert (output / "chapter.json").read_bytes() != before


BAD = {
    "no source": (["no-such.jsonl"], "no-such.jsonl"),
    "a boundary": (["novels.jsonl", "--boundary", "chapter,scene"], "'scene'"),
    "negatives": (["novels.jsonl", "--negatives", "none"], "'none'"),
    "no data for other-split": (["novels.jsonl", "--negatives", "other-split"], "--negatives-data"),
    "a kind": (["novels.jsonl", "--kind", "pdf"], "'pdf'"),
    "a list that is not there": (["novels.jsonl", "--only", "dev.txt"], "dev.txt"),
    "a tokenizer that is not there": (["novels.jsonl", "--tokenizer", "./nowhere"], "./nowhere"),
    "too few chapters": (["short.jsonl"], "works with too few chapters: 1"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_one_sentence_and_leaves_nothing(tmp_path, monkeypatch, case):
    arguments, words = BAD[case]
    monkeypatch.chdir(tmp_path)
    works(tmp_path / "novels.jsonl", count=1)
    works(tmp_path / "short.jsonl", count=1, chapters=3)
    refused(build(arguments[0], "deep/out", *arguments[1:], "--json"), words)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["novels.jsonl", "short.jsonl"]


def test_a_tokenizer_counts_tokens(tmp_path):
    pytest.importorskip("transformers")
    from transformers import AutoTokenizer

    from ensue.benchmarks.chapterbreak.data.examples import read_examples
    from tests.support.tiny import save_gpt2

    folder = save_gpt2(tmp_path / "model")
    source = works(tmp_path / "novels.jsonl", count=1)
    sizes = ("--prefix-words", 300, "--suffix-words", 100)
    for workers in (1, 2):
        done = build(source, tmp_path / f"b{workers}", "--tokenizer", folder, "--workers", workers, *sizes)
        assert done.code == 0, done.err
    assert (tmp_path / "b1" / "chapter.json").read_bytes() == (tmp_path / "b2" / "chapter.json").read_bytes()
    tokenizer = AutoTokenizer.from_pretrained(folder)
    for example in read_examples(str(tmp_path / "b1")).items:
        for text, wanted in [(example.context, 300), (example.gold, 100), (example.negatives[0], 100)]:
            assert wanted <= len(tokenizer(text, add_special_tokens=False)["input_ids"]) <= wanted + 3


@pytest.mark.parametrize("workers", [1, 2])
def test_an_interrupted_build_says_so_and_leaves_nothing(tmp_path, workers):
    source = works(tmp_path / "novels.jsonl", count=1)
    source.write_text(source.read_text("utf-8") * 3000, "utf-8")
    running = start("build", "chapterbreak", source, "--output", tmp_path / "out", "--workers", workers)
    deadline = time.monotonic() + 60
    while not list(tmp_path.glob(".out.*")) and time.monotonic() < deadline:
        time.sleep(0.02)
    time.sleep(0.3)
    running.send_signal(signal.SIGINT)
    out, err = running.communicate(timeout=60)
    assert (running.returncode, out) == (1, "")
    assert err.splitlines()[-1] == "ensue: stopped; nothing was written."
    assert "Traceback" not in err
    assert [path.name for path in tmp_path.iterdir()] == ["novels.jsonl"]


def test_help_names_the_options_and_imports_nothing_heavy():
    done = in_process_of_its_own("build", "chapterbreak", "--help")
    assert done.code == 0
    for option in ("--boundary", "--negatives-data", "--tokenizer", "--overwrite", "--json"):
        assert option in done.out
    assert "chapterbreak" in in_process_of_its_own("build", "--help").out
    code = "import sys, ensue.cli.groups; print({'numpy', 'rich.table', 'transformers'} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "set()\n"
