"""Users of wide controls: one for each scope, which suspends and resumes it at awkward moments."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Any, Final

from tests.simulation.runner.world_drawing import source
from tests.simulation.users import message_senders, schedule_definitions
from tests.simulation.users.requests import Asked, Requests
from tests.simulation.world.cluster import Cluster

HUNTED: Final = frozenset({"rare_suspends", "rare_resumes"})
EARLY_MS: Final = 14_000
"""A suspension whose steps are hunted begins by now: it takes most of the time."""
TRAPS: Final = HUNTED | {"wide_controls"}
"""A world with one of these has such users in any case."""
SHARE: Final = 0.35
"""Of the worlds in which anything is suspended at all: what is suspended fires nothing."""
ROUNDS_MAX: Final = 3
SPAN_MS_MAX: Final = 9_000
NEAR_MS: Final = 400
"""Half of the requests come this close to a full second, when schedules are due."""
SCOPES: Final = (None, schedule_definitions.NAMESPACE, message_senders.NAMESPACE)


@dataclass(slots=True)
class WideSpan:
    """One suspension of a scope.

    Attributes:
        namespace: None for the whole system.
        begin, end: The two requests; `end` None while it goes on.
    """

    namespace: str | None
    begin: Asked
    end: Asked | None = None


class ControlUser:
    """Drives one scope: each request is sent after the answer to the one before.

    Attributes:
        spans: Its suspensions, in their order.
        repeats: Requests that change nothing.
    """

    def __init__(self, cluster: Cluster, requests: Requests, namespace: str | None, chance: Random) -> None:
        self.namespace = namespace
        self.spans: list[WideSpan] = []
        self.repeats: list[Asked] = []
        self.is_done = True
        self._cluster = cluster
        self._requests = requests
        self._chance = chance
        self._rounds = chance.randint(1, ROUNDS_MAX)
        self._suspended = False
        self._closing = False
        late = cluster.swarm.busy_ms * 0.7 if HUNTED.isdisjoint(cluster.swarm.traps) else EARLY_MS
        begin = chance.uniform(4_000, late)
        cluster.timeline.after(self._near(begin), self._suspend)

    def close(self) -> None:
        """The world comes to rest: nothing stays suspended."""
        self._closing = True
        if self.is_done and self._suspended:
            self._resume()

    def _near(self, pause: float) -> float:
        timeline = self._cluster.timeline
        if self._chance.random() < 0.5:
            at = (timeline.now + int(pause)) // 1_000 * 1_000 + int(self._chance.uniform(-NEAR_MS, NEAR_MS))
            pause = max(1, at - timeline.now)
        return pause

    def _ask(self, kind: str) -> Asked:
        self.is_done = False
        scope: dict[str, Any] = {"scope": "system"}
        if self.namespace is not None:
            scope = {"scope": "namespace", "namespace": self.namespace}
        return self._requests.ask({"type": f"control.{kind}", **scope}, self._answered)

    def _suspend(self) -> None:
        if not self._closing and self.is_done and not self._suspended:
            self._suspended = True
            self.spans.append(WideSpan(self.namespace, self._ask("suspend")))

    def _resume(self) -> None:
        if self._suspended and self.is_done:
            self._suspended = False
            self.spans[-1].end = self._ask("resume")

    def _answered(self, asked: Asked) -> None:
        self.is_done = True
        after, chance = self._cluster.timeline.after, self._chance
        if self._closing:
            self.close()
        elif self._suspended and chance.random() < 0.15 and not self.repeats:
            self.repeats.append(self._ask("suspend"))
        elif self._suspended:
            after(self._near(chance.uniform(300, SPAN_MS_MAX)), self._resume)
        elif self._rounds > 1:
            self._rounds -= 1
            after(self._near(chance.uniform(500, 15_000)), self._suspend)


def control_users(cluster: Cluster, requests: Requests, seed: int) -> list[ControlUser]:
    """Returns the users of the wide controls, with their first requests planned."""
    chance = source(seed, "controls")
    if chance.random() >= SHARE and TRAPS.isdisjoint(cluster.swarm.traps):
        return []
    return [ControlUser(cluster, requests, namespace, chance) for namespace in SCOPES if chance.random() < 0.6]
