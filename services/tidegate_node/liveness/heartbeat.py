"""Decides from heartbeats whether this node should go on: from its own, by the brokers' append times, and from its
peers'.

Called by `heartbeat_loop.py`. It has state but no I/O: `now` is an argument. Three findings end or pause a node's work:

- Its clock certainly differs from the brokers'. It would fire early or late.
- Only this node cannot reach the store. Its shards would be stuck while a peer could serve them. If no node reaches the
  store, staying costs nothing.
- It has too much to do while a peer is at ease (`overload.py`).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from enum import Enum
from typing import Final, NamedTuple

from tidegate_node.liveness.overload import Limits, Overload
from tidegate_node.topics.wakeup_records import Beat

BEAT_EVERY_MS: Final = 5_000
CLOCK_OFFSET_MS_MAX: Final = 500
"""Offset above which the clock is off; NTP keeps machines within some tens of milliseconds."""
CLOCK_STRIKES: Final = 2
"""Beats in a row that must find the offset: a single broker's clock may be wrong while leaders move."""
STORE_SILENCE_MS_MAX: Final = 20_000
"""Silence of the store after which peers are considered, and maximum age of a peer's success: ten time-outs."""
PEER_AHEAD_MS_MIN: Final = 15_000
"""Minimum by which a peer's last success is later than ours. In a general outage the last successes differ by the pause
between two calls and a time-out. An idle node writes its heartbeat row every 10 to 12 s.
"""
PEERS_MAX: Final = 10_000
"""Number of peers above which the oldest are forgotten; a cluster never has so many."""


class Verdict(Enum):
    """Result of the heartbeats."""

    STAY = "stay"
    CLOCK_OFF = "clock_off"
    STORE_OUT_OF_REACH = "store_out_of_reach"
    OVERLOADED = "overloaded"
    AT_EASE = "at_ease"


@dataclass(slots=True)
class _Peer:
    heard_at: int
    store_ok_at: int
    """On our monotonic clock: the time of receipt minus the reported age."""


def certain_offset(sent_at: int, append_time: int, known_at: int) -> int:
    """Returns by how many ms our clock is certainly off the broker's; positive = ahead, 0 = it may be right.

    The record was appended between our `sent_at` and our `known_at`. So the offset lies between `sent_at - append_time`
    and `known_at - append_time`. A slow answer widens that range and proves less, but never something false.
    """
    lowest, highest = sent_at - append_time, known_at - append_time
    if lowest > 0:
        return lowest
    return min(highest, 0)


class Appended(NamedTuple):
    """One record of a beat that a broker acknowledged.

    Attributes:
        at: Append time on the broker's clock.
        known_at: Time of the acknowledgement on our clock.
    """

    at: int
    known_at: int


class Heartbeat:
    """One per process. Wall instants are ms since the epoch. Monotonic instants are ms on the clock that counts
    suspended time.

    Args:
        owner: UUID of this process.
        limits: Thresholds of overload.

    Attributes:
        clock_offset_ms: Certain offset of the clock, by the last appended beat.
        clock_agreed: Whether a beat has shown that the offset is within the tolerance.
    """

    def __init__(self, owner: str, limits: Limits) -> None:
        self._owner = owner
        self.overload = Overload(limits)
        self._strikes = 0
        self._peers: dict[str, _Peer] = {}
        self.clock_offset_ms = 0
        self.clock_agreed = False

    def beat(self, wall: int, monotonic: int, store_silence_ms: int, *, takes: bool) -> Beat:
        """Returns the next beat to send. `takes`: whether this node is in its group, or about to join."""
        self.overload.beat(monotonic, takes=takes)
        return Beat(self._owner, wall, store_silence_ms, self.overload.lag_ms, takes)

    def appended(self, beat: Beat, records: Collection[Appended]) -> None:
        """Evaluates the brokers' acknowledgements of an own beat, one per topic partition. Without any the beat proves
        nothing.

        The smallest offset counts: of several brokers the one that disagrees with us may be wrong.
        """
        if not records:
            return
        offsets = [certain_offset(beat.at, record.at, record.known_at) for record in records]
        self.clock_offset_ms = min(offsets, key=abs)
        off = abs(self.clock_offset_ms) > CLOCK_OFFSET_MS_MAX
        self._strikes = self._strikes + 1 if off else 0
        self.clock_agreed = self.clock_agreed or not off

    def heard(self, beat: Beat, monotonic: int) -> None:
        """Takes a peer's beat from the topic. Own beats are ignored, because their acknowledgements already count."""
        if beat.owner == self._owner:
            return
        if beat.lag_ms is not None:
            self.overload.heard(beat.owner, beat.lag_ms, beat.takes, monotonic)
        self._peers.pop(beat.owner, None)
        self._peers[beat.owner] = _Peer(monotonic, monotonic - max(0, beat.store_ok_ms))
        while len(self._peers) > PEERS_MAX:
            del self._peers[next(iter(self._peers))]

    def verdict(self, monotonic: int, store_silence_ms: int) -> Verdict:
        """Returns what to do now.

        Args:
            monotonic: The present.
            store_silence_ms: Time since the store last answered this process.
        """
        if self._strikes >= CLOCK_STRIKES:
            return Verdict.CLOCK_OFF
        own_ok_at = monotonic - store_silence_ms
        if store_silence_ms > STORE_SILENCE_MS_MAX and any(
            peer.store_ok_at > max(monotonic - STORE_SILENCE_MS_MAX, own_ok_at + PEER_AHEAD_MS_MIN)
            for peer in self._peers.values()
        ):
            return Verdict.STORE_OUT_OF_REACH
        if self.overload.should_give_way(monotonic):
            return Verdict.OVERLOADED
        if self.overload.should_come_back(monotonic):
            return Verdict.AT_EASE
        return Verdict.STAY
