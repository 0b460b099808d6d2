"""What must go on around hostile records: schedules and a source that listen, and a right record behind the last hostile one."""

from __future__ import annotations

import time
from typing import Any, Final

from tests.support.cluster.cluster import TOPIC_PARTITIONS, Cluster
from tests.support.cluster.evidence import Evidence
from tests.support.cluster.topic_reader import read_topic
from tests.support.cluster.until import until
from tests.support.cluster.user_client import Client

NAMESPACE: Final = "controls"
"""No hostile record comes by it: they are right ones of other namespaces, with something wrong in them."""
SOURCE_TOPIC: Final = "controls.commits"
"""Nor by this topic: sources of hostile requests read others."""
PREFIX: Final = "control-"
SINK: Final = "controls.out"
DESTINATIONS: Final = ("orders.reminders", "out")
"""Of right requests that lie between the hostile ones."""
SOURCE: Final[dict[str, Any]] = {
    "kind": "source",
    "namespace": NAMESPACE,
    "name": "commits",
    "topic": SOURCE_TOPIC,
    "event": {
        "dataset": "committed",
        "partition": {"pointer": "/day"},
        "id": {"pointer": "/id"},
        "bytes": {"pointer": "/size"},
        "event_time": {"pointer": "/at"},
        "version": {"header": "ce_id"},
        "producer": {"pointer": "/spec/a/0"},
    },
}
CONTROLS: Final = 3 * TOPIC_PARTITIONS
"""A message, an event and a record of a source into each topic partition."""
PATIENCE_S = 300.0
"""Hostile requests that were right have made schedules, messages and wide suspends; behind them it takes its time."""
STUCK_S = 180.0
"""Of a million records some 90,000 are right requests: those in front are answered first. While any is, nothing is stuck."""


class Controls:
    """Makes what listens, and at the end sends a right record into each topic partition.

    Raises:
        AssertionError: A receipt is not `accepted`, or what was asked for does not come.
    """

    def __init__(self, cluster: Cluster, client: Client, evidence: Evidence) -> None:
        self._cluster = cluster
        self._client = client
        self._evidence = evidence
        for topic in (SOURCE_TOPIC, SINK, *DESTINATIONS):
            cluster.make_topic(topic, TOPIC_PARTITIONS)
        self._asked({"type": "source.apply", "namespace": NAMESPACE, "name": SOURCE["name"], "spec": SOURCE})
        # Their events are right ones between hostile ones, so that matching works as well, and seldom makes a run.
        self._apply(
            "flights", "landed", {"type": "data_partitions", "dataset": "flights.raw", "unit": "events", "count": 500}
        )
        self._apply("orders", "arrived", {"type": "event", "name": "custom.truck-arrived", "count": 500})
        ours = {"field": "partition", "prefix": PREFIX}
        for name, dataset in (("announced", "announced"), ("committed", "committed")):
            trigger = {"type": "data_partitions", "dataset": dataset, "count": TOPIC_PARTITIONS, "where": ours}
            self._apply(NAMESPACE, name, trigger)

    def carried_out(self) -> int:
        """Sends one into each topic partition of each kind, waits for what it asks for, and returns how many they are."""
        # Right requests of others may have suspended everything.
        self._asked_behind_all({"id": "control-resume", "type": "control.resume", "scope": "system"})
        for number in range(TOPIC_PARTITIONS):
            name = f"{PREFIX}{number}"
            message = {"topic": SINK, "after": "0s", "payload": {"control": name}, "receipt": True}
            request = {"id": name, "type": "message.send", "namespace": NAMESPACE, **message}
            self._client.send("requests", request, topic_partition=number)
            event = {
                "id": name,
                "type": "data.partition",
                "namespace": NAMESPACE,
                "dataset": "announced",
                "partition": name,
            }
            self._client.send("events", event, topic_partition=number)
            record = {"day": name, "id": name, "size": 1, "at": "2026-01-01T00:00:00Z", "spec": {"a": ["control"]}}
            self._client.send_to(SOURCE_TOPIC, record, topic_partition=number)
        wanted = {f"{PREFIX}{number}" for number in range(TOPIC_PARTITIONS)}
        until(lambda: wanted <= self._delivered(), "the message of each topic partition is delivered", PATIENCE_S, 1.0)
        for name in sorted(wanted):
            assert self._client.receipt(name, PATIENCE_S)["status"] == "accepted"
        for schedule in ("announced", "committed"):
            until(
                lambda schedule=schedule: wanted <= self._told(schedule),  # type: ignore[misc]
                f"{schedule} runs for an event of each topic partition",
                PATIENCE_S,
                1.0,
            )
        return CONTROLS

    def _delivered(self) -> set[str]:
        return {str(each.document["control"]) for each in read_topic(self._cluster.bootstrap_servers, SINK)}

    def _told(self, schedule: str) -> set[str]:
        """Data partitions that the runs of a schedule were told of."""
        return {entry.data_partition for run in self._evidence.of(schedule) for entry in run.manifest}

    def _apply(self, namespace: str, name: str, trigger: dict[str, Any]) -> None:
        target = self._evidence.target()
        spec = {"kind": "schedule", "namespace": namespace, "name": name, "target": target, "trigger": trigger}
        self._asked({"type": "schedule.apply", "namespace": namespace, "name": name, "spec": spec})

    def _asked_behind_all(self, request: dict[str, Any]) -> None:
        self._client.send("requests", request)
        answered, since = 0, time.monotonic()
        while (said := (receipts := self._client.receipts()).get(request["id"])) is None:
            if len(receipts) > answered:
                answered, since = len(receipts), time.monotonic()
            assert time.monotonic() < since + STUCK_S, (
                f"{request['id']} is not answered, nor anything else for {STUCK_S:g} s"
            )
            time.sleep(1.0)
        assert said["status"] in ("accepted", "unchanged"), said

    def _asked(self, request: dict[str, Any]) -> None:
        said = self._client.request(request, patience_s=PATIENCE_S)
        assert said["status"] in ("accepted", "unchanged"), said
