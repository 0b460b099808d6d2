"""What the clients of both group protocols have in common: ids, orderly leaving, and losing everything."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from tests.simulation.world.hand_over import drain
from tidegate_core.engine.membership_lease import ProbeVerdict

if TYPE_CHECKING:
    from tests.simulation.world.node import Node

HOP_MS: Final = 3


class GroupMember(ABC):
    """One member id after another of one process.

    Attributes:
        id: The present one; empty once it is known to be put out.
        owned: Topic partitions that this client believes to hold.
    """

    def __init__(self, node: Node) -> None:
        self._node = node
        self._process = node.process
        self._memberships = 0
        self._draining = False
        self._leaving = False
        self.id = ""
        self.owned: frozenset[int] = frozenset()

    @abstractmethod
    def join(self) -> None:
        """Joins anew, under a new member id."""

    def leave(self, done: Callable[[], None]) -> None:
        """Gives everything up in an orderly manner, then leaves the group."""
        self._leaving = True

        def left() -> None:
            self._say_left()
            self._node.lose_all()
            done()

        drain(self._node, self.owned, left)

    def commit(self, answer: Callable[[ProbeVerdict], None]) -> None:
        """Sends an offset commit; says nothing when the broker does not."""
        verdict_of = self._commit_of_now()

        def arrive() -> None:
            if self._node.cluster.broker.is_down():
                return
            verdict = verdict_of()
            self._process.after(self._hop(), lambda: answer(verdict))

        self._process.timeline.after(self._hop(), arrive)

    def is_known_as(self, member_id: str) -> bool:
        """Whether the id is, or was, this process's; an empty one is nobody's and contradicts nobody."""
        return not member_id or member_id.startswith(self._node.owner[:8])

    # -- for the protocols --------------------------------------------------------------------------------------------

    @abstractmethod
    def _commit_of_now(self) -> Callable[[], ProbeVerdict]:
        """Returns what the coordinator says, once it arrives there, of a commit that is sent now."""

    @abstractmethod
    def _say_left(self) -> None:
        """Tells the coordinator."""

    def _take_new_id(self) -> None:
        self._memberships += 1
        self.id = f"{self._node.owner[:8]}.{self._memberships}"
        self._draining = False
        self.owned = frozenset()

    def _put_out(self) -> None:
        """The coordinator has said so; the client hears of it a while later."""
        self.id = ""
        late = self._node.cluster.swarm.node.late_loss_ms
        self._process.after(self._process.timeline.between(0, late), self._lost)

    def _lost(self) -> None:
        if not self._leaving:
            self._node.lose_all()
            self.join()

    def _hop(self) -> float:
        return self._process.timeline.around(HOP_MS)
