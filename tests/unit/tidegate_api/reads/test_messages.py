"""What is said of a message's state: never more than the rows show."""

from __future__ import annotations

import pytest

from tidegate_api.reads.messages import state_of
from tidegate_core.rows.item_codec import to_item
from tidegate_core.rows.message import FOR_EVER, Message, MessageFence
from tidegate_core.rows.store_operations import Item

SLOT = 10_000
MESSAGE = Message(
    id="m",
    version="v1",
    origin="v1",
    namespace="orders",
    nominal=SLOT,
    slot=SLOT,
    topic="out",
    payload=b"",
    keyed=True,
    headers="[]",
    expires_at=0,
)


def guard(live_from: str) -> Item:
    made = MessageFence(id="m", live_from=live_from)
    return to_item(made, made.key(0))


def position(slot: int) -> Item:
    return {"fired_slot": slot, "fired_id": "z"}


@pytest.mark.parametrize(
    ("found", "fired", "now", "state"),
    [
        pytest.param(None, None, 0, "waiting", id="no owner yet"),
        pytest.param(None, 5_000, SLOT + 1, "waiting", id="due and not passed"),
        pytest.param(None, SLOT, SLOT + 1, "passed", id="passed"),
        pytest.param("v2", 5_000, SLOT - 1, "withdrawn", id="withdrawn before its time"),
        pytest.param(FOR_EVER, SLOT, SLOT + 1, "passed", id="its cancel came too late: a guard proves nothing then"),
        pytest.param("v2", 5_000, SLOT + 1, "passed", id="the same before the next checkpoint"),
        pytest.param("v1", 5_000, SLOT - 1, "waiting", id="the guard of its own version"),
    ],
)
def test_given_guard_position_and_time_then_the_state_claims_no_more_than_is_known(
    found: str | None, fired: int | None, now: int, state: str
) -> None:
    rows = (None if found is None else guard(found), None if fired is None else position(fired))
    assert state_of(MESSAGE, *rows, now) == state
