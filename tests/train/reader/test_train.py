"""A reader learns which sentences belong, from windows with intruders of other documents, and is saved."""

from __future__ import annotations

import json
from itertools import islice, pairwise
from random import Random

import numpy as np
import pytest
import torch

import ensue
from ensue.backends.hf.reader import SentenceTokens
from ensue.backends.hf.reader_network import NOBODY, ReaderReading
from ensue.backends.names import load_model
from ensue.benchmarks.intruder.edits import Pool, drawn_intruder
from ensue.errors import EnsueError
from ensue.text.documents import Document
from ensue.train.reader.objective import WindowSet, sentence_loss
from ensue.train.reader.versions import FEWEST, Drawing, draw_versions, windows_in
from tests.support import tiny
from tests.support.command import write_lines

MATTERS = ("cat", "train", "letter", "garden", "judge", "boat")
SETTINGS = {
    "epochs": 1, "versions": 12, "batch": 16, "learning_rate": 5e-3, "dev_share": 0.3, "device": "cpu",
    "precision": "no", "max_length": 128, "max_sentence": 24, "max_sentences": 8, "workers": 1,
}  # fmt: skip


def documents(count=40, sentences=9):
    """Documents about one matter each, which every sentence names."""
    draw = Random(5)
    return [
        {
            "id": f"d{n}",
            "sentences": [
                f"The {MATTERS[n % 6]} {draw.choice(('rose', 'stopped', 'was closed', 'is afraid'))} {n} {place}."
                for place in range(sentences)
            ],
        }
        for n in range(count)
    ]


def made(count=40, sentences=9):
    return [Document(one["id"], tuple(one["sentences"]), "news") for one in documents(count, sentences)]


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return write_lines(tmp_path_factory.mktemp("data") / "documents.jsonl", documents())


def train(model, data, output, **more):
    return ensue.train("reader", model=str(model), data=[str(data)], output=output, **{**SETTINGS, **more})


@pytest.mark.parametrize(
    ("save", "more"),
    [
        (tiny.save_encoder, {}),
        (tiny.save_encoder, {"lora": 8, "learning_rate": 1e-2}),
        (tiny.save_llama, {"lora": 8, "learning_rate": 1e-2, "layers": 1, "both_ways": 1, "among": 16}),
    ],
)
def test_it_learns_and_says_what_it_learnt_from(data, tmp_path, save, more):
    base = save(tmp_path / "base", max_length=256)
    fitted = train(base, data, tmp_path / "reader", evaluate_every=4, **more)
    log = [json.loads(line) for line in (tmp_path / "reader" / "training.jsonl").read_text().splitlines()]
    losses = [one["dev_loss"] for one in log if "dev_loss" in one]
    assert fitted.best_loss == min(losses) < losses[0]
    reader = load_model(str(tmp_path / "reader"), device="cpu")
    assert (reader.card.kind, reader.card.max_length) == ("reader", 128)
    windows = json.loads((tmp_path / "reader" / "training.json").read_text())["windows"]
    assert windows["train"]["documents"] + windows["dev"]["documents"] == 40
    said = (tmp_path / "reader" / "README.md").read_text()
    assert (
        f"{windows['train']['documents']} documents with {windows['train']['intruders']:,} intruders" in said
    )


def test_what_is_saved_says_what_training_saw(data, tmp_path):
    base = tiny.save_bert(tmp_path / "base", max_length=256)
    fitted = train(base, data, tmp_path / "reader", lora=4, versions=2)
    reader = load_model(str(tmp_path / "reader"), device="cpu")
    facts = json.loads((tmp_path / "reader" / "training.json").read_text())
    ids = set(facts["documents"]["dev_ids"])
    held = [Document(one["id"], tuple(one["sentences"]), "") for one in documents() if one["id"] in ids]
    versions = draw_versions(held, Drawing(versions=2, max_sentences=8))
    logits, right = [], []
    for one in versions.versions:
        (found,) = reader.read([[versions.sentences[number] for number in one.sentences]])
        strange = {place for place, _ in one.intruders}
        logits += found[1:]
        right += [float(place not in strange) for place in range(1, len(found))]
    values, wanted = np.array(logits), np.array(right)
    loss = np.mean(np.logaddexp(0, -values) * wanted + np.logaddexp(0, values) * (1 - wanted))
    assert loss == pytest.approx(fitted.best_loss, abs=2e-3)


