"""Deadlines of evidence while a schedule is suspended: they stand still in `hold` and `freeze`, run in `drain` (SEMANTICS 10)."""

from __future__ import annotations

import json
from importlib import import_module
from itertools import permutations
from typing import Any

import pytest

from tests.support.builders import (
    HOUR,
    MINUTE,
    NOW,
    SECOND,
    Doc,
    a_match,
    a_request,
    a_spec,
    all_of,
    an_apply,
    an_event,
    an_inbox_row,
    every,
    on_data,
)
from tests.support.harness.actor_harness import ActorHarness
from tests.support.harness.evidence_bench import a_desk, count, jobs
from tests.support.harness.recorded_effects import manifest_text
from tidegate_core.commands.end_pending import ENDED_PER_PAGE
from tidegate_core.engine.actor_inputs import Begin
from tidegate_core.language.values.instants import format_instant
from tidegate_core.rows.evidence import Evidence, EvidenceChunk
from tidegate_core.rows.inbox import InboxRow
from tidegate_core.rows.item_codec import from_item
from tidegate_core.rows.ledger import LedgerRow
from tidegate_core.shard.events.evidence_log import merged

A, B = on_data("a"), on_data("b")
STILL = ["hold", "freeze"]


def a_bench(trigger: Doc) -> ActorHarness:
    bench = ActorHarness()
    bench.run(SECOND)
    bench.request(an_apply(a_spec(trigger=trigger)))
    bench.run(SECOND)
    return bench


def suspend(bench: ActorHarness, mode: str, run: int = 0) -> None:
    bench.request(a_request("suspend", request_id=f"s-{bench.now}", mode=mode))
    bench.run(run)


def resume(bench: ActorHarness, run: int) -> Any:
    request_id = f"r-{bench.now}"
    bench.request(a_request("resume", request_id=request_id))
    bench.run(run)
    return bench.receipts()[request_id]["backlog"]


def told(bench: ActorHarness) -> list[str]:
    return [str(entry[0]) for entry in bench.ledger()]


@pytest.mark.parametrize("mode", STILL)
@pytest.mark.parametrize(
    ("trigger", "comes_of_it"),
    [
        ({**on_data("a", 3), "max_wait": "10m"}, "launched"),
        ({**A, "settle": "10m"}, "launched"),
        (all_of(A, B, timeout="10m", on_timeout="partial"), "launched"),
        (all_of(A, B, timeout="10m"), "expired/trigger_timeout"),
        (all_of({**A, "ttl": "10m"}, B), "expired/evidence_expired"),
    ],
)
def test_given_clocks_that_stand_still_then_each_deadline_comes_so_much_later(
    trigger: Doc, comes_of_it: str, mode: str
) -> None:
    bench = a_bench(trigger)
    bench.event(an_event("d1", "a"))
    bench.run(4 * MINUTE)
    suspend(bench, mode, HOUR)
    resume(bench, 5 * MINUTE)
    assert told(bench) == []
    bench.run(2 * MINUTE)
    assert told(bench) == [comes_of_it]


@pytest.mark.parametrize("times", [1, 3])
def test_given_held_then_a_half_that_comes_late_meets_the_other(times: int) -> None:
    """It was appended long after the other one's `ttl` by the clock of the world, and in time by the schedule's own."""
    bench = a_bench(all_of({**A, "ttl": "10m"}, B))
    bench.event(an_event("d1", "a"))
    for _ in range(times - 1):
        bench.run(MINUTE)
        suspend(bench, "hold", HOUR)
        resume(bench, MINUTE)
    suspend(bench, "hold", HOUR)
    bench.event(an_event("d1", "b"))
    bench.run(SECOND)
    assert resume(bench, SECOND) == 1
    assert told(bench) == ["launched"]


def test_given_held_over_midnight_then_what_belongs_to_the_day_waits_for_the_resume() -> None:
    bench = a_bench(all_of(A, B, window={"every": "day", "zone": "Etc/GMT+3"}))  # Its midnight is in 46 minutes.
    bench.event(an_event("d1", "a"))
    bench.run(10 * MINUTE)
    suspend(bench, "hold", HOUR)
    resume(bench, 30 * MINUTE)
    assert told(bench) == []
    bench.run(10 * MINUTE)
    assert told(bench) == ["expired/trigger_timeout"]


