"""Train an answerer: files of questions in, a model folder out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import torch
from accelerate import Accelerator

from ensue.backends.hf.loading import max_length
from ensue.backends.names import load_model
from ensue.backends.qa.answerer import AnswerModel, Reading
from ensue.backends.qa.network import SpanNetwork, prepare_adapter, save_answerer, save_full_answerer
from ensue.backends.suffixlm.model import bare_encoder
from ensue.errors import EnsueError
from ensue.progress import Progress
from ensue.records import file_digest
from ensue.text.io.squad import Article, Example, Split, examples_of, read_squads, split_articles
from ensue.train.cards import answerer_readme
from ensue.train.loop import Fitted
from ensue.train.qa.options import AnswererOptions
from ensue.train.qa.quality import AnswerFigures, best_threshold, evaluate_answerer, figures_of
from ensue.train.qa.rows import SpanObjective, SpanRow, epoch_batches, rows_of
from ensue.train.run import Described, Job, content_digest, parameters_of, run_training


def train_answerer(options: AnswererOptions, progress: Progress | None = None) -> Fitted:
    """Train on most articles of `data`, keep what has the best F1 on the dev ones, and measure it on the test ones.

    All of `extra` is trained on too, but for articles that are held out. What the loop calls `dev_loss` is 1 − F1 on
    the dev articles, at the threshold that suits them best.
    """
    if not options.data:
        raise EnsueError("There is nothing to train on: name a file in SQuAD's format with --data.")
    return run_training(options, lambda accelerator, _: _prepare(options, accelerator), progress)


def _prepare(options: AnswererOptions, accelerator: Accelerator) -> Job:
    split = split_articles(
        read_squads(options.data),
        dev_share=options.dev_share,
        test_share=options.test_share,
        seed=options.seed,
    )
    base: Any = load_model(options.model, device="cpu", dtype="float32")
    torch.manual_seed(options.seed)
    network = _network(base, options).to(accelerator.device)
    latest = options.reading
    reader = AnswerModel(network, base.tokenizer, base.card, latest, accelerator.device)
    further = beyond(split, read_squads(options.extra or []))
    rows = rows_of(examples_of([*split.train, *further]), reader.form, latest, any_place=options.any_place)
    dev = examples_of(split.dev)

    def evaluate() -> Mapping[str, float]:
        nonlocal latest
        figures, latest = tuned(reader, dev)
        named = {f"dev_{name}": value for name, value in figures.as_dict().items()}
        return {"dev_loss": 1 - figures.f1, **named, "threshold": latest.threshold}

    def save() -> None:
        if options.adapter is None:
            save_full_answerer(options.output, network, latest, base.tokenizer)
        else:
            fingerprint = base.card.identity["weights"]
            save_answerer(options.output, network, options.adapter, latest, options.model, fingerprint)

    def batches(epoch: int) -> Iterator[list[SpanRow]]:
        return epoch_batches(rows, options.batch, options.seed, epoch)

    files = [*options.data, *(options.extra or [])]
    return Job(
        SpanObjective(network, reader.form, base.tokenizer.pad_token_id or 0),
        options.counted(-(-len(rows) // options.batch), accelerator.num_processes),
        batches,
        evaluate,
        save,
        describe=lambda facts, fitted: _describe(options, split, facts, fitted),
        facts={
            "files": {Path(name).name: file_digest(Path(name).expanduser()) for name in files},
            "corpora": _counts(split, further, len(rows)),
            "base": base.card.as_dict(),
            **parameters_of(network),
        },
        question=content_digest(files),
    )


def _describe(options: AnswererOptions, split: Split, facts: Mapping[str, Any], fitted: Fitted) -> Described:
    """Measure the model as it was saved."""
    learned = facts["corpora"]["train"]
    words = (
        f"answerer on {options.model}, {learned['questions']} questions of {learned['articles']} articles, "
        f"{fitted.best_step} steps, dev F1 {fitted.best['dev_f1']:.3f}"
    )
    model: Any = load_model(str(options.output), device=options.device, dtype="float32")
    held = {"dev": split.dev, "test": split.test}
    measured = {
        "held_out": {
            name: evaluate_answerer(model, examples_of(articles)).as_dict()
            for name, articles in held.items()
            if articles
        },
        "reading": asdict(model.reading),
    }
    readme = answerer_readme({**facts, **measured})
    return Described(words, f"trained by ensue from {options.model}", measured, readme)


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
    threshold = best_threshold(examples, texts, odds)
    given = [text if odd > threshold else "" for text, odd in zip(texts, odds, strict=True)]
    return figures_of(examples, given), replace(reader.reading, threshold=threshold)


def _network(base: Any, options: AnswererOptions) -> SpanNetwork:
    """Return the encoder with a new head, and what of it is to learn."""
    trunk = getattr(getattr(base, "network", None), "base_model", None)
    if trunk is None or not hasattr(trunk.config, "hidden_size"):
        raise EnsueError(f"{options.model} is not an encoder, which an answerer is built on; try minilm.")
    positions = max_length(trunk, _NoLimit())
    if positions is not None and options.max_length > positions:
        raise EnsueError(f"{options.model} takes {positions} tokens, fewer than --max-length.")
    bare_encoder(trunk)
    network = SpanNetwork(trunk, options.head_speed)
    if options.adapter is None:
        trunk.requires_grad_(True)
    else:
        prepare_adapter(network, options.adapter, options.dropout)
    return network


class _NoLimit:
    """Stands for a tokenizer that states no length: a sentence encoder's states where sentences are cut."""

    model_max_length = 10**9


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
