"""What counts as a fault that bit."""

from __future__ import annotations

import pytest

from tests.simulation.runner.trace import Trace
from tests.simulation.world.timeline import Timeline


@pytest.fixture
def trace() -> Trace:
    return Trace(Timeline(0))


def test_given_an_injected_fault_then_it_is_booked_by_kind_and_place(trace: Trace) -> None:
    trace.bit("crash", "node")
    trace.bit("crash", "on cursor")
    assert dict(trace.faults) == {("crash", "node"): 1, ("crash", "on cursor"): 1}


def test_given_a_kind_that_nobody_registered_then_it_is_refused(trace: Trace) -> None:
    with pytest.raises(KeyError, match="meteor"):
        trace.bit("meteor", "node")


def test_given_what_follows_from_a_fault_then_it_is_counted_and_no_fault(trace: Trace) -> None:
    trace.counted("guard_lapsed", "produce")
    assert not trace.faults
    assert trace.counts["guard_lapsed"] == 1
