"""People as a metric of QAGS: against others' judgments, or one of them against the rest."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from scipy.stats import pearsonr

import ensue
from ensue.benchmarks.people.kind import WorkItem, convert, kind
from ensue.benchmarks.qags.data.files import read_judgments
from ensue.errors import EnsueError
from ensue.runs.report import write_report
from ensue.runs.tables import metrics_tables
from tests.benchmarks.people.answering import chosen, exported

KIND = kind("consistency")
PEOPLE = ["p0", "p1", "p2"]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Nine articles with summaries of three sentences, n of which the article has."""
    rows = []
    for number in range(9):
        article = " ".join(f"Fact {fact} of town {number} is well known to all." for fact in range(6))
        right = [f"Fact {fact} of town {number} is well known to all." for fact in range(number % 4)]
        wrong = [f"Nobody in town {number} has ever heard of fact {fact}." for fact in range(3 - number % 4)]
        rows.append({"article": article, "sentences": [*right, *wrong][:3]})
    path = tmp_path / "summaries.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def write_export(folder: Path, data: Path, people: list[str] | None = None) -> Path:
    """Everybody is right but for one judgment in five."""

    def answer(item: WorkItem, person: str) -> dict[str, Any]:
        chance = random.Random(f"{person}/{item.key['id']}")
        article = item.form.panel("article").text or ""
        said = []
        for sentence in item.form.panel("summary").sentences or ():
            right = (sentence in article) == (item.control or chance.random() < 0.8)
            said.append({"value": "yes" if right else "no", "reason": "so"})
        return {"judgments": said}

    names = people or PEOPLE
    settings = chosen(KIND, controls=0, training=0, labels=len(names))
    export = exported(KIND, KIND.build(str(data), settings, 3), names, answer, settings)
    head = {"ensue": "annotation", "version": 1, "project": "news", "kind": KIND.name, "settings": settings}
    head |= {"source": str(data)}
    path = folder / "people.jsonl"
    lines = [vars(one) for one in export.records]
    path.write_text("".join(json.dumps(line) + "\n" for line in [head, *lines]))
    return path


def pearson(run: Any, measure: str = "people") -> dict[str, Any]:
    (row,) = [
        one
        for one in run.results["metrics"]
        if one["metric"] == "pearson" and one["settings"].get("measure") == measure
    ]
    return dict(row)


def test_one_annotator_of_each_summary_is_held_against_the_majority_of_the_others(
    tmp_path: Path, data: Path
) -> None:
    path = write_export(tmp_path, data)
    convert(path, tmp_path / "own")
    run = ensue.run(
        "qags", model=f"human:{path}", data=str(tmp_path / "own"), sets="own", seed=4, output=tmp_path / "run"
    )
    votes = {
        one.id: list(zip(*([vote.consistent for vote in s.responses] for s in one.sentences), strict=True))
        for one in read_judgments(tmp_path / "own" / "qags" / "judgments.jsonl", "own")
    }
    held = set()
    mine, others = [], []
    for item in run.items:
        said = votes[item["id"]]
        # Whoever was held out, both sides must be what that leaves.
        fitting = [
            place
            for place, one in enumerate(said)
            if item["scores"]["people"] == pytest.approx(sum(one) / 3)
            and item["outputs"]["human"]["consistency"]
            == pytest.approx(
                sum(all(votes) for votes in zip(*(said[:place] + said[place + 1 :]), strict=True)) / 3
            )
        ]
        assert fitting
        held.add(fitting[0])
        mine.append(item["scores"]["people"])
        others.append(item["outputs"]["human"]["consistency"])
    assert len(held) > 1  # not always the same
    row = pearson(run)
    assert row["value"] == pytest.approx(pearsonr(mine, others).statistic)
    assert row["n"] == 9
    assert pearson(run, "overlap-2")["n"] == 9
    (note,) = [count for words, count in run.results["notes"].items() if "held against the majority" in words]
    assert note == 9
    assert "held-out:one-a-summary" in run.results["signature"]
    assert "people" in metrics_tables(run.results, run.folder)[0].to_csv()
    assert "people" in write_report(run.folder).read_text()
    again = ensue.run(
        "qags", model=f"human:{path}", data=str(tmp_path / "own"), sets="own", seed=5, output=tmp_path / "two"
    )
    assert [one["scores"]["people"] for one in again.items] != mine


def test_against_the_judgments_of_others_nobody_is_held_out(tmp_path: Path, data: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    second.mkdir()
    convert(write_export(first, data, ["x0", "x1", "x2", "x3", "x4"]), tmp_path / "own")
    path = write_export(second, data)
    run = ensue.run(
        "qags", model=f"human:{path}", data=str(tmp_path / "own"), sets="own", output=tmp_path / "run"
    )
    judged = read_judgments(tmp_path / "own" / "qags" / "judgments.jsonl", "own")
    given: dict[str, list[list[bool]]] = {}
    for line in path.read_text().splitlines()[1:]:
        one = json.loads(line)
        given.setdefault(one["key"]["id"], []).append(
            [s["value"] == "yes" for s in one["values"]["judgments"]]
        )
    mine = [
        sum(sum(votes) >= 2 for votes in zip(*given[str(place)], strict=True)) / 3
        for place in range(len(judged))
    ]
    assert [item["scores"]["people"] for item in run.items] == pytest.approx(mine)
    assert pearson(run)["value"] == pytest.approx(
        pearsonr(mine, [one.consistency for one in judged]).statistic
    )
    assert "against:the-data" in run.results["signature"]
    # A model's metrics of the same summaries are compared with the same human scores.
    plain = ensue.run(
        "qags", model="source-overlap", data=str(tmp_path / "own"), sets="own", output=tmp_path / "plain"
    )
    assert [one["content"] for one in plain.items] == [one["content"] for one in run.items]


def test_other_summaries_are_refused(tmp_path: Path, data: Path) -> None:
    path = write_export(tmp_path, data)
    convert(path, tmp_path / "own")
    file = tmp_path / "own" / "qags" / "judgments.jsonl"
    file.write_text(file.read_text().replace("town", "village"))
    with pytest.raises(EnsueError, match="People judged none of these summaries"):
        ensue.run(
            "qags", model=f"human:{path}", data=str(tmp_path / "own"), sets="own", output=tmp_path / "run"
        )
