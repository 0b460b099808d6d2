"""What a shard counts of the moment between a wide resume and its arrival there: nothing of it is lost, and nothing of the span counts."""

from __future__ import annotations

import pytest

from tests.support.builders import (
    MINUTE,
    SECOND,
    Doc,
    a_request,
    a_send,
    a_spec,
    all_of,
    an_apply,
    an_event,
    every,
    on_data,
    on_run_of,
)
from tests.support.harness.actor_harness import ActorHarness, Behaviour
from tests.support.harness.recorded_effects import manifest_text
from tests.unit.tidegate_core.commands.test_controls_heard_late import deafly, hear
from tests.unit.tidegate_core.commands.test_scope_commands import ask, commit_of, control, controls
from tidegate_core.rows import keys
from tidegate_core.rows.store_operations import Item, Key
from tidegate_core.shard.events.deferred_inbox import MOVED_WITHIN_MS, DeferredRows


@pytest.fixture
def bench() -> ActorHarness:
    bench = ActorHarness(behaviour=Behaviour(runs_for=100))
    bench.run(SECOND)
    return bench


@pytest.fixture
def left(monkeypatch: pytest.MonkeyPatch) -> list[Key]:
    """Each row that was looked at and left, as often as it was."""
    looks: list[Key] = []
    leave = DeferredRows.leave

    def noted(rows: DeferredRows, key: Key, appended: int) -> None:
        looks.append(key)
        leave(rows, key, appended)

    monkeypatch.setattr(DeferredRows, "leave", noted)
    return looks


def suspended_with(bench: ActorHarness, *documents: Doc) -> None:
    for document in documents:
        bench.request(document)
    ask(bench, control("suspend"))
    assert {bench.status_of(str(each["id"])) for each in documents} <= {"accepted"}
    bench.run(MINUTE)


def resumed_unheard(bench: ActorHarness, meanwhile: int = 2 * SECOND, number: int = 1) -> None:
    """The log's ends are read and the end of the span is written; no shard has heard of it."""
    before = len(bench.commits("move_controls"))
    deafly(bench, control("resume", request_id=f"resume-{number}"), meanwhile)
    assert len(bench.commits("move_controls")) == before + 1


def heard(bench: ActorHarness) -> None:
    hear(bench, control("resume", request_id="resume-1"))


def rows_of_events(bench: ActorHarness) -> list[Item]:
    return [row for row in bench.rows("I#") if row["kind"] in {"G", "X"}]


def told(bench: ActorHarness) -> list[str]:
    return [manifest_text(order) for order in bench.started]


# -- what counts ----------------------------------------------------------------------------------------------------------


def test_given_an_event_between_a_resume_and_its_arrival_then_it_counts(bench: ActorHarness) -> None:
    suspended_with(bench, an_apply(a_spec(trigger=on_data())))
    resumed_unheard(bench)
    bench.event(an_event("2026"))
    bench.run(3 * SECOND)
    assert bench.started == []
    heard(bench)
    assert told(bench) == ["2026"]
    assert bench.rows("I#") == []


def test_given_an_event_of_the_span_itself_then_it_is_left_too_and_does_not_count(bench: ActorHarness) -> None:
    suspended_with(bench, an_apply(a_spec(trigger=on_data())))
    bench.event(an_event("2025"))
    bench.run(SECOND)
    assert len(bench.rows("I#")) == 1
    ask(bench, control("resume"))
    bench.run(MINUTE)
    assert bench.started == []
    assert bench.rows("I#") == []


def test_given_events_of_the_span_and_from_behind_it_then_the_vector_tells_them_apart(bench: ActorHarness) -> None:
    suspended_with(bench, an_apply(a_spec(trigger=on_data(count=2))))
    bench.event(an_event("2025"))
    bench.run(SECOND)
    resumed_unheard(bench)
    bench.event(an_event("2026"))
    bench.run(SECOND)
    heard(bench)
    bench.event(an_event("2027"))
    bench.run(5 * SECOND)
    assert told(bench) == ["2026,2027"]


