"""A terminal state reaches each listener once: inbox rows and mark are one transaction, page by page (DESIGN 6)."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.builders import (
    MINUTE,
    NOW,
    SECOND,
    a_request,
    a_run,
    a_schedule,
    a_spec,
    all_of,
    an_apply,
    every,
    on_run_of,
)
from tests.support.harness.actor_harness import ActorHarness, Behaviour
from tests.support.harness.decision_harness import DecisionHarness
from tests.support.tier import examples
from tidegate_core.language.values.states import RunState
from tidegate_core.rows import keys
from tidegate_core.rows.effects import WakeUp
from tidegate_core.rows.inbox import InboxRow
from tidegate_core.rows.item_codec import from_item
from tidegate_core.rows.run import OutboxRow, Run
from tidegate_core.rows.store_operations import Delete, Item, Key
from tidegate_core.rows.trigger_rows import IndexRow
from tidegate_core.runs.run_events import outbox_row, told_row
from tidegate_core.shard.events.outbox import ACTIVATION_SLACK_MS, LISTENERS_PER_PAGE, FanOut, gone_row
from tidegate_core.shard.events.subscription_index import Subscription
from tidegate_core.writes.start_gate import finish_run

ROW = outbox_row(a_run(state="running", ended_at=NOW + 9, outcome="succeeded"))


def _nobody() -> None:
    """Is told that a row is gone."""


def a_listener(
    number: int, *, leaf: int = 0, activated_at: int = NOW - 5_000, shard: int = 0, asked_at: int | None = None
) -> Subscription:
    row = IndexRow(
        event_key="run/flights/nightly",
        namespace="flights",
        name=f"down-{number:04d}",
        incarnation="I1",
        generation=1,
        leaf=leaf,
        shard=shard,
        activated_at=activated_at,
        asked_at=activated_at if asked_at is None else asked_at,
    )
    return Subscription(row, {})


def distribute(desk: DecisionHarness, listeners: list[Subscription]) -> OutboxRow:
    desk.decide(FanOut(ROW.key(0), listeners, 0, _nobody))
    row = desk.record(OutboxRow, ROW.key(0))
    assert row is not None
    return row


def inbox(desk: DecisionHarness) -> list[Item]:
    return [item for item in desk.store.items() if str(item["sk"]).startswith("I#")]


def test_given_listeners_then_each_has_an_inbox_row_in_its_shard_and_its_owner_is_poked() -> None:
    desk = DecisionHarness(ROW)
    row = distribute(desk, [a_listener(1), a_listener(2, shard=3)])
    assert row.matched
    assert {(str(item["pk"]), str(item["name"])) for item in inbox(desk)} == {
        ("SH#0000", "down-0001"),
        ("SH#0003", "down-0002"),
    }
    assert set(desk.told) == {WakeUp(0), WakeUp(3)}
    (matched,) = json.loads(desk.records(InboxRow, "I#")[0].body)
    assert (matched["fact"], matched["generation"], matched["at"]) == (ROW.fact, 1, NOW + 9)


def test_given_nobody_who_listens_then_the_row_is_marked() -> None:
    desk = DecisionHarness(ROW)
    assert distribute(desk, []).matched
    assert inbox(desk) == []


def test_given_a_program_that_is_lost_again_while_a_listener_has_not_heard_of_the_first_time_then_it_hears_once_and_others_again() -> (
    None
):
    """Found in review: nobody heard of it, and the attempt came again every ten minutes."""
    lost = told_row(a_run(state="lost"), RunState.LOST, NOW)
    desk = DecisionHarness(lost)
    listeners = [a_listener(1), a_listener(2), a_listener(2, leaf=1), a_listener(3)]
    told = FanOut(lost.key(0), listeners, 0, _nobody)
    desk.decide(told)
    (first, heard, _) = inbox(desk)
    desk.store.write([Delete(Key(str(heard["pk"]), str(heard["sk"])))])
    desk.lay(lost)
    desk.decide(told)
    assert not desk.refused
    row = desk.record(OutboxRow, lost.key(0))
    assert row is not None
    assert row.matched
    assert [str(item["name"]) for item in inbox(desk)] == ["down-0001", "down-0002", "down-0003"]
    assert inbox(desk)[0]["body"] == first["body"]


def test_given_a_program_that_is_lost_then_no_page_reads_what_lies_in_inboxes() -> None:
    """Found in review: each page read the rows of all who listen, and of more than 2,000, which is what a view holds, nobody heard of it."""
    lost = told_row(a_run(state="lost"), RunState.LOST, NOW)
    desk = DecisionHarness(lost)
    told = FanOut(lost.key(0), [a_listener(number) for number in range(LISTENERS_PER_PAGE + 1)], 0, _nobody)
    for _ in range(2):
        desk.decide(told)
        assert desk.reads == 1
    row = desk.record(OutboxRow, lost.key(0))
    assert row is not None
    assert row.matched
    assert len(inbox(desk)) == LISTENERS_PER_PAGE + 1


def test_given_two_leaves_of_one_schedule_then_both_are_in_its_one_row() -> None:
    """One row, so that the owner counts for the generation that is present once, also while an update is under way."""
    desk = DecisionHarness(ROW)
    distribute(desk, [a_listener(1, leaf=0), a_listener(1, leaf=1)])
    (row,) = desk.records(InboxRow, "I#")
    assert [matched["leaf"] for matched in json.loads(row.body)] == [0, 1]


@pytest.mark.parametrize(
    ("asked_at", "activated_at", "deleted_at", "hears"),
    [
        pytest.param(NOW - 9, NOW + 700, NOW, True, id="asked for earlier, by a clock that is ahead"),
        pytest.param(NOW + 1, NOW + 5, NOW + 9, False, id="asked for 1 ms later, and done before the delete"),
        pytest.param(NOW + 1, NOW - 700, NOW, False, id="asked for later, by a clock that is behind"),
        pytest.param(NOW - 9, NOW + 5_000, NOW, True, id="asked for earlier, by a row that a former owner wrote anew"),
    ],
)
def test_given_a_delete_then_who_asked_to_listen_before_it_by_the_brokers_clock_hears_of_it(
    asked_at: int, activated_at: int, deleted_at: int, hears: bool
) -> None:
    """Two nodes' clocks were compared without slack: who heard nothing waited for ever."""
    gone = gone_row(a_schedule(), NOW, deleted_at)
    desk = DecisionHarness(gone)
    desk.decide(FanOut(gone.key(0), [a_listener(1, asked_at=asked_at, activated_at=activated_at)], 0, _nobody))
    assert bool(inbox(desk)) == hears


