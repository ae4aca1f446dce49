"""Comparing run folders: matching, testing, notes, and the errors of broken folders."""

from __future__ import annotations

import json

import numpy as np
import pytest

import ensue
from ensue.errors import EnsueError
from ensue.report.results import read_items, read_profiles, read_results, read_run
from ensue.runs.compare import compare_runs
from ensue.stats.paired import holm, paired_test
from ensue.stats.ranges import range_of
from tests.support.command import here, refused

RESULTS = {"benchmark": "shuffle", "model": "m", "signature": "s", "metrics": [], "skipped": {}}


def an_item(document, shuffle, size, accuracy, *, order=(1, 0), name="d", **extra_scores):
    return {
        "id": f"{name}{document}/k{size}/{shuffle}",
        "cluster": f"{name}{document}",
        "task": "shuffle",
        "settings": {"block_size": size},
        "scores": {"accuracy": accuracy, **extra_scores},
        "outputs": {"order": list(order)},
        "content": f"document {document}",
    }


def write_run(folder, items, *, signature="rules:1", model="some-model", finished=True, **about):
    folder.mkdir()
    (folder / "run.json").write_text(json.dumps({"model": {"name": model}, "signature": signature, **about}))
    (folder / "items.jsonl").write_text("".join(json.dumps(item) + "\n" for item in items))
    if finished:
        (folder / "results.json").write_text(json.dumps(RESULTS))
    return folder


def random_items(chance, seed, documents=30, sizes=(1, 2, 10)):
    generator = np.random.default_rng(seed)
    return [
        an_item(document, shuffle, size, float(generator.random() < chance), ties=0.0)
        for size in sizes
        for document in range(documents)
        for shuffle in range(4)
    ]


def test_every_row_is_the_paired_test_of_its_items(tmp_path):
    items_a, items_b = random_items(0.9, 1), random_items(0.7, 2)
    # Order must not matter: items are matched by what they are.
    write_run(tmp_path / "a", items_a, model="first")
    write_run(tmp_path / "b", items_b[::-1], model="second")
    found = compare_runs(tmp_path / "a", tmp_path / "b")
    assert (found.model_a, found.model_b, found.shared, found.notes) == ("first", "second", 360, ())
    accuracy = [row for row in found.rows if row.metric == "accuracy"]
    assert [row.settings["block_size"] for row in accuracy] == [1, 2, 10]
    expected = []
    for row in accuracy:
        pairs = [
            (a["scores"]["accuracy"], b["scores"]["accuracy"], a["cluster"])
            for a, b in zip(items_a, items_b, strict=True)
            if a["settings"] == row.settings
        ]
        a, b, clusters = zip(*pairs, strict=True)
        assert (row.value_a, row.value_b) == pytest.approx((np.mean(a), np.mean(b)))
        assert row.test.difference == pytest.approx(row.value_a - row.value_b)
        assert row.test.clusters == 30
        assert row.test == pytest.approx(paired_test(a, b, clusters, bounds=range_of(row.metric)))
        expected.append(row.test.p_value)
    # The family of the correction is one metric: the ties beside it (p = 1) do not weaken it.
    assert [row.adjusted_p for row in accuracy] == holm(expected)
    assert {row.adjusted_p for row in found.rows if row.metric == "ties"} == {1.0}


def test_how_many_items_both_runs_score_the_same_is_counted_with_its_interval(tmp_path):
    items = random_items(0.8, 4)
    # Of each document the first shuffle at block size 1 is decided otherwise, and in every third one another too.
    other = [
        {**item, "scores": {**item["scores"], "accuracy": 1.0 - item["scores"]["accuracy"], "margin": 0.3}}
        if item["settings"]["block_size"] == 1
        and (item["id"].endswith("/0") or (item["id"].endswith("/1") and int(item["cluster"][1:]) % 3 == 0))
        else {**item, "scores": {**item["scores"], "margin": 0.7}}
        for item in items
    ]
    items = [{**item, "scores": {**item["scores"], "margin": 0.2}} for item in items]
    write_run(tmp_path / "a", items)
    write_run(tmp_path / "b", other)
    found = compare_runs(tmp_path / "a", tmp_path / "b")
    rows = {(row.metric, row.settings["block_size"]): row.same for row in found.rows}
    share = 1 - (30 + 10) / 120
    one = rows["accuracy", 1]
    assert one.value == pytest.approx(share)
    assert one.low < share < one.high
    assert (one.n, one.clusters) == (120, 30)
    assert rows["accuracy", 2].value == rows["ties", 1].value == 1.0
    assert rows["margin", 1] is None  # a number, not a decision
    assert found.as_dict()["rows"][0]["same"] == one._asdict()


