"""The README.md of a trained model's folder: what it is, the recipe, the data, the held-out figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

_FIGURES = {
    "exact": "exact match",
    "f1": "F1",
    "has_answer_exact": "exact match, answerable questions",
    "has_answer_f1": "F1, answerable questions",
    "no_answer": "right to say nothing, unanswerable questions",
}


def answerer_readme(facts: Mapping[str, Any]) -> str:
    """Return the card's text from what the record of a training holds."""
    limits = (
        "It answers with words of the text, from one text at a time, and gives no reasons. On texts unlike those it "
        "was trained on, expect less than the figures above. Its score says how sure it is against there being no "
        "answer, not how likely it is right."
    )
    return page(
        "Extractive question answering",
        _about(facts),
        {
            "Held-out figures": f"{_table(facts['held_out'])}\n\n{_chosen(facts)}",
            "Recipe": _recipe(facts),
            "Data": _data(facts),
            "Limits": limits,
        },
    )


def _about(facts: Mapping[str, Any]) -> str:
    base = facts["base"]
    adapter = facts["asked"]["settings"]["adapter"]
    kind = "All weights were trained" if adapter is None else "An adapter and a span head were trained"
    return (
        f"Finds the part of a text that answers a question, or says that there is none. {kind} on {base['name']} "
        f"({base['source']}; licence {base['licence']}; weights sha256 {base['identity']['weights'][:16]}…): "
        f"{facts['trained_parameters']:,} of {facts['parameters']:,} parameters. Load it with "
        f'`ensue.load_model("FOLDER").answer([question], [text])`.'
    )


def _table(held_out: Mapping[str, Mapping[str, float]]) -> str:
    parts = list(held_out)
    lines = [f"| figure | {' | '.join(parts)} |", "|---|" + "---:|" * len(parts)]
    for name, words in _FIGURES.items():
        if any(name in held_out[part] for part in parts):
            values = [f"{held_out[part][name]:.3f}" if name in held_out[part] else "–" for part in parts]
            lines.append(f"| {words} | {' | '.join(values)} |")
    return "\n".join(lines)


def _chosen(facts: Mapping[str, Any]) -> str:
    threshold = facts["reading"]["threshold"]
    test = (
        "nothing was chosen by the test articles."
        if "test" in facts["held_out"]
        else "no article was kept for testing, so these figures are a little too good."
    )
    return (
        f"As SQuAD 2.0's evaluation defines them, on whole articles that were not trained on. Step and threshold "
        f"({threshold:.3f}) were chosen by F1 on the dev articles; {test}"
    )


def _recipe(facts: Mapping[str, Any]) -> str:
    settings, fitted = facts["asked"]["settings"], facts["fitted"]
    adapter, loop, reading = settings["adapter"], settings["loop"], settings["reading"]
    if adapter is None:
        learns = f"the whole encoder, and the head {settings['head_faster']:g} times as fast"
    else:
        layers = ", ".join(adapter["targets"]) or "all linear"
        extra = ", biases, norms and token types" if adapter["vectors"] else ""
        learns = (
            f"low-rank corrections of rank {adapter['rank']} (alpha {adapter['alpha']:g}, dropout "
            f"{settings['dropout']:g}) on {layers} layers{extra}, and the head"
        )
    places = "; an answer counts wherever its words stand in the text" if settings["any_place"] else ""
    return (
        f"What learned: {learns}. AdamW, learning rate {loop['learning_rate']:g} ({loop['schedule']} decay after "
        f"{100 * settings['warmup_share']:g} % warmup), weight decay {loop['weight_decay']:g}, "
        f"{settings['batch'] * loop['accumulate']} rows a step, at most {settings['epochs']} epochs; best at step "
        f"{fitted['best_step']} of {fitted['steps']}, {fitted['seconds']:.0f} s, seed {loop['seed']}. Rows of "
        f"{reading['max_length']} tokens, windows sharing {reading['stride']}; answers of at most "
        f"{reading['max_answer']} tokens. Where annotators marked different answers, each counts "
        f"by its share{places}."
    )


