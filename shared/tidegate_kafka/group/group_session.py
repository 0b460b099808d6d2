"""Session of the consumer group: how long the brokers keep a silent member. It bounds a take-over and sets the
membership lease.

With the classic protocol each member states its session. With KIP-848 (`consumer`) the session is a setting of the
group, or else of the brokers, and no response of the protocol carries it. So a node reads it at its start. A later
change of the setting takes effect at the next start.
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
"""Defaults that Kafka documents for `group.consumer.session.timeout.ms` and `group.consumer.heartbeat.interval.ms`."""
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
        KafkaError._UNSUPPORTED_FEATURE,  # noqa: SLF001 - a public code of the client
    }
)
"""Final answers: no permission to read the setting, or a broker without settings of groups."""

SaidBy: TypeAlias = Literal["settings", "group", "brokers", "assumed"]
Config: TypeAlias = Mapping[str, str]


class GroupSessionUnavailable(Exception):
    """The brokers did not answer in time, so the session is unknown. Retry."""


class GroupProtocolRefused(Exception):
    """The brokers do not support the protocol that the settings ask for."""


class Admin(Protocol):
    """The part of the client's `AdminClient` that is used."""

    def list_topics(self, *, timeout: float) -> Any: ...

    def describe_configs(
        self, resources: list[ConfigResource], *, request_timeout: float
    ) -> dict[ConfigResource, Future[Any]]: ...


@dataclass(frozen=True, slots=True)
class GroupSession:
    """Session of the group.

    Attributes:
        protocol: Group protocol.
        session_ms: Silence after which a member is expelled.
        heartbeat_ms: Interval of the heartbeats, with which the other members learn of it.
        said_by: Source of both values; `assumed`: this process may not read the setting, so Kafka's documented
            defaults.
    """

    protocol: Literal["classic", "consumer"]
    session_ms: int
    heartbeat_ms: int
    said_by: SaidBy

    @property
    def take_over_ms(self) -> int:
        """Longest time from the death of a process until another one is assigned its topic partitions."""
        return self.session_ms + self.heartbeat_ms

    def settings(self, settings: KafkaSettings) -> KafkaSettings:
        """Returns the settings with this session, for the membership lease. Raises ValueError if they do not fit."""
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
    """Returns the session of the settings' group. Blocks for a few times `answer_ms_max` at most.

    Raises:
        GroupSessionUnavailable: The brokers do not answer.
        GroupProtocolRefused: The brokers do not support KIP-848.
    """
    if settings.group_protocol == "classic":
        return GroupSession("classic", settings.session_ms, settings.heartbeat_ms, "settings")
    asking = _Asking(admin or AdminClient(admin_config(settings)), settings.answer_ms_max / 1000)
    brokers = asking.of_a_broker()
    if brokers is not None and "consumer" not in brokers.get(PROTOCOLS, "").split(","):
        raise GroupProtocolRefused(
            f"group_protocol: the brokers do not support the group protocol `consumer` ({PROTOCOLS}; Kafka 4.0 is the first "
            "version that does). Set group_protocol to classic, or upgrade the brokers"
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
        """Returns the settings of any broker: the wanted ones are the same on all brokers of a cluster."""
        try:
            number = min(self.admin.list_topics(timeout=self.patience_s).brokers)
        except (KafkaException, ValueError) as failure:
            raise GroupSessionUnavailable(f"broker, settings of the group: {failure}") from failure
        return self.of(ResourceType.BROKER, str(number))

    def of(self, kind: ResourceType, name: str) -> Config | None:
        """Returns the settings of a broker or group; None without permission to read them."""
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
