"""What is said of a job that `at_least_every` asks for."""

from __future__ import annotations

import pytest

from tests.support.builders import MINUTE, an_event, on_data
from tests.support.harness.actor_harness import ActorHarness
from tests.unit.tidegate_core.explain.why.stories_of_schedules import applied
from tests.unit.tidegate_core.explain.why.telling import served, told, why
from tidegate_core.language.values.instants import format_instant
from tidegate_core.rows.effects import ReadEndOffsets, Unavailable


def with_a_reminder(announced: bool) -> tuple[ActorHarness, str]:
    """A reminder is due in a minute."""
    bench = applied({**on_data("a", 2), "at_least_every": "1h"})
    state = bench.state_of("nightly")
    assert state is not None
    assert state.next_nominal is not None
    if announced:
        bench.event(an_event("d1", "a"))
    bench.run(state.next_nominal - MINUTE - bench.now)
    return bench, format_instant(state.next_nominal)


@pytest.mark.parametrize("announced", [False, True])
def test_given_a_reminder_that_is_to_come_then_it_is_named(announced: bool) -> None:
    bench, reminder = with_a_reminder(announced)
    (reason,) = told(why(served(bench)))
    assert f" [{reminder}]: " in reason
    assert reason.endswith(f"; at_least_every asks for a job at {reminder}")


@pytest.mark.parametrize("announced", [False, True])
def test_given_a_reminder_that_waits_for_what_is_not_read_then_it_is_named_and_not_the_one_behind_it(
    announced: bool,
) -> None:
    """Read again: the one behind it was named, an hour off, although a job is to be made within minutes."""
    bench, reminder = with_a_reminder(announced)
    bench.answer_with(lambda effect: isinstance(effect, ReadEndOffsets), Unavailable("broker"), times=1_000)
    bench.run(3 * MINUTE)
    (reason,) = told(why(served(bench)))
    assert f" [{reminder}]: " in reason
    assert reason.endswith(f"; at_least_every asks for a job at {reminder}, once all is read that was announced before")
