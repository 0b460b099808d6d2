"""How long a trigger is searched for its next instant: exclusions can leave out all that it names, and specs have their own."""

from __future__ import annotations

from dataclasses import dataclass

EXCLUDED_IN_A_ROW = 20_000
"""Excluded instants, or excluded days, after which a trigger names nothing more: without end the search would never return."""
STEPS_PER_SEARCH = 200_000
"""Comparisons of an instant with a spec or an exclusion in one search, whatever is nested: some 10 µs each, and the shard's lane
waits for it. One trigger with few exclusions comes to its 20,000 before that; a union whose specs have exclusions of their own
would be at it for hours."""


@dataclass(slots=True)
class Search:
    """One search for an instant, shared by a trigger and its specs.

    Attributes:
        steps: Comparisons that are left.
        gave_up: Some trigger came to an end of its patience: what it names behind that is not known.
        place: The spec among others that did so first.
    """

    steps: int = STEPS_PER_SEARCH
    gave_up: bool = False
    place: int | None = None

    def takes(self, exclusions: int) -> bool:
        """Counts one instant and what it is compared with; returns whether the search goes on."""
        self.steps -= 1 + exclusions
        if self.steps < 0:
            self.gave_up = True
        return self.steps >= 0