def test_a_run_is_equal_to_itself(tmp_path):
    write_run(tmp_path / "a", random_items(0.8, 3))
    found = compare_runs(tmp_path / "a", tmp_path / "a")
    assert {(row.test.difference, row.test.p_value) for row in found.rows} == {(0.0, 1.0)}


def test_only_shared_items_are_compared_and_the_rest_counted(tmp_path):
    write_run(tmp_path / "a", [an_item(0, 0, 1, 1.0), an_item(1, 0, 1, 1.0), an_item(2, 0, 1, 1.0)])
    write_run(tmp_path / "b", [an_item(0, 0, 1, 0.0), an_item(1, 0, 2, 0.0)])
    found = compare_runs(tmp_path / "a", tmp_path / "b")
    assert (found.shared, found.only_a, found.only_b) == (1, 2, 1)
    assert [(row.value_a, row.value_b) for row in found.rows] == [(1.0, 0.0)]
    assert found.notes == (
        f"2 items are only in {tmp_path / 'a'} and 1 only in {tmp_path / 'b'}; they are left out.",
    )


def test_notes_other_rules_unfinished_runs_and_other_shuffles(tmp_path):
    write_run(tmp_path / "a", [an_item(0, 0, 1, 1.0), an_item(1, 0, 1, 1.0, order=(2, 0, 1))], signature="x")
    write_run(tmp_path / "b", [an_item(0, 0, 1, 1.0), an_item(1, 0, 1, 0.0)], signature="y", finished=False)
    found = compare_runs(tmp_path / "a", tmp_path / "b")
    assert (found.signature_a, found.signature_b) == ("x", "y")
    assert [note.split(",")[0].split(";")[0] for note in found.notes] == [
        f"{tmp_path / 'b'} is an unfinished run",
        "The signatures differ",
        "1 of 2 shared items showed their sentences in different orders (other seeds)",
    ]


def test_null_scores_are_left_out(tmp_path):
    write_run(tmp_path / "a", [an_item(0, 0, 1, None, f1=0.5), an_item(1, 0, 1, 1.0, f1=0.5)])
    write_run(tmp_path / "b", [an_item(0, 0, 1, 1.0), an_item(1, 0, 1, 0.0)])
    (row,) = compare_runs(tmp_path / "a", tmp_path / "b").rows
    assert (row.metric, row.test.n, row.value_a, row.value_b) == ("accuracy", 1, 1.0, 0.0)


def test_turns_into_plain_json(tmp_path):
    write_run(tmp_path / "a", random_items(0.9, 1))
    write_run(tmp_path / "b", random_items(0.5, 2))
    found = compare_runs(tmp_path / "a", tmp_path / "b")
    plain = json.loads(json.dumps(found.as_dict()))
    assert plain["rows"][0]["test"]["p_value"] == found.rows[0].test.p_value
    assert plain["rows"][0]["settings"] == found.rows[0].settings
    assert plain["notes"] == []


def test_runs_without_shared_items_cannot_be_compared(tmp_path):
    write_run(tmp_path / "a", [an_item(0, 0, 1, 1.0)])
    write_run(tmp_path / "b", [an_item(1, 0, 1, 1.0)])
    with pytest.raises(EnsueError, match="share no items: compare runs of the same benchmark"):
        compare_runs(tmp_path / "a", tmp_path / "b")


