"""Requests of a schedule's user by hand, as a check sees them once they are answered."""

from __future__ import annotations

from tests.simulation.checks.request_history import Step
from tests.simulation.users.requests import Asked
from tests.simulation.world.observations import ReceiptSeen


def a_step(
    kind: str, at: int, *, mode: str | None = None, backlog: str | None = None, until: int | None = None
) -> Step:
    """Returns an accepted request whose record was there then, and its answer 10 ms later."""
    said = {"mode": mode, "backlog": backlog}
    document = {
        "id": kind,
        "type": f"schedule.{kind}",
        **{name: word for name, word in said.items() if word is not None},
    }
    asked = Asked(document, at, appended=[at], receipt=ReceiptSeen(at + 10, {"status": "accepted"}))
    parks, active = mode in {"hold", "freeze"}, mode in {None, "hold"}
    return Step(
        asked,
        "accepted",
        moves=True,
        active=active,
        generation=1,
        version=1,
        incarnation=1,
        parks=parks,
        until=until,
        mode=mode,
    )
