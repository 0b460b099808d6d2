"""A stop whose row the API wrote, because an open transaction keeps the ingest from reading its record (decision 38)."""

from __future__ import annotations

import json

import pytest

from tests.support.builders import (
    EVENTS,
    MINUTE,
    REQUESTS,
    REQUESTS_ID,
    SECOND,
    Doc,
    a_request,
    a_spec,
    an_apply,
    an_event,
    every,
)
from tests.support.harness.actor_harness import ActorHarness
from tidegate_core.engine.actor_inputs import LogRecord, Woken
from tidegate_core.ingest.inbox_row import inbox_row, may_overtake
from tidegate_core.language.formats.parsing import parse_request
from tidegate_core.language.values.derived_ids import cluster_object_shard, schedule_shard
from tidegate_core.language.values.instants import format_instant
from tidegate_core.language.values.log_position import Position
from tidegate_core.language.values.names import TopicNamespaces
from tidegate_core.rows.store_operations import Item
from tidegate_core.writes.cursor_moves import inbox_put

SWEEP = 12 * SECOND
"""Longer than an owner's pause between two looks at an inbox of which nobody told it."""
SCOPE: Doc = {"id": "stop-all", "type": "control.suspend", "scope": "namespace", "namespace": "flights"}
RUN, JOB = "0003-" + "a" * 26, "0001-" + "a" * 26


@pytest.fixture
def bench() -> ActorHarness:
    made = ActorHarness()
    made.run(SECOND)
    made.request(an_apply(a_spec("nightly", trigger=every("10s"))))
    made.run(15 * SECOND)
    return made


def blocked(bench: ActorHarness, document: Doc) -> Position:
    """Appends a record that nobody reads: it stands behind an open transaction. Returns its position."""
    log = bench.log(REQUESTS, 0)
    log.append(LogRecord(len(log), bench.now, None, json.dumps(document).encode()))
    return Position(bench.now, REQUESTS_ID, 0, len(log) - 1)


def write(bench: ActorHarness, document: Doc, position: Position, shard: int | None = None) -> Item:
    """Writes its row as the API does."""
    to = schedule_shard("flights", "nightly", 4) if shard is None else shard
    put = inbox_put(to, inbox_row(parse_request(json.dumps(document).encode()), position))
    bench.store.write([put])
    return put.item


def fires(bench: ActorHarness) -> int:
    return len(bench.rows("J#")) + len(bench.ledger())


@pytest.mark.parametrize("is_poked", [pytest.param(True, id="poked"), pytest.param(False, id="the poke is lost")])
def test_given_a_stop_that_nobody_reads_then_its_row_is_answered_and_nothing_starts_any_more(
    bench: ActorHarness, is_poked: bool
) -> None:
    """An open transaction held up every suspend of its topic partition for up to 15 minutes."""
    bench.log(EVENTS, 0).append(LogRecord(0, bench.now, None, json.dumps(an_event("2026-03-01")).encode()))
    suspend = a_request("suspend")
    write(bench, suspend, blocked(bench, suspend))
    if is_poked:
        bench.give(Woken(schedule_shard("flights", "nightly", 4)))
    bench.run(SECOND if is_poked else SWEEP)
    assert bench.status_of(suspend["id"]) == "accepted"
    state, made = bench.state_of(), fires(bench)
    assert made > 0
    assert state is not None
    assert state.status == "suspended"
    bench.run(60 * SECOND)
    assert fires(bench) == made


def test_given_its_record_is_read_at_last_then_it_is_a_repeat_with_the_first_answer(bench: ActorHarness) -> None:
    suspend, resume = a_request("suspend"), a_request("resume")
    first = len(bench.log(REQUESTS, 0))
    write(bench, suspend, blocked(bench, suspend))
    bench.run(SWEEP)
    answer = bench.receipts()[suspend["id"]]
    blocked(bench, resume)
    bench.hand_over(REQUESTS, 0, first)
    bench.run(SWEEP)
    assert bench.receipts()[suspend["id"]] == answer
    state = bench.state_of()
    assert state is not None
    assert state.status == "active", "I7: the suspend was applied a second time, behind the resume"
    assert bench.rows("I#") == []


def test_given_an_earlier_request_behind_the_same_transaction_then_it_is_superseded(bench: ActorHarness) -> None:
    first = len(bench.log(REQUESTS, 0))
    blocked(bench, an_apply(a_spec("nightly", trigger=every("20s")), request_id="late"))
    bench.run(SECOND)
    suspend = a_request("suspend")
    write(bench, suspend, blocked(bench, suspend))
    bench.run(SWEEP)
    bench.hand_over(REQUESTS, 0, first)
    bench.run(SWEEP)
    assert (bench.status_of(suspend["id"]), bench.status_of("late")) == ("accepted", "superseded")


