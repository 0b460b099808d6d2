"""The calibration of bounds in seconds: a machine of half the speed has twice the time, a fast one no less than the bound."""

from __future__ import annotations

import itertools

import pytest

from tests.support.machine_speed import ROUND_S, ROUNDS, slowness


@pytest.mark.parametrize(("speed", "factor"), [(1.0, 1.0), (0.5, 2.0), (0.25, 4.0), (3.0, 1.0)])
def test_given_a_machine_of_some_speed_then_bounds_stretch_and_never_shrink(
    monkeypatch: pytest.MonkeyPatch, speed: float, factor: float
) -> None:
    clock = itertools.count(0.0, ROUNDS * ROUND_S / speed)
    monkeypatch.setattr("tests.support.machine_speed.time.perf_counter", lambda: next(clock))

    assert slowness() == pytest.approx(factor)
