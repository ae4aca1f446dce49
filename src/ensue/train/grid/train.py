"""Train an entity-grid model: documents in, a model folder out."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from accelerate import Accelerator
from torch import Tensor, nn

from ensue.backends.grid.grid import Grid, transition_features
from ensue.backends.grid.model import Ranker, save_ranker
from ensue.backends.grid.network import GridNetwork, NetworkShape, make_batch, rate_grids, save_neural_grid
from ensue.errors import EnsueError
from ensue.progress import Progress
from ensue.train.cards import page
from ensue.train.documents import ChosenIds
from ensue.train.grid.examples import Examples, GridOrders, counts_of, document_accuracy, read_examples
from ensue.train.grid.options import GridOptions
from ensue.train.grid.ranking import Pairs, accuracy, choose_penalty, fit_ranker
from ensue.train.loop import Fitted
from ensue.train.run import Described, Fit, Job, parameters_of, run_fit, run_training
from ensue.train.shuffling import Shuffling


def train_grid(options: GridOptions, progress: Progress | None = None) -> Fitted:
    """Train on most documents of the data, measure on the others, and leave the model in the output.

    The linear kind is fitted in one go, C chosen by cross-validation over the training documents, and the others
    decide nothing; of the neural kind they decide which step is kept.
    """
    if not options.data:
        raise EnsueError("There is nothing to train on: name a file or folder with --data.")
    if options.kind == "linear":
        return run_fit(options, lambda shown: _fit(options, shown), progress)
    return run_training(options, lambda *machine: _prepare(options, *machine), progress)


def _examples(options: GridOptions, progress: Progress) -> Examples:
    return read_examples(
        options.data,
        options.form,
        Shuffling(options.sizes, options.shuffles, options.max_sentences, options.seed),
        dev_share=options.dev_share,
        chosen=ChosenIds.read(options.only, options.exclude),
        progress=progress,
        limit=options.limit,
        split=options.split,
        encoding=options.encoding,
    )


def _fit(options: GridOptions, progress: Progress) -> Fit:
    began = time.monotonic()
    examples = _examples(options, progress)
    train, dev = (pairs_of(side, options) for side in (examples.train, examples.dev))
    chosen = choose_penalty(
        train,
        options.values,
        folds=options.folds,
        ranker=options.ranker,
        seed=options.seed,
        progress=progress,
    )
    weights, rounds = fit_ranker(train, chosen.penalty, options.ranker)
    held_out = accuracy(dev, weights)
    best = {"dev_loss": 1 - held_out, "dev_accuracy": held_out, "penalty": chosen.penalty}
    counts: dict[str, Any] = counts_of(examples)
    words = _words(options, counts, f"C {chosen.penalty:g} by cross-validation", held_out)
    return Fit(
        Fitted(rounds, rounds, 1 - held_out, best, False, time.monotonic() - began),
        {
            "corpora": counts,
            "cross_validation": {f"{penalty:g}": found for penalty, found in chosen.accuracies.items()},
            "digest": examples.digest,
            "parameters": len(weights),
        },
        lambda: save_ranker(options.output, Ranker(options.form, options.longest, weights)),
        _described(words, _readme(options, counts, words, held_out)),
    )


def pairs_of(examples: Sequence[GridOrders], options: GridOptions) -> Pairs:
    """Return the differences of transition shares of all examples."""
    differences, documents = [], []
    for number, example in enumerate(examples):
        own = transition_features(example.grid, options.form, options.longest)
        for version in example.versions():
            differences.append(own - transition_features(version, options.form, options.longest))
            documents.append(number)
    return Pairs(np.stack(differences), np.array(documents))


class GridPair(NamedTuple):
    """A document's number and one of its orders."""

    document: int
    order: tuple[int, ...]


class PairObjective(nn.Module):  # type: ignore[misc]
    """The loss of a batch of pairs: how much a text's rating lacks to be above that of its version by a margin."""

    def __init__(self, network: GridNetwork, examples: Sequence[GridOrders], margin: float) -> None:
        super().__init__()
        self.network = network
        self._examples, self._margin = examples, margin

    def forward(self, pairs: Sequence[GridPair]) -> Tensor:
        # A document's own rating is computed once, however many of its versions are here.
        owns = {document: place for place, document in enumerate(dict.fromkeys(p.document for p in pairs))}
        grids: list[Grid] = [self._examples[document].grid for document in owns]
        grids += [self._examples[pair.document].grid.reordered(pair.order) for pair in pairs]
        batch = make_batch(grids, len(self.network.form.signs), self.network.shape.window)
        ratings = self.network(batch.to(self.network.rating.weight.device))
        own = ratings[[owns[pair.document] for pair in pairs]]
        return nn.functional.relu(self._margin - (own - ratings[len(owns) :])).mean()


