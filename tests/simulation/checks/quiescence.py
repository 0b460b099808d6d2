"""Liveness: a healed world comes to rest, with every request answered, every record read and nothing left open."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from tests.simulation.world import cluster as parts
from tests.simulation.world.broker import has_records
from tests.simulation.world.rolling_upgrade import is_migrated
from tidegate_core.rows import keys
from tidegate_core.rows.store_operations import Key
from tidegate_core.shard.timer_rows import NEXT_TICK
from tidegate_core.writes.fencing import whole

if TYPE_CHECKING:
    from tests.simulation.checks.case import Case
    from tests.simulation.world.world import World

SHOWN: Final = 6
OPEN_KINDS: Final = ("H#", "I#", "J#", "R#", "Z#")
"""Rows that are work to be done; nothing stays suspended, so nothing is held back in the end."""
DELIVERED_WITHIN_MS: Final = 2_000


def check_rest(case: Case) -> Iterator[str]:
    world = case.world
    if not world.at_rest:
        left = open_work(world)
        yield f"liveness: {len(left)} things are still open long after all faults have ended: {'; '.join(left[:SHOWN])}"
    if world.came_late:
        yield f"I5: delayed writes changed a world at rest: {'; '.join(world.came_late[:SHOWN])}"


def open_work(world: World) -> list[str]:
    """Returns what is still to be done, in words."""
    cluster = world.cluster
    found = [f"request {each} has no receipt" for each in world.requests.unanswered()]
    found += [f"user of {user.life.name} waits" for user in world.users if not user.is_done]
    found += [f"user of the controls of {user.namespace} waits" for user in world.controllers if not user.is_done]
    found += ["user of the source waits" for user in world.sources if not user.is_done]
    if not is_migrated(cluster):
        found.append("rows are still written in the older version")
    if world.senders.last_due + DELIVERED_WITHIN_MS > cluster.timeline.now:
        found.append("messages are not due yet")
    if found:
        return found
    for item in cluster.store.memory.stored():
        sk = str(item["sk"])
        if sk.startswith(OPEN_KINDS):
            found.append(f"{item['pk']!s} {sk}")
        elif sk.startswith("T#") and sk.endswith(NEXT_TICK):
            found.append(f"{item['pk']!s} {sk}")  # Ticks are still to come, and none lasts as long as a look.
        elif sk.startswith("T#") and item["kind"] == "U":
            found.append(f"{item['pk']!s} {sk}")  # A suspension is still to end.
        elif sk.startswith("D#") and int(sk.split("#", 2)[1]) + DELIVERED_WITHIN_MS > cluster.timeline.now:
            found.append(f"{item['pk']!s} {sk}")  # Refused four times, a message has its fifth attempt 40 s later.
        elif sk == "LIMIT" and item.get("in_use") and not keys.is_rate(Key(str(item["pk"]), sk)):
            found.append(f"{item['pk']!s} is in use")
    found += _unread(world)
    return found


def _unread(world: World) -> Iterator[str]:
    """Yields topic partitions whose position is not behind all records of the log."""
    cluster = world.cluster
    sourced = [parts.SOURCE_TOPIC for user in world.sources if user.is_there]
    for name in (parts.REQUESTS, parts.EVENTS, *sourced):
        topic = cluster.broker.topics[name]
        for number, log in enumerate(topic.logs):
            position = cluster.store.memory.look(keys.topic_position(parts.CLUSTER_ID, topic.id, number))
            read = 0 if position is None else whole(position, "next")
            if read > len(log) or has_records(log, read, len(log)):
                yield f"{name} {number} is read up to {read!s} of {len(log)}"
