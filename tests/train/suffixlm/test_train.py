"""Training a SuffixLM end to end on tiny works: each variant, resuming, and the model that comes out."""

import json
import subprocess
import sys

import numpy as np
import pytest
import torch

import ensue
from ensue.backends.names import load_model
from ensue.errors import EnsueError
from ensue.models.protocols import SuffixScorer, abilities
from ensue.train.suffixlm.corpus import prepare_corpus
from ensue.train.suffixlm.options import VARIANTS, SuffixOptions
from ensue.train.suffixlm.train import train_suffixlm
from tests.support import tiny
from tests.support.command import environment, here, refused, write_lines
from tests.support.works import work_rows

SETTINGS = {
    "dimension": 16, "inner": 32, "heads": 2, "layers": 2, "segment_tokens": 16, "segments": 8, "batch": 4,
    "in_book": 2, "steps": 12, "learning_rate": 1e-3, "warmup": 2, "precision": "no", "device": "cpu",
    "evaluate_every": 4, "patience": 9, "workers": 1,
}  # fmt: skip


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("suffixlm")
    tiny.save_encoder(folder / "encoder")
    tiny.save_roberta(folder / "roberta")
    write_lines(folder / "train.jsonl", work_rows(6, chapters=9, seed=0))
    write_lines(folder / "dev.jsonl", work_rows(3, chapters=9, seed=1, prefix="dev"))
    return folder


def train(place, output, variant="E", encoder="encoder", told=None, **more):
    works = {name: str(place / f"{name.replace('data', 'train')}.jsonl") for name in ("data", "dev")}
    given = {**SETTINGS, **works, "corpora": place / "corpora", **more}
    return train_suffixlm(
        SuffixOptions(variant=variant, encoder=str(place / encoder), output=output, **given), told
    )


@pytest.mark.parametrize("variant", sorted(VARIANTS))
def test_each_variant_trains_what_it_says_and_loads_as_a_model(place, tmp_path, variant):
    before = load_model(str(place / "encoder")).network.state_dict()
    fitted = train(place, tmp_path / "model", variant)
    assert fitted.steps == 12
    assert np.isfinite(fitted.best_loss)
    model = load_model(str(tmp_path / "model"))
    assert isinstance(model, SuffixScorer)
    assert abilities(model) == ["rank suffixes"]
    after = model.network.encoder.state_dict()
    changed = {name for name in after if not torch.equal(after[name], before[name])}
    layers = {name.split(".")[2] for name in after if name.startswith("encoder.layer")}
    assert layers == {"0", "1"}
    if VARIANTS[variant].trained == "none":
        assert not changed
    else:
        assert any(name.startswith("encoder.layer.1") for name in changed)
        assert any(name.startswith("embeddings.word") for name in changed) == (variant == "E")
    assert model.network.blocks[0].average == (variant == "B")


def test_the_loaded_model_scores_as_the_formula_says(place, tmp_path):
    train(place, tmp_path / "model")
    model = load_model(str(tmp_path / "model"))
    context = "The boat drifted down the river. " * 30 + "The town was asleep."
    suffixes = ["The captain looked at the map.", "She opened the old letter and read it twice."]
    found = model.score_suffixes(context, suffixes, prefix_tokens=[16, 64, 128], suffix_tokens=8)
    assert np.asarray(found).shape == (3, 2)
    longer = model.score_suffixes(context, suffixes, prefix_tokens=[128], suffix_tokens=8)
    assert found[2] == pytest.approx(longer[0], abs=1e-5)
    # One segment before the break, by hand.
    tokenizer, network = model.tokenizer, model.network
    last = "The town was asleep."
    ids = tokenizer(last)["input_ids"]
    assert len(ids) <= 16
    alone = model.score_suffixes(last, suffixes, prefix_tokens=[16], suffix_tokens=8)[0]
    with torch.no_grad():
        vector = network.vectors(
            network.encode(torch.tensor([ids]), torch.ones(1, len(ids), dtype=torch.long))
        )
        predicted = network(vector[None])[0, -1]
        for suffix, score in zip(suffixes, alone, strict=True):
            inner = tokenizer(suffix, add_special_tokens=False)["input_ids"][:8]
            row = torch.tensor([[tokenizer.cls_token_id, *inner, tokenizer.sep_token_id]])
            z = network.vectors(network.encode(row, torch.ones_like(row)))[0]
            assert score == pytest.approx(float(z @ predicted), abs=1e-4)


