"""What `why` says, word for word, of a job before a rate that schedules share."""

from __future__ import annotations

from tests.support.builders import HOUR, SECOND, Doc, a_request, a_spec, an_apply, every
from tests.unit.tidegate_core.explain.why.stories_of_jobs import QUICK, last_job, triggered
from tests.unit.tidegate_core.explain.why.telling import served, told
from tidegate_core.rows.effects import WakeUp

CALLS: Doc = {"type": "rate", "max": 1, "per": "1h", "scope": "group", "group": "calls"}


def test_given_a_rate_that_has_no_room_then_the_job_says_what_counts_and_when_the_next_may_go() -> None:
    assert told(last_job(triggered(CALLS, behaviour=QUICK, times=2))) == [
        (
            "rate_reached [2025-11-13T03:13:21Z]: 1 runs of group calls of namespace flights were admitted within 1h, 1 are allowed; "
            "the next may start at 2025-11-13T03:13:21Z"
        )
    ]


def test_given_room_that_is_offered_to_another_one_then_the_job_says_that_it_waits_for_that() -> None:
    bench = triggered(CALLS, behaviour=QUICK)
    for name in ("first", "last"):
        bench.request(an_apply(a_spec(name, every("12h"), constraints=[CALLS])))
        bench.request(a_request("trigger", name))
        bench.run(SECOND)
    bench.answer_with(lambda effect: isinstance(effect, WakeUp), None, times=1_000)
    bench.run(HOUR - 2 * SECOND - 500)  # Who is offered the place has not heard of it.
    assert told(last_job(served(bench))) == [
        (
            "rate_reached: others wait for the rate of group calls of namespace flights since longer; 0 runs of group calls of "
            "namespace flights were admitted within 1h, 1 are allowed"
        )
    ]
