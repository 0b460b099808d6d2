"""Rows of creates that nobody has read under the present map, and of those that nobody will ever read."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace

import pytest

from tests.simulation.faults.small_limits import HAND_OVER_MS, OF_MAPS, turned
from tests.simulation.stories.stage import comes_through_the_inbox
from tests.support.builders import HOUR, MINUTE, NOW, REQUESTS, REQUESTS_ID, SECOND, a_cancel, a_holding, a_send
from tests.support.harness.actor_harness import ActorHarness
from tests.support.harness.cancel_bench import tally
from tests.support.harness.effect_matchers import a_batch, a_commit
from tests.support.harness.recreated_topic import recreate_requests_topic
from tidegate_core.engine.actor_context import ActorContext
from tidegate_core.engine.actor_inputs import TopicFacts, Woken
from tidegate_core.language.values.instants import format_instant
from tidegate_core.language.values.log_position import Position
from tidegate_core.messages.one_shot.create_lookup import STANDS_IN
from tidegate_core.messages.wire.withheld_rows import FormerOwnerRows
from tidegate_core.rows.effects import Invalid
from tidegate_core.rows.inbox import InboxRow
from tidegate_core.rows.item_codec import from_item, to_item
from tidegate_core.rows.message import FIRST_VERSION, Message, MessageTimer
from tidegate_core.rows.store_operations import Delete, Item, Key, Put
from tidegate_core.shard.map_transition import former_positions
from tidegate_core.writes.partition_map import Cut

SECOND_ID, THIRD_ID = "2" * 32, "3" * 32
NAME = "m-1"
REQUEST = a_send(NAME, deliver_at=format_instant(NOW + MINUTE))


def come_late(bench: ActorHarness, rows: list[Item]) -> None:
    """The store takes a second copy of rows that a former owner wrote."""
    bench.store.write([Put(Key(str(row["pk"]), str(row["sk"])), row) for row in rows])


@pytest.fixture(autouse=True)
def _positions_are_raised_soon() -> Iterator[None]:
    """In their holders' place, as in worlds: some messages are due in less than the minute that production waits."""
    with turned(OF_MAPS):
        yield


def a_host_on_the_third_topic() -> ActorContext:
    former = (Cut(1, 1, REQUESTS_ID), Cut(2, 2, REQUESTS_ID), Cut(3, 2, SECOND_ID))
    return ActorContext(
        a_holding(topic_partitions=2, map_version=4, former_maps=former, requests=TopicFacts(REQUESTS, THIRD_ID, 2))
    )


def test_given_topics_that_are_gone_then_their_positions_have_to_carry_the_map_that_followed_them() -> None:
    wanted = former_positions(a_host_on_the_third_topic()).values()
    assert {(each.place, each.carries) for each in wanted} == {
        ((REQUESTS_ID, 0), 3),
        ((REQUESTS_ID, 1), 3),
        ((SECOND_ID, 0), 4),
        ((SECOND_ID, 1), 4),
    }


@pytest.mark.parametrize(
    ("topic_id", "offset", "is_gone"),
    [
        pytest.param(REQUESTS_ID, 6, False, id="the last one that was read"),
        pytest.param(REQUESTS_ID, 7, True, id="the first one that was not"),
        pytest.param(SECOND_ID, 0, True, id="of a topic of which nothing was read"),
        pytest.param(THIRD_ID, 99, False, id="of the present one it is still to be read"),
    ],
)
def test_given_a_create_then_it_is_gone_where_its_topic_is_and_nobody_has_read_it(
    topic_id: str, offset: int, is_gone: bool
) -> None:
    positions = {(REQUESTS_ID, 0): 7, (SECOND_ID, 0): 0, (THIRD_ID, 0): 5}
    elsewhere = FormerOwnerRows(a_host_on_the_third_topic(), positions)
    assert elsewhere.is_gone(Position(1, topic_id, 0, offset).text()) is is_gone


