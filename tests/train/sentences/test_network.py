"""Pooling, attention and whole networks against loops over single sentences."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from ensue.benchmarks.nlu.framing import TextRow
from ensue.train.sentences import ARCHITECTURES
from ensue.train.sentences.network import (
    HeadSize,
    SentenceNetwork,
    SentenceShape,
    attend,
    max_pool,
    mean_between,
    mean_pool,
)
from ensue.train.sentences.rows import TextVocabulary, number

WORDS = ["the", "cat", "sat", "on", "a", "mat", "while", "dogs", "slept"]
RNG = np.random.default_rng(0)
VOCABULARY = TextVocabulary(
    {word: place for place, word in enumerate(WORDS, 1)}, RNG.normal(size=(10, 6)).astype(np.float32)
)


def states(texts: int, words: int) -> torch.Tensor:
    return torch.randn(texts, words, 5, generator=torch.Generator().manual_seed(texts * words))


def test_pooling_sees_only_a_texts_own_words() -> None:
    given, lengths = states(3, 7), [7, 1, 4]
    largest, mean = max_pool(given, torch.tensor(lengths)), mean_pool(given, torch.tensor(lengths))
    for text, length in enumerate(lengths):
        for place in range(5):
            column = [float(given[text, word, place]) for word in range(length)]
            assert float(largest[text, place]) == pytest.approx(max(column))
            assert float(mean[text, place]) == pytest.approx(sum(column) / length, rel=1e-5, abs=1e-6)


def test_marked_words_are_averaged() -> None:
    given = states(2, 6)
    found = mean_between(given, torch.tensor([1, 0]), torch.tensor([2, 3]), torch.tensor([5, 3]))
    torch.testing.assert_close(found[0], (given[1, 2] + given[1, 3] + given[1, 4]) / 3)
    assert found[1].tolist() == [0.0] * 5


def test_attention_is_that_of_the_formula() -> None:
    u, v, u_lengths, v_lengths = states(2, 4), states(2, 6), [4, 2], [3, 6]
    by_u, by_v = attend(u, v, torch.tensor(u_lengths), torch.tensor(v_lengths))
    for pair in range(2):
        product = [
            [float(u[pair, i] @ v[pair, j]) for j in range(v_lengths[pair])] for i in range(u_lengths[pair])
        ]
        for i in range(u_lengths[pair]):
            total = sum(math.exp(h) for h in product[i])
            context = sum(math.exp(h) / total * v[pair, j] for j, h in enumerate(product[i]))
            torch.testing.assert_close(by_u[pair, i], context)
        for j in range(v_lengths[pair]):
            column = [row[j] for row in product]
            total = sum(math.exp(h) for h in column)
            context = sum(math.exp(h) / total * u[pair, i] for i, h in enumerate(column))
            torch.testing.assert_close(by_v[pair, j], context)


def network(architecture: str) -> SentenceNetwork:
    torch.manual_seed(0)
    tasks = {"one": HeadSize(1, 0, 2), "two": HeadSize(2, 0, 3)}
    return SentenceNetwork(VOCABULARY, SentenceShape(architecture, 4, 8), tasks).eval()


ROWS = [
    TextRow(("the cat sat on a mat", "dogs slept")),
    TextRow(("dogs", "the cat slept while a mat sat")),
    TextRow(("dogs", "dogs slept")),
]


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_a_batch_gives_what_its_rows_give_alone(architecture: str) -> None:
    made = network(architecture)
    for name, rows in (("two", ROWS), ("one", [TextRow(row.texts[:1]) for row in ROWS])):
        numbered = number(rows, VOCABULARY, 50)
        together = made(name, numbered.batch(np.arange(3), "cpu"))
        alone = torch.cat([made(name, numbered.batch(np.array([i]), "cpu")) for i in range(3)])
        torch.testing.assert_close(together, alone)


def test_cbow_is_a_classifier_on_means_of_word_vectors() -> None:
    made = network("cbow")
    u, v = (
        torch.from_numpy(np.mean([VOCABULARY.vectors[VOCABULARY.numbers[w]] for w in text.split()], axis=0))  # type: ignore[index]
        for text in ROWS[0].texts
    )
    expected = made.heads["two"](torch.cat([u, v, (u - v).abs(), u * v]))
    torch.testing.assert_close(
        made("two", number(ROWS[:1], VOCABULARY, 50).batch(np.array([0]), "cpu"))[0], expected
    )


def test_attention_puts_a_second_bilstm_over_states_and_contexts() -> None:
    made = network("bilstm-attention")
    sides = []
    for text in ROWS[0].texts:
        vectors = torch.stack([made.words.weight[VOCABULARY.numbers[word]] for word in text.split()])
        sides.append(made.encoder.lstm(vectors[None])[0][0])
    pooled = []
    for own, other in (sides, sides[::-1]):
        context = torch.stack([(own @ other.T)[i].softmax(0) @ other for i in range(len(own))])
        pooled.append(made.after_attention.lstm(torch.cat([own, context], 1)[None])[0][0].max(0).values)
    u, v = pooled
    expected = made.heads["two"](torch.cat([u, v, (u - v).abs(), u * v]))
    torch.testing.assert_close(
        made("two", number(ROWS[:1], VOCABULARY, 50).batch(np.array([0]), "cpu"))[0], expected
    )


def test_published_vectors_stay_and_learned_ones_move() -> None:
    assert not network("cbow").words.weight.requires_grad
    learned = SentenceNetwork(
        TextVocabulary(VOCABULARY.numbers, None), SentenceShape("cbow", 4, 8), {"one": HeadSize(1, 0, 2)}
    )
    assert learned.words.weight.requires_grad
    assert learned.words.weight.shape == (10, 300)


def test_the_papers_sizes() -> None:
    with torch.device("meta"):
        learned = TextVocabulary(VOCABULARY.numbers, None)
        made = SentenceNetwork(
            learned, SentenceShape("bilstm-attention", 1500, 512), {"two": HeadSize(2, 0, 3)}
        )
    assert made.encoder.lstm.num_layers == 2
    assert made.encoder.lstm.weight_hh_l1_reverse.shape == (6000, 1500)
    assert made.after_attention.lstm.input_size == 6000
    assert made.heads["two"][0].in_features == 12_000
    assert made.heads["two"][0].out_features == 512
