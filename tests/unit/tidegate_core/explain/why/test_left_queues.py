"""What `why` says of a job that aborts while a queue that all have left is marked still: it looks there as the owner does."""

from __future__ import annotations

from tests.support.builders import at_most
from tests.unit.tidegate_core.admission.test_abandoned_queue import closes, with_a_left_queue
from tests.unit.tidegate_core.admission.test_shared_limits import trigger
from tests.unit.tidegate_core.explain.why.telling import served, told, why_job


def test_given_a_queue_that_all_have_left_then_nothing_is_in_the_way_of_a_job_that_aborts() -> None:
    bench = with_a_left_queue(at_most(1, "program"))
    bench.hold_back(closes)
    (job,) = trigger(bench, "s-2")
    assert bench.holds_something
    assert told(why_job(served(bench), job)) == ["being_decided: nothing blocks it: the owner decides about it next"]
