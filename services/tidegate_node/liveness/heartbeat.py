"""Whether this node should go on, decided from heartbeats: its own, by the brokers' append times, and its peers'.

Pure but for what it remembers: `now` is an argument. Three things end a node's work here (DESIGN 3): a clock that certainly
differs from the brokers', because it would fire early or late; a store that only this node cannot reach, because its
shards would stand still while a peer could serve them; and too much to do while a peer is at ease (`overload.py`). When
nobody reaches the store, staying is as good as anything.
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
"""Above that the clock is off; NTP keeps machines within some tens of milliseconds."""
CLOCK_STRIKES: Final = 2
"""Beats in a row that must say so: a single broker's clock may be the wrong one while leaders move."""
STORE_SILENCE_MS_MAX: Final = 20_000
"""Silence of the store after which peers are asked, and how fresh a peer's success must be: ten of its time-outs."""
PEER_AHEAD_MS_MIN: Final = 15_000
"""A peer's last success must be so much later than ours. In an outage for everybody the last ones differ by the pause
between two calls and a time-out; an idle node writes its sign of life every 10 to 12 s."""
PEERS_MAX: Final = 10_000
"""More peers than that are no cluster of ours; the oldest are forgotten."""


class Verdict(Enum):
    """What the heartbeats say."""

    STAY = "stay"
    CLOCK_OFF = "clock_off"
    STORE_OUT_OF_REACH = "store_out_of_reach"
    OVERLOADED = "overloaded"
    AT_EASE = "at_ease"


@dataclass(slots=True)
class _Peer:
    heard_at: int
    store_ok_at: int
    """On our monotonic clock: when it was heard, less the age that it told."""


def certain_offset(sent_at: int, append_time: int, known_at: int) -> int:
    """Returns by how much our clock is certainly off the broker's, in ms; positive = ahead, 0 = it may be right.

    The record was appended between our `sent_at` and our `known_at`, so the offset lies between `sent_at - append_time` and
    `known_at - append_time`: a slow answer widens that range and proves less, but never something false.
    """
    lowest, highest = sent_at - append_time, known_at - append_time
    if lowest > 0:
        return lowest
    return min(highest, 0)


class Appended(NamedTuple):
    """One record of a beat that a broker acknowledged.

    Attributes:
        at: The broker's clock.
        known_at: Our clock when the acknowledgement came.
    """

    at: int
    known_at: int


class Heartbeat:
    """One per process. Wall instants are ms since the epoch, monotonic ones ms on the clock that counts suspended time.

    Args:
        owner: UUID of this process.
        limits: When it gives way.

    Attributes:
        clock_offset_ms: By how much the clock is certainly off, by the last beat that was appended.
        clock_agreed: A beat showed that it is not off by more than it may be.
    """

    def __init__(self, owner: str, limits: Limits) -> None:
        self._owner = owner
        self.overload = Overload(limits)
        self._strikes = 0
        self._peers: dict[str, _Peer] = {}
        self.clock_offset_ms = 0
        self.clock_agreed = False

    def beat(self, wall: int, monotonic: int, store_silence_ms: int, *, takes: bool) -> Beat:
        """The next beat to send; `takes`: this node is in its group, or about to be."""
        self.overload.beat(monotonic, takes=takes)
        return Beat(self._owner, wall, store_silence_ms, self.overload.lag_ms, takes)

    def appended(self, beat: Beat, records: Collection[Appended]) -> None:
        """Takes what brokers said of the records of an own beat, one per topic partition; without any it proves nothing.

        The smallest offset counts: of several brokers the one may be wrong with which we do not agree.
        """
        if not records:
            return
        offsets = [certain_offset(beat.at, record.at, record.known_at) for record in records]
        self.clock_offset_ms = min(offsets, key=abs)
        off = abs(self.clock_offset_ms) > CLOCK_OFFSET_MS_MAX
        self._strikes = self._strikes + 1 if off else 0
        self.clock_agreed = self.clock_agreed or not off

    def heard(self, beat: Beat, monotonic: int) -> None:
        """Takes a beat that was read from the topic; own ones say nothing that their acknowledgements did not."""
        if beat.owner == self._owner:
            return
        if beat.lag_ms is not None:
            self.overload.heard(beat.owner, beat.lag_ms, beat.takes, monotonic)
        self._peers.pop(beat.owner, None)
        self._peers[beat.owner] = _Peer(monotonic, monotonic - max(0, beat.store_ok_ms))
        while len(self._peers) > PEERS_MAX:
            del self._peers[next(iter(self._peers))]

    def verdict(self, monotonic: int, store_silence_ms: int) -> Verdict:
        """What to do now.

        Args:
            monotonic: Now.
            store_silence_ms: How long ago the store last answered this process.
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
