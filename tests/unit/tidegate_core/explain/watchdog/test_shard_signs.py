"""What items of the store say of a shard, before anybody judges it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.builders import HOUR, SECOND
from tidegate_core.explain.watchdog.shard_signs import heads, served_until, shard_signs
from tidegate_core.rows import keys
from tidegate_core.rows.item_codec import to_item
from tidegate_core.rows.run import Run
from tidegate_core.rows.scope_suspension import NO_SUSPENSIONS, Scope, ScopeSuspensions
from tidegate_core.rows.store_operations import Item

NOW = 1_763_676_000_000
RUN: dict[str, Any] = {
    "namespace": "flights",
    "name": "land",
    "incarnation": "0" * 26,
    "version": 1,
    "generation": 1,
    "attempt": 1,
    "trigger": "time",
    "nominal": NOW,
    "order": "{}",
}


def a_lease(**fields: Any) -> Item:
    return {"epoch": 3, "owner": "a", "served": NOW - 60_000, **fields}


def a_run(number: int, state: str, start_by: int, admitted_at: int) -> Item:
    run = Run(**RUN, id=f"0007-{number}", state=state, start_by=start_by, admitted_at=admitted_at)
    return to_item(run, keys.run(7, run.id))


@pytest.mark.parametrize(
    ("lease", "sign", "served"),
    [
        pytest.param(None, None, None, id="nobody ever had it"),
        pytest.param(a_lease(served=0), None, None, id="nobody has ever served it"),
        pytest.param({"epoch": 3, "owner": "a"}, None, None, id="a lease of an earlier version"),
        pytest.param(a_lease(), None, NOW - 60_000, id="taken over, no sign yet"),
        pytest.param(a_lease(), {"served": {"2": NOW}}, NOW - 60_000, id="signs for others only"),
        pytest.param(a_lease(), {"served": {"3": NOW - 5}}, NOW - 5, id="its own sign"),
        # Seen with real nodes: a frozen one woke, took its share again, and was told to be silent still.
        pytest.param(a_lease(), {"served": {"3": NOW - 90_000}}, NOW - 60_000, id="its own sign of an earlier tenure"),
    ],
)
def test_given_lease_and_sign_then_the_newer_one_counts(lease: Item | None, sign: Item | None, served: int) -> None:
    assert served_until(lease, sign, 3) == served


def test_given_a_position_then_what_is_behind_it_and_due_is_read() -> None:
    messages, timers, runs = heads(7, {"fired_slot": NOW - 9, "fired_id": "m5"}, NOW)
    inside = [
        (NOW - 9, "m6", True),
        (NOW, "a", True),
        (NOW - 9, "m5", False),
        (NOW - 10, "z", False),
        (NOW + 1, "a", False),
    ]
    for slot, message_id, is_read in inside:
        key = keys.message_timer(7, slot, message_id, "0001")
        assert (messages.low < key.sk <= messages.high) == is_read, (slot, message_id)
    assert timers.low <= keys.timer(7, NOW, "S", "flights/land").sk <= timers.high
    assert keys.timer(7, NOW + 1, "S", "flights/land").sk > timers.high
    assert runs.low <= keys.run(7, "0007-a").sk <= runs.high


def test_given_a_position_of_the_future_then_the_range_is_empty_and_no_error() -> None:
    """The clock of who asks is behind the owner's."""
    messages, _, _ = heads(7, {"fired_slot": NOW + 5_000, "fired_id": "m5"}, NOW)
    assert messages.low <= messages.high


def test_given_rows_then_the_first_fire_and_the_first_start_count() -> None:
    timers = [keys.timer(7, NOW - 50, "E", "flights/join#x"), keys.timer(7, NOW - 40, "S", "flights/land")]
    outage = f"{NOW - 30_000}-{NOW - 10_000}"
    signs = shard_signs(
        7,
        a_lease(),
        {"outages": [outage]},
        None,
        topic_partition=3,
        controls=NO_SUSPENSIONS,
        messages=[{"sk": keys.message_timer(7, NOW - 60, "m", "v").sk}],
        timers=[{"pk": key.pk, "sk": key.sk} for key in timers],
        runs=[
            a_run(1, "running", NOW - 900_000, NOW - 999_000),
            a_run(2, "submitted", NOW - 5_000, NOW - 20_000),
            a_run(3, "submitted", NOW + 5_000, NOW),
        ],
    )
    assert (signs.message_due, signs.timer_due) == (NOW - 60, NOW - 40)
    assert signs.start_by == NOW - 5_000 + 10_000, "half of the outage lay before its admission"


def test_given_a_fire_that_came_due_in_a_wide_suspend_then_it_is_late_from_the_resume_on() -> None:
    """It stays where it is until its owner has heard of the end: days old then, and nobody's fault."""
    scope = Scope(namespace="flights", position="2", spans=((NOW - 9 * HOUR, NOW - SECOND),), dropped=1)
    key = keys.timer(7, NOW - 8 * HOUR, "S", "flights/land")
    signs = shard_signs(
        7,
        a_lease(),
        None,
        None,
        topic_partition=3,
        controls=ScopeSuspensions(version=2, scopes=(scope,)),
        timers=[{"pk": key.pk, "sk": key.sk}],
    )
    assert signs.timer_due == NOW - SECOND
