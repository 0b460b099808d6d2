"""What seeds have to show beyond holding their invariants, so that they prove something.

The window of seeds moves with each commit, so each bound here holds for any window. The shares are those of 30,000 published seeds
(fires, events, faults, kinds), and of the 400 seeds that the suite had before and 43 others (programs, take-overs, quiet worlds).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from statistics import median
from typing import TypeAlias

from tests.simulation.runner.outcome import Outcome

Judge: TypeAlias = Callable[[Iterable[int]], list[Outcome]]

NODES_MIN = 3
KINDS_MIN = 2
"""Of each world: where nothing goes wrong, nothing is proven. The least of 30,000 worlds had 7 kinds of fault."""
GROUP = 25
"""Worlds that are judged together: half a minute on an idle core, so that workers share them evenly."""
MEDIANS_MIN = {"fires": 40, "events": 40, "bodies": 10, "take_overs": 2, "faults": 100}
"""Of a group. Of all worlds so many are below: fires 13 %, events 1.3 %, programs that ran (`bodies`) 9 %, faults 0.05 %, take-overs none.
At 13 % one group of 350,000 has such a median, which is one night of 4,000; at 16 % (50 fires) it would be one night of 350.
"""
FIRES_MIN = 20
QUIET_MAX = 4
"""Worlds of a group that may fire less often than `FIRES_MIN`, those under a wide suspend apart: there is not much to fire in these.
None of 443 worlds did, so 0.7 % do at most: more than four of 25 are then found in one of a million groups.
"""


def shortfalls(outcomes: Sequence[Outcome]) -> list[str]:
    """Returns what a group of worlds does not show, in words; empty when the group proves what it should."""
    return [*_low_medians(outcomes), *_quiet_worlds(outcomes)]


def _low_medians(outcomes: Sequence[Outcome]) -> Iterator[str]:
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
    for name, least in MEDIANS_MIN.items():
        found = median(row[name] for row in rows)
        if found < least:
            yield f"median of {name}: {found:g}, at least {least} are expected"


def _quiet_worlds(outcomes: Sequence[Outcome]) -> Iterator[str]:
    quiet = [outcome.seed for outcome in outcomes if outcome.fires < FIRES_MIN and not outcome.calls["move_controls"]]
    if len(quiet) > QUIET_MAX:
        yield f"seeds {quiet} have less than {FIRES_MIN} fires, at most {QUIET_MAX} may"
