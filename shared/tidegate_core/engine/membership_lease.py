"""The membership lease and the map lease: whether this process may do something irreversible now.

The membership lease holds for half a session after a probe was *sent* that the group coordinator confirmed. The
coordinator keeps a member for a whole session after its last contact. The client settings make a rebalance wait until
the lease has ended. So no other node can have the topic partitions before that.

This relies on a commit keeping a member, as in the classic protocol. In KIP-848 only heartbeats do, and the client
sends those (`OffsetMetadataManager.commitOffset`, Kafka 4.1). A process that froze for nearly a session could have a
commit accepted and its next heartbeat refused. So under that protocol a probe counts only if the process did not
freeze within `settle_ms` before it; in that time its client has sent heartbeats. Store writes prove no membership.

The Kafka thread of the node feeds it, as does the simulation. It protects only what lies outside tidegate: the
store's conditions protect the store.

The group assigns topic partitions; the map says which shards follow. Under a newer map the shards may belong to
another node. So an action also needs a map that was in force a short time ago (`MapLease`).
"""

from __future__ import annotations

from enum import Enum
from typing import Final

PROBES_OPEN_MAX = 16
"""Unanswered probes kept.

At one probe per sixth of a session they span more than two sessions; an older answer could no longer extend the lease.
"""


MAP_TRUSTED_MS: Final = 60_000
"""Time for which a node trusts the map that it read.

It reads the map every second, and a store outage of a minute stops no message.

An owner under the next map waits longer than that (`HAND_OVER_MS`).
"""


class ProbeVerdict(Enum):
    """What the coordinator's answer to a probe proves."""

    MEMBER = "member"
    UNSETTLED = "unsettled"
    """Nothing: a rebalance is under way, the generation changed, or no answer came.

    The lease is neither extended nor dropped.
    """
    EXPELLED = "expelled"
    """The coordinator no longer knows this member: its topic partitions may have another owner."""


class MembershipLease:
    """Times are in ms on a clock that never goes back and includes the time of a suspended machine.

    One thread may feed it while others call `holds`: they read a single attribute.
    """

    def __init__(self, half_session_ms: int, settle_ms: int = 0) -> None:
        """Creates a lease that does not hold.

        Args:
            half_session_ms: Half of the coordinator's session, or less.
            settle_ms: Time after a freeze in which a probe proves nothing; 0 when a commit keeps the member. It
                exceeds the client's heartbeat interval; together with half a session it stays below the session.
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
        """Starts a membership: the time before it without membership is no freeze."""
        self._awake_at = self._settled_at = None

    def awake(self, now: int) -> None:
        """Notes that the process runs. The client's thread calls it more often than every half session."""
        if self._awake_at is not None and now - self._awake_at > self._half_session_ms:
            self._settled_at = now + self._settle_ms
        self._awake_at = now

    def probe_sent(self, at: int) -> int:
        """Registers a probe that leaves now and returns its number. Call it before the client gets the probe."""
        self.awake(at)
        self._last += 1
        if len(self._open) >= PROBES_OPEN_MAX:
            del self._open[min(self._open)]
        self._open[self._last] = at
        return self._last

    def probe_answered(self, probe: int, verdict: ProbeVerdict) -> bool:
        """Takes an answer; returns False when it concerns an ended membership or was already answered, and has no
        effect.

        A client without a coordinator keeps commits and sends them later, long after it rejoined. Such an answer
        reports `EXPELLED` for the old membership and must not end the new one.
        """
        sent_at = self._open.pop(probe, None)
        if sent_at is None:
            return False
        if verdict is ProbeVerdict.EXPELLED:
            self.membership_lost()
        elif verdict is ProbeVerdict.MEMBER and (self._settled_at is None or sent_at >= self._settled_at):
            # Answers may overtake one another: the answer to an older probe must not shorten the lease.
            self._until = max(self._until or 0, sent_at + self._half_session_ms)
        return True

    def membership_lost(self) -> None:
        """Ends the membership. Outstanding answers belong to it and prove nothing."""
        self._open.clear()
        self._until = None

    def holds(self, now: int) -> bool:
        return self.remaining_ms(now) > 0

    def remaining_ms(self, now: int) -> int:
        """Returns how long the lease holds without another answer; 0 when it does not hold."""
        until = self._until
        return max(0, until - now) if until is not None else 0


class MapLease:
    """Whether a node may act under a map: it was in force less than `MAP_TRUSTED_MS` ago.

    Times are those of `MembershipLease`. The reader of the map feeds it.
    """

    def __init__(self) -> None:
        self._until: dict[int, int] = {}

    def read(self, version: int, asked_at: int) -> None:
        """Notes that a version was in force when the read began, or later.

        It proves nothing about older versions, whose shards may have new owners.
        """
        self._until[version] = max(self._until.get(version, 0), asked_at + MAP_TRUSTED_MS)

    def holds(self, version: int, now: int) -> bool:
        """Returns whether a node that owns shards under this version may do something irreversible now."""
        return now < self._until.get(version, now)


CLOCK_OFF_MS_MAX = 500
"""A node whose clock differs more from the brokers' does not serve."""


CLOCKS_APART_MS_MAX = 2 * CLOCK_OFF_MS_MAX
"""Maximum difference between two clocks.

Events have the broker's time; ends of runs have the time of the owner or API that saw them.
"""
