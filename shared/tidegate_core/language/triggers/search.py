"""How long a trigger is searched for an instant: exclusions can leave out all that it names, and specs have their own.

No search goes on for ever, because who searches stands still meanwhile, and all others with it. One that comes to the end of its
steps has proven something all the same: up to where nothing is named. Whoever goes on from there finds what a search without
an end would have found, so where it was cut is a matter of cost alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from tidegate_core.language.values.durations import Duration
from tidegate_core.language.values.instants import LATEST_INSTANT, Instant

STEPS_PER_SEARCH = 50_000
"""Comparisons of an instant with a spec or an exclusion, of some 2 µs each: what is looked at before a definition is taken, what a
search for the instant before takes, and what somebody who asks may have searched."""
STEPS_PER_DECISION = 5_000
"""Of all searches forward of one decision together: 10 to 20 ms, as much as 500 instants of a cron expression cost. The next one goes on."""


class Next(NamedTuple):
    """How far a search came.

    Attributes:
        at: The next instant; None: there is no further one.
        is_bound: It is none, but where the search was cut: no instant lies before it, and what follows is not known.
        since: Behind which nothing lies before `at`; None where that is not known any more.
    """

    at: Instant | None
    is_bound: bool = False
    since: Instant | None = None

    @property
    def found(self) -> Instant | None:
        """The instant, where it is known."""
        return None if self.is_bound else self.at

    def is_due(self, now: Instant) -> bool:
        """Whether an instant may have come: of a bound that is not known."""
        return self.at is not None and self.at <= now


NEVER = Next(None)


@dataclass(slots=True)
class Search:
    """A search for an instant, or several ones, shared by a trigger and its specs.

    Attributes:
        steps: Comparisons that are left; None is without a bound, for who has nobody to keep waiting.
        ahead: How far exclusions are followed; by default to the last instant that there is.
        floor: Of a search for the instant before: one below this is of no interest, and is not searched for.
        cut_at: The last search ended because they were used up: no instant lies before this one.
        left_out: All that the trigger names in ten years is left out.
    """

    steps: int | None = None
    ahead: Duration = LATEST_INSTANT
    floor: Instant = 0
    cut_at: Instant | None = None
    left_out: bool = False

    @classmethod
    def of_a_decision(cls, parts: int = 1) -> Search:
        """Returns a new one with the steps of a decision, or with its part of them where several have to come further."""
        return cls(max(1, STEPS_PER_DECISION // parts))

    @property
    def gave_up(self) -> bool:
        """Whether what the trigger names from `cut_at` on is not known."""
        return self.cut_at is not None

    @property
    def is_used_up(self) -> bool:
        """Whether another search would be cut at once: each takes one step at least."""
        return self.steps is not None and self.steps <= 0

    def takes(self, comparisons: int) -> bool:
        """Counts one instant and what it is compared with; returns whether there was room for it."""
        if self.steps is None:
            return True
        self.steps -= 1 + comparisons
        return self.steps >= 0