@pytest.mark.parametrize("twice_in", ["a", "b"])
def test_an_item_that_comes_twice_is_an_error_with_its_line(tmp_path, twice_in):
    once, twice = [an_item(0, 0, 1, 1.0)], [an_item(0, 0, 1, 1.0), an_item(0, 0, 1, 0.0)]
    write_run(tmp_path / "a", twice if twice_in == "a" else once)
    write_run(tmp_path / "b", twice if twice_in == "b" else once)
    with pytest.raises(EnsueError, match=rf"{twice_in}/items\.jsonl, line 2: the item 'd0/k1/0' was there"):
        compare_runs(tmp_path / "a", tmp_path / "b")


def test_an_unfinished_run_has_no_results(tmp_path):
    folder = write_run(tmp_path / "a", [], finished=False)
    with pytest.raises(EnsueError, match=r"a is an unfinished run; continue it with --resume\.$"):
        read_results(folder)
    assert read_run(folder)["signature"] == "rules:1"
    (folder / "items.jsonl").unlink()
    with pytest.raises(EnsueError, match="is an unfinished run"):
        list(read_items(folder))


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b'{"id": "x", "task": "t", "settings": {}, "scores": {}}\n{"id": \n', "line 2 is not JSON"),
        (b"\xff\xfe\n", r"is UTF-16 \(line 1"),
        (b"\n\n[1]\n", "line 3 is not a JSON object but a list"),
        (b'{"id": "x\x00"}\n', "line 1 holds a NUL byte"),
        (b'{"id": "x", "task": "t", "settings": [], "scores": {}}\n', "line 1: it needs a JSON object"),
        (b'{"id": 5, "task": "t", "settings": {}, "scores": {}}\n', "needs a JSON string called 'id'"),
    ],
)
def test_a_broken_item_is_named_with_file_and_line(tmp_path, content, sentence):
    folder = write_run(tmp_path / "a", [])
    (folder / "items.jsonl").write_bytes(content)
    with pytest.raises(EnsueError, match=sentence) as caught:
        list(read_items(folder))
    assert "items.jsonl" in str(caught.value)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("{\n  nonsense", r"results\.json, line 2 is not JSON"),
        ("[]", "is not a JSON object but a list"),
        ("{}", "has no list of metrics"),
        ('{"metrics": [{"task": "t", "metric": "m", "value": 1, "settings": {}}]}', "metric row 1 lacks n"),
        ('{"metrics": [{"task": "t", "metric": "m", "value": 1, "n": 1, "settings": 3}]}', "not an object"),
    ],
)
def test_broken_results_are_named(tmp_path, content, sentence):
    folder = write_run(tmp_path / "a", [])
    (folder / "results.json").write_text(content)
    with pytest.raises(EnsueError, match=sentence):
        read_results(folder)


def test_what_is_not_a_run_folder_says_so(tmp_path):
    for folder, reason in [
        (tmp_path / "nowhere", "there is no such folder"),
        (tmp_path, "it has no run.json"),
    ]:
        with pytest.raises(EnsueError, match=f"is not a run folder: {reason}"):
            read_run(folder)


def test_profiles_may_be_absent_but_not_broken(tmp_path):
    folder = write_run(tmp_path / "a", [])
    assert list(read_profiles(folder)) == []
    (folder / "profiles.jsonl").write_text('{"document": "d", "versions": []}\n{"document": "e"}\n')
    with pytest.raises(EnsueError, match=r"profiles\.jsonl, line 2: it needs"):
        list(read_profiles(folder))


def test_another_model_under_the_same_rules_is_no_reason_for_a_note(tmp_path):
    items = [an_item(0, 0, 1, 1.0), an_item(1, 0, 1, 0.0)]
    write_run(tmp_path / "a", items, signature="ensue:1 model:x weights:1f bos:none dtype:float32")
    write_run(tmp_path / "b", items, signature="ensue:1 model:y weights:2e bos:none dtype:float32")
    write_run(tmp_path / "c", items, signature="ensue:1 model:y weights:2e bos:2 dtype:float32")
    assert compare_runs(tmp_path / "a", tmp_path / "b").notes == ()
    (note,) = compare_runs(tmp_path / "a", tmp_path / "c").notes
    assert "bos:none against bos:2" in note


