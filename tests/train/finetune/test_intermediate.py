"""Reading what is trained on first: NLI and multiple-choice files, and what is wrong with a bad one."""

import json

import pytest

from ensue.errors import EnsueError
from ensue.train.finetune.intermediate import NLI_LABELS, read_intermediate
from tests.support.command import write_lines

HEADER = "index\tsentence1\tsentence2\tgold_label"


def examples_of(data):
    return sorted(data.splits["train"] + data.splits["dev"], key=lambda one: int(one.id))


def test_nli_tables_are_read_without_quoting(tmp_path):
    rows = [
        HEADER,
        *(f'{i}\tA "boat {i}.\tIt\'s "{label}.\t{label}' for i, label in enumerate(NLI_LABELS * 4)),
        "12\tNobody agreed.\tOn this.\t-",
    ]
    path = tmp_path / "nli.tsv"
    path.write_text("\n".join(rows) + "\n", "utf-8")
    data = read_intermediate("nli", path, 0)
    assert (data.spec.form, data.spec.labels) == ("pair", NLI_LABELS)
    found = examples_of(data)
    assert [one.gold for one in found] == list(NLI_LABELS * 4)
    assert found[4].texts == ('A "boat 4.', "It's \"neutral.")
    assert found[4].where.endswith("nli.tsv, line 6")
    assert data.notes == {"rows without a label that annotators agreed on": 1}
    assert len(data.splits["dev"]) == 1
    assert read_intermediate("nli", path, 0) == data
    assert {read_intermediate("nli", path, seed).splits["dev"][0].id for seed in range(20)} != {found[0].id}


def test_nli_lines_and_folders_are_read(tmp_path):
    lines = [{"premise": "The sun rose.", "hypothesis": "It is day.", "label": "ENTAILMENT"}] * 3
    write_lines(tmp_path / "train.jsonl", lines)
    data = read_intermediate("mnli", tmp_path, 0)
    assert {one.gold for one in examples_of(data)} == {"entailment"}


def test_multiple_choices_are_read_from_lines_and_from_tables(tmp_path):
    lines = [
        {"context": "It rained.", "choices": ["They ran.", "It sang.", "No."], "label": i} for i in (2, 0)
    ]
    data = read_intermediate("swag", write_lines(tmp_path / "swag.jsonl", lines), 0)
    assert (data.spec.form, data.spec.labels) == ("choice", ("0", "1", "2"))
    assert [one.gold for one in examples_of(data)] == ["2", "0"]
    table = tmp_path / "train.csv"
    table.write_text(
        "video-id,startphrase,sent1,sent2,ending0,ending1,ending2,ending3,label\n"
        'a,x,"It rained, and then",They,ran.,sang.,"slept, all.",left.,2\n'
        "b,x,The sun rose.,He,spoke.,sat.,ate.,left.,0\n",
        "utf-8",
    )
    first, second = examples_of(read_intermediate("swag", table, 0))
    assert first.texts == ("It rained, and then", "")
    assert first.choices == ("They ran.", "They sang.", "They slept, all.", "They left.")
    assert (first.gold, second.gold) == ("2", "0")


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("a.tsv", f"{HEADER}\n0\tA.\tB.\n", "a.tsv, line 2 has 3 columns where the header has 4"),
        (
            "a.tsv",
            f"{HEADER}\n0\tA.\tB.\tmaybe\n",
            "line 2: the label is 'maybe'; it must be one of entailment",
        ),
        ("a.tsv", f"{HEADER}\n0\tA.\t\tneutral\n", "line 2 has no text under sentence2 or hypothesis"),
        ("a.tsv", HEADER, "has no rows"),
        ("a.jsonl", "{\n", "a.jsonl, line 1 is not JSON"),
        ("a.jsonl", "[]\n", "line 1 is not a JSON object"),
        (
            "a.jsonl",
            json.dumps({"context": "A.", "choices": ["B.", "C."], "label": 2}),
            "2 choices and the label '2'",
        ),
        ("a.jsonl", json.dumps({"context": "A.", "choices": "B.", "label": 0}), "choices must be a list"),
        (
            "a.jsonl",
            json.dumps({"premise": "A.", "hypothesis": "B.", "label": "neutral"}),
            "has 1 labelled rows",
        ),
    ],
)
def test_bad_files_are_refused_with_file_and_line(tmp_path, name, text, words):
    (tmp_path / name).write_text(text, "utf-8")
    with pytest.raises(EnsueError) as refusal:
        read_intermediate("nli", tmp_path / name, 0)
    assert words in str(refusal.value)


def test_a_missing_file_and_bytes_that_are_no_text_are_said(tmp_path):
    with pytest.raises(EnsueError, match=r"has no train.tsv, train.jsonl or train.csv"):
        read_intermediate("nli", tmp_path, 0)
    (tmp_path / "train.tsv").write_bytes(HEADER.encode() + b"\n0\t\xff\tB.\tneutral\n")
    with pytest.raises(EnsueError, match="is not UTF-8"):
        read_intermediate("nli", tmp_path, 0)