@pytest.mark.parametrize("is_member", [True, False])
def test_given_a_topic_that_is_made_anew_then_who_holds_a_part_of_it_carries_that_of_before_at_once(
    is_member: bool,
) -> None:
    """Review: nobody did, and all shards stood still for as long as others wait for a holder that does not hear of the map."""
    bench = ActorHarness()
    bench.run(SECOND)
    bench.is_member = is_member
    recreate_requests_topic(bench, 2)
    bench.run(SECOND)
    assert bench.actor.is_serving is is_member
    (before,) = (row for row in bench.rows("TP") if REQUESTS_ID in str(row["pk"]))
    assert before["map"] == (2 if is_member else 1)
    assert bench.actor.has_ended is not is_member


def test_given_a_message_that_was_read_in_time_then_it_is_sent_once_under_the_new_topic() -> None:
    bench = ActorHarness()
    bench.run(SECOND)
    bench.request(a_send("in time", after="15s"))
    bench.run(SECOND)
    recreate_requests_topic(bench, 2)
    bench.request(a_send("in time", after="15s"))
    bench.run(MINUTE)
    assert len(bench.delivered()) == 1


@pytest.mark.parametrize("kinds", [("M#", "D#"), ("M#",), ("D#",)], ids=["both rows", "message row", "timer row"])
@pytest.mark.parametrize("is_cancelled", [False, True], ids=["it is sent", "its cancel finds it"])
def test_given_late_rows_of_a_record_that_is_gone_then_they_replace_nothing_of_its_repeat(
    kinds: tuple[str, ...], is_cancelled: bool
) -> None:
    """Read: all records of an id without a key had one version, so that the message was lost, or its cancel answered `not_found`."""
    bench = ActorHarness()
    bench.run(SECOND)
    bench.hold_back(a_commit("cursor"))
    bench.request(REQUEST)
    bench.run(SECOND)
    rows = [row for kind in kinds for row in bench.rows(kind)]
    recreate_requests_topic(bench, 2)
    bench.run(2 * HAND_OVER_MS)
    bench.request(REQUEST)
    bench.run(2 * SECOND)
    come_late(bench, rows)
    bench.crash()
    bench.run(SECOND)
    if is_cancelled:
        bench.request(a_cancel(message_id=NAME))
    else:
        bench.request({**REQUEST, "receipt": True})
    bench.run(2 * MINUTE)
    assert bench.receipts()["c-1" if is_cancelled else NAME]["status"] == ("cancelled" if is_cancelled else "unchanged")
    assert len(bench.delivered()) == (0 if is_cancelled else 1)


@pytest.mark.parametrize("kinds", [("M#", "D#"), ("M#",), ("D#",)], ids=["both rows", "message row", "timer row"])
@pytest.mark.parametrize("then", ["it is sent", "its cancel finds it", "a crash amid its rows"])
def test_given_late_rows_of_a_record_that_is_gone_then_they_replace_nothing_of_its_repeat_in_the_inbox(
    kinds: tuple[str, ...], then: str
) -> None:
    """Seed 24006336: both were of one topic, and of one version; what was held back of the repeat stayed so, and its cancel said `not_found`."""
    bench = ActorHarness(shards=1)
    bench.run(SECOND)
    bench.hold_back(a_commit("cursor"))
    bench.request(REQUEST)
    bench.run(SECOND)
    rows = [row for kind in kinds for row in bench.rows(kind)]
    comes_through_the_inbox(bench, REQUEST, bench.now)
    bench.give(Woken(0))
    bench.run(SECOND)
    if then == "a crash amid its rows":
        bench.crash_at(a_batch("messages"))
    recreate_requests_topic(bench, 2)
    bench.run(2 * HAND_OVER_MS)
    come_late(bench, rows)
    bench.crash()
    bench.run(SECOND)
    is_cancelled = then == "its cancel finds it"
    bench.request(a_cancel(message_id=NAME) if is_cancelled else {**REQUEST, "receipt": True})
    bench.run(2 * MINUTE)
    assert bench.receipts()["c-1" if is_cancelled else NAME]["status"] == ("cancelled" if is_cancelled else "unchanged")
    assert len(bench.delivered()) == (0 if is_cancelled else 1)


