"""Who is given what: slots, leases, controls, phases and later stages."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import pytest
from sqlalchemy import select

from ensue.benchmarks.people import kind as kinds
from ensue.platform.annotation.assigning import LOST, Waiting
from ensue.platform.annotation.phases import HASTY, MISSED, UNQUALIFIED
from ensue.platform.clock import SetClock
from ensue.platform.database.schema import assignments
from ensue.platform.refusals import Conflict, Forbidden, NotFound
from ensue.platform.service import Platform
from ensue.platform.web.app import create_app
from tests.platform.annotation.working import Person, item, make, people


def work(count: int) -> list[kinds.WorkItem]:
    return [item(f"w{number}") for number in range(count)]


def test_each_item_goes_to_as_many_distinct_people_as_it_wants(platform: Platform) -> None:
    project = make(platform, work(6), labels=2, control_rate=0.0)
    done = [one.do_all() for one in people(platform, project, 4)]
    assert Counter(id for own in done for id in own) == Counter({f"w{number}": 2 for number in range(6)})
    assert all(len(set(own)) == len(own) for own in done)
    assert done[0] != done[1]  # the same items, each in an order of their own
    assert sorted(done[0]) == sorted(done[1])


def test_whoever_holds_something_is_given_it_again(platform: Platform) -> None:
    project = make(platform, work(3), labels=1)
    ada = Person(platform, project, "ada")
    assert ada.take() == ada.take()


def test_abandoned_work_returns_and_a_late_save_takes_it_back_only_where_it_is_free(
    platform: Platform, clock: SetClock
) -> None:
    project = make(platform, work(1), labels=1, lease_minutes=30)
    ada, bob = people(platform, project, 2)
    held = ada.held()
    assert bob.take() is None
    assert bob.now.state == "finished"
    clock.move(minutes=31)
    assert ada.save(held, final=False)["final"] is False  # nobody wanted it
    clock.move(minutes=31)
    taken = bob.held()
    assert bob.now.state == "active"
    with pytest.raises(Conflict, match=LOST[:30]):
        ada.save(held, seq=2)
    with pytest.raises(Conflict):
        ada.part.assigning.heartbeat(ada.id, held)
    bob.save(taken)
    assert ada.take() is None


def test_whoever_comes_back_after_a_lease_goes_on_with_what_they_had(
    platform: Platform, clock: SetClock
) -> None:
    project = make(platform, [item("t", phase="training"), *work(1)], labels=1, lease_minutes=30)
    ada, bob = people(platform, project, 2)
    for _ in ("training", "work"):
        held = ada.held()
        clock.move(minutes=31)  # nobody asked meanwhile, so it is not freed yet
        assert ada.take() == held
        ada.save(held)
    assert ada.take() is None
    assert bob.do_all() == []  # no practice, since no work is left


def test_abandoned_work_is_freed_by_itself(platform: Platform, clock: SetClock) -> None:
    project = make(platform, work(2), labels=1, lease_minutes=30)
    ada, bob = people(platform, project, 2)
    ada.held()
    clock.move(minutes=10)
    kept = bob.held()
    assert platform.regularly == []
    create_app(platform)  # what a server does every few seconds
    free, *_ = platform.regularly
    free()
    clock.move(minutes=21)
    free()
    with platform.database.reading() as connection:
        states = dict(connection.execute(select(assignments.c.id, assignments.c.state)).all())
    assert (states.pop(kept), list(states.values())) == ("leased", ["expired"])


def test_heartbeats_keep_a_lease(platform: Platform, clock: SetClock) -> None:
    project = make(platform, work(1), labels=1, lease_minutes=30)
    ada, bob = people(platform, project, 2)
    held = ada.held()
    for _ in range(3):
        clock.move(minutes=20)
        ada.part.assigning.heartbeat(ada.id, held)
    assert bob.take() is None
    ada.save(held)


def test_what_is_given_back_is_anothers_and_comes_last_to_whoever_gave_it_back(platform: Platform) -> None:
    project = make(platform, work(2), labels=1)
    ada, bob = people(platform, project, 2)
    first = ada.held()
    ada.save(first, final=False)
    ada.part.assigning.release(ada.id, first)
    second = ada.held()
    assert second != first
    ada.save(second)
    assert ada.take() == first  # with its draft, since nobody else wanted it
    ada.part.assigning.release(ada.id, first)
    assert bob.do() is not None
    assert ada.take() is None


def test_controls_come_at_their_rate_and_never_twice(platform: Platform) -> None:
    controls = [item(f"c{number}", control=True) for number in range(9)]
    project = make(platform, work(30) + controls, labels=1, control_rate=0.2)
    ada = Person(platform, project, "ada")
    done = ada.do_all()
    asked = [id for id in done if id.startswith("c")]
    assert len(set(asked)) == len(asked)
    assert len(done) == 30 + len(asked)
    places = [place for place, id in enumerate(done) if id.startswith("c")]
    assert {after - before for before, after in pairwise(places)} == {5}
    assert 6 <= len(asked) <= 8


def test_no_control_is_got_rid_of_by_giving_it_back(platform: Platform) -> None:
    controls = [item(f"c{number}", control=True) for number in range(3)]
    project = make(platform, work(8) + controls, labels=1, control_rate=0.5)
    ada = Person(platform, project, "ada")
    while not ada.key_of(held := ada.held()).startswith("c"):
        ada.save(held)
    seen = []
    for _ in range(5):
        seen.append(ada.key_of(held))
        ada.part.assigning.release(ada.id, held)
        held = ada.held()
    assert sorted(seen[:3]) == ["c0", "c1", "c2"]  # another each time, and after all of them one again
    assert set(seen) == {"c0", "c1", "c2"}
    ada.save(held)
    done = ada.do_all()
    assert len([id for id in done if id.startswith("c")]) == 2


def test_whoever_misses_controls_is_stopped_and_the_work_is_given_again(platform: Platform) -> None:
    controls = [item(f"c{number}", control=True) for number in range(4)]
    project = make(platform, work(8) + controls, labels=1, control_rate=0.5, most_missed=1)
    ada, bob = people(platform, project, 2)
    with pytest.raises(Forbidden, match=MISSED[:40]):
        ada.do_all("no")
    assert (ada.now.state, ada.now.reason) == ("stopped", MISSED)
    done = bob.do_all("yes")
    assert len([id for id in done if id.startswith("w")]) == 8
    with platform.database.reading() as connection:
        query = select(assignments.c.state).where(assignments.c.participant_id == ada.id)
        assert set(connection.execute(query).scalars()) == {"void"}


def test_whoever_is_too_fast_too_often_is_stopped(platform: Platform, clock: SetClock) -> None:
    project = make(platform, [item(f"w{n}", least=5.0) for n in range(5)], labels=1, most_hasty=1)
    ada = Person(platform, project, "ada")
    held = ada.held()
    clock.move(seconds=6)
    ada.save(held, active_ms=5000, elapsed_ms=6000)
    held = ada.held()
    clock.move(seconds=6)
    ada.save(held, active_ms=4999, elapsed_ms=6000)
    assert ada.now.state == "active"
    held = ada.held()
    clock.move(seconds=1)  # whatever the browser says, no more than a second went by
    ada.save(held, active_ms=9000, elapsed_ms=9000)
    assert (ada.now.state, ada.now.reason) == ("stopped", HASTY)


def test_training_then_qualification_then_work(platform: Platform) -> None:
    items = [item("t0", phase="training"), item("t1", phase="training")]
    items += [item(f"q{number}", phase="qualification") for number in range(4)] + work(2)
    project = make(platform, items, labels=3, bar=0.75)
    ada, bob = people(platform, project, 2)
    held = ada.held()
    told = ada.save(held, "no")
    assert told["feedback"] == {"right": False, "gold": {"label": "yes"}, "words": "It does."}
    with pytest.raises(Conflict, match="shown already"):
        ada.save(held, "yes", seq=2)
    assert ada.do() == "t1"
    assert ada.now.phase == "qualification"
    first = ada.held()
    assert ada.save(first, "no")["feedback"] is None
    ada.save(first, "yes", seq=2)  # within the lease, anybody may think again
    for label in ("yes", "no", "yes"):
        ada.do(label)
    assert (ada.now.phase, ada.now.state) == ("work", "active")
    with pytest.raises(Conflict, match="over"):
        ada.save(first, "no", seq=3)
    assert len(ada.do_all()) == 2
    for label in ("yes", "yes", "yes", "yes", "no", "no"):
        bob.do(label)
    assert (bob.now.state, bob.now.reason) == ("stopped", UNQUALIFIED)
    with pytest.raises(Forbidden):
        bob.take()


def test_the_median_of_those_before_is_the_bar_once_five_are_there(platform: Platform) -> None:
    items = [item(f"q{number}", phase="qualification") for number in range(4)] + work(1)
    project = make(platform, items, labels=9, bar="median")
    rights = [4, 2, 4, 3, 3, 2, 3]
    states = []
    for person, right in zip(people(platform, project, len(rights)), rights, strict=True):
        for place in range(4):
            person.do("yes" if place < right else "no")
        states.append(person.now.state)
    # Half is enough for the first five; the sixth is below the median of 4, 2, 4, 3 and 3, the last is at it.
    assert states == ["active"] * 5 + ["stopped", "active"]


def test_nobody_does_more_than_they_may(platform: Platform) -> None:
    project = make(platform, work(5), labels=2, most_items=3, control_rate=0.0)
    ada = Person(platform, project, "ada")
    assert len(ada.do_all()) == 3
    assert ada.now.state == "finished"


def test_a_later_stage_is_made_of_what_was_said_and_its_authors_are_not_given_it(
    platform: Platform, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(kinds._OWN, "staged", "tests.platform.annotation.working:STAGED")
    built = kinds.kind("staged").build(None, {}, 0)
    project = make(platform, built.items, "staged", labels=2, control_rate=0.0)
    ada, bob, eve = people(platform, project, 3)
    assert {ada.do(), ada.do()} == {"a-write", "b-write"}
    assert isinstance(ada.take(), Waiting)
    held = bob.held()
    bob.save(held)
    with pytest.raises(Conflict, match="Others are at work"):
        bob.save(held, "no", seq=2)
    assert bob.do() is not None
    assert isinstance(bob.take(), Waiting)
    assert sorted(eve.do_all()) == ["a-read", "b-read"]
    assert (ada.take(), bob.take()) == (None, None)


def test_items_of_a_group_come_in_a_row(platform: Platform) -> None:
    items = [item(f"{group}{number}", group=group) for number in range(4) for group in "xyz"]
    project = make(platform, items, labels=2, control_rate=0.0)
    for person in people(platform, project, 2):
        done = [id[0] for id in person.do_all()]
        assert [done[place] for place in range(0, 12, 4)] == [done[place + 3] for place in range(0, 12, 4)]


def test_paused_nobody_is_given_anything_and_what_is_held_can_be_saved(platform: Platform) -> None:
    project = make(platform, work(3), labels=1)
    ada, bob = people(platform, project, 2)
    held = ada.held()
    ada.part.projects.set_state("rain", "paused")
    with pytest.raises(Forbidden, match="paused"):
        bob.take()
    ada.save(held)
    ada.part.projects.set_state("rain", "open")
    held = ada.held()
    ada.part.projects.set_state("rain", "closed")
    with pytest.raises(Conflict):
        ada.save(held)


def test_a_top_up_has_everybody_back(platform: Platform) -> None:
    items = [item("w0"), item("w1", wanted=1)]
    project = make(platform, items, labels=1)
    ada, bob = people(platform, project, 2)
    assert len(ada.do_all()) == 2
    assert bob.do_all() == []
    ada.part.projects.top_up("rain", 3)
    assert bob.do_all() == ["w0"]


def test_an_excluded_annotators_work_is_done_again(platform: Platform) -> None:
    controls = [item(f"c{number}", control=True) for number in range(2)]
    project = make(platform, work(2) + controls, labels=1, control_rate=0.5)
    ada, bob = people(platform, project, 2)
    assert len([id for id in ada.do_all() if id.startswith("w")]) == 2
    assert bob.do_all() == []
    name = ada.now.pseudonym
    assert ada.part.people.exclude("rain", name) == 2  # controls are given again to nobody
    assert len([id for id in bob.do_all() if id.startswith("w")]) == 2
    with pytest.raises(Forbidden):
        ada.take()
    with pytest.raises(Conflict):
        ada.part.people.exclude("rain", name)
    with pytest.raises(NotFound):
        ada.part.people.exclude("rain", "nobody")
