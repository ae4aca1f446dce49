"""The figures that the QAGS chapter prints, to be shown beside measured ones."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

# The ablations by what is varied, with the name of their table.
ABLATIONS: Mapping[str, str] = {
    "answering": "table_4_2",
    "asking": "table_4_3",
    "questions": "table_4_4",
    "domain": "domain",
    "similarity": "similarity",
}


class PublishedMetric(NamedTuple):
    """A row of table 4.1: a metric's Pearson correlation with human consistency by data set."""

    metric: str
    cnndm: float
    xsum: float


class PublishedAblation(NamedTuple):
    """QAGS with one thing changed; `quality` is what the table orders its rows by, where it is a number."""

    setting: str
    cnndm: float
    xsum: float
    quality: float | None = None


class PublishedRanking(NamedTuple):
    """A row of table 4.5: the share of triplets ranked right."""

    system: str
    accuracy: float


class GenerationSettings(NamedTuple):
    """How many answers and questions are made of a summary, and how the questions are searched for."""

    answers: int
    beams: int
    questions: int
    length_penalty: float
    blocked_ngram: int
    least_tokens: int
    most_tokens: int
    shortest_question: int


class CrowdSettings(NamedTuple):
    """What workers were paid for judging a summary, in dollars, and who could take part."""

    base_reward: float
    bonus: float
    least_seconds: int
    least_approved_tasks: int
    least_acceptance: float


def published_metrics() -> list[PublishedMetric]:
    """Table 4.1, line by line.

    >>> published_metrics()[-1]
    PublishedMetric(metric='QAGS', cnndm=0.5453, xsum=0.1749)
    """
    return [PublishedMetric(**row) for row in _data()["table_4_1"]["rows"]]


def published_ablation(varied: str) -> list[PublishedAblation]:
    """One of tables 4.2 (`answering`), 4.3 (`asking`), 4.4 (`questions`), or of the text's `domain`, `similarity`.

    >>> [row.cnndm for row in published_ablation("questions")]
    [0.4161, 0.4117, 0.5453, 0.5794]
    """
    if varied not in ABLATIONS:
        raise KeyError(f"No ablation of {varied!r} is published; there are {', '.join(ABLATIONS)}.")
    return [PublishedAblation(**row) for row in _data()[ABLATIONS[varied]]["rows"]]


def published_ranking() -> list[PublishedRanking]:
    """Table 4.5, line by line.

    >>> published_ranking()[-1].accuracy
    0.721
    """
    return [PublishedRanking(**row) for row in _data()["table_4_5"]["rows"]]


def published_agreement() -> dict[str, float]:
    """Krippendorff's alpha of the judgments by data set.

    >>> published_agreement()
    {'cnndm': 0.51, 'xsum': 0.34}
    """
    return {name: float(_data()["agreement"][name]) for name in ("cnndm", "xsum")}


def published_sizes() -> dict[str, int]:
    """How many summaries of each data set, triplets, and workers a sentence there are."""
    return {name: int(value) for name, value in _without_source("sizes").items()}


def generation_settings() -> GenerationSettings:
    """The paper's settings of how questions are made."""
    return GenerationSettings(**_without_source("generation"))


def training_settings() -> dict[str, dict[str, float]]:
    """The paper's settings of how the models that ask and answer were trained."""
    return {name: dict(values) for name, values in _without_source("training").items()}


def crowd_settings() -> CrowdSettings:
    """The paper's settings of how judgments were collected."""
    return CrowdSettings(**_without_source("crowd"))


def source_of(table: str) -> str:
    """Where in the paper a table of the file stands.

    >>> source_of("table_4_5")
    'Wang (2022), table 4.5'
    """
    return str(_data()[table]["source"])


def citation() -> str:
    """The paper, as one line."""
    return str(_data()["citation"])


def _without_source(table: str) -> dict[str, Any]:
    return {name: value for name, value in _data()[table].items() if name != "source"}


@cache
def _data() -> dict[str, Any]:
    text = files("ensue.benchmarks.qags").joinpath("published.toml").read_text("utf-8")
    return tomllib.loads(text)
