"""How long a trigger is searched for an instant: exclusions can leave out all that it names, and specs have their own."""

from __future__ import annotations

from dataclasses import dataclass

from tidegate_core.model.durations import Duration
from tidegate_core.model.instants import LATEST_INSTANT

STEPS_PER_SEARCH = 50_000
"""Comparisons of an instant with a spec or an exclusion, of some 3 µs each: what an apply may take of the shard's lane, and what
a search for the instant before takes. One that fires is searched as far as there are instants: to give up would be the schedule's end, and
an apply has seen to it that it does not leave out all that it names."""


@dataclass(slots=True)
class Search:
    """One search for an instant, shared by a trigger and its specs.

    Attributes:
        steps: Comparisons that are left; None is without a bound.
        ahead: How far exclusions are followed; by default to the last instant that there is.
        gave_up: They were used up: what the trigger names behind that is not known.
        left_out: All that the trigger names in ten years is left out.
    """

    steps: int | None = None
    ahead: Duration = LATEST_INSTANT
    gave_up: bool = False
    left_out: bool = False

    def takes(self, comparisons: int) -> bool:
        """Counts one instant and what it is compared with; returns whether the search goes on."""
        if self.steps is None:
            return True
        self.steps -= 1 + comparisons
        self.gave_up = self.steps < 0
        return not self.gave_up
