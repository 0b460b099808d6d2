"""Moves cursors over offsets that hold no record: transaction markers and aborted records (KIP-98).

A cursor stays before such offsets until a record follows. If none follows until retention deletes them, the log begins after the cursor. The
next reader cannot tell then whether records are lost, and stays there until a person moves the cursor. So the cursor passes them earlier.
A partition actor runs this while it serves; the cursors write.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Final

from tidegate_core.engine.actor_context import ActorContext
from tidegate_core.engine.actor_inputs import TopicFacts
from tidegate_core.engine.operations import Operation
from tidegate_core.ingest.topic_cursor import TopicCursor
from tidegate_core.rows.effects import EndOffsets, FindGaps, Gaps, ReadEndOffsets
from tidegate_core.rows.store_operations import Key

CHECK_MS: Final = 10 * 60_000
"""Interval between checks: far below any retention, and one question to the brokers for each idle topic."""


def pass_marks(host: ActorContext, cursors: Mapping[tuple[str, int], TopicCursor]) -> Operation[None]:
    """Checks all cursors again and again; a cursor that has not moved between two checks may be before a gap.

    Args:
        host: Shared parts of the partition actor.
        cursors: Cursors of the actor, which adds and removes them.
    """
    stood: dict[Key, int] = {}
    while True:
        yield from host.sleep(CHECK_MS + host.jitter("marks", CHECK_MS // 10), routine=True)
        waiting = sorted((each for each in cursors.values() if each.waits), key=_where)
        still = [each for each in waiting if stood.get(each.key) == each.at.next]
        stood = {each.key: each.at.next for each in waiting}
        for topic, standing in groupby(still, key=lambda each: each.topic):
            yield from _pass(host, topic, list(standing))


def _where(cursor: TopicCursor) -> tuple[str, str, int]:
    return cursor.topic.name, cursor.topic.id, cursor.topic_partition


def _pass(host: ActorContext, topic: TopicFacts, standing: Sequence[TopicCursor]) -> Operation[None]:
    told = yield ReadEndOffsets(topic.name, may_be_missing=True)
    ends = told.offsets if isinstance(told, EndOffsets) else {}
    spans = {
        each.topic_partition: (each.at.next, ends.get(f"{topic.id}/{each.topic_partition}", 0)) for each in standing
    }
    behind = {number: span for number, span in spans.items() if span[0] < span[1]}
    if not behind:
        return
    found = yield FindGaps(topic.name, topic.id, behind)
    for each in standing if isinstance(found, Gaps) else ():
        if each.topic_partition in found.topic_partitions:
            each.pass_over(*behind[each.topic_partition])
