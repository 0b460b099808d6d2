"""The local guard (DESIGN 3): may this process do something irreversible now?

It holds while the group coordinator has confirmed this process's membership to a probe that was *sent* less than half a
session ago: the coordinator keeps a member for a whole session after it heard from it, so nobody else can have been given
its topic partitions yet. Store writes prove nothing about membership and do not count. The node's Kafka thread feeds it,
the simulator too. It is a courtesy to the world outside; what is stored is protected by the store's own conditions.
"""

from __future__ import annotations

from enum import Enum

PROBES_OPEN_MAX = 16
"""Unanswered probes remembered; at one probe each sixth of a session that is more than two sessions of silence, and an
answer to an older one could not extend the guard any more."""


class ProbeVerdict(Enum):
    """What the coordinator's answer to a probe says."""

    MEMBER = "member"
    UNSETTLED = "unsettled"
    """Nothing: a rebalance is under way, the generation moved on, or nobody answered. Neither extends nor drops."""
    EXPELLED = "expelled"
    """The coordinator does not know this member any more: whatever it held may have another owner."""


class Guard:
    """Times are milliseconds on a clock that never goes back and counts the time a machine was suspended.

    One thread may feed it while others ask `holds`: what they read is one attribute.
    """

    def __init__(self, half_session_ms: int) -> None:
        if half_session_ms <= 0:
            raise ValueError(f"half a session is {half_session_ms} ms; it must be positive")
        self._half_session_ms = half_session_ms
        self._open: dict[int, int] = {}
        self._last = 0
        self._until: int | None = None

    def probe_sent(self, at: int) -> int:
        """Registers a probe that leaves now and returns its number; to be called before it is handed to the client."""
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
            self.expelled()
        elif verdict is ProbeVerdict.MEMBER:
            # Answers may overtake each other: an older probe's must not shorten what a younger one proved.
            self._until = max(self._until or 0, sent_at + self._half_session_ms)
        return True

    def expelled(self) -> None:
        """Membership ended. Answers that are still on their way belong to the old membership and prove nothing."""
        self._open.clear()
        self._until = None

    def holds(self, now: int) -> bool:
        return self.remaining_ms(now) > 0

    def remaining_ms(self, now: int) -> int:
        """How long it still holds without another answer; 0 when it does not hold."""
        until = self._until
        return max(0, until - now) if until is not None else 0