def test_a_killed_training_resumes_to_the_same_model(place, tmp_path):
    train(place, tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        train(place, tmp_path / "parts", told=_stop_after(6))
    with pytest.raises(EnsueError, match="--resume"):
        train(place, tmp_path / "parts")
    fitted = train(place, tmp_path / "parts", resume=True)
    assert fitted.steps == 12
    names = ("model.safetensors", "config.json")
    for name in names:
        assert (tmp_path / "whole" / name).read_bytes() == (tmp_path / "parts" / name).read_bytes(), name


def test_a_training_is_not_resumed_on_works_that_have_changed(place, tmp_path):
    works = tmp_path / "works.jsonl"

    def go_on(resume):
        return train(place, tmp_path / "model", data=str(works), corpora=None, resume=resume)

    write_lines(works, work_rows(6, chapters=9, seed=0))
    go_on(resume=False)
    write_lines(works, work_rows(6, chapters=9, seed=5))
    with pytest.raises(EnsueError, match="other data"):
        go_on(resume=True)
    # The same works, written again at another time.
    write_lines(works, work_rows(6, chapters=9, seed=0))
    assert go_on(resume=True).steps == 12


def test_a_killed_run_with_a_trained_model_resumes_to_the_same_results(place, tmp_path):
    train(place, tmp_path / "model")
    assert here("build", "chapterbreak", place / "dev.jsonl", "--output", tmp_path / "data").code == 0

    def run(name, **more):
        asked = {"model": str(tmp_path / "model"), "data": tmp_path / "data", "prefix_tokens": [16, 64]}
        return ensue.run("chapterbreak", output=tmp_path / name, **asked, **more)

    def stop(done, total, unit):
        if done == 5:
            raise KeyboardInterrupt

    whole = run("whole")
    with pytest.raises(KeyboardInterrupt):
        run("parts", progress=stop)
    parts = run("parts", resume=True)
    assert parts.items == whole.items
    assert {**parts.results, "seconds": 0} == {**whole.results, "seconds": 0}
    assert json.loads((tmp_path / "parts" / "run.json").read_text())["resumed_from"] == 5


def _stop_after(step):
    def told(done, total, unit):
        if unit == "steps" and done == step:
            raise KeyboardInterrupt

    return told


def test_a_roberta_style_encoder_works_too(place, tmp_path):
    fitted = train(place, tmp_path / "model", "D", "roberta", corpora=None)
    assert fitted.steps == 12
    assert load_model(str(tmp_path / "model")).score_suffixes(
        "It rained.", ["He ran.", "She sat."], prefix_tokens=[16], suffix_tokens=16
    )


def test_other_settings_are_not_resumed(place, tmp_path):
    train(place, tmp_path / "model")
    with pytest.raises(EnsueError, match="other settings"):
        train(place, tmp_path / "model", resume=True, batch=2)


def test_a_work_in_both_sets_is_refused(place, tmp_path):
    with pytest.raises(EnsueError, match="in the training and in the dev works"):
        train(place, tmp_path / "model", dev=str(place / "train.jsonl"), corpora=None)


def test_a_corpus_is_the_same_with_two_processes_and_its_headings_carry_one_index(place, tmp_path):
    made = [
        prepare_corpus(
            str(place / "train.jsonl"),
            tmp_path / str(workers),
            place / "encoder",
            segment_tokens=16,
            workers=workers,
        )
        for workers in (1, 2)
    ]
    assert np.array_equal(made[0].rows, made[1].rows)
    assert made[0].spans == made[1].spans
    tokenizer = load_model(str(place / "encoder")).tokenizer
    for span in made[0].spans:
        heads = {tuple(made[0].rows[start][:3]) for start in span.openings}
        assert len(span.openings) == 9
        assert len(heads) == 1
    assert tokenizer.cls_token_id == made[0].rows[0][0]


def test_two_processes_train_one_model_together(place, tmp_path):
    """DistributedDataParallel through accelerate, on two CPU processes."""
    command = [
        sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", 2,
        "-m", "ensue.cli.main", "train", "suffixlm", "--variant", "A", "--data", place / "train.jsonl",
        "--dev", place / "dev.jsonl", "--output", tmp_path / "model", "--encoder", place / "encoder",
        "--dimension", 16, "--inner", 32, "--heads", 2, "--layers", 1, "--segment-tokens", 16, "--segments", 8,
        "--batch", 4, "--in-book", 1, "--steps", 4, "--warmup", 1, "--evaluate-every", 2, "--device", "cpu",
        "--workers", 1, "--json",
    ]  # fmt: skip
    done = subprocess.run(
        [str(word) for word in command], capture_output=True, text=True, timeout=240, env=environment()
    )
    assert done.returncode == 0, done.stderr[-2000:]
    record = json.loads((tmp_path / "model" / "training.json").read_text())
    assert record["fitted"]["steps"] == 4
    assert record["processes"] == 2
    assert load_model(str(tmp_path / "model")).card.kind == "suffixlm"
    assert json.loads(done.stdout)["steps"] == 4


def test_the_command_trains_and_reports_in_json(place, tmp_path):
    finished = here(
        "train", "suffixlm", "--data", place / "train.jsonl", "--dev", place / "dev.jsonl", "--output",
        tmp_path / "model", "--encoder", place / "encoder", "--dimension", 16, "--inner", 32, "--heads", 2,
        "--layers", 1, "--segment-tokens", 16, "--segments", 8, "--batch", 4, "--steps", 4, "--warmup", 1,
        "--evaluate-every", 2, "--device", "cpu", "--workers", 1, "--json",
    )  # fmt: skip
    assert finished.code == 0, finished.err
    told = json.loads(finished.out)
    assert told["steps"] == 4
    assert told["folder"] == str(tmp_path / "model")
    record = json.loads((tmp_path / "model" / "training.json").read_text())
    assert record["corpora"]["train"]["works"] == 6
    assert record["fitted"]["steps"] == 4


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--variant", "F"], "variant"),
        (["--pooling", "max"], "pooling"),
        (["--schedule", "zigzag"], "schedule"),
        (["--heads", "5", "--dimension", "16"], "heads"),
        (["--data", "/nowhere"], "/nowhere"),
        (["--segment-tokens", "4096"], "segment-tokens"),
        (["--batch", "4000"], "smaller --batch"),
        (["--exclude", "/nowhere.txt"], "/nowhere.txt"),
        (["--device", "cuda"], "cuda"),
        (["--headings", "clever"], "headings"),
        (["--similarity", "euclid"], "similarity"),
    ],
)
def test_what_will_not_do_is_one_sentence(place, tmp_path, options, words):
    given = {
        "--data": place / "train.jsonl", "--dev": place / "dev.jsonl", "--output": tmp_path / "model",
        "--encoder": place / "encoder", "--dimension": 16, "--heads": 2, "--segment-tokens": 16, "--segments": 8,
        "--steps": 2, "--workers": 1,
    }  # fmt: skip
    given |= dict(zip(options[::2], options[1::2], strict=True))
    if words == "cuda" and torch.cuda.is_available():
        pytest.skip("there is a GPU here")
    refused(here("train", "suffixlm", *(x for pair in given.items() for x in pair)), words)
