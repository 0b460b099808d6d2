"""Whose session counts, and what follows from it for the guard."""

from __future__ import annotations

from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import ConfigResource, ResourceType  # type: ignore[attr-defined]  # re-exported silently

from tidegate_kafka.clients.settings import KafkaSettings
from tidegate_kafka.group.group_session import (
    GroupProtocolRefused,
    GroupSession,
    GroupSessionUnavailable,
    group_session,
)

CONSUMER = KafkaSettings(allow_plaintext=True, group_protocol="consumer")
GROUP = {"consumer.session.timeout.ms": "30000", "consumer.heartbeat.interval.ms": "3000"}
BROKER = {
    "group.coordinator.rebalance.protocols": "classic,consumer",
    "group.consumer.session.timeout.ms": "50000",
    "group.consumer.heartbeat.interval.ms": "6000",
}


class Brokers:
    """Answers with settings, or with an error."""

    def __init__(self, group: dict[str, str] | int, broker: dict[str, str] | int) -> None:
        self._answers = {ResourceType.GROUP: group, ResourceType.BROKER: broker}
        self.known: dict[int, object] = {7: object()}

    def list_topics(self, *, timeout: float) -> Any:
        return SimpleNamespace(brokers=self.known)

    def describe_configs(
        self, resources: list[ConfigResource], *, request_timeout: float
    ) -> dict[ConfigResource, Future[Any]]:
        (resource,) = resources
        assert resource.name == {ResourceType.GROUP: "tidegate", ResourceType.BROKER: "7"}[resource.restype]
        answer, future = self._answers[resource.restype], Future[Any]()
        if isinstance(answer, int):
            future.set_exception(KafkaException(KafkaError(answer)))
        else:
            future.set_result({name: SimpleNamespace(name=name, value=value) for name, value in answer.items()})
        return {resource: future}


def test_given_the_classic_protocol_then_the_session_is_our_own_and_nobody_is_asked() -> None:
    assert group_session(KafkaSettings(allow_plaintext=True)) == GroupSession("classic", 6_000, 500, "settings")


@pytest.mark.parametrize(
    ("group", "broker", "session"),
    [
        pytest.param(GROUP, BROKER, GroupSession("consumer", 30_000, 3_000, "group"), id="the group's own"),
        pytest.param(
            KafkaError.INVALID_REQUEST,
            BROKER,
            GroupSession("consumer", 50_000, 6_000, "brokers"),
            id="no group settings",
        ),
        pytest.param({}, BROKER, GroupSession("consumer", 50_000, 6_000, "brokers"), id="nothing of the group"),
        pytest.param(
            GROUP,
            KafkaError.CLUSTER_AUTHORIZATION_FAILED,
            GroupSession("consumer", 30_000, 3_000, "group"),
            id="brokers' not for us",
        ),
        pytest.param(
            KafkaError.GROUP_AUTHORIZATION_FAILED,
            KafkaError.CLUSTER_AUTHORIZATION_FAILED,
            GroupSession("consumer", 45_000, 5_000, "assumed"),
            id="nothing for us",
        ),
    ],
)
def test_given_kip_848_then_the_session_is_the_one_that_the_coordinator_uses(
    group: dict[str, str] | int, broker: dict[str, str] | int, session: GroupSession
) -> None:
    assert group_session(CONSUMER, Brokers(group, broker)) == session


def test_given_brokers_that_do_not_speak_it_then_that_is_said_with_what_to_do() -> None:
    for protocols in ({}, {"group.coordinator.rebalance.protocols": "classic"}):
        with pytest.raises(GroupProtocolRefused, match="Set group_protocol to classic"):
            group_session(CONSUMER, Brokers({}, protocols))


def test_given_silence_then_nothing_is_assumed() -> None:
    with pytest.raises(GroupSessionUnavailable):
        group_session(CONSUMER, Brokers(KafkaError._TIMED_OUT, BROKER))
    silent = Brokers(GROUP, BROKER)
    silent.known = {}
    with pytest.raises(GroupSessionUnavailable):
        group_session(CONSUMER, silent)


@pytest.mark.parametrize(
    ("session_ms", "heartbeat_ms", "guard_ms"),
    [
        # The last heartbeat may be older than the commit that proves the member, by the time between two of them and an unseen freeze.
        pytest.param(6_000, 500, 2_750, id="half of what a heartbeat leaves of a session"),
        # A rebalance waits no longer for a thread that stands still, and drains, whatever its session has left to run.
        pytest.param(45_000, 5_000, 4_750, id="half of what a drain leaves of a poll gap"),
    ],
)
def test_given_a_session_of_the_brokers_then_the_guard_ends_before_anybody_else_is_given_anything(
    session_ms: int, heartbeat_ms: int, guard_ms: int
) -> None:
    settings = GroupSession("consumer", session_ms, heartbeat_ms, "brokers").settings(CONSUMER)
    assert settings.half_session_ms == guard_ms
    assert settings.probe_every_ms * 3 <= guard_ms


@pytest.mark.parametrize(
    ("session_ms", "heartbeat_ms", "guard_ms"), [(4_000, 500, 1_750), (6_000, 1_000, 2_500), (6_000, 5_000, 500)]
)
def test_given_a_session_that_is_too_short_for_a_drain_then_the_settings_do_not_fit(
    session_ms: int, heartbeat_ms: int, guard_ms: int
) -> None:
    """Review: with heartbeats of nearly a session a guard of half a session outlasted the membership."""
    wrong = f"drain_ms_max 2500 must stay below half of the smaller of .*, {guard_ms} ms"
    with pytest.raises(ValueError, match=wrong):
        GroupSession("consumer", session_ms, heartbeat_ms, "group").settings(CONSUMER)


def test_given_a_session_and_a_heartbeat_then_the_take_over_is_bounded_by_both() -> None:
    assert GroupSession("consumer", 45_000, 5_000, "assumed").take_over_ms == 50_000