def without_content(items):
    return [{key: value for key, value in item.items() if key != "content"} for item in items]


def test_other_texts_under_the_same_names_are_refused(tmp_path):
    items = [an_item(document, 0, 1, 1.0) for document in range(4)]
    other = [{**item, "content": "another text"} if n < 3 else item for n, item in enumerate(items)]
    write_run(tmp_path / "a", items)
    write_run(tmp_path / "b", other)
    with pytest.raises(EnsueError, match=r"^3 of 4 items that .* made of other texts or labels.* --shared"):
        compare_runs(tmp_path / "a", tmp_path / "b")
    found = compare_runs(tmp_path / "a", tmp_path / "b", shared=True)
    assert (found.shared, found.only_a, found.only_b) == (1, 3, 3)
    assert [row.test.n for row in found.rows] == [1]
    assert found.notes[0] == "Items are matched by what they are made of: 1 are in both runs."


def test_what_is_shared_may_have_other_names(tmp_path):
    generator = np.random.default_rng(7)
    scores = generator.integers(0, 2, (2, 6, 3)).astype(float)
    write_run(tmp_path / "a", [an_item(d, n, 1, scores[0, d, n]) for d in range(6) for n in range(3)])
    renamed = [an_item(d, n, 1, scores[1, d, n], name="other") for d in range(2, 6) for n in range(3)]
    write_run(tmp_path / "b", renamed)
    with pytest.raises(EnsueError, match="share no items"):
        compare_runs(tmp_path / "a", tmp_path / "b")
    found = compare_runs(tmp_path / "a", tmp_path / "b", shared=True)
    assert (found.shared, found.only_a, found.only_b) == (12, 6, 0)
    (row,) = found.rows
    assert (row.value_a, row.value_b) == pytest.approx((scores[0, 2:].mean(), scores[1, 2:].mean()))
    assert (row.test.n, row.test.clusters) == (12, 4)


def test_a_run_with_a_smaller_limit_is_compared_with_a_note(tmp_path):
    items = [an_item(document, 0, 1, 1.0) for document in range(4)]
    write_run(tmp_path / "a", items, data={"fingerprint": "whole"}, signature="rules:1 data:x")
    write_run(tmp_path / "b", items[:2], data={"fingerprint": "part"}, signature="rules:1 data:y")
    found = compare_runs(tmp_path / "a", tmp_path / "b")
    assert found.shared == 2
    assert found.notes == (
        f"2 items are only in {tmp_path / 'a'} and 0 only in {tmp_path / 'b'}; they are left out.",
    )


def test_older_runs_are_told_apart_by_the_fingerprints_of_their_data(tmp_path):
    items = [an_item(0, 0, 1, 1.0), an_item(1, 0, 1, 0.0)]
    write_run(tmp_path / "a", without_content(items), data={"fingerprint": "x" * 64})
    write_run(tmp_path / "b", without_content(items), data={"fingerprint": "y" * 64})
    write_run(tmp_path / "new", items, data={"fingerprint": "x" * 64})
    write_run(tmp_path / "bare", without_content(items))
    refusal = "over different data .fingerprints x{12} and y{12}., and one was run before"
    with pytest.raises(EnsueError, match=refusal):
        compare_runs(tmp_path / "a", tmp_path / "b")
    assert compare_runs(tmp_path / "a", tmp_path / "new").notes == ()
    (note,) = compare_runs(tmp_path / "a", tmp_path / "bare").notes
    assert note.startswith("2 shared items do not say what they are made of")
    with pytest.raises(EnsueError, match=r"before items said what they are made of.* run it again"):
        compare_runs(tmp_path / "a", tmp_path / "new", shared=True)


