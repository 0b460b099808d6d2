"""When one topic partition's records are a client's fault."""

from __future__ import annotations

from itertools import pairwise

import pytest

from tidegate_kafka.clients.settings import KafkaSettings
from tidegate_kafka.producer.stalled_partitions import (
    ASK_EVERY_MS,
    PATIENCE_MS,
    PATIENCE_MS_MAX,
    PLACES_MAX,
    Place,
    StalledPartitions,
)

STUCK: Place = ("t", 0)
OTHER: Place = ("t", 1)


class Stage:
    """A publisher whose records to some topic partitions expire, one each second."""

    def __init__(self) -> None:
        self.leaderless: set[Place] = set()
        self.asked: list[Place] = []
        self.now = 0
        self.standstill = StalledPartitions(KafkaSettings(allow_plaintext=True), self._has_leader)

    def _has_leader(self, _: KafkaSettings, place: Place) -> bool:
        self.asked.append(place)
        return place not in self.leaderless

    def found_within(self, milliseconds: int, *expiring: Place) -> Place | None:
        until = self.now + milliseconds
        while self.now < until:
            self.now += 1_000
            for place in expiring:
                self.standstill.expired(*place)
            if (found := self.standstill.look(self.now)) is not None:
                self.standstill.begin_again()
                return found
        return None


@pytest.fixture
def stage() -> Stage:
    return Stage()


def test_given_records_that_expire_although_there_is_a_leader_then_it_is_found_after_its_patience(stage: Stage) -> None:
    assert stage.found_within(PATIENCE_MS, STUCK) is None
    assert stage.found_within(ASK_EVERY_MS, STUCK) == STUCK
    assert len(stage.asked) == PATIENCE_MS // ASK_EVERY_MS + 1


def test_given_no_leader_then_no_client_is_at_fault_and_patience_begins_behind_it(stage: Stage) -> None:
    stage.leaderless.add(STUCK)
    assert stage.found_within(10 * PATIENCE_MS, STUCK) is None
    stage.leaderless.clear()
    assert stage.found_within(PATIENCE_MS, STUCK) is None
    assert stage.found_within(2 * ASK_EVERY_MS, STUCK) == STUCK


def test_given_a_record_that_is_taken_then_what_expired_before_it_says_nothing(stage: Stage) -> None:
    assert stage.found_within(PATIENCE_MS, STUCK) is None
    stage.standstill.acknowledged(*STUCK)
    assert stage.found_within(PATIENCE_MS, STUCK) is None


def test_given_nothing_expires_any_more_then_nobody_is_asked(stage: Stage) -> None:
    stage.found_within(1_000, STUCK)
    assert stage.found_within(10 * PATIENCE_MS) is None
    assert stage.asked == [STUCK]


def test_given_a_new_client_that_changes_nothing_then_the_next_ones_come_more_and_more_seldom(stage: Stage) -> None:
    at = []
    for _ in range(12):
        assert stage.found_within(2 * PATIENCE_MS_MAX, STUCK) == STUCK
        at.append(stage.now)
    gaps = [later - earlier for earlier, later in pairwise(at)]
    assert gaps == sorted(gaps)
    assert gaps[0] >= 2 * PATIENCE_MS
    assert PATIENCE_MS_MAX <= gaps[-1] <= PATIENCE_MS_MAX + 2 * ASK_EVERY_MS


@pytest.mark.parametrize("hopeless", ["leaderless", "not helped"])
def test_given_one_that_no_client_helps_then_another_one_is_found_all_the_same(stage: Stage, hopeless: str) -> None:
    if hopeless == "leaderless":
        stage.leaderless.add(STUCK)
        stage.found_within(PATIENCE_MS, STUCK)
    else:
        assert stage.found_within(2 * PATIENCE_MS, STUCK) == STUCK
    assert stage.found_within(PATIENCE_MS + 3 * ASK_EVERY_MS, STUCK, OTHER) == OTHER


def test_given_many_of_one_topic_then_one_new_client_serves_them_all(stage: Stage) -> None:
    places = [("t", number) for number in range(50)]
    assert stage.found_within(PATIENCE_MS + 2 * ASK_EVERY_MS, *places) is not None
    for place in places:
        stage.standstill.acknowledged(*place)
    assert stage.found_within(10 * PATIENCE_MS) is None


def test_given_records_without_a_topic_partition_then_nobody_is_asked(stage: Stage) -> None:
    assert stage.found_within(10 * PATIENCE_MS, ("t", -1)) is None
    assert not stage.asked


def test_given_more_than_can_be_a_clients_fault_then_they_are_not_kept(stage: Stage) -> None:
    for number in range(2 * PLACES_MAX):
        stage.standstill.expired("t", number)
    assert stage.standstill.look(0) is None
    assert stage.asked == [("t", PLACES_MAX)]
