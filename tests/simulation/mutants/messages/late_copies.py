"""Rules of messages without a key whose request has records in a requests topic that is gone and in the one that followed
(docs/protocol.md), each switched off in the interleaving that it is against.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tests.simulation.faults.small_limits import HAND_OVER_MS
from tests.simulation.mutants.mutant import Mutant, Patch
from tests.simulation.mutants.mutant_harness import comes_through_the_inbox
from tests.support.builders import MINUTE, NOW, SECOND, a_send
from tests.support.harness.actor_harness import Bench
from tests.support.harness.effect_matchers import a_commit
from tests.support.harness.recreated_topic import recreate_requests_topic
from tidegate_core.decisions.delivery_plane import creates, plane
from tidegate_core.decisions.delivery_plane.creates import Create
from tidegate_core.decisions.inputs import Poked
from tidegate_core.model.instants import format_instant
from tidegate_core.model.shards import message_shard
from tidegate_core.records.messages import FIRST_VERSION
from tidegate_core.store.values import Item, Key, Put

SHARDS = 4
NAME = "m-1"
SHARD = message_shard("orders", None, NAME, SHARDS)
REQUEST = a_send(NAME, deliver_at=format_instant(NOW + MINUTE))

# -- bugs -----------------------------------------------------------------------------------------------------------------


def one_for_all_topics(_: Any) -> Any:
    return lambda topic_id, first_topic_id: FIRST_VERSION


def of_its_own_topic(_: Any) -> Any:
    return lambda plane, create: [create.version]


def with_its_topic(_: Any) -> Any:
    return lambda plane, create: False


def under_a_key_alone(_: Any) -> Any:
    return property(lambda create: create.name.keyed)


# -- scenarios --------------------------------------------------------------------------------------------------------------


def sent_once(bench: Bench) -> Iterable[str]:
    found = len(bench.delivered())
    if not found:
        yield "I1: a request of two records, one of which went with its topic, was not delivered"
    if found > 1:
        yield f"I8: a request of two records was delivered {found} times"


def rows_of_its_message(bench: Bench) -> list[Item]:
    return [row for row in bench.store.items() if str(row["sk"]).startswith(("M#", "D#"))]


def come_late(bench: Bench, rows: list[Item]) -> None:
    bench.store.write([Put(Key(str(row["pk"]), str(row["sk"])), row) for row in rows])


def a_message_that_was_not_passed() -> tuple[Bench, list[Item]]:
    """It is written, and its position is not moved; with the rows of the message."""
    bench = Bench(shards=SHARDS)
    bench.run(SECOND)
    bench.hold_back(a_commit("cursor"))
    bench.request(REQUEST)
    bench.run(SECOND)
    rows = rows_of_its_message(bench)
    return bench, rows


def a_copy_of_what_is_gone_comes_behind_its_repeat() -> Iterable[str]:
    """A message is written, its position is not moved, the topic is made anew, and its sender asks again. Then the store takes a second
    copy of the first record's rows, and the owner falls.
    """
    bench, rows = a_message_that_was_not_passed()
    recreate_requests_topic(bench, 2)
    bench.run(2 * HAND_OVER_MS)
    bench.request(REQUEST)
    bench.run(2 * SECOND)
    come_late(bench, rows)
    bench.crash()
    bench.run(2 * MINUTE)
    yield from sent_once(bench)


def a_message_is_asked_for_again_in_the_topic_that_followed() -> Iterable[str]:
    """Its record was passed: what is gone is the topic, and not the message."""
    bench = Bench(shards=SHARDS)
    bench.run(SECOND)
    bench.request(REQUEST)
    bench.run(SECOND)
    recreate_requests_topic(bench, 2)
    bench.run(2 * HAND_OVER_MS)
    bench.request(REQUEST)
    bench.run(2 * MINUTE)
    yield from sent_once(bench)


def rows_of_the_repeat_that_lies_in_the_inbox_come_late() -> Iterable[str]:
    """Of two records the one of the topic that followed makes the message, and the other one, of the topic before, leaves the inbox as its
    repeat. Rows that a former owner wrote of that come when it has left.
    """
    former = Bench(shards=SHARDS)
    former.run(SECOND)
    asked_at = former.now
    comes_through_the_inbox(former, REQUEST, asked_at, SHARD)
    former.give(Poked(SHARD))
    former.run(SECOND)
    rows = rows_of_its_message(former)
    bench = Bench(shards=SHARDS)
    bench.run(2 * SECOND)
    recreate_requests_topic(bench, 2)
    bench.run(2 * HAND_OVER_MS)
    bench.request(REQUEST)
    bench.run(2 * SECOND)
    comes_through_the_inbox(bench, REQUEST, asked_at, SHARD)
    bench.give(Poked(SHARD))
    bench.run(2 * SECOND)
    come_late(bench, rows)
    bench.crash()
    bench.run(2 * MINUTE)
    yield from sent_once(bench)


def a_copy_of_what_is_gone_comes_behind_its_repeat_in_the_inbox() -> Iterable[str]:
    """Both records were in the topic that is gone; the repeat was passed, the first one was not."""
    bench, rows = a_message_that_was_not_passed()
    comes_through_the_inbox(bench, REQUEST, bench.now, SHARD)
    bench.give(Poked(SHARD))
    bench.run(SECOND)
    recreate_requests_topic(bench, 2)
    bench.run(2 * HAND_OVER_MS)
    come_late(bench, rows)
    bench.crash()
    bench.run(2 * MINUTE)
    yield from sent_once(bench)


RULES_OF_LATE_COPIES = (
    Mutant(
        "one version for all topics",
        "rows of a record that went with its topic come late, and replace those of its repeat",
        breaks="I1",
        patches=(Patch(plane, "version_without_key", one_for_all_topics),),
        scenario=a_copy_of_what_is_gone_comes_behind_its_repeat,
    ),
    Mutant(
        "versions of its own topic",
        "a repeat in the topic that followed does not see the message that the topic before has made",
        breaks="I8",
        patches=(Patch(creates, "_versions_looked_up", of_its_own_topic),),
        scenario=a_message_is_asked_for_again_in_the_topic_that_followed,
    ),
    Mutant(
        "refused under a key alone",
        "late rows of a repeat without a key, of the topic before, are sent beside the message that it repeats",
        breaks="I8",
        patches=(Patch(Create, "has_its_own_version", under_a_key_alone),),
        scenario=rows_of_the_repeat_that_lies_in_the_inbox_come_late,
    ),
    Mutant(
        "one version with what is gone",
        "late rows of a record that went with its topic replace those of its repeat, of that very topic, which was passed",
        breaks="I1",
        patches=(Patch(creates, "_outlives_its_topic", with_its_topic),),
        scenario=a_copy_of_what_is_gone_comes_behind_its_repeat_in_the_inbox,
    ),
)
