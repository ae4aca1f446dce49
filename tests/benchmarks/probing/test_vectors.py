"""Each distinct sentence is encoded once, kept in its own model's file, and found again after any interruption."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import threading
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ensue.backends.names import load_model
from ensue.benchmarks.probing import vectors
from ensue.benchmarks.probing.vectors import encode_once
from ensue.errors import EnsueError
from ensue.models.card import ModelCard
from tests.support import tiny


class Lengths:
    """An encoder whose vectors can be worked out by hand; it remembers what it was given."""

    layer_count = 3

    def __init__(self, seed: int = 0, width: int = 4) -> None:
        self.card = ModelCard("lengths", "toy", "here", {"seed": str(seed)})
        self.seed, self.width = seed, width
        self.given: list[str] = []

    def encode(
        self, texts: Sequence[str], *, layers: Sequence[int] | None = None, pooling: str | None = None
    ) -> np.ndarray:
        self.given += texts
        if layers is None:
            return np.array([self.vector(t) for t in texts], dtype=np.float32).reshape(-1, self.width)
        rows = [[self.vector(t, layer) for layer in layers] for t in texts]
        return np.array(rows, dtype=np.float32).reshape(-1, len(layers), self.width)

    def vector(self, text: str, layer: int = 0) -> list[float]:
        return [len(text), sum(text.encode()) % 1000, self.seed, layer][: self.width]


class Failing(Lengths):
    """The same encoder, which makes of one sentence something else."""

    def __init__(self, bad: str, value: float) -> None:
        super().__init__()
        self.bad, self.value = bad, value

    def vector(self, text: str, layer: int = 0) -> list[float]:
        return [1.0, self.value, 0.0, 0.0] if text == self.bad else super().vector(text, layer)


SENTENCES = [f"Sentence number {i} is {'very ' * (i % 5)}long." for i in range(50)]


@pytest.fixture
def small_chunks(monkeypatch):
    monkeypatch.setattr(vectors, "CHUNK", 7)


def folder_in(home: Path) -> Path:
    (folder,) = (home / "vectors").iterdir()
    return folder


def test_vectors_are_the_encoders_own(tmp_path):
    encoder = Lengths()
    found = encode_once(encoder, SENTENCES, home=tmp_path)
    assert (found.width, found.layers, len(found)) == (4, None, 50)
    rows = found.rows(SENTENCES[::-1])
    assert (rows.dtype, rows.shape) == (np.int64, (50,))
    taken = found.take(rows)
    assert taken.dtype == np.float32
    np.testing.assert_array_equal(taken, [encoder.vector(s) for s in SENTENCES[::-1]])
    square = found.take(rows[:6].reshape(2, 3))
    np.testing.assert_array_equal(square, taken[:6].reshape(2, 3, 4))
    assert found.take(np.zeros((0, 2), dtype=np.int64)).shape == (0, 2, 4)


def test_a_real_model_gives_what_it_gives_without_the_cache(tmp_path):
    model = load_model(str(tiny.save_encoder(tmp_path / "model")))
    found = encode_once(model, tiny.SENTENCES, home=tmp_path, pooling="cls")
    np.testing.assert_allclose(
        found.take(found.rows(tiny.SENTENCES)), model.encode(tiny.SENTENCES, pooling="cls"), atol=1e-6
    )
    layered = encode_once(model, tiny.SENTENCES, home=tmp_path, pooling="mean", layers=[0, 1, 2])
    expected = model.encode(tiny.SENTENCES, pooling="mean", layers=[0, 1, 2])
    for layer in range(3):
        taken = layered.take(layered.rows(tiny.SENTENCES), layer)
        np.testing.assert_allclose(taken, expected[:, layer], atol=1e-6)


@given(st.lists(st.lists(st.sampled_from(SENTENCES), max_size=40), min_size=1, max_size=5))
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whatever_is_asked_in_whatever_order_each_sentence_is_encoded_once(
    tmp_path_factory, small_chunks, asked
):
    home, encoder = tmp_path_factory.mktemp("home"), Lengths()
    for sentences in asked:
        found = encode_once(encoder, iter(sentences), home=home)
        expected = np.array([encoder.vector(s) for s in sentences]).reshape(-1, 4)
        np.testing.assert_array_equal(found.take(found.rows(sentences)), expected)
    assert sorted(encoder.given) == sorted({s for sentences in asked for s in sentences})


def test_layers_are_named_by_number_and_each_pooling_has_its_own_vectors(tmp_path):
    encoder = Lengths()
    found = encode_once(encoder, SENTENCES, layers=[3, 1, 1], home=tmp_path)
    assert found.layers == (1, 3)
    for layer in (1, 3, 1):
        taken = found.take(found.rows(SENTENCES[:3]), layer)
        np.testing.assert_array_equal(taken, [encoder.vector(s, layer) for s in SENTENCES[:3]])
    for layer in (None, 0):
        with pytest.raises(EnsueError, match=f"Layer {layer} was not kept, only 1, 3"):
            found.take(found.rows(SENTENCES[:1]), layer)
    with pytest.raises(EnsueError, match="Layer 1 was not kept, only the encoder's own output"):
        encode_once(encoder, SENTENCES[:1], home=tmp_path).take(np.zeros(1, dtype=np.int64), 1)
    encoder.given.clear()
    encode_once(encoder, SENTENCES, layers=(3, 1), home=tmp_path)
    assert encoder.given == []
    encode_once(encoder, SENTENCES, layers=[1, 3], pooling="cls", home=tmp_path)
    assert len(encoder.given) == 50


def test_two_models_never_share_a_file(tmp_path):
    for seed in (0, 1):
        encoder = Lengths(seed)
        found = encode_once(encoder, SENTENCES, home=tmp_path)
        assert found.take(found.rows(SENTENCES))[:, 2].tolist() == [seed] * 50
    assert len(list((tmp_path / "vectors").iterdir())) == 2
    nameless = Lengths()
    nameless.card = ModelCard("nameless", "toy", "here")
    with pytest.raises(EnsueError, match="nameless states no identity"):
        encode_once(nameless, SENTENCES, home=tmp_path)
    about = folder_in_of(tmp_path, seed=1) / "about.json"
    about.write_text(json.dumps({**json.loads(about.read_text()), "kind": "other"}))
    with pytest.raises(EnsueError, match="holds vectors of another model"):
        encode_once(Lengths(1), SENTENCES, home=tmp_path)


def folder_in_of(home: Path, seed: int) -> Path:
    for folder in (home / "vectors").iterdir():
        if json.loads((folder / "about.json").read_text())["identity"]["seed"] == str(seed):
            return folder
    raise AssertionError(f"no folder of seed {seed}")


@pytest.mark.parametrize("layers", [None, [0, 2]])
@pytest.mark.parametrize("file", ["index", "vectors"])
@pytest.mark.parametrize("torn", [1, 5, 16, 37])
def test_a_torn_tail_is_cut_and_encoded_again(tmp_path, small_chunks, layers, file, torn):
    encode_once(Lengths(), SENTENCES[:20], layers=layers, home=tmp_path)
    folder = folder_in(tmp_path)
    files = [folder / "index"] if file == "index" else sorted(folder.glob("*.f32"))[-1:]
    for path in files:
        os.truncate(path, path.stat().st_size - torn)
    encoder = Lengths()
    found = encode_once(encoder, SENTENCES, layers=layers, home=tmp_path)
    assert 30 < len(encoder.given) <= 34
    for layer in layers or [None]:
        expected = [encoder.vector(s, layer or 0) for s in SENTENCES]
        np.testing.assert_array_equal(found.take(found.rows(SENTENCES), layer), expected)
    assert (folder / "index").stat().st_size == 50 * 20


@pytest.mark.parametrize("layers", [None, [0, 1]])
@pytest.mark.parametrize("place", [0, 7, 17, -1])
@pytest.mark.parametrize("file", ["index", "*.f32"])
def test_a_flipped_byte_costs_its_sentence_alone(tmp_path, layers, file, place):
    few = SENTENCES[:9]
    encode_once(Lengths(), few, layers=layers, home=tmp_path)
    path = sorted(folder_in(tmp_path).glob(file))[-1]
    content = bytearray(path.read_bytes())
    content[place] ^= 64
    path.write_bytes(content)
    encoder, again = Lengths(), Lengths()
    for one in (encoder, again):
        found = encode_once(one, few, layers=layers, home=tmp_path)
        for layer in layers or [None]:
            expected = [encoder.vector(s, layer or 0) for s in few]
            np.testing.assert_array_equal(found.take(found.rows(few), layer), expected)
    assert len(encoder.given) == 1
    assert not again.given


def test_vectors_without_their_index_do_not_count(tmp_path):
    encode_once(Lengths(), SENTENCES[:20], home=tmp_path)
    with (folder_in(tmp_path) / "vectors.f32").open("ab") as file:
        file.write(os.urandom(100))
    found = encode_once(Lengths(), SENTENCES, home=tmp_path)
    np.testing.assert_array_equal(found.take(found.rows(SENTENCES)), [Lengths().vector(s) for s in SENTENCES])


class Deadly(Lengths):
    """Kills its own process at the third chunk."""

    calls = 0

    def encode(self, texts, **options):
        self.calls += 1
        if self.calls == 4:  # the first asks for no sentences
            os.kill(os.getpid(), signal.SIGKILL)
        return super().encode(texts, **options)


def _die(home: Path) -> None:
    vectors.CHUNK = 7
    encode_once(Deadly(), SENTENCES, home=home)


def test_a_killed_run_goes_on(tmp_path):
    process = multiprocessing.get_context("fork").Process(target=_die, args=(tmp_path,))
    process.start()
    process.join(60)
    assert process.exitcode == -signal.SIGKILL
    encoder = Lengths()
    found = encode_once(encoder, SENTENCES, home=tmp_path)
    assert encoder.given == SENTENCES[14:]
    np.testing.assert_array_equal(found.take(found.rows(SENTENCES)), [encoder.vector(s) for s in SENTENCES])


def test_writers_at_the_same_time_share_the_work(tmp_path, small_chunks):
    encoders = [Lengths() for _ in range(4)]
    threads = [
        threading.Thread(target=encode_once, args=(encoder, SENTENCES), kwargs={"home": tmp_path})
        for encoder in encoders
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(s for encoder in encoders for s in encoder.given) == sorted(SENTENCES)
    found = encode_once(Lengths(), SENTENCES, home=tmp_path)
    np.testing.assert_array_equal(found.take(found.rows(SENTENCES)), [Lengths().vector(s) for s in SENTENCES])


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_what_is_no_number_is_refused_with_its_sentence_and_nothing_of_its_chunk_is_kept(
    tmp_path, small_chunks, value
):
    with pytest.raises(
        EnsueError, match=r"lengths gave .* not all finite numbers for 'Sentence number 16 is"
    ):
        encode_once(Failing(SENTENCES[16], value), SENTENCES, home=tmp_path)
    encoder = Lengths()
    encode_once(encoder, SENTENCES, home=tmp_path)
    assert encoder.given == SENTENCES[14:]


def test_bad_sentences_are_named(tmp_path):
    for empty in ("", "  \t"):
        with pytest.raises(EnsueError, match=r"Sentence 3 is empty"):
            encode_once(Lengths(), [*SENTENCES[:2], empty], home=tmp_path)
    with pytest.raises(EnsueError, match=r"not valid Unicode: 'a \\ud800'"):
        encode_once(Lengths(), ["a \ud800"], home=tmp_path)
    found = encode_once(Lengths(), SENTENCES[:2], home=tmp_path)
    with pytest.raises(EnsueError, match=r"was never encoded: 'Sentence number 2 is very very long\.'"):
        found.rows(SENTENCES[:3])


def test_an_array_of_another_shape_is_refused(tmp_path):
    encode_once(Lengths(), SENTENCES[:2], home=tmp_path)
    with pytest.raises(EnsueError, match=r"shape \(1, 3\) for 1 sentences, where rows of width 4"):
        encode_once(Lengths(width=3), SENTENCES[2:3], home=tmp_path)


def test_a_place_that_cannot_be_written_is_one_sentence(tmp_path):
    (tmp_path / "vectors").write_text("a file, where a folder should be")
    with pytest.raises(EnsueError, match=r"Vectors of lengths cannot be kept in .*; make room there or set"):
        encode_once(Lengths(), SENTENCES, home=tmp_path)


def test_progress_counts_what_is_known_and_ends_at_the_total(tmp_path, small_chunks, monkeypatch):
    monkeypatch.setenv("ENSUE_HOME", str(tmp_path))
    told: list[tuple[int, int, str]] = []
    encode_once(Lengths(), SENTENCES[:10], progress=lambda *given: told.append(given))
    assert told == [(0, 10, "sentences"), (7, 10, "sentences"), (10, 10, "sentences")]
    told.clear()
    encode_once(Lengths(), SENTENCES[:12] * 2, progress=lambda *given: told.append(given))
    assert told == [(10, 12, "sentences"), (12, 12, "sentences")]
    assert folder_in(tmp_path).is_dir()


def test_no_sentences_have_a_width_all_the_same(tmp_path):
    found = encode_once(Lengths(), [], home=tmp_path)
    assert (found.width, len(found)) == (4, 0)
    assert found.take(found.rows([])).shape == (0, 4)
