"""The diagnostic sets by phenomenon: R3 (AX-b: Matthews correlation) and accuracy over all, by category, by tag."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from ensue.benchmarks.drawn import Drawn
from ensue.benchmarks.nlu.examples import Example, TaskData
from ensue.benchmarks.nlu.judging import check_gold, of_classes, predictions_of
from ensue.benchmarks.nlu.systems import Answered
from ensue.errors import EnsueError
from ensue.report.results import MetricRow

# The phenomena of table A.1, in its order and spelling.
TAXONOMY: Mapping[str, tuple[str, ...]] = {
    "Lexical Semantics": (
        "Lexical Entailment",
        "Morphological Negation",
        "Factivity",
        "Symmetry/Collectivity",
        "Redundancy",
        "Named Entities",
        "Quantifiers",
    ),
    "Predicate-Argument Structure": (
        "Core Arguments",
        "Prepositional Phrases",
        "Ellipsis/Implicits",
        "Anaphora/Coreference",
        "Active/Passive",
        "Nominalization",
        "Genitives/Partitives",
        "Datives",
        "Relative Clauses",
        "Coordination Scope",
        "Intersectivity",
        "Restrictivity",
    ),
    "Logic": (
        "Negation",
        "Double Negation",
        "Intervals/Numbers",
        "Conjunction",
        "Disjunction",
        "Conditionals",
        "Universal",
        "Existential",
        "Temporal",
        "Upward Monotone",
        "Downward Monotone",
        "Non-Monotone",
    ),
    "Knowledge": ("Common Sense", "World Knowledge"),
}


def _letters(name: str) -> str:
    return "".join(letter for letter in name.casefold() if letter.isalpha())


# The files spell the same phenomena in several ways ("logic", "Core args", "Non-monotone"); letters decide.
_CATEGORIES = {_letters(name): name for name in TAXONOMY}
_TAGS = {(category, _letters(tag)): tag for category, tags in TAXONOMY.items() for tag in tags}
_TAGS["Predicate-Argument Structure", "coreargs"] = "Core Arguments"


class PhenomenonPart(NamedTuple):
    """The examples of one phenomenon: of all, of a category, or of a tag within one."""

    settings: Mapping[str, str]
    places: list[int]


def phenomena_rows(data: TaskData, answered: Answered, split: str) -> list[MetricRow]:
    """Return the rows that a labelled split with tags adds to its metrics over all examples; none without tags.

    Accuracy over all, then both figures by category, then by tag. An example with several tags counts in each of
    them. Phenomena without examples have no row. A correlation within a part whose gold or given labels are all one
    class does not exist and counts as 0, so small parts want their number of examples read along.
    """
    examples = data.splits[split]
    if not data.labelled(split) or not any(example.tags for example in examples):
        return []
    check_gold(data.spec, examples, split)
    given = [str(one) for one in predictions_of(data, answered, split)]
    place = {"split": split, **answered.settings}
    metrics = ("r3" if len(data.spec.labels) == 3 else "mcc", "accuracy")

    def of_part(places: list[int]) -> dict[str, Drawn]:
        return of_classes(data.spec, [examples[i] for i in places], [given[i] for i in places], metrics)

    return [
        figure.row(data.spec.name, metric, {**place, **part.settings})
        for part in parts_of(examples)
        for metric, figure in of_part(part.places).items()
        if part.settings or metric not in data.spec.metrics
    ]


def parts_of(examples: Sequence[Example]) -> Iterator[PhenomenonPart]:
    """Return all examples, those of every category and those of every tag that has any, in the order of table A.1."""
    tags = [known_tags(example) for example in examples]
    yield PhenomenonPart({}, list(range(len(examples))))
    for category in TAXONOMY:
        if places := [place for place, one in enumerate(tags) if category in one]:
            yield PhenomenonPart({"category": category}, places)
    for category, fine in TAXONOMY.items():
        for tag in fine:
            if places := [place for place, one in enumerate(tags) if tag in one.get(category, ())]:
                yield PhenomenonPart({"category": category, "tag": tag}, places)


def known_tags(example: Example) -> dict[str, tuple[str, ...]]:
    """Return the example's tags by category, spelled as in table A.1; one that is not there is refused."""
    found: dict[str, tuple[str, ...]] = {}
    for given, tags in example.tags.items():
        category = _CATEGORIES.get(_letters(given))
        if category is None:
            raise EnsueError(f"{_place(example)}: the category {given!r} is none of {', '.join(TAXONOMY)}.")
        for tag in tags:
            if (category, _letters(tag)) not in _TAGS:
                known = ", ".join(TAXONOMY[category])
                raise EnsueError(f"{_place(example)}: the tag {tag!r} of {category} is none of {known}.")
        if tags:
            found[category] = tuple(dict.fromkeys(_TAGS[category, _letters(tag)] for tag in tags))
    return found


def _place(example: Example) -> str:
    return example.where or f"Example {example.id!r}"
