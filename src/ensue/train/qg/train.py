"""Training a question generator: SQuAD files in, a small adapter folder out, with its log, record and card."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, NamedTuple

import torch

from ensue.backends.hf.language import CausalModel
from ensue.backends.hf.lora import add_lora
from ensue.backends.names import load_model
from ensue.backends.qg.generator import base_fingerprint, save_question_generator
from ensue.environment import environment
from ensue.errors import EnsueError
from ensue.models.card import write_card_facts
from ensue.models.protocols import Questioner, require
from ensue.models.request import Policy
from ensue.text.io.squad import Article, Split, read_squads, split_articles
from ensue.train.loop import Fitted, Loop, LoopSettings, make_accelerator
from ensue.train.qg.batches import Batch, Row, batches_in, epoch_batches, fixed_batches, make_rows
from ensue.train.qg.card import sample_questions, write_model_card
from ensue.train.qg.evaluate import evaluate_questioner
from ensue.train.qg.examples import QuestionExample, question_examples
from ensue.train.qg.objective import QuestionObjective, dev_figures
from ensue.train.qg.settings import QuestionSettings
from ensue.train.record import begin_record, check_folder, content_digest, write_record

Told = Callable[[int, int, str], None]
STATEMENT = (
    "Questions people asked about paragraphs, in SQuAD's format. Nothing else is known of the data here."
)


def train_questioner(
    settings: QuestionSettings,
    *,
    data: Sequence[str],
    output: Path,
    resume: bool = False,
    statement: str = STATEMENT,
    told: Told | None = None,
) -> Fitted:
    """Train on most articles of `data`, stop by the loss on some others, judge by the rest, and leave the best
    adapter in `output`."""
    asked = {"settings": asdict(settings), "data": list(data)}
    accelerator = make_accelerator(settings.loop)
    split = split_articles(
        read_squads(data),
        dev_share=settings.dev_share,
        test_share=settings.test_share,
        seed=settings.loop.seed,
    )
    if accelerator.is_main_process:
        check_folder(output, asked, resume)
    base = _base(settings.model, str(accelerator.device))
    sides = {
        name: _side(base, name, articles, settings)
        for name, articles in split._asdict().items()
        if articles  # no test side where its share is 0
    }
    fingerprint = base_fingerprint(base.network)
    torch.manual_seed(settings.loop.seed)
    shape = settings.adapter
    add_lora(
        base.network, rank=shape.rank, alpha=shape.alpha, dropout=settings.dropout, targets=shape.targets
    )
    objective = QuestionObjective(base.network.to(accelerator.device))

    def save() -> None:
        save_question_generator(
            output,
            base.network,
            base=settings.base,
            fingerprint=fingerprint,
            adapter=shape,
            end=base.tokenizer.eos_token,
        )

    def batches(epoch: int) -> Iterator[Batch]:
        return epoch_batches(sides["train"].rows, settings.batch_tokens, settings.loop.seed, epoch)

    def evaluate() -> Mapping[str, float]:
        return dev_figures(objective, fixed_batches(sides["dev"].rows, settings.batch_tokens))

    if accelerator.is_main_process:
        begin_record(output, asked)
    judged = sides.get("test", sides["dev"])
    before = _first_perplexity(objective, fixed_batches(judged.rows, settings.batch_tokens), accelerator)
    loop = Loop(
        objective,
        _with_steps(settings, sides["train"].rows, accelerator.num_processes),
        output,
        accelerator,
        save_best=save,
        told=told,
        question=content_digest(data),
    )
    fitted = loop.run(batches, evaluate, resume=resume)
    if accelerator.is_main_process:
        facts = {
            "asked": asked,
            "examples": _counts(split, sides),
            "base": {"name": settings.base, "fingerprint": fingerprint, "perplexity": before},
            "trained_parameters": sum(p.numel() for p in loop.parameters),
            "fitted": asdict(fitted),
            "processes": accelerator.num_processes,
            "environment": environment(),
        }
        _finish(output, settings, facts, fitted, judged.examples, statement)
    return fitted


def _finish(
    output: Path,
    settings: QuestionSettings,
    facts: dict[str, Any],
    fitted: Fitted,
    examples: Sequence[QuestionExample],
    statement: str,
) -> None:
    """Load what was saved as a user would, judge it, and write record and card."""
    model = load_model(str(output), device=settings.loop.device)
    held_out = evaluate_questioner(model, examples)
    samples = sample_questions(require(model, Questioner, "A model card"))
    write_record(output, {**facts, "held_out": held_out._asdict()})
    write_model_card(
        output,
        settings=settings,
        facts=facts,
        fitted=fitted,
        held_out=held_out,
        before=facts["base"]["perplexity"],
        samples=samples,
        statement=statement,
    )
    learned = facts["examples"]["train"]["questions"]
    write_card_facts(
        output,
        training=f"adapter on {settings.base}, {learned} questions, {fitted.best_step} steps, held-out perplexity "
        f"{held_out.perplexity:.3f}",
        source="trained by ensue",
    )


def _base(name: str, device: str) -> CausalModel:
    base = load_model(name, device=device)
    if not isinstance(base, CausalModel):
        raise EnsueError(f"{name} is no causal language model, which a question generator is trained from.")
    if base.tokenizer.eos_token_id is None:
        raise EnsueError(f"The tokenizer of {name} has no end token, which would end a question.")
    return base


class Side(NamedTuple):
    """One side of the split: its rows, the examples they are of, and why other questions are not among them."""

    rows: list[Row]
    examples: list[QuestionExample]
    left_out: dict[str, int]


def _side(base: CausalModel, name: str, articles: Sequence[Article], settings: QuestionSettings) -> Side:
    limit = min(settings.max_tokens, base.card.max_length or settings.max_tokens)
    found = question_examples(articles)
    made = make_rows(base.tokenizer, base._bos(Policy()), found.examples, limit)
    if not made.rows:
        raise EnsueError(
            f"No {name} question has an answer and fits {limit} tokens with its text; raise --max-tokens or name "
            f"more --data."
        )
    return Side(made.rows, made.examples, {**found.skipped, "too long": made.too_long})


def _first_perplexity(objective: QuestionObjective, batches: Iterable[Batch], accelerator: Any) -> float:
    """What the adapter starts from: it changes nothing until it has learned something.

    Called before the loop, which may put an earlier adapter back.
    """
    objective.eval()
    with torch.inference_mode(), accelerator.autocast():
        return dev_figures(objective, batches)["perplexity"]


def _with_steps(settings: QuestionSettings, rows: Sequence[Row], processes: int) -> LoopSettings:
    """The loop's settings, with steps counted out where epochs were asked for."""
    if settings.loop.steps:
        return settings.loop
    batches = batches_in(rows, settings.batch_tokens, settings.loop.seed)
    steps = batches // (settings.loop.accumulate * processes)
    return replace(settings.loop, steps=max(steps, 1) * settings.epochs)


def _counts(split: Split, sides: Mapping[str, Side]) -> dict[str, Any]:
    """Articles and questions of each side, and what was left out of all of them."""
    left_out: Counter[str] = Counter()
    for side in sides.values():
        left_out.update(side.left_out)
    articles = split._asdict()
    return {
        **{
            name: {"articles": len(articles[name]), "questions": len(side.rows)}
            for name, side in sides.items()
        },
        "left_out": dict(left_out),
    }
