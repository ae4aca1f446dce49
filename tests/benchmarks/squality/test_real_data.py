"""The published files: all versions are read, and the paper's tables come out of them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ensue.benchmarks.crowd.writing import LEAST_WORDS, MOST_WORDS
from ensue.benchmarks.published import facts_of, published
from ensue.benchmarks.squality.data import SPLITS, Story, check_references, find_file, read_stories
from ensue.benchmarks.squality.human_eval import (
    Rated,
    correlation_rows,
    find_human_eval,
    rating_rows,
    read_human_eval,
    references_of,
)
from ensue.benchmarks.squality.report.table import PACKAGE
from ensue.benchmarks.squality.statistics import lengths, plain_words, sharing
from ensue.benchmarks.summaries.scoring import rouge_measure

pytestmark = pytest.mark.data


@pytest.fixture(scope="module")
def folder() -> Path:
    root = os.environ.get("ENSUE_DATA")
    if not root or not (Path(root) / "squality").is_dir():
        pytest.skip("set ENSUE_DATA to the folder that holds squality")
    return Path(root) / "squality"


@pytest.fixture(scope="module")
def first(folder: Path) -> dict[str, list[Story]]:
    return {split: read_stories(find_file(folder, "v1", split)[0]) for split in SPLITS}


@pytest.fixture(scope="module")
def rated(folder: Path) -> list[Rated]:
    return read_human_eval(find_human_eval(folder))


@pytest.mark.parametrize(
    ("version", "sizes"), [("v1", (39, 25, 36)), ("v1-3/txt", (50, 25, 52)), ("v1-3/html", (50, 25, 52))]
)
def test_every_version_is_read_whole(folder: Path, version: str, sizes: tuple[int, ...]) -> None:
    for split, size in zip(SPLITS, sizes, strict=True):
        path, label = find_file(folder, version, split)
        stories = read_stories(path)
        check_references(stories, path)
        assert (label, len(stories)) == (version, size)
        assert {len(story.questions) for story in stories} == {5}
        assert all(len({one.writer for one in q.responses}) == 4 for s in stories for q in s.questions)
        assert not any("<p" in story.text or "<!DOCTYPE" in story.text for story in stories)


def test_both_forms_of_a_version_have_the_same_words(folder: Path) -> None:
    forms = [read_stories(find_file(folder, f"v1-3/{form}", "dev")[0]) for form in ("txt", "html")]
    for plain, page in zip(*forms, strict=True):
        assert plain.questions == page.questions
        ours, theirs = set(plain_words(plain.text)), set(plain_words(page.text))
        assert len(ours & theirs) > 0.98 * len(theirs)


def test_lengths_and_limits(first: dict[str, list[Story]]) -> None:
    stories = [story for split in SPLITS for story in first[split]]
    found, printed = lengths(stories, plain_words), facts_of(PACKAGE)["lengths"]
    assert (found.stories, found.examples, found.summaries) == (100, 500, 2000)
    # Without spaCy's tokenizer stories are 0.7 % longer than printed, summaries as printed.
    assert found.story_words.mean == pytest.approx(printed["story_words"]["mean"], rel=0.008)
    assert found.summary_words.mean == pytest.approx(printed["summary_words"]["mean"], abs=0.5)
    assert found.plot_words.mean == pytest.approx(printed["plot_words"]["mean"], abs=1.0)
    assert found.other_words.mean == pytest.approx(printed["other_words"]["mean"], abs=0.5)
    assert found.compression == pytest.approx(printed["compression"], abs=1e-3)
    texts = [text for story in stories for question in story.questions for text in question.references]
    counts = [len(text.split()) for text in texts]
    assert min(counts) >= LEAST_WORDS
    assert sum(count > MOST_WORDS for count in counts) == 7


def test_lengths_are_the_printed_ones_with_spacy(first: dict[str, list[Story]]) -> None:
    pytest.importorskip("spacy")
    from ensue.benchmarks.squality.statistics import spacy_words

    found = lengths([story for split in SPLITS for story in first[split]], spacy_words)
    printed = facts_of(PACKAGE)["lengths"]
    story = found.story_words
    assert (story.least, story.most) == (printed["story_words"]["least"], printed["story_words"]["most"])
    assert round(story.deviation) == printed["story_words"]["deviation"]
    assert round(story.mean, -2) == printed["story_words"]["mean"]
    summary = found.summary_words
    assert (round(summary.mean), round(summary.deviation)) == (
        printed["summary_words"]["mean"],
        printed["summary_words"]["deviation"],
    )
    assert (round(found.plot_words.mean), round(found.other_words.mean)) == (442, 186)
    assert round(found.compression, 3) == printed["compression"]


def test_table_5_3(first: dict[str, list[Story]]) -> None:
    stories = [story for split in SPLITS for story in first[split]]
    printed = facts_of(PACKAGE)["sharing"]
    for line in sharing(stories, plain_words):
        near = 0.0015 if line.text in ("same story", "same question") else 0.0035
        assert line.shares == pytest.approx(printed[line.text], abs=near), line.text


def test_tables_5_5_and_a_10(rated: list[Rated]) -> None:
    printed = {(one.system, one.metric): one.value for one in published(PACKAGE) if one.table == "A.10"}
    for row in rating_rows(rated):
        mean, deviation = (printed[row["system"], row["property"] + end] for end in ("", "_deviation"))
        assert round(row["mean"] / 100, 3) == mean
        # The deviation printed as 16.5 is 16.448: it was rounded twice.
        twice = (row["system"], row["property"]) == ("bart-dpr", "overall")
        own = round(row["deviation"], 2) + 1e-9 if twice else row["deviation"]
        assert round(own / 100, 3) == deviation


def test_tables_5_6_and_5_7_as_far_as_they_can_be_had(
    first: dict[str, list[Story]], rated: list[Rated]
) -> None:
    values = rouge_measure([one.text for one in rated], references_of(rated, first["test"]))
    best = {name: [max(row) for row in rows] for name, rows in values.items()}
    rows = list(correlation_rows(rated, best, "pearson"))
    assert [(row["settings"]["of"], row["settings"]["summaries"]) for row in rows] == [
        (name, part) for name in values for part in ("model", "human", "all")
    ]
    measured = [round(100 * row["value"], 1) for row in rows]
    assert measured == [27.6, 2.7, 57.6, 28.8, 6.0, 36.8, 31.9, 1.0, 40.5]
    apart = {row["settings"]["summaries"] for row in rows if (row["ci95"][0] or 0) > 0}
    assert apart == {"model", "all"}
    places = [place for place, one in enumerate(rated) if one.system == "bart-dpr"]
    printed = {one.metric: one.value for one in published(PACKAGE) if one.table == "5.7"}
    for name, rows_of_metric in values.items():
        own = [rows_of_metric[place] for place in places]
        assert sum(sum(row) / len(row) for row in own) / len(own) == pytest.approx(
            printed[f"{name}_mean"], abs=0.01
        )
        assert sum(map(max, own)) / len(own) == pytest.approx(printed[name], abs=0.01)
