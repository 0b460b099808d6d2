"""Stories of runs that end while their owner falls."""

from __future__ import annotations

from tests.simulation.stories.stage import Stage, limit_of, two_under_one_limit, writing
from tests.support.builders import SECOND


def test_given_an_owner_that_falls_while_a_run_ends_then_the_permit_is_free_and_the_next_run_begins() -> None:
    bench = Stage().first
    two_under_one_limit(bench)
    bench.crash_at(writing("Z#"))
    bench.run(60 * SECOND)
    assert not limit_of(bench.store)["in_use"], "I4: a permit is held by a run that has ended"
    assert len(bench.started) == 2, "I1: each of the two occurrences has its program"
