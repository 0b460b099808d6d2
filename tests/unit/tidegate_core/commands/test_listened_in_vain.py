"""Requests that come to nothing although rows of the index were written for them.

Found by a review: the rows stayed. Whoever read events by them noted ids of what nobody counted, and the next request that was accepted
had their generation, so that they stood for it with ends from long before it.
"""

from __future__ import annotations

import pytest

from tests.support.builders import MINUTE, SECOND, Doc, a_request, a_spec, an_apply, an_event, on_data, on_run_of
from tests.support.harness.actor_harness import ActorHarness
from tests.support.harness.effect_matchers import a_batch, a_commit
from tests.support.harness.recorded_effects import manifest_text
from tests.support.harness.two_owners import BenchPair
from tidegate_core.language.definitions.quotas import Quota
from tidegate_core.rows.effects import Effect, Inspect, Inspected, Invalid, Read, ReadRange

FIRST = an_apply(a_spec(trigger=on_data("old")), "first")
NO_FILE = Inspected("is no file")


def an_update(request_id: str = "update", trigger: Doc | None = None) -> Doc:
    return an_apply(a_spec(trigger=trigger or on_data()), request_id)


def an_inspection(effect: Effect) -> bool:
    return isinstance(effect, Inspect)


def a_look_at_the_index(effect: Effect) -> bool:
    return isinstance(effect, Read) and any(key.sk == "!VERSION" for key in effect.keys)


def heard(bench: ActorHarness) -> list[object]:
    return [row["event_key"] for row in bench.rows("") if "event_key" in row]


def vectors(bench: ActorHarness) -> int:
    return len(bench.rows("VEC"))


def told_of(bench: ActorHarness | BenchPair) -> list[str]:
    """Returns which data partitions programs were told of."""
    return [manifest_text(order) for order in bench.started]


def refused_by_a_successor(*, before: bool = True) -> ActorHarness:
    """Its owner falls once it listens; the successor's host has no such file."""
    bench = ActorHarness()
    bench.run(SECOND)
    if before:
        bench.request(FIRST)
        bench.run(SECOND)
    bench.crash_at(a_commit("raise_index"))
    bench.answer_with(an_inspection, Inspected(), times=1)
    bench.answer_with(an_inspection, NO_FILE, times=1)
    bench.request(an_update())
    bench.run(2 * SECOND)
    assert bench.status_of("update") == "rejected"
    bench.end_scripts()
    return bench


@pytest.mark.parametrize("before", [True, False], ids=["an update", "a create"])
def test_given_a_successor_that_refuses_it_then_nothing_of_it_is_left(*, before: bool) -> None:
    bench = refused_by_a_successor(before=before)
    assert heard(bench) == ["data/flights/old"] * before
    assert vectors(bench) == before


def test_given_a_repeat_of_an_event_that_nobody_counted_then_it_counts_for_the_request_that_is_accepted() -> None:
    bench = refused_by_a_successor()
    bench.event(an_event("p1"))
    bench.request(an_update("again"))
    bench.run(SECOND)
    assert told_of(bench) == []
    bench.event(an_event("p1"))
    bench.run(SECOND)
    assert told_of(bench) == ["p1"]


def test_given_an_event_of_before_that_is_read_late_then_it_does_not_count_for_the_request_that_is_accepted() -> None:
    bench = refused_by_a_successor()
    bench.hold_back(a_look_at_the_index)
    bench.event(an_event("p1"))
    bench.run(MINUTE)
    bench.request(an_update("again"))
    bench.run(SECOND)
    bench.as_usual()
    bench.run(SECOND)
    assert bench.status_of("again") == "accepted"
    assert told_of(bench) == []


@pytest.mark.parametrize("trigger", [on_data(), on_run_of("up")], ids=["data", "runs"])
def test_given_a_state_that_the_store_does_not_take_then_nothing_of_it_is_left(trigger: Doc) -> None:
    bench = ActorHarness()
    bench.run(SECOND)
    bench.request(FIRST)
    bench.run(SECOND)
    bench.answer_with(a_commit("control"), Invalid("too large"))
    bench.request(an_update(trigger=trigger))
    bench.run(SECOND)
    assert bench.status_of("update") == "rejected"
    assert heard(bench) == ["data/flights/old"]
    assert vectors(bench) == 1


def test_given_a_quota_that_another_create_has_used_up_meanwhile_then_nothing_of_it_is_left() -> None:
    bench = ActorHarness(quotas={"flights": Quota(schedules_max=2)})
    bench.run(SECOND)
    bench.request(an_apply(a_spec("a", on_data("old"))))
    bench.hold_back(a_batch("index"))
    bench.request(an_apply(a_spec("b", on_data("old"))))
    bench.request(an_apply(a_spec("d", on_data("old"))))
    bench.release()
    bench.run(SECOND)
    statuses = [str(bench.status_of(f"apply-{name}")) for name in "abd"]
    assert sorted(statuses) == ["accepted", "accepted", "rejected"]
    assert len(heard(bench)) == 2
    assert vectors(bench) == 2


@pytest.mark.parametrize("effects", range(1, 30))
def test_given_crashes_anywhere_then_what_is_accepted_in_the_end_is_heard_and_nothing_else_is_left(
    effects: int,
) -> None:
    bench = ActorHarness()
    bench.run(SECOND)
    bench.request(FIRST)
    bench.run(SECOND)
    bench.answer_with(a_commit("control"), Invalid("too large"))
    bench.crash_after = bench.effects_outside + effects
    bench.request(an_update())
    bench.run(SECOND)
    bench.request(an_update("again", on_run_of("up")))
    bench.run(MINUTE)
    assert bench.status_of("again") == "accepted"
    assert heard(bench) == ["run/flights/up"]
    assert vectors(bench) == 0


def test_given_a_former_owner_that_goes_on_removing_then_it_takes_nothing_of_what_its_successor_has_activated() -> None:
    pair = BenchPair()
    pair.first.run(SECOND)
    pair.request(FIRST)
    pair.run(SECOND)
    pair.first.answer_with(a_commit("control"), Invalid("too large"))
    pair.first.hold_back(
        lambda effect: isinstance(effect, ReadRange) and effect.range.low.startswith("data/flights/raw")
    )
    pair.request(an_update())
    pair.run(10)
    pair.take_over()
    pair.run(SECOND)
    assert pair.second.status_of("update") == "accepted"
    pair.first.release()
    pair.thaw(pair.first)
    pair.run(SECOND)
    assert pair.first.commits("raise_index")[-1].actions[1:] != ()
    assert len(pair.first.notices("fenced")) == 1
    pair.event(an_event("p1"))
    pair.run(SECOND)
    assert told_of(pair) == ["p1"]


def test_given_a_delete_of_the_schedule_then_nothing_of_a_refused_update_is_left() -> None:
    bench = refused_by_a_successor()
    bench.request(a_request("delete"))
    bench.run(SECOND)
    assert heard(bench) == []
    assert vectors(bench) == 0
