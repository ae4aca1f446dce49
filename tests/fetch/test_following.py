"""Calibrations on disk: those that come with the package, and how one is put beside another."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from importlib import resources

import pytest

from ensue.errors import EnsueError
from ensue.fetch.catalog import catalog
from ensue.fetch.following import (
    NO_ENCODER,
    encoder_mark,
    home_file,
    keep_in_file,
    known_calibrations,
    marks_in,
    read_calibrations,
    reader_beside,
)
from ensue.models.card import ModelCard
from ensue.scoring.verdict import Calibration

CARD = ModelCard("m", "causal", "-", identity={"weights": "aa", "dtype": "float32"})
ENCODER = ModelCard("e", "encoder", "-", identity={"weights": "0123456789abcdef9999"})


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("ENSUE_HOME", str(tmp_path / "home"))


def test_those_of_the_package_are_of_models_in_the_catalogue_and_can_be_read():
    shipped = json.loads(resources.files("ensue.fetch").joinpath("following.json").read_text())
    assert set(shipped) <= {entry.digest for entry in catalog().values()}
    encoders = {"none"} | {entry.digest[:16] for entry in catalog().values()}
    readers = {"", _reader_of_the_package()[:16]}
    for by_encoder in shipped.values():
        assert {marks_in(mark)[0] for mark in by_encoder} <= encoders
        assert {marks_in(mark)[1] for mark in by_encoder} == readers, "with the reader and without"
        assert all(Calibration.of(facts).documents >= 20 for facts in by_encoder.values())


def _reader_of_the_package() -> str:
    """The digest of the adapter and the configuration that come with the package."""
    folder = resources.files("ensue.backends").joinpath("adapters", "reader")
    names = ("adapter.safetensors", "config.json")
    digests = [hashlib.sha256(folder.joinpath(name).read_bytes()).digest() for name in names]
    return hashlib.sha256(b"".join(digests)).hexdigest()


def test_marks_name_the_encoder_and_the_reader():
    reader = replace(ENCODER, identity={"weights": "aa", "adapter": "fedcba9876543210ff"})
    both = encoder_mark(ENCODER, reader)
    assert marks_in(both) == (encoder_mark(ENCODER), "fedcba9876543210")
    assert marks_in(encoder_mark(None, reader)) == ("none", "fedcba9876543210")
    assert marks_in(encoder_mark(ENCODER)) == (encoder_mark(ENCODER), "")
    assert reader_beside("minilm") == "smollm2-reader"
    assert reader_beside("mpnet") is reader_beside(None) is None


def test_a_fingerprint_is_of_the_package_else_of_the_adapter_else_of_the_weights():
    assert CARD.fingerprint == "aa"
    assert replace(CARD, identity={"weights": "aa", "adapter": "bb"}).fingerprint == "bb"
    assert replace(CARD, package="cc").fingerprint == "cc"
    bare = {ModelCard("m", "baseline", "-", identity={"seed": seed}).fingerprint for seed in "ab"}
    assert len(bare) == 2
    one, other = catalog()["smollm2"], catalog()["minilm"]
    assert one.digest != other.digest
    assert replace(one, packages=(replace(one.packages[0], sha256="0"),)).digest != one.digest
    assert "following" not in CARD.as_dict()


def test_what_is_kept_last_is_found_and_the_rest_stays():
    keep_in_file(home_file(), CARD, NO_ENCODER, {"data": "old"})
    keep_in_file(home_file(), CARD, encoder_mark(ENCODER), {"data": "encoded"})
    keep_in_file(home_file(), CARD, NO_ENCODER, {"data": "new"})
    keep_in_file(home_file(), replace(CARD, identity={"weights": "other"}), NO_ENCODER, {"data": "other"})
    assert known_calibrations(CARD, 1) == {
        "none": {"data": "new"},
        encoder_mark(ENCODER): {"data": "encoded"},
    }
    assert encoder_mark(ENCODER) == "0123456789abcdef"


def test_home_comes_before_the_card(tmp_path):
    card, at_home = {"data": "card", "rule": 1}, {"data": "home", "rule": 1}
    stated = replace(CARD, following={"aa": {"none": card}, "bb": {"none": {"data": "of others"}}})
    assert known_calibrations(stated, 1) == {"none": card}
    keep_in_file(home_file(), CARD, NO_ENCODER, at_home)
    assert known_calibrations(stated, 1) == {"none": at_home}


def test_one_of_another_version_of_the_rule_gives_way():
    card, stale = {"data": "card", "rule": 2}, {"data": "home", "rule": 1}
    keep_in_file(home_file(), CARD, NO_ENCODER, stale)
    assert known_calibrations(CARD, 2) == {"none": stale}, "the reader is to be told of it"
    stated = replace(CARD, following={"aa": {"none": card}})
    assert known_calibrations(stated, 2) == {"none": card}
    assert known_calibrations(stated, 1) == {"none": stale}


@pytest.mark.parametrize("text", ["", "[]", '{"aa": 3}', '{"aa": {"none": 3}}', "{}", '{"bb": {}}'])
def test_a_file_that_holds_none_is_one_sentence(tmp_path, text):
    path = tmp_path / "c.json"
    path.write_text(text)
    with pytest.raises(EnsueError, match=r"c\.json"):
        read_calibrations(path, CARD)
