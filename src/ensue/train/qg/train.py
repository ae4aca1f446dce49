"""Train a question generator: SQuAD files in, a small adapter folder out."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import torch
from accelerate import Accelerator

from ensue.backends.hf.adapter import base_fingerprint
from ensue.backends.hf.language import CausalModel
from ensue.backends.hf.lora import add_lora
from ensue.backends.names import load_model
from ensue.backends.qg.generator import save_question_generator
from ensue.errors import EnsueError
from ensue.models.protocols import AnswerSpan, Questioner, require
from ensue.models.request import Policy
from ensue.progress import Progress
from ensue.text.io.squad import Article, Split, read_squads, split_articles
from ensue.train.cards import Sample, questioner_readme
from ensue.train.loop import Fitted
from ensue.train.qg.options import QuestionerOptions
from ensue.train.qg.rows import (
    QuestionBatch,
    QuestionExample,
    QuestionObjective,
    QuestionRow,
    dev_figures,
    epoch_batches,
    fixed_batches,
    make_rows,
    question_examples,
)
from ensue.train.run import Described, Job, content_digest, parameters_of, run_training

# Written for the model card, so that nobody's text is quoted in it and no training set has it.
_TEXTS = (
    (
        "Marta Lindqvist sold her bakery in Ystad in 2011 and used the money to restore a lighthouse, which has "
        "been open to visitors every summer since.",
        ("Marta Lindqvist", "2011", "a lighthouse"),
    ),
    (
        "The night bus was late because a fallen birch blocked the road near Hallam, and the driver waited there "
        "for forty minutes.",
        ("a fallen birch", "forty minutes"),
    ),
)


def train_questioner(options: QuestionerOptions, progress: Progress | None = None) -> Fitted:
    """Train on most articles of `data`, stop by the loss on some others, judge by the rest, and leave the best
    adapter in the output."""
    return run_training(options, lambda accelerator, _: _prepare(options, accelerator), progress)


def _prepare(options: QuestionerOptions, accelerator: Accelerator) -> Job:
    split = split_articles(
        read_squads(options.data),
        dev_share=options.dev_share,
        test_share=options.test_share,
        seed=options.seed,
    )
    base = _base(options.model, str(accelerator.device))
    sides = {
        name: _side(base, name, articles, options)
        for name, articles in split._asdict().items()
        if articles  # no test side where its share is 0
    }
    fingerprint = base_fingerprint(base.network)
    torch.manual_seed(options.seed)
    shape = options.adapter
    add_lora(base.network, rank=shape.rank, alpha=shape.alpha, dropout=options.dropout, targets=shape.targets)
    objective = QuestionObjective(base.network.to(accelerator.device))
    judged = sides.get("test", sides["dev"])
    # What the adapter starts from, for it changes nothing yet; the loop may put an earlier adapter back.
    objective.eval()
    with torch.inference_mode(), accelerator.autocast():
        before = dev_figures(objective, fixed_batches(judged.rows, options.batch_tokens))["perplexity"]

    def save() -> None:
        save_question_generator(
            options.output,
            base.network,
            base=options.base,
            fingerprint=fingerprint,
            adapter=shape,
            end=base.tokenizer.eos_token,
        )

    def batches(epoch: int) -> Iterator[QuestionBatch]:
        return epoch_batches(sides["train"].rows, options.batch_tokens, options.seed, epoch)

    def evaluate() -> Mapping[str, float]:
        return dev_figures(objective, fixed_batches(sides["dev"].rows, options.batch_tokens))

    return Job(
        objective,
        # Near enough: later epochs may have a batch more or less than the first.
        options.loop.counted(sum(1 for _ in batches(0)), accelerator.num_processes, options.passes),
        batches,
        evaluate,
        save,
        describe=lambda facts, fitted: _describe(options, judged.examples, facts, fitted),
        facts={
            "examples": _counts(split, sides),
            "base": {"name": options.base, "fingerprint": fingerprint, "perplexity": before},
            "trained_parameters": parameters_of(objective)["trained_parameters"],
        },
        question=content_digest(options.data),
    )


def _describe(
    options: QuestionerOptions,
    examples: Sequence[QuestionExample],
    facts: Mapping[str, Any],
    fitted: Fitted,
) -> Described:
    """Load what was saved as a user would, and judge it."""
    model = load_model(str(options.output), device=options.device, dtype="float32")
    held_out = evaluate_questioner(model, examples)
    samples = sample_questions(require(model, Questioner, "A model card"))
    learned = facts["examples"]["train"]["questions"]
    words = (
        f"adapter on {options.base}, {learned} questions, {fitted.best_step} steps, held-out perplexity "
        f"{held_out['perplexity']:.3f}"
    )
    more = {"held_out": held_out}
    size = (options.output / "adapter.safetensors").stat().st_size
    readme = questioner_readme({**facts, **more}, size, samples, options.statement)
    return Described(words, "trained by ensue", more, readme)


def _base(name: str, device: str) -> CausalModel:
    base = load_model(name, device=device, dtype="float32")
    if not isinstance(base, CausalModel):
        raise EnsueError(
            f"{name} is not a causal language model, which a question generator is trained from."
        )
    if base.tokenizer.eos_token_id is None:
        raise EnsueError(f"The tokenizer of {name} has no end token, which would end a question.")
    return base


class Side(NamedTuple):
    """One side of the split: its rows, the examples they are of, and why other questions are not among them."""

    rows: list[QuestionRow]
    examples: list[QuestionExample]
    left_out: dict[str, int]


def _side(base: CausalModel, name: str, articles: Sequence[Article], options: QuestionerOptions) -> Side:
    limit = min(options.max_tokens, base.card.max_length or options.max_tokens)
    found, skipped = question_examples(articles)
    rows, kept = make_rows(base.tokenizer, base._bos(Policy()), found, limit)
    if not rows:
        raise EnsueError(
            f"No {name} question has an answer and fits {limit} tokens with its text; raise --max-tokens or name "
            f"more --data."
        )
    return Side(rows, kept, {**skipped, "too long": len(found) - len(rows)})


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


def evaluate_questioner(model: Any, examples: Sequence[QuestionExample]) -> dict[str, Any]:
    """Return the perplexity over all tokens of the examples' questions, end tokens counted, and of how many it is."""
    found = model.question_logprobs(
        [example.context for example in examples],
        [example.answer for example in examples],
        [example.question for example in examples],
    )
    tokens = sum(map(len, found))
    perplexity = math.exp(min(-math.fsum(float(row.sum()) for row in found) / tokens, 700.0))
    return {"perplexity": perplexity, "tokens": tokens, "questions": len(examples)}


def sample_questions(model: Questioner) -> list[Sample]:
    """Return the likeliest question to each answer in the invented texts, in the paper's settings."""
    pairs = [(text, answer) for text, answers in _TEXTS for answer in answers]
    spans = [AnswerSpan(text.index(answer), text.index(answer) + len(answer)) for text, answer in pairs]
    asked = model.ask([text for text, _ in pairs], spans, count=1)
    return [
        Sample(text, answer, found[0].question if found else "(none)")
        for (text, answer), found in zip(pairs, asked, strict=True)
    ]
