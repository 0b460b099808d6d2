"""Whether a client still finds the brokers, and what is done with one that never will again.

A client can lose all of them for good. It forgets each broker that another one does not list, and the last one, as it goes, lists none;
where its connection ends before that answer is dealt with, nothing begins again (librdkafka, issue 5301, present in 2.13 to 2.16): no
reconnect, no error, although others connect at once. Nothing but a new client helps.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, Protocol, TypeAlias

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from tidegate_kafka.clients.client_config import admin_config
from tidegate_kafka.clients.settings import KafkaSettings

ASK_EVERY_MS: Final = 5_000
"""How often a client of which nothing is heard is asked, and a stranger meanwhile at most."""
ASK_S_MAX: Final = 0.5
"""Patience with one question. It holds the client's thread up. A stranger has no more, its connection included, so that brokers which are
slow cut nobody off."""
PATIENCE_MS: Final = 10_000
"""So long a client has to find a broker that a stranger found: it does within a second or two of a broker's return. The time while no
stranger finds one does not count; else a client would be given up, with all that it has under way, for a broker that answered the
second question of two."""

GOING_MAX: Final = 8
"""Strangers of this process that are being let go at a time: with so many nobody makes another one. Each has a few threads, which end when
the look-ups of names do that nobody answers."""
FORMER: Final = "tidegate-former-client"
STRANGER: Final = "tidegate-former-stranger"
"""Not as the others: a client that was in a group may take for ever to end, and would count as long."""


class CutOff(Exception):
    """The client finds no broker, and a new one does."""


class Asked(Protocol):
    """The part of a client that is asked."""

    def list_topics(self, topic: str | None = None, timeout: float = -1) -> object: ...


OthersFind: TypeAlias = Callable[[KafkaSettings], bool]
"""Whether a client that was made just now finds a broker. Blocking, `ASK_S_MAX` at most."""


def others_find(settings: KafkaSettings) -> bool:
    """Asks a stranger."""
    return stranger_says(settings, lambda stranger: _finds(stranger, settings))


def stranger_says(settings: KafkaSettings, ask: Callable[[AdminClient], bool]) -> bool:
    """Makes a client, and asks it; it is let go aside. One that cannot be made, while certificates are replaced, say, or no descriptor is left,
    says no, and so do those that are still looking for the brokers' names.

    Args:
        settings: Its.
        ask: Keeps nothing of it, and raises nothing.
    """
    if sum(thread.name == STRANGER for thread in threading.enumerate()) >= GOING_MAX:
        return False
    try:
        held = [AdminClient({**admin_config(settings), "allow.auto.create.topics": False})]
    except KafkaException:
        return False
    try:
        return ask(held[0])
    finally:
        close_in_background(held, STRANGER)


def close_in_background(held: list[Any], name: str = FORMER) -> None:
    """Lets the clients in a list go, which nobody else holds any more. The end of a client waits for the look-up of a name that is under way,
    for a minute where no name server answers, and its thread serves others.
    """
    # Where the host has no more threads at the moment, whoever holds the list lets them go with it.
    with suppress(RuntimeError):
        threading.Thread(target=held.clear, name=name, daemon=True).start()


def close_aside(client: Closed) -> None:
    """Closes a client that may take for ever to close, or to be collected unclosed: seen with a join that no broker answers any more.

    Whoever lets it go must not wait for it; a thread that hangs ends with the process.
    """
    threading.Thread(target=client.close, name=FORMER, daemon=True).start()


class Closed(Protocol):
    """The part of a client that is closed."""

    def close(self) -> None: ...


class Connectivity:
    """Of one client, on its thread.

    Args:
        settings: Of a stranger.
        others: Asked whether one finds a broker.
        now_ms: On the monotonic clock.
        every_ms: Between two questions.
    """

    def __init__(self, settings: KafkaSettings, others: OthersFind, now_ms: int, every_ms: int = ASK_EVERY_MS) -> None:
        self._settings = settings
        self._others = others
        self._every_ms = every_ms
        self._asked_at = now_ms
        self._others_find_since: int | None = None
        self._stranger_asked_at: int | None = None

    @property
    def suspects(self) -> bool:
        """Whether it found no broker while strangers did, when it was asked last: until it is asked again, or heard of, that stands."""
        return self._others_find_since is not None

    def heard(self, now_ms: int) -> None:
        """Something came from a broker."""
        self._asked_at = now_ms
        self._others_find_since = None

    def look(self, client: Asked, now_ms: int) -> bool | None:
        """Returns whether the client finds a broker; None when it was not asked now.

        Raises:
            CutOff: It has not for `PATIENCE_MS` in which strangers did.
        """
        if now_ms < self._asked_at + self._every_ms:
            return None
        self._asked_at = now_ms
        if _finds(client, self._settings):
            self._others_find_since = None
            return True
        if self._stranger_asked_at is None or now_ms >= self._stranger_asked_at + ASK_EVERY_MS:
            self._stranger_asked_at = now_ms
            self._compare(now_ms)
        return False

    def _compare(self, now_ms: int) -> None:
        if not self._others(self._settings):
            self._others_find_since = None
        elif self._others_find_since is None:
            self._others_find_since = now_ms
        elif (silent_ms := now_ms - self._others_find_since) >= PATIENCE_MS:
            raise CutOff(f"it found no broker for {silent_ms / 1000:g} s in which new clients did")


def _finds(client: Asked, settings: KafkaSettings) -> bool:
    try:
        client.list_topics(settings.topic("requests"), ASK_S_MAX)  # Of one topic: a cluster may have thousands.
    except KafkaException:
        return False
    return True
