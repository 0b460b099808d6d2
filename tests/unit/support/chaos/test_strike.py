from __future__ import annotations

import pytest

from tests.chaos.nemeses.strike import Strike, VoidPhase, assert_bit


def a_strike(**felt: int) -> Strike:
    return Strike("kill", ("node-1",), 0, 1, 2, felt)


def test_given_what_is_needed_was_felt_in_any_strike_then_the_phase_bit() -> None:
    assert_bit("kill", ("rebalances", "fenced"), [a_strike(rebalances=2), a_strike(fenced=1)])


def test_given_a_fault_that_nobody_felt_then_the_phase_is_void_and_says_what_is_missing() -> None:
    with pytest.raises(VoidPhase, match="kill, 2 strikes: no rebalances; felt were launches 3"):
        assert_bit("kill", ("rebalances",), [a_strike(launches=3), a_strike()])


def test_given_no_strike_then_the_phase_is_void() -> None:
    with pytest.raises(VoidPhase, match="no strike"):
        assert_bit("kill", (), [])
