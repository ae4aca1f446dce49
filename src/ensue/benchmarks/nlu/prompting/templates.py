"""Prompt templates as data: read from TOML, checked against the task they are for, chosen by name or file."""

from __future__ import annotations

import string
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from importlib import resources
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

from ensue.benchmarks.nlu.examples import Example, Form, Prediction, TaskSpec, TextSpan
from ensue.errors import EnsueError
from ensue.jsonl import read_toml

Combine = Literal["sum", "per_token", "per_character"]

# What a prompt may say of an example, by the task's form; the first is what gives way when a prompt is too long.
PLACEHOLDERS: Mapping[Form, tuple[str, ...]] = {
    "single": ("sentence",),
    "pair": ("first", "second"),
    "score": ("first", "second"),
    "choice": ("premise", "premise_stem", "question", "connective", "choices"),
    "answers": ("passage", "question", "answer"),
    "entity": ("passage", "query", "before", "entities"),
    "word": ("first", "second", "first_word", "second_word"),
    "coreference": ("text", "marked", "noun", "pronoun"),
}
# What one choice's continuation may say besides, where a task has choices instead of labels.
CHOICE_PLACEHOLDERS: Mapping[str, tuple[str, ...]] = {
    "choice": ("choice", "choice_lower"),
    "entity": ("entity", "after", "filled"),
}
CONNECTIVES = {"cause": "because", "effect": "so"}


@dataclass(frozen=True)
class Template:
    """One way of putting a task's examples to a model.

    `labels` gives each label its continuation; `choice` is the continuation of one choice or entity where the task
    has those. `combine` says how log-likelihoods are compared; `unconditional` subtracts what the continuation is
    worth after the `neutral` prompt. `joiner` stands between shots; `cut` is the text that is shortened from the
    left when a prompt does not fit; `connectives` are COPA's words for its two questions.
    """

    task: str
    name: str
    prompt: str
    labels: Mapping[str, str] = field(default_factory=dict)
    choice: str = ""
    combine: Combine = "sum"
    unconditional: bool = False
    neutral: str = "Answer:"
    joiner: str = "\n\n"
    cut: str = ""
    connectives: Mapping[str, str] = field(default_factory=lambda: dict(CONNECTIVES))


_KEYS = {key.name for key in fields(Template)}


def placeholders(text: str) -> list[str]:
    """Return the names in braces, in order; ValueError where a brace stands alone or holds more than a name."""
    found = []
    for _, name, form, conversion in string.Formatter().parse(text):
        if name is not None:
            if not name.isidentifier() or form or conversion:
                raise ValueError(f"{{{name}}} is no plain name")
            found.append(name)
    return found


def render(text: str, values: Mapping[str, str]) -> str:
    """Return the text with its placeholders filled; what is filled in is never read as a template."""
    return "".join(
        literal + (values[name] if name is not None else "")
        for literal, name, _, _ in string.Formatter().parse(text)
    )


def choose(spec: TaskSpec, wanted: Sequence[str]) -> list[Template]:
    """Return the task's templates that were asked for (`all`, names, files); none where it has none of them."""
    chosen: dict[str, Template] = {}
    for piece in wanted:
        if piece.endswith(".toml"):
            found = read_templates(Path(piece), [spec])
        else:
            found = [t for t in built_in(spec) if piece in ("all", t.name)]
        for template in found:
            if chosen.setdefault(template.name, template) != template:
                raise EnsueError(
                    f"{piece} has a template {template.name!r} for {spec.name}, and so has another file that was "
                    f"asked for; rename one."
                )
    return list(chosen.values())


def built_in(spec: TaskSpec) -> list[Template]:
    """Return the templates that come with ensue, or else those of the task whose classifier answers."""
    folder = resources.files("ensue.benchmarks.nlu.prompting") / "templates"
    for task in (spec.name, spec.answered_by):
        with resources.as_file(folder / f"{task}.toml") as path:
            if task and path.is_file():
                return read_templates(path, [spec])
    return []


