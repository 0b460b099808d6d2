"""Both ways in which a cancel names its message, and how many a bench has delivered and cancelled."""

from __future__ import annotations

import pytest

from tests.support.harness.actor_harness import ActorHarness

WHICH = pytest.mark.parametrize(
    ("sent", "cancel"),
    [
        pytest.param({}, {"message_id": "m-1"}, id="by id"),
        pytest.param({"key": "k"}, {"key": "k"}, id="by key"),
    ],
)


def tally(bench: ActorHarness) -> tuple[int, int]:
    """Returns how many were delivered and cancelled, as stored."""
    rows = [*bench.rows("PROGRESS"), *bench.rows("Y#")]
    return sum(int(str(row["delivered"])) for row in rows), sum(int(str(row["cancelled"])) for row in rows)