def test_given_the_end_of_a_run_between_a_resume_and_its_arrival_then_it_counts(bench: ActorHarness) -> None:
    """Of another namespace, which nobody had suspended."""
    up = an_apply({**a_spec("up", every("1h")), "namespace": "orders"})
    suspended_with(bench, up, an_apply(a_spec("down", on_run_of("orders/up"))))
    resumed_unheard(bench)
    bench.request({**a_request("trigger", "up"), "namespace": "orders"})
    bench.run(3 * SECOND)
    assert [order.file for order in bench.started] == ["/jobs/up.py"]
    heard(bench)
    assert [order.file for order in bench.started] == ["/jobs/up.py", "/jobs/down.py"]


def test_given_a_shard_that_hears_of_the_resume_after_minutes_then_what_came_meanwhile_counts(
    bench: ActorHarness,
) -> None:
    """A row's age is that at the last read of the controls, and none has come back since."""
    suspended_with(bench, an_apply(a_spec(trigger=on_data())))
    resumed_unheard(bench)
    bench.event(an_event("2026"))
    bench.run(5 * MINUTE)
    heard(bench)
    assert told(bench) == ["2026"]


def test_given_a_shard_that_is_not_done_with_the_suspend_for_minutes_then_what_came_behind_the_resume_counts() -> None:
    """It knows that there is a resume, and lets messages of another namespace go meanwhile: reads of the controls go on, and say nothing newer."""
    bench = ActorHarness(behaviour=Behaviour(runs_for=100), shards=1)
    bench.run(SECOND)
    bench.request(an_apply(a_spec(trigger=on_data())))
    bench.request(a_send("m-1", after="1s"))
    for namespace in ("orders", "flights"):
        bench.request(control("suspend", namespace))
        bench.run(2 * SECOND)
    bench.hold_back(commit_of("let_go"))
    for namespace in ("orders", "flights"):
        bench.request(control("resume", namespace))
        bench.run(SECOND)
    bench.event(an_event("2026"))
    bench.run(8 * MINUTE)
    assert len(bench.rows("I#")) == 3, "both controls wait for their receipts"
    bench.release()
    bench.run(MINUTE)
    assert told(bench) == ["2026"]
    assert bench.rows("I#") == []


def test_given_rows_that_were_left_then_they_come_before_what_comes_behind_the_resume(bench: ActorHarness) -> None:
    """Three by three: who counted the later ones first would tell the first job of them."""
    suspended_with(bench, an_apply(a_spec(trigger={**on_data(count=3), "take": "exactly_n"}, overlap="allow")))
    resumed_unheard(bench)
    for number in (1, 2):
        bench.event(an_event(str(number)))
        bench.run(SECOND)
    bench.end_scripts()
    bench.hold_back(commit_of("controls"), times=99)
    bench.release()
    for number in (3, 4, 5, 6):
        bench.event(an_event(str(number)))  # What counts them is queued as the lease takes the version.
        bench.run(SECOND)
    bench.as_usual()
    bench.run(10 * SECOND)
    assert told(bench) == ["1,2,3", "4,5,6"]


def test_given_a_composite_then_what_was_left_meets_what_comes_behind_the_resume(bench: ActorHarness) -> None:
    both = all_of({**on_data("a"), "ttl": "10s"}, {**on_data("b"), "ttl": "10s"})
    suspended_with(bench, an_apply(a_spec(trigger=both)))
    resumed_unheard(bench)
    bench.event(an_event("1", "a"))
    bench.run(SECOND)
    heard(bench)
    bench.event(an_event("1", "b"))
    bench.run(5 * SECOND)
    assert len(bench.started) == 1


# -- what does not, and goes ----------------------------------------------------------------------------------------------


def test_given_a_long_span_then_a_row_is_left_once_and_goes_without_a_resume(
    bench: ActorHarness, left: list[Key]
) -> None:
    suspended_with(bench, an_apply(a_spec(trigger=on_data())))
    bench.event(an_event("2026"))
    bench.run(MOVED_WITHIN_MS - SECOND)
    assert len(bench.rows("I#")) == 1
    bench.run(11 * SECOND)
    assert bench.rows("I#") == []
    assert len(left) == 1
    assert len(bench.commits("count")) == 1
    ask(bench, control("resume"))
    assert bench.started == []


def test_given_an_old_backlog_that_is_read_within_the_span_then_its_rows_are_not_left(
    bench: ActorHarness, left: list[Key]
) -> None:
    bench.request(an_apply(a_spec(trigger=on_data())))
    bench.run(SECOND)
    bench.hold_back(commit_of("cursor"))
    bench.event(an_event("2025"))
    ask(bench, control("suspend"))
    bench.run(2 * MINUTE)
    bench.as_usual()
    bench.run(2 * SECOND)
    assert bench.rows("I#") == []
    assert left == []


