from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tidegate_cli.dev.component_supervisor import HEALTHY_AFTER_S, WAIT_S_MAX, BackOff


def test_given_crashes_in_a_row_then_waits_double_up_to_half_a_minute() -> None:
    back_off, waits = BackOff(), []
    for _ in range(7):
        back_off = back_off.after_crash(lived_s=0.5)
        waits.append(back_off.wait_s)
    assert waits == [1, 2, 4, 8, 16, 30, 30]


def test_given_a_healthy_life_then_its_crash_counts_as_the_first() -> None:
    assert BackOff(crashes=9).after_crash(lived_s=HEALTHY_AFTER_S).wait_s == 1


def test_given_no_crash_then_there_is_nothing_to_wait_for() -> None:
    assert BackOff().wait_s == 0


@given(crashes=st.integers(min_value=1, max_value=10**6), lived_s=st.floats(min_value=0, max_value=1e9))
def test_given_any_history_then_the_wait_stays_within_its_bounds(crashes: int, lived_s: float) -> None:
    assert 1 <= BackOff(crashes).after_crash(lived_s).wait_s <= WAIT_S_MAX
