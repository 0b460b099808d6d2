"""The consumer of the sink, a process of its own: what the load generator does must not make records look late.

    python sink_process.py BOOTSTRAP_SERVERS TOPIC RESULT_FILE COUNT

It reads the whole topic from its beginning, makes `RESULT_FILE.ready` once it reads, ends after COUNT different ids or at
SIGTERM, and writes `[[nominal, appended_ms, received_us, id], ...]`. Only the Kafka client is needed: any source tree will do.
"""

from __future__ import annotations

import json
import signal
import sys
import time
from pathlib import Path
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, Message, TopicPartition

BATCH_MAX = 1_000
POLL_S = 0.1
ASK_TIMEOUT_S = 30.0


def main(bootstrap_servers: str, topic: str, result: Path, count: int) -> None:
    """Reads until all are there, or until it is told to end."""
    told: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: told.append(number))
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap_servers,
            "group.id": "bench.sink",
            "enable.auto.commit": False,
            "fetch.min.bytes": 1,
            "log_level": 0,
        }
    )
    numbers = consumer.list_topics(topic, ASK_TIMEOUT_S).topics[topic].partitions
    consumer.assign([TopicPartition(topic, number, OFFSET_BEGINNING) for number in numbers])
    consumer.poll(0)
    result.with_name(f"{result.name}.ready").touch()
    rows: list[list[Any]] = []
    ids: set[str] = set()
    while len(ids) < count and not told:
        first = consumer.poll(POLL_S)
        if first is None:
            continue
        # What came with it; the stamp is of the moment at which a program has the records in its hands.
        batch = [first, *consumer.consume(BATCH_MAX - 1, 0)]
        now_us = time.time_ns() // 1_000
        for message in batch:
            if message.error() is None:
                row = _row(message, now_us)
                rows.append(row)
                ids.add(row[3])
    consumer.close()
    whole = result.with_name(f"{result.name}.part")
    whole.write_text(json.dumps(rows), encoding="utf-8")
    whole.rename(result)


def _row(message: Message, now_us: int) -> list[Any]:
    headers = dict(message.headers() or ())
    nominal, identity = headers.get("tidegate-nominal"), headers.get("tidegate-id")
    assert isinstance(nominal, bytes)
    assert isinstance(identity, bytes)
    return [nominal.decode(), message.timestamp()[1], now_us, identity.decode()]


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]), int(sys.argv[4]))