def read_templates(path: Path, specs: Sequence[TaskSpec]) -> list[Template]:
    """Return the templates of a file that are for these tasks, each checked.

    A template for a task also serves those the task's classifier answers, unless the file has some for them.
    """
    table = read_toml(path)
    written = table.get("template")
    if not isinstance(written, list) or not written or not all(isinstance(one, dict) for one in written):
        raise EnsueError(f"{path} has no [[template]]; give at least one, with name, prompt and labels.")
    if extra := set(table) - {"task", "template"}:
        raise EnsueError(f"{path} has {sorted(extra)[0]!r} outside a [[template]]; put it below one.")
    named = [_named(one, number, table.get("task"), path) for number, one in enumerate(written, start=1)]
    own = {task for task, _, _ in named}
    templates = []
    for spec in specs:
        source = spec.name if spec.name in own else spec.answered_by
        found = [_template(one, spec, where) for task, one, where in named if task == source]
        names = [template.name for template in found]
        if twice := [name for name in names if names.count(name) > 1]:
            raise EnsueError(f"{path} has two templates {twice[0]!r} for {source}; name each differently.")
        templates += found
    return templates


def _named(one: dict[str, Any], number: int, task: Any, path: Path) -> tuple[str, dict[str, Any], str]:
    """Return a template's task, its table, and what to call it in an error."""
    name = one.get("name")
    if not isinstance(name, str) or not name or "," in name or name == "all":
        raise EnsueError(
            f"Template {number} of {path} needs a name of its own: some text without commas, not 'all'."
        )
    where = f"Template {name!r} of {path}"
    of = one.get("task", task)
    if not isinstance(of, str) or not of:
        raise EnsueError(f'{where} does not say which task it is for; add task = "…".')
    if unknown := set(one) - _KEYS:
        raise EnsueError(
            f"{where} has an unknown key {sorted(unknown)[0]!r}; it may have {', '.join(sorted(_KEYS))}."
        )
    return of, one, where


def _template(one: dict[str, Any], spec: TaskSpec, where: str) -> Template:
    """Return a checked template for a task."""
    for key in ("prompt", "choice", "combine", "neutral", "joiner", "cut"):
        if not isinstance(one.get(key, ""), str):
            raise EnsueError(f"{where}: {key} is text in quotes.")
    combine = one.get("combine", "sum")
    if combine not in get_args(Combine):
        raise EnsueError(f"{where}: combine is one of {', '.join(get_args(Combine))}, not {combine!r}.")
    if not isinstance(one.get("unconditional", False), bool):
        raise EnsueError(f"{where}: unconditional is true or false.")
    known = PLACEHOLDERS[spec.form]
    prompt, neutral = one.get("prompt", ""), one.get("neutral", "Answer:")
    used = _checked(prompt, known, "prompt", where)
    _checked(neutral, known, "neutral", where)
    if not prompt.strip() or not neutral.strip():
        raise EnsueError(f"{where}: prompt and neutral may not be empty.")
    if not used:
        raise EnsueError(f"{where}: the prompt says nothing of the example; use {_braced(known)}.")
    labels, choice = _answers(one, spec, where)
    cut = one.get("cut", known[0] if known[0] in used else used[0])
    if cut not in used:
        raise EnsueError(f"{where}: cut names {cut!r}, which is not in the prompt ({_braced(used)}).")
    connectives = one.get("connectives", {})
    if (
        not isinstance(connectives, dict)
        or not all(isinstance(words, str) for words in connectives.values())
        or set(connectives) - {*CONNECTIVES}
    ):
        raise EnsueError(f"{where}: connectives is a table with words for cause and effect.")
    checked = {"task": spec.name, "labels": labels, "choice": choice, "cut": cut}
    return Template(**{**one, **checked, "connectives": {**CONNECTIVES, **connectives}})


def _checked(text: str, known: Sequence[str], key: str, where: str) -> list[str]:
    """Return the placeholders of a text, all known."""
    try:
        used = placeholders(text)
    except ValueError as error:
        raise EnsueError(
            f"{where}: the braces of its {key} do not close or name something odd ({error})."
        ) from None
    if unknown := [name for name in used if name not in known]:
        raise EnsueError(f"{where}: its {key} has {{{unknown[0]}}}, but this task has {_braced(known)}.")
    return used