def test_given_late_rows_of_a_repeat_in_the_inbox_that_another_topic_had_overtaken_then_they_are_not_sent() -> None:
    """The record of the topic that followed makes the message, and the one of the topic before leaves the inbox as its repeat. Rows that a former
    owner wrote of that one come when it has left.
    """
    former = ActorHarness(shards=1)
    former.run(SECOND)
    asked_at = former.now
    comes_through_the_inbox(former, REQUEST, asked_at)
    former.give(Woken(0))
    former.run(SECOND)
    rows = [*former.rows("M#"), *former.rows("D#")]
    bench = ActorHarness(shards=1)
    bench.run(2 * SECOND)
    recreate_requests_topic(bench, 2)
    bench.run(2 * HAND_OVER_MS)
    bench.request(REQUEST)
    bench.run(2 * SECOND)
    comes_through_the_inbox(bench, REQUEST, asked_at)
    bench.give(Woken(0))
    bench.run(2 * SECOND)
    come_late(bench, rows)
    bench.crash()
    bench.run(2 * MINUTE)
    assert len(bench.delivered()) == 1, "I8: a request of two records was delivered twice"


@pytest.mark.parametrize("how", ["a crash behind the refusal", "a write that the store does not take"])
def test_given_a_repeat_that_is_given_a_version_of_its_own_in_two_tries_then_nothing_stays_under_the_refused_one(
    how: str,
) -> None:
    """Read: the second try met the refused version as that of another record. What had been made of the repeat under it stayed in the store
    and in memory, and was counted as cancelled when its time came.
    """
    bench = ActorHarness(shards=1)
    bench.run(SECOND)
    bench.hold_back(a_commit("inboxed"))
    comes_through_the_inbox(bench, REQUEST, bench.now)
    comes_through_the_inbox(bench, {**REQUEST, "id": "beside"}, bench.now, number=1)
    bench.give(Woken(0))
    bench.run(SECOND)
    assert {row.version for row in _rows(bench)} == {FIRST_VERSION}
    if how == "a crash behind the refusal":
        bench.crash_at(a_commit("guard"))
    else:
        bench.answer_with(a_batch("messages"), Invalid("scripted"))
    recreate_requests_topic(bench, 2)
    bench.run(2 * HAND_OVER_MS)
    assert {row.version for row in _rows(bench)} == {f"{FIRST_VERSION}{STANDS_IN}{row.origin}" for row in _rows(bench)}
    bench.run(2 * MINUTE)
    assert len(bench.delivered()) == 2
    assert tally(bench) == (2, 0)


def test_given_a_record_that_stands_in_for_its_repeat_then_late_rows_of_its_own_version_are_not_sent_in_two_months() -> (
    None
):
    """The guard of the repeat covers them, which knew nothing of them: what it had replaced was due at once."""
    bench = ActorHarness(shards=1)
    bench.run(SECOND)
    document = a_send(NAME, key="k", after=f"{60 * 24 + 1}h")
    first = bench.now
    bench.request(a_send("replaced", key="k", after="10s"))
    bench.run(SECOND)
    bench.hold_back(a_commit("cursor"))
    bench.hold_back(a_batch("messages"))
    bench.request(document)
    comes_through_the_inbox(bench, document, first)
    recreate_requests_topic(bench, 2)
    bench.release()
    bench.run(MINUTE)
    standing_in = [row for row in _rows(bench) if STANDS_IN in row.version]
    assert len(standing_in) == 2
    for row in standing_in:
        late = replace(row, version=row.origin)
        bench.store.write([Put(late.key(0), {**to_item(late, late.key(0)), "rev": 1})])
    bench.months(2)
    bench.run(2 * HOUR)
    assert len(bench.delivered()) == 1


def _rows(bench: ActorHarness) -> list[Message | MessageTimer]:
    return [
        *(from_item(Message, row) for row in bench.rows("M#")),
        *(from_item(MessageTimer, row) for row in bench.rows("D#")),
    ]


