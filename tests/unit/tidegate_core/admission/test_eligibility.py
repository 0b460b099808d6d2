"""What stands in a job's way, in words."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tidegate_core.admission.eligibility import unmet_own
from tidegate_core.language.constraints.constraint import LimitRef
from tidegate_core.rows.store_operations import Key

LIMIT = LimitRef(scope="schedule", namespace="flights", name="load", max=2)


@pytest.mark.parametrize(
    ("holders", "ahead", "reason"),
    [
        (("r-2", "r-1"), 0, "2 of 2 runs of schedule flights/load are open: r-1, r-2"),
        (("r-2", "r-1"), 3, "2 of 2 runs of schedule flights/load are open: r-1, r-2"),
        (("r-1",), 1, "a job that waits goes before it; 1 of 2 runs of schedule flights/load are open: r-1"),
        ((), 2, "2 jobs that wait go before it; 0 of 2 runs of schedule flights/load are open"),
    ],
)
def test_given_free_permits_that_jobs_before_it_will_take_then_those_are_the_reason(
    holders: tuple[str, ...], ahead: int, reason: str
) -> None:
    """`0 of 1 runs of ... are open: ` was no reason, and listed nobody."""
    unit: Any = SimpleNamespace(record=lambda *_: SimpleNamespace(holders=holders))
    (found,) = unmet_own(unit, LIMIT, Key("s", "k"), ahead)
    assert found.hold.reason == reason
