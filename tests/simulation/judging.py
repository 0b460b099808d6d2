"""What seeds have to show beyond holding their invariants, so that they prove something."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from statistics import median
from typing import TypeAlias

from tests.simulation.runner.outcome import Outcome

Judge: TypeAlias = Callable[[Iterable[int]], list[Outcome]]

NODES_MIN = 3
FIRES_MIN = 20
KINDS_MIN = 2
"""Of each world: one in which little happened, or nothing went wrong, proves nothing."""
MEDIANS_MIN = {"fires": 50, "events": 40, "bodies": 20, "take_overs": 2, "faults": 5}
"""Of a group of twenty-five worlds: the programs that run in one are 6 to 77, and a median of sixteen follows chance. Over hundreds the
median is above 50 events, as `make simulate` prints.
"""


def medians(outcomes: Iterable[Outcome]) -> dict[str, float]:
    """Returns the medians of what `MEDIANS_MIN` names."""
    rows = [
        {
            "fires": outcome.fires,
            "events": outcome.events,
            "bodies": outcome.bodies,
            "take_overs": outcome.take_overs,
            "faults": sum(outcome.faults.values()),
        }
        for outcome in outcomes
    ]
    return {name: median(row[name] for row in rows) for name in MEDIANS_MIN}
