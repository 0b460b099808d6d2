"""A request that comes while a fire of its schedule is on its way: sent under one version, whichever (I8)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.simulation.mutants.messages.recurring_rules import a_fire_is_taken_as_a_request_comes
from tests.support.builders import NOW, SECOND, every
from tidegate_core.model.instants import format_instant

AT = {"type": "at", "instant": format_instant(NOW + 20 * SECOND)}


@pytest.mark.parametrize(
    ("trigger", "times"),
    [
        (every("10s"), {"read_ms": 50}),
        (AT, {"late_ms": 100, "read_ms": 3_500, "decided_ms": 200}),
        (AT, {"late_ms": 10, "read_ms": 1_500, "acknowledged_ms": 2_400}),
    ],
    ids=["in the same millisecond", "its payload is read behind the hold's patience", "and the broker is slow"],
)
def test_given_a_fire_that_was_taken_and_not_handed_over_when_an_update_comes_then_it_is_sent_under_one_version(
    trigger: dict[str, Any], times: dict[str, int]
) -> None:
    """Found by a review: it was sent by both, or by the older one last."""
    assert list(a_fire_is_taken_as_a_request_comes(trigger, **times)) == []
