"""Plan of tidegate's own topics: compares them with the plan and creates missing ones.

`tidegate init` and a node's start call it. It never alters an existing topic: a shorter retention, for example, may be
intended. It returns the differences, and the caller decides.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # the package re-exports them without saying so
    AdminClient,
    ConfigResource,
    NewTopic,
    ResourceType,
)

from tidegate_kafka.clients.client_config import admin_config
from tidegate_kafka.clients.settings import MIB, KafkaSettings

TIMESTAMP_TYPE = "message.timestamp.type"
RECORD_BYTES = "max.message.bytes"
RETENTION = "retention.ms"
IN_SYNC = "min.insync.replicas"
TOPIC_PARTITIONS = "topic partitions"
EXISTS = "exists"
AT_LEAST = frozenset({RECORD_BYTES, RETENTION, IN_SYNC})
"""Properties for which a higher value than planned is accepted."""

LARGE_RECORD_BYTES = 4 * MIB
"""Limit for requests and events. It is above the node's own limit of 1 MiB, so that refused records reach the node and
become dead letters."""
DEAD_LETTER_BYTES = 5 * MIB
"""Limit for a dead letter: the original record and the headers around it."""

NOT_ALLOWED = frozenset({KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.CLUSTER_AUTHORIZATION_FAILED})
ACLS = "The broker's ACLs do not let this process do so; docs/security.md lists what it needs"
PROPAGATION_S = 0.05
"""Interval of the check whether brokers know a new topic; it takes milliseconds."""


class TopicsUnavailable(Exception):
    """The brokers did not answer in time, so the topics' state is unknown. Retry."""


@dataclass(frozen=True, slots=True)
class TopicPlan:
    """Plan for one topic; `config` holds only the properties that tidegate relies on."""

    name: str
    topic_partitions: int
    replication_factor: int
    config: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Difference:
    """A property `what` of a topic that is `found` instead of `wanted`.

    Attributes:
        unsafe: Whether the order and evidence times of requests and events depend on it: a node refuses to serve (exit
            78).
    """

    topic: str
    what: str
    wanted: str
    found: str
    unsafe: bool = False

    def __str__(self) -> str:
        return f"topic {self.topic}: {self.what} is {self.found}, wanted {self.wanted}"


def plan(settings: KafkaSettings) -> tuple[TopicPlan, ...]:
    """Returns the plans of all tidegate topics, with the properties that tidegate relies on."""
    base = {TIMESTAMP_TYPE: "LogAppendTime", RETENTION: str(settings.retention_ms), "cleanup.policy": "delete"}
    large = base | {RECORD_BYTES: str(LARGE_RECORD_BYTES)}
    dead = base | {RECORD_BYTES: str(DEAD_LETTER_BYTES)}
    configs = {
        "requests": large,
        "events": large,
        "receipts": base,
        "runs": base,
        "pokes": base,
        "requests.dlq": dead,
        "events.dlq": dead,
        "runs.dlq": base,
    }
    return tuple(
        TopicPlan(settings.topic(name), settings.topic_partitions, settings.replication_factor, config)
        for name, config in configs.items()
    )


def in_sync(replicas: int) -> dict[str, str]:
    """Returns the properties that keep a record when a broker is lost, for a topic with so many replicas (-1: the
    broker's default).

    By Kafka's default `acks=all` waits for the replicas in sync, and the leader alone suffices: losing it loses its
    newest records. With three replicas, two can be required even while one is away.
    """
    return {IN_SYNC: "2"} if replicas >= 3 else {}


def differences(wanted: TopicPlan, topic_partitions: Sequence[int], config: Mapping[str, str]) -> list[Difference]:
    """Compares a plan with a broker's answer; `topic_partitions` holds the number of replicas of each topic
    partition.
    """
    found = []
    count = len(topic_partitions)
    if count != wanted.topic_partitions:
        found.append(Difference(wanted.name, TOPIC_PARTITIONS, str(wanted.topic_partitions), str(count)))
    for key, value in {**wanted.config, **in_sync(min(topic_partitions, default=0))}.items():
        actual = config.get(key, "unknown")
        if not _good_enough(key, value, actual):
            found.append(Difference(wanted.name, key, value, actual, unsafe=key == TIMESTAMP_TYPE))
    return found


