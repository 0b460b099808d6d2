"""The local guard (DESIGN 3): may this process do something irreversible now?

It holds while the group coordinator has confirmed this process's membership to a probe that was *sent* less than half a
session ago: the coordinator keeps a member for a whole session after it heard from it, and a rebalance that wants something
of it waits for so long that its guard has ended by then (the settings of the clients see to it), so nobody else can have been given
its topic partitions yet. That rests on a commit keeping a member, which the classic protocol's does and KIP-848's does not
(`OffsetMetadataManager.commitOffset`, Kafka 4.1): there only heartbeats do, and those are the client's own. A process that was
frozen for nearly a session could have a commit accepted and its next heartbeat refused. So with that protocol a probe counts
only when the process has not been frozen for `settle_ms` before it, in which time its client has sent heartbeats. Store writes prove nothing about membership and do not count. The node's Kafka thread feeds it,
the simulator too. It is a courtesy to the world outside; what is stored is protected by the store's own conditions.

Membership says who holds a topic partition; which shards follow from it says the map. So whoever acts also has to go by a map that was in
force a short while ago (`MapLease`): under a newer one its shards may be another's, whom the group has given another topic partition.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

PROBES_OPEN_MAX = 16
"""Unanswered probes remembered; at one probe each sixth of a session that is more than two sessions of silence, and an
answer to an older one could not extend the guard any more."""


MAP_TRUSTED_MS: Final = 60_000
"""For so long a node goes by the map that it has read: it reads it every second, and a store that answers nobody for a minute stops no
message. Who follows the next map waits for longer than that (`former_maps.HAND_OVER_MS`)."""


class ProbeVerdict(Enum):
    """What the coordinator's answer to a probe says."""

    MEMBER = "member"
    UNSETTLED = "unsettled"
    """Nothing: a rebalance is under way, the generation moved on, or nobody answered. Neither extends nor drops."""
    EXPELLED = "expelled"
    """The coordinator does not know this member any more: whatever it held may have another owner."""


class MembershipLease:
    """Times are milliseconds on a clock that never goes back and counts the time a machine was suspended.

    One thread may feed it while others ask `holds`: what they read is one attribute.
    """

    def __init__(self, half_session_ms: int, settle_ms: int = 0) -> None:
        """Args:
        half_session_ms: Half of the coordinator's session, or less.
        settle_ms: For so long after a freeze a probe proves nothing; 0 where a commit keeps the member. It exceeds the
            client's heartbeat interval, and with half a session more it stays below the coordinator's session.
        """
        if half_session_ms <= 0:
            raise ValueError(f"half a session is {half_session_ms} ms; it must be positive")
        self._half_session_ms = half_session_ms
        self._settle_ms = settle_ms
        self._awake_at: int | None = None
        self._settled_at: int | None = None
        self._open: dict[int, int] = {}
        self._last = 0
        self._until: int | None = None

    def begun(self) -> None:
        """A new membership begins: how long nobody was a member before it is no freeze."""
        self._awake_at = self._settled_at = None

    def awake(self, now: int) -> None:
        """The process runs; to be called more often than each half session, by the thread that has the client."""
        if self._awake_at is not None and now - self._awake_at > self._half_session_ms:
            self._settled_at = now + self._settle_ms
        self._awake_at = now

    def probe_sent(self, at: int) -> int:
        """Registers a probe that leaves now and returns its number; to be called before it is handed to the client."""
        self.awake(at)
        self._last += 1
        if len(self._open) >= PROBES_OPEN_MAX:
            del self._open[min(self._open)]
        self._open[self._last] = at
        return self._last

    def probe_answered(self, probe: int, verdict: ProbeVerdict) -> bool:
        """Takes an answer; False when it is about a membership that ended, or already answered: it changes nothing.

        A client that lost its coordinator keeps commits and sends them when it is back, long after it joined anew: such an
        answer says `EXPELLED` of the old membership, and must not end the new one.
        """
        sent_at = self._open.pop(probe, None)
        if sent_at is None:
            return False
        if verdict is ProbeVerdict.EXPELLED:
            self.membership_lost()
        elif verdict is ProbeVerdict.MEMBER and (self._settled_at is None or sent_at >= self._settled_at):
            # Answers may overtake each other: an older probe's must not shorten what a younger one proved.
            self._until = max(self._until or 0, sent_at + self._half_session_ms)
        return True

    def membership_lost(self) -> None:
        """Membership ended. Answers that are still on their way belong to the old membership and prove nothing."""
        self._open.clear()
        self._until = None

    def holds(self, now: int) -> bool:
        return self.remaining_ms(now) > 0

    def remaining_ms(self, now: int) -> int:
        """How long it still holds without another answer; 0 when it does not hold."""
        until = self._until
        return max(0, until - now) if until is not None else 0


class MapLease:
    """Whether what is held under a map may still be acted for: that map was in force less than `MAP_TRUSTED_MS` ago.

    Times are those of `MembershipLease`. Fed by whoever reads the map.
    """

    def __init__(self) -> None:
        self._until: dict[int, int] = {}

    def read(self, version: int, asked_at: int) -> None:
        """This version was in force when it was asked for, or later. Says nothing of older ones: others may hold under this one since long."""
        self._until[version] = max(self._until.get(version, 0), asked_at + MAP_TRUSTED_MS)

    def holds(self, version: int, now: int) -> bool:
        """Whether something irreversible may be done now by who holds under this version."""
        return now < self._until.get(version, now)


CLOCK_OFF_MS_MAX = 500
"""A node whose clock is further off the broker's does not serve (DESIGN 3)."""


CLOCKS_APART_MS_MAX = 2 * CLOCK_OFF_MS_MAX
"""So far two of their clocks may be apart: events are dated by the broker's, ends of runs by that of who saw them (an owner, or an API)."""
