"""From a name to a model: short names, folders, files, and what is said of a name that is none of these."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ensue.backends.names import BASELINES, SHIPPED, load_model, ships
from ensue.benchmarks import registry
from ensue.benchmarks.base import NamedSystem
from ensue.errors import EnsueError
from ensue.fetch.catalog import catalog
from ensue.models import Encoder, Generator, Scorer, abilities, require, write_card_facts
from ensue.models.card import ModelCard, read_card_facts
from tests.support import tiny
from tests.support.command import here, in_process_of_its_own, refused, write_lines

FAMILIES = {
    "llama": ("causal", ["score text", "encode text", "generate text", "ask questions"]),
    "gpt2": ("causal", ["score text", "encode text", "generate text", "ask questions"]),
    "bert": ("masked", ["score text", "encode text"]),
    "roberta": ("masked", ["score text", "encode text"]),
    "encoder": ("encoder", ["encode text"]),
}


@pytest.fixture(autouse=True)
def offline(monkeypatch, tmp_path):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("ENSUE_HOME", str(tmp_path / "home"))


@pytest.mark.parametrize("family", FAMILIES)
def test_a_folder_is_loaded_by_its_architecture_and_says_what_it_can_do(tmp_path, family):
    folder = getattr(tiny, f"save_{family}")(tmp_path / family, max_length=96)
    kind, can = FAMILIES[family]
    model = load_model(str(folder))
    assert abilities(model) == can
    assert (model.card.kind, model.card.name, model.card.max_length) == (kind, family, 96)
    shown = here("models", "show", folder, "--json")
    assert shown.code == 0
    facts = json.loads(shown.out)
    assert (facts["kind"], facts["can"], facts["max_length"]) == (kind, can, 96)
    assert facts["identity"] == model.card.identity
    words = here("models", "show", folder)
    assert words.code == 0
    assert ", ".join(can) in words.out


def test_two_models_differ_in_identity_and_one_model_does_not(tmp_path):
    first = load_model(str(tiny.save_llama(tmp_path / "a", seed=0))).card.identity
    moved = load_model(str(tiny.save_llama(tmp_path / "b", seed=0))).card.identity
    other = load_model(str(tiny.save_llama(tmp_path / "c", seed=1))).card.identity
    with_bos = load_model(str(tiny.save_llama(tmp_path / "d", seed=0, bos=True))).card.identity
    rounded = load_model(str(tmp_path / "a"), dtype="bfloat16").card.identity
    assert first == moved
    assert {key for key in first if first[key] != other[key]} == {"weights"}
    assert {key for key in first if first[key] != with_bos[key]} == {"tokenizer"}
    assert {key for key in first if first[key] != rounded[key]} == {"dtype"}


def test_on_a_cpu_a_score_is_in_float32_unless_asked_otherwise(tmp_path):
    folder = tiny.save_llama(tmp_path / "llama")
    kept = [load_model(str(folder), **asked).card.identity["dtype"] for asked in ({}, {"dtype": "auto"})]
    assert kept == ["float32", "float32"]
    text = write_lines(tmp_path / "a.jsonl", [{"id": 1, "text": "One word."}])
    refused(here("score", text, "--model", folder, "--compile", "often"), "often", "auto, never, always")


def test_how_a_served_model_is_run_is_its_servers_affair(tmp_path):
    text = write_lines(tmp_path / "a.jsonl", [{"id": 1, "text": "One word."}])
    asked = ("score", text, "--model", "http://127.0.0.1:9")
    for given in (("--dtype", "bfloat16"), ("--compile", "always"), ("--batch-tokens", "64")):
        refused(here(*asked, *given), "A server decides for itself", f"leave out {given[0]}.")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("smolm2", ["smolm2", "did you mean smollm2?"]),
        ("minlm", ["did you mean minilm?"]),
        ("randum", ["did you mean random?"]),
        ("some-owner/no-such-model", ["some-owner/no-such-model", "names that need no hub", "smollm2"]),
        ("./nowhere", ["./nowhere is not a model"]),
        ("/no/such/folder", ["/no/such/folder is not a model"]),
        ("two words", ["two words is not a model"]),
        ("", ["is not a model"]),
        ("weights.gguf", ["no file weights.gguf"]),
        ("x" * 5000, ["could not be fetched"]),
        ("x" * 5000 + ".gguf", ["no file"]),
        ("unigram:no-such-file.jsonl", ["no-such-file.jsonl does not exist"]),
    ],
)
def test_a_name_that_is_nothing_is_one_sentence(name, words):
    refused(here("models", "show", name), *words)


def test_a_file_that_is_no_model_is_one_sentence(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("hello")
    refused(here("models", "show", path), "notes.txt is not a model")


def test_pulling_an_unknown_name_says_which_there_are():
    refused(here("models", "pull", "smolm2"), "'smolm2'", "smollm2")
    for name in ("random", "minilm-qa", "retrieval"):
        refused(here("models", "pull", name), f"{name} comes with Ensue, so there is nothing to fetch")
    refused(
        here("models", "show", "retrieval"), "retrieval is a system of squality, which has nothing to show"
    )


def test_the_list_has_every_short_name_and_the_baselines():
    listed = here("models", "list", "--json")
    rows = json.loads(listed.out)
    names = {"smollm2", "minilm", "gemma3-270m", "qwen2.5-1.5b", "glove-50d", "en_core_web_sm", "wordnet"}
    here_already = {
        *(name for name in SHIPPED if ships(name)),
        *BASELINES,
        *(s for one in registry.every() for s in one.systems),
    }
    assert {row["name"] for row in rows} == names | here_already | {"smollm2-qg", "minilm-qa", "minilm-mlm"}
    assert {row["name"] for row in rows if row["here"]} == here_already
    words = here("models", "list")
    assert (words.code, words.err) == (0, "")
    assert all(row["name"] in words.out for row in rows)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"hello, this is no model at all", ["weights.gguf is not a GGUF file"]),
        (b"", ["weights.gguf is not a GGUF file"]),
        (b"GGUF\x03\0\0\0", ["weights.gguf cannot be converted"]),
        (b"GGUF" + b"\xff" * 2000, ["weights.gguf cannot be converted"]),
        # Version 3, no tensors, one key of four thousand million.
        (
            b"GGUF\x03\0\0\0" + b"\0" * 8 + b"\x01" + b"\0" * 7 + b"\xff" * 4 + b"\0" * 100,
            ["cannot be converted"],
        ),
    ],
)
def test_a_gguf_file_that_is_none_is_one_sentence_and_leaves_nothing(tmp_path, content, words):
    path = tmp_path / "weights.gguf"
    path.write_bytes(content)
    refused(here("models", "show", path), *words)
    converted = tmp_path / "home" / "converted"
    assert not converted.exists() or not list(converted.iterdir())


def test_a_gguf_file_needs_a_home_it_can_write_to(tmp_path, monkeypatch):
    path = tmp_path / "weights.gguf"
    path.write_bytes(b"GGUF")
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("ENSUE_HOME", str(tmp_path / "file"))
    refused(here("models", "show", path), "weights.gguf cannot be converted", "ENSUE_HOME")


def test_a_benchmark_that_needs_more_than_a_model_can_do_gets_one_sentence(tmp_path):
    encoder = load_model(str(tiny.save_encoder(tmp_path / "encoder")))
    assert require(encoder, Encoder, "A probe") is encoder
    with pytest.raises(
        EnsueError, match="A game needs a model that can generate text, but encoder can only encode"
    ):
        require(encoder, Generator, "A game")
    with pytest.raises(EnsueError, match="score text, but encoder"):
        require(encoder, Scorer, "A test")
    with pytest.raises(EnsueError, match="score text, but human cannot; `ensue models list` says"):
        require(NamedSystem.of("human", "summaries"), Scorer, "A test")


def test_facts_are_added_to_a_card_and_unknown_ones_left_out(tmp_path):
    folder = tiny.save_llama(tmp_path / "llama")
    assert read_card_facts(folder) == {}
    write_card_facts(folder, licence="MIT", needs_bos=True)
    write_card_facts(folder, training="on shuffled stories", trained_on_shuffled_text=True)
    (folder / "ensue-card.json").write_text(
        json.dumps({**json.loads((folder / "ensue-card.json").read_text()), "colour": "green"})
    )
    card = load_model(str(folder)).card
    assert (card.licence, card.needs_bos, card.trained_on_shuffled_text) == ("MIT", True, True)
    assert card.training == "on shuffled stories"
    assert "colour" not in read_card_facts(folder)
    assert {path.name for path in folder.iterdir()} >= {"ensue-card.json"}
    assert not list(Path(folder).glob("*.part"))


def test_nothing_of_a_folder_is_run(tmp_path):
    """A folder that brings its own code is refused, and its code does not run."""
    folder = tiny.save_llama(tmp_path / "llama")
    config = json.loads((folder / "config.json").read_text())
    config |= {
        "model_type": "mine",
        "auto_map": {"AutoConfig": "code.MyConfig", "AutoModelForCausalLM": "code.MyModel"},
    }
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "code.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    refused(here("models", "show", folder), "llama brings code of its own", "--trust-remote-code")
    assert not (tmp_path / "ran").exists()


def test_a_converted_tokenizer_that_does_not_come_back_from_disk_is_refused(tmp_path):
    """As transformers 5.17 does to Gemma's: the vocabulary is there, the merges are gone."""
    from transformers import AutoTokenizer

    from ensue.backends.hf.gguf import check_saved_tokenizer

    folder = tiny.save_llama(tmp_path / "model")
    tokenizer = AutoTokenizer.from_pretrained(folder)
    check_saved_tokenizer(folder, tokenizer, Path("whole.gguf"))
    saved = json.loads((folder / "tokenizer.json").read_text("utf-8"))
    saved["model"]["merges"] = []
    (folder / "tokenizer.json").write_text(json.dumps(saved), "utf-8")
    with pytest.raises(EnsueError, match=r"does not save the tokenizer of broken\.gguf properly"):
        check_saved_tokenizer(folder, tokenizer, Path("broken.gguf"))


