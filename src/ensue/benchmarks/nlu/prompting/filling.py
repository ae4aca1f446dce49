"""From an example and a template to a prompt and its possible continuations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from ensue.benchmarks.nlu.examples import Example, Prediction, Span, TaskSpec
from ensue.benchmarks.nlu.prompting.templates import Template, render

_GAP = "@placeholder"
# ReCoRD's passages end in summary lines, each after such a line.
_HIGHLIGHT = "\n@highlight\n"


class Option(NamedTuple):
    """One possible answer: what is predicted, how it continues the prompt, and what a speaker would say of it."""

    prediction: Prediction
    continuation: str
    spoken: str


class Filled(NamedTuple):
    """A prompt with its options, and the neutral prompt they are compared with where that is asked."""

    prompt: str
    options: tuple[Option, ...]
    neutral: str


def fill(template: Template, spec: TaskSpec, example: Example, dropped: int = 0) -> Filled:
    """The example in the template's words; `dropped` characters of the text that gives way are left out."""
    values = _values(template, spec, example)
    if dropped:
        values[template.cut] = values[template.cut][dropped:].lstrip()
    prompt = render(template.prompt, values)
    stem = prompt.rstrip(" ")
    # A space belongs to the word after it, as tokenizers have it.
    space = prompt[len(stem) :]
    options = tuple(
        option._replace(continuation=_after(space, option.continuation))
        for option in _options(template, spec, example, values)
    )
    return Filled(stem, options, render(template.neutral, values))


def droppable(template: Template, spec: TaskSpec, example: Example) -> str:
    """The text that gives way when a prompt is too long."""
    return _values(template, spec, example)[template.cut]


def right_option(filled: Filled, spec: TaskSpec, example: Example) -> Option | None:
    """The option that an example's gold answer names, if one does; of scores, the nearest."""
    gold = example.gold
    if gold is None:
        return None
    if spec.form == "score":
        return min(filled.options, key=lambda option: abs(float(option.prediction) - float(str(gold))))
    right = gold if isinstance(gold, tuple) else (gold,)
    return next((option for option in filled.options if option.prediction in right), None)


def _after(space: str, continuation: str) -> str:
    return continuation if continuation[:1].isspace() else space + continuation


def _values(template: Template, spec: TaskSpec, example: Example) -> dict[str, str]:
    """The example's texts by placeholder."""
    texts = [text.strip() for text in example.texts]
    match spec.form:
        case "single":
            return {"sentence": texts[0]}
        case "pair" | "score":
            return {"first": texts[0], "second": texts[1]}
        case "choice":
            return {
                "premise": texts[0],
                "premise_stem": _without_stop(texts[0]),
                "question": texts[1],
                "connective": template.connectives[texts[1]],
                "choices": "\n".join(f"{n}. {c.strip()}" for n, c in enumerate(example.choices, start=1)),
            }
        case "answers":
            return {"passage": texts[0], "question": texts[1], "answer": texts[2]}
        case "entity":
            return {
                "passage": texts[0].replace(_HIGHLIGHT, "\n- "),
                "query": texts[1].replace(_GAP, "____"),
                "before": texts[1].partition(_GAP)[0],
                "entities": ", ".join(example.choices),
            }
        case "word":
            words = [_mention(example, span) for span in example.spans]
            return {"first": texts[0], "second": texts[1], "first_word": words[0], "second_word": words[1]}
        case "coreference":
            noun, pronoun = example.spans
            return {
                "text": texts[0],
                "marked": _marked(example.texts[0], pronoun).strip(),
                "noun": _mention(example, noun),
                "pronoun": _mention(example, pronoun),
            }


def _options(template: Template, spec: TaskSpec, example: Example, values: Mapping[str, str]) -> list[Option]:
    if template.labels:
        scored = spec.form == "score"
        return [
            Option(float(label) if scored else label, text, text.strip())
            for label, text in template.labels.items()
        ]
    options = []
    for number, written in enumerate(example.choices):
        choice = written.strip()
        if spec.form == "choice":
            own = {"choice": choice, "choice_lower": choice[:1].lower() + choice[1:]}
            prediction = spec.labels[number]
        else:
            query = example.texts[1].strip()
            own = {
                "entity": choice,
                "after": query.partition(_GAP)[2].replace(_GAP, choice),
                "filled": query.replace(_GAP, choice),
            }
            prediction = written
        options.append(Option(prediction, render(template.choice, {**values, **own}), choice))
    return options


def _mention(example: Example, span: Span) -> str:
    return example.texts[span.text][span.start : span.end]


def _marked(text: str, span: Span) -> str:
    return f"{text[: span.start]}*{text[span.start : span.end]}*{text[span.end :]}"


def _without_stop(text: str) -> str:
    return text[:-1] if text.endswith((".", "!", "?")) else text
