"""The one-shot trigger."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from tidegate_core.language.triggers import AtTrigger
from tidegate_core.language.values.instants import parse_instant

SIX = parse_instant("2026-12-24T18:00:00Z")


def once(**fields: Any) -> AtTrigger:
    return AtTrigger.model_validate({"type": "at", "instant": "2026-12-24T18:00:00Z", **fields})


def test_given_instant_ahead_then_it_fires_once() -> None:
    assert once().first_after_activation(SIX - 1) == SIX
    assert once().next_after(SIX - 1, "id") == SIX
    assert once().next_after(SIX, "id") is None


def test_given_instant_that_has_passed_then_it_fires_with_its_own_nominal() -> None:
    assert once().first_after_activation(SIX + 86_400_000) == SIX


def test_given_one_shot_then_its_interval_is_empty() -> None:
    assert once().interval(SIX, "n/a") == (SIX, SIX)
    assert once().smallest_gap_ms() is None


@pytest.mark.parametrize(
    "fields",
    [
        {"end": "2026-12-24T18:00:00Z"},
        {"start": "2026-12-24T18:00:01Z"},
        {"instant": "2026-12-24T18:00:00"},
        {"instant": "2026-02-30T18:00:00Z"},
    ],
)
def test_given_instant_outside_of_its_bounds_or_of_the_calendar_then_it_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        once(**fields)
