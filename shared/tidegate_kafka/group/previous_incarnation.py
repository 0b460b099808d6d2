"""Whether the group still counts an earlier life of this process among its members: one that fell, and said no goodbye.

With the classic protocol a rebalance waits for every member that the coordinator knows, and who waits proves nothing: its commits lie behind its
own join on one connection, of which brokers answer one request at a time. A process that comes back at once would begin a rebalance that waits
for its own former session to run out, up to 6 s, and all guards lapse after 3 s (librdkafka 2.16, Kafka 4: each time, `kill, back at once`). So
it joins later, when less is left of that session than of a guard.
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
"""Patience with one question; without an answer nobody waits."""
OWNER_CHARACTERS: Final = 8
"""Of a process's UUID, in its clients' ids."""
STARTED: Final = 19
"""Of the fields behind the name in a process's `stat`: when it began, in ticks since the machine's boot."""

StrangerSays: TypeAlias = Callable[[KafkaSettings, Callable[[AdminClient], bool]], bool]


def client_id(settings: KafkaSettings, node: str, owner: str) -> str:
    """Returns the id of one process's clients: equal ones can loop in rebalances, and its next life knows it by its node's name.

    Args:
        settings: Of the cluster; its `client_id` is what all ids begin with.
        node: Its name, stable over restarts.
        owner: UUID of the process, as hex digits.
    """
    return f"{settings.client_id}-{node}-{owner[:OWNER_CHARACTERS]}"


def process_age_ms() -> int:
    """Returns for how long this process has been there; 0 where nobody says (not Linux): who takes it for younger waits for longer."""
    try:
        ticks = int(Path("/proc/self/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[STARTED])
        age_s = time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
    except (OSError, AttributeError):
        return 0
    return max(0, round(age_s * 1000))


class PreviousIncarnation:
    """Asked by a process that has not joined yet. Blocking, on its membership's thread.

    Args:
        settings: Of the cluster, without the process's own client id.
        node: The process's name.
        begun_ms: When the process began, on the monotonic clock.
        says: Asks a client that is made for the question.
    """

    def __init__(self, settings: KafkaSettings, node: str, begun_ms: int, says: StrangerSays = stranger_says) -> None:
        self._settings = settings
        self._until = begun_ms + settings.behind_former_life_ms
        self._says = says
        beginning = re.escape(f"{settings.client_id}-{node}-")
        self._id = re.compile(rf"{beginning}[0-9a-f]{{{OWNER_CHARACTERS}}}-{OWNER_ROLE}")

    def is_in_the_way(self, now_ms: int) -> bool:
        """Whether others would have to wait for it for longer than their guards last. False where nobody can say: the process joins."""
        return now_ms < self._until and self._says(self._settings, self._is_beside_others)

    def _is_beside_others(self, admin: AdminClient) -> bool:
        """Whether the group has a member of this name and others besides."""
        group = self._settings.group
        try:
            asked = admin.describe_consumer_groups([group], request_timeout=ANSWER_S_MAX)
            members = asked[group].result(ANSWER_S_MAX + 1).members
        except (KafkaException, TimeoutError):
            return False
        former = [each for each in members if self._id.fullmatch(each.client_id or "")]
        return bool(former) and len(former) < len(members)
