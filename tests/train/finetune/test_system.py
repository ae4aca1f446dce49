"""Fine-tuning as a system: tasks, seeds, diagnostics, going on after a kill, saved weights, intermediate training."""

import statistics
from dataclasses import replace

import pytest

from ensue.backends.baselines import RandomModel
from ensue.backends.names import load_model
from ensue.benchmarks.nlu.examples import Example, TaskData
from ensue.benchmarks.nlu.systems import find
from ensue.errors import EnsueError
from ensue.runs import run as run  # registers this way of answering
from ensue.train.finetune.system import system
from tests.support import tiny
from tests.support.command import write_lines
from tests.support.run_context import records_of, run_context
from tests.train.finetune import invented

SHORT = {"epochs": 1, "batch": 16}


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return invented.encoder(tmp_path_factory.mktemp("encoder"))


def answers(model, tasks, folder=None, seed=0, progress=None, **settings):
    with run_context(folder, progress) as place:
        return list(system.answer(model, tasks, invented.settings(**settings), seed, place))


def nli(name, labels, train=0, dev=12, seed=0, **others):
    """Pairs whose label hangs on the second text; a set of its own labels, for training or for answering."""
    words = dict(zip(labels, ("the sun", "a cat", "the dog"), strict=False))
    splits = {
        split: [
            Example(f"{split}{i}", (f"The boat, number {i + seed}.", words[label]), label)
            for i, label in enumerate((labels * n)[:n])
        ]
        for split, n in (("train", train), ("dev", dev))
        if n
    }
    return TaskData(invented.spec(name, "pair", labels, **others), splits, f"{name}{seed}")


def test_it_is_the_system_of_its_mode():
    assert find("finetune") is system


def test_every_judged_split_is_answered_and_dev_is_not_trained_on(model):
    data = invented.task("single", train=32, dev=10, test=5)
    hidden = [replace(one, gold=None) for one in data.splits["test"]]
    data = replace(data, splits={**data.splits, "test": hidden})
    (found,) = answers(model, [data], **SHORT)
    assert found.task == data.spec.name
    assert {split: list(one) for split, one in found.predictions.items()} == {
        split: [example.id for example in data.splits[split]] for split in ("dev", "test")
    }
    assert set(found.predictions["test"].values()) <= set(invented.YES_NO)
    for example, chances in found.chances["dev"].items():
        assert sum(chances) == pytest.approx(1.0)
        assert invented.YES_NO[chances.index(max(chances))] == found.predictions["dev"][example]
    fit = found.fits[0]
    assert (fit["seed"], fit["train_examples"], fit["cut"], fit["start"]) == (0, 32, 0, "pretrained")


@pytest.mark.parametrize(
    ("form", "pairs"),
    [(form, "joint") for form in ("single", "choice", "answers", "entity", "word", "coreference")]
    + [(form, pairs) for form in ("pair", "score") for pairs in ("joint", "apart", "both")],
)
def test_every_form_is_trained_in_half_precision_too(model, form, pairs):
    """What a GPU does by default; heads must not be handed what the encoder has in bf16."""
    data = invented.task(form, train=16, dev=4)
    (found,) = answers(model, [data], epochs=1, batch=8, precision="bf16", pairs=pairs)
    assert len(found.predictions["dev"]) == len(data.splits["dev"])


def test_a_task_without_a_training_set_is_left_out(model):
    data = invented.task("single", train=0)
    assert answers(model, [data]) == []


def test_a_task_without_dev_chooses_on_a_part_of_its_training_set(model):
    data = invented.task("single", train=40, dev=0, test=4)
    (found,) = answers(model, [data], **SHORT)
    assert list(found.predictions) == ["test"]
    assert found.fits[0]["chosen_on"] == "a part of train"
    assert found.fits[0]["train_examples"] == 38


def test_the_best_run_answers_and_all_are_told_of(model):
    data = invented.task("pair", train=32, dev=24)
    (found,) = answers(model, [data], runs=3, seed=4, **SHORT)
    singles = [answers(model, [data], seed=seed, **SHORT)[0] for seed in (4, 5, 6)]
    scores = [one.fits[0]["dev_score"] for one in singles]
    assert [one["dev_score"] for one in found.fits] == scores
    assert [one["seed"] for one in found.fits] == [4, 5, 6]
    best = scores.index(max(scores))
    assert found.predictions == singles[best].predictions
    assert [one["chosen"] for one in found.fits] == [place == best for place in range(3)]
    summary = found.fits[best]
    assert summary["dev_mean"] == pytest.approx(statistics.mean(scores))
    assert summary["dev_sd"] == pytest.approx(statistics.stdev(scores))


