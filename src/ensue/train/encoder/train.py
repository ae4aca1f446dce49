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
from ensue.errors import EnsueError
from ensue.parallel import cores
from ensue.progress import Progress
from ensue.train.encoder.corpus import Asked, Corpus, prepare_corpus
from ensue.train.encoder.objective import Batch, Objective, Tally, batches_in, epoch_batches, fixed_batches
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


def _prepare(options: EncoderOptions, accelerator: Accelerator, progress: Progress | None) -> Job:
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
    known = _start_from_vectors(network, corpus, options.vectors) if options.vectors else 0
    objective = Objective(network, options).to(accelerator.device)

    def batches(epoch: int) -> Iterator[Batch]:
        return epoch_batches(corpus, train, options.batch, options.seed, epoch)

    def evaluate() -> Mapping[str, float]:
        tally = Tally(options)
        for batch in fixed_batches(corpus, dev, options.batch):
            tally.add(objective.term_losses(batch))
        return tally.figures()

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


def _counts(corpus: Corpus, sentences: Mapping[str, int]) -> dict[str, Any]:
    documents = {"train": corpus.documents - corpus.dev_documents, "dev": corpus.dev_documents}
    parts = {name: {"documents": documents[name], "sentences": count} for name, count in sentences.items()}
    words = {"words": int(corpus.offsets[-1]), "vocabulary": len(corpus.vocabulary)}
    return {**parts, "all": {**words, "skipped": corpus.skipped}}


def _start_from_vectors(network: DiscourseNetwork, corpus: Corpus, path: Path) -> int:
    """Put known words' vectors in place; return how many were known."""
    places, vectors = read_vectors(path.expanduser(), corpus.vocabulary, network.shape.embedding)
    with torch.no_grad():
        network.embedding.weight[torch.from_numpy(places)] = torch.from_numpy(vectors)
    return len(places)


def read_vectors(path: Path, vocabulary: Vocabulary, width: int) -> tuple[Any, npt.NDArray[np.float32]]:
    """Read word vectors in the text format of GloVe and fastText for the words of a vocabulary.

    Returns the places of the words that are found and their vectors; a first line that only counts is passed over.
    """
    numbers = {word: place for place, word in enumerate(vocabulary.words)}
    places: list[int] = []
    found: list[npt.NDArray[np.float32]] = []
    try:
        with path.open("rb") as file:
            for line_number, line in enumerate(file, 1):
                pieces = line.rstrip().split(b" ")
                if line_number == 1 and len(pieces) == 2:
                    continue
                if len(pieces) != width + 1:
                    # A few lines of GloVe's largest file hold a space within the word.
                    if len(pieces) > width + 1 and line_number > 1:
                        continue
                    raise EnsueError(
                        f"{path}, line {line_number} has {len(pieces) - 1} numbers where --embedding is {width}."
                    )
                place = numbers.pop(pieces[0].decode("utf-8", "replace"), None)
                if place is not None:
                    places.append(place)
                    found.append(_numbers(pieces[1:], f"{path}, line {line_number}"))
    except OSError as error:
        raise EnsueError(f"{path} could not be read: {error.strerror or error}.") from error
    if not found:
        raise EnsueError(f"{path} has a vector of no word of the vocabulary.")
    return np.asarray(places, dtype=np.int64), np.stack(found)


def _numbers(pieces: list[bytes], place: str) -> npt.NDArray[np.float32]:
    try:
        values = np.asarray([float(piece) for piece in pieces], dtype=np.float32)
    except ValueError:
        raise EnsueError(f"{place} holds something that is no number.") from None
    if not np.isfinite(values).all():
        raise EnsueError(f"{place} holds a number that is not finite.")
    return values
