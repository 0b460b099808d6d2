"""Two actors on one store and the same logs, under one clock: what a former holder still does while its successor works.

Each one keeps its own broker's client and its own launcher, as two hosts do; what both have sent and started is asked of
the pair. An actor can be frozen: it takes no part until it is thawed, and then goes on where it stood, as a suspended
process does.
"""

from __future__ import annotations

from typing import Any

from tests.support.builders import EVENTS, REQUESTS, Doc
from tests.support.harness.actor_harness import ActorHarness, Behaviour
from tests.support.harness.recorded_effects import Sent
from tidegate_core.rows.effects import Effect, LaunchOrder, NotProduced, NotSubmitted, Produce, Submit

GUARD_LAPSED = 1_000_000
"""So often the driver refuses what is irreversible: for good."""


class ConcurrentOwner(ActorHarness):
    """A bench on the store and the logs of another one."""

    host = "host-2"

    def __init__(self, other: ActorHarness, owner: str, behaviour: Behaviour | None, **holding: Any) -> None:
        super().__init__(behaviour=behaviour, **holding)
        self.store, self._logs, self.now = other.store, other.logs, other.now
        self.new_actor(owner)


class BenchPair:
    """Two benches.

    Args:
        behaviour: What programs do, on both hosts.
        others: What is different in the second one's holding.
        holding: What is the same in both.

    Attributes:
        first: Begins at once.
        second: Stands still until `begin_second`.
    """

    def __init__(
        self, *, behaviour: Behaviour | None = None, others: dict[str, Any] | None = None, **holding: Any
    ) -> None:
        self.first = ActorHarness(behaviour=behaviour, **holding)
        self.second: ActorHarness = ConcurrentOwner(self.first, "node-2", behaviour, **{**holding, **(others or {})})
        self._frozen: set[ActorHarness] = {self.second}

    # -- life ---------------------------------------------------------------------------------------------------------

    def begin_second(self) -> None:
        """The group gives the second one its share; what the first one learns of it is the test's affair."""
        self.join(self.second)

    def take_over(self) -> None:
        """The first one freezes where it stands, and the second one is given its share."""
        self.freeze(self.first)
        self.begin_second()

    def freeze(self, bench: ActorHarness) -> None:
        self._frozen.add(bench)

    def thaw(self, bench: ActorHarness) -> None:
        """It goes on where it stood, after more than a session: the group expelled it, and its guard has lapsed."""
        bench.is_member = False
        bench.answer_with(_is_guarded_produce, NotProduced("guard", "the guard has lapsed"), GUARD_LAPSED)
        bench.answer_with(_is_submit, NotSubmitted("the guard has lapsed"), GUARD_LAPSED)
        self.join(bench)

    def join(self, bench: ActorHarness) -> None:
        """It takes part from now on, and is believed to be a member."""
        self._frozen.discard(bench)
        bench.now = max(self.first.now, self.second.now)
        bench.run()

    # -- inputs and time ----------------------------------------------------------------------------------------------

    def request(self, document: Doc, topic_partition: int = 0) -> None:
        self.append(REQUESTS, topic_partition, document)

    def event(self, document: Doc, topic_partition: int = 0) -> None:
        self.append(EVENTS, topic_partition, document)

    def append(self, topic: str, topic_partition: int, document: Doc) -> None:
        """Appends a record, once; whoever reads that topic partition and is not frozen is given it."""
        awake = [bench for bench in self._benches if bench not in self._frozen]
        first = len(self.first.log(topic, topic_partition))
        awake[0].append(topic, topic_partition, document)
        for bench in awake[1:]:
            bench.hand_over(topic, topic_partition, first)

    def run(self, milliseconds: int = 0) -> None:
        """Lets time pass for those that are not frozen, alarm by alarm."""
        end = max(bench.now for bench in self._benches) + milliseconds
        while True:
            awake = [bench for bench in self._benches if bench not in self._frozen]
            moments = [each for bench in awake if (each := bench.next_moment()) is not None]
            until = min([*moments, end])
            for bench in awake:
                bench.run(max(0, until - bench.now))
            if until == end:
                return

    # -- what came of it ----------------------------------------------------------------------------------------------

    @property
    def _benches(self) -> tuple[ActorHarness, ActorHarness]:
        return (self.first, self.second)

    @property
    def sent(self) -> list[Sent]:
        """Everything that either of them produced, in order of time."""
        return sorted((each for bench in self._benches for each in bench.sent), key=lambda each: each.at)

    @property
    def started(self) -> list[LaunchOrder]:
        """Orders that passed the gate, on either host."""
        return [order for bench in self._benches for order in bench.started]

    def on(self, topic: str) -> list[Sent]:
        return [each for each in self.sent if each.topic == topic]

    def delivered(self) -> list[str]:
        """Returns which sends arrived on `out`, in order."""
        return [str(each.document["of"]) for each in self.on("out")]

    def status_of(self, request_id: str) -> str | None:
        statuses = [bench.status_of(request_id) for bench in self._benches]
        return next((status for status in reversed(statuses) if status is not None), None)


def _is_guarded_produce(effect: Effect) -> bool:
    return isinstance(effect, Produce) and effect.guarded


def _is_submit(effect: Effect) -> bool:
    return isinstance(effect, Submit)
