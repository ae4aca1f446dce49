"""Training a grid end to end on the bundled documents: what is left, what is refused, and that resuming repeats."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from random import Random

import pytest

from ensue.backends.grid.grid import GridForm
from ensue.backends.names import load_model
from ensue.errors import EnsueError
from ensue.models.protocols import Rater
from ensue.text.documents import read_documents
from ensue.train.grid.examples import read_examples
from ensue.train.grid.options import GridOptions
from ensue.train.grid.train import train_grid
from ensue.train.shuffling import Shuffling
from tests.support.command import here, refused, write_lines

FEW = {"data": ["bundled"], "limit": 12, "shuffles": 4, "dev_share": 0.25, "device": "cpu"}
NEURAL = {
    "kind": "neural", "embedding": 6, "filters": 8, "batch": 8, "evaluate_every": 4, "log_every": 2, "epochs": 4,
    "precision": "no",
}  # fmt: skip

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", autouse=True)
def _spacy():
    pytest.importorskip("spacy")


def texts(count=3):
    return [document.sentences[:8] for document in read_documents(limit=count)]


@pytest.mark.parametrize("kind", [{}, {"ranker": "logistic", "properties": True, "longest": 2}, NEURAL])
def test_a_model_that_was_saved_and_loaded_rates_texts(tmp_path, kind):
    fitted = train_grid(GridOptions(output=tmp_path / "model", **FEW, **kind))
    assert {"dev_loss", "dev_accuracy"} <= set(fitted.best)
    models = [load_model(str(tmp_path / "model"), device="cpu") for _ in range(2)]
    first, second = models
    assert isinstance(first, Rater)
    assert first.card.trained_on_shuffled_text
    assert "entity grid, 9 documents against" in first.card.training
    assert first.card.source == "trained by ensue"
    given = [*texts(), ["One sentence about a dog."], []]
    assert first.rate(given) == second.rate(given)
    assert first.rate(given[:2]) == pytest.approx(first.rate(given)[:2], abs=1e-6)
    assert len(set(first.rate(texts()))) == 3
    assert first.card.identity == second.card.identity
    record = json.loads((tmp_path / "model" / "training.json").read_text())
    assert record["corpora"]["train"]["documents"] == 9
    assert record["corpora"]["dev"]["documents"] == 3
    readme = (tmp_path / "model" / "README.md").read_text("utf-8")
    assert f"in {100 * fitted.best['dev_accuracy']:.1f} % of the held-out pairs" in readme
    assert "9 documents and" in readme
    # Without its card it has seen shuffled text all the same.
    (tmp_path / "model" / "ensue-card.json").unlink()
    assert load_model(str(tmp_path / "model"), device="cpu").card.trained_on_shuffled_text


def test_training_pays(tmp_path):
    """Documents that were trained on are rated above versions of theirs that were not, most of the time."""
    train_grid(GridOptions(output=tmp_path / "model", **{**FEW, "shuffles": 20, "limit": None, "longest": 3}))
    model = load_model(str(tmp_path / "model"))
    draw, right = Random(1), []
    for document in read_documents():
        text = document.sentences[:20]
        own, *others = model.rate([text, *(draw.sample(text, len(text)) for _ in range(5))])
        right += [own > other for other in others]
    assert sum(right) > 0.7 * len(right)


def test_a_neural_training_that_was_stopped_goes_on_to_the_same_weights(tmp_path):
    def stop(done, total, unit):
        if unit == "steps" and done == 6:
            raise KeyboardInterrupt

    whole = GridOptions(output=tmp_path / "whole", **FEW, **NEURAL)
    train_grid(whole)
    with pytest.raises(KeyboardInterrupt):
        train_grid(GridOptions(output=tmp_path / "parts", **FEW, **NEURAL), stop)
    with pytest.raises(EnsueError, match="other settings"):
        train_grid(GridOptions(output=tmp_path / "parts", resume=True, **FEW, **{**NEURAL, "filters": 9}))
    train_grid(GridOptions(output=tmp_path / "parts", resume=True, **FEW, **NEURAL))
    for name in ("model.safetensors", "config.json"):
        assert (tmp_path / "whole" / name).read_bytes() == (tmp_path / "parts" / name).read_bytes(), name


def test_a_linear_training_is_not_repeated_unless_asked_and_gives_the_same(tmp_path):
    train_grid(GridOptions(output=tmp_path / "model", **FEW))
    first = (tmp_path / "model" / "ranker.json").read_bytes()
    with pytest.raises(EnsueError, match="--resume"):
        train_grid(GridOptions(output=tmp_path / "model", **FEW))
    train_grid(GridOptions(output=tmp_path / "model", resume=True, **FEW))
    assert (tmp_path / "model" / "ranker.json").read_bytes() == first


def test_documents_are_divided_by_text_and_versions_are_those_of_the_shuffle_test(tmp_path):
    from ensue.benchmarks.shuffle.permute import document_seed, shuffled_orders

    first, *others = read_documents(limit=6)
    rows = [{"id": each.id, "sentences": each.sentences} for each in (first, *others)]
    rows += [
        {"id": "copy", "sentences": first.sentences},
        {"id": "short", "sentences": ["One."]},
        {"id": "same", "sentences": ["No.", "No."]},
    ]
    path = write_lines(tmp_path / "documents.jsonl", rows)
    shuffling = Shuffling(block_sizes=(1, 2), shuffles=3, max_sentences=7, seed=4)
    found = read_examples([str(path)], GridForm(), shuffling, dev_share=0.3)
    assert found.skipped == {
        "documents that are there twice": 1,
        "documents of one sentence": 1,
        "documents with no other order": 1,
    }
    sides = [{example.id for example in side} for side in (found.train, found.dev)]
    assert [len(side) for side in sides] == [4, 2]
    assert sides[0] | sides[1] == {each.id for each in (first, *others)}
    example = next(each for each in (*found.train, *found.dev) if each.id == first.id)
    single = shuffled_orders(first.sentences[:7], 1, 3, document_seed(4, first.id, 1))
    assert example.orders[:3] == tuple(single)
    pairs = shuffled_orders(first.sentences[:7], 2, 3, document_seed(4, first.id, 2))
    blocks = [(0, 1), (2, 3), (4, 5), (6,)]
    assert example.orders[3:] == tuple(tuple(i for block in order for i in blocks[block]) for order in pairs)


def test_documents_are_chosen_by_id(tmp_path):
    ids = [document.id for document in read_documents(limit=8)]
    left_out, missing = tmp_path / "left-out.txt", tmp_path / "missing.txt"
    left_out.write_text("\n".join(ids[:3]) + "\n")
    missing.write_text("nowhere\n")
    given = {**FEW, "limit": 8, "penalties": "0.1"}
    train_grid(GridOptions(output=tmp_path / "model", exclude=left_out, **given))
    record = json.loads((tmp_path / "model" / "training.json").read_text())
    assert record["asked"]["exclude"] == ids[:3]
    assert record["corpora"]["skipped"] == {"documents not asked for": 3}
    assert record["corpora"]["train"]["documents"] + record["corpora"]["dev"]["documents"] == 5
    with pytest.raises(EnsueError, match="no document 'nowhere'"):
        train_grid(GridOptions(output=tmp_path / "other", only=missing, **given))


def test_shuffled_versions_are_not_parsed_again(tmp_path):
    told = []
    options = GridOptions(output=tmp_path / "model", **FEW)
    train_grid(options, lambda *each: told.append(each))
    model = load_model(str(tmp_path / "model"))
    parsed = model.rate([*texts(1), *([texts(1)[0][::-1]] * 3)])
    assert parsed[1] == parsed[2] == parsed[3]
    totals = {total for _, total, unit in told if unit == "sentences"}
    distinct = {s for document in read_documents(limit=12) for s in document.sentences[:20]}
    assert totals <= {len(distinct)}


def test_the_command_says_what_it_trained_on_and_what_was_left_out(tmp_path):
    done = here(
        "train", "grid", "--data", "bundled", "--limit", 8, "--shuffles", 3, "--no-roles", "--salience", 0,
        "--output", tmp_path / "model", "--penalties", "0.1", "--device", "cpu",
    )  # fmt: skip
    assert done.code == 0, done.err
    assert "trained on 21 pairs of 7 documents, held out 3 of 1; left out: nothing" in done.out
    assert len(json.loads((tmp_path / "model" / "ranker.json").read_text())) == 4
    shown = here("models", "show", tmp_path / "model")
    assert "rate how coherent a text is" in shown.out
    refused(here("run", "shuffle", "--model", tmp_path / "model", "--limit", 1))


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["--penalties", "many"], "Invalid --penalties many: expected numbers divided by commas."),
        (["--penalties", "0"], "0 is not above 0"),
        (["--block-size", "1.5"], "Invalid --block-size 1.5"),
        (["--block-size", ","], "need one number at least"),
        (["--dev-share", "1"], "Invalid --dev-share 1.0"),
        (["--kind", "graph"], "expected one of linear, neural"),
    ],
)
def test_a_bad_option_is_one_sentence(tmp_path, more, words):
    refused(here("train", "grid", "--data", "bundled", "--output", tmp_path / "model", *more), words)


def test_documents_that_cannot_be_shuffled_are_one_sentence(tmp_path):
    one = write_lines(tmp_path / "one.jsonl", [{"id": str(n), "sentences": [f"Line {n}."]} for n in range(5)])
    output = tmp_path / "model"
    refused(here("train", "grid", "--data", one, "--output", output), "two documents or more", "has 0.")
    empty = write_lines(tmp_path / "empty.jsonl", [])
    refused(here("train", "grid", "--data", empty, "--output", output), "empty.jsonl is empty")
    refused(here("train", "grid", "--data", tmp_path / "none.txt", "--output", output), "none.txt")
    two = write_lines(
        tmp_path / "two.jsonl", [{"id": str(n), "sentences": [f"Dog {n}.", f"Cat {n}."]} for n in range(2)]
    )
    refused(here("train", "grid", "--data", two, "--output", output), "two training documents or more")
    # Nothing was begun, so the folder may be used.
    assert not output.exists()


def test_without_the_pipeline_or_scikit_learn_one_sentence_says_what_to_install(tmp_path):
    code = (
        "import sys; sys.modules[{0!r}] = None\n"
        "from ensue.cli.main import main\n"
        "sys.argv = ['ensue', 'train', 'grid', '--data', 'bundled', '--limit', '5', '--device', 'cpu', "
        "'--output', {1!r}]\n"
        "main()\n"
    )
    for missing in ("spacy", "sklearn"):
        done = subprocess.run(
            [sys.executable, "-c", code.format(missing, str(tmp_path / missing))],
            capture_output=True,
            text=True,
            env=os.environ,
        )
        assert done.returncode == 2, done.stderr
        assert done.stderr.splitlines()[-1].endswith(
            "which is not installed; run: pip install 'ensue[grid]'."
        )
        assert "Traceback" not in done.stderr


def test_a_folder_whose_weights_do_not_fit_is_refused(tmp_path):
    train_grid(GridOptions(output=tmp_path / "model", **FEW))
    ranker = tmp_path / "model" / "ranker.json"
    weights = json.loads(ranker.read_text())
    ranker.write_text(json.dumps({**weights, "salient SS": float("nan")}))
    with pytest.raises(EnsueError, match="weight that is not a number"):
        load_model(str(tmp_path / "model"))
    weights.pop("salient SS")
    ranker.write_text(json.dumps(weights))
    with pytest.raises(EnsueError, match="no weight for each transition"):
        load_model(str(tmp_path / "model"))