@pytest.mark.parametrize("trigger", [{**on_data("a", 3), "max_wait": "10m"}, {**A, "settle": "10m"}])
def test_given_drain_then_a_deadline_makes_no_job_of_what_is_there(trigger: Doc) -> None:
    """No new jobs while it is drained, and its clocks run: so that evidence comes to nothing, and is told of."""
    bench = a_bench(trigger)
    bench.event(an_event("d1", "a"))
    bench.run(MINUTE)
    suspend(bench, "drain", 20 * MINUTE)
    assert told(bench) == ["expired/trigger_timeout"]
    resume(bench, 20 * MINUTE)
    assert bench.started == []


@pytest.mark.parametrize(("mode", "backlog"), [("drop", 0), ("drain", 0), ("hold", 3), ("freeze", 0)])
def test_given_reminders_then_only_hold_makes_jobs_of_them(mode: str, backlog: int) -> None:
    bench = a_bench({**on_data("a", 3), "at_least_every": "10m", "allow_empty": True})
    bench.run(5 * MINUTE)
    suspend(bench, mode, 30 * MINUTE)
    assert resume(bench, 10 * SECOND) == backlog
    bench.run(10 * MINUTE)
    assert len(bench.started) == backlog + 1


@pytest.mark.parametrize(
    ("stopped", "spans"),
    [
        pytest.param(HOUR, (NOW, NOW + HOUR), id="one"),
        pytest.param(
            2 * HOUR, (NOW, NOW + HOUR, NOW + 65 * MINUTE, NOW + 125 * MINUTE), id="another since (seed 27000317)"
        ),
    ],
)
@pytest.mark.parametrize("at", [-10 * MINUTE, 30 * MINUTE])
def test_given_an_event_of_a_span_that_is_over_then_it_is_no_older_than_what_it_met(
    at: int, stopped: int, spans: tuple[int, ...]
) -> None:
    """It was appended before the hold, or amid it, and counted after the resume."""
    desk = a_desk(all_of(A, B, timeout="20m"), stopped_ms=stopped, last_stops=spans)
    for number, leaf, after in ((1, 0, HOUR + 5 * MINUTE), (2, 1, at)):
        fact = json.dumps({"type": "data.partition", "namespace": "flights", "dataset": "ab"[leaf], "partition": "x"})
        count(desk, an_inbox_row(number, a_match("x", leaf=leaf, at=NOW + after, fact=fact)))
    assert desk.records(LedgerRow, "L#") == []
    assert len(jobs(desk)) == 1


@pytest.mark.parametrize("away", [None, -10, 0], ids=["nobody", "before both", "between them"])
@pytest.mark.parametrize(
    ("first", "second", "starts"),
    [
        pytest.param(-5, 10, 1, id="a pair across the end"),
        pytest.param(5, 20, 1, id="a pair behind it"),
        pytest.param(-5, 25, 0, id="too long across the end"),
        pytest.param(5, 65, 0, id="too long behind it"),
    ],
)
def test_given_a_hold_that_ends_while_nobody_is_there_then_clocks_go_on_where_it_was_to_end(
    first: int, second: int, starts: int, away: int | None
) -> None:
    """Found beside seed 27000317: events that came hours apart in an outage behind a hold's `until` were a pair.

    Args:
        first: When one event comes, in minutes from that instant.
        second: When the other one does.
        starts: How many programs start.
        away: From when on nobody is there, for three hours; None = somebody is, all the while.
    """
    bench = a_bench(all_of(A, B, timeout="20m"))
    bench.passes_over_routine = True
    end = bench.now + 30 * MINUTE
    bench.request(a_request("suspend", mode="hold", until=format_instant(end)))
    for minutes, dataset in ((first, "a"), (second, "b")):
        if away is not None and away <= minutes:
            bench.drain()
            bench.now = end + minutes * MINUTE
        else:
            bench.run(end + minutes * MINUTE - bench.now)
        bench.event(an_event("x", dataset))
    if away is not None:
        bench.drain()
        bench.now = end + 3 * HOUR
        bench.new_actor()
        bench.give(Begin())
    bench.run(HOUR)
    assert len(bench.started) == starts
    assert told(bench) == (["launched"] if starts else ["expired/trigger_timeout"] * 2)


