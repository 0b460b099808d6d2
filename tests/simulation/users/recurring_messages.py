"""Schedules that send messages: what each one is, as its user writes it and as the checks read it."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Any

from tests.simulation.users.schedule_definitions import NAMESPACE, Definition
from tidegate_core.language.values.instants import format_instant

NEAR_MS = 61_000
"""What is near in these worlds: hardly longer than the window, so that some fires are brought near and moved out."""
FAR_S = 66
"""Seconds after the start at which a fire is far for whoever makes its schedule in the first seconds."""


@dataclass(frozen=True, slots=True)
class RecurringMessage(Definition):
    """A schedule with a message as its target.

    Attributes:
        topic: Where to; the world's broker refuses one of its sinks at times.
    """

    topic: str = "sink-a"

    @property
    def sends_messages(self) -> bool:
        return True

    def document(self, variant: int) -> dict[str, Any]:
        """Returns the spec; each variant differs in its payload."""
        return {
            "kind": "schedule",
            "namespace": NAMESPACE,
            "name": self.name,
            "target": {"type": "message", "topic": self.topic, "payload_text": f"{self.name}/{variant}"},
            "trigger": self.trigger,
        }


def draw_recurring(chance: Random, begin: int, busy_ms: int) -> list[Definition]:
    """Draws those of a world; two of them often have the same instants."""
    topics = [chance.choice(("sink-a", "sink-b")) for _ in range(5)]
    seconds = {"type": "cron", "expression": f"*/{chance.choice((2, 4))} * * * * *", "dialect": "unix6", "zone": "UTC"}
    drawn: list[Definition] = [
        RecurringMessage("ping", {"type": "every", "period": f"{chance.randint(2, 4)}s"}, topic=topics[0]),
        RecurringMessage("pong", {"type": "every", "period": f"{chance.randint(2, 6)}s"}, topic=topics[1]),
    ]
    if chance.random() < 0.5:
        drawn.append(RecurringMessage("chime", seconds, topic=topics[2]))
    if chance.random() < 0.5:
        at = format_instant(begin + chance.randint(-5_000, busy_ms))
        drawn.append(RecurringMessage("alarm", {"type": "at", "instant": at}, topic=topics[3]))
    period = 4 * busy_ms // 1_000
    fires_at = begin // 1_000 + chance.randint(FAR_S, max(FAR_S, busy_ms // 1_000 - 4))
    rare = {"type": "every", "period": f"{period}s", "phase": f"{fires_at % period}s"}
    drawn.append(RecurringMessage("rare", rare, topic=topics[4]))
    return drawn
