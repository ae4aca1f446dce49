"""What is saved, replaced, replayed and refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from sqlalchemy import func, select

from ensue.benchmarks.people.export import Export
from ensue.benchmarks.people.export import read as read_export
from ensue.errors import EnsueError
from ensue.platform.annotation import exporting
from ensue.platform.annotation.answering import Unanswered
from ensue.platform.clock import SetClock
from ensue.platform.database.schema import answer_history, answers
from ensue.platform.refusals import Conflict, Invalid, NotFound
from ensue.platform.service import Platform
from tests.platform.annotation.working import Person, item, make, people


def saved(platform: Platform) -> tuple[object, bool, int]:
    """Return the only answer there is, and how many saves are in the history."""
    with platform.database.reading() as connection:
        row = connection.execute(select(answers.c.given, answers.c.is_final)).one()
        count = connection.execute(select(func.count()).select_from(answer_history)).scalar_one()
    return row.given, row.is_final, count


def test_the_last_final_value_is_the_answer_and_all_are_in_the_history(platform: Platform) -> None:
    ada = Person(platform, make(platform, [item("w")]), "ada")
    held = ada.held()
    told = ada.save(held, final=False, values={"why": "So"}, seq=1)
    assert (told["final"], told["seq"]) == (False, 1)
    assert saved(platform) == ({"why": "So"}, False, 1)
    assert ada.save(held, "no", seq=2)["final"] is True
    told = ada.save(held, values={"label": "yes"}, final=False, seq=3)
    assert (told["final"], told["seq"]) == (True, 2)
    assert saved(platform) == ({"label": "no"}, True, 3)  # a draft does not take its place
    ada.save(held, "yes", seq=4)
    assert saved(platform) == ({"label": "yes"}, True, 4)


def test_a_save_that_was_overtaken_replaces_nothing(platform: Platform) -> None:
    ada = Person(platform, make(platform, [item("w")]), "ada")
    held = ada.held()
    ada.save(held, "yes", seq=5, final=False)
    for late in (5, 4):
        told = ada.save(held, "no", seq=late)
        assert (told["seq"], told["final"]) == (5, False)
    assert saved(platform) == ({"label": "yes"}, False, 3)


def test_a_key_means_one_save(platform: Platform, clock: SetClock) -> None:
    ada = Person(platform, make(platform, [item("w")]), "ada")
    held = ada.held()
    first = ada.save(held, "yes", seq=1, key="k", final=False)
    ada.save(held, "no", seq=2, final=False)
    clock.move(minutes=3)
    assert ada.save(held, "yes", seq=1, key="k", final=False) == first
    assert saved(platform) == ({"label": "no"}, False, 2)
    with pytest.raises(Invalid, match="Idempotency-Key"):
        ada.save(held, "no", seq=1, key="k", final=False)
    with pytest.raises(Invalid):
        ada.save(held, "no", seq=1, key="\x00")


def test_what_is_incomplete_is_no_answer_and_what_is_of_another_form_no_draft(platform: Platform) -> None:
    ada = Person(platform, make(platform, [item("w")]), "ada")
    held = ada.held()
    with pytest.raises(Unanswered) as refused:
        ada.save(held, values={"why": "So"})
    assert refused.value.problems == [{"field": "label", "problem": "Does it rain is not answered."}]
    for values in ({"label": "perhaps"}, {"other": 1}, {"why": 3}, {"why": "\x00"}, {"why": "\ud800"}):
        with pytest.raises(Unanswered):
            ada.save(held, values=values, final=False)


def test_times_are_no_longer_than_went_by_unless_the_clock_was_set_back(
    platform: Platform, clock: SetClock
) -> None:
    ada = Person(platform, make(platform, [item("w")]), "ada")
    held = ada.held()

    def kept() -> tuple[int, int]:
        with platform.database.reading() as connection:
            row = connection.execute(select(answers.c.active_ms, answers.c.elapsed_ms)).one()
        return row.active_ms, row.elapsed_ms

    clock.move(seconds=10)
    ada.save(held, seq=1, active_ms=4000, elapsed_ms=8000, final=False)
    assert kept() == (4000, 8000)
    ada.save(held, seq=2, active_ms=90_000, elapsed_ms=90_000, final=False)
    assert kept() == (10_000, 10_000)
    clock.move(seconds=-60)
    ada.save(held, seq=3, active_ms=11_000, elapsed_ms=12_000)
    assert kept() == (11_000, 12_000)


def test_an_answer_can_be_corrected_for_as_long_as_a_lease_lasts(platform: Platform, clock: SetClock) -> None:
    ada = Person(platform, make(platform, [item("w"), item("x")], lease_minutes=30), "ada")
    held = ada.held()
    ada.save(held, "yes", seq=1)
    ada.held()
    clock.move(minutes=29)
    ada.save(held, "no", seq=2)
    clock.move(minutes=29)
    ada.save(held, "yes", seq=3)
    clock.move(minutes=31)
    with pytest.raises(Conflict, match="too long ago"):
        ada.save(held, "no", seq=4)


def test_anothers_work_is_not_there(platform: Platform) -> None:
    ada, bob = people(platform, make(platform, [item("w"), item("x")]), 2)
    held = ada.held()
    for what in (
        lambda: bob.save(held),
        lambda: bob.part.assigning.heartbeat(bob.id, held),
        lambda: bob.part.assigning.release(bob.id, held),
    ):
        with pytest.raises(NotFound):
            what()


def test_an_export_has_pseudonyms_gold_and_what_is_void(platform: Platform, clock: SetClock) -> None:
    items = [item("t", phase="training"), item("w"), item("=x", gold={"label": "no"})]
    project = make(platform, items, labels=2, pay=0.5)
    ada, bob = people(platform, project, 2)
    for person, label in ((ada, "yes"), (bob, "no")):
        for _ in range(3):
            held = person.held()
            clock.move(seconds=20)
            person.save(held, label, active_ms=7500, elapsed_ms=9000)
    bob.part.people.exclude("rain", bob.now.pseudonym)
    with platform.database.reading() as connection:
        export = exporting.export_of(connection, project)
        table = exporting.as_csv(list(exporting.lines(connection, project))[1:])
        everything = list(exporting.history_lines(connection, project))
    assert (export.kind, export.wanted, export.settings["pay"]) == ("custom", {"": 4}, 0.5)
    assert export.fields == {"label": "choice", "why": "text"}
    states = {one.annotator: one.state for one in export.people}
    assert states == {ada.now.pseudonym: "active", bob.now.pseudonym: "excluded"}
    assert [(one.item, one.right) for one in export.answers()] == [("w", None), ("=x", False)]
    assert {one.annotator for one in export.answers()} == {ada.now.pseudonym}
    assert {one.state for one in export.records if one.annotator == bob.now.pseudonym} == {"answered", "void"}
    assert next(export.answers()).seconds == 7.5
    assert len(everything) == 6
    assert "\n'=x," in table
    assert "worker-" not in table + str(export) + str(everything)


def test_an_export_that_was_cut_off_at_a_line_is_noticed(platform: Platform) -> None:
    project = make(platform, [item("w"), item("x")], labels=1, control_rate=0.0)
    (ada,) = people(platform, project, 1)
    ada.do_all()
    with platform.database.reading() as connection:
        head, *lines = exporting.lines(connection, project)
    assert len(Export.of(head, lines).records) == 2
    with pytest.raises(EnsueError, match="has 1 of the 2 answers"):
        Export.of(head, lines[:1])


def test_an_export_that_was_edited_is_noticed_whatever_it_was(platform: Platform, tmp_path: Path) -> None:
    project = make(platform, [item("w"), item("x")], labels=1, control_rate=0.0)
    (ada,) = people(platform, project, 1)
    ada.do_all()
    with platform.database.reading() as connection:
        written = [json.loads(json.dumps(line)) for line in exporting.lines(connection, project)]
    path = tmp_path / "rain.jsonl"

    def read_again() -> Export:
        path.write_text("".join(json.dumps(line) + "\n" for line in written))
        return read_export(path)

    assert len(read_again().records) == 2
    places = [(line, key) for line in written for key in line if key not in {"ensue", "version", "digest"}]
    for line, key in places:
        kept = line[key]
        for line[key] in ("q", [1], None if kept is not None else 0):
            with pytest.raises(EnsueError, match=r"^\S*rain\.jsonl (was edited|has 2 of|is damaged)"):
                read_again()
        line[key] = kept
    first, last = written[1:]
    written[1:] = [last, first]
    with pytest.raises(EnsueError, match=r"was edited after it was exported; export the project again\.$"):
        read_again()


def test_whoever_asks_to_be_forgotten_is(platform: Platform) -> None:
    project = make(platform, [item("w"), item("x")], labels=1)
    ada, bob = people(platform, project, 2)
    ada.do_all()
    name = ada.now.pseudonym
    ada.part.people.forget("rain", name)
    with platform.database.reading() as connection:
        export = exporting.export_of(connection, project)
        assert not export.records
        assert [one.annotator for one in export.people] == [bob.now.pseudonym]
        assert connection.execute(select(func.count()).select_from(answer_history)).scalar_one() == 0
    assert ada.now.external_id is None
    assert len(bob.do_all()) == 2
    again = Person(platform, project, "worker-0")  # the same worker may come back as somebody new
    assert again.now.pseudonym != name
