"""SuperGLUE's tasks from the folder of the official download, or from a hub data set."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import takewhile
from pathlib import Path
from typing import NamedTuple

from ensue.benchmarks.nlu.examples import (
    COARSE,
    DEV,
    TEST,
    TRAIN,
    Example,
    TaskData,
    TaskSpec,
    TextSpan,
    either_way,
    split_tags,
)
from ensue.benchmarks.nlu.files import Found, Row, find, jsonl_rows, task_folder
from ensue.benchmarks.nlu.gathering import Gathering, named_label
from ensue.errors import EnsueError

_FILES: Mapping[str, tuple[str, ...]] = {
    TRAIN: ("train.jsonl",),
    DEV: ("val.jsonl", "dev.jsonl"),
    TEST: ("test.jsonl",),
}
_TARGET = ("span1_text", "span1_index", "span2_text", "span2_index")
# FewGLUE's small sets: both were taken out of the published training set.
_FEW = re.compile(r"fewglue_(?P<split>train|dev)(?P<rows>\d+)\.jsonl")


def read_task(
    folder: Path, spec: TaskSpec, limit: int | None = None, splits: Collection[str] | None = None
) -> TaskData | None:
    """Return the splits of a task that are there, or those of them that are wanted; None where there is none.

    `folder` is the suite's folder or the task's own. A file marked as partial, or FewGLUE's, stands in for a
    missing one and is noted; so is every number of rows that differs from the published one.
    """
    home = task_folder(folder, spec.name)
    gathering = Gathering(spec, limit)
    if home is None:
        return None
    for split, names in _files(spec).items():
        if splits is not None and split not in splits:
            continue
        found = find(home, *names) or _few(home, split)
        if found is not None:
            gathering.add_files(split, [found], examples(spec, jsonl_rows(found), gathering.notes))
    return gathering.finish()


def _files(spec: TaskSpec) -> Mapping[str, tuple[str, ...]]:
    """Return the names of each split's file; a diagnostic set is one file of its own name."""
    return {TEST: (f"{spec.name}.jsonl", "test.jsonl")} if spec.answered_by else _FILES


def _few(home: Path, split: str) -> Found | None:
    matches = [match for path in sorted(home.iterdir()) if (match := _FEW.fullmatch(path.name))]
    found = [match for match in matches if match["split"] == split]
    if len(found) > 1:
        raise EnsueError(f"{home} has {found[0].string} and {found[1].string}; leave one of them.")
    if not found:
        return None
    instead = "" if split == TRAIN else "of the training set"
    return Found(home / found[0].string, int(found[0]["rows"]), instead)


def hub_examples(spec: TaskSpec, rows: Iterable[Row], notes: Counter[str]) -> Iterator[Example]:
    """Return examples of rows as a hub data set such as `aps/super_glue` has them."""
    if spec.name == "ReCoRD":
        return map(_query, rows)
    named = (named_label(row, spec) for row in rows)
    if spec.name == "MultiRC":
        return (_answer(spec, row, notes) for row in named)
    return examples(spec, map(_with_target, named) if spec.name == "WSC" else named, notes)


def _with_target(row: Row) -> Row:
    """Put WSC's mentions within `target`, where the official files have them."""
    return row._replace(fields={**row.fields, "target": {name: row.value(name) for name in _TARGET}})


def _answer(spec: TaskSpec, row: Row, notes: Counter[str]) -> Example:
    """Read MultiRC: an answer a row."""
    number = row.inner("idx")
    cluster = str(number.whole("paragraph"))
    group = f"{cluster}-{number.whole('question')}"
    texts = (row.text("paragraph"), row.text("question"), answer_text(row, "answer", notes))
    name = f"{group}-{number.whole('answer')}"
    return Example(name, texts, _gold(spec, row), group=group, cluster=cluster, where=row.where)


def _query(row: Row) -> Example:
    """Read ReCoRD: a query a row, with the names of its entities; a query of the test set has no answers."""
    number = row.inner("idx")
    texts = (row.text("passage"), row.text("query"))
    right = _texts(row, "answers") or None
    choices = tuple(dict.fromkeys(_texts(row, "entities")))
    return entity_example(
        row, str(number.whole("query")), str(number.whole("passage")), texts, choices, right
    )


def _texts(row: Row, name: str) -> list[str]:
    value = row.value(name)
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        row.refuse(f"{name!r} is not a list of texts")
    return value


Rows = Iterable[Row]
Reader = Callable[[TaskSpec, Rows, Counter[str]], Iterator[Example]]

PLACEHOLDER = "@placeholder"
# AX-b's tags under the names that GLUE's diagnostic set has for the same categories.
_COARSE = {coarse.lower().replace(" ", "-"): coarse for coarse in COARSE}
_TEXTS = {"BoolQ": ("passage", "question"), "AX-b": ("sentence1", "sentence2")}
_NEUTRAL = {"he": "they", "she": "they", "his": "their", "her": "their", "him": "their", "hers": "their"}
_WORD = re.compile(r"\w+")
# WSC's indices are off by a word or two at most; a mention further away is another one.
NEAR = 3
_LEAST_SHARED = 3


