"""I7 for stops that the API hands over in front of an open transaction: their owner answers them in time, and waits for no transaction.

What an answered stop ends is judged by the other checks, like that of any stop.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from tests.simulation.checks.fires import at_text
from tests.simulation.world.fault_schedule import HEAL_AFTER_MS
from tests.simulation.world.timeline import START

if TYPE_CHECKING:
    from tests.simulation.checks.case import Case
    from tests.simulation.users.requests import Asked

SETTLE_MS: Final = 15_000
"""The owner reads its inbox every 10 s if the poke is lost. The rest is for the decision and the record of its receipt."""
SETTLE_WIDE_MS: Final = 35_000
"""Of a scope's suspend or resume: without pokes the other shards, and then its home, find their rows up to 10 s later each."""
WAITS_FOR: Final = frozenset(
    {
        *(
            "inboxed",
            "control",
            "end_pending",
            "park",
            "release",
            "cancel_job",
            "cancel_run",
            "hold",
            "let_go",
            "mixed",
        ),
        *("controls", "controls_done", "end_covered", "move_controls", "settle_control"),
    }
)
"""Transactions without which a stop is not answered."""


def check_overtaking(case: Case) -> Iterator[str]:
    for asked in case.world.requests.asked.values():
        if asked.handed_over is None:
            continue
        at, shard = asked.handed_over
        answered = case.world.ended_at if asked.receipt is None else asked.receipt.at
        due = _due(case, asked, at, shard, answered)
        if due is not None:
            yield (
                f"I7: {asked.document['type']} {asked.id} was handed over to shard {shard} at {at_text(at)}; "
                f"its owner owed the answer by {at_text(due)}, and it was not there until {at_text(answered)}"
            )


def _due(case: Case, asked: Asked, at: int, shard: int, answered: int) -> int | None:
    """Returns when the answer was due, if that passed before the answer; None: the answer came first, or faults explain the wait."""
    is_wide = str(asked.document["type"]).startswith("control.")
    shards = range(case.swarm.shards) if is_wide else (shard,)  # All shards do their part before a scope's answer.
    serving = {each.serving for each in case.record.stints.values() if each.serving is not None and each.serving > at}
    span = (SETTLE_WIDE_MS if is_wide else SETTLE_MS) + case.queued_ms + case.scattered_ms + case.unheard_ms
    healed = START + case.swarm.busy_ms + HEAL_AFTER_MS
    for look in (at, *sorted(serving)):
        due = max(case.lane_had(each, look, span) for each in shards)
        if due >= answered:
            return None
        served = all(case.is_served(each, look, due) for each in shards)
        if served and (look >= healed or not case.is_disturbed(look, due, WAITS_FOR)):
            return due
    return None
