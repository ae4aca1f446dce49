"""Annotated transitions: files are read strictly, votes are settled, and shares are what a hand count gives."""

from __future__ import annotations

import json

import pytest

from ensue.benchmarks.chapterbreak.annotation import (
    ASPECTS,
    ExampleResult,
    Share,
    breakdown,
    example_of,
    longest_results,
    main_suffix,
    read_annotations,
    run_examples,
    shares,
    write_sheet,
)
from ensue.benchmarks.chapterbreak.report.rows import PACKAGE
from ensue.benchmarks.published import facts_of
from ensue.errors import EnsueError
from ensue.stats.clustered import clustered_interval

HEAD = "example,events,actors,location,continuity\n"
ROW = "new event,change,no change,continuous"


def write(path, text):
    path.write_text(text, "utf-8")
    return path


def transition(events="new event", location="change"):
    return {"events": events, "actors": "no change", "location": location, "continuity": "continuous"}


def item(
    example, *, prefix=1024, suffix=128, accuracy=1.0, boundary="chapter", negatives="in-book", task="ao3"
):
    settings = {
        "boundary": boundary,
        "negatives": negatives,
        "prefix_tokens": prefix,
        "suffix_tokens": suffix,
    }
    return {
        "id": f"{example}#n{prefix}",
        "cluster": example.rpartition("/")[0],
        "task": task,
        "settings": settings,
        "scores": {"accuracy": accuracy},
        "outputs": {"example": example},
    }


def test_reads_csv_and_json_lines_alike(tmp_path):
    table = write(
        tmp_path / "a.csv", f"\ufeff{HEAD}ao3/w/0,{ROW}\nao3/w/1,event continues,no change,change,parallel\n"
    )
    rows = [
        dict(zip(("example", *ASPECTS), line.split(","), strict=True))
        for line in table.read_text("utf-8-sig").splitlines()[1:]
    ]
    lines = write(tmp_path / "a.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    read = read_annotations(table)
    assert read.transitions == read_annotations(lines).transitions
    assert read.transitions["ao3/w/1"] == {
        "events": "event continues",
        "actors": "no change",
        "location": "change",
        "continuity": "parallel",
    }
    assert (read.annotators, read.empty, sum(read.ties.values())) == (1, 0, 0)


def test_other_columns_and_their_order_do_not_matter(tmp_path):
    path = write(
        tmp_path / "a.csv",
        'note,continuity,location,actors,events,example\n"a, b\nc",analepsis,change,change,new event,x\n',
    )
    assert read_annotations(path).transitions["x"]["continuity"] == "analepsis"


def test_most_votes_win_and_ties_are_left_out_aspect_by_aspect(tmp_path):
    path = write(
        tmp_path / "a.csv",
        "example,annotator,events,actors,location,continuity\n"
        "x,A,new event,change,change,continuous\n"
        "x,B,new event,no change,change,parallel\n"
        "x,C,event continues,change,change,analepsis\n"
        "y,A,new event,change,change,continuous\n"
        "y,B,new event,no change,change,continuous\n",
    )
    read = read_annotations(path)
    assert list(read.transitions["x"].values()) == ["new event", "change", "change", None]
    assert read.transitions["y"]["actors"] is None
    assert (read.annotators, read.ties) == (3, {"events": 0, "actors": 1, "location": 0, "continuity": 1})
    found = shares(read.transitions.values())
    assert found["actors", "change"] == Share(1, 1)
    assert found["events", "new event"] == Share(2, 2)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            HEAD + "x,New event,change,change,continuous\n",
            r"line 2: 'New event' is not a category of events; did you mean 'new event'\?",
        ),
        (
            HEAD + "x,new event,change,change,continous\n",
            r"line 2: 'continous' is not a category of continuity; did you mean 'continuous'\?",
        ),
        (
            HEAD + "x,new event,yes,change,continuous\n",
            r"line 2: 'yes' is not a category of actors; it is change or no change\.",
        ),
        (
            HEAD + "x,new event,,change,continuous\n",
            "line 2: the column 'actors' is empty; write change or no change",
        ),
        (HEAD + f",{ROW}\n", "line 2: the column 'example' is empty"),
        (HEAD + f"x,{ROW}\ny,{ROW}\nx,{ROW}\n", "line 4: example 'x' is annotated a second time"),
        (HEAD + f"x,{ROW},more\n", "line 2: there are more cells than columns"),
        (HEAD + 'x,"new event\n', "not CSV"),
        (
            "example,events,actors,locations,continuity\n",
            "line 1: an annotation needs a column 'location' instead of 'locations'",
        ),
        (HEAD, "has no annotations"),
        (HEAD + "x,,,,\n", "has no annotations yet: all its rows are empty"),
        ("", "line 1: an annotation needs a column 'example'"),
        ('{"example": "x", "events": "new event"}\n', "line 1: an annotation needs a column 'actors'"),
        (
            '{"example": 3, "events": "", "actors": "", "location": "", "continuity": ""}\n',
            "line 1: 'example' must be text, not 3",
        ),
        ('{"example": "x"\n', "line 1 is not JSON"),
    ],
)
def test_every_fault_is_named_with_its_place(tmp_path, text, message):
    path = write(tmp_path / "sheet", text)
    with pytest.raises(EnsueError, match=message) as caught:
        read_annotations(path)
    assert str(path) in str(caught.value)