def test_diagnostics_are_answered_by_the_classifier_they_name(model):
    rte = nli("RTE", invented.RTE, train=48)
    broad = nli("AX-b", invented.RTE, seed=50, answered_by="RTE", in_score=False)
    other = nli("diagnostic", invented.NLI, answered_by="MNLI", in_score=False)
    found = answers(model, [broad, rte, other], runs=3)
    assert [one.task for one in found] == ["RTE", "AX-b"]
    right = [found[1].predictions["dev"][one.id] == one.gold for one in broad.splits["dev"]]
    assert statistics.mean(right) > 0.9
    assert found[1].fits == ()


def test_three_classes_are_collapsed_to_two_where_mnli_answers(model):
    mnli = nli("MNLI", invented.NLI, train=60)
    diagnostic = nli("diagnostic", invented.NLI, seed=9, answered_by="MNLI", in_score=False)
    broad = replace(nli("AX-b", invented.RTE, answered_by="RTE", in_score=False))
    whole, three, two = answers(model, [mnli, diagnostic, broad], runs=3)
    assert (whole.task, three.task, two.task) == ("MNLI", "diagnostic", "AX-b")
    assert set(three.predictions["dev"].values()) == set(invented.NLI)
    assert set(two.predictions["dev"].values()) <= set(invented.RTE)
    assert all(len(chances) == 2 for chances in two.chances["dev"].values())


def test_a_killed_run_goes_on_with_the_next(model, tmp_path):
    tasks = [invented.task(form, train=24, dev=8, test=3) for form in ("single", "score", "entity")]
    straight = answers(model, tasks, runs=2, **SHORT)
    told = []

    def kill(done, total, unit):
        told.append(done)
        if done > 6:  # the second seed of the second task
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        answers(model, tasks, folder=tmp_path, progress=kill, runs=2, **SHORT)
    kept = records_of(tmp_path).read_bytes()
    assert kept.count(b"\n") == 3  # both seeds of the first task, one of the second
    resumed = answers(model, tasks, folder=tmp_path, runs=2, **SHORT)
    assert records_of(tmp_path).read_bytes().startswith(kept)
    assert records_of(tmp_path).read_bytes().count(b"\n") == 6
    for one, other in zip(resumed, straight, strict=True):
        assert one.predictions == other.predictions
        assert one.chances == other.chances


