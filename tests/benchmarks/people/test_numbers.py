"""A project in numbers: units of agreement by type of field, items people disagree on, times, and what is owed."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from scipy.stats import binomtest

from ensue.benchmarks.people.custom import KIND
from ensue.benchmarks.people.export import Export, Person, Record
from ensue.benchmarks.people.numbers import (
    bonus_csv,
    bonuses,
    disagreements,
    overview,
    progress,
    times,
)
from ensue.benchmarks.people.units import Table, marks_in, rating_tables, said_in
from ensue.cli.annotate import overview_lines
from tests.support.agreement import krippendorff_alpha

TYPES = {
    "which": "choice",
    "ones": "choices",
    "grade": "scale",
    "order": "order",
    "rank": "rank",
    "each": "sentences",
    "why": "text",
    "marked": "spans",
}


def record(item: str, annotator: str, seconds: float = 10.0, **values: Any) -> Record:
    return Record({"id": item}, annotator, values, seconds=seconds)


def export(*records: Record, **more: Any) -> Export:
    return Export("mill", "custom", records, fields=TYPES, **more)


def tables_of(given: Export) -> dict[str, Table]:
    return rating_tables(list(said_in(given, KIND)))


def test_every_type_of_field_has_its_units() -> None:
    found = tables_of(
        export(
            record(
                "1",
                "a",
                which="x",
                ones=["p", "q"],
                grade=4,
                order=["m", "k", "l"],
                rank={"k": 1, "l": 1, "m": 3},
                each=[{"value": "yes", "reason": "so"}, {"value": "no"}],
                why="Because.",
            ),
            record("1", "b", ones=["r"], order=["k", "l", "m"]),
        )
    )
    units = {name: len(table.ratings.items) for name, table in found.items()}
    assert units == {"which": 1, "ones": 3, "grade": 1, "order": 3, "rank": 3, "each": 2}
    # p, q and r were chosen by one or the other, and by nobody twice.
    assert [row.tolist() for row in found["ones"].ratings.table] == [[1, 0], [1, 0], [0, 1]]
    # Of the pairs kl, km and lm only the first is in the same order.
    assert [a == b for a, b in found["order"].ratings.table.tolist()] == [True, False, False]


def test_alpha_is_that_of_the_answers_that_count() -> None:
    generator = np.random.default_rng(5)
    table = generator.integers(0, 3, (30, 4)).astype(float)
    table[:, 1] = np.where(generator.random(30) < 0.7, table[:, 0], table[:, 1])
    given = [
        record(f"{item}", f"p{person}", which="abc"[int(table[item, person])])
        for item in range(30)
        for person in range(4)
    ]
    void = Record({"id": "0"}, "p9", {"which": "a"}, state="void")
    control = Record({"id": "1"}, "p9", {"which": "a"}, control=True)
    (found,) = overview(export(*given, void, control), KIND).agreement
    assert (found.field, found.level, found.units) == ("which", "nominal", 30)
    assert found.agreement.alpha is not None
    assert found.agreement.alpha.value == pytest.approx(krippendorff_alpha(table))
    low, high = found.agreement.alpha.interval()
    assert low is not None
    assert high is not None
    assert low < found.agreement.alpha.value < high


def test_numbers_of_a_scale_are_near_or_far() -> None:
    given = export(
        record("near", "a", grade=50),
        record("near", "b", grade=60),
        record("far", "a", grade=0),
        record("far", "b", grade=100),
        record("same", "a", grade=7),
        record("same", "b", grade=7),
    )
    found = disagreements(list(said_in(given, KIND)), tables_of(given))
    assert [(one.item, one.agreeing) for one in found] == [("far", 0.0), ("near", pytest.approx(0.9))]
    assert found[0].values == {"a": {"grade": 0}, "b": {"grade": 100}}
    (agreed,) = overview(given, KIND).agreement
    assert agreed.level == "interval"
    assert agreed.agreement.cohen is None


def spans(*marked: tuple[int, int, str]) -> list[dict[str, Any]]:
    return [{"start": start, "end": end, "label": label, "note": ""} for start, end, label in marked]


def test_passages_are_compared_by_their_overlap() -> None:
    given = export(
        record("1", "a", marked=spans((0, 10, "typo"), (20, 30, "error"))),
        record("1", "b", marked=spans((5, 10, "typo"), (20, 30, "typo"))),
        record("1", "c", why="There is nothing."),
        record("2", "a", marked=spans((3, 9, "typo"))),
        record("2", "b", marked=spans((3, 9, "typo"))),
        record("3", "a", why="Nobody marked anything."),
    )
    found = {one.field: one for one in overview(given, KIND).agreement}
    overlap = found["marked"].agreement.overlap
    assert (found["marked"].level, found["marked"].units) == ("passages", 2)
    # a and b share 5 of 20 and 15 characters in 1, c shares none with either; all 6 in 2.
    assert overlap is not None
    assert overlap.value == pytest.approx(2 * (5 + 6) / ((20 + 15) + 20 + 15 + (6 + 6)))
    low, high = overlap.interval()
    assert low is not None
    assert high is not None
    assert low < overlap.value < high
    assert [one.annotator for one in marks_in(list(said_in(given, KIND)))["marked"]] == list("abcab")
    nothing = export(record("1", "a", marked=[]), record("1", "b", marked=[]))
    assert overview(nothing, KIND).agreement == ()


def test_the_same_answer_throughout_is_told() -> None:
    given = export(*(record(f"{n}", person, which="x") for n in range(3) for person in "ab"))
    told = overview(given, KIND).as_dict()
    assert [(one["field"], one["alike"], one["alpha"]) for one in told["agreement"]] == [
        ("which", True, None)
    ]
    assert "which: everybody gave the same answer throughout, 3 units" in overview_lines(told)
    assert overview_lines(told)[0].endswith("to 3 items by 2 people")
    assert not [line for line in overview_lines(told) if "pay" in line]  # nobody is paid


def test_items_that_all_agree_on_are_no_disagreement() -> None:
    given = export(
        *(record("split", person, which=said) for person, said in zip("abc", "xxy", strict=True)),
        *(record("one", person, which="x", why=person) for person in "abc"),
    )
    found = disagreements(list(said_in(given, KIND)), tables_of(given))
    assert [(one.item, one.agreeing) for one in found] == [("split", pytest.approx(1 / 3))]
    assert found[0].values["c"] == {"which": "y"}


def test_shares_of_items_and_annotators_have_wilsons_interval() -> None:
    # Two people and one pair an item: 15 of 20 agree.
    given = export(
        *(record(f"{n}", "a", which="x") for n in range(20)),
        *(record(f"{n}", "b", which="x" if n < 15 else "y") for n in range(20)),
    )
    found = overview(given, KIND)
    expected = binomtest(15, 20).proportion_ci(method="wilson")
    for one in found.people:
        assert one.agreeing == pytest.approx(0.75)
        assert one.agreeing_ci95 == pytest.approx((expected.low, expected.high))
        assert one.kappa_ci95 is not None
    # An item's share is worth half as many pairs as there are judgments: here one, which does not agree.
    expected = binomtest(0, 1).proportion_ci(method="wilson")
    for item in found.disagreements:
        assert item.agreeing_ci95 == pytest.approx((expected.low, expected.high))
    told = overview_lines(found.as_dict())
    assert f"disagreed on: 15 (0% of pairs agree, 0% to {expected.high:.0%})" in told


def test_cohens_kappa_is_told_with_the_units_that_its_pairs_share() -> None:
    given = export(
        *(record(f"{n}", "a", which="xy"[n % 2]) for n in range(8)),
        *(record(f"{n}", "b", which="xy"[n % 2]) for n in range(8)),
        *(record(f"{n}", "c", which="x") for n in range(6, 14)),  # shares two with either: too few
    )
    (cohen,) = (line for line in overview_lines(overview(given, KIND).as_dict()) if "cohen" in line)
    assert cohen.startswith("which: cohen 1.000 ")
    assert cohen.endswith(", 8 units")


def test_progress_and_times_go_by_stage() -> None:
    given = export(
        *(Record({"id": f"{n}"}, f"p{n % 2}", {}, stage="writing", seconds=n * 10.0) for n in range(1, 6)),
        Record({"id": "t"}, "p1", {}, phase="training", seconds=999),
        wanted={"writing": 8, "reviewing": 4},
    )
    writing, reviewing = progress(given)
    assert writing == ("writing", 5, 8, 5, 2)
    assert reviewing == ("reviewing", 0, 4, 0, 0)
    (found,) = times(given)
    assert (found.answers, found.median, found.quartiles) == (5, 30.0, (20.0, 40.0))
    # 10, 20 and 30 are in the bins that they end.
    assert found.bins[:6] == (0, 1, 1, 1, 2, 0)
    assert sum(found.bins) == 5


def test_an_hours_pay_is_the_median_over_people_and_bonuses_are_in_cents() -> None:
    given = export(
        *(record(f"{n}", "quick", 60, which="a") for n in range(10)),
        *(record(f"{n}", "slow", 360, which="a") for n in range(10)),
        *(record(f"{n}", "missed", 120, which="b") for n in range(10)),
        Record({"id": "c"}, "missed", {"which": "b"}, control=True, right=False, seconds=0),
        settings={"pay": 0.15, "bonus": 0.85},
        people=tuple(Person(name) for name in ("quick", "slow", "missed", "late")),
    )
    found = overview(given, KIND)
    by_name = {one.annotator: one for one in found.people}
    assert by_name["quick"].per_hour == pytest.approx(60.0)
    assert by_name["slow"].per_hour == pytest.approx(10.0)
    assert by_name["missed"].per_hour == pytest.approx(11 * 0.15 / (20 / 60))
    assert (by_name["missed"].controls, by_name["missed"].missed) == (1, 1)
    assert by_name["quick"].agreeing == pytest.approx(0.5)
    assert by_name["late"].per_hour is None
    assert by_name["late"].answers == 0
    assert found.pay_per_hour == pytest.approx(10.0)
    assert found.owed == pytest.approx(31 * 0.15 + 20 * 0.85)
    owed = bonuses(given, KIND)
    assert owed == {"quick": 850, "slow": 850}
    assert bonus_csv(owed, {"slow": "5f3a", "missed": "77"}) == "participant_id,amount\n5f3a,8.50\n"


def test_an_overview_is_json_even_of_nothing() -> None:
    json.dumps(overview(export(), KIND).as_dict(), allow_nan=False)
    alike = export(*(record(f"{n}", person, which="x") for n in range(6) for person in "ab"))
    found = json.loads(json.dumps(overview(alike, KIND).as_dict(), allow_nan=False))
    assert found["agreement"][0]["alpha"] is None
    assert found["times"][0]["median"] == 10.0
