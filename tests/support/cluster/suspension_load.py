"""Schedules with the same instants that are suspended at once: what was due before is expected, what lies amid may go either way."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from tests.support.checkers.expected_occurrences import every_nth_second
from tests.support.cluster.until import now_ms
from tests.support.cluster.user_client import Client


@dataclass(frozen=True, slots=True)
class Suspension:
    """When it was asked for, and when the last of them had answered; ms since the epoch."""

    sent: int
    answered: int

    def expected(self, due: Sequence[int], started: Collection[int | None]) -> list[int]:
        """Returns those of a schedule's nominal instants that it owes.

        Args:
            due: Its instants.
            started: Of which a program has begun.
        """
        return [nominal for nominal in due if nominal < self.sent or (nominal < self.answered and nominal in started)]


def suspend_all(client: Client, namespace: str, names: Sequence[str], expression: str) -> Suspension:
    """Suspends them. Call it when no instant is near, and all that was due has begun.

    Args:
        client: Sends the requests.
        namespace: Of all of them.
        names: Their own ones.
        expression: Their instants; only its seconds may say something.
    """
    sent = now_ms()
    receipts = client.request_all(
        [{"type": "schedule.suspend", "namespace": namespace, "name": name} for name in names]
    )
    answered = now_ms()
    is_amid = every_nth_second(expression, sent, answered)
    for receipt in receipts:
        assert receipt["status"] == "accepted", receipt
        # Whoever still waited would be dropped, and its instant be taken for lost: by the judge where one lies amid.
        assert is_amid or receipt["discarded"] in (None, {"jobs": [], "evidence": {}, "messages": 0}), receipt
    return Suspension(sent, answered)
