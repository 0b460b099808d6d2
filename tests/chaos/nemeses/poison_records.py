"""Records that nobody can use, on the topics that all nodes read."""

from __future__ import annotations

import json
import random

from tests.chaos.nemeses.nemesis import Blow, Nemesis
from tests.chaos.rig.rig import RECOVERY_S_MAX, Rig
from tests.support.cluster.process import ClusterProcess
from tests.support.cluster.topic_reader import read_topic
from tests.support.cluster.until import now_ms, until
from tests.support.cluster.user_client import Acknowledged

RECORDS = 40
TOPICS = ("requests", "events")
LOOK_EVERY_S = 1.0
"""A look reads all dead letters."""


def poison(rig: Rig, _: ClusterProcess) -> Blow:
    """Sends poison, and waits until each record of it lies on the dead-letter topic with its place."""
    at = now_ms()
    sent: list[Acknowledged] = []
    for number in range(RECORDS):
        rig.client.send(TOPICS[number % 2], record(rig.chance), on_acknowledged=sent.append)
    rig.client.flush()
    wanted = {(each.topic, each.topic_partition, each.offset) for each in sent}
    assert len(wanted) == RECORDS, "the broker did not take all of the poison"
    until(
        lambda: wanted <= dead_letters(rig.cluster.bootstrap_servers),
        "every poisoned record is a dead letter",
        RECOVERY_S_MAX,
        LOOK_EVERY_S,
    )
    return Blow((), at, now_ms(), felt={"poisoned": RECORDS})


def record(chance: random.Random) -> bytes:
    """Returns a value that is no request and no event."""
    whole = json.dumps({"id": f"poison-{chance.getrandbits(64)}", "type": "message.send", "payload": {"a": 1}}).encode()
    return chance.choice(
        [
            chance.randbytes(chance.randint(1, 400)),
            whole[: chance.randint(1, len(whole) - 1)],
            b'{"id": ' + b"[" * 5_000,
            b'{"type": "data.partition", "namespace": 7, "dataset": []}',
            b'{"deliver_at": NaN, "type": "message.send"}',
            b'\xff\xfe{"id": "x"}',
            b"x" * 200_000,
        ]
    )


def dead_letters(bootstrap_servers: str) -> set[tuple[str, int, int]]:
    """Returns the places from which dead letters came: topic, topic partition, offset."""
    return {
        (
            letter.header("tidegate.error.topic"),
            int(letter.header("tidegate.error.partition")),
            int(letter.header("tidegate.error.offset")),
        )
        for topic in TOPICS
        for letter in read_topic(bootstrap_servers, f"tidegate.{topic}.dlq")
    }


POISON = Nemesis("poison records", poison, ("poisoned", "dead_letters"))
