"""How long the brokers keep a member that has fallen silent: the take-over bound, and what the local guard is half of.

With the classic protocol each member says so itself. With KIP-848 (`consumer`) it is a setting of the group, else of the brokers,
and nobody tells the client: it is asked for when a node starts. A setting that is changed later is seen at the next start.
"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, Final, Literal, Protocol, TypeAlias

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType  # type: ignore[attr-defined]  # re-exported silently
from pydantic import ValidationError

from tidegate_kafka.clients.client_config import admin_config
from tidegate_kafka.clients.settings import KafkaSettings

DEFAULT_SESSION_MS: Final = 45_000
DEFAULT_HEARTBEAT_MS: Final = 5_000
"""What Kafka documents for `group.consumer.session.timeout.ms` and `group.consumer.heartbeat.interval.ms`."""
SESSION: Final = "consumer.session.timeout.ms"
HEARTBEAT: Final = "consumer.heartbeat.interval.ms"
PROTOCOLS: Final = "group.coordinator.rebalance.protocols"

NOT_TOLD = frozenset(
    {
        KafkaError.CLUSTER_AUTHORIZATION_FAILED,
        KafkaError.GROUP_AUTHORIZATION_FAILED,
        KafkaError.INVALID_REQUEST,
        KafkaError.INVALID_CONFIG,
        KafkaError.UNSUPPORTED_VERSION,
        KafkaError._UNSUPPORTED_FEATURE,  # noqa: SLF001 - the client's own public codes begin so
    }
)
"""Answers, and final ones: no right to read it, or a broker that has no settings of groups."""

SaidBy: TypeAlias = Literal["settings", "group", "brokers", "assumed"]
Config: TypeAlias = Mapping[str, str]


class GroupSessionUnavailable(Exception):
    """The brokers gave no answer in time. Retry; nothing is known."""


class GroupProtocolRefused(Exception):
    """The brokers do not speak the protocol that the settings want."""


class Admin(Protocol):
    """The part of the client's `AdminClient` that is used here."""

    def list_topics(self, *, timeout: float) -> Any: ...

    def describe_configs(
        self, resources: list[ConfigResource], *, request_timeout: float
    ) -> dict[ConfigResource, Future[Any]]: ...


@dataclass(frozen=True, slots=True)
class GroupSession:
    """The group's patience with its members.

    Attributes:
        session_ms: A member that was not heard of for so long is expelled.
        heartbeat_ms: The others are told with their next heartbeat.
        said_by: Where that comes from; `assumed`: nobody may read it here, so Kafka's documented defaults.
    """

    protocol: Literal["classic", "consumer"]
    session_ms: int
    heartbeat_ms: int
    said_by: SaidBy

    @property
    def take_over_ms(self) -> int:
        """At most so long after a process died, another one is given its topic partitions."""
        return self.session_ms + self.heartbeat_ms

    def settings(self, settings: KafkaSettings) -> KafkaSettings:
        """Returns the settings by which this process guards its membership. Raises ValueError when they do not fit."""
        told = {"session_ms": self.session_ms, "heartbeat_ms": self.heartbeat_ms}
        try:
            fitting = KafkaSettings.model_validate(settings.model_dump() | told)
            fitting.check_drain()
        except ValueError as wrong:
            each_said = [each["msg"] for each in wrong.errors()] if isinstance(wrong, ValidationError) else [str(wrong)]
            said = "; ".join(each.removeprefix("Value error, ") for each in each_said)
            raise ValueError(f"with a session of {self.session_ms} ms (by {self.said_by}) {said}") from wrong
        return fitting


def group_session(settings: KafkaSettings, admin: Admin | None = None) -> GroupSession:
    """Returns the session of the settings' group. Blocking, for a few times `answer_ms_max` at most.

    Raises:
        GroupSessionUnavailable: The brokers do not answer.
        GroupProtocolRefused: They do not speak KIP-848.
    """
    if settings.group_protocol == "classic":
        return GroupSession("classic", settings.session_ms, settings.heartbeat_ms, "settings")
    asking = _Asking(admin or AdminClient(admin_config(settings)), settings.answer_ms_max / 1000)
    brokers = asking.of_a_broker()
    if brokers is not None and "consumer" not in brokers.get(PROTOCOLS, "").split(","):
        raise GroupProtocolRefused(
            f"group_protocol: the brokers do not speak the group protocol `consumer` ({PROTOCOLS}; Kafka 4.0 is the first "
            "that does): set it to classic, or change the brokers"
        )
    group = asking.of(ResourceType.GROUP, settings.group)
    if group is not None and SESSION in group:
        return GroupSession("consumer", int(group[SESSION]), int(group[HEARTBEAT]), "group")
    if brokers is not None:
        return GroupSession("consumer", int(brokers[f"group.{SESSION}"]), int(brokers[f"group.{HEARTBEAT}"]), "brokers")
    return GroupSession("consumer", DEFAULT_SESSION_MS, DEFAULT_HEARTBEAT_MS, "assumed")


@dataclass(frozen=True, slots=True)
class _Asking:
    admin: Admin
    patience_s: float

    def of_a_broker(self) -> Config | None:
        """Any one's: what is asked for is the same for all of a cluster."""
        try:
            number = min(self.admin.list_topics(timeout=self.patience_s).brokers)
        except (KafkaException, ValueError) as failure:
            raise GroupSessionUnavailable(f"broker, settings of the group: {failure}") from failure
        return self.of(ResourceType.BROKER, str(number))

    def of(self, kind: ResourceType, name: str) -> Config | None:
        """The settings of a broker or group; None when they are not for us to know."""
        asked = self.admin.describe_configs([ConfigResource(kind, name)], request_timeout=self.patience_s)
        try:
            (told,) = (future.result(self.patience_s + 1) for future in asked.values())
        except KafkaException as failure:
            if failure.args[0].code() in NOT_TOLD:
                return None
            raise GroupSessionUnavailable(f"broker, settings of the group: {failure.args[0].str()}") from failure
        except TimeoutError as silence:
            raise GroupSessionUnavailable(
                f"broker, settings of the group: no answer within {self.patience_s:g} s"
            ) from silence
        return {entry.name: entry.value for entry in told.values()}
