"""`ensue score`: the lines it prints, their order, profiles, and scores kept for next time."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import ensue
from tests.scoring import naive
from tests.support import tiny
from tests.support.command import here, in_process_of_its_own, read_lines, refused, write_lines
from tests.support.corpus import document

TEXTS = [tiny.SENTENCES[0], " ".join(tiny.SENTENCES[:4]), "A dog.", tiny.SENTENCES[0]]


@pytest.fixture(scope="module")
def llama(tmp_path_factory) -> Path:
    return tiny.save_llama(tmp_path_factory.mktemp("models") / "llama", max_length=256)


@pytest.fixture
def texts(tmp_path) -> Path:
    return write_lines(tmp_path / "texts.jsonl", [{"id": f"t{i}", "text": t} for i, t in enumerate(TEXTS)])


def lines(out: str) -> list[dict]:
    return [json.loads(line) for line in out.rstrip("\n").split("\n")]


@pytest.mark.slow
def test_one_object_a_line_in_input_order_and_nothing_else(llama, texts):
    finished = in_process_of_its_own("score", texts, "--model", llama, "--json")
    assert finished.code == 0
    rows = lines(finished.out)
    assert [row["id"] for row in rows] == ["t0", "t1", "t2", "t3"]
    assert all(set(row) == {"id", "tokens", "logprob", "logprob_per_token"} for row in rows)
    for row in rows:
        assert row["logprob"] == pytest.approx(row["logprob_per_token"] * row["tokens"])
        assert row["logprob"] < 0
    first, *_, last = rows
    assert {**first, "id": "t3"} == last
    expected = ensue.score(TEXTS, model=str(llama)).scores
    np.testing.assert_allclose([r["logprob"] for r in rows], [s.logprob for s in expected], atol=1e-4)
    assert finished.err.splitlines()[-1].startswith(f"ensue:{ensue.__version__} model:llama weights:")


def test_without_json_a_table_is_printed(texts):
    finished = here("score", texts, "--model", "unigram")
    headings, *rows = finished.out.splitlines()
    assert headings.split() == ["total,", "nats", "per", "token", "tokens", "text"]
    assert [line.split()[-1] for line in rows] == ["t0", "t1", "t2", "t3"]
    assert headings.index("tokens") + len("tokens") == rows[0].rindex("  ")


def test_a_limit_takes_the_first_texts(texts):
    assert len(lines(here("score", texts, "--model", "random", "--limit", "2", "--json").out)) == 2


def test_text_is_scored_as_it_stands_and_sentences_are_joined(tmp_path, llama):
    raw = "One  two.\n\nThree four."
    path = write_lines(tmp_path / "texts.jsonl", [{"text": raw}, {"sentences": ["One two.", "Three four."]}])
    as_is, joined = lines(here("score", path, "--model", llama, "--json").out)
    lined = lines(here("score", path, "--model", llama, "--json", "--set", "joiner=\\n").out)[1]
    expected = ensue.score([raw, "One two. Three four.", "One two.\nThree four."], model=str(llama)).scores
    found = [as_is["logprob"], joined["logprob"], lined["logprob"]]
    assert found == pytest.approx([score.logprob for score in expected], abs=1e-4)


def test_contexts_are_seen_and_not_scored(tmp_path, llama):
    rows = [
        {"id": 7, "context": tiny.SENTENCES[0], "continuation": " The birds sang."},
        {"continuation": " The birds sang."},
    ]
    path = write_lines(tmp_path / "pairs.jsonl", rows)
    after, alone = lines(here("score", path, "--model", llama, "--json").out)
    assert (after["id"], alone["id"]) == ("7", "2")
    assert after["tokens"] == alone["tokens"] + 1  # the first token of a text without BOS is not scored
    whole, context = ensue.score(
        [tiny.SENTENCES[0] + " The birds sang.", tiny.SENTENCES[0]], model=str(llama)
    ).scores
    assert after["logprob"] == pytest.approx(whole.logprob - context.logprob, abs=1e-3)


@pytest.mark.parametrize("row", [{"context": "a", "continuation": ""}, {"context": 1, "continuation": "a"}])
def test_a_pair_that_is_none_is_one_sentence(tmp_path, row):
    path = write_lines(tmp_path / "pairs.jsonl", [{"context": "a", "continuation": "b"}, row])
    refused(here("score", path, "--model", "random"), "pairs.jsonl, line 2", "continuation")


def test_a_profile_has_the_surprisal_of_every_sentence(tmp_path, llama):
    sentences = document(1, 4)
    path = write_lines(tmp_path / "texts.jsonl", [{"id": "a", "sentences": sentences}])
    (row,) = lines(here("score", path, "--model", llama, "--profile", "--json").out)
    (version,) = row["profile"]
    assert version["sentences"] == sentences
    assert sum(version["tokens"]) == row["tokens"]
    surprisal = np.dot(version["surprisal"], version["tokens"])
    assert surprisal == pytest.approx(-row["logprob"], abs=1e-3 * row["tokens"])
    table = here("score", path, "--model", llama, "--profile")
    assert table.code == 0
    assert all(sentence[:20] in table.out for sentence in sentences)
    page = tmp_path / "profiles.html"
    drawn = here("score", path, "--model", llama, "--profile", "--html", page, "--json")
    assert drawn.code == 0
    assert str(page) in drawn.err
    assert "<svg" in page.read_text("utf-8")


def test_a_profile_that_cannot_be_made_is_one_sentence(tmp_path, llama):
    rows = [{"text": "A whole text."}, {"id": "ab", "context": "a", "continuation": "b"}]
    pairs = write_lines(tmp_path / "pairs.jsonl", rows)
    unscored = here("score", pairs, "--model", "random", "--profile")
    refused(unscored, "ab is a context and a continuation", "a profile needs whole texts")
    assert "100 %" not in unscored.err
    page = tmp_path / "page.html"
    refused(here("score", pairs, "--model", "random", "--html", page), "add --profile")
    assert not page.exists()
    long = write_lines(tmp_path / "long.jsonl", [{"id": "long", "sentences": document(1, 12)}])
    average = here("score", long, "--model", llama, "--profile", "--set", "window=average")
    refused(average, "window=average", "strided", "refuse")
    assert here("score", long, "--model", llama, "--profile").code == 0


def test_scores_are_kept_for_next_time_if_asked(tmp_path, llama, texts):
    journal = tmp_path / "kept" / "scores.jsonl"
    command = ("score", texts, "--model", llama, "--journal", journal, "--json")
    first = here(*command)
    kept = journal.read_bytes()
    assert kept.count(b"\n") == 3  # one text comes twice
    again = here(*command)
    assert again.out == first.out
    assert journal.read_bytes() == kept
    assert "0 %" not in again.err.replace("100 %", "")
    other = here(*command, "--set", "bos=always")
    assert other.out != first.out
    assert journal.read_bytes().startswith(kept)
    assert len(journal.read_bytes()) > len(kept)


def test_a_journal_that_is_no_journal_is_refused_and_kept(tmp_path, texts):
    """The likely slip: the file of texts itself is named as the journal."""
    before = texts.read_bytes()
    refused(here("score", texts, "--model", "random", "--journal", texts), "texts.jsonl")
    assert texts.read_bytes() == before
    refused(here("score", texts, "--model", "random", "--journal", tmp_path), str(tmp_path))


def test_python_scores_texts_and_pairs(llama):
    scored = ensue.score(["A dog ran.", ("A dog", " ran.")], model=str(llama), detail=True)
    whole, part = scored.scores
    assert whole.token_logprobs is not None
    assert part.token_logprobs is not None
    assert part.token_logprobs == pytest.approx(whole.token_logprobs[-part.tokens :], abs=1e-4)
    assert scored.signature.startswith("ensue:")
    assert scored.tokens == whole.tokens + part.tokens


def test_texts_in_a_folder_are_read_in_order(tmp_path):
    folder = tmp_path / "stories"
    (folder / "b").mkdir(parents=True)
    (folder / "a.txt").write_text("A dog.")
    (folder / "b" / "c.txt").write_text("A cat.")
    assert [row["id"] for row in lines(here("score", folder, "--model", "random", "--json").out)] == [
        "a.txt",
        "b/c.txt",
    ]
    assert read_lines(write_lines(tmp_path / "x.jsonl", [{"a": 1}])) == [{"a": 1}]


def test_the_total_of_a_long_text_is_a_log_likelihood(tmp_path, llama):
    """Every token once: the total is that of the windows worked out here, and divided by the tokens the mean."""
    text = " ".join(document(1, 12))
    path = write_lines(tmp_path / "long.jsonl", [{"text": text}])
    (row,) = lines(here("score", path, "--model", llama, "--json").out)
    model = ensue.load_model(str(llama))
    ids = model.tokenizer(text, add_special_tokens=False)["input_ids"]
    assert len(ids) > 256
    expected = naive.token_logprobs(model.network, ids[:256], 1)
    while (reached := len(expected) + 1) < len(ids):
        end = min(reached + 128, len(ids))
        expected += naive.token_logprobs(model.network, ids[end - 256 : end], 256 - (end - reached))
    assert row["tokens"] == len(expected) == len(ids) - 1
    assert row["logprob"] == pytest.approx(sum(expected), abs=1e-4 * len(ids))
    assert row["logprob_per_token"] == pytest.approx(row["logprob"] / row["tokens"], rel=1e-9)
    (python,) = ensue.score([text], model=str(llama)).scores
    assert python.logprob == pytest.approx(row["logprob"], abs=1e-3)
    averaged = here("score", path, "--model", llama, "--set", "window=average")
    assert "scored in windows: 1" in averaged.err
    assert "no log-likelihood" in averaged.err
    assert averaged.out.splitlines()[-1].split()[0] == "–"
    (other,) = lines(here("score", path, "--model", llama, "--set", "window=average", "--json").out)
    assert other["logprob"] is None
    assert other["logprob_per_token"] == pytest.approx(row["logprob_per_token"], rel=0.2)
    assert "no log-likelihood" not in here("score", path, "--model", llama).err


RAW = "  The sun rose\nover the  hill.\n\nA headline\n\nShe ran out. Nobody spoke;\ttwice.\n\n"


@pytest.mark.parametrize("name", ["raw.txt", "raw.jsonl"])
def test_a_profile_adds_up_to_the_plain_score(tmp_path, llama, name):
    path = tmp_path / name
    path.write_text(json.dumps({"text": RAW}) if name.endswith("l") else RAW)
    (plain,) = lines(here("score", path, "--model", llama, "--json").out)
    (row,) = lines(here("score", path, "--model", llama, "--json", "--profile").out)
    (version,) = row.pop("profile")
    assert row == {
        **plain,
        **{name: pytest.approx(plain[name], rel=1e-6) for name in row if "logprob" in name},
    }
    assert version["sentences"] == [
        "The sun rose over the hill.",
        "A headline",
        "She ran out.",
        "Nobody spoke; twice.",
    ]
    assert sum(version["tokens"]) == plain["tokens"]
    assert np.dot(version["surprisal"], version["tokens"]) == pytest.approx(-plain["logprob"], abs=0.01)
    # Each token counts where its last character lies: worked out from the tokens of the text as it stands.
    text = RAW if name.endswith("l") else RAW.rstrip("\n")
    (scored,) = ensue.score([text], model=str(llama), detail=True).scores
    border = text.index("A headline") + len("A headline")
    before = [
        -x for x, span in zip(scored.token_logprobs, scored.token_spans, strict=True) if span[1] <= border
    ]
    first = np.dot(version["surprisal"][:2], version["tokens"][:2])
    assert (sum(version["tokens"][:2]), first) == (len(before), pytest.approx(sum(before), abs=0.01))


def test_the_last_line_break_of_a_file_is_not_scored(tmp_path, llama):
    scores = []
    for name, end in (("a", ""), ("b", "\n"), ("c", "\r\n"), ("d", "\n\n")):
        (tmp_path / f"{name}.txt").write_bytes(f"A dog ran.{end}".encode())
        (row,) = lines(here("score", tmp_path / f"{name}.txt", "--model", llama, "--json").out)
        scores.append((row["tokens"], row["logprob"]))
    assert len(set(scores)) == 1


def test_texts_and_pairs_may_be_mixed(tmp_path, llama):
    rows = [
        {"id": "a", "text": "A dog ran."},
        {"id": "b", "context": "A dog", "continuation": " ran."},
        {"sentences": ["A dog ran.", "A cat sat."]},
    ]
    found = lines(here("score", write_lines(tmp_path / "m.jsonl", rows), "--model", llama, "--json").out)
    assert [row["id"] for row in found] == ["a", "b", "m:3"]
    expected = ensue.score(
        ["A dog ran.", ("A dog", " ran."), "A dog ran. A cat sat."], model=str(llama)
    ).scores
    assert [row["logprob"] for row in found] == pytest.approx([s.logprob for s in expected], abs=1e-4)
    assert [row["tokens"] for row in found] == [s.tokens for s in expected]
    backwards = write_lines(tmp_path / "n.jsonl", [rows[1], rows[0]])
    assert [r["id"] for r in lines(here("score", backwards, "--model", "random", "--json").out)] == ["b", "a"]
    twice = write_lines(tmp_path / "t.jsonl", [rows[0], rows[1], rows[0]])
    refused(here("score", twice, "--model", "random"), "t.jsonl, line 3", "'a'", "line 1")


@pytest.mark.parametrize(
    ("said", "ids"),
    [
        (b"A dog ran.\n", ["-"]),
        (b'{"text": "A dog ran."}\n\n{"id": 7, "continuation": "A dog ran."}\n', ["-:1", "7"]),
        ('{"id": "a\u2028b", "text": "A dog ran."}\r\n'.encode(), ["a\u2028b"]),
        (b"\xef\xbb\xbfA dog ran.\r\n", ["-"]),
    ],
)
def test_standard_input_is_a_text_or_json_lines(monkeypatch, said, ids):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(said)))
    rows = lines(here("score", "-", "--model", "unigram", "--json").out)
    assert [row["id"] for row in rows] == ids
    (expected,) = ensue.score(["A dog ran."], model="unigram").scores
    assert {row["logprob"] for row in rows} == {expected.logprob}


@pytest.mark.parametrize(
    ("said", "words"), [(b" \n", "empty"), (b"caf\xe9", "UTF-8"), (b"{]", "line 1"), (b"a\0b", "NUL")]
)
def test_standard_input_that_is_none_is_one_sentence(monkeypatch, said, words):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(said)))
    refused(here("score", "-", "--model", "unigram"), "Standard input", words)


@pytest.mark.slow
def test_python_m_ensue_is_the_command():
    done = subprocess.run(
        [sys.executable, "-m", "ensue", "score", "-", "--model", "unigram"],
        input="A dog ran.\n",
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout.split()[-1]) == (0, "-"), done.stderr
