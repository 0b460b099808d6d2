"""Cancels that come as their messages are on the way to a topic that is missing: each answer is true at last, on a real broker.

From a trial of the product: 32 of 32 cancels were answered `too_late`, and no message was delivered or became a dead letter.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tests.support.cluster.topic_reader import make_topic, read_topic
from tests.support.tier import at_night
from tidegate_core.language.values.instants import format_instant

if TYPE_CHECKING:
    from tests.integration.node.conftest import Cluster

MESSAGES = at_night(32, else_=8)
AFTER_S = 2
SPREAD_S = 1.0
"""The cancels come from the messages' time on, up to so long behind it."""
TOPIC_PARTITIONS = 2
TIMEOUT_S = 90.0


def answers_to_cancels(cluster: Cluster, topic: str) -> Mapping[int, str]:
    """Sends messages to a topic that is missing, and cancels each right behind its time; returns the answers."""
    run = uuid.uuid4().hex[:8]
    due = time.monotonic() + AFTER_S
    for number in range(MESSAGES):
        send = {"type": "message.send", "namespace": "tests", "key": f"k-{run}-{number}", "after": f"{AFTER_S}s"}
        cluster.send("requests", {"id": f"m-{run}-{number}", "topic": topic, "payload": {"number": number}, **send})
    for number in range(MESSAGES):
        _until_clock(due + SPREAD_S * number / MESSAGES)
        cancel = {"type": "message.cancel", "namespace": "tests", "key": f"k-{run}-{number}"}
        cluster.send("requests", {"id": f"c-{run}-{number}", **cancel})

    def answered() -> Mapping[int, str]:
        receipts = {each.value["request_id"]: each.value["status"] for each in cluster.records("receipts")}
        found = {number: receipts.get(f"c-{run}-{number}") for number in range(MESSAGES)}
        return {} if None in found.values() else {number: str(status) for number, status in found.items()}

    said: Mapping[int, str] = cluster.until(answered, "an answer to each cancel")
    return said


def _until_clock(moment: float) -> None:
    """The cancels are spread over a second: that is the input, nothing is waited for."""
    time.sleep(max(0.0, moment - time.monotonic()))


def arrived(cluster: Cluster, topic: str) -> list[int]:
    """Returns the numbers of the messages that were delivered, or are dead letters."""
    records = read_topic(cluster.settings.kafka.bootstrap_servers, topic)
    delivered = [json.loads(each.value or b"{}")["number"] for each in records]
    return sorted([*delivered, *(each.value["number"] for each in cluster.records("requests.dlq"))])


def audit(cluster: Cluster, begin: int, end: int) -> tuple[int, dict[str, Any]]:
    """Returns exit code and document of the command."""
    span = ("--from", format_instant(begin), "--to", format_instant(end), "--sink", "--reads-per-s", "5000")
    ended = subprocess.run(
        [sys.executable, "-m", "tidegate_cli.main", "audit", *span, "-o", "json"],
        env={**os.environ, **cluster.environment},
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert ended.stdout, ended.stderr
    return ended.returncode, json.loads(ended.stdout)


def test_given_cancels_of_messages_on_the_way_to_a_missing_topic_then_each_answer_is_true_once_the_topic_is_there(
    cluster: Cluster,
) -> None:
    begin, topic = time.time_ns() // 1_000_000, f"late-{uuid.uuid4().hex[:8]}"
    node = cluster.start_node()
    node.until_serving(cluster.shards)
    answers = answers_to_cancels(cluster, topic)
    assert set(answers.values()) <= {"too_late", "cancelled"}
    too_late = sorted(number for number, status in answers.items() if status == "too_late")
    assert too_late, "every cancel came before its message had left the node: nothing was tried"
    make_topic(cluster.settings.kafka.bootstrap_servers, topic, TOPIC_PARTITIONS)
    cluster.until(
        lambda: set(too_late) <= set(arrived(cluster, topic)),
        "each message whose cancel came too late",
        detail=lambda: f"{answers} {arrived(cluster, topic)}",
    )
    end = time.time_ns() // 1_000_000
    assert node.end(signal.SIGTERM) == 0
    # None of the others, and none of these twice.
    assert arrived(cluster, topic) == too_late
    code, found = audit(cluster, begin, end)
    assert (code, found["differences"]) == (0, [])
    assert found["counts"]["seen"] == len(too_late)
