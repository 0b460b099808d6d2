"""What is said of a composite that waits for one of its time triggers: when that comes."""

from __future__ import annotations

from tests.support.builders import SECOND, all_of, an_event, every, on_data
from tests.unit.tidegate_core.explain.why.stories_of_schedules import applied
from tests.unit.tidegate_core.explain.why.telling import served, told, why

BOTH = all_of(every("1h"), on_data("a"))


def test_given_nothing_yet_then_the_next_instant_is_named_and_is_when_it_can_change() -> None:
    (reason,) = told(why(served(applied(BOTH))))
    assert reason.startswith("no_events [2025-11-13T03:00:00Z]: ")
    assert reason.endswith("; the next instant that a time trigger of it names is 2025-11-13T03:00:00Z")


def test_given_data_that_waits_for_its_time_then_that_is_what_is_missing() -> None:
    bench = applied(BOTH)
    bench.event(an_event("d1", "a"))
    bench.run(SECOND)
    (reason,) = told(why(served(bench)))
    assert reason.startswith("waiting_for_events [2025-11-13T03:00:00Z]: ")
    assert reason.endswith("missing: an instant of every 1h; its next instant is 2025-11-13T03:00:00Z")
