"""Pairing by the day: midnight of the zone, wherever a clock change puts it."""

from __future__ import annotations

import pytest

from tidegate_core.language.triggers.composite.composite import PairingWindow
from tidegate_core.language.values.instants import format_instant, parse_instant


@pytest.mark.parametrize(
    ("zone", "at", "day", "ends"),
    [
        ("UTC", "2026-11-20T23:59:59Z", "2026-11-20", "2026-11-21T00:00:00Z"),
        ("UTC", "2026-11-20T00:00:00Z", "2026-11-20", "2026-11-21T00:00:00Z"),
        ("America/New_York", "2026-11-20T03:00:00Z", "2026-11-19", "2026-11-20T05:00:00Z"),
        pytest.param("Europe/Rome", "2026-03-29T00:30:00Z", "2026-03-29", "2026-03-29T22:00:00Z", id="23 hours"),
        pytest.param("Europe/Rome", "2026-10-24T22:00:00Z", "2026-10-25", "2026-10-25T23:00:00Z", id="25 hours"),
        pytest.param("Africa/Cairo", "2026-04-23T12:00:00Z", "2026-04-23", "2026-04-23T22:00:00Z", id="no midnight"),
        pytest.param("Pacific/Apia", "2011-12-30T09:00:00Z", "2011-12-29", "2011-12-30T10:00:00Z", id="no such day"),
    ],
)
def test_given_an_instant_then_its_window_is_its_local_day(zone: str, at: str, day: str, ends: str) -> None:
    window = PairingWindow.model_validate({"every": "day", "zone": zone})
    instant = parse_instant(at)
    assert window.name_of(instant) == day
    assert format_instant(window.end_of(instant)) == ends
