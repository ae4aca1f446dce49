"""What is chosen for a task when nothing is said, and how settings are read."""

import pytest

from ensue.benchmarks.settings import resolve
from ensue.errors import EnsueError
from ensue.train.finetune.recipe import LONGEST, SETTINGS, recipe_for
from tests.train.finetune import invented


def recipe(form="pair", examples=3_000, width=384, limit=512, **given):
    chosen = resolve("glue", SETTINGS, given)
    return recipe_for(invented.spec("T", form), examples, chosen, width=width, limit=limit, pool="mean")


def test_small_sets_are_passed_over_more_often_and_small_encoders_learn_in_larger_steps():
    epochs = [recipe(examples=n).epochs for n in (250, 3_000, 60_000)]
    assert epochs == sorted(epochs, reverse=True)
    rates = [recipe(width=width).learning_rate for width in (384, 768, 1024)]
    assert rates == sorted(rates, reverse=True)
    assert rates[-1] == 1e-5  # the paper's, for BERT-large


def test_pairs_and_pool_by_form():
    assert [recipe(form).pairs for form in ("single", "pair", "score", "word")] == [
        "joint",
        "joint",
        "both",
        "joint",
    ]
    assert recipe("word", pairs="apart").pairs == "joint"  # its spans lie in both texts
    assert recipe("pair", pairs="apart").joint is False
    assert (recipe().pool, recipe(pool="cls").pool) == ("mean", "cls")


def test_no_sequence_is_longer_than_the_encoder_takes():
    assert recipe(limit=8192).max_length == LONGEST
    assert recipe(limit=128, max_length=300).max_length == 128
    assert recipe(limit=8192, max_length=1024).max_length == 1024


def test_what_is_said_counts():
    said = recipe(epochs="2", learning_rate="0.001", batch="4", precision="float32", patience="3")
    assert (said.epochs, said.learning_rate, said.batch, said.precision, said.patience) == (
        2,
        0.001,
        4,
        "float32",
        3,
    )
    assert recipe("entity").batch < recipe("pair").batch


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"learning_rate": "fast"}, "Invalid learning_rate=fast: expected a number from 1e-08 to 1"),
        ({"learning_rate": "nan"}, "Invalid learning_rate=nan: expected a number"),
        ({"dropout": "1"}, "Invalid dropout=1: expected a number from 0 to 0.9"),
        ({"epochs": "0"}, "Invalid epochs=0: expected a whole number from 1"),
        ({"pairs": "twice"}, "Invalid pairs=twice: expected one of auto, joint, apart, both"),
        ({"pool": "max"}, "Invalid pool=max: expected one of auto, cls, mean, last"),
    ],
)
def test_bad_settings_are_one_sentence(given, words):
    with pytest.raises(EnsueError) as refusal:
        recipe(**given)
    assert words in str(refusal.value)
