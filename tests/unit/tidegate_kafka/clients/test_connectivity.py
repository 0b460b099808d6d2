"""A client that has lost the brokers for good is told from brokers that are away."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from confluent_kafka import KafkaError, KafkaException

from tidegate_kafka.clients import connectivity
from tidegate_kafka.clients.connectivity import ASK_EVERY_MS, GOING_MAX, PATIENCE_MS, Connectivity, CutOff, others_find
from tidegate_kafka.clients.settings import KafkaSettings

PATIENCE_S = 60.0
SETTINGS = KafkaSettings(allow_plaintext=True)


class World:
    """A client and a stranger, and how often each was asked."""

    def __init__(self) -> None:
        self.now = 0
        self.finds = self.others_find = True
        self.asked = self.strangers = 0
        self.reach = Connectivity(SETTINGS, self._others, self.now)

    def list_topics(self, topic: str | None = None, timeout: float = -1) -> object:
        assert topic == "tidegate.requests", "not all that the cluster has"
        assert 0 < timeout < 1
        self.asked += 1
        if not self.finds:
            raise KafkaException(KafkaError(KafkaError._TRANSPORT))
        return object()

    def _others(self, _: KafkaSettings) -> bool:
        self.strangers += 1
        return self.others_find

    def look_for(self, milliseconds: int, step: int = 100) -> None:
        until = self.now + milliseconds
        while self.now < until:
            self.now += step
            self.reach.look(self, self.now)


@pytest.fixture
def world() -> World:
    return World()


def test_given_a_client_that_answers_then_it_is_asked_now_and_then_and_nobody_else_is(world: World) -> None:
    world.look_for(10 * ASK_EVERY_MS)
    assert (world.asked, world.strangers) == (10, 0)


def test_given_brokers_that_are_away_then_the_client_stays_however_long(world: World) -> None:
    world.finds = world.others_find = False
    world.look_for(20 * PATIENCE_MS)
    assert world.asked == 20 * PATIENCE_MS // ASK_EVERY_MS
    world.finds = True
    world.look_for(PATIENCE_MS)
    assert world.reach.look(world, world.now + ASK_EVERY_MS)


def test_given_a_client_that_others_are_ahead_of_then_it_is_cut_off_once_its_patience_is_over(world: World) -> None:
    """confluentinc/librdkafka#5301: the last broker says, as it goes, that there is none."""
    world.finds = False
    with pytest.raises(CutOff, match="10 s in which new clients did"):
        world.look_for(10 * PATIENCE_MS)
    assert world.now == ASK_EVERY_MS + PATIENCE_MS
    assert world.strangers == 1 + PATIENCE_MS // ASK_EVERY_MS


def test_given_brokers_that_come_back_between_two_questions_then_the_client_has_all_its_patience(world: World) -> None:
    """Seen in the rig: behind a minute without a broker a stranger was quicker, and 271 records under way were given up and came."""
    world.finds = world.others_find = False
    world.look_for(6 * PATIENCE_MS)
    world.others_find = True
    world.look_for(PATIENCE_MS)
    before = world.strangers
    world.finds = True
    world.look_for(PATIENCE_MS)
    assert world.strangers == before, "its patience is whole again"
    world.finds = False
    world.look_for(PATIENCE_MS)
    with pytest.raises(CutOff):
        world.look_for(ASK_EVERY_MS)


def test_given_brokers_that_others_find_only_now_and_then_then_the_client_stays(world: World) -> None:
    world.finds = False
    for _ in range(10):
        world.others_find = not world.others_find
        world.look_for(ASK_EVERY_MS)
    assert world.strangers == 10, "each time one was asked"


def test_given_a_client_that_hears_of_a_broker_meanwhile_then_its_silence_is_over(world: World) -> None:
    world.finds = False
    for _ in range(10):
        world.look_for(PATIENCE_MS)
        world.reach.heard(world.now)
    assert world.strangers == 10 * PATIENCE_MS // ASK_EVERY_MS, "far longer in all than its patience"


def test_given_a_client_that_is_asked_every_second_then_strangers_are_not(world: World) -> None:
    world.reach = Connectivity(SETTINGS, world._others, world.now, every_ms=1_000)
    world.finds = world.others_find = False
    world.look_for(10 * ASK_EVERY_MS)
    assert (world.asked, world.strangers) == (50, 10)


def test_given_a_stranger_that_cannot_be_made_then_the_client_stays(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While certificates were being replaced an outage of the brokers ended the client that asked, with all that it had under way."""

    def unmade(_: object) -> None:
        raise KafkaException(KafkaError(KafkaError._INVALID_ARG, "ssl.ca.location: no such file"))

    monkeypatch.setattr(connectivity, "AdminClient", unmade)
    world.reach = Connectivity(SETTINGS, others_find, world.now)
    world.finds = False
    world.look_for(3 * PATIENCE_MS)
    assert not world.reach.suspects


class Lingering:
    """A client whose end waits for a name server that answers nobody, as long as one cares to ask."""

    made = 0
    answers = threading.Event()
    gone = threading.Semaphore(0)

    def __init__(self, _: object) -> None:
        type(self).made += 1

    def list_topics(self, topic: str | None = None, timeout: float = -1) -> object:
        raise KafkaException(KafkaError(KafkaError._TRANSPORT))

    def __del__(self) -> None:
        assert self.answers.wait(PATIENCE_S)
        self.gone.release()


@contextmanager
def lingering_strangers(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(connectivity, "AdminClient", Lingering)
    Lingering.made = 0
    Lingering.answers.clear()
    try:
        yield
    finally:
        Lingering.answers.set()
        for thread in threading.enumerate():
            if thread.name in (connectivity.STRANGER, connectivity.FORMER):
                thread.join(PATIENCE_S)
        for _ in range(Lingering.made):
            assert Lingering.gone.acquire(timeout=PATIENCE_S)


def test_given_a_name_server_that_answers_nobody_then_no_thread_waits_for_the_end_of_a_stranger(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A node that lost its network was restarted for it, and its programs with it: each look at strangers took its threads as long as a look-up of
    the brokers' names, which is 40 s in a pod, and beyond 30 s they count as hanging.
    """
    with lingering_strangers(monkeypatch):
        assert not others_find(SETTINGS)
        assert not Lingering.gone.acquire(blocking=False), "it is still being let go"


def test_given_strangers_that_do_not_go_then_no_more_are_made_beside_them(monkeypatch: pytest.MonkeyPatch) -> None:
    with lingering_strangers(monkeypatch):
        assert not any(others_find(SETTINGS) for _ in range(3 * GOING_MAX))
        assert Lingering.made == GOING_MAX


def test_given_clients_that_never_end_then_strangers_are_asked_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """A member's client that was given up amid a join may take for ever to close: after some of them nobody would be found to be cut off any more."""

    class Endless:
        def close(self) -> None:
            Lingering.answers.wait(PATIENCE_S)

    with lingering_strangers(monkeypatch):
        for _ in range(2 * GOING_MAX):
            connectivity.close_aside(Endless())
        others_find(SETTINGS)
        assert Lingering.made == 1
