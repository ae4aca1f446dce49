"""The model card of an answerer, README.md in its folder: what it is, the recipe, the data, the held-out figures."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

README = "README.md"
_FIGURES = {
    "exact": "exact match",
    "f1": "F1",
    "has_answer_exact": "exact match, answerable questions",
    "has_answer_f1": "F1, answerable questions",
    "no_answer": "right to say nothing, unanswerable questions",
}


def write_readme(folder: Path, facts: Mapping[str, Any]) -> None:
    """Write the card from what the record of a training holds."""
    text = "\n\n".join(
        [
            "# Extractive question answering",
            _about(facts),
            "## Held-out figures",
            _table(facts["held_out"]),
            _chosen(facts),
            "## Recipe",
            _recipe(facts),
            "## Data",
            _data(facts),
            "## Limits",
            "It answers with words of the text, from one text at a time, and gives no reasons. On texts unlike those "
            "it was trained on, expect less than the figures above. Its score says how sure it is against there "
            "being no answer, not how likely it is right.",
        ]
    )
    part = folder / f".{README}.part"
    part.write_text(text + "\n", "utf-8")
    part.replace(folder / README)


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