def test_a_model_is_called_what_it_is_told_and_scores_as_before(tmp_path):
    folder = tiny.save_llama(tmp_path / "checkpoint-500")
    plain, called = load_model(str(folder)), load_model(str(folder), name="Mine, half trained")
    assert (plain.card.name, called.card.name) == ("checkpoint-500", "Mine, half trained")
    assert called.card.identity == plain.card.identity
    text = write_lines(tmp_path / "news.jsonl", [{"text": "The sun rose. Nobody spoke."}])
    kept = tmp_path / "kept.jsonl"
    first = here("score", text, "--model", folder, "--journal", kept, "--json")
    before = kept.read_bytes()
    again = here("score", text, "--model", folder, "--name", "other", "--journal", kept, "--json")
    assert (first.code, again.code) == (0, 0)
    # What was scored under one name is taken under another.
    assert kept.read_bytes() == before
    data = write_lines(
        tmp_path / "docs.jsonl", [{"text": "The sun rose. Nobody spoke. They ran. It fell."}] * 2
    )
    command = ["run", "shuffle", "--model", folder, "--name", "Mine, half trained", "--data", data, "--json"]
    done = here(*command, "--set", "block_size=1", "--set", "shuffles=1", "--output", tmp_path / "run")
    results = json.loads(done.out)
    assert results["model"] == "Mine, half trained"
    assert "model:Mine,-half-trained" in results["signature"].split()


