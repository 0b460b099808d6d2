"""Requests that find a suspension whose end has passed, and that nobody has carried out yet: the owner was away, or comes to it a moment later."""

from __future__ import annotations

import json

import pytest

from tests.support.builders import (
    EVENTS,
    EVENTS_ID,
    HOUR,
    MINUTE,
    REQUESTS,
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
from tests.support.harness.effect_matchers import a_commit
from tidegate_core.engine.actor_inputs import Begin, LogRecord
from tidegate_core.language.values.instants import format_instant
from tidegate_core.rows.effects import Commit, Effect, EndOffsets, Invalid, ReadEndOffsets
from tidegate_core.rows.store_operations import Transaction
from tidegate_core.shard.outages.outage_recorder import heartbeat_row

PERIOD = 10 * MINUTE
SPEC: Doc = {"trigger": every("10m"), "overlap": "allow"}
ANOTHER = an_apply(a_spec(**SPEC, args=["x"]), "another")


def behind_an_end(
    request: Doc, spec: Doc = SPEC, crash_after: int | None = None, mode: str = "drop"
) -> tuple[ActorHarness, int]:
    """The end comes while nobody is there, and so does the request; returns the end as well, at which an instant is due."""
    bench = ActorHarness(shards=1)
    bench.run(SECOND)
    bench.request(an_apply(a_spec(**spec)))
    bench.run(SECOND)
    end = (bench.now // PERIOD + 3) * PERIOD
    bench.request(a_request("suspend", mode=mode, until=format_instant(end), request_id="until"))
    bench.run(5 * MINUTE)
    bench.store.write([heartbeat_row(bench.holding.owner, "node", bench.now, {0: bench.now}, 10**10)])
    bench.drain()
    bench.now = end + HOUR + MINUTE
    bench.request(request)
    bench.new_actor()
    if crash_after is not None:
        bench.crash_after = bench.effects_outside + crash_after
    bench.give(Begin())
    return bench, end


def told(bench: ActorHarness) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for what, _, nominal, _ in bench.ledger():
        found.setdefault(what, []).append(nominal)
    return found


@pytest.mark.parametrize(
    ("request_", "what"),
    [
        ({**ANOTHER, "on_update": "restart"}, "cancelled/superseded"),
        (a_request("delete"), "cancelled/schedule_deleted"),
        (a_request("suspend"), "cancelled/suspended"),
    ],
    ids=["update", "delete", "suspend"],
)
def test_given_a_request_that_ends_what_waits_then_what_was_due_since_the_end_is_told(request_: Doc, what: str) -> None:
    """Found in review: nothing was made, or told, of what was due since; a suspend was `unchanged`, and all of it started then."""
    bench, end = behind_an_end(request_)
    bench.run(5 * MINUTE)
    assert bench.receipts()[str(request_["id"])]["status"] == "accepted"
    assert told(bench) == {what: list(range(end, end + HOUR + 1, PERIOD))}
    assert bench.started == []
    assert [row for row in bench.rows("T#") if row["kind"] == "U"] == []


@pytest.mark.parametrize("mode", ["hold", "freeze"])
def test_given_a_suspend_that_parks_then_nothing_starts_and_it_is_all_there_behind_its_resume(mode: str) -> None:
    """Found in review: it was a conflict with the suspend that had ended, and all of it started."""
    bench, end = behind_an_end(a_request("suspend", mode=mode))
    bench.run(5 * MINUTE)
    assert bench.receipts()["suspend-nightly"]["status"] == "accepted"
    assert bench.started == []
    bench.request(a_request("resume"))
    bench.run(3 * MINUTE)
    assert told(bench) == {"launched": list(range(end, end + HOUR + 1, PERIOD))}


@pytest.mark.parametrize("more", [{}, {"backlog": "all"}])
def test_given_a_resume_then_it_counts_from_the_end_and_its_backlog_is_what_was_suspended(more: Doc) -> None:
    """Found in review: the suspended span grew up to the resume, and what was due since its end was never made."""
    bench, end = behind_an_end(a_request("resume", **more))
    bench.run(5 * MINUTE)
    receipt = bench.receipts()["resume-nightly"]
    assert (receipt["status"], receipt["backlog"]) == ("accepted", 2 if more else 0)
    begin = end - 2 * PERIOD if more else end
    assert told(bench) == {"launched": list(range(begin, end + HOUR + 1, PERIOD))}


@pytest.mark.parametrize(
    ("backlog", "held"), [("none", ["cancelled/suspended"] * 2), ("last", ["cancelled/suspended", "launched"])]
)
def test_given_a_resume_behind_a_hold_then_its_backlog_is_what_was_held(backlog: str, held: list[str]) -> None:
    """It cut what was missed behind the end as well, though nothing holds that."""
    bench, end = behind_an_end(a_request("resume", backlog=backlog), mode="hold")
    bench.run(5 * MINUTE)
    assert bench.receipts()["resume-nightly"]["backlog"] == held.count("launched")
    found = {nominal: what for what, _, nominal, _ in bench.ledger()}
    assert [found[nominal] for nominal in (end - 2 * PERIOD, end - PERIOD)] == held
    assert {nominal: what for nominal, what in found.items() if nominal >= end} == dict.fromkeys(
        range(end, end + HOUR + 1, PERIOD), "launched"
    )


def test_given_a_run_that_is_asked_for_then_it_runs() -> None:
    bench, _ = behind_an_end(a_request("trigger"))
    bench.run(5 * MINUTE)
    assert bench.receipts()["trigger-nightly"]["status"] == "accepted"
    assert len(told(bench)["launched"]) == 8


def test_given_a_schedule_of_events_then_a_suspend_is_another_one() -> None:
    bench, _ = behind_an_end(a_request("suspend"), {"trigger": on_data()})
    bench.run(5 * MINUTE)
    state = bench.state_of()
    assert state is not None
    assert (bench.receipts()["suspend-nightly"]["status"], state.status, state.until) == ("accepted", "suspended", None)


def suspended_until() -> tuple[ActorHarness, int]:
    """A schedule that goes by events and is suspended until an instant, which comes with it."""
    bench = ActorHarness(shards=1)
    bench.run(SECOND)
    bench.request(an_apply(a_spec(trigger=on_data())))
    bench.run(SECOND)
    end = bench.now + 20 * SECOND
    bench.request(a_request("suspend", mode="drop", until=format_instant(end), request_id="until"))
    bench.run(SECOND)
    return bench, end


def test_given_ends_that_were_read_for_others_before_the_end_then_what_came_between_them_is_ignored() -> None:
    """Review: the request had arrived before these were read, and the end of the suspension comes after that."""
    bench, end = suspended_until()
    bench.hold_back(a_commit("control"))
    other = an_apply(a_spec("other", trigger=on_data("other")))
    bench.append(REQUESTS, 0, other, an_apply(a_spec(trigger=on_data(), args=["x"]), "another", on_update="carry"))
    bench.run(SECOND)
    # Nobody reads it before the end: its topic partition has no leader.
    log = bench.log(EVENTS, 0)
    log.append(LogRecord(0, bench.now, None, json.dumps(an_event("d1")).encode()))
    bench.now = end
    bench.release()
    assert bench.status_of("another") == "accepted"
    bench.hand_over(EVENTS, 0, 0)
    bench.run(MINUTE)
    assert bench.started == []
    bench.event(an_event("d2"))
    bench.run(MINUTE)
    assert len(bench.started) == 1


@pytest.mark.parametrize(("came_ms", "started"), [(-1, 0), (0, 1)])
def test_given_a_topic_partition_that_no_broker_told_of_at_the_end_then_what_came_there_before_it_does_not_count(
    came_ms: int, started: int
) -> None:
    """Seed 39025030: a source's topic was made anew, and what had come to the former one amid the suspension was held against its suspend."""
    bench, end = suspended_until()
    bench.answer_with(lambda effect: isinstance(effect, ReadEndOffsets), EndOffsets({f"{EVENTS_ID}/0": 0}), 1)
    bench.log(EVENTS, 1).append(LogRecord(0, end + came_ms, None, json.dumps(an_event("d1")).encode()))
    bench.run(30 * SECOND)
    state = bench.state_of()
    assert state is not None
    assert (state.status, bench.started) == ("active", [])
    bench.run(2 * MINUTE)
    assert bench.rows("TP")[-1]["next"] == 1
    assert len(bench.started) == started


def test_given_an_end_that_cannot_be_carried_out_then_a_delete_does_without() -> None:
    refused: list[Transaction] = []

    def of_the_resume(effect: Effect) -> bool:
        """The first one that moves a state."""
        if isinstance(effect, Commit) and effect.transaction.name == "control" and not refused:
            refused.append(effect.transaction)
            return True
        return False

    bench = ActorHarness(shards=1)
    bench.run(SECOND)
    bench.request(an_apply(a_spec(**SPEC)))
    bench.run(SECOND)
    bench.request(a_request("suspend", until=format_instant(bench.now + MINUTE)))
    bench.run(SECOND)
    bench.drain()
    bench.now += HOUR
    bench.request(a_request("delete"))
    bench.answer_with(of_the_resume, Invalid("scripted"), times=100)
    bench.new_actor()
    bench.give(Begin())
    bench.run(MINUTE)
    assert bench.receipts()["delete-nightly"]["status"] == "accepted"
    assert len(bench.notices("decision_failed")) == 1


@pytest.mark.parametrize("effect", range(1, 14))
def test_given_a_crash_at_any_effect_then_a_successor_comes_to_the_same(effect: int) -> None:
    bench, end = behind_an_end(a_request("suspend"), crash_after=effect)
    bench.run(5 * MINUTE)
    assert (bench.lives, bench.crash_after) == (3, None)
    assert bench.receipts()["suspend-nightly"]["status"] == "accepted"
    assert told(bench) == {"cancelled/suspended": list(range(end, end + HOUR + 1, PERIOD))}
    assert bench.started == []
