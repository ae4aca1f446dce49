"""`ensue calibrate`: a calibration is kept with its model, found again, and of no other."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest

import ensue
from ensue.fetch.following import encoder_mark, home_file, known_calibrations
from ensue.models.card import CARD_FILE, read_card_facts
from ensue.scoring.following import Pieces, measure
from ensue.scoring.verdict import RATE, RULE, calibrate, threshold
from tests.support import tiny
from tests.support.command import here, refused, write_lines
from tests.support.corpus import document


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("ENSUE_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture(scope="module")
def kept_llama(tmp_path_factory):
    return tiny.save_llama(tmp_path_factory.mktemp("models") / "llama", max_length=512)


@pytest.fixture
def llama(kept_llama, tmp_path):
    return shutil.copytree(kept_llama, tmp_path / "llama")


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    return tiny.save_encoder(tmp_path_factory.mktemp("models") / "encoder")


@pytest.fixture
def data(tmp_path):
    rows = [{"id": str(n), "sentences": document(n, 4 + n % 3)} for n in range(24)]
    return write_lines(tmp_path / "sound.jsonl", [*rows, {"id": "short", "text": "One. Two."}])


def test_it_is_what_the_measures_say_and_lies_in_the_folder_s_card(llama, encoder, data):
    done = here("calibrate", llama, "--data", data, "--encoder", encoder, "--about", "stories", "--json")
    assert done.code == 0, done.err
    printed = json.loads(done.out)
    scorer, compared = ensue.load_model(str(llama)), ensue.load_model(str(encoder))
    texts = [Pieces.joined(document(n, 4 + n % 3)) for n in range(24)]
    found, _ = measure(scorer, texts, encoder=compared)
    expected = calibrate(found, model="llama", encoder=str(encoder.resolve()), data="stories")
    assert (printed["documents"], printed["texts"]) == (24, 25)
    assert printed["percentiles"] == pytest.approx(expected.percentiles, abs=1e-2)
    assert printed["least"] == pytest.approx(expected.least, abs=1e-2)
    assert printed["place"] == str(llama / CARD_FILE)
    assert "left out: 1" in done.err
    known = known_calibrations(ensue.load_model(str(llama)).card, RULE)
    assert list(known) == [encoder_mark(compared.card)]
    assert known[encoder_mark(compared.card)]["data"] == "stories"
    assert not home_file().exists()
    assert not list((home_file().parent / "calibrating").glob("*"))
    # The encoder it was calibrated with is the one a profile takes.
    (profile,) = ensue.profile([" ".join(document(99, 6))], model=str(llama))
    assert None not in {one.likeness for one in profile.sentences}
    assert profile.false_alarm is not None
    (other,) = ensue.profile([" ".join(document(99, 6))], model=str(llama), encoder=None)
    assert (other.false_alarm, other.verdict) == (None, "No telling.")


def test_a_sentence_below_the_threshold_stands_out(llama, data):
    assert here("calibrate", llama, "--data", data, "--encoder", "none").code == 0
    calibrations = known_calibrations(ensue.load_model(str(llama)).card, RULE)
    from ensue.scoring.verdict import Calibration

    fitted = Calibration.of(calibrations["none"])
    profiles = ensue.profile(
        [" ".join(document(n, 8)) for n in range(40)], model=str(llama), false_alarms=0.3
    )
    assert {one.stands_out is None for one in profiles} == {True, False}
    for one in profiles:
        least = min(one.sentences[1:], key=lambda sentence: sentence.standing)
        assert one.least == one.sentences.index(least)
        assert (one.stands_out is not None) == (one.false_alarm <= 0.3)
        if one.stands_out is not None:
            assert one.verdict == f"Sentence {one.least + 1} stands out: “{least.text}”"
            assert "of the sentences in sound" in one.why
            # Looseness only makes a verdict milder.
            assert least.standing <= threshold(fitted, 8, 0.3) + 1e-3
        else:
            assert one.verdict == "Nothing stands out."
    assert threshold(fitted, 8, 0.3) > threshold(fitted, 8, RATE) >= threshold(fitted, 8, 0.01)
    shares = [one.share_below for one in profiles[0].sentences[1:]]
    firm = [one.standing for one in profiles[0].sentences[1:]]
    assert np.argsort(shares).tolist() == np.argsort(firm).tolist()


def test_other_weights_find_none_and_other_facts_stay(llama, data, tmp_path):
    (llama / CARD_FILE).write_text('{"licence": "MIT", "mine": 1}')
    assert here("calibrate", llama, "--data", data, "--encoder", "none").code == 0
    assert read_card_facts(llama)["licence"] == "MIT"
    assert json.loads((llama / CARD_FILE).read_text())["mine"] == 1
    other = tiny.save_llama(tmp_path / "other", seed=7, max_length=512)
    shutil.copy(llama / CARD_FILE, other)
    assert known_calibrations(ensue.load_model(str(llama)).card, RULE)
    assert not known_calibrations(ensue.load_model(str(other)).card, RULE)


def test_without_a_folder_it_is_kept_at_home_by_the_model_s_fingerprint(data, tmp_path):
    assert here("calibrate", "unigram", "--data", data, "--encoder", "none").code == 0
    random = here("calibrate", "random", "--data", data, "--encoder", "none")
    assert str(home_file()) in random.err
    assert "24 texts" in random.out
    assert len(json.loads(home_file().read_text())) == 2
    for name in ("unigram", "random"):
        (facts,) = known_calibrations(ensue.load_model(name).card, RULE).values()
        assert facts["model"] == name
    counted = write_lines(tmp_path / "counts.jsonl", [{"text": "Other words."}])
    assert not known_calibrations(ensue.load_model(f"unigram:{counted}").card, RULE)


def test_a_file_of_one_s_own_is_used_when_named_and_not_otherwise(data, tmp_path):
    file = tmp_path / "fiction.json"
    assert here("calibrate", "random", "--data", data, "--encoder", "none", "--output", file).code == 0
    assert not home_file().exists()
    text = write_lines(tmp_path / "t.jsonl", [{"text": " ".join(document(3, 6))}])
    command = ("score", text, "--model", "random", "--profile", "--json")
    plain = json.loads(here(*command).out)["profile"][0]
    named = json.loads(here(*command, "--set", f"calibration={file}").out)["profile"][0]
    assert (plain["false_alarm"], named["false_alarm"] is None) == (None, False)
    refused(
        here("score", text, "--model", "unigram", "--profile", "--set", f"calibration={file}"),
        f"`ensue calibrate unigram --data DOCUMENTS --output {file}`",
    )


def test_killed_it_goes_on_from_what_was_measured(llama, data, tmp_path):
    journal = tmp_path / "journal.jsonl"
    command = ("calibrate", llama, "--data", data, "--encoder", "none", "--json", "--journal", journal)
    whole = here(*command)
    kept = journal.read_bytes().splitlines(keepends=True)
    assert len(kept) == 25
    journal.write_bytes(b"".join(kept[:10]) + kept[10][:30])
    again = here(*command)
    assert json.loads(again.out)["least"] == pytest.approx(json.loads(whole.out)["least"], abs=1e-2)
    assert journal.read_bytes().startswith(b"".join(kept[:10]))
    assert len(journal.read_bytes().splitlines()) == 25


def test_bad_input_is_one_sentence(llama, data, tmp_path):
    few = write_lines(tmp_path / "few.jsonl", [{"text": "One. Two. Three. Four."}])
    refused(here("calibrate", llama, "--data", few, "--encoder", "none"), "1 of the texts", "20")
    assert not (llama / CARD_FILE).exists()
    refused(here("calibrate", llama, "--data", tmp_path / "none"), "does not exist")
    refused(here("calibrate", llama, "--data", data, "--encoder", llama.parent / "nowhere"), "nowhere")
    refused(here("calibrate", llama, "--data", data, "--encoder", "random"), "random", "encode")
    refused(here("calibrate", llama, "--data", data, "--output", tmp_path), "folder")
    for words in ("mine", '{"mine": 1}', '{"mine": {"a": 1}}', '{"mine": {"a": {"b": 1}}}'):
        (tmp_path / "mine.json").write_text(words)
        said = refused(
            here("calibrate", llama, "--data", data, "--output", tmp_path / "mine.json"), "mine.json"
        )
        assert "texts" not in said
        assert (tmp_path / "mine.json").read_text() == words
    (llama / CARD_FILE).write_text(
        json.dumps({"following": {ensue.load_model(str(llama)).card.fingerprint: 3}})
    )
    refused(here("score", few, "--model", llama, "--profile"), "card of llama", "ensue calibrate")