def test_what_was_finished_for_another_question_is_not_taken(model, tmp_path):
    data = invented.task("single", train=24, dev=8)
    ask = answers(model, [data], **SHORT)
    assert answers(model, [data], tmp_path, **SHORT)[0].predictions == ask[0].predictions
    path = records_of(tmp_path)
    before = path.read_bytes()
    answers(model, [data], tmp_path, **SHORT, dropout=0.3)
    assert path.read_bytes().count(b"\n") == 2
    path.write_bytes(before[: len(before) // 2])
    again = answers(model, [data], tmp_path, **SHORT)
    assert again[0].predictions == ask[0].predictions


def test_saved_weights_load_as_a_model_and_answer_the_same(model, tmp_path):
    data = invented.task("single", train=24, dev=8)
    answers(model, [data], folder=tmp_path, save="yes", **SHORT)
    folder = tmp_path / "finetuned" / "invented-single-0"
    loaded = load_model(str(folder), device="cpu")
    assert "fine-tuned on invented-single" in loaded.card.training
    assert not (loaded.encode(["The sun rose."]) == model.encode(["The sun rose."])).all()
    assert (folder / "head.json").is_file()
    with pytest.raises(EnsueError, match=r"save=yes .* name an output"):
        answers(model, [data], save="yes", **SHORT)


def test_intermediate_training_comes_first_and_is_taken_up_again(model, tmp_path):
    labels = list(invented.NLI) * 8
    lines = [
        {"premise": f"Boat {i}.", "hypothesis": f"It is {word}.", "label": word}
        for i, word in enumerate(labels)
    ]
    file = write_lines(tmp_path / "first.jsonl", lines)
    tasks = [nli("CB", invented.RTE, train=24), invented.task("single", name="CoLA", train=24, dev=8)]
    plain = answers(model, tasks, **SHORT)
    choices = {"intermediate": "mnli", "intermediate_data": str(file), **SHORT}
    cb, cola = answers(model, tasks, **choices)
    assert (cb.fits[0]["start"], cola.fits[0]["start"]) == ("mnli", "pretrained")
    assert cb.fits[0]["losses"] != plain[0].fits[0]["losses"]
    assert cola.predictions == plain[1].predictions
    every = answers(model, tasks, **{**choices, "intermediate_for": ["all"]})
    assert [one.fits[0]["start"] for one in every] == ["mnli", "mnli"]
    by_path = answers(model, tasks, intermediate=str(file), **SHORT)
    assert [one.fits[0]["start"] for one in by_path] == ["first", "first"]
    run = tmp_path / "run"
    answers(model, tasks, run, **choices)
    (kept,) = run.glob(".kept-*")
    written = kept.stat().st_mtime_ns
    # The record of the weights, without those of what was trained from them.
    of_weights = records_of(run).read_bytes().splitlines(keepends=True)[0]
    records_of(run).write_bytes(of_weights)
    assert answers(model, tasks, run, **choices)[0].predictions == cb.predictions
    assert kept.stat().st_mtime_ns == written
    # Weights with a flipped byte are not taken.
    records_of(run).write_bytes(of_weights)
    damaged = bytearray(kept.read_bytes())
    damaged[-5] ^= 64
    kept.write_bytes(damaged)
    assert answers(model, tasks, run, **choices)[0].predictions == cb.predictions
    assert kept.read_bytes() != damaged


def test_the_runs_own_mnli_may_come_first_or_it_is_asked_for(model):
    mnli, rte = nli("MNLI", invented.NLI, train=24), nli("RTE", invented.RTE, train=24)
    found = answers(model, [mnli, rte], intermediate="mnli", **SHORT)
    assert [one.fits[0]["start"] for one in found] == ["pretrained", "MNLI"]
    with pytest.raises(EnsueError, match=r"intermediate=mnli needs its training set.*intermediate_data"):
        answers(model, [rte], intermediate="mnli", **SHORT)


@pytest.mark.parametrize("save", [tiny.save_bert, tiny.save_roberta, tiny.save_gpt2, tiny.save_llama])
def test_other_models_are_fine_tuned_too(save, tmp_path):
    other = load_model(str(save(tmp_path / "model")), device="cpu")
    tasks = [invented.task(form, train=16, dev=4) for form in ("pair", "word")]
    found = answers(other, tasks, **SHORT)
    pool = "last" if save in (tiny.save_gpt2, tiny.save_llama) else "cls"
    assert [one.fits[0]["pool"] for one in found] == [pool, pool]
    assert f"pool:{pool}" in system.signature(other, invented.settings())


def test_a_model_without_weights_to_tune_is_refused():
    with pytest.raises(EnsueError, match="Fine-tuning needs a Hugging Face model"):
        answers(RandomModel(), [invented.task("single")])


def test_the_signature_names_what_was_chosen(model):
    words = system.signature(model, invented.settings(runs=3, pairs="both", intermediate="swag"))
    for word in (
        "runs:3",
        "pool:mean",
        "pairs:both",
        "intermediate:swag",
        "epochs:10",
        "intermediate_for:paper",
    ):
        assert word in words
    assert "dropout" not in words


def test_every_step_is_told_of_and_sequences_that_are_cut_are_noted(model):
    told = []
    data = invented.task("single", train=32, dev=10)
    (found,) = answers(model, [data], max_length=8, progress=lambda *state: told.append(state), **SHORT)
    assert told == [(1, 2, "steps"), (2, 2, "steps")]

    def long(split):
        return sum(len(model.tokenizer(one.texts[0])["input_ids"]) > 8 for one in data.splits[split])

    assert dict(found.notes) == {
        "training sequences cut at 8 tokens": long("train"),
        "sequences cut at 8 tokens": long("dev"),
    }
    assert long("dev") == 10
    (whole,) = answers(model, [data], **SHORT)
    assert not whole.notes