def test_given_a_control_of_another_namespace_then_what_was_left_is_not_looked_at(
    bench: ActorHarness, left: list[Key]
) -> None:
    suspended_with(bench, an_apply(a_spec(trigger=on_data())))
    bench.event(an_event("2026"))
    bench.run(SECOND)
    ask(bench, control("suspend", "orders"))
    ask(bench, control("resume", "orders"))
    assert len(left) == 1
    assert len(bench.rows("I#")) == 1


def test_given_a_wider_suspend_that_goes_on_then_the_inner_resume_lets_nothing_count(bench: ActorHarness) -> None:
    suspended_with(bench, an_apply(a_spec(trigger=on_data())), control("suspend", None))
    resumed_unheard(bench)
    bench.event(an_event("2026"))
    bench.run(SECOND)
    heard(bench)
    assert bench.started == []
    ask(bench, control("resume", None))
    bench.event(an_event("2027"))
    bench.run(5 * SECOND)
    assert told(bench) == ["2027"]
    assert bench.rows("I#") == []


@pytest.mark.parametrize("pause", [0, SECOND])
def test_given_a_suspend_right_behind_the_resume_then_what_came_between_them_is_dropped_by_that(
    bench: ActorHarness, pause: int
) -> None:
    """The shard hears of both at once. Who hears of each makes evidence of it, which the suspend ends."""
    suspended_with(bench, an_apply(a_spec(trigger=on_data())))
    resumed_unheard(bench)
    bench.event(an_event("2026"))
    bench.run(SECOND)
    bench.request(control("suspend", request_id="again"))
    bench.run(pause)
    heard(bench)
    bench.run(5 * SECOND)
    assert bench.status_of("again") == "accepted"
    assert controls(bench).covers("flights")
    assert bench.started == []
    ask(bench, control("resume", request_id="at last"))
    bench.run(MINUTE)
    assert bench.started == []
    assert bench.rows("I#") == []


# -- requests meanwhile ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "document",
    [
        pytest.param(a_request("delete"), id="delete"),
        pytest.param(a_request("suspend"), id="suspend"),
        pytest.param(an_apply(a_spec(trigger=on_data("other")), "update"), id="update"),
    ],
)
def test_given_a_request_on_the_schedule_then_what_was_left_of_before_counts_for_nothing(
    bench: ActorHarness, document: Doc
) -> None:
    suspended_with(bench, an_apply(a_spec(trigger=on_data())))
    resumed_unheard(bench)
    bench.event(an_event("2026"))
    bench.run(SECOND)
    bench.request(document)
    bench.run(SECOND)
    assert bench.status_of(str(document["id"])) == "accepted"
    heard(bench)
    bench.run(5 * SECOND)
    assert bench.started == []
    assert bench.rows("I#") == []


def test_given_an_upstream_that_is_deleted_meanwhile_then_its_end_of_before_counts_first(bench: ActorHarness) -> None:
    up = an_apply({**a_spec("up", every("1h")), "namespace": "orders"})
    either = {"type": "any_of", "triggers": [on_run_of("orders/up"), on_data()]}
    suspended_with(bench, up, an_apply(a_spec("down", either)))
    resumed_unheard(bench)
    bench.request({**a_request("trigger", "up"), "namespace": "orders"})
    bench.run(SECOND)
    bench.request({**a_request("delete", "up"), "namespace": "orders"})
    bench.run(SECOND)
    assert [str(row["kind"]) for row in rows_of_events(bench)] == ["G", "X"]
    heard(bench)
    assert [order.file for order in bench.started] == ["/jobs/up.py", "/jobs/down.py"]
    assert bench.rows("I#") == []


def test_given_an_upstream_that_is_deleted_in_a_long_span_then_who_waits_for_it_ends_all_the_same(
    bench: ActorHarness,
) -> None:
    up = an_apply({**a_spec("up", every("1h")), "namespace": "orders"})
    suspended_with(bench, up, an_apply(a_spec("down", on_run_of("orders/up"))))
    bench.request({**a_request("delete", "up"), "namespace": "orders"})
    bench.run(MOVED_WITHIN_MS + 10 * SECOND)
    (state,) = [row for row in bench.rows("S#") if row["name"] == "down"]
    assert state["status"] == "deleted"
    assert bench.rows("I#") == []


