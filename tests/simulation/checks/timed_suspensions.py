"""I7 and I1 for suspensions that end by themselves: none before its time, each in time where somebody serves, and each only once.

What goes on behind the end is what the other checks say: for them it is a resume like any other.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from tests.simulation.checks.fires import at_text
from tests.simulation.checks.request_history import SKEW_MS
from tests.simulation.users.schedule_definitions import NAMESPACE
from tests.simulation.world.fault_schedule import HEAL_AFTER_MS
from tests.simulation.world.timeline import START
from tidegate_core.language.values.derived_ids import schedule_shard

if TYPE_CHECKING:
    from tests.simulation.checks.case import Case
    from tests.simulation.users.schedule_users import Life

SETTLE_MS: Final = 6_000
"""In a healed world a suspension has ended this long after its time, where its shard is served."""
SETTLE_AMID_FAULTS_MS: Final = 15_000
WAITS_FOR: Final = frozenset({"control", "recurring", "fire", "raise_index", "mixed"})
"""Transactions without which it does not end."""


def check_ends(case: Case) -> Iterator[str]:
    for life in (*case.lives, *case.recurring):
        until: int | None = None
        for step in case.steps(life):
            if until is not None and until != step.until:
                yield from _check_late(case, life, until, step.sent)
                if not step.is_asked_for and step.counts_from is not None and step.sent < until - SKEW_MS:
                    early = until - step.sent
                    yield f"I7: {life.name} was suspended until {at_text(until)}, and went on {early} ms before that"
            until = step.until
        if until is not None and case.world.at_rest and until < case.world.ended_at - SKEW_MS:
            yield f"liveness: {life.name} was suspended until {at_text(until)}, and is so at rest"


def _check_late(case: Case, life: Life, until: int, ended_at: int) -> Iterator[str]:
    look = _a_calm_look(case, life, until + SKEW_MS, ended_at)
    if look is not None:
        yield (
            f"I1: {life.name} was suspended until {at_text(until)}; nothing came of it from {at_text(look)} "
            f"until {at_text(ended_at)}"
        )


def _a_calm_look(case: Case, life: Life, comes: int, ended_at: int) -> int | None:
    """Returns a moment from which on nothing was in its owner's way for as long as that takes, or None."""
    healed = START + case.swarm.busy_ms + HEAL_AFTER_MS
    shard = schedule_shard(NAMESPACE, life.name, case.swarm.shards)
    serving = [each.serving for each in case.stints_of_shard(shard) if each.serving is not None]
    # Requests of before go first.
    looks = (case.emptied(shard, each) for each in [comes, *sorted(each for each in serving if each > comes)])
    for look in (each for each in looks if each is not None):
        is_healed = look >= healed
        settled = case.lane_had(shard, look, (SETTLE_MS if is_healed else SETTLE_AMID_FAULTS_MS) + case.queued_ms)
        served = settled < ended_at and case.is_served(shard, look, settled)
        if served and (is_healed or not case.is_disturbed(look, settled, WAITS_FOR)):
            return look
    return None
