"""The client's side of the classic protocol: joins, heartbeats, drains what it must give up, and learns late that it was put out."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from tests.simulation.runner.swarm import HEARTBEAT_MS
from tests.simulation.world.classic_coordinator import Coordinator
from tests.simulation.world.group_member import GroupMember
from tests.simulation.world.hand_over import drain
from tidegate_core.engine.membership_lease import ProbeVerdict

if TYPE_CHECKING:
    from tests.simulation.world.node import Node

OVERDUE_HOP_MS = 1.0
"""Drawn by no chance: worlds in which nothing is overdue draw what they drew."""


class MemberClient(GroupMember):
    """One of a group with the classic protocol."""

    def __init__(self, node: Node, coordinator: Coordinator) -> None:
        super().__init__(node)
        self._coordinator = coordinator
        self._generation = -1
        self._joining = False
        self._overdue = False

    def join(self) -> None:
        self._take_new_id()
        self._generation = -1
        self._joining = False
        self._join_again()
        self._heartbeat(self.id)

    def went_on(self) -> None:
        """The process was frozen. With this protocol a commit keeps a member as well as a heartbeat does, and one that is overdue goes
        out at once, or as soon as the client has its assignment.
        """
        self._overdue = self._joining

    def _commit_of_now(self) -> Callable[[], ProbeVerdict]:
        return partial(self._coordinator.commit, self.id, self._generation)

    def _say_left(self) -> None:
        self._coordinator.leave(self.id)

    # -- joining ------------------------------------------------------------------------------------------------------

    def _join_again(self) -> None:
        if self._joining or self._leaving or self._draining:
            return  # A client that drains joins again when it has done so.
        self._joining = True
        member_id = self.id

        def assigned(generation: int, topic_partitions: frozenset[int]) -> None:
            self._process.post(lambda: self._assigned(member_id, generation, topic_partitions))

        def arrive() -> None:
            if not self._process.alive:
                return
            if self._node.cluster.broker.is_down():
                self._process.timeline.after(500, arrive)
                return
            if not self._coordinator.join(member_id, self.owned, assigned):
                self._process.after(self._hop(), lambda: self._heard(member_id, ProbeVerdict.EXPELLED))

        self._process.timeline.after(self._hop(), arrive)

    def _assigned(self, member_id: str, generation: int, topic_partitions: frozenset[int]) -> None:
        if member_id != self.id:
            return
        self._joining = False
        if self._leaving:
            return
        self._generation = generation
        revoked, added = self.owned - topic_partitions, topic_partitions - self.owned
        self.owned |= added
        for number in sorted(added):
            self._node.begin(number)
        if self._overdue:
            self._beat(member_id, OVERDUE_HOP_MS)
        if revoked:
            # The probe comes first, so that the guard lasts through the drain (DESIGN 3).
            self._node.prove(lambda verdict: None)
            self._draining = True
            drain(self._node, revoked, lambda: self._give_up(member_id, revoked))

    def _give_up(self, member_id: str, revoked: frozenset[int]) -> None:
        self._draining = False
        if member_id == self.id:
            self.owned -= revoked
            self._join_again()

    # -- staying ------------------------------------------------------------------------------------------------------

    def _heartbeat(self, member_id: str) -> None:
        if member_id != self.id:
            return

        if not self._joining:
            self._beat(member_id, self._hop())
        self._process.after(HEARTBEAT_MS, lambda: self._heartbeat(member_id))

    def _beat(self, member_id: str, hop_ms: float) -> None:
        self._overdue = False

        def arrive() -> None:
            if self._process.alive and not self._node.cluster.broker.is_down():
                verdict = self._coordinator.heartbeat(member_id)
                self._process.after(self._hop(), lambda: self._heard(member_id, verdict))

        self._process.timeline.after(hop_ms, arrive)

    def _heard(self, member_id: str, verdict: ProbeVerdict) -> None:
        if member_id != self.id or self._leaving:
            return
        if verdict is ProbeVerdict.UNSETTLED:
            self._join_again()
        elif verdict is ProbeVerdict.EXPELLED:
            self._put_out()