@pytest.mark.parametrize("is_late", [False, True])
def test_given_a_hold_then_what_comes_before_a_tick_is_before_it_though_clocks_stand_still(is_late: bool) -> None:
    """Behind an outage the tick came first: by clocks that stand still all that a hold brings comes at one instant."""
    tick = {**every("1h"), "driver": "time"}
    bench = a_bench(all_of(tick, A))
    suspend(bench, "hold", MINUTE)
    if is_late:
        bench.drain()
    for day, minutes in (("x", 10), ("y", 20), ("z", 70)):  # The tick is 45 minutes from here.
        if is_late:
            bench.now = NOW + minutes * MINUTE
        else:
            bench.run(NOW + minutes * MINUTE - bench.now)
        bench.event(an_event(day, "a"))
    if is_late:
        bench.now = NOW + 90 * MINUTE
        bench.new_actor()
        bench.give(Begin())
    resume(bench, MINUTE)
    assert [manifest_text(order) for order in bench.started] == ["x,y"]


@pytest.mark.parametrize("mode", ["hold", None])
@pytest.mark.parametrize(
    ("kinds", "rows"),
    [
        pytest.param(["created", "created"], 2, id="instead of it"),
        pytest.param(["created", "appended", "created"], 4, id="instead of both"),
        pytest.param(["created", "deleted", "created"], 4, id="taken back in between"),
    ],
)
def test_given_versions_of_a_data_partition_then_the_later_one_counts_whichever_was_read_last(
    mode: str | None, kinds: list[str], rows: int
) -> None:
    """From several topic partitions. Amid a hold the one that was read last did: the clocks by which they were told apart stood still."""
    trigger = {"type": "data_size", "dataset": "a", "rows": 10, "kinds": ["created", "appended", "deleted"]}
    held: Doc = {} if mode is None else {"status": "suspended", "mode": mode, "suspended_at": NOW}
    versions = [came(number, "x", number * MINUTE, rows=2**number, kind=kind) for number, kind in enumerate(kinds)]
    for order in permutations(versions):
        if json.loads(order[0].body)[0]["at"] == NOW + MINUTE and "deleted" in kinds:
            continue  # With nothing to take back it says nothing.
        desk = a_desk(trigger, **held)
        for row in order:
            count(desk, row)
        (evidence,) = desk.records(Evidence, "E#")
        log = [entry for chunk in desk.records(EvidenceChunk, "EC#") for entry in json.loads(chunk.entries)]
        assert (evidence.counts, sum(entry["weight"] for entry in merged(log))) == ((rows,), rows)


def came(number: int, day: str, after: int, **event: Any) -> InboxRow:
    fact = {"type": "data.partition", "namespace": "flights", "dataset": "a", "partition": day, **event}
    return an_inbox_row(number, a_match(day, at=NOW + after, fact=json.dumps(fact)))


@pytest.mark.parametrize(("pages_of", "name"), [("resume", "pending_pages"), ("delete", "end_pending")])
def test_given_much_evidence_then_a_page_unpacks_what_it_takes_and_not_all_that_is_there(
    monkeypatch: pytest.MonkeyPatch, pages_of: str, name: str
) -> None:
    """Seed 20000085, with more falls: 2,400 pieces of evidence at each of as many pages, three minutes of the shard writer."""
    bench = a_bench(all_of(A, B, correlate="data_partition", timeout="10h"))
    many = 20 * ENDED_PER_PAGE
    for number in range(many):
        bench.event(an_event(f"d{number}", "a"))
    bench.run(MINUTE)
    suspend(bench, "hold", HOUR)
    before = deadlines(bench)
    unpacked: list[Any] = []
    module = import_module(f"tidegate_core.commands.{name}")

    def counting(kind: Any, item: Any) -> Any:
        if kind is Evidence:
            unpacked.append(item)
        return from_item(kind, item)

    monkeypatch.setattr(module, "from_item", counting)
    bench.request(a_request(pages_of, request_id="last"))
    bench.run(MINUTE)
    assert bench.receipts()["last"]["status"] == "accepted"
    after = deadlines(bench)
    assert len(before) == many
    assert after == ([deadline + HOUR for deadline in before] if pages_of == "resume" else [])
    assert len(unpacked) <= 3 * many


def deadlines(bench: ActorHarness) -> list[int]:
    evidence = [from_item(Evidence, row) for row in bench.rows("E#")]
    return [each.deadline for each in evidence if each.deadline is not None]