def test_given_many_rows_that_were_left_then_requests_are_answered_as_before(bench: ActorHarness) -> None:
    suspended_with(bench, an_apply(a_spec(trigger=on_data())))
    for number in range(40):
        bench.event(an_event(str(number)))
        bench.run(50)
    assert len(bench.rows("I#")) == 40
    bench.request(an_apply(a_spec("another", trigger=every("1h"))))
    bench.run(500)
    assert bench.status_of("apply-another") == "accepted"


def test_given_many_rows_that_were_left_then_they_are_read_at_a_bounded_pace(bench: ActorHarness) -> None:
    suspended_with(bench, an_apply(a_spec(trigger=on_data())))
    for number in range(200):
        bench.event(an_event(str(number)))
        bench.run(10)
    before = reads_of_the_inbox(bench)
    for number in range(200, 300):
        bench.event(an_event(str(number)))
        bench.run(10)
    assert reads_of_the_inbox(bench) - before <= 6


def reads_of_the_inbox(bench: ActorHarness) -> int:
    return sum(getattr(getattr(each, "range", None), "low", "") == "I#" for each in bench.asked)


# -- who takes over -------------------------------------------------------------------------------------------------------


def test_given_the_owner_falls_before_it_hears_then_its_successor_counts_what_was_left(bench: ActorHarness) -> None:
    suspended_with(bench, an_apply(a_spec(trigger=on_data())))
    resumed_unheard(bench)
    bench.event(an_event("2026"))
    bench.run(SECOND)
    bench.as_usual()
    bench.crash()
    bench.run(5 * SECOND)
    assert told(bench) == ["2026"]


def test_given_the_owner_falls_within_the_span_then_its_successor_leaves_the_rows_as_well(bench: ActorHarness) -> None:
    suspended_with(bench, an_apply(a_spec(trigger=on_data())))
    bench.event(an_event("2025"))
    bench.run(SECOND)
    bench.crash()
    bench.run(5 * SECOND)
    assert len(bench.rows("I#")) == 1
    resumed_unheard(bench)
    bench.event(an_event("2026"))
    bench.run(SECOND)
    heard(bench)
    assert told(bench) == ["2026"]


@pytest.mark.parametrize("name", ["controls", "controls_done", "count"])
def test_given_the_owner_falls_as_it_takes_them_up_then_each_is_counted_once(bench: ActorHarness, name: str) -> None:
    suspended_with(bench, an_apply(a_spec(trigger=on_data())))
    resumed_unheard(bench)
    bench.event(an_event("2026"))
    bench.run(SECOND)
    lives = bench.lives
    bench.end_scripts()
    bench.crash_at(commit_of(name))
    bench.release()
    bench.run(10 * SECOND)
    assert bench.lives == lives + 1
    assert told(bench) == ["2026"]
    assert bench.rows("I#") == []


# -- the rule -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("carried", "appended", "may"),
    [
        pytest.param(3, 1_000_000, True, id="at the read"),
        pytest.param(3, 1_000_001 - MOVED_WITHIN_MS, True, id="shortly before it"),
        pytest.param(3, 1_000_000 - MOVED_WITHIN_MS, False, id="long before it"),
        pytest.param(2, 0, True, id="of what is known something is not carried yet"),
    ],
)
def test_given_a_row_then_it_may_count_while_a_resume_may_be_unheard(carried: int, appended: int, may: bool) -> None:
    rows = DeferredRows()
    rows.suspensions_changed(3, 1_000_000)
    assert rows.may_count(carried, appended) is may


def test_given_rows_that_were_left_then_the_old_ones_are_taken_once() -> None:
    rows, old, young = DeferredRows(), keys.inbox(0, "a", "b", "X", "1"), keys.inbox(0, "a", "b", "X", "2")
    rows.leave(old, 0)
    rows.leave(young, MOVED_WITHIN_MS)
    rows.suspensions_changed(1, MOVED_WITHIN_MS)
    assert rows.take_old(1) == [old]
    assert rows.take_old(1) == []
    assert list(rows) == [young]
