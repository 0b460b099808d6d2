"""Priorities, and the one number by which waiting jobs are put in order (SEMANTICS 7.3).

Ageing lifts a job by one class for each 30 minutes that it waits. All jobs age alike, so nothing has to be rewritten as time
goes by: a class is a head start of 30 minutes over the one below it, and who has the smaller `satisfied_at` less its head
start goes first, whenever that is asked.
"""

from __future__ import annotations

from typing import Final, Literal, TypeAlias, get_args

from tidegate_core.language.values.instants import Instant

Priority: TypeAlias = Literal["highest", "high", "medium", "low", "lowest"]

AGEING_MS: Final = 30 * 60_000
"""Waiting that is worth one class."""
HEAD_START_MS: Final = {"high": AGEING_MS, "medium": 0, "low": -AGEING_MS, "lowest": -2 * AGEING_MS}
HIGHEST_HEAD_START_MS: Final = 10**12
"""31 years: nobody ages into the highest class. The order stays a number of 13 digits, as keys of rows want it."""
CATCH_UP_CLASS: Final = "low"
_RANKS: Final[dict[Priority, int]] = {priority: rank for rank, priority in enumerate(get_args(Priority))}


def order_of(priority: Priority, satisfied_at: Instant) -> int:
    """Returns a job's place: the smaller one goes first. It is fixed for the life of the job, and never negative.

    Args:
        priority: Its class.
        satisfied_at: Since when it waits.
    """
    head_start = HIGHEST_HEAD_START_MS if priority == "highest" else HEAD_START_MS[priority]
    return max(satisfied_at - head_start, 0)


def class_of(priority: Priority, *, catch_up: bool) -> Priority:
    """Returns the class of one job of a schedule: what makes up for the past goes behind what is due now."""
    return CATCH_UP_CLASS if catch_up and priority in {"highest", "high", "medium"} else priority


def rank_of(priority: Priority) -> int:
    """Returns a class as a number: 0 for `highest`, and one more for each class below."""
    return _RANKS[priority]
