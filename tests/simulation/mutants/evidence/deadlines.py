"""Rules of what comes late before a deadline or a reminder passes (docs/protocol.md, docs/schedules.md), each switched off in the interleaving
that it is against.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

from tests.simulation.mutants.mutant import Mutant, Patch
from tests.support.builders import (
    EVENTS,
    EVENTS_ID,
    HOUR,
    MINUTE,
    SECOND,
    Doc,
    a_request,
    a_spec,
    all_of,
    an_apply,
    an_event,
    every,
    on_data,
    on_run_of,
)
from tests.support.harness.actor_harness import Bench
from tidegate_core.decisions.inputs import LogRecord, RecordsArrived
from tidegate_core.decisions.run_plane.gathering import Gathering
from tidegate_core.decisions.run_plane.upstream_gone import UpstreamGone

A, B, C = map(on_data, "abc")

# -- bugs -----------------------------------------------------------------------------------------------------------------


def the_shortest_alone(waits: Callable[[Gathering, int], list[int]]) -> Any:
    return lambda gathering, at: sorted(waits(gathering, at))[:1]


def knowing_no_reminder(_: Any) -> Any:
    return lambda gathering, since: None


def leaving_them_to_their_rows(_: Any) -> Any:
    return lambda gathering, group, at: None


# -- scenarios --------------------------------------------------------------------------------------------------------------


def a_bench(trigger: Doc, topic_partitions: int = 2) -> Bench:
    bench = Bench(shards=1, event_topic_partitions=topic_partitions)
    bench.run(SECOND)
    bench.request(an_apply(a_spec(trigger=trigger, overlap="allow")))
    bench.run(SECOND)
    return bench


def unread(bench: Bench, name: str, topic_partition: int) -> None:
    log = bench.log(EVENTS, topic_partition)
    log.append(LogRecord(len(log), bench.now, None, json.dumps(an_event(name, name[0])).encode()))


def brought(bench: Bench) -> list[list[str]]:
    manifests: list[Any] = [order.context["manifest"] for order in bench.started]
    return [sorted(each["partition"] for each in manifest) for manifest in manifests]


def what_was_in_time_is_read_behind_what_was_not() -> Iterable[str]:
    """The one wait is over behind the time-out of what came first, the other one before: seconds, event, topic partition."""
    bench = a_bench(all_of({**A, "ttl": "50s"}, B, C, timeout="150s"), 3)
    begun = bench.now
    came = [(15, "b1", 1), (25, "a0", 0), (125, "c1", 2), (130, "a1", 2), (200, "b2", 1)]
    read = {25: 0, 210: 1, 225: 2}
    for at in sorted({*read, *(at for at, *_ in came)}):
        bench.run(begun + at * SECOND - bench.now)
        for _, name, topic_partition in [each for each in came if each[0] == at]:
            unread(bench, name, topic_partition)
        if at in read:
            records = tuple(bench.log(EVENTS, read[at]))
            bench.give(RecordsArrived(EVENTS, read[at], records, EVENTS_ID))
    bench.run(HOUR)
    if not any({"a1", "b1", "c1"} <= set(each) for each in brought(bench)):
        yield f"I3: what was complete in time was given up, and this ran: {brought(bench)}"


def nobody_is_there_for_a_reminder_and_a_time_out() -> Iterable[str]:
    """The reminder was to make a job of what had come."""
    bench = a_bench(all_of(A, B, timeout="20m", at_least_every="15m"))
    bench.run(5 * MINUTE)
    bench.event(an_event("a1", "a"))
    bench.run(MINUTE)
    bench.away(54 * MINUTE)
    bench.run(20 * MINUTE)
    if brought(bench) != [["a1"]]:
        yield f"I3: what a reminder was to make a job of was given up by a later time-out, and this ran: {brought(bench)}"


def a_deadline_lies_right_before_a_reminder() -> Iterable[str]:
    """Something is unread as both come due, and is read when the reminder looks next."""
    bench = a_bench(all_of({**A, "ttl": "10s"}, B, C, at_least_every="1m"))
    state = bench.state_of()
    assert state is not None
    reminder = state.next_nominal or 0
    bench.run(reminder - 10_100 - bench.now)
    for name in ("a1", "b1"):
        bench.event(an_event(name, name[0]))
    unread(bench, "x", 1)
    bench.run(reminder + 950 - bench.now)
    bench.hand_over(EVENTS, 1, 0)
    bench.run(5 * SECOND)
    if brought(bench) != [["b1"]]:
        yield f"I3: a reminder has made a job of what was over before it: {brought(bench)}"


def an_upstream_is_deleted_while_an_end_of_it_waits() -> Iterable[str]:
    """The end came behind a time-out, and waits for what may have come before that."""
    trigger = {"type": "at_least", "k": 2, "triggers": [on_run_of("up"), A, C], "timeout": "30s"}
    bench = Bench(shards=1)
    bench.run(SECOND)
    bench.request(an_apply(a_spec("up", every("10h"))))
    bench.request(an_apply(a_spec("down", trigger, overlap="allow")))
    bench.run(SECOND)
    bench.event(an_event("a1", "a"))
    bench.run(30 * SECOND + 200)
    bench.request(a_request("trigger", "up"))
    bench.run(500)
    bench.request(a_request("delete", "up"))
    bench.run(5 * SECOND)
    bench.event(an_event("c2", "c"))
    bench.run(5 * SECOND)
    if not any(entry[:2] == ("launched", "down") for entry in bench.ledger()):
        yield "I3: a run that had ended before its schedule was deleted counted for nothing"


RULES_OF_DEADLINES = (
    Mutant(
        "shortest wait",
        "what comes behind a deadline waits for the shortest wait alone, and lets one pass for which something in time is unread",
        breaks="I3",
        patches=(Patch(Gathering, "_waits", the_shortest_alone),),
        scenario=what_was_in_time_is_read_behind_what_was_not,
    ),
    Mutant(
        "reminder passed by",
        "behind an outage a time-out gives up what a reminder before it was to make a job of",
        breaks="I3",
        patches=(Patch(Gathering, "_reminder", knowing_no_reminder),),
        scenario=nobody_is_there_for_a_reminder_and_a_time_out,
    ),
    Mutant(
        "deadline passed by",
        "a reminder that finds out first makes a job of what a deadline before it has ended",
        breaks="I3",
        patches=(Patch(Gathering, "pass_time_through", leaving_them_to_their_rows),),
        scenario=a_deadline_lies_right_before_a_reminder,
    ),
    Mutant(
        "upstream gone before its end",
        "a delete is told before a run of before it that waits in the inbox, and nobody counts that",
        breaks="I3",
        patches=(Patch(UpstreamGone, "_waits_for_an_end", lambda _: lambda work: False),),
        scenario=an_upstream_is_deleted_while_an_end_of_it_waits,
    ),
)