def test_given_a_scope_suspend_that_nobody_reads_then_all_shards_stop_and_it_is_answered(bench: ActorHarness) -> None:
    write(bench, SCOPE, blocked(bench, SCOPE), cluster_object_shard("controls", 4))
    bench.give(Woken(cluster_object_shard("controls", 4)))
    bench.run(2 * SECOND)
    assert bench.status_of("stop-all") == "accepted"
    made = fires(bench)
    assert made > 0
    bench.run(60 * SECOND)
    assert fires(bench) == made


@pytest.mark.parametrize(
    "document",
    [
        pytest.param(a_request("suspend", "s-2"), id="schedule"),
        pytest.param({"id": "c", "type": "run.cancel", "run_id": RUN}, id="run"),
        pytest.param({"id": "c", "type": "job.cancel", "job_id": JOB}, id="job"),
    ],
)
def test_given_the_ingest_and_the_api_then_both_write_the_same_row(document: Doc) -> None:
    """With two keys a stop that waits would lie in the inbox twice."""
    half = ActorHarness(topic_partitions=2)
    half.run(SECOND)
    assert schedule_shard("flights", "s-2", 4) % 2 == 1, "another holder's"
    half.request(document)
    (row,) = half.rows("I#")
    assert write(half, document, Position.parse(str(row["origin"])), int(str(row["pk"])[3:])) == row


def test_given_a_row_of_a_namespace_that_the_topic_is_not_for_then_its_owner_refuses_it() -> None:
    """The ingest refuses such a record; the API knows no setting of the nodes."""
    bench = ActorHarness(namespaces=TopicNamespaces(("orders",), ("*",)))
    bench.run(SECOND)
    suspend = a_request("suspend")
    write(bench, suspend, blocked(bench, suspend))
    bench.run(SWEEP)
    assert bench.status_of(suspend["id"]) == "rejected"


def test_given_a_correction_and_a_resume_behind_one_transaction_then_the_corrected_version_starts(
    bench: ActorHarness,
) -> None:
    """The resume overtook the correction: the broken version started, and the correction was superseded."""
    bench.request(a_request("suspend"))
    first = len(bench.log(REQUESTS, 0))
    blocked(bench, an_apply(a_spec("nightly", trigger=every("20s")), request_id="correction"))
    bench.run(SECOND)
    resume = a_request("resume")
    assert not may_overtake(parse_request(json.dumps(resume).encode()))
    blocked(bench, resume)
    bench.hand_over(REQUESTS, 0, first)
    bench.run(SWEEP)
    assert (bench.status_of("correction"), bench.status_of(resume["id"])) == ("accepted", "accepted")
    state = bench.state_of()
    assert state is not None
    assert (state.status, state.version) == ("active", 2)


@pytest.mark.parametrize("narrowed", [False, True])
def test_given_a_suspension_with_an_end_then_it_ends_whatever_namespaces_users_may_name_by_then(narrowed: bool) -> None:
    """Refused as a user's request would be, the resume at `until` never came, and nothing told of it."""
    bench = ActorHarness()
    bench.run(SECOND)
    bench.request(an_apply(a_spec("nightly", trigger=every("10s"))))
    bench.request(a_request("suspend", until=format_instant(bench.now + 5 * MINUTE)))
    if narrowed:
        bench.restart_with(namespaces=TopicNamespaces(("orders",), ("*",)))
    bench.run(6 * MINUTE)
    state = bench.state_of()
    assert state is not None
    assert state.status == "active"


@pytest.mark.parametrize(
    ("document", "overtakes"),
    [
        (a_request("suspend"), True),
        (a_request("resume"), False),
        (a_request("delete"), True),
        (SCOPE, True),
        (SCOPE | {"type": "control.resume"}, True),
        ({"id": "c", "type": "run.cancel", "run_id": RUN}, True),
        ({"id": "c", "type": "job.cancel", "job_id": JOB}, True),
        ({"id": "c", "type": "run.release", "run_id": RUN}, False),
        (a_request("trigger"), False),
        (an_apply(a_spec()), False),
        ({"type": "run.cancel", "run_id": RUN}, False),
        ({"id": "m", "type": "message.cancel", "namespace": "orders", "key": "k"}, False),
    ],
)
def test_given_a_request_then_only_a_stop_or_its_end_with_an_id_overtakes(document: Doc, overtakes: bool) -> None:
    assert may_overtake(parse_request(json.dumps(document).encode())) is overtakes
