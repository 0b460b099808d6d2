"""Detects a client that has lost all brokers for good, and closes it without blocking.

A client forgets each broker that another broker no longer lists, and a broker that shuts down last lists none. If its
connection ends before the client has processed that answer, the client stays disconnected (librdkafka 2.13 to 2.16). It
neither reconnects nor reports an error, although other clients connect at once. Only a new client helps.
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
"""Interval at which a silent client is queried. While it finds no broker, probe clients are created at most this
often."""
ASK_S_MAX: Final = 0.5
"""Time-out of one query, which blocks the client's thread. A probe client has the same time for its connection and its
answer, so that slow brokers make no client look cut off."""
PATIENCE_MS: Final = 10_000
"""Time that a client has to find a broker after a probe client found one; it needs a second or two after a broker's
return. Time in which probe clients find no broker does not count. Otherwise one slow answer would discard a client with
all its outstanding records."""

GOING_MAX: Final = 8
"""Most probe clients that are closing at a time; above it no new one is created. Each keeps a few threads, which end
with the name look-ups that no server answers."""
FORMER: Final = "tidegate-former-client"
STRANGER: Final = "tidegate-former-stranger"
"""Thread name apart from `FORMER`: a client that was in a group may never finish closing, and must not use up
`GOING_MAX`."""


class CutOff(Exception):
    """The client finds no broker, but a new client does."""


class Asked(Protocol):
    """The part of a client that a query uses."""

    def list_topics(self, topic: str | None = None, timeout: float = -1) -> object: ...


OthersFind: TypeAlias = Callable[[KafkaSettings], bool]
"""Returns whether a newly created client finds a broker. Blocks for `ASK_S_MAX` at most."""


def others_find(settings: KafkaSettings) -> bool:
    """Queries the brokers with a probe client."""
    return stranger_says(settings, lambda stranger: _finds(stranger, settings))


def stranger_says(settings: KafkaSettings, ask: Callable[[AdminClient], bool]) -> bool:
    """Creates a client, queries it and closes it in the background.

    Returns False when no client can be created, for example while certificates are being replaced or when no file
    descriptor is left. Returns False as well while `GOING_MAX` probe clients still look up the brokers' names.

    Args:
        settings: Settings of the probe client.
        ask: Query; it keeps no reference to the client and raises nothing.
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
    """Releases the last references to clients on another thread.

    A client's end waits for a running name look-up: up to a minute where no name server answers. The caller's thread
    has other work.
    """
    # If the host has no thread left, the clients end when the caller drops the list.
    with suppress(RuntimeError):
        threading.Thread(target=held.clear, name=name, daemon=True).start()


def close_aside(client: Closed) -> None:
    """Closes a client on another thread, because `close` and garbage collection may never return.

    This was seen with a join that no broker answered any more. A thread that hangs ends with the process.
    """
    threading.Thread(target=client.close, name=FORMER, daemon=True).start()


class Closed(Protocol):
    """The part of a client that `close_aside` uses."""

    def close(self) -> None: ...


class Connectivity:
    """Whether one client still finds brokers; used on that client's thread.

    Args:
        settings: Settings for probe clients.
        others: Query whether a probe client finds a broker.
        now_ms: Present monotonic time.
        every_ms: Interval between two queries to the client.
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
        """Whether probe clients found a broker at the last query and this client did not. A later query or record
        clears it.
        """
        return self._others_find_since is not None

    def heard(self, now_ms: int) -> None:
        """Records that a broker has sent something."""
        self._asked_at = now_ms
        self._others_find_since = None

    def look(self, client: Asked, now_ms: int) -> bool | None:
        """Queries the client when a query is due.

        Returns:
            Whether the client finds a broker; None when no query was due.

        Raises:
            CutOff: For `PATIENCE_MS` the client found no broker and probe clients did.
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
        client.list_topics(settings.topic("requests"), ASK_S_MAX)  # One topic only: a cluster may have thousands.
    except KafkaException:
        return False
    return True