@pytest.mark.parametrize("delivered_first", [False, True])
def test_given_three_topics_then_each_repeat_meets_the_first_record_that_was_read(delivered_first: bool) -> None:
    bench = ActorHarness()
    bench.run(SECOND)
    bench.request(REQUEST)
    for version in (2, 3):
        bench.run(2 * MINUTE if delivered_first else 2 * SECOND)
        recreate_requests_topic(bench, version)
        bench.run(2 * HAND_OVER_MS)
        bench.request({**REQUEST, "receipt": True})
        bench.run(SECOND)
        assert bench.receipts()[NAME]["status"] == "unchanged"
    bench.run(2 * MINUTE)
    assert len(bench.delivered()) == 1


def test_given_a_record_of_a_topic_that_this_holder_has_not_heard_of_then_it_is_a_message_all_the_same() -> None:
    """Who reads the newer topic hands it over to whoever holds the shard."""
    bench = ActorHarness()
    bench.run(SECOND)
    row = InboxRow(
        namespace="orders",
        name="x",
        kind="M",
        origin=Position(bench.now, SECOND_ID, 0, 0).text(),
        body=json.dumps(REQUEST),
    )
    bench.store.write([Put(row.key(0), {**to_item(row, row.key(0)), "rev": 1})])
    bench.run(2 * MINUTE)
    assert len(bench.delivered()) == 1


@pytest.mark.parametrize(
    ("left", "is_beside"),
    [
        pytest.param(("M#", "D#"), False, id="both rows"),
        pytest.param(("M#",), False, id="message row"),
        pytest.param(("M#", "D#"), True, id="beside rows of this release"),
    ],
)
def test_given_rows_that_a_node_of_the_release_before_wrote_of_a_record_then_it_is_sent_once(
    left: tuple[str, ...], is_beside: bool
) -> None:
    """Read: that one knew one version for all topics; a half of what it wrote was taken for another record's, and nothing was sent, or
    the message was sent under both versions.
    """
    bench = ActorHarness(shards=1)
    bench.run(SECOND)
    recreate_requests_topic(bench, 2)
    bench.run(2 * HAND_OVER_MS)
    bench.hold_back(a_commit("cursor"))
    bench.request(REQUEST)
    bench.run(SECOND)
    (timer,) = (from_item(MessageTimer, row) for row in bench.rows("D#"))
    (message,) = (from_item(Message, row) for row in bench.rows("M#"))
    if not is_beside:
        bench.store.write([Delete(timer.key(0)), Delete(message.key(0))])
    later = timer.slot + 20 * SECOND
    rows: list[Message | MessageTimer] = [replace(message, version=FIRST_VERSION, slot=later)]
    if "D#" in left:
        rows.append(replace(timer, version=FIRST_VERSION, slot=later))
    bench.store.write([Put(row.key(0), {**to_item(row, row.key(0)), "rev": 1}) for row in rows])
    bench.crash()
    bench.run(2 * MINUTE)
    assert len(bench.rows("M#")) == 1
    assert len(bench.delivered()) == 1


def test_given_a_topic_whose_version_was_refused_then_the_id_may_be_used_again_when_the_first_one_has_expired() -> None:
    """Read: `accepted`, and never sent. The repeat in the topic that followed was refused for good, for the message of the topic before."""
    bench = ActorHarness(shards=1)
    bench.run(SECOND)
    bench.request(REQUEST)
    bench.run(SECOND)
    recreate_requests_topic(bench, 2)
    bench.run(2 * HAND_OVER_MS)
    comes_through_the_inbox(bench, REQUEST, bench.now, topic_id=SECOND_ID)
    bench.give(Woken(0))
    bench.run(2 * MINUTE)
    assert len(bench.delivered()) == 1
    (guard,) = bench.rows("G#")
    assert guard["refused"]
    (message,) = (from_item(Message, row) for row in bench.rows("M#"))
    bench.store.write([Delete(message.key(0))])  # A month later.
    for status in ("accepted", "unchanged"):
        bench.request({**REQUEST, "receipt": True})
        bench.run(2 * MINUTE)
        assert bench.receipts()[NAME]["status"] == status
        assert len(bench.delivered()) == 2
    recreate_requests_topic(bench, 3)
    bench.run(2 * HAND_OVER_MS)
    bench.request({**REQUEST, "receipt": True})
    bench.run(2 * MINUTE)
    assert bench.receipts()[NAME]["status"] == "unchanged"
    assert len(bench.delivered()) == 2
