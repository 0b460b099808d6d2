"""The topic plan: what tidegate's own topics should be, what differs, and making those that are missing.

`tidegate init` and a node's start call it. An existing topic is never altered: its owner may have reasons, and a shorter
retention that was "repaired" cannot be told from one that was chosen. What differs is returned, and the caller decides.
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
"""More than planned is no difference."""

LARGE_RECORD_BYTES = 4 * MIB
"""Requests and events: above the node's own limit of 1 MiB, so that what it refuses is seen and kept."""
DEAD_LETTER_BYTES = 5 * MIB
"""A dead letter is its record and headers around it."""

NOT_ALLOWED = frozenset({KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.CLUSTER_AUTHORIZATION_FAILED})
ACLS = "The broker's ACLs do not let this process do so; docs/security.md lists what it needs"
PROPAGATION_S = 0.05
"""Between two looks at whether a new topic is known to the brokers; it takes milliseconds."""


class TopicsUnavailable(Exception):
    """The brokers gave no answer in time. Retry; nothing is known."""


@dataclass(frozen=True, slots=True)
class TopicPlan:
    """What one topic should be; `config` holds only the properties that tidegate relies on."""

    name: str
    topic_partitions: int
    replication_factor: int
    config: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Difference:
    """`what` of a topic is `found` and not as `wanted`.

    Attributes:
        unsafe: Requests' and events' order and evidence times rest on it: a node refuses to serve (exit 78).
    """

    topic: str
    what: str
    wanted: str
    found: str
    unsafe: bool = False

    def __str__(self) -> str:
        return f"topic {self.topic}: {self.what} is {self.found}, wanted {self.wanted}"


def plan(settings: KafkaSettings) -> tuple[TopicPlan, ...]:
    """All topics of tidegate's own, with the properties that it relies on."""
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
    """What a topic of so many replicas (-1: the broker's default) is to have for its records to outlive a broker.

    By Kafka's default `acks=all` waits for those that keep up, and the leader alone is enough: with it goes what only it had. With
    three replicas two can be asked for while one is away.
    """
    return {IN_SYNC: "2"} if replicas >= 3 else {}


def differences(wanted: TopicPlan, topic_partitions: Sequence[int], config: Mapping[str, str]) -> list[Difference]:
    """Compares a plan with what a broker says of the topic; `topic_partitions` are the numbers of their replicas."""
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
    """Blocking; for start-up and commands, not for a node at work. Each call raises `TopicsUnavailable` without brokers."""

    def __init__(self, settings: KafkaSettings) -> None:
        self._plan = plan(settings)
        self._patience_s = settings.answer_ms_max / 1000
        self._heard = _Heard()
        config: dict[str, Any] = {**admin_config(settings), "error_cb": self._heard}
        self._admin = AdminClient(config)

    def check(self) -> list[Difference]:
        """What differs from the plan, a missing topic included; empty when all is as it should be."""
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
        """Makes the topics that are missing, whoever else does so at the same time, and returns what still differs."""
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
        """Checks again until the brokers know what their controller made, as long as our patience lasts."""
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
        """The answer to `what` was asked, None for an ignored error."""
        try:
            return future.result(timeout=self._patience_s + 1)
        except KafkaException as failure:
            error = failure.args[0]
            if error.code() == ignored:
                return None
            if error.code() in NOT_ALLOWED:
                raise TopicsUnavailable(f"topics: {what}: {error.str()} {ACLS}") from failure
            if error.code() > 0:
                # The brokers' own codes; the client's, such as a time-out, are below. Who answers is reachable.
                raise TopicsUnavailable(f"topics: {what}: {error.str()}") from failure
            self._admin.poll(0)  # Delivers to `_heard` what is waiting.
            why = self._heard.last or "is the broker reachable and access allowed?"
            raise TopicsUnavailable(f"topics: {error.str()}; {why}") from failure
        except TimeoutError as failure:
            raise TopicsUnavailable(f"topics: no answer within {self._patience_s:g} s") from failure


class _Heard:
    """What a client says beside its answers: a time-out tells nobody that a certificate or a password is wrong."""

    def __init__(self) -> None:
        self.last = ""

    def __call__(self, error: KafkaError) -> None:
        if error.code() != KafkaError._ALL_BROKERS_DOWN:  # noqa: SLF001 - the client's own public codes begin so
            self.last = _with_a_cause(error.str())


def _with_a_cause(said: str) -> str:
    """A listener without encryption hangs up within the handshake. Whether the client guesses so itself depends on how the
    end of the connection reached it.
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
