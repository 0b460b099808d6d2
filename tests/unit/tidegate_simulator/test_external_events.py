"""A line of an events file: what it stands for, and what is told where it says something else than its writer meant."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tidegate_core.language.values.instants import parse_instant
from tidegate_core.language.values.problems import InvalidInput
from tidegate_simulator.external_events import happenings_of

END = parse_instant("2026-01-03T00:00:00Z")
AT = "2026-01-01T02:00:00Z"
ARRIVAL = {"at": AT, "type": "data.partition", "namespace": "flights", "dataset": "raw", "partition": "p"}
SUSPEND = {"at": AT, "id": "s", "type": "schedule.suspend", "namespace": "flights", "name": "nightly", "mode": "hold"}


def problem(document: dict[str, Any]) -> tuple[str, str, str]:
    with pytest.raises(InvalidInput) as told:
        happenings_of(document, END)
    (only,) = told.value.problems
    return only.field, only.problem, only.hint


def test_given_until_without_every_then_the_line_is_refused_with_the_way_out() -> None:
    """Review finding: it was ignored."""
    assert problem({**ARRIVAL, "until": "2026-01-02T00:00:00Z"}) == (
        "until",
        "needs every",
        "write every: 1d for a line that repeats, or leave until out",
    )


def test_given_until_that_is_not_after_at_then_the_line_is_refused() -> None:
    """Nothing would come of it, and nobody would be told."""
    assert problem({**ARRIVAL, "every": "1h", "until": AT})[:2] == ("until", f"is not after at, {AT}")


def test_given_a_suspend_with_an_end_then_it_is_the_requests_own() -> None:
    """Review finding: the schedule was suspended for ever, because the line's own until was meant."""
    (only,) = happenings_of({**SUSPEND, "until": "2026-01-02T00:00:00Z"}, END)
    assert json.loads(only.value)["until"] == "2026-01-02T00:00:00Z"


def test_given_a_suspend_that_comes_again_then_until_is_the_end_of_that() -> None:
    told = list(happenings_of({**SUSPEND, "every": "6h", "until": "2026-01-01T20:00:00Z"}, END))
    assert len(told) == 3
    assert all("until" not in json.loads(each.value) for each in told)


def test_given_cloudevents_in_structured_mode_then_each_goes_to_the_topic_of_its_type() -> None:
    envelope = {"at": AT, "specversion": "1.0", "id": "e-1", "source": "/lake"}
    data = {"namespace": "flights", "dataset": "raw", "partition": "p"}
    (event,) = happenings_of({**envelope, "type": "tidegate.data.partition", "data": data}, END)
    request = {**envelope, "type": "tidegate.schedule.suspend", "data": {"namespace": "flights", "name": "nightly"}}
    (asked,) = happenings_of(request, END)
    assert (event.topic, asked.topic) == ("events", "requests")