class SpanPlace(NamedTuple):
    """Characters `start` to `end`; `remark` says what had to be done where the data did not simply say so."""

    start: int
    end: int
    remark: str = ""


def examples(spec: TaskSpec, rows: Rows, notes: Counter[str]) -> Iterator[Example]:
    """Return the examples of a task's rows; a passage may hold many."""
    return _READERS.get(spec.name, _pairs)(spec, rows, notes)


def _pairs(spec: TaskSpec, rows: Rows, notes: Counter[str]) -> Iterator[Example]:
    first, second = _TEXTS.get(spec.name, ("premise", "hypothesis"))
    for row in rows:
        texts = (row.text(first), row.text(second))
        cluster = either_way(texts) if spec.name == "AX-b" else ""
        yield Example(_id(row), texts, _gold(spec, row), tags=_tags(row), cluster=cluster, where=row.where)


def _gendered(spec: TaskSpec, rows: Rows, notes: Counter[str]) -> Iterator[Example]:
    """Read AX-g: texts that are the same but for the gender of a pronoun are judged together.

    The files' `pair_id` is different in every row, so partners are found by their words.
    """
    read = list(_pairs(spec, rows, notes))
    partners: dict[tuple[str, str], list[Example]] = defaultdict(list)
    for example in read:
        neutral = _WORD.sub(lambda word: _NEUTRAL.get(word[0].lower(), word[0]), example.texts[0])
        partners[neutral, example.texts[1]].append(example)
    for found in partners.values():
        if len(found) != 2 or found[0].gold != found[1].gold:
            one = Row(found[0].where, {})
            one.refuse("there is not exactly one other row, of the same label, that differs in gender only")
        for example in found:
            yield replace(example, group=f"pair-{found[0].id}")


def _choices(spec: TaskSpec, rows: Rows, notes: Counter[str]) -> Iterator[Example]:
    for row in rows:
        question = row.text("question")
        if question not in ("cause", "effect"):
            row.refuse(f"the question {question!r} is neither cause nor effect")
        choices = (row.text("choice1"), row.text("choice2"))
        yield Example(
            _id(row), (row.text("premise"), question), _gold(spec, row), choices=choices, where=row.where
        )


def _answers(spec: TaskSpec, rows: Rows, notes: Counter[str]) -> Iterator[Example]:
    """Read MultiRC: a passage a row, with its questions and their answers within."""
    for row in rows:
        passage = row.inner("passage")
        text = passage.text("text")
        for question in passage.rows("questions"):
            group = f"{_id(row)}-{_id(question)}"
            options = question.rows("answers")
            if not options:
                question.refuse("there are no answers")
            for answer in options:
                name = f"{group}-{_id(answer)}"
                texts = (text, question.text("question"), answer_text(answer, "text", notes))
                yield Example(
                    name, texts, _gold(spec, answer), group=group, cluster=_id(row), where=answer.where
                )


def _entities(spec: TaskSpec, rows: Rows, notes: Counter[str]) -> Iterator[Example]:
    """Read ReCoRD: an article a row, with the characters of its entities and its queries within."""
    for row in rows:
        passage = row.inner("passage")
        text = passage.text("text")
        choices = tuple(dict.fromkeys(_entity(text, entity) for entity in passage.rows("entities")))
        for query in row.rows("qas"):
            known = query.fields.get("answers") is not None
            right = [answer.text("text") for answer in query.rows("answers")] if known else None
            yield entity_example(query, _id(query), _id(row), (text, query.text("query")), choices, right)


def entity_example(
    row: Row,
    name: str,
    passage: str,
    texts: tuple[str, str],
    choices: tuple[str, ...],
    right: list[str] | None,
) -> Example:
    """Return a query with its entities and, where they are known, all right surface forms."""
    if PLACEHOLDER not in texts[1]:
        row.refuse(f"the query has no {PLACEHOLDER}")
    if not choices:
        row.refuse("the passage has no entities")
    gold = None if right is None else tuple(dict.fromkeys(right))
    if gold is not None and not gold:
        row.refuse("the list of answers is empty")
    if gold is not None and (strange := [answer for answer in gold if answer not in choices]):
        row.refuse(f"the answer {strange[0]!r} is none of the passage's entities")
    return Example(name, texts, gold, choices=choices, cluster=passage, where=row.where)


def answer_text(row: Row, name: str, notes: Counter[str]) -> str:
    """Return the text of an answer; MultiRC has four without words; they stay, for submissions answer every id."""
    text = row.any_text(name)
    if not text.strip():
        notes["answers that are empty"] += 1
    return text


def _words(spec: TaskSpec, rows: Rows, notes: Counter[str]) -> Iterator[Example]:
    for row in rows:
        texts = (row.text("sentence1"), row.text("sentence2"))
        spans = tuple(_noted(number, _word(row, text, number), notes) for number, text in enumerate(texts))
        yield Example(_id(row), texts, _gold(spec, row), spans=spans, where=row.where)