def test_runs_of_two_benchmarks_are_refused(tmp_path):
    write_run(tmp_path / "a", [an_item(0, 0, 1, 1.0)], asked={"benchmark": "glue/CoLA"})
    write_run(tmp_path / "b", [an_item(0, 0, 1, 1.0)], asked={"benchmark": "shuffle"})
    with pytest.raises(
        EnsueError, match=r"is a run of glue and .* one of shuffle; compare runs of one benchmark"
    ):
        compare_runs(tmp_path / "a", tmp_path / "b")


def test_an_item_that_lacks_what_is_compared_is_named_with_its_line(tmp_path):
    for name in "ab":
        write_run(tmp_path / name, [an_item(0, 0, 1, 1.0)], asked={"benchmark": "glue/CoLA"})
    with pytest.raises(EnsueError, match=r"a/items\.jsonl, line 1: the item lacks what is compared of it"):
        compare_runs(tmp_path / "a", tmp_path / "b")


def test_rows_without_a_difference_do_not_weaken_the_others(tmp_path):
    items = [an_item(document, 0, size, float(document < 8)) for size in (1, 2, 3) for document in range(12)]
    better = [
        {**item, "scores": {"accuracy": 1.0}} if item["settings"]["block_size"] == 1 else item
        for item in items
    ]
    write_run(tmp_path / "a", better)
    write_run(tmp_path / "b", items)
    found = compare_runs(tmp_path / "a", tmp_path / "b").rows
    assert [(row.alike, row.adjusted_p == row.test.p_value) for row in found] == [(False, True)] + [
        (True, True)
    ] * 2
    assert found[0].adjusted_p == 0.125


def test_a_metric_that_only_one_run_has_is_named(tmp_path):
    write_run(tmp_path / "a", [an_item(0, 0, 1, 1.0, f1=0.5), an_item(1, 0, 1, 1.0, f1=0.5)])
    write_run(tmp_path / "b", [an_item(0, 0, 1, 1.0), an_item(1, 0, 1, 0.0)])
    (left,) = compare_runs(tmp_path / "a", tmp_path / "b").untested
    assert (left.task, left.settings, left.reason) == (
        "shuffle",
        {"block_size": 1},
        "f1 was scored in the first run only",
    )


def test_two_corpora_in_files_of_one_name(tmp_path):
    """As it was found: other documents under the same ids gave a small p-value and no word of warning."""
    runs = []
    for place, word in (("x", "river"), ("y", "engine")):
        (tmp_path / place).mkdir()
        path = tmp_path / place / "corpus.jsonl"
        sentences = [[f"The {word} {d} {n} was here." for n in range(5)] for d in range(3)]
        path.write_text("".join(json.dumps({"sentences": one}) + "\n" for one in sentences))
        runs.append(
            ensue.run(
                "shuffle",
                model="random",
                data=path,
                output=tmp_path / f"run-{place}",
                shuffles=3,
                block_size=1,
            )
        )
    ids = [{item["id"] for item in run.items} for run in runs]
    assert ids[0] == ids[1]
    with pytest.raises(EnsueError, match=r"^9 of 9 items"):
        ensue.compare(*runs)
    said = refused(here("compare", runs[0].folder, runs[1].folder), "9 of 9 items", "--shared")
    assert "over different data" in said
    refused(here("compare", "--shared", runs[0].folder, runs[1].folder), "share no items")
    same = here("compare", "--json", "--shared", runs[0].folder, runs[0].folder)
    assert json.loads(same.out)["shared"] == 9


def test_the_command_names_what_could_not_be_tested(tmp_path):
    items = [an_item(n, 0, size, float(n % 3 > 0)) for n in range(9) for size in (1, 5)]
    write_run(tmp_path / "a", items)
    write_run(tmp_path / "b", [item for item in items if item["settings"]["block_size"] == 1])
    done = here("compare", tmp_path / "a", tmp_path / "b")
    assert done.code == 0
    assert f"Not tested: shuffle (block size 5): it is only in {tmp_path / 'a'}.\n" in done.out
