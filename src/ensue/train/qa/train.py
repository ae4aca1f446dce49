"""Training an answerer: files of questions in, a model folder out, with its log and what was asked beside it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import torch

from ensue.backends.hf.loading import max_length
from ensue.backends.names import load_model
from ensue.backends.qa.answerer import AnswerModel, Reading
from ensue.backends.qa.folder import save_answerer, save_full_answerer
from ensue.backends.qa.network import SpanNetwork, prepare_adapter
from ensue.backends.suffixlm.model import bare_encoder
from ensue.benchmarks.qags.answer_quality import AnswerFigures, best_threshold, evaluate_answerer, figures_of
from ensue.environment import environment
from ensue.errors import EnsueError
from ensue.models.card import write_card_facts
from ensue.text.io.squad import Article, Example, Split, examples_of, read_squads, split_articles
from ensue.train.loop import Fitted, Loop, LoopSettings, make_accelerator
from ensue.train.qa.card import write_readme
from ensue.train.qa.objective import Objective
from ensue.train.qa.rows import Row, batches_in, epoch_batches, rows_of
from ensue.train.qa.settings import QaSettings
from ensue.train.record import begin_record, check_folder, content_digest, write_record

Told = Callable[[int, int, str], None]


def train_answerer(
    settings: QaSettings,
    *,
    data: Sequence[str],
    output: Path,
    extra: Sequence[str] = (),
    about_data: str = "",
    resume: bool = False,
    told: Told | None = None,
) -> Fitted:
    """Train on most articles of `data`, keep what has the best F1 on the dev ones, and measure it on the test ones.

    All of `extra` is trained on too, but for articles that are held out. What the loop calls `dev_loss` is 1 − F1 on
    the dev articles, at the threshold that suits them best.
    """
    if not data:
        raise EnsueError("There is nothing to train on: name a file in SQuAD's format with --data.")
    asked = {"settings": asdict(settings), "data": list(data), "extra": list(extra), "about_data": about_data}
    accelerator = make_accelerator(settings.loop)
    if accelerator.is_main_process:
        check_folder(output, asked, resume)
    else:
        told = None
    split = split_articles(
        read_squads(data),
        dev_share=settings.dev_share,
        test_share=settings.test_share,
        seed=settings.loop.seed,
    )
    base: Any = load_model(settings.model, device="cpu")
    torch.manual_seed(settings.loop.seed)
    network = _network(base, settings).to(accelerator.device)
    reader = AnswerModel(network, base.tokenizer, base.card, settings.reading, accelerator.device)
    further = beyond(split, read_squads(extra))
    rows = rows_of(
        examples_of([*split.train, *further]), reader.form, settings.reading, any_place=settings.any_place
    )
    dev = examples_of(split.dev)
    latest = settings.reading

    def evaluate() -> Mapping[str, float]:
        nonlocal latest
        figures, latest = tuned(reader, dev)
        named = {f"dev_{name}": value for name, value in figures.as_dict().items()}
        return {"dev_loss": 1 - figures.f1, **named, "threshold": latest.threshold}

    def save() -> None:
        if settings.adapter is None:
            save_full_answerer(output, network, latest, base.tokenizer)
        else:
            fingerprint = base.card.identity["weights"]
            save_answerer(output, network, settings.adapter, latest, settings.model, fingerprint)

    def batches(epoch: int) -> Iterator[list[Row]]:
        return epoch_batches(rows, settings.batch, settings.loop.seed, epoch)

    loop = Loop(
        Objective(network, reader.form, base.tokenizer.pad_token_id or 0),
        with_steps(settings, len(rows), accelerator.num_processes),
        output,
        accelerator,
        save_best=save,
        told=told,
        question=content_digest([*data, *extra]),
    )
    if accelerator.is_main_process:
        begin_record(output, asked)
    fitted = loop.run(batches, evaluate, resume=resume)
    if accelerator.is_main_process:
        facts = {
            "asked": asked,
            "files": {Path(name).name: _sha256(name) for name in [*data, *extra]},
            "corpora": _counts(split, further, len(rows)),
            "base": base.card.as_dict(),
            "parameters": sum(p.numel() for p in network.parameters()),
            "trained_parameters": sum(p.numel() for p in network.parameters() if p.requires_grad),
            "fitted": asdict(fitted),
            "processes": accelerator.num_processes,
            "environment": environment(),
        }
        _finish(output, settings, split, facts, fitted)
    return fitted


def beyond(split: Split, extra: Sequence[Article]) -> list[Article]:
    """Articles of further data that are held out neither by name, however it is spelled, nor by a paragraph."""
    held = [*split.dev, *split.test]
    names = {_plain(article.id) for article in held}
    texts = {_plain(paragraph.context) for article in held for paragraph in article.paragraphs}
    return [
        article
        for article in extra
        if _plain(article.id) not in names
        and not any(_plain(paragraph.context) in texts for paragraph in article.paragraphs)
    ]


def tuned(reader: AnswerModel, examples: Sequence[Example]) -> tuple[AnswerFigures, Reading]:
    """Figures at the threshold that suits these examples best, and how to read with it."""
    found = reader.best_spans([one.question for one in examples], [one.context for one in examples])
    texts, odds = [one.text for one in found], [one.score for one in found]
    threshold = best_threshold(examples, texts, odds).threshold
    given = [text if odd > threshold else "" for text, odd in zip(texts, odds, strict=True)]
    return figures_of(examples, given), replace(reader.reading, threshold=threshold)


def with_steps(settings: QaSettings, rows: int, processes: int) -> LoopSettings:
    """The loop's settings with epochs counted out as steps, and an evaluation after each where none was asked for."""
    loop = settings.loop
    epoch = max(batches_in(rows, settings.batch) // (loop.accumulate * processes), 1)
    steps = epoch * settings.epochs
    return replace(
        loop,
        steps=steps,
        warmup=round(settings.warmup_share * steps),
        evaluate_every=loop.evaluate_every or epoch,
    )


def _network(base: Any, settings: QaSettings) -> SpanNetwork:
    """The encoder with a new head, and what of it is to learn."""
    trunk = getattr(getattr(base, "network", None), "base_model", None)
    if trunk is None or not hasattr(trunk.config, "hidden_size"):
        raise EnsueError(f"{settings.model} is no encoder, which an answerer is built on; try minilm.")
    positions = max_length(trunk, _NoLimit())
    if positions is not None and settings.reading.max_length > positions:
        raise EnsueError(f"{settings.model} takes {positions} tokens, fewer than --max-length.")
    bare_encoder(trunk)
    network = SpanNetwork(trunk, settings.head_faster)
    if settings.adapter is None:
        trunk.requires_grad_(True)
    else:
        prepare_adapter(network, settings.adapter, settings.dropout)
    return network


class _NoLimit:
    """Stands for a tokenizer that states no length: a sentence encoder's states where sentences are cut."""

    model_max_length = 10**9


def _finish(output: Path, settings: QaSettings, split: Split, facts: dict[str, Any], fitted: Fitted) -> None:
    """Measure the model as it was saved, and say in the folder what was trained, on what, and how well it answers."""
    words = (
        f"answerer on {settings.model}, {facts['corpora']['train']['questions']} questions of "
        f"{facts['corpora']['train']['articles']} articles, {fitted.best_step} steps, "
        f"dev F1 {fitted.best['dev_f1']:.3f}"
    )
    write_card_facts(output, training=words, source=f"trained by ensue from {settings.model}")
    model: Any = load_model(str(output), device=settings.loop.device)
    held: dict[str, list[Article]] = {"dev": split.dev, "test": split.test}
    facts["held_out"] = {
        name: evaluate_answerer(model, examples_of(articles)).as_dict()
        for name, articles in held.items()
        if articles
    }
    facts["reading"] = asdict(model.reading)
    write_record(output, facts)
    write_readme(output, facts)


def _plain(text: str) -> str:
    return " ".join(text.replace("_", " ").casefold().split())


def _counts(split: Split, extra: list[Article], rows: int) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, articles in {**split._asdict(), "extra": extra}.items():
        examples = examples_of(articles)
        found[name] = {
            "articles": len(articles),
            "questions": len(examples),
            "answerable": sum(bool(one.answers) for one in examples),
            # Of further data, which may be thousands of texts, the files' digests must do.
            "names": sorted(article.id[:80] for article in articles) if name != "extra" else [],
        }
    found["train"]["rows"] = rows
    return found


def _sha256(name: str) -> str:
    with Path(name).expanduser().open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
