"""Comparing run folders: matching, testing, notes, and the errors of broken folders."""

from __future__ import annotations

import json

import numpy as np
import pytest

from ensue.errors import EnsueError
from ensue.runs.compare import compare_runs
from ensue.runs.reading import read_items, read_profiles, read_results, read_run
from ensue.stats.multiple import holm
from ensue.stats.paired import paired_test

RESULTS = {"benchmark": "shuffle", "model": "m", "signature": "s", "metrics": [], "skipped": {}}


def an_item(document, shuffle, size, accuracy, *, order=(1, 0), **extra_scores):
    return {
        "id": f"d{document}/k{size}/{shuffle}",
        "cluster": f"d{document}",
        "task": "shuffle",
        "settings": {"block_size": size},
        "scores": {"accuracy": accuracy, **extra_scores},
        "outputs": {"order": list(order)},
    }


def write_run(folder, items, *, signature="rules:1", model="some-model", finished=True):
    folder.mkdir()
    (folder / "run.json").write_text(json.dumps({"model": {"name": model}, "signature": signature}))
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
        assert row.test == pytest.approx(paired_test(a, b, clusters))
        expected.append(row.test.p_value)
    # The family of the correction is one metric: the ties beside it (p = 1) do not weaken it.
    assert [row.adjusted_p for row in accuracy] == holm(expected)
    assert {row.adjusted_p for row in found.rows if row.metric == "ties"} == {1.0}


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
        (b'{"id": "x", "task": "t", "settings": {}, "scores": {}}\n{"id": \n', "line 2: not JSON"),
        (b"\xff\xfe\n", "line 1: not UTF-8 text"),
        (b"\n\n[1]\n", "line 3: not a JSON object"),
        (b'{"id": "x\x00"}\n', "line 1: not JSON"),
        (b'{"id": "x", "task": "t", "settings": [], "scores": {}}\n', "line 1: an item needs a JSON object"),
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
        ("{\n  nonsense", r"results\.json, line 2: not JSON"),
        ("[]", "must hold a JSON object"),
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
    with pytest.raises(EnsueError, match=r"profiles\.jsonl, line 2: a profile needs"):
        list(read_profiles(folder))


def test_another_model_under_the_same_rules_is_no_reason_for_a_note(tmp_path):
    items = [an_item(0, 0, 1, 1.0), an_item(1, 0, 1, 0.0)]
    write_run(tmp_path / "a", items, signature="ensue:1 model:x weights:1f bos:none dtype:float32")
    write_run(tmp_path / "b", items, signature="ensue:1 model:y weights:2e bos:none dtype:float32")
    write_run(tmp_path / "c", items, signature="ensue:1 model:y weights:2e bos:2 dtype:float32")
    assert compare_runs(tmp_path / "a", tmp_path / "b").notes == ()
    (note,) = compare_runs(tmp_path / "a", tmp_path / "c").notes
    assert "bos:none against bos:2" in note
