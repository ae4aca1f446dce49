"""Training a discourse-aware sentence encoder: documents in, a model folder out, with its log and record."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import torch

from ensue.backends.discourse.model import save_discourse
from ensue.backends.discourse.network import DiscourseNetwork, EncoderShape
from ensue.environment import environment
from ensue.errors import EnsueError
from ensue.models.card import write_card_facts
from ensue.train.encoder.batches import Batch, batches_in, epoch_batches, fixed_batches
from ensue.train.encoder.corpus import Asked, Corpus, prepare_corpus
from ensue.train.encoder.objective import Objective, Tally
from ensue.train.encoder.settings import ABOUT, EncoderSettings
from ensue.train.encoder.spool import Told
from ensue.train.encoder.vectors import read_vectors
from ensue.train.loop import Fitted, Loop, LoopSettings, make_accelerator
from ensue.train.record import CORPUS, begin_record, check_folder, content_digest, write_record


def train_encoder(
    settings: EncoderSettings,
    *,
    data: Sequence[str],
    output: Path,
    workers: int = 1,
    resume: bool = False,
    corpora: Path | None = None,
    told: Told | None = None,
) -> Fitted:
    """Train on most documents of `data`, stop by the loss on the others, and leave the best model in `output`.

    `corpora` is where the prepared corpus is kept (default: in the output), so that trainings can share it.
    """
    if not data:
        raise EnsueError("There is nothing to train on: name a file or folder with --data.")
    asked = {"settings": asdict(settings), "data": list(data)}
    accelerator = make_accelerator(settings.loop)
    if accelerator.is_main_process:
        check_folder(output, asked, resume)
    with accelerator.main_process_first():
        corpus = prepare_corpus(
            data,
            corpora or output / CORPUS,
            Asked(settings.vocabulary, settings.max_words, settings.dev_share),
            workers=workers,
            told=told,
        )
    rows = {"train": corpus.rows(dev=False), "dev": corpus.rows(dev=True)}
    torch.manual_seed(settings.loop.seed)
    network = DiscourseNetwork(EncoderShape(len(corpus.vocabulary), settings.embedding, settings.dimension))
    known = _start_from_vectors(network, corpus, settings.vectors) if settings.vectors else 0
    objective = Objective(network, settings).to(accelerator.device)
    loop = Loop(
        objective,
        _with_steps(settings, len(rows["train"]), accelerator.num_processes),
        output,
        accelerator,
        save_best=lambda: save_discourse(output, network, corpus.vocabulary),
        told=told,
        question=content_digest(corpus.files),
    )

    def batches(epoch: int) -> Iterator[Batch]:
        return epoch_batches(corpus, rows["train"], settings.batch, settings.loop.seed, epoch)

    def evaluate() -> Mapping[str, float]:
        tally = Tally(settings)
        for batch in fixed_batches(corpus, rows["dev"], settings.batch):
            tally.add(objective.term_losses(batch))
        return tally.figures()

    if accelerator.is_main_process:
        begin_record(output, asked)
    fitted = loop.run(batches, evaluate, resume=resume)
    if accelerator.is_main_process:
        facts = {
            "asked": asked,
            "losses": {name: ABOUT[name] for name in settings.losses},
            "corpora": _counts(corpus, {name: len(found) for name, found in rows.items()}),
            "words_with_vectors": known,
            "parameters": sum(p.numel() for p in network.parameters()),
            "trained_parameters": sum(p.numel() for p in objective.parameters()),
            "fitted": asdict(fitted),
            "processes": accelerator.num_processes,
            "environment": environment(),
        }
        write_record(output, facts)
        _write_card(output, settings, facts, fitted)
    return fitted


def _with_steps(settings: EncoderSettings, sentences: int, processes: int) -> LoopSettings:
    """The loop's settings, with steps counted out where epochs were asked for."""
    if settings.loop.steps:
        return settings.loop
    steps = batches_in(sentences, settings.batch) // (settings.loop.accumulate * processes)
    return replace(settings.loop, steps=max(steps, 1) * settings.epochs)


def _start_from_vectors(network: DiscourseNetwork, corpus: Corpus, path: str) -> int:
    """Put known words' vectors in place; how many were known."""
    places, vectors = read_vectors(Path(path).expanduser(), corpus.vocabulary, network.shape.embedding)
    with torch.no_grad():
        network.embedding.weight[torch.from_numpy(places)] = torch.from_numpy(vectors)
    return len(places)


def _counts(corpus: Corpus, sentences: Mapping[str, int]) -> dict[str, Any]:
    documents = {"train": corpus.documents - corpus.dev_documents, "dev": corpus.dev_documents}
    parts = {name: {"documents": documents[name], "sentences": count} for name, count in sentences.items()}
    words = {"words": int(corpus.offsets[-1]), "vocabulary": len(corpus.vocabulary)}
    return {**parts, "all": {**words, "skipped": corpus.skipped}}


def _write_card(output: Path, settings: EncoderSettings, facts: Mapping[str, Any], fitted: Fitted) -> None:
    losses = " + ".join(name.upper() for name in settings.losses)
    train = facts["corpora"]["train"]
    words = (
        f"BiGRU encoder, {losses}, on {train['sentences']} sentences of {train['documents']} documents, "
        f"{fitted.best_step} steps, dev loss {fitted.best_loss:.4f}"
    )
    write_card_facts(output, training=words, source="trained by ensue")
