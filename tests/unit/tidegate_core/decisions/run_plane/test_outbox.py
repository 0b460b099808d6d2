"""A terminal state reaches each listener once: inbox rows and mark are one transaction, page by page (DESIGN 6)."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate_core.decisions.event_index import Listener
from tidegate_core.decisions.run_plane.outbox import ACTIVATION_SLACK_MS, LISTENERS_PER_PAGE, Distribute
from tidegate_core.decisions.run_plane.runs import outbox_row
from tidegate_core.effects import Poke
from tidegate_core.records.run_plane import InboxRow, IndexRow, OutboxRow
from tidegate_core.store.values import Item
from tidegate_testkit.builders import NOW, a_run
from tidegate_testkit.desk import Desk

ROW = outbox_row(a_run(state="running", ended_at=NOW + 9, outcome="succeeded"))


def a_listener(number: int, *, leaf: int = 0, activated_at: int = NOW - 5_000, shard: int = 0) -> Listener:
    row = IndexRow(
        event_key="run/flights/nightly",
        namespace="flights",
        name=f"down-{number:04d}",
        incarnation="I1",
        generation=1,
        leaf=leaf,
        shard=shard,
        activated_at=activated_at,
    )
    return Listener(row, {})


def distribute(desk: Desk, listeners: list[Listener]) -> OutboxRow:
    desk.decide(Distribute(ROW.key(0), listeners, 0))
    row = desk.record(OutboxRow, ROW.key(0))
    assert row is not None
    return row


def inbox(desk: Desk) -> list[Item]:
    return [item for item in desk.store.items() if str(item["sk"]).startswith("I#")]


def test_given_listeners_then_each_has_an_inbox_row_in_its_shard_and_its_owner_is_poked() -> None:
    desk = Desk(ROW)
    row = distribute(desk, [a_listener(1), a_listener(2, shard=3)])
    assert row.matched
    assert {(str(item["pk"]), str(item["name"])) for item in inbox(desk)} == {
        ("SH#0000", "down-0001"),
        ("SH#0003", "down-0002"),
    }
    assert set(desk.told) == {Poke(0), Poke(3)}
    (matched,) = json.loads(desk.records(InboxRow, "I#")[0].body)
    assert (matched["fact"], matched["generation"], matched["at"]) == (ROW.fact, 1, NOW + 9)


def test_given_nobody_who_listens_then_the_row_is_marked() -> None:
    desk = Desk(ROW)
    assert distribute(desk, []).matched
    assert inbox(desk) == []


def test_given_two_leaves_of_one_schedule_then_both_are_in_its_one_row() -> None:
    """One row, so that the owner counts for the generation that is present once, also while an update is under way."""
    desk = Desk(ROW)
    distribute(desk, [a_listener(1, leaf=0), a_listener(1, leaf=1)])
    (row,) = desk.records(InboxRow, "I#")
    assert [matched["leaf"] for matched in json.loads(row.body)] == [0, 1]


@pytest.mark.parametrize(
    ("admitted_before_activation_ms", "counts"),
    [(-1, True), (0, True), (ACTIVATION_SLACK_MS, True), (ACTIVATION_SLACK_MS + 1, False)],
)
def test_given_a_run_admitted_before_the_activation_then_it_counts_within_the_clocks_skew_only(
    admitted_before_activation_ms: int, counts: bool
) -> None:
    desk = Desk(ROW)
    row = distribute(desk, [a_listener(1, activated_at=NOW + admitted_before_activation_ms)])
    assert row.matched
    assert bool(inbox(desk)) == counts


@pytest.mark.parametrize("many", [LISTENERS_PER_PAGE - 1, LISTENERS_PER_PAGE, LISTENERS_PER_PAGE + 1, 200])
def test_given_many_listeners_then_pages_hand_it_to_each_once(many: int) -> None:
    desk = Desk(ROW)
    listeners = [a_listener(number) for number in range(many)]
    pages = 0
    matched = False
    while not matched:
        matched = distribute(desk, listeners).matched
        pages += 1
    assert len(inbox(desk)) == many
    assert pages == -(-many // LISTENERS_PER_PAGE)


def test_given_a_row_that_is_matched_then_a_repeat_writes_nothing() -> None:
    desk = Desk(ROW)
    distribute(desk, [a_listener(1)])
    assert desk.decide(Distribute(ROW.key(0), [a_listener(1), a_listener(2)], 0)) is None


@settings(max_examples=25)
@given(first=st.sets(st.integers(0, 300), min_size=85, max_size=120), later=st.sets(st.integers(0, 300), max_size=120))
def test_given_listeners_that_come_and_go_between_pages_then_nobody_hears_it_twice(
    first: set[int], later: set[int]
) -> None:
    """A crash between two pages may bring another list: who stayed must have heard it, whoever came or went."""
    desk = Desk(ROW)
    row = distribute(desk, [a_listener(number) for number in sorted(first)])
    while not row.matched:
        row = distribute(desk, [a_listener(number) for number in sorted(later)])
    heard = {str(item["name"]) for item in inbox(desk)}
    assert {f"down-{number:04d}" for number in first & later} <= heard