class TopicAdmin:
    """Blocking admin client for start-up and commands. Each call raises `TopicsUnavailable` when the brokers do not
    answer.
    """

    def __init__(self, settings: KafkaSettings) -> None:
        self._plan = plan(settings)
        self._patience_s = settings.answer_ms_max / 1000
        self._heard = _Heard()
        config: dict[str, Any] = {**admin_config(settings), "error_cb": self._heard}
        self._admin = AdminClient(config)

    def check(self) -> list[Difference]:
        """Returns the differences from the plan, missing topics included; empty if there are none."""
        found = self._topic_partitions([topic.name for topic in self._plan])
        present = [topic for topic in self._plan if topic.name in found]
        missing = [
            Difference(topic.name, EXISTS, "yes", "no", unsafe=True) for topic in self._plan if topic.name not in found
        ]
        configs = self._configs([topic.name for topic in present])
        return missing + [
            difference for topic in present for difference in differences(topic, found[topic.name], configs[topic.name])
        ]

    def apply(self) -> list[Difference]:
        """Creates missing topics and returns the remaining differences. Concurrent calls are safe."""
        missing = {difference.topic for difference in self.check() if difference.what == EXISTS}
        wanted = [
            NewTopic(
                topic.name,
                num_partitions=topic.topic_partitions,
                replication_factor=topic.replication_factor,
                config={**topic.config, **in_sync(topic.replication_factor)},
            )
            for topic in self._plan
            if topic.name in missing
        ]
        if wanted:
            asked = self._admin.create_topics(wanted, request_timeout=self._patience_s)
            for name, created in asked.items():
                self._answer(created, f"Create of {name}", ignored=KafkaError.TOPIC_ALREADY_EXISTS)
        return self._check_once_known(missing)

    def _check_once_known(self, created: Collection[str]) -> list[Difference]:
        """Checks again until all brokers know the topics that the controller created, or the time-out passes."""
        until = time.monotonic() + self._patience_s
        while True:
            found = self.check()
            unknown = any(difference.what == EXISTS and difference.topic in created for difference in found)
            if not unknown or time.monotonic() > until:
                return found
            time.sleep(PROPAGATION_S)

    def _topic_partitions(self, names: list[str]) -> dict[str, list[int]]:
        asked = self._admin.describe_topics(TopicCollection(names), request_timeout=self._patience_s)
        answers = {
            name: self._answer(asked[name], f"Describe of {name}", ignored=KafkaError.UNKNOWN_TOPIC_OR_PART)
            for name in names
        }
        return {
            name: [len(each.replicas) for each in answer.partitions]
            for name, answer in answers.items()
            if answer is not None
        }

    def _configs(self, names: Iterable[str]) -> dict[str, dict[str, str]]:
        resources = [ConfigResource(ResourceType.TOPIC, name) for name in names]
        if not resources:
            return {}
        asked = self._admin.describe_configs(resources, request_timeout=self._patience_s)
        return {
            resource.name: {
                entry.name: entry.value
                for entry in self._answer(answer, f"DescribeConfigs of {resource.name}").values()
            }
            for resource, answer in asked.items()
        }

    def _answer(self, future: Future[Any], what: str, *, ignored: int | None = None) -> Any:
        """Returns the answer to the query `what`; None for the ignored error."""
        try:
            return future.result(timeout=self._patience_s + 1)
        except KafkaException as failure:
            error = failure.args[0]
            if error.code() == ignored:
                return None
            if error.code() in NOT_ALLOWED:
                raise TopicsUnavailable(f"topics: {what}: {error.str()} {ACLS}") from failure
            if error.code() > 0:
                # Positive codes come from brokers, so a broker was reachable. The client's codes are negative.
                raise TopicsUnavailable(f"topics: {what}: {error.str()}") from failure
            self._admin.poll(0)  # Delivers waiting errors to `_heard`.
            why = self._heard.last or "is the broker reachable and access allowed?"
            raise TopicsUnavailable(f"topics: {error.str()}; {why}") from failure
        except TimeoutError as failure:
            raise TopicsUnavailable(f"topics: no answer within {self._patience_s:g} s") from failure


class _Heard:
    """Last error that the client reported outside its answers: a time-out does not say that a certificate or password
    is wrong.
    """

    def __init__(self) -> None:
        self.last = ""

    def __call__(self, error: KafkaError) -> None:
        if error.code() != KafkaError._ALL_BROKERS_DOWN:  # noqa: SLF001 - the client's own public codes begin so
            self.last = _with_a_cause(error.str())


def _with_a_cause(said: str) -> str:
    """Adds a likely cause. A listener without encryption closes the connection during the handshake; whether the client
    guesses that depends on how the close reached it.
    """
    guessed = "PLAINTEXT" in said or "SSL_HANDSHAKE" not in said or "closed by peer" not in said
    return said if guessed else f"{said}: connecting to a PLAINTEXT broker listener?"


def _good_enough(key: str, wanted: str, actual: str) -> bool:
    if key in AT_LEAST and _is_number(actual):
        endless = key == RETENTION and int(actual) < 0
        return endless or int(actual) >= int(wanted)
    return actual == wanted


def _is_number(text: str) -> bool:
    return text.removeprefix("-").isdigit()
