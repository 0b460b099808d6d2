"""How long rows are kept: what covers a row outlives it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.builders import HOUR, NOW
from tidegate_core.language.values.instants import TEN_YEARS_MS
from tidegate_core.messages.wire.row_expiry import fence_expiry, outlives, presence_expiry, row_expiry
from tidegate_core.rows.message import Message, MessageFence

SLOTS = st.integers(NOW, NOW + TEN_YEARS_MS)


def a_message(slot: int) -> Message:
    return Message(
        id="m",
        version="v",
        origin="o",
        namespace="orders",
        nominal=slot,
        slot=slot,
        topic="out",
        payload=b"",
        keyed=True,
        headers="[]",
        expires_at=row_expiry(slot),
    )


@given(before=st.none() | st.integers(0, NOW), slots=st.lists(SLOTS))
def test_given_a_guard_then_it_outlives_all_that_it_covers_and_that_it_covered_before(
    before: int | None, slots: list[int]
) -> None:
    earlier = None if before is None else MessageFence(id="m", live_from="v", expires_at=before)
    expires_at = fence_expiry(NOW, earlier, [a_message(slot) for slot in slots])
    assert expires_at > row_expiry(max(slots, default=NOW))
    assert expires_at >= (before or 0)


@pytest.mark.parametrize(("days", "is_kept"), [(-100, True), (4, True), (5, False), (61, False)])
def test_given_a_guard_that_knows_of_no_row_then_it_outlives_what_is_due_within_days(days: int, is_kept: bool) -> None:
    guard = MessageFence(id="m", live_from="v", expires_at=fence_expiry(NOW, None, []))
    assert outlives(guard, NOW + days * 24 * HOUR) == is_kept
    assert outlives(replace(guard, expires_at=None), NOW + days * 24 * HOUR)


@given(appended=st.integers(NOW, NOW + 24 * HOUR), slot=SLOTS)
def test_given_a_presence_row_of_any_message_under_the_key_then_it_outlives_each_of_them(
    appended: int, slot: int
) -> None:
    assert presence_expiry(appended) > row_expiry(slot)