def test_one_annotator_may_not_vote_twice(tmp_path):
    path = write(tmp_path / "a.csv", f"annotator,{HEAD}A,x,{ROW}\nB,x,{ROW}\nA,x,{ROW}\n")
    with pytest.raises(EnsueError, match="line 4: example 'x' is annotated a second time by annotator 'A'"):
        read_annotations(path)


def test_files_that_cannot_be_read_are_a_sentence(tmp_path):
    with pytest.raises(EnsueError, match="there is no such file"):
        read_annotations(tmp_path / "nothing.csv")
    (tmp_path / "latin.csv").write_bytes(HEAD.encode() + "é".encode("latin-1"))
    with pytest.raises(EnsueError, match="is not UTF-8 "):
        read_annotations(tmp_path / "latin.csv")


def test_a_sheet_is_written_once_and_reads_back_when_filled_in(tmp_path):
    items = [
        item("ao3/w, x/0"),
        item("ao3/w, x/0", prefix=2048),
        item("ao3/v/0"),
        item("ao3/c", boundary="cause"),
    ]
    path = tmp_path / "sheet.csv"
    assert write_sheet(run_examples(items), path) == 2
    with pytest.raises(EnsueError, match="is there already"):
        write_sheet(["z"], path)
    filled = path.read_text().replace('x/0",,,,', f'x/0",{ROW}')
    read = read_annotations(write(tmp_path / "filled.csv", filled))
    assert list(read.transitions) == ["ao3/w, x/0"]
    assert read.empty == 1
    with pytest.raises(EnsueError, match="cannot be written: No such file"):
        write_sheet(["z"], tmp_path / "nowhere" / "sheet.csv")


def test_every_category_has_a_definition_and_a_published_share():
    printed = {(row["aspect"], row["category"]) for row in facts_of(PACKAGE)["transitions"]["rows"]}
    for aspect, categories in ASPECTS.items():
        for category, definition in categories.items():
            assert definition
            assert (aspect, category) in printed


def test_shares_are_a_hand_count():
    found = shares([transition(), transition(), transition(events="event continues"), transition()])
    assert found["events", "new event"] == Share(3, 4)
    assert found["events", "new event"].share == 0.75
    assert found["events", "event continues"].share == 0.25
    assert found["continuity", "parallel"] == Share(0, 4)
    assert Share(0, 0).share is None


def test_only_in_book_chapter_breaks_at_the_longest_prefix_count():
    items = [
        item("ao3/a/0", prefix=256, accuracy=0.0),
        item("ao3/a/0", prefix=1024, accuracy=1.0),
        item("ao3/a/0", prefix=1024, suffix=64, accuracy=0.0),
        item("ao3/a/0", prefix=1024, negatives="same-split", accuracy=0.0),
        item("ao3/a/1", prefix=256, accuracy=1.0),
        item("ao3/b/0", prefix=4096, boundary="cause", accuracy=0.0),
        item("pg19/c/0", prefix=512, task="pg19", accuracy=0.0),
    ]
    assert longest_results(items) == {
        "ao3/a/0": ExampleResult(1.0, "ao3/a"),
        "pg19/c/0": ExampleResult(0.0, "pg19/c"),
    }
    assert main_suffix([64, 256]) == 256


def test_an_item_without_outputs_is_still_of_its_example():
    assert example_of({"id": "ao3/a/0#n256", "outputs": None}) == "ao3/a/0"


def test_the_breakdown_is_of_what_every_run_got_wrong():
    transitions = {
        "w1/0": transition(),
        "w1/1": transition(),
        "w2/0": transition(events="event continues"),
        "w2/1": transition(location="no change"),
        "w3/0": transition(),
    }

    def run(**right):
        return {
            name: ExampleResult(float(name in right["right"]), name.partition("/")[0]) for name in right["of"]
        }

    first = run(of=["w1/0", "w1/1", "w2/0", "w2/1", "w3/0"], right=["w1/0"])
    second = run(of=["w1/0", "w1/1", "w2/0", "w2/1", "other"], right=["w1/0", "w2/1"])
    found = breakdown(transitions, {"a": first, "b": second})
    # w3/0 is not in the second run; of the other four both miss w1/1 and w2/0.
    assert (found.measured, found.wrong) == (4, 2)
    rows = {(row.aspect, row.category): row for row in found.rows}
    new, goes_on = rows["events", "new event"], rows["events", "event continues"]
    assert (new.base, new.errors) == (Share(3, 4), Share(1, 2))
    assert (goes_on.base, goes_on.errors) == (Share(1, 4), Share(1, 2))
    assert new.accuracy["a"] == clustered_interval([1, 0, 0], ["w1", "w1", "w2"], bounds=(0, 1))
    assert new.accuracy["b"].value == pytest.approx(2 / 3)
    assert goes_on.accuracy["a"].low is None
    assert rows["location", "no change"].errors == Share(0, 2)
    assert rows["continuity", "parallel"].accuracy == {"a": None, "b": None}
    assert len(rows) == 10


def test_runs_that_miss_nothing_have_no_share_of_failures():
    found = breakdown({"a": transition()}, {"run": {"a": ExampleResult(1.0, "w")}})
    assert found.wrong == 0
    assert {row.errors.share for row in found.rows} == {None}