def _word(row: Row, text: str, number: int) -> SpanPlace:
    """Return the word's place: given, or in the first version of the data to be found."""
    start, end = f"start{number + 1}", f"end{number + 1}"
    if start in row.fields:
        return given_word(row, text, row.whole(start), row.whole(end))
    return find_word(text, row.text("word"))


def _mentions(spec: TaskSpec, rows: Rows, notes: Counter[str]) -> Iterator[Example]:
    for row in rows:
        text, target = row.text("text"), row.inner("target")
        spans = tuple(
            _noted(0, mention(row, text, target.text(f"{name}_text"), target.whole(f"{name}_index")), notes)
            for name in ("span1", "span2")
        )
        yield Example(_id(row), (text,), _gold(spec, row), spans=spans, where=row.where)


def _noted(text: int, place: SpanPlace, notes: Counter[str]) -> TextSpan:
    if place.remark:
        notes[f"spans {place.remark}"] += 1
    return TextSpan(text, place.start, place.end)


def _id(row: Row) -> str:
    return str(row.whole("idx"))


def _gold(spec: TaskSpec, row: Row) -> str | None:
    return row.label("label", spec.labels) if "label" in row.fields else None


def _tags(row: Row) -> Mapping[str, tuple[str, ...]]:
    """Return the fine tags of each coarse category that the row has any of."""
    return {coarse: split_tags(row.text(name)) for name, coarse in _COARSE.items() if name in row.fields}


def _entity(text: str, entity: Row) -> str:
    """Return an entity's surface form; its last character belongs to it, so that the end is not one past it."""
    start, end = entity.whole("start"), entity.whole("end")
    if not start <= end < len(text):
        entity.refuse(f"the characters {start} to {end} are not within the passage of {len(text)}")
    return text[start : end + 1]


def mention(row: Row, text: str, phrase: str, index: int) -> SpanPlace:
    """Return the characters of a phrase whose first word is number `index` of the text, divided by spaces.

    Capitals, line ends and punctuation after the phrase may differ. Where the phrase is not at its index, it is
    taken from where it stands nearest, within `NEAR` words, or from its only place; where the text has it nowhere
    (a mention put together of several, such as names joined by "and"), the words at the index stand for it. Both
    are remarked upon.
    """
    words = [match.span() for match in re.finditer(r"\S+", text)]
    if index >= len(words):
        row.refuse(f"the index {index} of {phrase!r} is beyond the {len(words)} words of the text")
    pattern = _pattern(phrase)
    places = {
        number: match.span(1)
        for number, (start, _) in enumerate(words)
        if (match := pattern.match(text, start)) is not None
    }
    if index in places:
        return SpanPlace(*places[index])
    near = sorted((abs(number - index), number) for number in places)
    if len(near) > 1 and (near[0][0] > NEAR or near[0][0] == near[1][0]):
        row.refuse(f"{phrase!r} is not at its index {index}, but at {', '.join(map(str, places))}")
    if near:
        return SpanPlace(*places[near[0][1]], "moved to where the text has their words")
    last = min(index + len(phrase.split()), len(words)) - 1
    return SpanPlace(
        words[index][0], words[last][1], "whose words the text has not in a row, taken from their index"
    )


def given_word(row: Row, text: str, start: int, end: int) -> SpanPlace:
    """Return a word whose characters the data gives."""
    if not start < end <= len(text) or not text[start:end].strip():
        row.refuse(f"the word's characters {start} to {end} are not within the text of {len(text)}")
    return SpanPlace(start, end)


def find_word(text: str, word: str) -> SpanPlace:
    """Return the characters of a word, of which the data gives only the dictionary form.

    First the word itself; then the one word that shares the longest beginning with it, of at least three letters;
    where there is none (went for go) the whole text stands for it. The last two are remarked upon.
    """
    itself = re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text, re.IGNORECASE)
    if itself is not None:
        return SpanPlace(*itself.span())
    shared = sorted(
        (-_shared(match.group().lower(), word.lower()), *match.span()) for match in re.finditer(r"\w+", text)
    )
    if shared and -shared[0][0] >= min(_LEAST_SHARED, len(word)):
        return SpanPlace(shared[0][1], shared[0][2], "found by their beginning")
    return SpanPlace(0, len(text), "not found, for which the whole sentence stands")


def _shared(one: str, other: str) -> int:
    """Return the number of letters that two words begin with alike."""
    return len(list(takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False))))


def _pattern(phrase: str) -> re.Pattern[str]:
    """Return the phrase at the beginning of a word, after any punctuation, not going on into another word."""
    words = phrase.split()
    words[-1] = words[-1].rstrip(".,;") or words[-1]
    spaced = r"\s+".join(map(re.escape, words))
    return re.compile(rf"[^\w\s]*?({spaced})(?!\w)", re.IGNORECASE)


_READERS: Mapping[str, Reader] = {
    "COPA": _choices,
    "MultiRC": _answers,
    "ReCoRD": _entities,
    "WiC": _words,
    "WSC": _mentions,
    "AX-g": _gendered,
}
