"""The model card of a question generator: recipe, data, held-out perplexity, and questions about invented text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ensue.models.protocols import AnswerSpan, Questioner
from ensue.train.loop import Fitted
from ensue.train.qg.evaluate import QuestionPerplexity
from ensue.train.qg.settings import QuestionSettings

# Written for this card, so that nobody's text is quoted in it and no training set has it.
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


class Sample(NamedTuple):
    """A text, an answer in it, and what was asked."""

    text: str
    answer: str
    question: str


def sample_questions(model: Questioner) -> list[Sample]:
    """The likeliest question to each answer in the invented texts, in the paper's settings."""
    pairs = [(text, answer) for text, answers in _TEXTS for answer in answers]
    spans = [AnswerSpan(text.index(answer), text.index(answer) + len(answer)) for text, answer in pairs]
    asked = model.ask([text for text, _ in pairs], spans, count=1)
    return [
        Sample(text, answer, found[0].question if found else "(none)")
        for (text, answer), found in zip(pairs, asked, strict=True)
    ]


def write_model_card(
    output: Path,
    *,
    settings: QuestionSettings,
    facts: Mapping[str, Any],
    fitted: Fitted,
    held_out: QuestionPerplexity,
    before: float,
    samples: Sequence[Sample],
    statement: str,
) -> None:
    """README.md of the model folder."""
    loop, adapter = settings.loop, settings.adapter
    counts = facts["examples"]
    weights = output / "adapter.safetensors"
    lines = [
        "# Question generator",
        "",
        f"Given a text and an answer marked in it, asks the question. A low-rank adapter on `{settings.base}`, "
        f"trained by ensue; {facts['trained_parameters']:,} weights, {weights.stat().st_size / 1e6:.1f} MB.",
        "",
        "## Recipe",
        "",
        f"- adapter: rank {adapter.rank}, alpha {adapter.alpha:g}, dropout {settings.dropout:g}, on "
        f"{', '.join(adapter.targets)}",
        f"- learning rate {loop.learning_rate:g}, {loop.schedule} after {loop.warmup} steps of warm-up, weight decay "
        f"{loop.weight_decay:g}, batches of {settings.batch_tokens} tokens × {loop.accumulate}, seed {loop.seed}",
        f"- {fitted.steps} steps in {fitted.seconds:.0f} s; the best at step {fitted.best_step} was kept",
        "- the loss is that of the question's tokens and its end; the text and the answer are only read",
        "",
        "## Data",
        "",
        statement,
        "",
        f"- files: {', '.join(Path(name).name for name in facts['asked']['data'])}",
        f"- the split is by article: learned from {_side(counts, 'train')}; the best step chosen by "
        f"{_side(counts, 'dev')}" + (f"; measured on {_side(counts, 'test')}" if "test" in counts else ""),
        f"- left out: {_words(counts['left_out'])}",
        "",
        "## Held-out perplexity",
        "",
        f"{held_out.perplexity:.2f} for each question token, over {held_out.tokens:,} tokens of "
        f"{held_out.questions:,} questions. The model without its adapter: {before:.2f}."
        + ("" if "test" in counts else " These questions also decided which step was kept."),
        "",
        "## What it asks",
        "",
        "The texts are invented; beam search of 10, 8 to 60 tokens, no trigram twice; the likeliest question.",
        "",
    ]
    shown = ""
    for sample in samples:
        if sample.text != shown:
            lines += [f"> {sample.text}", ""] if not shown else ["", f"> {sample.text}", ""]
            shown = sample.text
        lines.append(f"- {sample.answer}: *{sample.question}*")
    part = output / ".README.md.part"
    part.write_text("\n".join(lines) + "\n", "utf-8")
    part.replace(output / "README.md")


def _side(counts: Mapping[str, Any], name: str) -> str:
    return f"{counts[name]['questions']:,} questions of {counts[name]['articles']} articles"


def _words(left_out: Mapping[str, int]) -> str:
    return ", ".join(f"{count:,} {why}" for why, count in left_out.items() if count) or "nothing"
