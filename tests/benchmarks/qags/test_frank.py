"""FRANK's labels and metrics, joined by article and system."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ensue.benchmarks.qags.frank import read_frank, values_of
from ensue.errors import EnsueError
from tests.benchmarks.qags.invented import write_json


def about(article: str, dataset: str = "cnndm") -> dict[str, Any]:
    return {"hash": article, "model_name": "gull", "dataset": dataset, "split": "test"}


def write(folder: Path, labels: list[dict[str, Any]], metrics: list[dict[str, Any]]) -> Path:
    write_json(folder / "human_annotations.json", labels)
    write_json(folder / "baseline_factuality_metrics_outputs.json", metrics)
    return folder


def test_labels_and_metrics_are_joined_whatever_their_order(tmp_path: Path) -> None:
    labels = [
        about("p") | {"Factuality": 0.5, "EntE": 1.0},
        about("q", "bbc") | {"Factuality": 1.0, "EntE": 0.0},
    ]
    metrics = [about("q", "bbc") | {"QAGS": 0.25, "FEQA": None}, about("p") | {"QAGS": 0.75, "FEQA": 0.1}]
    found = read_frank(write(tmp_path, labels, metrics))
    assert [one.metrics for one in found.summaries] == [{"QAGS": 0.75, "FEQA": 0.1}, {"QAGS": 0.25}]
    assert [(one.factuality, one.without) for one in found.summaries] == [
        (0.5, {"EntE": 1.0}),
        (1.0, {"EntE": 0.0}),
    ]
    assert found.notes == {"summaries without FEQA": 1}
    assert [one.article for one in found.of("xsum")] == ["q"]
    assert values_of(found.summaries, "FEQA") == ([found.summaries[0]], [0.1])
    with pytest.raises(EnsueError, match="the metric 'ROUGE'"):
        values_of(found.summaries, "ROUGE")


@pytest.mark.parametrize(
    ("labels", "metrics", "what"),
    [
        ([{"Factuality": 1.0}], [], r"human_annotations.json, line 2: there is no 'hash'"),
        ([about("p")], [about("p")], r"human_annotations.json, line 2: there is no 'Factuality'"),
        ([about("p") | {"Factuality": 2}], [about("p")], r"line 2: the score 2 is not between 0 and 1"),
        ([about("p", "cnn") | {"Factuality": 1}], [about("p")], r"the label 'cnn' is none of cnndm, bbc"),
        ([about("p")] * 2, [about("p")], r"line 8: gull's summary of p is there twice"),
        ([about("p")], [about("q")], r"human_annotations.json, line 2: .* no metrics of gull's summary of p"),
        (
            [about("p")],
            [about("p"), about("q")],
            r"outputs.json, line 8: .* no labels of gull's summary of q",
        ),
        ([about("p") | {"Factuality": 1}], [about("p") | {"QAGS": "high"}], r"line 2: 'high' is not a score"),
    ],
)
def test_faults_name_file_and_line(
    tmp_path: Path, labels: list[dict[str, Any]], metrics: list[dict[str, Any]], what: str
) -> None:
    with pytest.raises(EnsueError, match=what):
        read_frank(write(tmp_path, labels, metrics or [about("z")]))


def test_a_folder_without_the_files(tmp_path: Path) -> None:
    with pytest.raises(EnsueError, match=r"has no human_annotations\.json; name FRANK's data folder"):
        read_frank(tmp_path)
