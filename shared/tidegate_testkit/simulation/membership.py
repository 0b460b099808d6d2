"""The client's side of the classic protocol: joins, heartbeats, drains what it must give up, and learns late that it was put out."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from tidegate_core.decisions.guard import ProbeVerdict
from tidegate_testkit.simulation.group import Coordinator
from tidegate_testkit.simulation.handing_over import drain
from tidegate_testkit.simulation.swarm import HEARTBEAT_MS

if TYPE_CHECKING:
    from tidegate_testkit.simulation.node import Node

HOP_MS = 3


class MemberClient:
    """One member id after another of one process.

    Attributes:
        id: The present one; empty once it is known to be put out.
        owned: Topic partitions that this client believes to hold.
    """

    def __init__(self, node: Node, coordinator: Coordinator) -> None:
        self._node = node
        self._coordinator = coordinator
        self._process = node.process
        self._memberships = 0
        self.id = ""
        self._generation = -1
        self._joining = False
        self._leaving = False
        self._draining = False
        self.owned: frozenset[int] = frozenset()

    def join(self) -> None:
        """Joins anew, under a new member id."""
        self._memberships += 1
        self.id = f"{self._node.owner[:8]}.{self._memberships}"
        self._generation = -1
        self._joining = self._draining = False
        self.owned = frozenset()
        self._join_again()
        self._heartbeat(self.id)

    def is_known_as(self, member_id: str) -> bool:
        """Whether the id is, or was, this process's; an empty one is nobody's and contradicts nobody."""
        return not member_id or member_id.startswith(self._node.owner[:8])

    def commit(self, answer: Callable[[ProbeVerdict], None]) -> None:
        """Sends an offset commit; says nothing when the broker does not."""
        member_id, generation = self.id, self._generation

        def arrive() -> None:
            if self._node.cluster.broker.is_down():
                return
            verdict = self._coordinator.commit(member_id, generation)
            self._process.after(self._hop(), lambda: answer(verdict))

        self._process.timeline.after(self._hop(), arrive)

    def leave(self, done: Callable[[], None]) -> None:
        """Gives everything up in an orderly manner, then leaves the group."""
        self._leaving = True

        def left() -> None:
            self._coordinator.leave(self.id)
            self._node.lose_all()
            done()

        drain(self._node, self.owned, left)

    def went_on(self) -> None:
        """The process was frozen. With this protocol a commit keeps a member as well as a heartbeat does."""

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

        def arrive() -> None:
            if self._process.alive and not self._node.cluster.broker.is_down():
                verdict = self._coordinator.heartbeat(member_id)
                self._process.after(self._hop(), lambda: self._heard(member_id, verdict))

        if not self._joining:
            self._process.timeline.after(self._hop(), arrive)
        self._process.after(HEARTBEAT_MS, lambda: self._heartbeat(member_id))

    def _heard(self, member_id: str, verdict: ProbeVerdict) -> None:
        if member_id != self.id or self._leaving:
            return
        if verdict is ProbeVerdict.UNSETTLED:
            self._join_again()
        elif verdict is ProbeVerdict.EXPELLED:
            self.id = ""
            late = self._node.cluster.swarm.node.late_loss_ms
            self._process.after(self._process.timeline.between(0, late), self._lost)

    def _lost(self) -> None:
        if not self._leaving:
            self._node.lose_all()
            self.join()

    def _hop(self) -> float:
        return self._process.timeline.around(HOP_MS)
