"""Who suspended a schedule, and why, whatever came after it."""

from __future__ import annotations

from tests.support.builders import SECOND, a_request, a_spec, an_apply, every
from tests.unit.tidegate_core.explain.why.stories_of_schedules import applied
from tests.unit.tidegate_core.explain.why.telling import served, told, why


def test_given_an_update_of_a_suspended_schedule_then_it_is_suspended_by_who_suspended_it() -> None:
    """It named who updated it, with the reason of the update, as if that had stopped it."""
    bench = applied()
    bench.request(a_request("suspend", actor="ana", reason="the source is being repaired"))
    bench.run(SECOND)
    update = an_apply(a_spec(trigger=every("2h")), "update")
    bench.request({**update, "actor": "bob", "reason": "less often"})
    bench.run(SECOND)
    (reason,) = [each for each in told(why(served(bench))) if each.startswith("suspended")]
    assert reason.endswith(", by ana: the source is being repaired")


def test_given_a_schedule_that_began_suspended_then_it_is_so_by_who_applied_it() -> None:
    bench = applied(name="other")
    created = an_apply(a_spec(trigger=every("1h"), suspended=True), "create")
    bench.request({**created, "actor": "ana", "reason": "not yet"})
    bench.run(SECOND)
    (reason,) = [each for each in told(why(served(bench))) if each.startswith("suspended")]
    assert reason.endswith(", by ana: not yet")
