"""A prepared corpus is whole and answers its own question, whoever was killed or works beside."""

import hashlib
import os
import signal
import subprocess
import sys

import numpy as np
import pytest
import torch

from ensue.backends.names import load_model
from ensue.backends.suffixlm.model import Shape, SuffixLM, bare_encoder
from ensue.progress import ignore
from ensue.train.suffixlm.corpus import prepare_corpus
from ensue.train.suffixlm.objective import encoded_segments
from tests.support import tiny
from tests.support.command import environment, write_lines
from tests.support.works import work_rows

PREPARE = """
import hashlib, os, signal, sys
from pathlib import Path
from ensue.progress import ignore
from ensue.train.suffixlm.corpus import prepare_corpus

source, folder, tokenizer, killed_at = sys.argv[1:]
def told(done, total, unit):
    if done == int(killed_at):
        os.kill(os.getpid(), signal.SIGKILL)
made = prepare_corpus(source, Path(folder), Path(tokenizer), segment_tokens=16, progress=told)
print(hashlib.sha256(made.rows.tobytes()).hexdigest())
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("corpora")
    tiny.save_encoder(folder / "encoder")
    # As many segments in the one as in the other, so that a size tells nothing.
    write_lines(folder / "one.jsonl", work_rows(5, chapters=4, seed=0))
    write_lines(folder / "two.jsonl", work_rows(5, chapters=4, seed=1))
    return folder


def prepare(place, name, folder, told=None):
    return prepare_corpus(
        str(place / f"{name}.jsonl"), folder, place / "encoder", segment_tokens=16, progress=told or ignore
    )


def prepare_elsewhere(place, name, folder, killed_at=0):
    arguments = [place / f"{name}.jsonl", folder, place / "encoder", killed_at]
    return subprocess.Popen(
        [sys.executable, "-c", PREPARE, *map(str, arguments)],
        stdout=subprocess.PIPE,
        text=True,
        env=environment(),
    )


def digest(corpus):
    return hashlib.sha256(corpus.rows.tobytes()).hexdigest()


@pytest.fixture(scope="module")
def fresh(place, tmp_path_factory):
    return {name: digest(prepare(place, name, tmp_path_factory.mktemp(name))) for name in ("one", "two")}


def test_a_preparation_that_was_interrupted_leaves_the_one_before_as_it_was(place, fresh, tmp_path):
    prepare(place, "one", tmp_path)

    def stop(done, total, unit):
        if done == 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        prepare(place, "two", tmp_path, told=stop)
    assert digest(prepare(place, "one", tmp_path)) == fresh["one"]
    assert digest(prepare(place, "two", tmp_path)) == fresh["two"]


def test_a_killed_preparation_is_made_again_and_two_at_once_end_in_the_same_rows(place, fresh, tmp_path):
    prepare(place, "one", tmp_path)
    killed = prepare_elsewhere(place, "two", tmp_path, killed_at=3)
    assert killed.wait(timeout=120) == -signal.SIGKILL
    assert digest(prepare(place, "one", tmp_path)) == fresh["one"]
    both = [prepare_elsewhere(place, "two", tmp_path) for _ in range(2)]
    assert [process.communicate(timeout=120)[0].strip() for process in both] == [fresh["two"]] * 2
    assert digest(prepare(place, "two", tmp_path)) == fresh["two"]


def test_rows_in_use_outlive_another_preparation_which_keeps_one_file(place, fresh, tmp_path):
    first = prepare(place, "one", tmp_path)
    second = prepare(place, "two", tmp_path)
    assert (digest(first), digest(second)) == (fresh["one"], fresh["two"])
    assert len(list(tmp_path.glob("*.bin"))) == 1


def test_rows_of_the_wrong_size_are_made_again(place, fresh, tmp_path):
    prepare(place, "one", tmp_path)
    (rows,) = tmp_path.glob("*.bin")
    os.truncate(rows, rows.stat().st_size - 32)
    assert digest(prepare(place, "one", tmp_path)) == fresh["one"]


def network(place, seed):
    encoder = load_model(str(place / "encoder")).network
    bare_encoder(encoder)
    torch.manual_seed(seed)
    torch.nn.init.normal_(encoder.embeddings.word_embeddings.weight)
    shape = Shape(dimension=16, inner=32, heads=2, layers=1, segment_tokens=16, max_segments=8)
    return SuffixLM(encoder, shape).eval()


def test_the_vectors_of_one_training_outlive_those_of_another(place, tmp_path):
    corpus = prepare(place, "one", tmp_path / "train")
    one, other = network(place, 0), network(place, 1)
    first = encoded_segments(one, corpus, tmp_path, "train")
    values = np.array(first)
    assert np.abs(values).sum(1).min() > 0
    failing = network(place, 2)
    failing.encode = None
    with pytest.raises(TypeError):
        encoded_segments(failing, corpus, tmp_path, "train")
    assert np.array_equal(first, values)
    assert np.array_equal(encoded_segments(one, corpus, tmp_path, "train"), values)
    second = encoded_segments(other, corpus, tmp_path, "train")
    assert not np.allclose(second, values)
    assert np.array_equal(first, values)


def test_vectors_are_made_once_for_the_same_encoder_and_rows(place, tmp_path):
    corpus = prepare(place, "one", tmp_path / "train")
    values = np.array(encoded_segments(network(place, 0), corpus, tmp_path, "train"))
    again = network(place, 0)
    again.encode = None
    assert np.array_equal(encoded_segments(again, corpus, tmp_path, "train"), values)
    with pytest.raises(TypeError):
        encoded_segments(again, prepare(place, "two", tmp_path / "train"), tmp_path, "train")
