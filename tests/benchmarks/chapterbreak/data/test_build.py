"""Building: what an example is made of, the same bytes from any number of workers, and memory that does not grow."""

from __future__ import annotations

import hashlib
import json
import random
import re
import subprocess
import sys
from statistics import fmean

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ensue.benchmarks.chapterbreak.data.breaks import Recipe, examples_of, lay_out
from ensue.benchmarks.chapterbreak.data.build import build
from ensue.benchmarks.chapterbreak.data.examples import Example, read_examples
from ensue.benchmarks.chapterbreak.data.statistics import BuildStatistics, Extent
from ensue.benchmarks.chapterbreak.data.words import Sizes, Words
from ensue.errors import EnsueError
from ensue.text.works.readers import Chapter, Work
from tests.support.command import environment, write_lines

TEXT = "the miller ferry lamp orchard went came under over slowly because rain fell and nobody spoke"
STYLES = ("CHAPTER {}.", "Chapter {}", "{}.", "Chapter {}: The Orchard", "The Orchard", "")


def paragraph(generator, words):
    text = " ".join(generator.choice(TEXT.split()) for _ in range(words))
    return f"“{text.capitalize()}.”" if generator.random() < 0.4 else f"{text.capitalize()}."


def chapters(seed, count, words=400, style="CHAPTER {}."):
    generator = random.Random(seed)
    return [
        Chapter(
            style.format(n + 1),
            f"Opening {seed} {n}. " + "\n\n".join(paragraph(generator, 40) for _ in range(words // 40)),
        )
        for n in range(count)
    ]


def write_works(path, count, *, chapter_count=9, words=400, first=0):
    rows = [
        {
            "id": f"work-{n}",
            "title": f"Work {n}",
            "chapters": [
                {"heading": c.heading, "text": c.text} for c in chapters(n, chapter_count, words=words)
            ],
        }
        for n in range(first, first + count)
    ]
    return str(write_lines(path, rows))


def recipe(**changes):
    made = {
        "split": "s",
        "headings": "robust",
        "boundaries": ("chapter",),
        "sizes": Sizes(500, 192),
        "seed": 0,
        "negatives": 5,
        "per_work": None,
    }
    return Recipe(**(made | changes))


@given(
    st.lists(st.sampled_from(STYLES), min_size=7, max_size=12),
    st.integers(0, 9),
    st.integers(1, 900),
    st.integers(20, 250),
)
@settings(max_examples=40)
def test_an_example_is_the_end_of_what_was_and_six_starts_alike(styles, seed, prefix, suffix):
    made = [chapters(seed, n + 1, words=200, style=style)[n] for n, style in enumerate(styles)]
    found = examples_of(Work("w", "W", tuple(made)), recipe(seed=seed, sizes=Sizes(prefix, suffix)))
    assert len(found.examples["chapter"]) == len(made) - 6
    for number, example in enumerate(found.examples["chapter"]):
        before = "\n\n".join(f"{c.heading}\n\n{c.text}".strip() for c in made[: number + 1])
        assert before.endswith(example.context)
        assert len(example.context.split()) == min(prefix, len(before.split()))
        after = f"{made[number + 1].heading}\n\n{made[number + 1].text}".strip()
        assert after.startswith(example.gold)
        assert len(example.gold.split()) == min(suffix, len(after.split()))
        openings = [re.findall(r"Opening \d+ (\d+)", t)[0] for t in (example.gold, *example.negatives)]
        assert openings[0] == str(number + 1)
        assert len(set(openings)) == 6
        assert all(int(opening) > number + 1 for opening in openings[1:])
        style = styles[number + 1]
        index = "" if style in ("The Orchard", "") else style.format(number + 2).partition(":")[0]
        for text in example.negatives:
            assert text.startswith(index)
            numbers = re.findall(r"\d+", text.partition("Opening")[0])
            assert numbers == ([str(number + 2)] if index else [])


def test_too_few_chapters_and_breaks_are_counted():
    found = examples_of(Work("w", "W", tuple(chapters(1, 6))), recipe())
    assert (found.examples, found.skipped) == ({"chapter": []}, {"works with too few chapters": 1})
    found = examples_of(Work("w", "W", (*chapters(1, 9), Chapter("CHAPTER X", " "))), recipe())
    assert len(found.examples["chapter"]) == 3
    assert found.skipped == {"breaks with fewer than five later chapters": 5, "empty chapters": 1}
    assert found.chapters == 9


def test_an_empty_chapter_of_a_file_is_counted(tmp_path):
    made = [{"heading": c.heading, "text": c.text} for c in chapters(1, 9)]
    made.insert(4, {"heading": "CHAPTER X.", "text": " "})
    source = write_lines(tmp_path / "works.jsonl", [{"id": "w", "title": "W", "chapters": made}])
    done = build(str(source), tmp_path / "data", workers=1)
    assert done.skipped["empty chapters"] == 1
    assert done.statistics["chapters"]["mean"] == 9


def test_chapters_that_begin_alike_are_not_drawn():
    same = [Chapter(f"CHAPTER {n}.", "It rained. " * 100) for n in range(1, 9)]
    other = chapters(3, 4)
    found = examples_of(Work("w", "W", (other[0], *same, *other[1:])), recipe())
    assert found.examples["chapter"] == []
    assert found.skipped["breaks with fewer than five different later chapters"] == 6


def test_fewer_examples_a_work_are_some_of_them_in_order():
    work = Work("w", "W", tuple(chapters(5, 30)))
    every = examples_of(work, recipe()).examples["chapter"]
    some = examples_of(work, recipe(per_work=4)).examples["chapter"]
    places = [[e.gold for e in every].index(e.gold) for e in some]
    assert len(places) == 4
    assert places == sorted(set(places))
    assert [e.id for e in some] == [f"s/w/{n}" for n in range(4)]
    assert [e.negatives for e in some] == [every[place].negatives for place in places]


@given(st.text(st.sampled_from("ab \n\u2003\x85é😀"), max_size=30), st.integers(1, 5), st.integers(0, 30))
def test_cuts_keep_so_many_words_and_the_white_space_between_them(text, count, offset):
    words = Words(text)
    assert list(words.starts) == [m.start() for m in re.finditer(r"\S+", text)]
    offset = min(offset, len(text))
    if offset == len(text) or offset in words.starts:
        before, after = words.before(offset, count), words.after(offset, count)
        assert before.split() == text[:offset].split()[-count:]
        assert after.split() == text[offset:].split()[:count]
        assert text[:offset].rstrip().endswith(before)
        assert text[offset:].lstrip().startswith(after)


def test_a_work_is_laid_out_with_blank_lines():
    laid = lay_out([Chapter("I", "One."), Chapter("", "Two."), Chapter("III\nThe Fair", "Three.")])
    assert laid.words.text.strip() == "I\n\nOne.\n\nTwo.\n\nIII\nThe Fair\n\nThree."
    assert [laid.words.text[a:b] for a, b in laid.bodies] == ["One.", "Two.", "Three."]


def test_workers_do_not_change_a_byte_and_the_report_is_true(tmp_path):
    source = write_works(tmp_path / "works.jsonl", 12, chapter_count=10, words=800)
    boundaries = ("chapter", "cause", "dialogue")
    reports = [
        build(source, tmp_path / f"b{workers}", boundaries=boundaries, workers=workers, seed=4)
        for workers in (1, 2)
    ]
    assert reports[0].as_dict() == reports[1].as_dict()
    names = ["build.json", "cause.json", "chapter.json", "dialogue.json"]
    assert sorted(path.name for path in (tmp_path / "b1").iterdir()) == names
    for name in names:
        content = (tmp_path / "b1" / name).read_bytes()
        assert content == (tmp_path / "b2" / name).read_bytes()
        if name != "build.json":
            assert reports[0].fingerprint[name] == hashlib.sha256(content).hexdigest()
    assert json.loads((tmp_path / "b1" / "build.json").read_text("utf-8")) == reports[0].as_dict()
    found = read_examples(str(tmp_path / "b1"))
    assert {e.split for e in found.items} == {"works"}
    for boundary in boundaries:
        row = reports[0].statistics["examples"][boundary]["works"]
        mine = [e for e in found.items if e.boundary == boundary]
        assert (row["examples"], row["works"]) == (len(mine), len({e.work for e in mine}))
    assert reports[0].statistics["examples"]["chapter"]["works"]["examples"] == 12 * 4
    assert reports[0].statistics["chapters"] == {"mean": 10.0, "min": 10, "max": 10}
    other = build(source, tmp_path / "other", boundaries=boundaries, seed=5)
    assert other.fingerprint != reports[0].fingerprint


def test_a_works_examples_do_not_depend_on_its_neighbours(tmp_path):
    build(write_works(tmp_path / "all.jsonl", 4), tmp_path / "all", split="s")
    build(write_works(tmp_path / "two.jsonl", 2, first=2), tmp_path / "two", split="s")
    every = {e.id: e for e in read_examples(str(tmp_path / "all")).items}
    assert all(every[e.id] == e for e in read_examples(str(tmp_path / "two")).items)


def test_lists_keep_works_apart_and_unknown_ids_are_noted(tmp_path):
    source = write_works(tmp_path / "works.jsonl", 6)
    listed = tmp_path / "dev.txt"
    listed.write_text("work-1\n\n work-4 \nwork-99\n", "utf-8")
    dev = build(source, tmp_path / "dev", only=listed)
    rest = build(source, tmp_path / "rest", exclude=listed)
    works = [{e.work for e in read_examples(str(tmp_path / name)).items} for name in ("dev", "rest")]
    assert works == [{"work-1", "work-4"}, {"work-0", "work-2", "work-3", "work-5"}]
    assert dev.notes == {"ids listed by --only that no work has": 1}
    assert rest.notes == {"ids listed by --exclude that no work has": 1}
    assert dev.skipped["works not listed by --only"] == 4
    assert rest.skipped["works listed by --exclude"] == 2
    listed.write_text("\n", "utf-8")
    with pytest.raises(EnsueError, match="has no id: write one a line"):
        build(source, tmp_path / "none", only=listed)


def test_a_limit_counts_works_with_examples(tmp_path):
    source = tmp_path / "works.jsonl"
    few = {"id": "few", "chapters": [{"heading": "I", "text": "It rained."}] * 2}
    write_works(source, 3)
    source.write_text(json.dumps(few) + "\n" + source.read_text("utf-8"), "utf-8")
    for workers in (1, 2):
        seen = []
        report = build(
            str(source),
            tmp_path / f"b{workers}",
            limit=2,
            workers=workers,
            progress=lambda done, total, unit, seen=seen: seen.append((done, total)),
        )
        assert {e.work for e in read_examples(str(report.folder)).items} == {"work-0", "work-1"}
        assert report.statistics["works"] == 3
        assert seen == [(0, 2), (1, 2), (2, 2)]


def test_a_second_work_of_the_same_id_is_counted(tmp_path):
    source = tmp_path / "works.jsonl"
    write_works(source, 2)
    source.write_text(source.read_text("utf-8") * 2, "utf-8")
    report = build(str(source), tmp_path / "b")
    assert report.skipped["works with the id of an earlier one"] == 2
    assert len(read_examples(str(report.folder)).items) == 6


def test_short_suffixes_are_kept_and_noted(tmp_path):
    source = write_works(tmp_path / "works.jsonl", 1, words=80)
    assert build(source, tmp_path / "b").notes == {"suffixes shorter than 128 words": 18}


def test_same_split_negatives_come_from_other_works(tmp_path):
    source = write_works(tmp_path / "works.jsonl", 8)
    in_book = build(source, tmp_path / "in", boundaries=("chapter", "dialogue"))
    outside = [
        build(
            source,
            tmp_path / f"out{w}",
            boundaries=("chapter", "dialogue"),
            negatives="same-split",
            workers=w,
        )
        for w in (1, 2)
    ]
    assert outside[0].fingerprint == outside[1].fingerprint
    before, after = (read_examples(str(r.folder)).items for r in (in_book, outside[0]))
    assert [(e.id, e.context, e.gold) for e in before] == [(e.id, e.context, e.gold) for e in after]
    golds = {(e.boundary, re.sub(r"CHAPTER \d+", "", e.gold)): e.work for e in before}
    for example in after:
        works = [golds[example.boundary, re.sub(r"CHAPTER \d+", "", t)] for t in example.negatives]
        assert example.work not in works
        if example.boundary == "chapter":
            assert len({t.split("\n")[0] for t in (example.gold, *example.negatives)}) == 1


def test_other_split_negatives_come_from_data_that_is_named(tmp_path):
    source = write_works(tmp_path / "works.jsonl", 2)
    other = build(write_works(tmp_path / "more.jsonl", 5, first=50), tmp_path / "more")
    report = build(
        source, tmp_path / "b", negatives="other-split", negatives_data=str(other.folder), split="mine"
    )
    for example in read_examples(str(report.folder)).items:
        assert all(re.search(r"Opening 5\d ", text) for text in example.negatives)
    with pytest.raises(EnsueError, match="no split other than 'more'"):
        build(source, tmp_path / "c", negatives="other-split", negatives_data=str(other.folder), split="more")
    with pytest.raises(EnsueError, match="--negatives-data"):
        build(source, tmp_path / "c", negatives="other-split")
    with pytest.raises(EnsueError, match="other-split alone"):
        build(source, tmp_path / "c", negatives_data=str(other.folder))
    assert not (tmp_path / "c").exists()


class EveryLetter:
    """A tokenizer that knows letters alone."""

    name = "letters"

    def count(self, text):
        return len(text)

    def last(self, text, count):
        return text[-count:]

    def first(self, text, count):
        return text[:count]


def test_a_tokenizer_cuts_instead_of_words(tmp_path):
    source = write_works(tmp_path / "works.jsonl", 1)
    report = build(source, tmp_path / "b", tokenizer=EveryLetter(), prefix_words=50, suffix_words=30)
    assert report.settings["tokenizer"] == "letters"
    assert report.notes == {"suffixes shorter than 128 tokens": 18}
    for example in read_examples(str(report.folder)).items:
        assert len(example.context) == 50
        assert all(len(text) == 30 for text in (example.gold, *example.negatives))


BAD = {
    "boundary": ({"boundaries": ("chapters",)}, "no boundary 'chapters'"),
    "no boundary": ({"boundaries": ()}, "no boundary"),
    "negatives": ({"negatives": "easy"}, "not 'easy'"),
    "prefix": ({"prefix_words": 0}, "prefix_words is 0"),
    "workers": ({"workers": 0}, "workers is 0"),
    "limit": ({"limit": -1}, "limit is -1"),
    "kind": ({"kind": "novel"}, "'novel'"),
    "headings": ({"headings": "loose"}, "'loose'"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_settings_are_one_sentence_and_leave_nothing(tmp_path, case):
    changes, words = BAD[case]
    source = write_works(tmp_path / "works.jsonl", 1)
    with pytest.raises(EnsueError, match=words):
        build(source, tmp_path / "deep" / "b", **changes)
    assert [path.name for path in tmp_path.iterdir()] == ["works.jsonl"]


@pytest.mark.parametrize("workers", [1, 2])
def test_broken_input_in_the_middle_leaves_nothing(tmp_path, workers):
    source = tmp_path / "works.jsonl"
    write_works(source, 3)
    source.write_text(source.read_text("utf-8") + "{oops\n", "utf-8")
    with pytest.raises(EnsueError, match="line 4 is not JSON"):
        build(str(source), tmp_path / "deep" / "b", workers=workers)
    assert [path.name for path in tmp_path.iterdir()] == ["works.jsonl"]


def test_places_where_something_would_be_lost_are_refused(tmp_path):
    (tmp_path / "in").mkdir()
    source = write_works(tmp_path / "in" / "works.jsonl", 2)
    output = tmp_path / "b"
    output.mkdir()
    (output / "mine.txt").write_text("mine")
    with pytest.raises(EnsueError, match="holds no build"):
        build(source, output, overwrite=True)
    (output / "mine.txt").unlink()
    first = build(source, output, boundaries=("chapter", "dialogue"))
    with pytest.raises(EnsueError, match="add --overwrite"):
        build(source, output)
    (output / "mine.txt").write_text("mine")
    second = build(source, output, seed=1, overwrite=True)
    assert first.fingerprint != second.fingerprint
    assert sorted(path.name for path in output.iterdir()) == ["build.json", "chapter.json", "mine.txt"]
    with pytest.raises(EnsueError, match="is a file"):
        build(source, output / "mine.txt")
    with pytest.raises(EnsueError, match="lies in the source"):
        build(str(tmp_path / "in"), tmp_path / "in" / "b")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["b", "in"]


def test_no_example_at_all_says_why_and_leaves_nothing(tmp_path):
    source = write_works(tmp_path / "works.jsonl", 2, chapter_count=3)
    with pytest.raises(EnsueError, match=r"gives no example \(works with too few chapters: 2\)"):
        build(source, tmp_path / "deep" / "b")
    assert [path.name for path in tmp_path.iterdir()] == ["works.jsonl"]


def test_a_boundary_without_examples_has_no_file(tmp_path):
    source = write_works(tmp_path / "works.jsonl", 1, chapter_count=8, words=200)
    report = build(source, tmp_path / "b", boundaries=("chapter", "cause"))
    assert report.notes["boundaries without an example (cause)"] == 1
    assert list(report.fingerprint) == ["chapter.json"]
    assert len(read_examples(str(tmp_path / "b")).items) == 2


@given(st.lists(st.integers(0, 10**6), min_size=1))
def test_a_extent_is_the_mean_the_least_and_the_most(numbers):
    extent = Extent()
    for number in numbers:
        extent.add(number)
    assert extent.as_dict() == {"mean": fmean(numbers), "min": min(numbers), "max": max(numbers)}


def test_nothing_has_no_mean():
    assert Extent().as_dict() == {"mean": None, "min": None, "max": None}
    assert BuildStatistics().as_dict("s")["examples"] == {}


def example(boundary, work, context, gold):
    return Example(f"{boundary}:b/{work}", "b", work, boundary, context, gold, ("n",))


def test_examples_are_counted_by_boundary_and_split():
    statistics = BuildStatistics()
    statistics.add_examples("dialogue", [example("dialogue", "1", "one two", "one")])
    statistics.add_examples(
        "chapter",
        [
            example("chapter", "1", "one two three four", "one two"),
            example("chapter", "1", "one two", "one two three"),
        ],
    )
    statistics.add_examples("chapter", [example("chapter", "2", "one two\n\nthree", "one")])
    found = statistics.as_dict("b")["examples"]
    assert list(found) == ["chapter", "dialogue"]
    assert found["chapter"]["b"] == {"works": 2, "examples": 3, "context_words": 3.0, "gold_words": 2.0}
    assert found["dialogue"]["b"] == {"works": 1, "examples": 1, "context_words": 2.0, "gold_words": 1.0}


PEAKS = """
import sys, tracemalloc
from pathlib import Path
from ensue.benchmarks.chapterbreak.data.build import build
tracemalloc.start()
for source in sys.argv[1:]:
    tracemalloc.reset_peak()
    build(source, Path(source + ".built"), per_work=2)
    print(tracemalloc.get_traced_memory()[1])
"""


def test_memory_does_not_grow_with_the_corpus(tmp_path):
    # In a process of its own, where nothing else is held; the first build fills caches and does not count.
    first, few, many = (write_works(tmp_path / f"w{n}.jsonl", n, words=240) for n in (2, 30, 300))
    done = subprocess.run(
        [sys.executable, "-c", PEAKS, first, few, many], env=environment(), capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    _, level, peak = map(int, done.stdout.split())
    assert (tmp_path / "w300.jsonl.built" / "chapter.json").stat().st_size > 5_000_000
    assert peak - level < 500_000
