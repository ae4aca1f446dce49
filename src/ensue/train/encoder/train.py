"""Train a discourse-aware sentence encoder: documents in, a model folder out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from accelerate import Accelerator

from ensue.backends.discourse.model import DiscourseNetwork, EncoderShape, save_discourse
from ensue.backends.discourse.words import Vocabulary
from ensue.backends.words import read_text
from ensue.errors import EnsueError, os_errors
from ensue.parallel import cores
from ensue.progress import Progress
from ensue.train.encoder.corpus import Asked, SentenceCorpus, prepare_corpus
from ensue.train.encoder.objective import (
    EncoderObjective,
    SentenceBatch,
    batches_in,
    dev_figures,
    epoch_batches,
    fixed_batches,
)
from ensue.train.encoder.options import ABOUT, EncoderOptions
from ensue.train.loop import Fitted
from ensue.train.run import CORPUS, Described, Job, content_digest, run_training


def train_encoder(options: EncoderOptions, progress: Progress | None = None) -> Fitted:
    """Train on most documents of the data, stop by the loss on the others, and leave the best model in the output.

    `corpora` is where the prepared corpus is kept (default: in the output), so that trainings can share it.
    """
    if not options.data:
        raise EnsueError("There is nothing to train on: name a file or folder with --data.")
    return run_training(options, lambda *machine: _prepare(options, *machine), progress)


def _prepare(options: EncoderOptions, accelerator: Accelerator, progress: Progress) -> Job:
    with accelerator.main_process_first():
        corpus = prepare_corpus(
            options.data,
            options.corpora or options.output / CORPUS,
            Asked(options.vocabulary, options.max_words, options.dev_share),
            workers=options.workers or cores(),
            progress=progress,
        )
    train, dev = corpus.rows(dev=False), corpus.rows(dev=True)
    torch.manual_seed(options.seed)
    network = DiscourseNetwork(EncoderShape(len(corpus.vocabulary), options.embedding, options.dimension))
    known = 0
    if options.vectors:
        places, vectors = read_vectors(options.vectors.expanduser(), corpus.vocabulary, options.embedding)
        network.embedding.weight.data[torch.from_numpy(places)] = torch.from_numpy(vectors)
        known = len(places)
    objective = EncoderObjective(network, options).to(accelerator.device)

    def batches(epoch: int) -> Iterator[SentenceBatch]:
        return epoch_batches(corpus, train, options.batch, options.seed, epoch)

    def evaluate() -> Mapping[str, float]:
        return dev_figures(objective, fixed_batches(corpus, dev, options.batch))

    def describe(facts: Mapping[str, Any], fitted: Fitted) -> Described:
        losses, part = " + ".join(name.upper() for name in options.weights), facts["corpora"]["train"]
        words = (
            f"BiGRU encoder, {losses}, on {part['sentences']} sentences of {part['documents']} documents, "
            f"{fitted.best_step} steps, dev loss {fitted.best_loss:.4f}"
        )
        return Described(words, "trained by ensue")

    return Job(
        objective,
        options.loop.counted(
            batches_in(len(train), options.batch), accelerator.num_processes, options.passes
        ),
        batches,
        evaluate,
        save=lambda: save_discourse(options.output, network, corpus.vocabulary),
        describe=describe,
        facts={
            "losses": {name: ABOUT[name] for name in options.weights},
            "corpora": _counts(corpus, {"train": len(train), "dev": len(dev)}),
            "words_with_vectors": known,
            "parameters": sum(p.numel() for p in network.parameters()),
            "trained_parameters": sum(p.numel() for p in objective.parameters()),
        },
        question=content_digest(corpus.files),
    )


def _counts(corpus: SentenceCorpus, sentences: Mapping[str, int]) -> dict[str, Any]:
    documents = {"train": corpus.documents - corpus.dev_documents, "dev": corpus.dev_documents}
    parts = {name: {"documents": documents[name], "sentences": count} for name, count in sentences.items()}
    words = {"words": int(corpus.offsets[-1]), "vocabulary": len(corpus.vocabulary)}
    return {**parts, "all": {**words, "skipped": corpus.skipped}}


def read_vectors(path: Path, vocabulary: Vocabulary, width: int) -> tuple[Any, npt.NDArray[np.float32]]:
    """Read word vectors in the text format of GloVe and fastText for the words of a vocabulary.

    Returns the places of the words that are found and their vectors; of a word that stands there twice, the first.
    """
    numbers = {word: place for place, word in enumerate(vocabulary.words)}
    found: dict[int, npt.NDArray[np.float32]] = {}
    with os_errors(path):
        for words, vectors in read_text(path):
            if vectors.shape[1] != width:
                raise EnsueError(f"{path} has vectors of {vectors.shape[1]} where --embedding is {width}.")
            for word, vector in zip(words, vectors, strict=True):
                if word in numbers:
                    found.setdefault(numbers[word], vector)
    if not found:
        raise EnsueError(f"{path} has a vector of no word of the vocabulary.")
    return np.asarray(list(found), dtype=np.int64), np.stack(list(found.values()))
