"""Suspensions that end by themselves (`until`): in the worlds of the trap, which user's suspend names which end."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any, Final

from tests.simulation.world.timeline import START
from tidegate_core.language.values.instants import format_instant

if TYPE_CHECKING:
    from tests.simulation.users.schedule_users import Life
    from tests.simulation.world.cluster import Cluster

TRAP: Final = "suspends_until"
NAMED: Final = 0.8
"""Share of the suspends that name an end."""
INSTEAD: Final = 0.5
"""Share of the runs that would be asked for by hand, of what goes on, and that are suspends instead."""
WAITED_FOR: Final = 0.6
"""Share of the ends before which the user asks for nothing else."""
ANOTHER: Final = 0.3
"""Share of the resumes, before an end, that are another suspend instead."""
IN_SILENCE: Final = 0.4
"""Share of the ends that come while the store, or everybody, is silent, where such a time is still to come."""
AHEAD_MS: Final = ((1_000, 12_000), (3_000, 25_000), (0, 60_000))
"""How far ahead of their requests the others are, each of these spans as often."""
PASSED: Final = 0.08
ROUND: Final = 0.6
"""Share of the ends that are full seconds, when schedules are due."""
NEAR_MS: Final = 600


class Ends:
    """Draws them, from a source of its own."""

    def __init__(self, cluster: Cluster, chance: Random) -> None:
        self._cluster = cluster
        self._chance = chance

    def changed(self, life: Life, document: dict[str, Any], modes: tuple[str, ...]) -> dict[str, Any]:
        """Returns what the user asks for, instead of what a world without ends would have asked for."""
        chance, kind = self._chance, document["type"]
        if kind == "schedule.trigger" and not life.suspended and chance.random() < INSTEAD:
            document = self._suspend(life, modes)
        elif kind == "schedule.resume" and life.until is not None and chance.random() < ANOTHER:
            document = {**self._suspend(life, modes), **({} if life.definition.sends_messages else {"mode": life.mode})}
            document |= {"until": format_instant(life.until)} if chance.random() < 0.5 else {}
        if document["type"] != "schedule.suspend" or "until" in document or chance.random() >= NAMED:
            return document
        return {**document, "until": format_instant(self._end(life))}

    def pause(self, life: Life, pause: float) -> float:
        """Returns how long the user waits before the next request: often until about the end."""
        left = (life.until or 0) - self._cluster.timeline.now
        if not life.suspended or left <= 0 or self._chance.random() >= WAITED_FOR:
            return pause
        return max(1.0, left + self._chance.choice((self._chance.uniform(-NEAR_MS, NEAR_MS), pause)))

    def _suspend(self, life: Life, modes: tuple[str, ...]) -> dict[str, Any]:
        mode = {} if life.definition.sends_messages else {"mode": self._chance.choice(modes)}
        return {"type": "schedule.suspend", **mode}

    def _end(self, life: Life) -> int:
        chance, now = self._chance, self._cluster.timeline.now
        if life.until is not None and chance.random() < 0.2:
            return life.until  # As before, though it may just have passed.
        coming = self._silences(now)
        if chance.random() < PASSED:
            end = now - chance.uniform(-300, 5_000)
        elif coming and chance.random() < IN_SILENCE:
            begin, over = chance.choice(coming)
            end = chance.uniform(max(begin, now), over)
        else:
            end = now + chance.uniform(*chance.choice(AHEAD_MS))
        return int(end) // 1_000 * 1_000 if chance.random() < ROUND else int(end)

    def _silences(self, now: int) -> list[tuple[int, int]]:
        store, node = self._cluster.swarm.store, self._cluster.swarm.node
        periods = (*store.brown_outs, *store.write_outs, *node.black_outs)
        return [(START + begin, START + over) for begin, over in periods if START + over > now]