def _prepare(options: GridOptions, accelerator: Accelerator, progress: Progress) -> Job:
    examples = _examples(options, progress)
    torch.manual_seed(options.seed)
    shape = NetworkShape(options.embedding, options.filters, options.window, options.dropout)
    network = GridNetwork(options.form, shape).to(accelerator.device)
    pairs = [
        GridPair(number, order) for number, example in enumerate(examples.train) for order in example.orders
    ]
    counts: dict[str, Any] = counts_of(examples)

    def describe(facts: Mapping[str, Any], fitted: Fitted) -> Described:
        held_out = fitted.best["dev_accuracy"]
        words = _words(options, counts, f"{fitted.best_step} steps", held_out)
        return _described(words, _readme(options, counts, words, held_out))

    return Job(
        PairObjective(network, examples.train, options.margin),
        options.loop.counted(-(-len(pairs) // options.batch), accelerator.num_processes, options.epochs),
        lambda epoch: epoch_batches(pairs, options.batch, options.seed, epoch),
        lambda: dev_figures(network, examples.dev, options.margin),
        save=lambda: save_neural_grid(options.output, network),
        describe=describe,
        facts={"corpora": counts, **parameters_of(network)},
        question=examples.digest,
    )


def epoch_batches(pairs: Sequence[GridPair], size: int, seed: int, epoch: int) -> Iterator[list[GridPair]]:
    """Yield all pairs in an order of the epoch's own."""
    order = np.random.default_rng([seed, epoch]).permutation(len(pairs))
    for begin in range(0, len(order), size):
        yield [pairs[place] for place in order[begin : begin + size]]


def dev_figures(network: GridNetwork, examples: Sequence[GridOrders], margin: float) -> dict[str, float]:
    """Return the mean loss over held-out documents, and how often they are rated above their versions."""
    margins = []
    for example in examples:
        own, *others = rate_grids(network, [example.grid, *example.versions()])
        margins.append([own - other for other in others])
    losses = [float(np.maximum(margin - np.array(each), 0).mean()) for each in margins]
    return {"dev_loss": float(np.mean(losses)), "dev_accuracy": document_accuracy(margins)}


def _words(options: GridOptions, counts: Mapping[str, Any], how: str, held_out: float) -> str:
    sizes = " and ".join(str(size) for size in options.sizes)
    return (
        f"{options.kind} entity grid, {counts['train']['documents']} documents against "
        f"{counts['train']['pairs']} shuffled versions (k = {sizes}), {how}, "
        f"accuracy {held_out:.3f} on others ({counts['dev']['documents']} held out)"
    )


def _described(words: str, readme: str) -> Described:
    return Described(words, "trained by ensue", readme=readme, card={"trained_on_shuffled_text": True})


def _readme(options: GridOptions, counts: Mapping[str, Any], words: str, held_out: float) -> str:
    form = options.form
    about = (
        "Rates how coherent an English text is by which entities its sentences mention, and as what: an entity grid, "
        'trained by ensue. Load it with `ensue.load_model("FOLDER").rate([sentences])`.'
    )
    cells = "subject, object, other or absent" if form.roles else "there or absent"
    apart = (
        f"entities of {form.salience} mentions or more apart" if form.salience else "all entities together"
    )
    classes = ", by properties as well" if form.properties else ""
    grid = f"Cells: {cells}; {apart}{classes}; mentions: {form.mentions}; seed {options.seed}."
    recipe = f"{words[0].upper()}{words[1:]}. {grid}"
    sides = [
        f"{counts[side]['documents']:,} documents and {counts[side]['pairs']:,} shuffled versions of them {what}"
        for side, what in (("train", "to learn from"), ("dev", "held out"))
    ]
    decided = "also decided which step was kept" if options.kind == "neural" else "decided nothing"
    held = (
        f"The document is rated above its shuffled version in {100 * held_out:.1f} % of the held-out pairs, the mean "
        f"over documents. They {decided}."
    )
    limits = (
        "It has seen shuffled text, so a zero-shot Shuffle Test refuses it. Where documents begin with headlines it "
        "has learned these; only ratings of texts with the same sentences can be compared."
    )
    data = f"{'; '.join(sides)}. No text of the data is in this folder."
    sections = {"Held-out accuracy": held, "Recipe": recipe, "Data": data, "Limits": limits}
    return page("Entity grid", about, sections)
