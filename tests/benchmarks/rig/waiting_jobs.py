"""Jobs that exist and wait: schedules whose one instant has passed, and whose window opens in hours."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.benchmarks.rig import null_launcher_node
from tests.benchmarks.rig.bulk_producer import apply, delete
from tests.benchmarks.rig.cluster import APPLY_S_MAX, Stack
from tests.support.cluster.until import until

OPENS_IN = timedelta(hours=12)
OPEN_FOR = timedelta(hours=1)
PROGRAM = {"type": "python", "file": null_launcher_node.__file__}
"""A file that is there; nothing ever runs it."""
JOBS = ("J#", "J#~")
LOOK_EVERY_S = 0.25


def make_held_jobs(stack: Stack, count: int) -> Sequence[str]:
    """Applies so many schedules, and waits until each has its job; returns their names."""
    prefix = stack.new_name("held")
    names = [f"{prefix}-{number}" for number in range(count)]
    before = stack.settled.rows(JOBS)
    stack.apply([apply(name, _spec(), stack.shards) for name in names])
    until(
        lambda: stack.settled.rows(JOBS) >= before + count, f"{count} jobs wait", APPLY_S_MAX, look_every_s=LOOK_EVERY_S
    )
    return names


def delete_schedules(stack: Stack, names: Sequence[str]) -> None:
    """Deletes schedules with all that waits of them."""
    stack.apply([delete(name, stack.shards) for name in names])


def _spec() -> Mapping[str, Any]:
    opens = datetime.now(UTC) + OPENS_IN
    window = {"opens": f"{opens:%H:%M}", "closes": f"{opens + OPEN_FOR:%H:%M}", "zone": "UTC"}
    past = datetime.fromtimestamp(int(time.time()) - 1, UTC)
    return {
        "target": {"type": "program", "program": PROGRAM},
        "trigger": {"type": "at", "instant": f"{past:%Y-%m-%dT%H:%M:%SZ}"},
        "constraints": [{"type": "time_window", **window, "on_unmet": "wait"}],
    }
