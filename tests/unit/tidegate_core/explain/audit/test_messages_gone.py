"""Messages whose create nobody had passed before its requests topic was made anew: nobody delivers them, and none of them is lost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from tests.support.builders import MINUTE, NOW, REQUESTS_ID
from tidegate_core.explain.audit.delivered_records import OnTopics, Seen, judge_sink, sink_facts
from tidegate_core.explain.audit.findings import Findings
from tidegate_core.explain.audit.message_tallies import ClosedTally, MessageFacts, MessageRow, judge_messages
from tidegate_core.explain.audit.shard_snapshot import ShardFacts, Window
from tidegate_core.language.values.log_position import Position
from tidegate_core.messages.wire.due_queue import NOTHING
from tidegate_core.messages.wire.message_record import delivered_as
from tidegate_core.rows.message import FIRST_VERSION, MessageTimer
from tidegate_core.writes.message_delivery import Tally

WINDOW = Window(NOW - MINUTE, NOW + MINUTE)
NAMED = ("m", FIRST_VERSION)
PASSED, UNREAD = 6, 7
GONE_FROM = {(REQUESTS_ID, 0): UNREAD}


def an_origin(offset: int, topic_id: str = REQUESTS_ID, topic_partition: int = 0) -> str:
    return Position(NOW, topic_id, topic_partition, offset).text()


def a_row(origin: str) -> MessageRow:
    return MessageRow(origin=origin, namespace="orders", nominal=NOW, slot=NOW, topic="out", keyed=False)


def a_timer(origin: str, slot: int = NOW) -> MessageTimer:
    return MessageTimer(slot=slot, id="m", version=FIRST_VERSION, origin=origin, attempt=1, expires_at=0)


def facts_of(row: str | None, *timers: str, at: int = NOW + 1, **more: Any) -> MessageFacts:
    """Returns the facts of a shard with one message.

    Args:
        row: Origin of its message row.
        timers: Origins of its timer rows.
        at: Where the delivery position stands.
        more: Fields of the facts.
    """
    return MessageFacts(
        shard=0,
        position=(at, "", ""),
        rows={} if row is None else {NAMED: a_row(row)},
        timers={NAMED: [a_timer(origin, NOW + number) for number, origin in enumerate(timers)]} if timers else {},
        **({"gone_from": GONE_FROM} | more),
    )


def judged(facts: MessageFacts, seen: dict[str, Seen] | None = None) -> Findings:
    found = judge_messages(facts, WINDOW)
    found.add(judge_sink(sink_facts(ShardFacts(shard=0), facts, WINDOW), WINDOW, OnTopics(seen or {})))
    return found


def kinds(found: Findings) -> Sequence[str]:
    return [each.kind for each in found.differences]


@pytest.mark.parametrize("at", [NOW + 1, NOW - 1])
def test_given_an_unread_create_of_a_topic_that_is_gone_then_its_rows_are_gone(at: int) -> None:
    origin = an_origin(UNREAD)
    for facts in (facts_of(origin, origin, at=at), facts_of(origin, at=at), facts_of(None, origin, at=at)):
        found = judged(facts)
        assert (found.differences, found.behind, dict(found.counts)) == ([], [], {"gone": 1})


def test_given_such_a_message_that_was_delivered_after_all_then_nothing_is_said() -> None:
    facts = facts_of(an_origin(UNREAD), an_origin(UNREAD))
    found = judged(facts, {facts.id_of(NAMED): Seen(NOW)})

    assert (found.differences, found.counts["gone"], found.counts["seen"]) == ([], 1, 1)


@pytest.mark.parametrize(
    "origin",
    [an_origin(PASSED), an_origin(UNREAD, "c" * 32), an_origin(UNREAD, topic_partition=1)],
    ids=["passed", "another topic", "another topic partition"],
)
def test_given_any_other_create_then_its_message_is_lost_as_ever(origin: str) -> None:
    assert kinds(judged(facts_of(origin, origin))) == ["message_lost"], "on no topic"
    assert kinds(judged(facts_of(origin))) == ["message_lost"], "no timer row"
    assert kinds(judged(facts_of(None, origin))) == ["message_lost"], "no payload"


def test_given_rows_of_which_some_count_then_the_message_is_lost_as_ever() -> None:
    """Records of one request may share rows: one of them was passed."""
    gone, passed = an_origin(UNREAD), an_origin(PASSED)
    for facts in (facts_of(gone, passed), facts_of(passed, gone), facts_of(gone, gone, passed, at=NOW + 2)):
        assert kinds(judged(facts)) == ["message_lost"]


def test_given_a_tally_then_what_is_gone_may_have_been_counted_and_need_not() -> None:
    def with_tally(tally: Tally, **more: Any) -> MessageFacts:
        tallies = [
            ClosedTally(through=(NOW - 1, "", ""), tally=NOTHING),
            ClosedTally(through=(NOW + 1, "", ""), tally=tally),
        ]
        return facts_of(an_origin(UNREAD), an_origin(UNREAD), tallies=tallies, **more)

    delivered = NOTHING.plus(delivered_as(facts_of(an_origin(UNREAD)).id_of(NAMED)))
    for tally in (NOTHING, delivered):
        assert kinds(judged(with_tally(tally))) == []
    assert kinds(judged(with_tally(delivered.plus(delivered)))) == ["tally_differs"]
    assert "tally_differs" in kinds(judged(with_tally(NOTHING, gone_from={})))