def _data(facts: Mapping[str, Any]) -> str:
    lines = [facts["asked"]["about_data"]] if facts["asked"]["about_data"] else []
    lines += [f"- `{name}`, sha256 {digest}" for name, digest in facts["files"].items()]
    for name, count in facts["corpora"].items():
        if count["articles"]:
            lines.append(
                f"- {name}: {count['articles']} articles, {count['questions']:,} questions, "
                f"{count['answerable']:,} of them answerable"
            )
    lines.append(
        "- questions that several files share were taken once; no text of the data is in this folder"
    )
    return "\n".join(lines)


_STATEMENT = (
    "Questions people asked about paragraphs, in SQuAD's format. Nothing else is known of the data here."
)


class Sample(NamedTuple):
    """A text, an answer in it, and what was asked."""

    text: str
    answer: str
    question: str


def questioner_readme(facts: Mapping[str, Any], size: int, samples: Sequence[Sample], statement: str) -> str:
    """Return the card's text from what the record of a training holds; `size` is that of the adapter in bytes."""
    settings, fitted, counts = facts["asked"]["settings"], facts["fitted"], facts["examples"]
    loop, adapter, held_out = settings["loop"], settings["adapter"], facts["held_out"]
    about = (
        f"Given a text and an answer marked in it, asks the question. A low-rank adapter on "
        f"`{facts['base']['name']}`, trained by ensue; {facts['trained_parameters']:,} weights, {size / 1e6:.1f} MB."
    )
    recipe = [
        f"- adapter: rank {adapter['rank']}, alpha {adapter['alpha']:g}, dropout {settings['dropout']:g}, on "
        f"{', '.join(adapter['targets'])}",
        f"- learning rate {loop['learning_rate']:g}, {loop['schedule']} after {loop['warmup']} steps of warm-up, "
        f"weight decay {loop['weight_decay']:g}, batches of {settings['batch_tokens']} tokens × "
        f"{loop['accumulate']}, seed {loop['seed']}",
        f"- {fitted['steps']} steps in {fitted['seconds']:.0f} s; the best at step {fitted['best_step']} was kept",
        "- the loss is that of the question's tokens and its end; the text and the answer are only read",
    ]
    measured = f"; measured on {_side(counts, 'test')}" if "test" in counts else ""
    data = [
        f"- files: {', '.join(Path(name).name for name in facts['asked']['data'])}",
        f"- the split is by article: learned from {_side(counts, 'train')}; the best step chosen by "
        f"{_side(counts, 'dev')}{measured}",
        f"- left out: {_left_out(counts['left_out'])}",
    ]
    perplexity = (
        f"{held_out['perplexity']:.2f} for each question token, over {held_out['tokens']:,} tokens of "
        f"{held_out['questions']:,} questions. The model without its adapter: {facts['base']['perplexity']:.2f}."
        + ("" if "test" in counts else " These questions also decided which step was kept.")
    )
    asked = [
        "The texts are invented; beam search of 10, 8 to 60 tokens, no trigram twice; the likeliest question."
    ]
    for text in dict.fromkeys(sample.text for sample in samples):
        lines = [f"- {one.answer}: *{one.question}*" for one in samples if one.text == text]
        asked += [f"> {text}", "\n".join(lines)]
    return page(
        "Question generator",
        about,
        {
            "Recipe": "\n".join(recipe),
            "Data": f"{statement or _STATEMENT}\n\n" + "\n".join(data),
            "Held-out perplexity": perplexity,
            "What it asks": "\n\n".join(asked),
        },
    )


def page(title: str, about: str, sections: Mapping[str, str]) -> str:
    """Return a README with a heading for every section."""
    parts = [f"# {title}", about, *(part for name, text in sections.items() for part in (f"## {name}", text))]
    return "\n\n".join(parts) + "\n"


def _side(counts: Mapping[str, Any], name: str) -> str:
    return f"{counts[name]['questions']:,} questions of {counts[name]['articles']} articles"


def _left_out(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count:,} {why}" for why, count in counts.items() if count) or "nothing"
