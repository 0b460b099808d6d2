"""Checks whether the group still counts a crashed previous incarnation of this process among its members.

With the classic protocol a rebalance waits for every member that the coordinator knows. A waiting member proves
nothing: its commits are queued after its join on one connection, and brokers answer one request at a time. If a process
restarts at once, its join starts a rebalance that waits for its own former session, up to 6 s. All membership leases
lapse after 3 s (librdkafka 2.16, Kafka 4: each time with `kill, back at once`). So the process joins later, when less
of the former session is left than of a lease.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeAlias

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from tidegate_kafka.clients.client_config import OWNER_ROLE
from tidegate_kafka.clients.connectivity import stranger_says
from tidegate_kafka.clients.settings import KafkaSettings

ANSWER_S_MAX: Final = 1.0
"""Time-out of one query; without an answer the process does not wait."""
OWNER_CHARACTERS: Final = 8
"""Length of the process's UUID part in its clients' ids."""
STARTED: Final = 19
"""Index of the start time after the name in a process's `stat`, in ticks since the machine's boot."""

StrangerSays: TypeAlias = Callable[[KafkaSettings, Callable[[AdminClient], bool]], bool]


def client_id(settings: KafkaSettings, node: str, owner: str) -> str:
    """Returns the client id of one process.

    Equal ids can cause endless rebalances. The node's name in it lets the next incarnation find this one.

    Args:
        settings: Settings of the cluster; all ids begin with its `client_id`.
        node: Node name, stable over restarts.
        owner: UUID of the process, as hex digits.
    """
    return f"{settings.client_id}-{node}-{owner[:OWNER_CHARACTERS]}"


def process_age_ms() -> int:
    """Returns the age of this process; 0 if unknown (not Linux), which makes the wait longer."""
    try:
        ticks = int(Path("/proc/self/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[STARTED])
        age_s = time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
    except (OSError, AttributeError):
        return 0
    return max(0, round(age_s * 1000))


class PreviousIncarnation:
    """Query for a previous incarnation, before the process joins. Blocks; runs on the membership's thread.

    Args:
        settings: Settings of the cluster, without the process's own client id.
        node: Node name.
        begun_ms: Start of the process on the monotonic clock.
        says: Runs the query with a probe client.
    """

    def __init__(self, settings: KafkaSettings, node: str, begun_ms: int, says: StrangerSays = stranger_says) -> None:
        self._settings = settings
        self._until = begun_ms + settings.behind_former_life_ms
        self._says = says
        beginning = re.escape(f"{settings.client_id}-{node}-")
        self._id = re.compile(rf"{beginning}[0-9a-f]{{{OWNER_CHARACTERS}}}-{OWNER_ROLE}")

    def is_in_the_way(self, now_ms: int) -> bool:
        """Whether other members would wait for it longer than their leases last. False if unknown: the process then
        joins.
        """
        return now_ms < self._until and self._says(self._settings, self._is_beside_others)

    def _is_beside_others(self, admin: AdminClient) -> bool:
        """Whether the group has a member of this node's name, and other members as well."""
        group = self._settings.group
        try:
            asked = admin.describe_consumer_groups([group], request_timeout=ANSWER_S_MAX)
            members = asked[group].result(ANSWER_S_MAX + 1).members
        except (KafkaException, TimeoutError):
            return False
        former = [each for each in members if self._id.fullmatch(each.client_id or "")]
        return bool(former) and len(former) < len(members)
