"""How long a client may take to come into its group, and what becomes of one that does not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.unit.tidegate_kafka.group.test_group_member import Parts, Stage
from tidegate_kafka.clients.connectivity import ASK_EVERY_MS, PATIENCE_MS, CutOff
from tidegate_kafka.clients.settings import KafkaSettings
from tidegate_ports.bus import Topic

if TYPE_CHECKING:
    from tests.unit.tidegate_kafka.conftest import FakeClient, ManualClock, Notes


@pytest.fixture
def stage(client: FakeClient, settings: KafkaSettings, topic: Topic, clock: ManualClock, notes: Notes) -> Stage:
    return Stage(client, settings, topic, clock, notes)


def test_given_a_client_that_never_comes_into_its_group_then_it_is_given_up_without_a_goodbye(
    stage: Stage, settings: KafkaSettings
) -> None:
    """`tests/cluster/test_outages.py`: behind a broker's restart one node of two was in no group for 70 s, and nobody replaced its client."""
    stage.clock.now += settings.joining_ms_max
    stage.member.turn()
    stage.clock.now += 1
    with pytest.raises(RuntimeError, match="did not join its group"):
        stage.member.turn()
    assert stage.member.why_no_goodbye is not None


def test_given_a_share_without_topic_partitions_then_the_client_has_joined(
    stage: Stage, settings: KafkaSettings, parts: Parts
) -> None:
    stage.member.on_assign(parts([]))
    stage.clock.now += 10 * settings.joining_ms_max
    stage.member.turn()
    assert stage.member.joined
    assert stage.member.why_no_goodbye is None


def test_given_a_loss_then_the_time_to_join_again_begins_with_it(
    stage: Stage, settings: KafkaSettings, parts: Parts
) -> None:
    stage.member.on_assign(parts([0]))
    stage.clock.now += 10 * settings.joining_ms_max
    stage.proven()
    stage.member.on_lost(parts([0]))
    stage.clock.now += settings.joining_ms_max
    stage.member.turn()
    stage.member.on_lost(parts([0]))  # It may say so again: no new time begins.
    stage.clock.now += 1
    with pytest.raises(RuntimeError, match="did not join its group"):
        stage.member.turn()


def test_given_brokers_that_are_away_then_no_time_to_join_passes_until_they_answer(
    stage: Stage, settings: KafkaSettings, client: FakeClient
) -> None:
    """A broker that took longer than the patience to be back had its members' clients replaced, who were about to join."""
    client.brokers_answer = False
    for _ in range(100):
        stage.clock.now += settings.joining_ms_max // 2
        stage.member.turn()
    client.brokers_answer = True
    stage.clock.now += settings.joining_ms_max
    stage.member.turn()
    stage.clock.now += 1
    with pytest.raises(RuntimeError, match="did not join its group"):
        stage.member.turn()


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_given_a_client_that_finds_no_broker_although_others_do_then_it_is_given_up(
    client: FakeClient, settings: KafkaSettings, topic: Topic, clock: ManualClock, notes: Notes, protocol: str
) -> None:
    """Found by chaos: behind a broker's restart a node stayed outside of its group for good; its client had forgotten the broker, so that no
    time to join passed for it.
    """
    stage = Stage(client, settings.model_copy(update={"group_protocol": protocol}), topic, clock, notes)
    client.brokers_answer, client.others_find_brokers = False, True
    begun = clock.now

    def turns() -> None:
        while clock.now < begun + 10 * PATIENCE_MS:
            clock.now += 500
            stage.member.turn()

    with pytest.raises(CutOff):
        turns()
    assert PATIENCE_MS <= clock.now - begun <= PATIENCE_MS + 2_000
    assert stage.member.why_no_goodbye is not None


def test_given_kip_848_then_a_member_of_which_nobody_knows_whether_it_has_joined_stays(
    client: FakeClient, settings: KafkaSettings, topic: Topic, clock: ManualClock, notes: Notes
) -> None:
    stage = Stage(client, settings.model_copy(update={"group_protocol": "consumer"}), topic, clock, notes)
    clock.now += 10 * settings.joining_ms_max
    stage.member.turn()
    assert stage.member.why_no_goodbye is None


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_given_a_member_without_a_share_that_has_lost_the_broker_for_good_then_it_is_given_up(
    client: FakeClient,
    settings: KafkaSettings,
    topic: Topic,
    clock: ManualClock,
    notes: Notes,
    parts: Parts,
    protocol: str,
) -> None:
    """A node that stands by is told nothing as its session runs out: it counted as joined for ever, and took over from nobody."""
    stage = Stage(client, settings.model_copy(update={"group_protocol": protocol}), topic, clock, notes)
    stage.member.on_assign(parts([]))
    client.brokers_answer, client.others_find_brokers = False, True
    begun = clock.now

    def turns() -> None:
        while clock.now < begun + 10 * PATIENCE_MS:
            clock.now += 500
            stage.member.turn()

    with pytest.raises(CutOff):
        turns()
    assert clock.now - begun <= PATIENCE_MS + ASK_EVERY_MS
    assert stage.member.why_no_goodbye is not None


def test_given_a_member_without_a_share_and_brokers_that_are_away_then_it_stays(
    stage: Stage, client: FakeClient, settings: KafkaSettings, parts: Parts
) -> None:
    stage.member.on_assign(parts([]))
    client.brokers_answer = False
    for _ in range(100):
        stage.clock.now += settings.joining_ms_max // 2
        stage.member.turn()
    assert stage.member.joined


def test_given_a_member_that_is_proven_then_its_client_is_not_asked(
    stage: Stage, client: FakeClient, settings: KafkaSettings, parts: Parts
) -> None:
    """Each question takes the thread's time, and a proof says as much."""
    stage.member.on_assign(parts([0]))
    client.brokers_answer, client.others_find_brokers = False, True
    for _ in range(100):
        stage.clock.now += settings.half_session_ms // 2
        stage.member.turn()
        stage.proven()
    assert stage.member.joined
