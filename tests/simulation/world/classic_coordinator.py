"""The group coordinator of the classic protocol, cooperative-sticky: sessions, rebalances, and its rules about zombies."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

from tests.simulation.runner.swarm import DRAIN_MS_MAX, HALF_SESSION_MS, HEARTBEAT_MS, SESSION_MS
from tests.simulation.runner.trace import Trace
from tests.simulation.world.timeline import Timeline
from tidegate_core.engine.membership_lease import ProbeVerdict

REBALANCE_MS_MAX = SESSION_MS + DRAIN_MS_MAX + HEARTBEAT_MS + HALF_SESSION_MS
"""Who has not joined again by then is put out: as soon as the nodes' settings allow (`KafkaSettings.classic_poll_gap_ms_min`)."""

OnAssigned: TypeAlias = Callable[[int, frozenset[int]], None]
"""Generation and the member's whole assignment."""


@dataclass(slots=True)
class _Member:
    heard_at: int
    owned: frozenset[int] = frozenset()
    joined: OnAssigned | None = None


@dataclass(slots=True)
class Coordinator:
    """The broker's side of the group.

    Attributes:
        is_away: Whether the coordinator's broker is down; nobody is put out meanwhile.
        generation: Of the last assignment.
        holders: Member id by topic partition, as the last assignment says.
        rebalancing: Between the first join of a round and its assignment.
        rounds: Begin and end of each that is over; amid one nobody can show that it is a member still.
    """

    timeline: Timeline
    trace: Trace
    topic_partitions: int
    is_away: Callable[[], bool]
    generation: int = 0
    rebalancing: bool = False
    rounds: list[tuple[int, int]] = field(default_factory=list)
    holders: dict[int, str] = field(default_factory=dict)
    _members: dict[str, _Member] = field(default_factory=dict)
    _gone: set[str] = field(default_factory=set)
    _round: int = 0
    _round_began: int = 0

    # -- what members send --------------------------------------------------------------------------------------------

    def join(self, member_id: str, owned: frozenset[int], assigned: OnAssigned) -> bool:
        """Takes a member's join; False when it was put out: it has to join anew, without what it held."""
        if member_id in self._gone:
            return False
        if member_id not in self._members:
            self._members[member_id] = _Member(self.timeline.now)
            self.timeline.after(SESSION_MS + 1, lambda: self._check_session(member_id))
        member = self._members[member_id]
        member.heard_at = self.timeline.now
        member.owned = owned
        member.joined = assigned
        self._begin_round()
        self._finish_if_all()
        return True

    def has(self, member_id: str) -> bool:
        return member_id in self._members

    def leave(self, member_id: str) -> None:
        if self._members.pop(member_id, None) is not None:
            self.trace.note("group", "left", member_id)
            self._begin_round()
            self._finish_if_all()

    def heartbeat(self, member_id: str) -> ProbeVerdict:
        """Returns MEMBER, UNSETTLED (a rebalance wants the member to join again) or EXPELLED."""
        member = self._members.get(member_id)
        if member is None:
            return ProbeVerdict.EXPELLED
        member.heard_at = self.timeline.now
        return ProbeVerdict.UNSETTLED if self.rebalancing and member.joined is None else ProbeVerdict.MEMBER

    def commit(self, member_id: str, generation: int) -> ProbeVerdict:
        """A commit probe: proves membership while the generation is the member's and no assignment is being made."""
        member = self._members.get(member_id)
        if member is None:
            return ProbeVerdict.EXPELLED
        if generation != self.generation or member.joined is not None:
            return ProbeVerdict.UNSETTLED
        member.heard_at = self.timeline.now
        return ProbeVerdict.MEMBER

    def forgive(self) -> None:
        """The coordinator was away and is back: sessions begin anew, and so does the wait of a round for those who did not join.

        A broker that takes a group over has its members from the log, and nothing of a round that was under way.
        """
        for member in self._members.values():
            member.heard_at = self.timeline.now
        if self.rebalancing:
            self._await_joins()

    def grow(self, topic_partitions: int) -> None:
        """The topic has more topic partitions: the members are asked to join again."""
        self.topic_partitions = topic_partitions
        self._begin_round()

    # -- rounds -------------------------------------------------------------------------------------------------------

    def _begin_round(self) -> None:
        if self.rebalancing or not self._members:
            return
        self.rebalancing = True
        self._round_began = self.timeline.now
        self._await_joins()

    def _await_joins(self) -> None:
        self._round += 1
        number = self._round
        self.timeline.after(REBALANCE_MS_MAX, lambda: self._close_round(number))

    def _close_round(self, number: int) -> None:
        if not self.rebalancing or number != self._round or self.is_away():
            return
        for member_id in [each for each, member in self._members.items() if member.joined is None]:
            self._put_out(member_id, "did not join")
        self._finish_if_all()

    def _finish_if_all(self) -> None:
        if not self.rebalancing or any(member.joined is None for member in self._members.values()):
            return
        self.rebalancing = False
        self.rounds.append((self._round_began, self.timeline.now))
        if not self._members:
            return
        self.generation += 1
        assignment = _assigned({each: member.owned for each, member in self._members.items()}, self.topic_partitions)
        self.holders = {number: member for member, numbers in assignment.items() for number in numbers}
        self.trace.note("group", "generation", self.generation, *(f"{k}:{sorted(v)}" for k, v in assignment.items()))
        for member_id, member in self._members.items():
            answer, member.joined = member.joined, None
            assert answer is not None
            self._tell(answer, self.generation, assignment[member_id])

    def _tell(self, answer: OnAssigned, generation: int, topic_partitions: frozenset[int]) -> None:
        self.timeline.after(self.timeline.around(3), lambda: answer(generation, topic_partitions))

    # -- sessions -----------------------------------------------------------------------------------------------------

    def _check_session(self, member_id: str) -> None:
        member = self._members.get(member_id)
        if member is None:
            return
        if self.is_away():
            self.timeline.after(SESSION_MS, lambda: self._check_session(member_id))
            return
        silent = self.timeline.now - member.heard_at
        # A member that waits for its join's answer is kept: the coordinator owes the next word.
        if silent <= SESSION_MS or member.joined is not None:
            self.timeline.after(max(1, SESSION_MS + 1 - silent), lambda: self._check_session(member_id))
            return
        self._put_out(member_id, "session expired")
        self._begin_round()
        self._finish_if_all()

    def _put_out(self, member_id: str, why: str) -> None:
        self._members.pop(member_id)
        self._gone.add(member_id)
        self.trace.note("group", "expelled", member_id, why)


def _assigned(owned: dict[str, frozenset[int]], topic_partitions: int) -> dict[str, frozenset[int]]:
    """Cooperative-sticky: keep what is owned up to a fair share; what must move is given up in this round, moved in the next."""
    members = sorted(owned)
    share, extra = divmod(topic_partitions, len(members))
    claimed: set[int] = set()
    kept: dict[str, list[int]] = {}
    still_owned: set[int] = set()
    for member in sorted(members, key=lambda each: (-len(owned[each]), each)):
        mine = sorted(owned[member] - claimed)
        claimed.update(mine)
        quota = share + (1 if extra > 0 and len(mine) > share else 0)
        extra -= 1 if quota > share else 0
        kept[member] = mine[:quota]
        still_owned.update(mine)
    free = [number for number in range(topic_partitions) if number not in still_owned]
    for number in free:
        poorest = min(members, key=lambda each: (len(kept[each]), each))
        kept[poorest].append(number)
    return {member: frozenset(numbers) for member, numbers in kept.items()}
