"""The group coordinator of KIP-848: each member has an epoch of its own, and there is no common barrier.

The broker makes the target assignment and lets each member come to it on its own: what a member shall give up it gives up
first and says so, and only then is it given to another. Unlike with the classic protocol an offset commit does not keep a
member: `OffsetMetadataManager` of Kafka 4.1 puts the session off for classic groups only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from tests.simulation.runner.swarm import CONSUMER_SESSION_MS, DRAIN_MS_MAX, HALF_SESSION_MS
from tests.simulation.runner.trace import Trace
from tests.simulation.world.timeline import Timeline
from tidegate_core.engine.membership_lease import ProbeVerdict

REVOKED_WITHIN_MS = 2 * HALF_SESSION_MS + DRAIN_MS_MAX
"""Who has not given up by then what it was told to is put out: as soon as a guard of half a session allows
(`KafkaSettings.half_session_ms`).
"""


@dataclass(frozen=True, slots=True)
class Told:
    """The answer to a heartbeat: the member's epoch, and what it may hold."""

    epoch: int
    topic_partitions: frozenset[int]


@dataclass(slots=True)
class _Member:
    """Attributes:
    assigned: What it may hold.
    leaving: What it held and has not said to have given up; nobody else may hold it yet.
    """

    heard_at: int
    epoch: int = 0
    previous: int = -1
    assigned: frozenset[int] = frozenset()
    leaving: frozenset[int] = frozenset()
    leaving_since: int = 0


@dataclass(slots=True)
class ConsumerCoordinator:
    """The broker's side of the group.

    Attributes:
        is_away: Whether the coordinator's broker is down; nobody is put out meanwhile.
        holders: Member id by topic partition: whoever was given it last.
    """

    timeline: Timeline
    trace: Trace
    topic_partitions: int
    is_away: Callable[[], bool]
    holders: dict[int, str] = field(default_factory=dict)
    _members: dict[str, _Member] = field(default_factory=dict)
    _target: dict[str, frozenset[int]] = field(default_factory=dict)
    _epoch: int = 0

    # -- what members send --------------------------------------------------------------------------------------------

    def heartbeat(self, member_id: str, epoch: int, owned: frozenset[int]) -> Told | None:
        """Returns what the member may hold, or None when it is not known, or fenced: it drops all and joins anew."""
        member = self._members.get(member_id)
        if member is None:
            if epoch != 0:
                return None
            member = self._join(member_id)
        elif epoch not in (member.epoch, member.previous):
            self._put_out(member_id, "fenced by its epoch")
            return None
        member.heard_at = self.timeline.now
        member.leaving &= owned
        self._reconcile(member_id, member)
        return Told(member.epoch, member.assigned)

    def commit(self, member_id: str, epoch: int) -> ProbeVerdict:
        """A commit probe: proves membership while the epoch is the member's. It does not keep the member."""
        member = self._members.get(member_id)
        if member is None:
            return ProbeVerdict.EXPELLED
        return ProbeVerdict.MEMBER if epoch == member.epoch else ProbeVerdict.UNSETTLED

    def has(self, member_id: str) -> bool:
        return member_id in self._members

    def leave(self, member_id: str) -> None:
        if self._members.pop(member_id, None) is not None:
            self.trace.note("group", "left", member_id)
            self._retarget()

    def forgive(self) -> None:
        """The coordinator was away and is back: sessions begin anew."""
        for member in self._members.values():
            member.heard_at = member.leaving_since = self.timeline.now

    def grow(self, topic_partitions: int) -> None:
        """The topic has more topic partitions."""
        self.topic_partitions = topic_partitions
        self._retarget()

    # -- the assignment -----------------------------------------------------------------------------------------------

    def _join(self, member_id: str) -> _Member:
        member = self._members[member_id] = _Member(self.timeline.now)
        self._retarget()
        self.timeline.after(CONSUMER_SESSION_MS + 1, lambda: self._check_session(member_id))
        return member

    def _retarget(self) -> None:
        self._epoch += 1
        before = {each: self._target.get(each, frozenset()) for each in self._members}
        self._target = balanced(before, self.topic_partitions)
        self.trace.note("group", "epoch", self._epoch, *(f"{k}:{sorted(v)}" for k, v in self._target.items()))

    def _reconcile(self, member_id: str, member: _Member) -> None:
        """Brings one member closer to its target: first it gives up, then it is given what is free."""
        target = self._target[member_id]
        if going := member.assigned - target:
            member.assigned -= going
            member.leaving |= going
            member.leaving_since = self.timeline.now
        if member.leaving:
            return  # Its epoch stays until it has given all of it up.
        taken = frozenset().union(*(each.assigned | each.leaving for each in self._members.values()))
        given = target - taken
        member.assigned |= given
        self.holders.update(dict.fromkeys(sorted(given), member_id))
        if member.epoch != self._epoch:
            member.previous, member.epoch = member.epoch, self._epoch

    # -- sessions -----------------------------------------------------------------------------------------------------

    def _check_session(self, member_id: str) -> None:
        member = self._members.get(member_id)
        if member is None:
            return
        if self.is_away():
            self.timeline.after(CONSUMER_SESSION_MS, lambda: self._check_session(member_id))
            return
        silent = self.timeline.now - member.heard_at
        if silent > CONSUMER_SESSION_MS:
            self._put_out(member_id, "session expired")
        elif member.leaving and self.timeline.now - member.leaving_since > REVOKED_WITHIN_MS:
            self._put_out(member_id, "did not give up")
        else:
            wait = min(CONSUMER_SESSION_MS + 1 - silent, REVOKED_WITHIN_MS if member.leaving else CONSUMER_SESSION_MS)
            self.timeline.after(max(1, wait), lambda: self._check_session(member_id))

    def _put_out(self, member_id: str, why: str) -> None:
        self._members.pop(member_id)
        self.trace.note("group", "expelled", member_id, why)
        self._retarget()


def balanced(before: Mapping[str, frozenset[int]], topic_partitions: int) -> dict[str, frozenset[int]]:
    """Returns a fair assignment that leaves everybody as much as it can of what it had."""
    if not before:
        return {}
    members = sorted(before, key=lambda each: (-len(before[each]), each))
    share, extra = divmod(topic_partitions, len(members))
    kept: dict[str, list[int]] = {}
    for place, member in enumerate(members):
        kept[member] = sorted(before[member])[: share + (1 if place < extra else 0)]
    free = sorted(set(range(topic_partitions)) - {number for numbers in kept.values() for number in numbers})
    for number in free:
        kept[min(members, key=lambda each: (len(kept[each]), each))].append(number)
    return {member: frozenset(numbers) for member, numbers in kept.items()}
