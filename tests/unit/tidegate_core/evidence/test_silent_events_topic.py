"""Requests that need to know where the events topic ends, while a topic partition of it has no leader (docs/outages.md)."""

from __future__ import annotations

import pytest

from tests.support.builders import (
    EVENTS,
    HOUR,
    MINUTE,
    SECOND,
    Doc,
    a_request,
    a_spec,
    an_apply,
    an_event,
    every,
    on_data,
)
from tests.support.harness.actor_harness import ActorHarness
from tests.unit.tidegate_core.commands.test_scope_commands import control
from tidegate_core.language.values.instants import format_instant
from tidegate_core.ownership import inbox
from tidegate_core.rows.effects import Effect, ReadEndOffsets, Write


def asks_for_its_ends(effect: Effect) -> bool:
    return isinstance(effect, ReadEndOffsets) and effect.topic == EVENTS


@pytest.fixture
def bench() -> ActorHarness:
    """One shard, in which a schedule goes by time, and another one by events."""
    made = ActorHarness(shards=1)
    made.run(SECOND)
    made.request(an_apply(a_spec("tick", every("10s"), overlap="allow"), "apply-tick"))
    made.request(an_apply(a_spec("heard", on_data())))
    made.run(SECOND)
    return made


def falls_silent(bench: ActorHarness) -> None:
    bench.hold_back(asks_for_its_ends, times=1_000)


@pytest.mark.parametrize(
    "request_",
    [an_apply(a_spec("heard", on_data(count=2)), "it"), {**control("resume", "orders"), "id": "it"}],
    ids=["update", "wide resume"],
)
@pytest.mark.parametrize("crashes", [False, True])
def test_given_one_that_waits_for_it_then_what_the_store_alone_decides_goes_on_and_so_does_a_stop(
    bench: ActorHarness, request_: Doc, crashes: bool
) -> None:
    """Found in review: the shard writer waited with it. Nothing of the shard fired, no request was answered, and of the home shard no emergency stop."""
    bench.request(control("suspend", "orders"))
    bench.run(5 * SECOND)
    falls_silent(bench)
    bench.request(request_)
    bench.run(MINUTE)
    assert len(bench.started) == 6
    assert bench.status_of("it") is None
    if crashes:
        bench.crash()
        falls_silent(bench)
        bench.run(MINUTE)
    bench.request(control("suspend", None))
    bench.run(10 * SECOND)
    started = len(bench.started)
    assert bench.status_of("suspend-None") == "accepted"
    bench.run(MINUTE)
    assert len(bench.started) == started
    bench.as_usual()
    bench.run(10 * SECOND)
    assert bench.status_of("it") == "accepted"


def test_given_requests_on_one_schedule_then_they_keep_their_order_and_those_on_others_do_not_wait(
    bench: ActorHarness,
) -> None:
    falls_silent(bench)
    bench.request(an_apply(a_spec("heard", on_data(count=2)), "update"))
    bench.request(a_request("suspend", name="heard", mode="freeze"))
    bench.request(an_apply(a_spec("other", every("10s"), overlap="allow"), "apply-other"))
    bench.run(5 * MINUTE)
    assert {bench.status_of(each) for each in ("update", "suspend-heard")} == {None}
    assert bench.status_of("apply-other") == "accepted"
    bench.as_usual()
    bench.run(5 * SECOND)
    assert {bench.status_of(each) for each in ("update", "suspend-heard")} == {"accepted"}
    state = bench.state_of("heard")
    assert state is not None
    assert (state.version, state.status) == (2, "suspended")


@pytest.mark.parametrize("asks", [False, True])
def test_given_a_suspension_that_ends_meanwhile_then_it_is_resumed_once_the_topic_tells(
    bench: ActorHarness, asks: bool
) -> None:
    until = format_instant(bench.now + 30 * SECOND)
    bench.request(a_request("suspend", name="heard", mode="drop", until=until))
    bench.run(5 * SECOND)
    falls_silent(bench)
    bench.run(MINUTE)
    if asks:
        bench.request(an_apply(a_spec("heard", on_data(), args=["x"]), "update"))
    bench.run(MINUTE)
    assert len(bench.started) == 12
    bench.as_usual()
    bench.run(5 * SECOND)
    state = bench.state_of("heard")
    assert state is not None
    assert (state.status, state.version) == ("active", 1 + asks)
    bench.event(an_event("d1"))
    bench.run(5 * SECOND)
    assert [what for what, name, _, _ in bench.ledger() if name == "heard"] == ["launched"]


def test_given_many_that_wait_for_it_then_others_do_not_wait_until_half_of_them_are_dealt_with(
    bench: ActorHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Found in review: each look at the inbox came a millisecond later for each of them, for hours."""
    monkeypatch.setattr(inbox, "LEFT_ROWS_PAUSE_MS_MAX", 50)
    falls_silent(bench)
    for number in range(600):
        bench.request(an_apply(a_spec("heard", on_data(count=2), args=[str(number)]), f"update-{number}"))
    bench.run(MINUTE)
    bench.request(an_apply(a_spec("other", every("10s")), "apply-other"))
    bench.run(100)
    assert bench.status_of("apply-other") == "accepted"


def test_given_a_suspension_that_ends_meanwhile_then_its_row_brings_the_resume_once(bench: ActorHarness) -> None:
    """Found in review: each read of the timer rows brought one more, and all of them were gone through once the topic told: nothing fired meanwhile."""
    bench.request(a_request("suspend", name="heard", until=format_instant(bench.now + 30 * SECOND)))
    bench.run(5 * SECOND)
    falls_silent(bench)
    bench.run(HOUR)
    bench.as_usual()
    bench.run(SECOND)
    state = bench.state_of("heard")
    assert state is not None
    assert state.status == "active"
    assert [row for row in bench.rows("T#") if row["kind"] == "U"] == []
    removals = [write for write in bench.all_asked(Write) if write.batch.name == "until"]
    assert len(removals) == 1


@pytest.mark.parametrize(
    "request_",
    [
        an_apply(a_spec("heard", on_data(), args=["x"]), "it"),
        a_request("delete", name="heard", request_id="it"),
        a_request("suspend", name="heard", request_id="it"),
    ],
    ids=["update", "delete", "suspend"],
)
def test_given_a_broker_that_never_tells_at_once_then_a_request_that_finds_a_suspension_ended_is_applied(
    bench: ActorHarness, request_: Doc
) -> None:
    """Found in review: each time that it was begun anew it wanted ends that were read from then on, and stood aside for them, for good."""
    until = bench.now + 30 * SECOND
    bench.request(a_request("suspend", name="heard", mode="drop", until=format_instant(until)))
    bench.run(5 * SECOND)
    bench.drain()
    bench.now = until + SECOND
    bench.hold_back(asks_for_its_ends, times=1_000)
    bench.request(request_)
    bench.new_actor()
    for _ in range(20):
        bench.run(SECOND)
        bench.release()
    assert bench.status_of("it") == "accepted"


def test_given_a_hand_over_then_it_does_not_wait_for_the_topic(bench: ActorHarness) -> None:
    falls_silent(bench)
    bench.request(an_apply(a_spec("heard", on_data(count=2)), "update"))
    bench.run(20 * SECOND)
    bench.drain()
    bench.run(3 * SECOND)
    assert not bench.notices("drain_cut")
    bench.as_usual()
    bench.new_actor()
    bench.run(10 * SECOND)
    assert bench.status_of("update") == "accepted"