@pytest.mark.parametrize(
    ("model", "name", "words"),
    [
        ("random", "luck", ["random has a name already"]),
        ("smollm2", " ", ["--name is one line"]),
        ("smollm2", "two\nlines", ["--name is one line"]),
        ("smollm2", "x" * 101, ["at most 100 characters"]),
    ],
)
def test_a_name_that_cannot_be_given(tmp_path, model, name, words):
    text = write_lines(tmp_path / "news.jsonl", [{"text": "The sun rose."}])
    refused(here("score", text, "--model", model, "--name", name), *words)


def test_short_names_say_what_their_weights_are():
    cards = {name: entry.weights_name for name, entry in catalog().items() if entry.format == "gguf"}
    assert cards == {
        "smollm2": "SmolLM2-135M-Instruct-Q4_1",
        "gemma3-270m": "gemma-3-270m-Q4_K_M",
        "qwen2.5-1.5b": "Qwen2.5-Coder-1.5B-Instruct-Q4_K_M",
    }
    for name, weights in cards.items():
        assert catalog()[name].facts["weights_name"] == weights
        assert len(ModelCard(name, "causal", "-", weights_name=weights).signed_name.split()) == 1
    listed = {row["name"]: row for row in json.loads(here("models", "list", "--json").out)}
    assert listed["smollm2"]["weights"] == "SmolLM2-135M-Instruct-Q4_1"
    assert "SmolLM2-135M-Instruct-Q4_1" in here("models", "list").out


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        (
            {"architectures": ["LlavaForConditionalGeneration"], "vision_config": {}, "text_config": {}},
            "vision_config",
        ),
        (
            {"architectures": ["Gemma3ForConditionalGeneration"], "text_config": {"hidden_size": 8}},
            "text_config",
        ),
        ({"architectures": ["CLIPModel"], "vision_config": {}, "text_config": {}}, "more than text"),
        ({"architectures": ["Qwen2AudioForConditionalGeneration"], "audio_config": {}}, "audio_config"),
        ({"architectures": ["OddForConditionalGeneration"]}, "unclear what the model is"),
    ],
)
def test_a_model_of_more_than_text_is_refused_and_no_encoder(tmp_path, fields, words):
    folder = tiny.save_encoder(tmp_path / "seeing")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, **fields}))
    refused(here("models", "show", folder), str(folder), words)


def test_a_hub_out_of_reach_is_one_sentence(tmp_path):
    """Nothing listens on port 9; the libraries must neither try for half a minute nor say each time that they did."""
    nowhere = {"HF_ENDPOINT": "http://127.0.0.1:9", "HF_HUB_OFFLINE": "0", "HF_HOME": str(tmp_path / "hf")}
    text = write_lines(tmp_path / "news.jsonl", [{"text": "The sun rose."}])
    model = in_process_of_its_own("score", text, "--model", "some-owner/no-such-model", **nowhere)
    refused(model, "some-owner/no-such-model", "could not be fetched from the model hub")
    data = in_process_of_its_own(
        "run", "shuffle", "--model", "random", "--data", "some-owner/no-such-data", cwd=tmp_path, **nowhere
    )
    refused(data, "some-owner/no-such-data", "the hub cannot be reached", "HF_HUB_OFFLINE=1")
