"""The client's side of KIP-848: one heartbeat says and hears everything; what must go is drained first."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from tests.simulation.runner.swarm import HEARTBEAT_MS
from tests.simulation.world.group_member import GroupMember
from tests.simulation.world.hand_over import drain
from tests.simulation.world.kip848_coordinator import ConsumerCoordinator, Told
from tidegate_core.engine.membership_lease import ProbeVerdict

if TYPE_CHECKING:
    from tests.simulation.world.node import Node


class ConsumerMember(GroupMember):
    """One of a group with KIP-848."""

    def __init__(self, node: Node, coordinator: ConsumerCoordinator) -> None:
        super().__init__(node)
        self._coordinator = coordinator
        self._epoch = 0
        self._target: frozenset[int] | None = None
        self._asleep_until = 0
        self._sent = self._answered = 0

    def join(self) -> None:
        self._take_new_id()
        self._epoch, self._target = 0, None
        self._beat(self.id)

    def went_on(self) -> None:
        """The process was frozen: its connection is gone, and the next heartbeat takes its time."""
        most = self._node.cluster.swarm.group.late_heartbeat_ms
        late = self._process.timeline.between(most / 2, most)
        self._asleep_until = self._process.timeline.now + int(late)

    def _commit_of_now(self) -> Callable[[], ProbeVerdict]:
        return partial(self._coordinator.commit, self.id, self._epoch)

    def _say_left(self) -> None:
        self._coordinator.leave(self.id)

    # -- heartbeats ---------------------------------------------------------------------------------------------------

    def _beat(self, member_id: str) -> None:
        if member_id != self.id:
            return
        timeline = self._process.timeline
        if timeline.now >= self._asleep_until:
            self._send(member_id)
            self._process.after(HEARTBEAT_MS, lambda: self._beat(member_id))
        else:
            self._process.after(self._asleep_until - timeline.now, lambda: self._beat(member_id))

    def _send(self, member_id: str) -> None:
        self._sent += 1
        number, epoch, owned = self._sent, self._epoch, self.owned

        def arrive() -> None:
            if self._process.alive and not self._node.cluster.broker.is_down():
                told = self._coordinator.heartbeat(member_id, epoch, owned)
                self._process.after(self._hop(), lambda: self._heard(member_id, number, told))

        self._process.timeline.after(self._hop(), arrive)

    def _heard(self, member_id: str, number: int, told: Told | None) -> None:
        # The client has one heartbeat under way: an answer never overtakes another.
        if member_id != self.id or self._leaving or number <= self._answered:
            return
        self._answered = number
        if told is None:
            self._put_out()
        else:
            self._epoch, self._target = told.epoch, told.topic_partitions
            self._reconcile(member_id)

    def _reconcile(self, member_id: str) -> None:
        """Gives up first; what is new is begun once nothing is left to give up."""
        if member_id != self.id or self._target is None or self._draining or self._leaving:
            return
        if revoked := self.owned - self._target:
            # The probe comes first, so that the guard lasts through the drain (DESIGN 3).
            self._node.prove(lambda verdict: None)
            self._draining = True
            drain(self._node, revoked, lambda: self._gave_up(member_id, revoked))
            return
        added = self._target - self.owned
        self.owned |= added
        for number in sorted(added):
            self._node.begin(number)

    def _gave_up(self, member_id: str, revoked: frozenset[int]) -> None:
        if member_id != self.id:
            return
        self._draining = False
        self.owned -= revoked
        self._target = None if self._target is None else self._target & self.owned
        self._send(member_id)
