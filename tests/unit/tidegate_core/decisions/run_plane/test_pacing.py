"""Whose turn it is among what makes up for the past, and until when."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tidegate_core.decisions.run_plane.jobs import time_job
from tidegate_core.decisions.run_plane.pacing import Pacing
from tidegate_core.model.schedule import ScheduleSpec
from tidegate_core.records.run_plane import ScheduleState
from tidegate_testkit.builders import MINUTE, NOW, SECOND, a_spec

TIMEOUT = 6 * SECOND


@pytest.mark.parametrize(
    ("nominal", "deadline"),
    [
        pytest.param(NOW - MINUTE, NOW, id="it waited when the turn began, and ends with it"),
        pytest.param(NOW - TIMEOUT, NOW, id="due as the turn began"),
        pytest.param(NOW - 2 * SECOND, NOW + 4 * SECOND, id="missed later: it waits for as long as any other"),
        pytest.param(NOW + SECOND, NOW + 7 * SECOND, id="due when that turn was over, which nobody had looked at"),
    ],
)
def test_given_a_turn_that_ended_by_time_then_it_ends_only_what_waited_when_it_began(
    nominal: int, deadline: int
) -> None:
    """Seed 875212: two short outages; what the second one had missed expired 4 s after its instant, of 6 s."""
    spec = ScheduleSpec.model_validate(a_spec())
    state = ScheduleState(
        namespace=spec.namespace,
        name=spec.name,
        status="active",
        incarnation="01",
        version=1,
        generation=1,
        position="",
    )
    job = replace(time_job(0, state, spec, nominal, NOW), catch_up=True)
    taken = Pacing(open_run=None, turn=NOW).in_turn(job, TIMEOUT, NOW + 2 * SECOND)
    assert (taken.in_turn, taken.deadline) == (True, deadline)