def _answers(one: dict[str, Any], spec: TaskSpec, where: str) -> tuple[dict[str, str], str]:
    """Return the continuations of the labels, spelled as the task spells labels, or of one choice."""
    labels, choice = one.get("labels"), one.get("choice", "")
    extra = CHOICE_PLACEHOLDERS.get(spec.form)
    if extra is not None and choice and labels is None:
        used = _checked(choice, (*PLACEHOLDERS[spec.form], *extra), "choice", where)
        if not set(used) & set(extra):
            raise EnsueError(f"{where}: its choice is the same for all of them; use {_braced(extra)}.")
        return {}, choice
    if choice:
        raise EnsueError(
            f"{where}: choice is for tasks with choices, and never beside labels; give one of them."
        )
    if not isinstance(labels, dict) or not all(isinstance(v, str) and v.strip() for v in labels.values()):
        needed = "labels or a choice" if extra is not None else "labels"
        raise EnsueError(f"{where} needs {needed}: a [template.labels] table with some text for each.")
    said = [text.strip().casefold() for text in labels.values()]
    if len(set(said)) < len(said):
        raise EnsueError(f"{where}: two labels have the same words, so they could never be told apart.")
    if spec.form == "score":
        for key in labels:
            try:
                float(key)
            except ValueError:
                raise EnsueError(f"{where}: a label of a scored task is a number, not {key!r}.") from None
        return labels, ""
    if spec.form == "entity":
        raise EnsueError(f"{where}: {spec.name} has no labels; give a choice instead.")
    spelled = {label.casefold(): label for label in spec.labels}
    if unknown := [key for key in labels if key.casefold() not in spelled]:
        raise EnsueError(
            f"{where}: {spec.name} has no label {unknown[0]!r}; it has {', '.join(spec.labels)}."
        )
    given = {spelled[key.casefold()]: text for key, text in labels.items()}
    if missing := [label for label in spec.labels if label not in given]:
        raise EnsueError(f"{where}: the label {missing[0]!r} is missing.")
    return {label: given[label] for label in spec.labels}, ""


def _braced(names: Sequence[str]) -> str:
    return ", ".join(f"{{{name}}}" for name in names)


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
    """Return the example in the template's words; `dropped` characters of the text that gives way are left out."""
    values = _values(template, spec, example)
    if dropped:
        values[template.cut] = values[template.cut][dropped:].lstrip()
    prompt = render(template.prompt, values)
    stem = prompt.rstrip(" ")
    # A space belongs to the word after it, as tokenizers have it.
    space = prompt[len(stem) :]
    options = tuple(
        one if one.continuation[:1].isspace() else one._replace(continuation=space + one.continuation)
        for one in _options(template, spec, example, values)
    )
    return Filled(stem, options, render(template.neutral, values))


def droppable(template: Template, spec: TaskSpec, example: Example) -> str:
    """Return the text that gives way when a prompt is too long."""
    return _values(template, spec, example)[template.cut]


def right_option(filled: Filled, spec: TaskSpec, example: Example) -> Option | None:
    """Return the option that an example's gold answer names, if one does; of scores, the nearest."""
    gold = example.gold
    if gold is None:
        return None
    if spec.form == "score":
        return min(filled.options, key=lambda option: abs(float(option.prediction) - float(str(gold))))
    right = gold if isinstance(gold, tuple) else (gold,)
    return next((option for option in filled.options if option.prediction in right), None)


def _values(template: Template, spec: TaskSpec, example: Example) -> dict[str, str]:
    """Return the example's texts by placeholder."""
    texts = [text.strip() for text in example.texts]
    match spec.form:
        case "single":
            return {"sentence": texts[0]}
        case "pair" | "score":
            return {"first": texts[0], "second": texts[1]}
        case "choice":
            return {
                "premise": texts[0],
                "premise_stem": texts[0][:-1] if texts[0].endswith((".", "!", "?")) else texts[0],
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
            (text,), (noun, pronoun) = example.texts, example.spans
            return {
                "text": texts[0],
                "marked": f"{text[: pronoun.start]}*{_mention(example, pronoun)}*{text[pronoun.end :]}".strip(),
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


def _mention(example: Example, span: TextSpan) -> str:
    return example.texts[span.text][span.start : span.end]