@pytest.mark.parametrize(("ahead_ms", "hears"), [(ACTIVATION_SLACK_MS, True), (ACTIVATION_SLACK_MS + 1, False)])
def test_given_a_delete_that_nobody_asked_for_then_the_clocks_tell_with_twice_their_skew(
    ahead_ms: int, hears: bool
) -> None:
    gone = gone_row(a_schedule(), None, NOW)
    desk = DecisionHarness(gone)
    desk.decide(FanOut(gone.key(0), [a_listener(1, activated_at=NOW + ahead_ms)], 0, _nobody))
    assert bool(inbox(desk)) == hears


@pytest.mark.parametrize(
    ("asked_after_ms", "activated_after_ms", "is_told"),
    [
        pytest.param(0, -1, True, id="after both"),
        pytest.param(ACTIVATION_SLACK_MS, ACTIVATION_SLACK_MS, True, id="within the clocks' skew"),
        pytest.param(ACTIVATION_SLACK_MS + 1, ACTIVATION_SLACK_MS + 1, False, id="before both"),
        pytest.param(-5_000, 60_000, True, id="before the instant of a row that a former owner wrote anew"),
        pytest.param(60_000, -5_000, True, id="before a later request that changed nothing"),
    ],
)
def test_given_a_run_then_it_is_told_unless_it_was_admitted_before_the_request_and_the_activation(
    asked_after_ms: int, activated_after_ms: int, is_told: bool
) -> None:
    """Seed 20500047: a former owner that was frozen within its resume wrote the row anew, with a later instant: a start was not counted."""
    desk = DecisionHarness(ROW)
    listener = a_listener(1, asked_at=NOW + asked_after_ms, activated_at=NOW + activated_after_ms)
    assert distribute(desk, [listener]).matched
    assert bool(inbox(desk)) == is_told


