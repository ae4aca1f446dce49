"""The spread over templates against numpy."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ensue.benchmarks.nlu.prompting.spread import spread
from ensue.report.results import MetricRow


def row(task: str, value: float, **settings: object) -> MetricRow:
    return MetricRow(
        task=task, metric="accuracy", value=value, ci95=[None, None], n=1, clusters=1, settings=dict(settings)
    )


@given(st.lists(st.floats(0, 1), min_size=2, max_size=6))
def test_best_mean_and_sd(values):
    rows = [row("RTE", value, template=f"t{n}", split="dev") for n, value in enumerate(values)]
    (found,) = spread(rows)
    assert found.best == max(values)
    assert found.best_template == f"t{values.index(max(values))}"
    assert np.isclose(found.mean, np.mean(values))
    assert np.isclose(found.sd, np.std(values, ddof=1), atol=1e-9)
    assert (found.templates, found.settings) == (len(values), {"split": "dev"})


def test_only_rows_that_differ_in_nothing_else_go_together():
    rows = [
        row("RTE", 0.5, template="a", shots=0),
        row("RTE", 0.7, template="b", shots=0),
        row("RTE", 0.9, template="a", shots=4),
        row("CB", 0.1, template="a", shots=0),
        row("CB", 0.2),
    ]
    found = spread(rows)
    assert [(one.task, one.settings, one.templates) for one in found] == [
        ("RTE", {"shots": 0}, 2),
        ("RTE", {"shots": 4}, 1),
        ("CB", {"shots": 0}, 1),
    ]
    assert found[1].sd is None