def test_intruders_are_of_other_documents_and_the_rest_is_as_it_was():
    own = made()
    found = draw_versions(own, Drawing(versions=3, seed=2))
    assert found.documents == 40
    of = {sentence: one.id for one in own for sentence in one.sentences}
    kinds = set()
    for one in found.versions:
        texts = [found.sentences[number] for number in one.sentences]
        strange = dict(one.intruders)
        kinds |= set(strange.values())
        (home,) = {of[text] for place, text in enumerate(texts) if place not in strange}
        whole = next(each.sentences for each in own if each.id == home)
        begin = whole.index(texts[0])
        assert 0 not in strange
        for place, text in enumerate(texts):
            assert (of[text] != home) if place in strange else (text == whole[begin + place])
    assert kinds == {"random", "hard"}
    assert draw_versions(own, Drawing(versions=3, seed=2)) == found
    assert draw_versions(own, Drawing(versions=3, seed=3)) != found
    assert draw_versions(own, Drawing(versions=3, seed=2), workers=2) == found


def test_a_hard_intruder_is_one_of_the_nearest():
    pool = Pool([one["sentences"] for one in documents()])
    near = list(islice((one for one in pool.nearest(0, 4) if one not in pool.documents[0]), 3))
    drawn = {drawn_intruder(0, 4, "hard", pool, Random(n), among=3) for n in range(60)}
    assert drawn == set(near)
    assert drawn_intruder(0, 4, "hard", pool, Random(1)) == near[0]


def test_windows_follow_one_another_and_are_long_enough():
    for seed in range(30):
        found = list(windows_in(47, 12, Random(seed)))
        assert found[0][0] == 0
        assert all(a[1] == b[0] for a, b in pairwise(found))
        assert all(FEWEST <= end - begin <= 12 for begin, end in found)
        assert 47 - found[-1][1] < FEWEST


def test_the_loss_is_of_what_is_asked_alone():
    logits, belongs = torch.tensor([2.0, -1.0, 0.5]), torch.tensor([-1.0, 0.0, 1.0])
    wanted = (np.log1p(np.exp(-1.0)) + np.log1p(np.exp(-0.5))) / 2
    assert float(sentence_loss(logits, belongs)) == pytest.approx(wanted)


def test_bad_settings_are_one_sentence(data, tmp_path):
    base = tiny.save_encoder(tmp_path / "base", max_length=64)
    with pytest.raises(EnsueError, match="takes 64 tokens, fewer than --max-length 128"):
        train(base, data, tmp_path / "a")
    with pytest.raises(EnsueError, match="lower --max-sentence"):
        train(base, data, tmp_path / "b", max_length=32, max_sentence=31)
    with pytest.raises(EnsueError, match="leave out --both-ways"):
        train(base, data, tmp_path / "e", max_length=64, both_ways=1)
    with pytest.raises(EnsueError, match="has 2 layers"):
        train(base, data, tmp_path / "f", max_length=64, layers=9)
    with pytest.raises(EnsueError, match="cannot be made so"):
        train(base, data, tmp_path / "g", max_length=64, among=12)
    with pytest.raises(EnsueError, match="is not a Hugging Face encoder"):
        train("random", data, tmp_path / "c")
    few = write_lines(tmp_path / "few.jsonl", documents(3, 9))
    with pytest.raises(EnsueError, match="No intruder can be drawn for the held-out documents"):
        train(base, few, tmp_path / "d", max_length=64)


def test_windows_laid_on_the_device_are_the_rows_a_reader_reads(tmp_path):
    base = load_model(str(tiny.save_encoder(tmp_path / "base", max_length=256)), device="cpu")
    tokens = SentenceTokens(base, ReaderReading(48, 16))
    versions = draw_versions(made(12), Drawing(versions=2, max_sentences=9))
    windows = WindowSet(versions, tokens, torch.device("cpu"), 0)
    each = tokens.of(versions.sentences)
    chosen = [7, 0, 11, 4]
    batch = windows.batch(chosen)
    above = 0
    for at, one in enumerate(chosen):
        window = windows.windows[one]
        assert window.sentences == versions.versions[one].sentences[: len(window.sentences)]
        row = tokens.row([each[number] for number in window.sentences])
        length = len(row.ids)
        assert length <= 48
        assert batch.ids[at].tolist() == [*row.ids.tolist(), *[0] * (batch.ids.shape[1] - length)]
        assert int(batch.mask[at].sum()) == length
        owners = [NOBODY if own == NOBODY else own + above for own in row.owners.tolist()]
        assert batch.owners[at].tolist() == [*owners, *[NOBODY] * (batch.ids.shape[1] - length)]
        strange = {place for place, _ in window.intruders}
        asked = batch.belongs[above + 1 : above + len(window.sentences)].tolist()
        assert asked == [float(place not in strange) for place in range(1, len(window.sentences))]
        above += len(window.sentences)
    assert above == len(batch.belongs)