@pytest.mark.parametrize("many", [LISTENERS_PER_PAGE - 1, LISTENERS_PER_PAGE, LISTENERS_PER_PAGE + 1, 200])
def test_given_many_listeners_then_pages_hand_it_to_each_once(many: int) -> None:
    """CD-054."""
    desk = DecisionHarness(ROW)
    listeners = [a_listener(number) for number in range(many)]
    pages = 0
    matched = False
    while not matched:
        matched = distribute(desk, listeners).matched
        pages += 1
    assert len(inbox(desk)) == many
    assert pages == -(-many // LISTENERS_PER_PAGE)


def test_given_a_row_that_is_matched_then_a_repeat_writes_nothing() -> None:
    desk = DecisionHarness(ROW)
    distribute(desk, [a_listener(1)])
    assert desk.decide(FanOut(ROW.key(0), [a_listener(1), a_listener(2)], 0, _nobody)) is None


@settings(max_examples=examples(25))
@given(first=st.sets(st.integers(0, 300), min_size=85, max_size=120), later=st.sets(st.integers(0, 300), max_size=120))
def test_given_listeners_that_come_and_go_between_pages_then_nobody_hears_it_twice(
    first: set[int], later: set[int]
) -> None:
    """A crash between two pages may bring another list: who stayed must have heard it, whoever came or went."""
    desk = DecisionHarness(ROW)
    row = distribute(desk, [a_listener(number) for number in sorted(first)])
    while not row.matched:
        row = distribute(desk, [a_listener(number) for number in sorted(later)])
    heard = {str(item["name"]) for item in inbox(desk)}
    assert {f"down-{number:04d}" for number in first & later} <= heard


# -- what a run reported is copied to each listener ------------------------------------------------------------------------

LARGEST = [
    pytest.param("x" * 60_000, id="ascii"),
    pytest.param("é" * 32_000, id="two bytes each"),
    pytest.param('"' * 32_000, id="escaped each time"),
]


@pytest.mark.parametrize("reported", LARGEST)
def test_given_listeners_of_a_run_that_reported_much_then_pages_are_cut_by_bytes(reported: str) -> None:
    run = a_run(state="running", ended_at=NOW + 9, outcome="succeeded", outputs=json.dumps({"k": reported}))
    row = outbox_row(run)
    desk = DecisionHarness(row)
    listeners = [a_listener(number) for number in range(90)]
    pages = 0
    matched = False
    while not matched:
        transaction = desk.decide(FanOut(row.key(0), listeners, 0, _nobody))
        assert transaction is not None
        assert desk.refused == []
        pages += 1
        matched = from_item(OutboxRow, desk.store.peek(row.key(0)) or {}).matched
    assert len(inbox(desk)) == 90
    assert pages > 2
    assert all(json.loads(each.body)[0]["fact"] == row.fact for each in desk.records(InboxRow, "I#"))


@pytest.mark.parametrize("reported", LARGEST)
def test_given_many_leaves_of_one_schedule_then_its_row_holds_the_fact_once(reported: str) -> None:
    run = a_run(state="running", ended_at=NOW + 9, outcome="succeeded", outputs=json.dumps({"k": reported}))
    row = outbox_row(run)
    desk = DecisionHarness(row)
    desk.decide(FanOut(row.key(0), [a_listener(1, leaf=leaf) for leaf in range(50)], 0, _nobody))
    (inboxed,) = desk.records(InboxRow, "I#")
    assert [matched.get("fact") for matched in json.loads(inboxed.body)] == [row.fact] + [None] * 49


def test_given_two_leaves_that_one_run_satisfies_then_it_fires_once() -> None:
    bench = ActorHarness(behaviour=Behaviour(outputs={"k": "x" * 60_000}), shards=1)
    bench.run(SECOND)
    bench.request(an_apply(a_spec("up", every("1h"))))
    both = all_of(on_run_of("up"), on_run_of("up", "succeeded", "failed"))
    bench.request(an_apply(a_spec("down", both)))
    bench.request(a_request("trigger", "up"))
    bench.run(MINUTE)
    assert sorted(entry[1] for entry in bench.ledger()) == ["down", "up"]


def test_given_a_chain_of_many_schedules_and_large_outputs_then_each_of_them_runs() -> None:
    bench = ActorHarness(behaviour=Behaviour(outputs={"k": "x" * 60_000}), shards=1)
    bench.run(SECOND)
    bench.request(an_apply(a_spec("up", every("1h"))))
    for number in range(40):
        bench.request(an_apply(a_spec(f"down-{number:02d}", on_run_of("up"))))
    bench.request(a_request("trigger", "up"))
    bench.run(MINUTE)
    assert len(bench.ledger()) == 41
    assert bench.lives == 1


def test_given_many_large_runs_that_end_while_nobody_looks_then_all_of_them_are_finished() -> None:
    bench = ActorHarness(behaviour=Behaviour(runs_for=None), shards=1)
    bench.run(SECOND)
    for number in range(16):
        bench.request(an_apply(a_spec(f"s-{number:02d}", every("1h"))))
        bench.request(a_request("trigger", f"s-{number:02d}"))
    bench.run(SECOND)
    outputs = json.dumps({"k": "x" * 65_500})
    for number, order in enumerate(bench.started):
        row = from_item(Run, bench.store.peek(keys.run(0, order.run_id)) or {})
        told = ("succeeded", 0, None, None, outputs, bench.now, f"end {number}")
        bench.transact(finish_run(order.run_id, order.attempt, str(row.driver), *told))
    bench.run(MINUTE)
    assert len(bench.ledger()) == 16
